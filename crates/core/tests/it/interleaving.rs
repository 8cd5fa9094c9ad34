//! Somebody else acts between the moment at which the engine looks and the moment at which it writes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use quipu_core::engine::{
    Approval, ChangeSelection, Derivation, Goal, MemoryUpdate, NewDerivedKey, NewKey, NewStore,
    Precondition, StoreUpdate,
};
use quipu_core::model::{
    Actor, Digest, ExpectedDigest, Forwarding, Key, KeyKind, KeySecret, Memory, Name,
    PrincipalName, Reason, Role, StorePolicy, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Backend, Clock as _, Engine, Error, ErrorKind};
use quipu_testkit::{InMemoryBackend, model};

use crate::quirks::{Quirk, QuirkyBackend};
use crate::support::{Fixture, actor, content, fixture_over, kind, name, path};

const DAY: Duration = Duration::from_hours(24);

/// A fixture, and an engine of somebody else on the same data.
struct World {
    fixture: Fixture,
    backend: Arc<QuirkyBackend>,
    other: Engine,
}

fn world() -> World {
    let inner = InMemoryBackend::default();
    let theirs = Arc::new(inner.reopened());
    let backend = QuirkyBackend::new(Arc::new(inner), Quirk::Interrupts(Mutex::default()));
    let fixture = fixture_over(Arc::clone(&backend) as _, Limits::default());
    let other = Engine::new(theirs, Arc::clone(&fixture.clock) as _, Limits::default());
    World { fixture, backend, other }
}

impl World {
    /// Lets somebody else act before the next write.
    fn meanwhile<T>(&self, act: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static) {
        self.before_write(1, act);
    }

    /// Lets somebody else act before the `number`-th write from now.
    fn before_write<T>(
        &self,
        number: usize,
        act: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
    ) {
        let other = self.other.clone();
        self.backend.interrupt(number, move || drop(act(&other).unwrap()));
    }

    fn expire_after_a_week(&self) {
        let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
        let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
        self.fixture.engine.update_store(self.fixture.store, &update).unwrap();
    }
}

#[test]
fn a_store_that_appears_meanwhile_is_the_one_that_is_found() {
    let world = world();
    let workspace = world.fixture.workspace;
    world.meanwhile(move |other| other.create_store(workspace, &NewStore::named(name("new"))));
    let found = world.fixture.engine.find_or_create_store(workspace, "new").unwrap();
    assert_eq!(world.other.find_store(workspace, "new").unwrap(), found);
}

#[test]
fn two_programs_that_start_at_once_share_a_workspace() {
    let inner = InMemoryBackend::default();
    let theirs = Arc::new(inner.reopened());
    let backend = QuirkyBackend::new(Arc::new(inner), Quirk::Interrupts(Mutex::default()));
    let clock = Arc::new(quipu_testkit::ManualClock::default());
    let ours = Engine::new(Arc::clone(&backend) as _, Arc::clone(&clock) as _, Limits::default());
    let other = Engine::new(theirs, clock, Limits::default());
    let theirs = other.clone();
    backend.interrupt(1, move || drop(theirs.default_workspace().unwrap()));
    assert_eq!(ours.default_workspace().unwrap(), other.default_workspace().unwrap());
    assert_eq!(ours.workspaces().unwrap().len(), 1);
}

#[test]
fn a_precondition_is_checked_against_what_is_there_when_it_is_written() {
    let world = world();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    let read = fixture.put("/a", "read");
    let stale = Precondition::ContentIs(read.hash);
    let edit = move |other: &Engine| {
        let target = (&path("/a"), &content("theirs"));
        other.put(&actor(), store, target, Precondition::None)
    };
    world.meanwhile(edit);
    let target = (&path("/a"), &content("ours"));
    let put = fixture.engine.put(&actor(), store, target, stale);
    assert_eq!(kind(put), ErrorKind::PreconditionFailed);

    fixture.put("/a", "read");
    world.meanwhile(edit);
    let update = MemoryUpdate { path: Some(path("/b")), precondition: stale, content: None };
    let moved = fixture.engine.update(&actor(), store, read.id, &update);
    assert_eq!(kind(moved), ErrorKind::PreconditionFailed);

    fixture.put("/a", "read");
    world.meanwhile(edit);
    let deleted = fixture.engine.delete(&actor(), store, read.id, stale);
    assert_eq!(kind(deleted), ErrorKind::PreconditionFailed);
    assert_eq!(fixture.text("/a").as_deref(), Some("theirs"));
}

fn rogue() -> Actor {
    Actor::User(PrincipalName::from_host("rogue"))
}

fn taking_back(digest: Option<Digest>) -> (Goal, Approval) {
    let goal =
        Goal::Revert(ChangeSelection { actors: vec![rogue()], ..ChangeSelection::default() });
    let reason = Reason::new("a test").unwrap();
    (goal, Approval { expect: digest.map(ExpectedDigest::from), reason })
}

#[test]
fn a_revert_is_planned_again_for_what_is_there_when_it_is_carried_out() {
    for is_expected in [false, true] {
        let world = world();
        let (fixture, store) = (&world.fixture, world.fixture.store);
        fixture.put("/a", "one\ntwo\nthree\n");
        let put = |text: &str| (path("/a"), content(text));
        let (at, bad) = put("BAD\ntwo\nthree\n");
        fixture.engine.put(&rogue(), store, (&at, &bad), Precondition::None).unwrap();
        let (goal, _) = taking_back(None);
        let digest = fixture.engine.plan(store, &goal).unwrap().digest;
        let (at, theirs) = put("BAD\ntwo\nTHREE\n");
        world
            .meanwhile(move |other| other.put(&actor(), store, (&at, &theirs), Precondition::None));
        let (goal, approval) = taking_back(is_expected.then_some(digest));
        let done = fixture.engine.carry_out(&actor(), store, &goal, &approval);
        if is_expected {
            assert_eq!(kind(done), ErrorKind::PreconditionFailed);
            assert_eq!(fixture.text("/a").unwrap(), "BAD\ntwo\nTHREE\n");
        } else {
            assert_ne!(done.unwrap().plan.digest, digest);
            assert_eq!(fixture.text("/a").unwrap(), "one\ntwo\nTHREE\n");
        }
    }
}

#[test]
fn what_is_redacted_meanwhile_does_not_come_back() {
    let world = world();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    let secret = fixture.put("/a", "secret").version;
    let clean = (&path("/a"), &content("clean"));
    fixture.engine.put(&rogue(), store, clean, Precondition::None).unwrap();
    world.meanwhile(move |other| other.redact(&actor(), store, &[secret]));
    let (goal, approval) = taking_back(None);
    let done = fixture.engine.carry_out(&actor(), store, &goal, &approval).unwrap();
    assert_eq!((done.versions.len(), done.plan.left_count()), (0, 1));
    assert_eq!(fixture.text("/a").unwrap(), "clean");
}

#[test]
fn an_edit_sees_what_was_written_before_it() {
    let world = world();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    fixture.put("/a", "one ");
    let append = move |engine: &Engine, text: &'static str| {
        let edit = move |_: &Memory, old: &str| Ok::<_, Error>(format!("{old}{text}"));
        engine.edit(&actor(), store, &path("/a"), edit).map(drop)
    };
    world.meanwhile(move |other| append(other, "two "));
    append(&fixture.engine, "three").unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("one two three"));
}

#[test]
fn a_memory_that_moves_meanwhile_is_changed_where_it_is() {
    let world = world();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    let memory = fixture.put("/a", "one");
    world.meanwhile(move |other| other.rename(&actor(), store, &path("/a"), &path("/b")));
    let update = MemoryUpdate { content: Some(content("two")), ..MemoryUpdate::default() };
    let written = fixture.engine.update(&actor(), store, memory.id, &update).unwrap();
    assert_eq!(written.memory.path, path("/b"));
    assert_eq!((fixture.text("/a"), fixture.text("/b").as_deref()), (None, Some("two")));
}

#[test]
fn a_directory_takes_along_what_was_added_to_it_meanwhile() {
    let world = world();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    fixture.put("/a/1", "one");
    world.meanwhile(move |other| other.create(&actor(), store, &path("/a/2"), &content("two")));
    let moved = fixture.engine.rename(&actor(), store, &path("/a"), &path("/b")).unwrap();
    assert_eq!(moved.len(), 2);
    world.meanwhile(move |other| other.create(&actor(), store, &path("/b/3"), &content("three")));
    let removed = fixture.engine.delete_at(&actor(), store, &path("/b")).unwrap();
    assert_eq!(removed.versions.len(), 3);
}

#[test]
fn a_store_that_is_archived_meanwhile_refuses_the_write() {
    let world = world();
    let store = world.fixture.store;
    world.meanwhile(move |other| other.archive_store(store));
    assert_eq!(kind(world.fixture.create("/a", "late")), ErrorKind::StoreArchived);
    let archived = world.fixture.engine.store(store).unwrap().archived_at.unwrap();
    world.fixture.clock.advance(DAY);
    assert_eq!(world.fixture.engine.archive_store(store).unwrap().archived_at, Some(archived));
}

#[test]
fn a_policy_that_became_stricter_meanwhile_applies() {
    let world = world();
    let store = world.fixture.store;
    world.meanwhile(move |other| {
        let secrets = quipu_core::model::SecretPolicy::Reject;
        let policy = StorePolicy { secrets, ..StorePolicy::default() };
        other.update_store(store, &StoreUpdate { policy: Some(policy), ..StoreUpdate::default() })
    });
    let leaky = format!("token: ghp_{}", "x7Kq2".repeat(8).get(..36).unwrap());
    assert_eq!(kind(world.fixture.create("/a", &leaky)), ErrorKind::SecretRefused);
}

#[test]
fn a_text_that_is_restored_meanwhile_survives_the_redaction_of_its_old_version() {
    let world = world();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    let old = fixture.put("/a", "old");
    fixture.put("/a", "new");
    world.meanwhile(move |other| other.restore(&actor(), store, old.version, None));
    fixture.engine.redact(&actor(), store, &[old.version]).unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("old"));
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn a_memory_that_is_used_meanwhile_does_not_expire() {
    let world = world();
    world.expire_after_a_week();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    fixture.put("/used", "text");
    fixture.put("/unused", "text");
    fixture.clock.advance(8 * DAY);
    world.meanwhile(move |other| {
        other.memory_at(store, &path("/used"), View::Full)?;
        other.write_uses()
    });
    assert_eq!(fixture.engine.prune().unwrap().memories_count, 1);
    assert!(fixture.text("/used").is_some() && fixture.text("/unused").is_none());
}

#[test]
fn a_store_that_is_deleted_during_pruning_is_no_error() {
    let world = world();
    world.expire_after_a_week();
    let store = world.fixture.store;
    world.fixture.put("/a", "text");
    world.fixture.clock.advance(8 * DAY);
    world.meanwhile(move |other| other.delete_store(store));
    assert_eq!(world.fixture.engine.prune().unwrap().memories_count, 0);
}

#[test]
fn a_store_that_is_restored_during_pruning_is_not_erased() {
    let world = world();
    let (fixture, workspace) = (&world.fixture, world.fixture.workspace);
    fixture.put("/a", "text");
    fixture.engine.delete_store(fixture.store).unwrap();
    fixture.clock.advance(8 * DAY);
    // The first write prunes versions, the second one erases deleted stores.
    world.before_write(2, move |other| other.restore_store(workspace, "tests", None));
    assert_eq!(fixture.engine.prune().unwrap().stores_count, 0);
    assert_eq!(fixture.text("/a").as_deref(), Some("text"));
}

#[test]
fn uses_of_memories_that_are_gone_are_dropped() {
    let world = world();
    world.expire_after_a_week();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    fixture.put("/a", "text");
    fixture.clock.advance(DAY);
    fixture.engine.memory_at(store, &path("/a"), View::Full).unwrap();
    assert!(fixture.engine.has_unwritten_uses());
    world.meanwhile(move |other| other.delete_at(&actor(), store, &path("/a")));
    fixture.engine.write_uses().unwrap();
    assert!(!fixture.engine.has_unwritten_uses());
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn two_programs_with_one_chosen_secret_share_a_key() {
    let world = world();
    let (fixture, workspace) = (&world.fixture, world.fixture.workspace);
    let new = || NewKey {
        name: Name::new("boot").unwrap(),
        role: Role::Admin,
        stores: None,
        expires_at: None,
        secret: KeySecret::chosen("a secret from the settings"),
        forwarding: Forwarding::Denied,
    };
    world.meanwhile(move |other| other.ensure_key(workspace, &new()));
    fixture.engine.ensure_key(workspace, &new()).unwrap();
    assert_eq!(fixture.engine.keys(workspace).unwrap().len(), 1);
    assert!(fixture.engine.create_first_key(workspace, &new()).unwrap().is_none());
}

/// Returns an admin key that was not derived from another one.
fn root_key(engine: &Engine) -> Key {
    let workspace = engine.default_workspace().expect("a workspace").id;
    let (role, expires_at, secret) = (Role::Admin, None, None);
    let new = NewKey {
        name: name("ci"),
        role,
        stores: None,
        expires_at,
        secret,
        forwarding: Forwarding::Denied,
    };
    engine.create_key(workspace, &new).expect("a key").0
}

fn derived(engine: &Engine, root: &Key, kind: KeyKind) -> (Key, KeySecret) {
    let new = NewDerivedKey {
        kind,
        name: name("ada"),
        role: Role::Admin,
        stores: None,
        expires_at: engine.now().plus(DAY),
        payload: None,
    };
    engine.derive_key(Derivation::Key(root.id), &new).expect("it is derived")
}

#[test]
fn a_one_time_key_whose_parent_is_revoked_meanwhile_is_not_redeemed() {
    let world = world();
    let engine = &world.fixture.engine;
    let root = root_key(engine);
    let (_, link) = derived(engine, &root, KeyKind::Link);
    world.meanwhile(move |other| other.revoke_key(root.id));
    assert_eq!(engine.redeem_key(link.reveal(), KeyKind::Link).unwrap(), None);
}

#[test]
fn a_one_time_key_that_expires_or_is_redeemed_meanwhile_is_not_redeemed() {
    let world = world();
    let engine = &world.fixture.engine;
    let root = root_key(engine);
    let (_, link) = derived(engine, &root, KeyKind::Link);
    let theirs = link.reveal().to_owned();
    world.meanwhile(move |other| other.redeem_key(&theirs, KeyKind::Link));
    assert_eq!(engine.redeem_key(link.reveal(), KeyKind::Link).unwrap(), None);
    let (_, link) = derived(engine, &root, KeyKind::Link);
    let clock = Arc::clone(&world.fixture.clock);
    world.meanwhile(move |_| {
        clock.advance(DAY);
        Ok(())
    });
    assert_eq!(engine.redeem_key(link.reveal(), KeyKind::Link).unwrap(), None);
}

#[test]
fn a_key_that_is_revoked_meanwhile_is_neither_extended_nor_brought_back_by_its_use() {
    let world = world();
    let engine = &world.fixture.engine;
    let root = root_key(engine);
    let (browser, cookie) = derived(engine, &root, KeyKind::Browser);
    world.meanwhile(move |other| other.revoke_key(browser.id));
    assert_eq!(engine.extend_key(browser.id, engine.now().plus(DAY * 2)).unwrap(), None);
    let (browser, cookie_of_other) = derived(engine, &root, KeyKind::Browser);
    assert!(engine.principal(cookie_of_other.reveal()).unwrap().is_some());
    world.meanwhile(move |other| other.revoke_key(browser.id));
    assert_eq!(engine.write_uses().unwrap(), 1);
    for cookie in [cookie, cookie_of_other] {
        assert!(engine.principal(cookie.reveal()).unwrap().is_none());
    }
}

/// "`work` may be run more than once": what the first run has issued is not there.
#[test]
fn an_exchange_that_runs_twice_issues_once() {
    let inner: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
    let backend = QuirkyBackend::new(inner, Quirk::RunsTwice);
    let fixture = fixture_over(backend, Limits::default());
    let root = root_key(&fixture.engine);
    let (_, code) = derived(&fixture.engine, &root, KeyKind::Code);
    let new = |redeemed: &Key| NewDerivedKey {
        kind: KeyKind::Key,
        name: redeemed.name.clone(),
        role: redeemed.role,
        stores: None,
        expires_at: fixture.clock.now().plus(DAY),
        payload: redeemed.payload.clone(),
    };
    let issue = |redeemed: &Key| Ok(vec![new(redeemed)]);
    let exchange = fixture.engine.exchange_key(code.reveal(), KeyKind::Code, issue).unwrap();
    let (_, token) = exchange.unwrap().issued.remove(0);
    assert!(fixture.engine.principal(token.reveal()).unwrap().is_some());
    assert_eq!(fixture.engine.keys(fixture.workspace).unwrap().len(), 3);
}

/// A clock that another process has set forward is noticed by this one, too.
#[test]
fn moments_grow_across_processes_whatever_their_clocks() {
    let world = world();
    let (fixture, store) = (&world.fixture, world.fixture.store);
    let before = fixture.clock.now();
    let clock = Arc::clone(&fixture.clock);
    world.meanwhile(move |other| {
        clock.advance(DAY);
        let written = other.create(&actor(), store, &path("/theirs"), &content("text"));
        clock.set(before);
        written
    });
    fixture.put("/ours", "text");
    let at = |place: &str| {
        fixture.engine.memory_at(store, &path(place), View::Basic).unwrap().created_at
    };
    assert_eq!(at("/ours"), at("/theirs").next());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// "`work` may be run more than once": no operation keeps anything of an earlier run.
    #[test]
    fn work_that_runs_twice_has_the_effect_of_one_run(operations in model::operations(40)) {
        let inner: Arc<dyn Backend> = Arc::new(InMemoryBackend::default());
        let backend = QuirkyBackend::new(inner, Quirk::RunsTwice);
        model::run(&|| Arc::clone(&backend) as _, &operations);
    }
}
