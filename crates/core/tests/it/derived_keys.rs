//! Keys that are derived from other keys.

use std::time::Duration;

use quipu_core::backend::{Purpose, Writer};
use quipu_core::engine::{
    DERIVED_KEYS_MAX, Derivation, Exchange, NewDerivedKey, NewKey, NewSession, Principal,
    SessionToken,
};
use quipu_core::model::{
    Actor, Forwarding, Id as _, KEY_PAYLOAD_SIZE_BYTES_MAX, Key, KeyId, KeyKind, KeySecret,
    PERSON_NAME_SIZE_BYTES_MAX, Role, StoreId, StorePolicy,
};
use quipu_core::{Clock as _, Error, ErrorKind};

use crate::support::{Fixture, content, fixture, kind, name, path};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

impl Fixture {
    fn root(&self, role: Role, stores: Option<Vec<StoreId>>) -> (Key, KeySecret) {
        let new = NewKey {
            name: name("ci"),
            role,
            stores,
            expires_at: None,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        self.engine.create_key(self.workspace, &new).expect("a key")
    }

    fn new_key(&self, kind: KeyKind, for_how_long: Duration) -> NewDerivedKey {
        NewDerivedKey {
            kind,
            name: name("ada"),
            role: Role::ReadWrite,
            stores: None,
            expires_at: self.clock.now().plus(for_how_long),
            payload: None,
        }
    }

    fn derived(&self, from: &Key, kind: KeyKind) -> (Key, KeySecret) {
        let new = self.new_key(kind, HOUR);
        self.engine.derive_key(Derivation::Key(from.id), &new).expect("it is derived")
    }

    fn admits(&self, secret: &KeySecret) -> bool {
        self.engine.principal(secret.reveal()).expect("it is read").is_some()
    }

    /// Exchanges a code or a refresh token for an access token and the next refresh token.
    fn tokens(&self, secret: &KeySecret, kind: KeyKind) -> Option<Exchange> {
        let tokens = || vec![self.new_key(KeyKind::Key, HOUR), self.new_key(KeyKind::Refresh, DAY)];
        self.engine.exchange_key(secret.reveal(), kind, |_| Ok(tokens())).expect("it is answered")
    }

    fn key(&self, id: KeyId) -> Option<Key> {
        self.engine.read(|reader| reader.key(id)).expect("it is read")
    }

    /// Puts a key past the rules.
    fn put_row(&self, key: &Key) {
        let put = &mut |writer: &mut dyn Writer| writer.put_key(key);
        self.engine.backend().write(Purpose::Change, put).expect("it is written");
    }
}

#[test]
fn only_keys_and_browsers_open_anything() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    for kind in KeyKind::ALL {
        let (key, secret) = fixture.derived(&root, *kind);
        assert_eq!(fixture.admits(&secret), kind.opens(), "{kind}");
        assert_eq!((key.kind, key.parent), (*kind, Some(root.id)));
        assert!(key.is_derived());
    }
}

#[test]
fn a_derived_key_ends_with_its_parent() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (browser, cookie) = fixture.derived(&root, KeyKind::Browser);
    let session = NewSession { key: Some(browser.id), ..untitled() };
    let (_, token) = fixture.engine.create_session(fixture.workspace, &session).unwrap();
    let token = token.unwrap();
    assert!(fixture.admits(&cookie) && fixture.admits(&token));
    fixture.engine.revoke_key(root.id).unwrap();
    assert!(!fixture.admits(&cookie) && !fixture.admits(&token));
    assert!(fixture.key(browser.id).unwrap().revoked_at.is_some(), "whoever lists it sees that");
    let again = fixture.new_key(KeyKind::Browser, HOUR);
    let derive = |id| fixture.engine.derive_key(Derivation::Key(id), &again);
    assert_eq!(kind(derive(root.id)), ErrorKind::NotFound);
    assert_eq!(kind(derive(browser.id)), ErrorKind::NotFound);
    assert_eq!(kind(derive(KeyId::from_bits(1))), ErrorKind::NotFound);
}

/// Whatever the row of a derived key says, it ends with its parent.
#[test]
fn the_parent_is_looked_at_whenever_a_derived_key_is_presented() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (_, cookie) = fixture.derived(&root, KeyKind::Browser);
    let (_, link) = fixture.derived(&root, KeyKind::Link);
    let revoked = Key { revoked_at: Some(fixture.clock.now()), ..root.clone() };
    let expired = Key { expires_at: Some(fixture.clock.now()), ..root.clone() };
    for ended in [revoked, expired] {
        fixture.put_row(&ended);
        assert!(!fixture.admits(&cookie));
        assert_eq!(fixture.engine.redeem_key(link.reveal(), KeyKind::Link).unwrap(), None);
    }
    fixture.put_row(&root);
    assert!(fixture.admits(&cookie));
}

fn untitled() -> NewSession {
    NewSession::titled("a run", Vec::new(), SessionToken::Issue)
}

#[test]
fn a_derived_key_expires_with_its_parent() {
    let fixture = fixture();
    let expires_at = Some(fixture.clock.now().plus(MINUTE));
    let new = NewKey {
        name: name("ci"),
        role: Role::Admin,
        stores: None,
        expires_at,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (root, _) = fixture.engine.create_key(fixture.workspace, &new).unwrap();
    let (browser, cookie) = fixture.derived(&root, KeyKind::Browser);
    assert_eq!(browser.expires_at, expires_at);
    let later = fixture.clock.now().plus(DAY);
    let extended = fixture.engine.extend_key(browser.id, later).unwrap().unwrap();
    assert_eq!(extended.expires_at, expires_at);
    fixture.clock.advance(MINUTE);
    assert!(!fixture.admits(&cookie));
    assert_eq!(fixture.engine.extend_key(browser.id, later).unwrap(), None);
}

#[test]
fn no_derived_key_has_more_rights_than_its_source() {
    let fixture = fixture();
    let other = fixture.new_store("other", StorePolicy::default()).id;
    let (root, _) = fixture.root(Role::ReadWrite, Some(vec![fixture.store]));
    let plain = fixture.new_key(KeyKind::Browser, HOUR);
    let derive = |role, stores: Option<&[StoreId]>| {
        let stores = stores.map(<[_]>::to_vec);
        let new = NewDerivedKey { role, stores, ..plain.clone() };
        fixture.engine.derive_key(Derivation::Key(root.id), &new)
    };
    let own: &[_] = &[fixture.store];
    assert_eq!(kind(derive(Role::Admin, Some(own))), ErrorKind::InvalidInput);
    assert_eq!(kind(derive(Role::ReadOnly, None)), ErrorKind::InvalidInput);
    assert_eq!(kind(derive(Role::ReadOnly, Some(&[other]))), ErrorKind::InvalidInput);
    let (reader, _) = derive(Role::ReadOnly, Some(own)).unwrap();
    assert!(derive(Role::ReadWrite, Some(&[])).is_ok());
    // What is derived from a derived key has the same parent, and no more rights than the derived one.
    let further = NewDerivedKey { stores: Some(own.to_vec()), ..plain };
    let refused = fixture.engine.derive_key(Derivation::Key(reader.id), &further);
    assert_eq!(kind(refused), ErrorKind::InvalidInput);
    let further = NewDerivedKey { role: Role::ReadOnly, ..further };
    let (further, _) = fixture.engine.derive_key(Derivation::Key(reader.id), &further).unwrap();
    assert_eq!(further.parent, Some(root.id));
}

/// A token that was stolen for an hour must not become a browser that is signed in for days.
#[test]
fn nothing_is_derived_from_tokens_and_one_time_keys() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let new = fixture.new_key(KeyKind::Browser, DAY);
    for from in [KeyKind::Key, KeyKind::Link, KeyKind::Code, KeyKind::Refresh] {
        let (key, _) = fixture.derived(&root, from);
        let derived = fixture.engine.derive_key(Derivation::Key(key.id), &new);
        assert_eq!(kind(derived), ErrorKind::InvalidInput, "{from}");
    }
}

#[test]
fn unknown_stores_expired_keys_and_long_payloads_are_refused() {
    let fixture = fixture();
    let owner = Derivation::Owner(fixture.workspace);
    let plain = fixture.new_key(KeyKind::Link, HOUR);
    let derive = |new: NewDerivedKey| fixture.engine.derive_key(owner, &new);
    let unknown = NewDerivedKey { stores: Some(vec![StoreId::from_bits(1)]), ..plain.clone() };
    assert_eq!(kind(derive(unknown)), ErrorKind::NotFound);
    let expired = NewDerivedKey { expires_at: fixture.clock.now(), ..plain.clone() };
    assert_eq!(kind(derive(expired)), ErrorKind::InvalidInput);
    let long = |size| NewDerivedKey { payload: Some("x".repeat(size)), ..plain.clone() };
    assert_eq!(kind(derive(long(KEY_PAYLOAD_SIZE_BYTES_MAX + 1))), ErrorKind::InvalidInput);
    assert!(derive(long(KEY_PAYLOAD_SIZE_BYTES_MAX)).is_ok());
    let root = NewDerivedKey { kind: KeyKind::Key, ..plain };
    assert_eq!(kind(derive(root)), ErrorKind::InvalidInput, "it would be no derived key");
}

#[test]
fn a_person_has_a_name_that_fits_into_an_author() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let plain = fixture.new_key(KeyKind::Browser, HOUR);
    let sign_in = |from, text: &str| {
        fixture.engine.derive_key(from, &NewDerivedKey { name: name(text), ..plain.clone() })
    };
    let (key, owner) = (Derivation::Key(root.id), Derivation::Owner(fixture.workspace));
    let longest = "x".repeat(PERSON_NAME_SIZE_BYTES_MAX);
    for from in [key, owner] {
        for refused in ["Ada Lovelace", "josé", &format!("{longest}x"), &format!("a@{}", root.id)]
        {
            assert_eq!(kind(sign_in(from, refused)), ErrorKind::InvalidInput, "{refused}");
        }
        for allowed in ["ada", "ada@example.com", &longest] {
            let (browser, _) = sign_in(from, allowed).unwrap();
            assert!(matches!(browser.actor(), Actor::User(_)), "{allowed}");
        }
    }
    let (first, second) = (sign_in(key, "ada").unwrap().0, sign_in(key, "ada").unwrap().0);
    assert_eq!(first.actor(), second.actor());
    assert_ne!(first.actor(), sign_in(owner, "ada").unwrap().0.actor());
}

#[test]
fn a_link_signs_in_once() {
    let fixture = fixture();
    let owner = Derivation::Owner(fixture.workspace);
    let link = NewDerivedKey { role: Role::ReadOnly, ..fixture.new_key(KeyKind::Link, MINUTE) };
    let (link, secret) = fixture.engine.derive_key(owner, &link).unwrap();
    let sign_in = |role| {
        let browser = NewDerivedKey { role, ..fixture.new_key(KeyKind::Browser, DAY) };
        let issue = |_: &Key| Ok(vec![browser.clone()]);
        fixture.engine.exchange_key(secret.reveal(), KeyKind::Link, issue)
    };
    assert_eq!(kind(sign_in(Role::Admin)), ErrorKind::InvalidInput, "the link is read-only");
    assert!(fixture.key(link.id).unwrap().revoked_at.is_none(), "nothing has changed");
    let exchange = sign_in(Role::ReadOnly).unwrap().unwrap();
    assert_eq!(exchange.redeemed.id, link.id);
    let [(browser, cookie)] = exchange.issued.as_slice() else { panic!("one browser") };
    assert_eq!((browser.parent, browser.family), (None, Some(link.id)));
    // An owner who signs in with fewer rights acts with the key of that sign-in.
    assert_eq!(browser.actor().to_string(), format!("user_ada@{}", browser.id));
    assert!(sign_in(Role::ReadOnly).unwrap().is_none());
    assert!(fixture.admits(cookie), "who follows a link twice stays signed in");
}

#[test]
fn a_one_time_key_is_redeemed_while_it_is_valid_and_for_its_purpose() {
    let fixture = fixture();
    let (root, root_secret) = fixture.root(Role::Admin, None);
    let redeem = |secret: &KeySecret, kind| fixture.engine.redeem_key(secret.reveal(), kind);
    assert_eq!(kind(redeem(&root_secret, KeyKind::Key)), ErrorKind::InvalidInput);
    let (_, code) = fixture.derived(&root, KeyKind::Code);
    assert_eq!(redeem(&code, KeyKind::Link).unwrap(), None);
    assert_eq!(redeem(&root_secret, KeyKind::Code).unwrap(), None);
    let redeemed = redeem(&code, KeyKind::Code).unwrap().unwrap();
    assert_eq!(redeemed.revoked_at, Some(fixture.clock.now()));
    assert_eq!(redeem(&code, KeyKind::Code).unwrap(), None);
    let (_, late) = fixture.derived(&root, KeyKind::Code);
    fixture.clock.advance(HOUR);
    assert_eq!(redeem(&late, KeyKind::Code).unwrap(), None);
    // A clock that is set back makes it valid again, and it is still redeemed once.
    fixture.clock.set(redeemed.created_at);
    assert!(redeem(&late, KeyKind::Code).unwrap().is_some());
    assert_eq!(redeem(&late, KeyKind::Code).unwrap(), None);
    let (_, orphan) = fixture.derived(&root, KeyKind::Code);
    fixture.engine.revoke_key(root.id).unwrap();
    assert_eq!(redeem(&orphan, KeyKind::Code).unwrap(), None);
    assert_eq!(fixture.engine.redeem_key("", KeyKind::Code).unwrap(), None);
}

#[test]
fn a_refused_exchange_leaves_the_code_and_an_empty_one_uses_it_up() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (_, code) = fixture.derived(&root, KeyKind::Code);
    let refuse = |_: &Key| Err(Error::invalid("a wrong verifier"));
    let exchange = fixture.engine.exchange_key(code.reveal(), KeyKind::Code, refuse);
    assert_eq!(exchange.unwrap_err().to_string(), "a wrong verifier");
    assert!(fixture.engine.redeem_key(code.reveal(), KeyKind::Code).unwrap().is_some());
    assert!(fixture.tokens(&code, KeyKind::Code).is_none());
}

#[test]
fn a_refresh_token_that_is_presented_again_ends_its_family() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (code, code_secret) = fixture.derived(&root, KeyKind::Code);
    let (_, other_code) = fixture.derived(&root, KeyKind::Code);
    let first = fixture.tokens(&code_secret, KeyKind::Code).unwrap().issued;
    let other = fixture.tokens(&other_code, KeyKind::Code).unwrap().issued;
    let second = fixture.tokens(&first[1].1, KeyKind::Refresh).unwrap().issued;
    for (key, _) in first.iter().chain(&second) {
        assert_eq!((key.family, key.parent), (Some(code.id), Some(root.id)));
        assert_eq!(key.grant(), code.id);
    }
    assert!(fixture.admits(&first[0].1) && fixture.admits(&second[0].1));
    let lost = || {
        let none = quipu_core::engine::Position::default();
        fixture.engine.wait_beyond(none, Duration::ZERO).unwrap().credentials_lost
    };
    let before = lost();
    assert!(fixture.tokens(&first[1].1, KeyKind::Refresh).is_none(), "it was redeemed");
    assert!(!fixture.admits(&first[0].1) && !fixture.admits(&second[0].1));
    assert!(fixture.tokens(&second[1].1, KeyKind::Refresh).is_none());
    assert!(lost() > before, "open streams look again");
    assert!(fixture.admits(&other[0].1), "another client is not concerned");
    assert!(fixture.tokens(&other[1].1, KeyKind::Refresh).is_some());
}

#[test]
fn a_code_that_is_presented_again_ends_what_was_issued_for_it() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (_, code) = fixture.derived(&root, KeyKind::Code);
    let issued = fixture.tokens(&code, KeyKind::Code).unwrap().issued;
    assert!(fixture.tokens(&code, KeyKind::Code).is_none());
    assert!(!fixture.admits(&issued[0].1));
}

#[test]
fn a_family_can_be_revoked() {
    let fixture = fixture();
    let (root, root_secret) = fixture.root(Role::Admin, None);
    let (_, code) = fixture.derived(&root, KeyKind::Code);
    let issued = fixture.tokens(&code, KeyKind::Code).unwrap().issued;
    let revoke = |id| fixture.engine.revoke_family(id).unwrap();
    assert_eq!((revoke(issued[0].0.id), revoke(issued[0].0.id)), (2, 0));
    assert!(!fixture.admits(&issued[0].1) && fixture.admits(&root_secret));
    assert_eq!(revoke(KeyId::from_bits(1)), 0);
}

/// Whoever signs in as the owner can consent to a client, whose tokens are then no ordinary keys.
#[test]
fn tokens_of_the_owner_have_no_parent_and_are_derived() {
    let fixture = fixture();
    let owner = Derivation::Owner(fixture.workspace);
    let browser = fixture.new_key(KeyKind::Browser, HOUR);
    let (browser, cookie) = fixture.engine.derive_key(owner, &browser).unwrap();
    let (_, code) = fixture.derived(&browser, KeyKind::Code);
    fixture.engine.revoke_key(browser.id).unwrap();
    assert!(!fixture.admits(&cookie));
    let issued = fixture.tokens(&code, KeyKind::Code).unwrap().issued;
    let (token, secret) = &issued[0];
    assert!(token.is_derived() && token.parent.is_none() && fixture.admits(secret));
    let first = NewKey {
        name: name("first"),
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    assert!(fixture.engine.create_first_key(fixture.workspace, &first).unwrap().is_some());
}

#[test]
fn the_least_recently_used_key_makes_room() {
    let fixture = fixture();
    let (root, root_secret) = fixture.root(Role::Admin, None);
    let mut cookies = Vec::new();
    for _ in 0..DERIVED_KEYS_MAX {
        fixture.clock.advance(Duration::from_secs(1));
        cookies.push(fixture.derived(&root, KeyKind::Browser).1);
    }
    fixture.clock.advance(MINUTE);
    assert!(cookies.iter().all(|cookie| fixture.admits(cookie)));
    fixture.engine.write_uses().unwrap();
    // The first was used a minute after all others.
    fixture.clock.advance(MINUTE);
    assert!(fixture.admits(&cookies[0]));
    fixture.engine.write_uses().unwrap();
    let (_, links) = fixture.derived(&root, KeyKind::Link);
    let (_, newest) = fixture.derived(&root, KeyKind::Browser);
    let admitted: Vec<_> = cookies.iter().map(|cookie| fixture.admits(cookie)).collect();
    assert_eq!(admitted.iter().filter(|is_admitted| !**is_admitted).count(), 1);
    assert!(admitted[0] && !admitted[1]);
    assert!(fixture.admits(&newest) && fixture.admits(&root_secret));
    assert!(fixture.engine.redeem_key(links.reveal(), KeyKind::Link).unwrap().is_some());
}

#[test]
fn the_key_of_a_browser_can_be_extended() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (browser, cookie) = fixture.derived(&root, KeyKind::Browser);
    let (token, _) = fixture.derived(&root, KeyKind::Key);
    let later = fixture.clock.now().plus(DAY);
    let extend = |id, until| fixture.engine.extend_key(id, until).unwrap();
    assert_eq!(extend(browser.id, later).unwrap().expires_at, Some(later));
    let earlier = extend(browser.id, fixture.clock.now()).unwrap();
    assert_eq!(earlier.expires_at, Some(later), "it is never moved to an earlier moment");
    fixture.clock.advance(HOUR * 2);
    assert!(fixture.admits(&cookie));
    assert_eq!(extend(token.id, later), None);
    assert_eq!(extend(root.id, later), None);
    fixture.engine.revoke_key(browser.id).unwrap();
    assert_eq!(extend(browser.id, later.plus(DAY)), None);
    assert_eq!(fixture.key(browser.id).unwrap().expires_at, Some(later));
}

#[test]
fn uses_of_keys_are_recorded_at_most_once_a_minute() {
    let fixture = fixture();
    let (root, secret) = fixture.root(Role::Admin, None);
    let used_at = || fixture.key(root.id).unwrap().used_at;
    let first = fixture.clock.now();
    assert!(fixture.admits(&secret));
    assert_eq!(used_at(), None, "admitting writes nothing");
    assert!(fixture.engine.has_unwritten_uses());
    assert_eq!(fixture.engine.write_uses().unwrap(), 1);
    assert_eq!(used_at(), Some(first));
    fixture.clock.advance(Duration::from_secs(59));
    assert!(fixture.admits(&secret));
    assert!(!fixture.engine.has_unwritten_uses());
    fixture.engine.note_key_use(root.id);
    fixture.engine.note_key_use(KeyId::from_bits(1));
    assert_eq!(fixture.engine.write_uses().unwrap(), 0);
    fixture.clock.advance(Duration::from_secs(1));
    assert!(fixture.admits(&secret));
    // A key that is revoked before the use is written stays revoked.
    fixture.engine.revoke_key(root.id).unwrap();
    assert_eq!(fixture.engine.write_uses().unwrap(), 1);
    assert_eq!(used_at(), Some(fixture.clock.now()));
    assert!(!fixture.admits(&secret));
}

#[test]
fn a_use_in_the_future_is_corrected() {
    let fixture = fixture();
    let (root, secret) = fixture.root(Role::Admin, None);
    let now = fixture.clock.now();
    fixture.clock.advance(DAY);
    assert!(fixture.admits(&secret));
    fixture.engine.write_uses().unwrap();
    fixture.clock.set(now);
    assert!(fixture.admits(&secret));
    fixture.engine.write_uses().unwrap();
    assert_eq!(fixture.key(root.id).unwrap().used_at, Some(now));
}

#[test]
fn a_key_stands_for_everybody_who_came_by_it() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (browser, _) = fixture.derived(&root, KeyKind::Browser);
    fixture.derived(&root, KeyKind::Browser);
    let (_, code) = fixture.derived(&root, KeyKind::Code);
    let (token, _) = fixture.tokens(&code, KeyKind::Code).unwrap().issued.remove(0);
    let session = NewSession { key: Some(token.id), ..untitled() };
    let (session, _) = fixture.engine.create_session(fixture.workspace, &session).unwrap();
    let target = (&path("/a"), &content("by the token"));
    let by_token = Actor::ApiKey(token.id);
    let none = quipu_core::engine::Precondition::None;
    fixture.engine.put(&by_token, fixture.store, target, none).unwrap();
    let expected = |actors: &[Actor]| {
        for actor in
            [Actor::ApiKey(root.id), by_token.clone(), browser.actor(), Actor::Session(session.id)]
        {
            assert_eq!(actors.iter().filter(|it| **it == actor).count(), 1, "{actor}");
        }
    };
    expected(&fixture.engine.actors_of_key(root.id).unwrap());
    // Long after the token has ended, what it wrote is still found by the key that it came from.
    fixture.clock.advance(DAY * 3);
    assert!(fixture.engine.prune().unwrap().keys_count > 0);
    expected(&fixture.engine.actors_of_key(root.id).unwrap());
    let of_browser = fixture.engine.actors_of_key(browser.id).unwrap();
    assert_eq!(of_browser, [Actor::ApiKey(browser.id), browser.actor()]);
}

/// Two clients of one key would otherwise have the limits of two.
#[test]
fn the_session_of_a_derived_key_is_given_with_the_key_that_pays() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (token, _) = fixture.derived(&root, KeyKind::Key);
    let session = NewSession { key: Some(token.id), ..untitled() };
    let (_, secret) = fixture.engine.create_session(fixture.workspace, &session).unwrap();
    match fixture.engine.principal(secret.unwrap().reveal()).unwrap() {
        Some(Principal::Session(session)) => assert_eq!(session.key, Some(root.id)),
        other => panic!("a session, not {other:?}"),
    }
}

#[test]
fn ended_tokens_are_kept_for_a_day_and_browsers_longer() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    for kind in KeyKind::ALL {
        fixture.derived(&root, *kind);
    }
    let kinds = || {
        let keys = fixture.engine.keys(fixture.workspace).unwrap();
        let mut kinds: Vec<_> = keys.into_iter().map(|key| key.kind).collect();
        kinds.sort_unstable();
        kinds
    };
    fixture.clock.advance(HOUR + DAY);
    assert_eq!(fixture.engine.prune().unwrap().keys_count, 0);
    fixture.clock.advance(Duration::from_micros(1));
    assert_eq!(fixture.engine.prune().unwrap().keys_count, 4);
    assert_eq!(kinds(), [KeyKind::Key, KeyKind::Browser]);
    fixture.clock.advance(DAY * 90);
    assert_eq!(fixture.engine.prune().unwrap().keys_count, 1);
    assert_eq!(kinds(), [KeyKind::Key]);
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn a_parent_that_is_no_key_is_reported() {
    let fixture = fixture();
    let (root, _) = fixture.root(Role::Admin, None);
    let (browser, _) = fixture.derived(&root, KeyKind::Browser);
    assert_eq!(fixture.engine.check().unwrap().problems, []);
    let (grandchild, _) = fixture.derived(&root, KeyKind::Key);
    let broken = Key { parent: Some(browser.id), ..grandchild };
    fixture.put_row(&broken);
    assert_eq!(fixture.engine.check().unwrap().problems.len(), 1);
}
