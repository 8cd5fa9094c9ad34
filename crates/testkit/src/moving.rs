//! What a move between two backends promises, run over each pair of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::clock::SystemClock;
use quipu_core::engine::{
    DefinitionContent, Heads, NewAttachment, NewKey, NewSession, NewSessionEvent, NewStore,
    Pattern, Precondition, Scope, Selection, SessionToken, Terms,
};
use quipu_core::model::{
    Access, Actor, Content, CopyKind, CopyMade, DefinitionKind, EventType, Forwarding,
    Instructions, KeySecret, MemoryPath, Metadata, Name, PrincipalName, Refusal, Role, StoreId,
    StorePolicy, View,
};
use quipu_core::settings::Limits;
use quipu_core::transfer::{
    MoveMode, Moved, Progress, RowReader, Transfer, digest, move_all, require_complete,
};
use quipu_core::{Backend, Engine, Error, ErrorKind};

/// A backend on either side of a move.
#[derive(Clone)]
pub struct Side {
    backend: Arc<dyn Backend>,
    transfer: Arc<dyn Transfer>,
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.backend.fmt(f)
    }
}

impl Side {
    /// Returns one side.
    pub fn new<B: Backend + Transfer + 'static>(backend: B) -> Self {
        let backend = Arc::new(backend);
        Self { backend: Arc::clone(&backend) as _, transfer: backend }
    }

    fn engine(&self) -> Engine {
        self.engine_with(Limits::default())
    }

    fn engine_with(&self, limits: Limits) -> Engine {
        Engine::new(Arc::clone(&self.backend), Arc::new(SystemClock), limits)
    }

    fn digest(&self) -> [u8; 32] {
        let mut found = [0; 32];
        let read = self.transfer.export(&mut |rows: &dyn RowReader| {
            found = digest(rows)?;
            Ok(())
        });
        read.expect("the rows can be read");
        found
    }
}

/// Runs the suite; `source` and `target` return an empty side each.
pub fn check(source: &dyn Fn() -> Side, target: &dyn Fn() -> Side) {
    everything_arrives_with_its_ids_and_digest(&source(), &target());
    a_second_run_carries_what_has_changed(&source(), &target());
    an_interrupted_move_is_not_opened_and_continues(&source(), &target());
    a_target_with_other_data_is_refused(&source(), &target());
    a_target_that_was_written_since_is_refused(&source(), &target());
    an_older_copy_of_the_source_is_refused([&source(), &source()], &target());
    a_dry_run_changes_nothing(&source(), &target());
    writes_during_a_move_arrive_with_the_next(&source(), &target());
}

fn moved(source: &Side, target: &Side) -> Result<Moved, Error> {
    move_all(&*source.transfer, &*target.transfer, MoveMode::Copy, &mut |_| Ok(()))
}

fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("tester"))
}

fn path(text: &str) -> MemoryPath {
    MemoryPath::parse(text).expect("a valid path")
}

fn put(engine: &Engine, store: StoreId, at: &str, text: &str) {
    let content = Content::new(text).expect("valid content");
    let put = engine.put(&actor(), store, (&path(at), &content), Precondition::None);
    put.expect("it is written");
}

fn new_store(engine: &Engine, name: &str) -> StoreId {
    let workspace = engine.default_workspace().expect("a workspace").id;
    let policy = StorePolicy { expire_after_days: Some(9), ..StorePolicy::default() };
    let new = NewStore { policy, ..NewStore::named(Name::new(name).expect("a name")) };
    engine.create_store(workspace, &new).expect("a store").id
}

/// Makes some of everything; returns a store that is kept.
fn fill(side: &Side) -> StoreId {
    let engine = side.engine();
    let workspace = engine.default_workspace().expect("a workspace").id;
    let store = new_store(&engine, "kept");
    for number in 0..30 {
        put(&engine, store, &format!("/notes/{number}.md"), &format!("text {number}"));
        put(&engine, store, &format!("/notes/{number}.md"), &format!("again {number} \u{1f375}"));
    }
    engine.rename(&actor(), store, &path("/notes/1.md"), &path("/moved.md")).expect("it moves");
    engine.delete_at(&actor(), store, &path("/notes/2.md")).expect("it is deleted");
    put(&engine, store, "/canary.md", "the password is tiger-lily");
    let pattern = Some(Pattern::text("tiger-lily").expect("a pattern"));
    let selection = Selection { pattern, ..Selection::default() };
    let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
    let redacted = engine.redact_selected(&actor(), &Scope::all(workspace), &selection, &terms);
    redacted.expect("it is redacted");
    let refusal = Refusal {
        store,
        at: engine.now(),
        path: "/refused".to_owned(),
        actor: actor(),
        reason: "too long".to_owned(),
    };
    engine.note_refusal(&refusal).expect("it is noted");
    let gone = new_store(&engine, "gone");
    put(&engine, gone, "/gone.md", "gone");
    engine.erase_store(gone).expect("it is erased");
    let deleted = new_store(&engine, "deleted");
    put(&engine, deleted, "/back.md", "comes back");
    engine.delete_store(deleted).expect("it is deleted");
    people(&engine, store);
    let copy = CopyMade {
        workspace,
        at: engine.now(),
        kind: CopyKind::Backup,
        store: Some(store),
        target: "/backups/1".to_owned(),
    };
    engine.note_copy(&copy).expect("it is noted");
    let newest = engine.newest_sequence().expect("a sequence");
    engine.keep_cursor("webhook", newest).expect("it is kept");
    store
}

/// Makes keys and sessions.
fn people(engine: &Engine, store: StoreId) {
    let workspace = engine.default_workspace().expect("a workspace").id;
    let new = NewKey {
        name: Name::new("agents").expect("a name"),
        role: Role::ReadWrite,
        stores: Some(vec![store]),
        secret: None::<KeySecret>,
        expires_at: None,
        forwarding: Forwarding::Allowed,
    };
    let (key, _) = engine.create_key(workspace, &new).expect("a key");
    let attachment =
        NewAttachment { store, access: Access::ReadWrite, instructions: Instructions::default() };
    let new = NewSession {
        key: Some(key.id),
        ..NewSession::titled("work", vec![attachment], SessionToken::Issue)
    };
    let (session, _) = engine.create_session(workspace, &new).expect("a session");
    let content = Content::new("by an agent").expect("valid content");
    let actor = Actor::Session(session.id);
    engine.create(&actor, store, &path("/by-agent.md"), &content).expect("it is written");
    let definition = DefinitionContent {
        name: Name::new("researcher").expect("a name"),
        metadata: Metadata::default(),
        body: Content::new("{}").expect("valid content"),
    };
    for kind in [DefinitionKind::Agent, DefinitionKind::Environment] {
        engine.create_definition(workspace, kind, &definition).expect("a definition");
    }
    let event = NewSessionEvent {
        kind: EventType::new("user.message").expect("a type"),
        body: Content::new("{\"text\": \"hello\"}").expect("valid content"),
    };
    engine.record_events(&actor, session.id, &[event.clone(), event]).expect("they are recorded");
}

fn everything_arrives_with_its_ids_and_digest(source: &Side, target: &Side) {
    let store = fill(source);
    let before = source.digest();
    let done = moved(source, target).expect("it moves");
    assert_eq!(done.digest, Some(before));
    assert_eq!(target.digest(), before);
    assert_eq!(source.digest(), before, "the source is as it was");
    let empty: Vec<_> = done.tables.iter().filter(|table| table.put_count == 0).collect();
    // Nothing was pruned.
    assert_eq!(empty.iter().map(|table| table.name).collect::<Vec<_>>(), ["horizons"]);

    let (old, new) = (source.engine(), target.engine());
    assert_eq!(new.check().expect("the check runs").problems, []);
    assert_eq!(old.usage(store).expect("usage"), new.usage(store).expect("usage"));
    let at = path("/moved.md");
    let read = |engine: &Engine| engine.memory_at(store, &at, View::Full).expect("a memory");
    assert_eq!(read(&old), read(&new));
    let workspace = new.default_workspace().expect("a workspace").id;
    // The next change continues the sequence, and what was deleted can come back.
    put(&new, store, "/next.md", "after the move");
    assert_eq!(new.newest_sequence().expect("a sequence").0, done.sequence + 1);
    let deleted = new.deleted_stores(workspace).expect("deleted stores");
    let [deleted] = deleted.as_slice() else { panic!("{deleted:?}") };
    assert_eq!(deleted.memories_count, 1);
    new.restore_store(workspace, "deleted", None).expect("it is restored");
    let back = new.memory_at(deleted.store.id, &path("/back.md"), View::Full);
    assert_eq!(back.expect("a memory").content.expect("its text").as_str(), "comes back");
    new_store(&new, "another");
    assert_eq!(new.check().expect("the check runs").problems, []);
}

fn a_second_run_carries_what_has_changed(source: &Side, target: &Side) {
    let store = fill(source);
    moved(source, target).expect("it moves");
    let again = moved(source, target).expect("it moves");
    let touched: u64 = again.tables.iter().map(|it| it.put_count + it.removed_count).sum();
    assert_eq!(touched, 0, "{again:?}");

    let engine = source.engine();
    put(&engine, store, "/notes/3.md", "changed since");
    // Two memories change places.
    for (from, to) in [("/notes/4.md", "/x"), ("/notes/5.md", "/notes/4.md"), ("/x", "/notes/5.md")]
    {
        engine.rename(&actor(), store, &path(from), &path(to)).expect("it moves");
    }
    let versions = engine.history(store, &path("/notes/6.md"), 9).expect("versions");
    let first = versions.last().expect("two versions").id;
    engine.redact(&actor(), store, &[first]).expect("it is redacted");
    engine.erase_store(new_store(&engine, "short")).expect("it is erased");
    let workspace = engine.default_workspace().expect("a workspace").id;
    engine.restore_store(workspace, "deleted", None).expect("it is restored");
    let pruning = Limits {
        versions_kept_for: Duration::ZERO,
        versions_kept_min: 1,
        sessions_kept_for: Duration::ZERO,
        ..Limits::default()
    };
    source.engine_with(pruning).prune().expect("it is pruned");
    let done = moved(source, target).expect("it moves");
    assert_eq!(done.digest, Some(target.digest()));
    assert_eq!(target.engine().check().expect("the check runs").problems, []);
    let pending = target.engine().read(|reader| reader.pending_erasures()).expect("it is read");
    assert!(!pending.is_empty(), "what went from the target has to be erased there too");
    target.engine().finish_erasing().expect("it is erased");
}

/// Fails at the given report.
fn interrupted(source: &Side, target: &Side, at: usize) -> bool {
    let mut reports_count = 0;
    let mut watch = |_: Progress| {
        reports_count += 1;
        if reports_count == at {
            return Err(Error::new(ErrorKind::StorageUnavailable, "killed"));
        }
        Ok(())
    };
    move_all(&*source.transfer, &*target.transfer, MoveMode::Copy, &mut watch).is_err()
}

fn an_interrupted_move_is_not_opened_and_continues(source: &Side, target: &Side) {
    let store = fill(source);
    let is_open = || target.engine().read(|reader| require_complete(reader)).is_ok();
    assert!(is_open());
    for at in 1.. {
        if !interrupted(source, target, at) {
            break;
        }
        assert!(!is_open(), "a part must not be taken for the whole");
        let part = move_all(&*target.transfer, &*source.transfer, MoveMode::Copy, &mut |_| Ok(()));
        assert_eq!(part.expect_err("a part does not move").kind(), &ErrorKind::StorageUnusable);
        put(&source.engine(), store, "/during.md", &format!("{at}"));
    }
    assert!(is_open());
    assert_eq!(source.digest(), target.digest());
}

fn a_target_with_other_data_is_refused(source: &Side, target: &Side) {
    fill(source);
    fill(target);
    let before = target.digest();
    let refused = moved(source, target).expect_err("it is refused");
    assert_eq!(refused.kind(), &ErrorKind::PreconditionFailed);
    assert_eq!(target.digest(), before);
}

fn a_target_that_was_written_since_is_refused(source: &Side, target: &Side) {
    let store = fill(source);
    // To look at a new database makes a workspace in it, which is nothing to lose.
    target.engine().default_workspace().expect("a workspace");
    moved(source, target).expect("it moves");
    put(&target.engine(), store, "/written.md", "on the new side");
    let before = target.digest();
    let refused = moved(source, target).expect_err("it is refused");
    assert_eq!(refused.kind(), &ErrorKind::PreconditionFailed);
    assert_eq!(target.digest(), before);
}

fn an_older_copy_of_the_source_is_refused([source, older]: [&Side; 2], target: &Side) {
    let store = fill(source);
    moved(source, older).expect("it moves");
    put(&source.engine(), store, "/written.md", "since the copy was made");
    moved(source, target).expect("it moves");
    let before = target.digest();
    let refused = moved(older, target).expect_err("it is refused");
    assert_eq!(refused.kind(), &ErrorKind::PreconditionFailed);
    assert_eq!(target.digest(), before);
}

fn a_dry_run_changes_nothing(source: &Side, target: &Side) {
    fill(source);
    let before = target.digest();
    let would = move_all(&*source.transfer, &*target.transfer, MoveMode::DryRun, &mut |_| Ok(()));
    let would = would.expect("it is planned");
    assert_eq!((would.digest, target.digest()), (None, before));
    let done = moved(source, target).expect("it moves");
    assert_eq!(would.tables, done.tables);
}

fn writes_during_a_move_arrive_with_the_next(source: &Side, target: &Side) {
    let store = fill(source);
    let engine = source.engine();
    let mut written_count = 0;
    let mut watch = |_: Progress| {
        written_count += 1;
        put(&engine, store, &format!("/during/{written_count}.md"), "written while rows move");
        Ok(())
    };
    let first = move_all(&*source.transfer, &*target.transfer, MoveMode::Copy, &mut watch);
    let first = first.expect("it moves");
    assert_eq!(first.digest, Some(target.digest()), "the target is a moment of the source");
    assert_ne!(source.digest(), target.digest());
    assert!(first.sequence < engine.newest_sequence().expect("a sequence").0);
    moved(source, target).expect("it moves");
    assert_eq!(source.digest(), target.digest());
}
