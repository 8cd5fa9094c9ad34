//! Storage that fails at any step leaves nothing half-done.

use std::cell::RefCell;
use std::sync::Arc;

use quipu_core::backend::{
    Archived, DefinitionQuery, Order, SessionEventQuery, SessionQuery, Span,
};
use quipu_core::engine::{
    Approval, ChangeSelection, Completeness, DefinitionContent, Derivation, Goal, NewAttachment,
    NewDerivedKey, NewSession, NewSessionEvent, NewStore, Pattern, Precondition, Restoration,
    Scope, Selection, SessionToken, StoreUpdate, Survivor, Terms,
};
use quipu_core::model::{
    Access, Actor, Definition, DefinitionKind, EventType, Forwarding, Instructions, KeyKind,
    Memory, Metadata, PrincipalName, Reason, Role, SessionId, StorePolicy, View,
};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};
use quipu_testkit::{FaultyBackend, InMemoryBackend};

use crate::support::{Fixture, actor, content, fixture_over, name, path};

/// Runs an operation with the fault at its first step, its second, and so on, until it gets
/// through. Before that, each failure must be reported and must have changed nothing.
fn sweep<T>(operation: impl Fn(&Fixture, &Memory) -> Result<T, Error>) {
    sweep_after(|_| (), operation);
}

/// Like [`sweep`], with something that happens before the fault.
fn sweep_after<T>(
    prepare: impl Fn(&Fixture),
    operation: impl Fn(&Fixture, &Memory) -> Result<T, Error>,
) {
    for step in 1.. {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let fixture = fixture_over(Arc::clone(&faulty) as _, Limits::default());
        let memory = fixture.put("/a/1", "one");
        fixture.put("/a/2", "two");
        fixture.put("/a/2", "deux");
        fixture.clock.advance(std::time::Duration::from_hours(24 * 40));
        prepare(&fixture);
        let before = fingerprint(&fixture);
        faulty.fail_at(step);
        let result = operation(&fixture, &memory);
        if faulty.disarm() {
            assert!(step > 1, "the operation takes no step");
            assert!(result.is_ok());
            assert_ne!(fingerprint(&fixture), before, "the operation does nothing");
            return;
        }
        let error = result.err().expect("a fault must not pass unnoticed");
        assert!(
            matches!(error.kind(), ErrorKind::StorageUnavailable | ErrorKind::EraseIncomplete),
            "{error:?}"
        );
        let has_only_erasing_left = *error.kind() == ErrorKind::EraseIncomplete;
        assert_eq!(fingerprint(&fixture) != before, has_only_erasing_left, "at step {step}");
        assert_eq!(fixture.engine.check().expect("the check runs").problems, []);
    }
}

/// Returns everything that an operation could change.
fn fingerprint(fixture: &Fixture) -> String {
    let changes =
        fixture.engine.changes(quipu_core::backend::Sequence(0), 1000).expect("it is read");
    let stores = fixture.engine.find_store(fixture.workspace, "tests").map(|store| store.name);
    let texts = ["/a/1", "/a/2", "/b/1", "/b/2", "/c"].map(|at| fixture.text(at));
    let keys = fixture.engine.keys(fixture.workspace).expect("they are read");
    let sessions = fixture.engine.sessions(&all_sessions(fixture)).expect("they are read").items;
    let history = stores.is_ok().then(|| fixture.history());
    let events = sessions.iter().map(|session| {
        let query = SessionEventQuery::after(0, 100);
        fixture.engine.session_events(session.id, &query).expect("they are read").items
    });
    let events: Vec<_> = events.collect();
    let definitions = definitions(fixture).expect("they are read");
    format!(
        "{changes:?} {stores:?} {texts:?} {keys:?} {sessions:?} {history:?} {events:?} \
         {definitions:?}"
    )
}

pub(crate) fn all_sessions(fixture: &Fixture) -> SessionQuery {
    SessionQuery {
        workspace: fixture.workspace,
        store: None,
        archived: Archived::Show,
        created: Span::default(),
        viewer: None,
        order: Order::NewestFirst,
        after: None,
        limit: 100,
    }
}

#[test]
fn creating() {
    sweep(|fixture, _| fixture.create("/c", "three"));
}

#[test]
fn changing() {
    sweep(|fixture, _| {
        let target = (&path("/a/1"), &content("uno"));
        fixture.engine.put(&actor(), fixture.store, target, Precondition::None)
    });
}

#[test]
fn editing() {
    sweep(|fixture, _| {
        let twice = |_: &_, text: &str| Ok::<_, Error>(text.repeat(2));
        fixture.engine.edit(&actor(), fixture.store, &path("/a/1"), twice)
    });
}

#[test]
fn moving_a_directory() {
    sweep(|fixture, _| fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")));
}

#[test]
fn deleting_a_directory() {
    sweep(|fixture, _| fixture.engine.delete_at(&actor(), fixture.store, &path("/a")));
}

#[test]
fn deleting_a_memory() {
    sweep(|fixture, memory| {
        fixture.engine.delete(&actor(), fixture.store, memory.id, Precondition::None)
    });
}

#[test]
fn restoring() {
    sweep(|fixture, _| {
        let history = fixture.engine.history(fixture.store, &path("/a/2"), 10)?;
        fixture.engine.restore(&actor(), fixture.store, history[1].id, None)
    });
}

#[test]
fn redacting() {
    sweep(|fixture, _| {
        let history = fixture.engine.history(fixture.store, &path("/a/2"), 10)?;
        fixture.engine.redact(&actor(), fixture.store, &[history[1].id])
    });
}

#[test]
fn creating_a_store() {
    sweep(|fixture, _| {
        let new = NewStore::named(name("new"));
        fixture.engine.create_store(fixture.workspace, &new)
    });
}

#[test]
fn archiving_a_store() {
    sweep(|fixture, _| fixture.engine.archive_store(fixture.store));
}

#[test]
fn erasing_a_store() {
    sweep(|fixture, _| fixture.engine.erase_store(fixture.store));
}

#[test]
fn making_a_key() {
    sweep(|fixture, _| {
        let new = quipu_core::engine::NewKey {
            name: name("ci"),
            role: Role::Admin,
            stores: Some(vec![fixture.store]),
            expires_at: None,
            secret: None,
            forwarding: Forwarding::Denied,
        };
        fixture.engine.create_key(fixture.workspace, &new)
    });
}

#[test]
fn exchanging_a_key() {
    let new = |fixture: &Fixture, kind| NewDerivedKey {
        kind,
        name: name("ada"),
        role: Role::Admin,
        stores: None,
        expires_at: fixture.engine.now().plus(std::time::Duration::from_mins(1)),
        payload: None,
    };
    let link = RefCell::new(String::new());
    let prepare = |fixture: &Fixture| {
        let owner = Derivation::Owner(fixture.workspace);
        let derived = fixture.engine.derive_key(owner, &new(fixture, KeyKind::Link));
        derived.expect("a link").1.reveal().clone_into(&mut link.borrow_mut());
    };
    sweep_after(prepare, |fixture, _| {
        let issue = |_: &_| Ok(vec![new(fixture, KeyKind::Browser)]);
        fixture.engine.exchange_key(&link.borrow(), KeyKind::Link, issue)
    });
}

#[test]
fn starting_a_session() {
    sweep(|fixture, _| {
        let attachment = NewAttachment {
            store: fixture.store,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let new = NewSession::titled("agent", vec![attachment], SessionToken::Issue);
        fixture.engine.create_session(fixture.workspace, &new)
    });
}

#[test]
fn replacing_a_memory() {
    sweep(|fixture, moved| {
        let target = fixture.engine.memory_at(fixture.store, &path("/a/2"), View::Basic)?;
        fixture.engine.replace(&actor(), fixture.store, (moved.id, target.id), Survivor::Moved)
    });
}

#[test]
fn undoing_a_change() {
    sweep(|fixture, _| {
        let memory = fixture.engine.memory_at(fixture.store, &path("/a/2"), View::Basic)?;
        fixture.engine.undo(&actor(), fixture.store, memory.id, None)
    });
}

#[test]
fn updating_a_store() {
    sweep(|fixture, _| {
        let update = StoreUpdate { name: Some(name("renamed")), ..StoreUpdate::default() };
        fixture.engine.update_store(fixture.store, &update)
    });
}

#[test]
fn deleting_a_store_for_a_while() {
    sweep(|fixture, _| fixture.engine.delete_store(fixture.store));
}

#[test]
fn restoring_a_store() {
    let delete = |fixture: &Fixture| drop(fixture.engine.delete_store(fixture.store).unwrap());
    sweep_after(delete, |fixture, _| {
        fixture.engine.restore_store(fixture.workspace, "tests", Some(&name("back")))
    });
}

#[test]
fn expiring_memories() {
    let expiring = |fixture: &Fixture, _: &Memory| {
        let update = StoreUpdate {
            policy: Some(StorePolicy { expire_after_days: Some(1), ..StorePolicy::default() }),
            ..StoreUpdate::default()
        };
        fixture.engine.update_store(fixture.store, &update)
    };
    sweep(expiring);
    // Pruning is several transactions, so a later one may fail after an earlier one has succeeded;
    // a second run then finishes the work.
    for step in 1..40 {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let fixture = fixture_over(Arc::clone(&faulty) as _, Limits::default());
        let memory = fixture.put("/a", "x");
        expiring(&fixture, &memory).unwrap();
        fixture.clock.advance(std::time::Duration::from_hours(24 * 40));
        faulty.fail_at(step);
        let result = fixture.engine.prune();
        assert_eq!(result.is_ok(), faulty.disarm());
        fixture.engine.prune().unwrap();
        assert!(fixture.engine.memory(fixture.store, memory.id, View::Basic).is_err());
        assert_eq!(fixture.engine.check().unwrap().problems, []);
    }
}

#[test]
fn reverting_changes() {
    let others_move = |fixture: &Fixture| {
        let other = Actor::User(PrincipalName::from_host("bob"));
        let (from, to) = (path("/a/2"), path("/b/2"));
        fixture.engine.rename(&other, fixture.store, &from, &to).unwrap();
    };
    sweep_after(others_move, |fixture, _| {
        let goal =
            Goal::Revert(ChangeSelection { actors: vec![actor()], ..ChangeSelection::default() });
        fixture.engine.carry_out(&actor(), fixture.store, &goal, &approval())
    });
}

/// Looking something up is a part of the operation, so the fault may be there.
fn any_session(fixture: &Fixture) -> Result<SessionId, Error> {
    let sessions = fixture.engine.sessions(&all_sessions(fixture))?.items;
    Ok(sessions.first().expect("there is one").id)
}

fn with_events(fixture: &Fixture) {
    let new = NewSession::titled("run", Vec::new(), SessionToken::None);
    let actor = actor();
    let events = [said("hunter2"), said("harmless")];
    let events = (&actor, &events[..]);
    fixture.engine.create_session_with_events(fixture.workspace, &new, events).unwrap();
}

fn said(text: &str) -> NewSessionEvent {
    NewSessionEvent { kind: EventType::new("user.message").unwrap(), body: content(text) }
}

#[test]
fn starting_a_session_with_events() {
    sweep(|fixture, _| {
        let new = NewSession::titled("run", Vec::new(), SessionToken::None);
        let events = [said("one"), said("two")];
        fixture.engine.create_session_with_events(fixture.workspace, &new, (&actor(), &events))
    });
}

#[test]
fn recording_events() {
    sweep_after(with_events, |fixture, _| {
        let events = [said("one"), said("two")];
        fixture.engine.record_events(&actor(), any_session(fixture)?, &events)
    });
}

#[test]
fn redacting_events() {
    sweep_after(with_events, |fixture, _| {
        let pattern = Pattern::text("hunter2").unwrap();
        let selection = Selection { pattern: Some(pattern), ..Selection::default() };
        let scope = Scope::all(fixture.workspace);
        fixture.engine.redact_selected(&actor(), &scope, &selection, &Terms::default())
    });
}

#[test]
fn deleting_a_session_with_events() {
    sweep_after(with_events, |fixture, _| fixture.engine.delete_session(any_session(fixture)?));
}

#[test]
fn changing_an_agent() {
    let define = |fixture: &Fixture| {
        let first = DefinitionContent {
            name: name("agent"),
            metadata: Metadata::default(),
            body: content("{}"),
        };
        let kind = DefinitionKind::Agent;
        fixture.engine.create_definition(fixture.workspace, kind, &first).unwrap();
    };
    sweep_after(define, |fixture, _| {
        let id = definitions(fixture)?[0].id;
        fixture.engine.change_definition(id, |before| {
            Ok(DefinitionContent { name: name("other"), ..DefinitionContent::of(before) })
        })
    });
}

fn definitions(fixture: &Fixture) -> Result<Vec<Definition>, Error> {
    let query = DefinitionQuery {
        workspace: fixture.workspace,
        kind: DefinitionKind::Agent,
        archived: Archived::Show,
        created: Span::default(),
        before: None,
        limit: 10,
    };
    Ok(fixture.engine.definitions(&query)?.items)
}

#[test]
fn restoring_a_tree() {
    sweep(|fixture, memory| {
        let (at, completeness) = (memory.updated_at, Completeness::Required);
        let goal = Goal::Restore(Restoration { at, path: None, completeness });
        fixture.engine.carry_out(&actor(), fixture.store, &goal, &approval())
    });
}

fn approval() -> Approval {
    Approval { expect: None, reason: Reason::new("a test").unwrap() }
}
