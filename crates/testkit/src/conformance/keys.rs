//! Derived keys: how they are found, redeemed and pruned.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use quipu_core::backend::{Backend, KeyPruneRule};
use quipu_core::engine::{Derivation, NewDerivedKey};
use quipu_core::model::{Actor, Forwarding, Key, KeyId, KeyKind, Name, Redaction, Role, Session};
use quipu_core::settings::Limits;
use quipu_core::{Clock as _, Engine};

use super::{Fixture, Rows};
use crate::ManualClock;

fn ids(keys: &[Key]) -> Vec<KeyId> {
    keys.iter().map(|key| key.id).collect()
}

fn derived(number: i64, kind: KeyKind, parent: Option<KeyId>) -> Key {
    Key { kind, parent, ..Rows::key(number, None) }
}

/// A key is read back with everything that it was put with, and replaced by putting it again.
pub fn derived_keys_are_read_back_as_they_were_put(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let root = Key { forwarding: Forwarding::Allowed, ..Rows::key(1, None) };
    let mut keys = vec![root.clone()];
    for (number, kind) in (2..).zip(KeyKind::ALL) {
        keys.push(Key {
            family: Some(Rows::key(99, None).id),
            stores: Some(vec![store.id]),
            payload: Some(format!("{{\"number\": {number}}}")),
            used_at: Some(Rows::at(number + 10)),
            ..derived(number, *kind, Some(root.id))
        });
    }
    fixture.write(|writer| keys.iter().try_for_each(|key| writer.put_key(key)));
    for key in &mut keys {
        key.expires_at = Some(Rows::at(2000));
        key.used_at = Some(Rows::at(1000));
        key.payload = None;
    }
    fixture.write(|writer| keys.iter().skip(3).try_for_each(|key| writer.put_key(key)));
    fixture.read(|reader| {
        let found = reader.keys(root.workspace)?;
        assert_eq!(
            found.iter().skip(3).collect::<Vec<_>>(),
            keys.iter().skip(3).collect::<Vec<_>>()
        );
        assert_eq!(found.get(1).and_then(|key| key.payload.as_deref()), Some("{\"number\": 2}"));
        for key in found {
            assert_eq!(reader.key(key.id)?.as_ref(), Some(&key));
            assert_eq!(reader.key_with_secret(&key.secret)?, Some(key));
        }
        Ok(())
    });
}

/// "Returns the derived keys of a workspace with this parent, the oldest first; with none, those that the
/// owner of the data made."
pub fn derived_keys_are_found_by_their_parent(fixture: &Fixture) {
    fixture.with_stores(&[]);
    let (first, second) = (Rows::key(1, None), Rows::key(2, None));
    let foreign = Key { workspace: Rows::workspace(2).id, ..derived(3, KeyKind::Link, None) };
    let token = Key { family: Some(first.id), ..derived(9, KeyKind::Key, None) };
    let keys = [
        derived(8, KeyKind::Browser, Some(first.id)),
        derived(4, KeyKind::Key, Some(first.id)),
        derived(5, KeyKind::Refresh, Some(second.id)),
        derived(6, KeyKind::Link, None),
        derived(7, KeyKind::Browser, None),
        token.clone(),
        foreign.clone(),
        first.clone(),
        second.clone(),
    ];
    fixture.write(|writer| {
        writer.put_workspace(&Rows::workspace(2))?;
        // A backend may insist that the parents are there first.
        keys.iter().rev().try_for_each(|key| writer.put_key(key))
    });
    let number = |number| Rows::key(number, None).id;
    fixture.read(|reader| {
        let of = |parent| reader.derived_keys(first.workspace, parent).map(|keys| ids(&keys));
        assert_eq!(of(Some(first.id))?, [number(4), number(8)]);
        assert_eq!(of(Some(second.id))?, [number(5)]);
        assert_eq!(of(Some(token.id))?, []);
        assert_eq!(of(None)?, [number(6), number(7), number(9)]);
        assert_eq!(ids(&reader.derived_keys(foreign.workspace, None)?), [foreign.id]);
        Ok(())
    });
}

/// "The same of the keys that were derived from it … that the derived key was removed changes nothing."
pub fn sessions_of_a_derived_key_belong_to_its_parent(fixture: &Fixture) {
    fixture.with_stores(&[]);
    let root = Rows::key(1, None);
    let token = derived(2, KeyKind::Key, Some(root.id));
    let session = Session { key: Some(token.id), ..Rows::session(3, &[]) };
    let rule = KeyPruneRule { before: Rows::at(5000), browsers_before: Rows::at(5000) };
    fixture.write(|writer| {
        writer.put_key(&root)?;
        writer.put_key(&token)?;
        writer.put_session(&session)?;
        writer.prune_keys(&rule, 10).map(drop)
    });
    fixture.read(|reader| {
        assert_eq!(reader.key(token.id)?, None);
        assert_eq!(reader.sessions_of_key(root.id)?, [session.id]);
        assert_eq!(reader.sessions_of_key(token.id)?, [session.id]);
        Ok(())
    });
}

/// "Removes at most `limit` derived keys that the rule gives up … A key that a version names stays …"
pub fn ended_derived_keys_are_pruned(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let root = Key { revoked_at: Some(Rows::at(1)), ..Rows::key(1, None) };
    let named = |name: &str, key: Key| Key { name: Name::new(name).expect("valid"), ..key };
    let ended = |number, kind, at| Key {
        revoked_at: Some(Rows::at(at)),
        ..derived(number, kind, Some(root.id))
    };
    let expired = |number, kind, at| Key {
        expires_at: Some(Rows::at(at)),
        ..derived(number, kind, Some(root.id))
    };
    let author = ended(10, KeyKind::Key, 50);
    let older = named("ada", ended(11, KeyKind::Browser, 20));
    let newest = named("ada", ended(12, KeyKind::Browser, 20));
    let redactor = named("bob", expired(13, KeyKind::Browser, 20));
    let kept = [
        root.clone(),
        ended(2, KeyKind::Link, 100),
        expired(3, KeyKind::Key, 100),
        ended(4, KeyKind::Browser, 30),
        author.clone(),
        newest.clone(),
        redactor.clone(),
    ];
    let given_up = [
        older,
        expired(21, KeyKind::Link, 99),
        ended(22, KeyKind::Code, 99),
        Key { stores: Some(vec![store.id]), ..expired(23, KeyKind::Refresh, 99) },
        ended(24, KeyKind::Key, 99),
        named("eve", ended(25, KeyKind::Browser, 29)),
        Key { family: Some(root.id), parent: None, ..ended(26, KeyKind::Key, 99) },
        Key { parent: None, ..ended(27, KeyKind::Link, 99) },
    ];
    let memory = Rows::memory(&store, 1, "/a", "text");
    let other = Rows::memory(&store, 2, "/b", "text");
    let mut by_token = Rows::commit(1, None, Some(&memory));
    by_token.version.actor = Actor::ApiKey(author.id);
    let mut by_person = Rows::commit(2, None, Some(&other));
    by_person.version.actor = newest.actor();
    let redaction = Redaction { at: Rows::at(5), by: redactor.actor() };
    fixture.write(|writer| {
        kept.iter().chain(&given_up).try_for_each(|key| writer.put_key(key))?;
        writer.commit(&by_token)?;
        writer.commit(&by_person)?;
        writer.redact(store.id, &[(by_person.version.id, redaction.clone())])
    });
    let rule = KeyPruneRule { before: Rows::at(100), browsers_before: Rows::at(30) };
    let mut counts = [0; 3];
    for count in &mut counts {
        fixture.write(|writer| {
            *count = writer.prune_keys(&rule, 6)?;
            Ok(())
        });
    }
    assert_eq!(counts, [6, 2, 0]);
    let left = fixture.read(|reader| reader.keys(root.workspace));
    assert_eq!(ids(&left), ids(&kept));
    assert_eq!(fixture.backend.verify().expect("it can be verified"), Vec::<String>::new());
}

/// Writes do not overlap, so of several that redeem the same key exactly one gets it.
pub fn a_one_time_key_is_redeemed_once(fixture: &Fixture) {
    const REDEEMERS: usize = 6;
    let clock = Arc::new(ManualClock::default());
    let engine = |backend: Arc<dyn Backend>| {
        Engine::new(backend, Arc::clone(&clock) as _, Limits::default())
    };
    let owner = engine(Arc::clone(&fixture.backend));
    let workspace = owner.default_workspace().expect("a workspace").id;
    let new = |kind| NewDerivedKey {
        kind,
        name: Name::new("ada").expect("a valid name"),
        role: Role::Admin,
        stores: None,
        expires_at: clock.now().plus(Duration::from_mins(1)),
        payload: None,
    };
    for _ in 0..5 {
        let link = owner.derive_key(Derivation::Owner(workspace), &new(KeyKind::Link));
        let link = link.expect("a link").1;
        let barrier = Barrier::new(REDEEMERS);
        let redeem = |engine: Engine| {
            barrier.wait();
            let issue = |_: &Key| Ok(vec![new(KeyKind::Browser)]);
            engine.exchange_key(link.reveal(), KeyKind::Link, issue).expect("it is answered")
        };
        let won = thread::scope(|scope| {
            let redeemers: Vec<_> = (0..REDEEMERS)
                .map(|_| engine(fixture.again()))
                .map(|engine| scope.spawn(|| redeem(engine)))
                .collect();
            let ended = redeemers.into_iter().map(|it| it.join().expect("it does not panic"));
            ended.flatten().collect::<Vec<_>>()
        });
        assert_eq!(won.len(), 1);
        let issued = won.iter().flat_map(|exchange| &exchange.issued);
        for (browser, secret) in issued {
            assert!(owner.principal(secret.reveal()).expect("it is read").is_some());
            assert_eq!(browser.parent, None);
        }
    }
    let browsers = fixture.read(|reader| reader.derived_keys(workspace, None));
    assert_eq!(browsers.iter().filter(|key| key.kind == KeyKind::Browser).count(), 5);
}
