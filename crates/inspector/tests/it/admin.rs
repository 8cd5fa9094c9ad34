//! The administration.

use std::time::Duration;

use quipu_core::engine::{Derivation, NewDerivedKey};
use quipu_core::model::{KeyKind, Name, Role, View};
use quipu_inspector::{Reply, Trouble};

use super::support::{HOSTILE, Site, assert_denied, led_to};

const SHOWN: [&str; 6] = [
    "/ui/admin",
    "/ui/admin/keys",
    "/ui/admin/webhooks",
    "/ui/admin/retention",
    "/ui/admin/credentials",
    "/ui/admin/upkeep",
];
const CHANGING: [&str; 6] = [
    "/ui/admin/keys",
    "/ui/admin/webhooks",
    "/ui/admin/upkeep/check",
    "/ui/admin/upkeep/prune",
    "/ui/admin/upkeep/backup",
    "/ui/admin/upkeep/restore",
];

#[test]
fn only_administrators_of_everything_get_in() {
    let site = Site::new();
    let store = site.store("x");
    let visitors = [
        site.visitor(Role::ReadOnly, None),
        site.visitor(Role::ReadWrite, None),
        site.visitor(Role::Admin, Some(&[store])),
    ];
    for visitor in &visitors {
        for address in SHOWN {
            assert_denied(&site.get(visitor, address));
        }
        for address in CHANGING {
            assert_denied(&site.post(visitor, address, &[("name", "x"), ("role", "admin")]));
        }
        let key = visitor.key().unwrap();
        assert_denied(&site.get(visitor, &format!("/ui/admin/keys/{key}/revoke")));
        assert_denied(&site.post(visitor, &format!("/ui/admin/keys/{key}/revoke"), &[]));
    }
    for address in SHOWN {
        site.get(&site.admin(), address).unwrap();
    }
    assert!(site.host.tested.lock().unwrap().is_empty());
    assert!(site.host.backups.lock().unwrap().is_empty());
}

#[test]
fn what_concerns_the_whole_server_is_for_its_first_workspace() {
    let site = Site::new();
    let store = site.store("ours");
    site.engine.delete_store(store).unwrap();
    let other = site.engine.create_workspace(&Name::new("other").unwrap()).unwrap();
    let stranger = site.visitor_of(other.id, Role::Admin, None);
    for address in ["/ui/admin/webhooks", "/ui/admin/upkeep"] {
        assert_denied(&site.get(&stranger, address));
    }
    for address in &CHANGING[1..] {
        assert_denied(&site.post(&stranger, address, &[("place", "0")]));
    }
    let page = site.get(&stranger, "/ui/admin").unwrap();
    assert!(!page.contains("Upkeep") && !page.contains("Storage"), "{page}");
    let key = site.admin().key().unwrap();
    let revoked = site.post(&stranger, &format!("/ui/admin/keys/{key}/revoke"), &[]);
    assert!(matches!(revoked, Err(Trouble::NotFound(_))), "{revoked:?}");
    assert!(!site.get(&stranger, "/ui/admin/keys").unwrap().contains(&key.to_string()));
}

#[test]
fn a_new_key_is_shown_once_and_works() {
    let site = Site::new();
    let store = site.store("x");
    let admin = site.admin();
    let store = store.to_string();
    let fields = [("name", HOSTILE), ("role", "read_only"), ("store", &store), ("expires", "7d")];
    let reply = site.post(&admin, "/ui/admin/keys", &fields).unwrap();
    let Reply::Page(page) = reply else { panic!("{reply:?}") };
    let page = page.into_string();
    let secret = page.split("sk-quipu-").nth(1).unwrap().split('<').next().unwrap();
    let secret = format!("sk-quipu-{secret}");
    assert!(site.engine.principal(&secret).unwrap().is_some());
    let list = site.get(&admin, "/ui/admin/keys").unwrap();
    assert!(list.contains("read_only") && list.contains("valid until"), "{list}");
    assert!(!list.contains("sk-quipu-"), "{list}");
    for fields in [
        [("name", ""), ("role", "admin")],
        [("name", "x"), ("role", "king")],
        [("name", "x"), ("role", "")],
    ] {
        let reply = site.post(&admin, "/ui/admin/keys", &fields);
        assert!(matches!(reply, Err(Trouble::Invalid(_))), "{reply:?}");
    }
}

#[test]
fn revoking_a_key_is_asked_about_first() {
    let site = Site::new();
    let (admin, reader) = (site.admin(), site.visitor(Role::ReadOnly, None));
    let address = |caller: &quipu_service::caller::Caller| {
        format!("/ui/admin/keys/{}/revoke", caller.key().unwrap())
    };
    let page = site.get(&admin, &address(&admin)).unwrap();
    assert!(page.contains("you will be signed out") && page.contains("last key"), "{page}");
    let page = site.get(&admin, &address(&reader)).unwrap();
    assert!(!page.contains("signed out") && !page.contains("last key"), "{page}");
    assert_eq!(led_to(site.post(&admin, &address(&reader), &[])), "/ui/admin/keys");
    let list = site.get(&admin, "/ui/admin/keys").unwrap();
    assert!(list.contains("revoked"), "{list}");
    let unknown = site.get(&admin, "/ui/admin/keys/apikey_nonsense/revoke");
    assert!(matches!(unknown, Err(Trouble::NotFound(_))), "{unknown:?}");
}

#[test]
fn webhooks_show_their_deliveries_and_can_be_tested() {
    let site = Site::new();
    let admin = site.admin();
    let page = site.get(&admin, "/ui/admin/webhooks").unwrap();
    assert!(page.contains("https://example.com/hook") && page.contains("&lt;script&gt;"), "{page}");
    let to = led_to(site.post(&admin, "/ui/admin/webhooks", &[("place", "0")]));
    assert_eq!(to, "/ui/admin/webhooks");
    assert_eq!(*site.host.tested.lock().unwrap(), [0]);
    assert!(site.post(&admin, "/ui/admin/webhooks", &[("place", "x")]).is_err());
}

#[test]
fn credentials_are_found_but_never_shown() {
    let site = Site::new();
    let store = site.store("x");
    let token = ["ghp", "_", "x9Kq2LmZ7RtYw4BvNc8Hs1JdFg6PuEa3To5i"].concat();
    site.put(store, "/keys.md", &format!("the token\n{token}\n"));
    for number in 0..300 {
        site.put(store, &format!("/z{number:03}.md"), "nothing");
    }
    let admin = site.admin();
    let first = site.get(&admin, &format!("/ui/admin/credentials?store={store}")).unwrap();
    assert!(first.contains("/keys.md") && first.contains("in line 2"), "{first}");
    assert!(!first.contains(&token), "{first}");
    assert!(first.contains("250 memories") && first.contains("after=%2Fz248.md"), "{first}");
    let rest = format!("/ui/admin/credentials?store={store}&after=/z248.md");
    let rest = site.get(&admin, &rest).unwrap();
    assert!(
        rest.contains("51 memories") && rest.contains("The whole store is screened."),
        "{rest}"
    );
}

#[test]
fn retention_counts_what_is_old_enough() {
    let site = Site::new();
    let store = site.store("x");
    for text in ["a", "b", "c"] {
        site.put(store, "/a.md", text);
    }
    site.clock.advance(Duration::from_hours(24 * 31));
    site.put(store, "/a.md", "d");
    let page = site.get(&site.admin(), "/ui/admin/retention").unwrap();
    assert!(page.contains("<td>3</td><td>3 B</td>"), "{page}");
    assert!(page.contains("kept for 30 days"), "{page}");
}

#[test]
fn upkeep_checks_prunes_backs_up_and_restores() {
    let site = Site::new();
    let admin = site.admin();
    let store = site.store("tea");
    let memory = site.put(store, "/a.md", "a");
    let Reply::Page(page) = site.post(&admin, "/ui/admin/upkeep/check", &[]).unwrap() else {
        panic!("a check answers with a page")
    };
    assert!(page.into_string().contains("Everything is in order."));
    let to = led_to(site.post(&admin, "/ui/admin/upkeep/prune", &[]));
    assert!(site.get(&admin, &to).unwrap().contains("Pruned: 0 versions"));
    let to = led_to(site.post(&admin, "/ui/admin/upkeep/backup", &[]));
    assert!(site.get(&admin, &to).unwrap().contains("quipu-1.backup"));
    site.engine.delete_store(store).unwrap();
    assert!(site.get(&admin, "/ui/admin/upkeep").unwrap().contains("tea"));
    let fields = [("store", store.to_string()), ("name", "coffee".to_owned())];
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    led_to(site.post(&admin, "/ui/admin/upkeep/restore", &fields));
    assert_eq!(site.engine.store(store).unwrap().name.as_str(), "coffee");
    assert!(site.engine.memory(store, memory.id, View::Basic).is_ok());
}

#[test]
fn a_clock_that_jumped_prunes_nothing() {
    let site = Site::new();
    let store = site.store("x");
    site.put(store, "/a.md", "a");
    site.put(store, "/a.md", "b");
    site.clock.advance(Duration::from_hours(24 * 400));
    let reply = site.post(&site.admin(), "/ui/admin/upkeep/prune", &[]);
    let Err(Trouble::Invalid(message)) = &reply else { panic!("{reply:?}") };
    assert!(message.contains("--trust-clock"), "{message}");
}

#[test]
fn sign_ins_are_listed_with_the_key_that_they_come_from() {
    let site = Site::new();
    let admin = site.admin();
    let new = NewDerivedKey {
        kind: KeyKind::Browser,
        name: Name::new("grace").unwrap(),
        role: Role::ReadOnly,
        stores: None,
        expires_at: site.engine.now().plus(Duration::from_hours(1)),
        payload: None,
    };
    let from = Derivation::Key(admin.key().unwrap());
    site.engine.derive_key(from, &new).unwrap();
    let link = NewDerivedKey { kind: KeyKind::Link, name: Name::new("a-link").unwrap(), ..new };
    site.engine.derive_key(Derivation::Owner(site.workspace), &link).unwrap();
    let page = site.get(&admin, "/ui/admin/keys").unwrap();
    assert!(page.contains("grace") && page.contains("sign-in, of admin key"), "{page}");
    assert!(!page.contains("a-link"), "one-time keys open no page: {page}");
}
