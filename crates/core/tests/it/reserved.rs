//! Stores that are reserved for people: every way to change one, by every kind of actor.

use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::engine::{
    Approval, ChangeSelection, Completeness, Derivation, Goal, Heads, MemoryUpdate, NewDerivedKey,
    NewKey, Pattern, Precondition, Restoration, Scope, Selection, Survivor, Terms,
};
use quipu_core::model::{
    Actor, Forwarding, Id as _, Key, KeyId, KeyKind, Memory, Reason, Role, SessionId, StoreId,
    StorePolicy, Timestamp, VersionId, View, Writers,
};
use quipu_core::{Clock as _, Error};

use crate::support::{Fixture, actor as owner, content, fixture, name, path};

/// A reserved store with two rules, of which one was changed.
struct Reserved {
    fixture: Fixture,
    store: StoreId,
    /// The rule with two versions.
    rule: Memory,
    /// The other rule.
    other: Memory,
    /// The version before the newest one of the rule.
    old: VersionId,
    /// When the rule had that version.
    then: Timestamp,
}

impl Reserved {
    fn new() -> Self {
        let fixture = fixture();
        let policy = StorePolicy { writers: Writers::People, ..StorePolicy::default() };
        let store = fixture.new_store("rules", policy).id;
        let engine = &fixture.engine;
        let made = |at: &str, text: &str| {
            engine.create(&owner(), store, &path(at), &content(text)).unwrap().memory
        };
        let (first, other) = (made("/r.md", "one"), made("/o.md", "other"));
        let then = engine.read(|reader| Ok(reader.newest_change()?.1)).unwrap();
        fixture.clock.advance(Duration::from_secs(1));
        let target = (&path("/r.md"), &content("two"));
        let rule = engine.put(&owner(), store, target, Precondition::None).unwrap().memory;
        Self { old: first.version, fixture, store, rule, other, then }
    }

    fn key(&self, role: Role, stores: Option<Vec<StoreId>>) -> Key {
        let new = NewKey {
            name: name("ci"),
            role,
            stores,
            expires_at: None,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        self.fixture.engine.create_key(self.fixture.workspace, &new).unwrap().0
    }

    fn derived(&self, from: Derivation, kind: KeyKind, role: Role) -> Key {
        let new = NewDerivedKey {
            kind,
            name: name("ada"),
            role,
            stores: None,
            expires_at: self.fixture.clock.now().plus(Duration::from_hours(1)),
            payload: None,
        };
        self.fixture.engine.derive_key(from, &new).unwrap().0
    }

    /// Returns everything that can be read of the store.
    fn seen(&self) -> String {
        let query = quipu_core::backend::VersionQuery {
            filter: quipu_core::backend::VersionFilter::default(),
            before: None,
            limit: 100,
            view: View::Full,
        };
        let versions = self.fixture.engine.versions(self.store, &query).unwrap().items;
        let heads = [self.rule.id, self.other.id]
            .map(|id| self.fixture.engine.memory(self.store, id, View::Full).ok());
        format!("{versions:?} {heads:?}")
    }
}

/// A kind of actor, and how to be one.
type Who = (&'static str, fn(&Reserved) -> Actor);

/// Whose changes count as those of people.
const PEOPLE: [Who; 6] = [
    ("the owner of the data", |_| owner()),
    ("a key of an administrator", |it| it.key(Role::Admin, None).actor()),
    ("… that is limited to the store", |it| it.key(Role::Admin, Some(vec![it.store])).actor()),
    ("a browser of an administrator's key", |it| {
        let key = it.key(Role::Admin, None);
        it.derived(Derivation::Key(key.id), KeyKind::Browser, Role::Admin).actor()
    }),
    ("a browser of the owner", |it| {
        let owner = Derivation::Owner(it.fixture.workspace);
        it.derived(owner, KeyKind::Browser, Role::Admin).actor()
    }),
    ("what expires by the policy of the store", |_| Actor::expiry()),
];

/// Whose changes do not.
const OTHERS: [Who; 8] = [
    ("a session", |_| Actor::Session(SessionId::from_bits(1))),
    ("an unknown key", |_| Actor::ApiKey(KeyId::from_bits(2))),
    ("a key that writes", |it| it.key(Role::ReadWrite, None).actor()),
    ("… that is limited to the store", |it| {
        it.key(Role::ReadWrite, Some(vec![it.store])).actor()
    }),
    ("a browser of a key that writes", |it| {
        let key = it.key(Role::ReadWrite, None);
        it.derived(Derivation::Key(key.id), KeyKind::Browser, Role::ReadWrite).actor()
    }),
    ("a token of an administrator's browser", |it| {
        let key = it.key(Role::Admin, None);
        let browser = it.derived(Derivation::Key(key.id), KeyKind::Browser, Role::Admin);
        it.derived(Derivation::Key(browser.id), KeyKind::Key, Role::ReadWrite).actor()
    }),
    ("a browser that the owner has given fewer rights", |it| {
        let owner = Derivation::Owner(it.fixture.workspace);
        it.derived(owner, KeyKind::Browser, Role::ReadWrite).actor()
    }),
    ("a person whose key is gone", |_| {
        format!("user_ada@{}", KeyId::from_bits(3)).parse().unwrap()
    }),
];

/// A way to change the store.
type Way = (&'static str, fn(&Reserved, &Actor) -> Result<(), Error>);

fn reason() -> Approval {
    Approval { expect: None, reason: Reason::new("because").unwrap() }
}

fn renamed() -> MemoryUpdate {
    MemoryUpdate { path: Some(path("/s.md")), ..MemoryUpdate::default() }
}

fn written(text: &str) -> MemoryUpdate {
    MemoryUpdate { content: Some(content(text)), ..MemoryUpdate::default() }
}

fn forget(it: &Reserved, by: &Actor, text: &str) -> Result<(), Error> {
    let pattern = Some(Pattern::text(text).unwrap());
    let selection = Selection { pattern, ..Selection::default() };
    let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
    let scope = Scope::all(it.fixture.workspace);
    it.fixture.engine.redact_selected(by, &scope, &selection, &terms).map(drop)
}

const WAYS: [Way; 17] = [
    ("create", |it, by| {
        it.fixture.engine.create(by, it.store, &path("/new.md"), &content("x")).map(drop)
    }),
    ("put", |it, by| {
        let target = (&path("/r.md"), &content("x"));
        it.fixture.engine.put(by, it.store, target, Precondition::None).map(drop)
    }),
    ("update the text", |it, by| {
        it.fixture.engine.update(by, it.store, it.rule.id, &written("x")).map(drop)
    }),
    ("update the path", |it, by| {
        it.fixture.engine.update(by, it.store, it.rule.id, &renamed()).map(drop)
    }),
    ("edit", |it, by| {
        let work = |_: &Memory, old: &str| Ok::<_, Error>(format!("{old}x"));
        it.fixture.engine.edit(by, it.store, &path("/r.md"), work).map(drop)
    }),
    ("rename", |it, by| {
        it.fixture.engine.rename(by, it.store, &path("/r.md"), &path("/s.md")).map(drop)
    }),
    ("delete", |it, by| {
        it.fixture.engine.delete(by, it.store, it.rule.id, Precondition::None).map(drop)
    }),
    ("delete by path", |it, by| {
        it.fixture.engine.delete_at(by, it.store, &path("/r.md")).map(drop)
    }),
    ("replace", |it, by| {
        let ids = (it.other.id, it.rule.id);
        it.fixture.engine.replace(by, it.store, ids, Survivor::Moved).map(drop)
    }),
    ("restore", |it, by| it.fixture.engine.restore(by, it.store, it.old, None).map(drop)),
    ("restore what was seen", |it, by| {
        let ids = (it.old, it.rule.version);
        it.fixture.engine.restore_seen(by, it.store, ids, None).map(drop)
    }),
    ("undo", |it, by| it.fixture.engine.undo(by, it.store, it.rule.id, None).map(drop)),
    ("restore a tree", |it, by| {
        let completeness = Completeness::Required;
        let goal = Goal::Restore(Restoration { at: it.then, path: None, completeness });
        it.fixture.engine.carry_out(by, it.store, &goal, &reason()).map(drop)
    }),
    ("revert", |it, by| {
        let actors = vec![owner()];
        let goal = Goal::Revert(ChangeSelection { actors, ..ChangeSelection::default() });
        it.fixture.engine.carry_out(by, it.store, &goal, &reason()).map(drop)
    }),
    ("redact a version", |it, by| it.fixture.engine.redact(by, it.store, &[it.old]).map(drop)),
    ("redact what is live", |it, by| forget(it, by, "two")),
    ("redact what is past", |it, by| forget(it, by, "one")),
];

#[test]
fn people_can_change_it_in_every_way() {
    for (who, actor) in PEOPLE {
        for (way, change) in WAYS {
            let reserved = Reserved::new();
            let (actor, before) = (actor(&reserved), reserved.seen());
            change(&reserved, &actor).unwrap_or_else(|error| panic!("{who}, {way}: {error}"));
            assert_ne!(reserved.seen(), before, "{who}, {way}: it changes nothing");
        }
    }
}

#[test]
fn nobody_else_can_change_it_in_any_way() {
    for (who, actor) in OTHERS {
        for (way, change) in WAYS {
            let reserved = Reserved::new();
            let (actor, before) = (actor(&reserved), reserved.seen());
            let error = change(&reserved, &actor).expect_err(&format!("{who}, {way}"));
            assert_eq!(*error.kind(), ErrorKind::AccessDenied, "{who}, {way}: {error}");
            assert!(error.message().contains("can only be changed by people"), "{error}");
            assert_eq!(reserved.seen(), before, "{who}, {way}: it has changed something");
        }
    }
}

#[test]
fn a_store_for_everyone_takes_the_changes_of_them_all() {
    for (who, actor) in OTHERS {
        let reserved = Reserved::new();
        let target = (&path("/r.md"), &content("x"));
        let (engine, store) = (&reserved.fixture.engine, reserved.fixture.store);
        let done = engine.put(&actor(&reserved), store, target, Precondition::None);
        done.unwrap_or_else(|error| panic!("{who}: {error}"));
    }
}
