//! Agents, environments, and the events of sessions.

use std::time::Duration;

use quipu_core::backend::{Archived, DefinitionQuery, Sequence, SessionEventQuery, Span};
use quipu_core::engine::{
    DefinitionContent, Heads, NewSession, NewSessionEvent, Pattern, Position, Scope, Selection,
    SessionState, SessionToken, Terms,
};
use quipu_core::model::{
    Actor, Content, Definition, DefinitionKind, EventType, EventUsage, Metadata, Name,
    SessionEvent, SessionId, Timestamp,
};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};

use crate::support::{Fixture, actor, fixture, fixture_with, kind};

fn session(fixture: &Fixture) -> SessionId {
    let new = NewSession::titled("run", Vec::new(), SessionToken::None);
    fixture.engine.create_session(fixture.workspace, &new).unwrap().0.id
}

fn said(text: &str) -> NewSessionEvent {
    NewSessionEvent {
        kind: EventType::new("user.message").unwrap(),
        body: Content::new(text).unwrap(),
    }
}

fn record(fixture: &Fixture, session: SessionId, texts: &[&str]) -> Result<Vec<u64>, Error> {
    let events: Vec<_> = texts.iter().map(|text| said(text)).collect();
    let recorded = fixture.engine.record_events(&actor(), session, &events)?;
    Ok(recorded.iter().map(|event| event.number).collect())
}

fn events(fixture: &Fixture, session: SessionId) -> Vec<SessionEvent> {
    let query = SessionEventQuery::after(0, 1_000);
    fixture.engine.session_events(session, &query).unwrap().items
}

fn bodies(fixture: &Fixture, session: SessionId) -> Vec<String> {
    let body = |event: &SessionEvent| event.body.as_ref().map_or("-", Content::as_str).to_owned();
    events(fixture, session).iter().map(body).collect()
}

fn content(name: &str, body: &str) -> DefinitionContent {
    DefinitionContent {
        name: Name::new(name).unwrap(),
        metadata: Metadata::default(),
        body: Content::new(body).unwrap(),
    }
}

fn agent(fixture: &Fixture, name: &str, body: &str) -> Definition {
    let content = content(name, body);
    let kind = DefinitionKind::Agent;
    fixture.engine.create_definition(fixture.workspace, kind, &content).unwrap()
}

#[test]
fn events_are_numbered_and_their_moments_grow_while_the_clock_stands_still() {
    let fixture = fixture();
    let session = session(&fixture);
    assert_eq!(record(&fixture, session, &["one", "two"]).unwrap(), [1, 2]);
    assert_eq!(record(&fixture, session, &["three"]).unwrap(), [3]);
    let events = events(&fixture, session);
    assert!(events.is_sorted_by(|one, next| one.at < next.at && one.id < next.id), "{events:?}");
    assert_eq!(bodies(&fixture, session), ["one", "two", "three"]);
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn all_events_of_a_call_are_recorded_or_none() {
    let limits = Limits { event_size_bytes_max: 4, events_per_session_max: 2, ..Limits::default() };
    let fixture = fixture_with(limits);
    let session = session(&fixture);
    for texts in [&["one", "three"][..], &["one", "two", "3"]] {
        let refused = record(&fixture, session, texts);
        assert_eq!(kind(refused), ErrorKind::LimitReached, "{texts:?}");
    }
    assert_eq!(bodies(&fixture, session), Vec::<String>::new());
    assert_eq!(record(&fixture, session, &["one", "four"]).unwrap(), [1, 2]);
    assert_eq!(kind(record(&fixture, session, &[""])), ErrorKind::LimitReached);
}

#[test]
fn a_session_and_a_workspace_keep_so_many_bytes() {
    let limits = Limits {
        session_events_size_bytes_max: 8,
        workspace_events_size_bytes_max: 12,
        ..Limits::default()
    };
    let fixture = fixture_with(limits);
    let (first, second) = (session(&fixture), session(&fixture));
    record(&fixture, first, &["1234", "5678"]).unwrap();
    assert_eq!(kind(record(&fixture, first, &["9"])), ErrorKind::LimitReached);
    assert_eq!(kind(record(&fixture, second, &["12345"])), ErrorKind::LimitReached);
    record(&fixture, second, &["1234"]).unwrap();
    fixture.engine.delete_session(first).unwrap();
    record(&fixture, second, &["5678"]).unwrap();
}

#[test]
fn an_archived_session_takes_no_events_and_keeps_those_that_it_has() {
    let fixture = fixture();
    let session = session(&fixture);
    record(&fixture, session, &["one"]).unwrap();
    fixture.engine.archive_session(session).unwrap();
    assert_eq!(kind(record(&fixture, session, &["two"])), ErrorKind::InvalidInput);
    assert_eq!(bodies(&fixture, session), ["one"]);
    fixture.engine.delete_session(session).unwrap();
    assert_eq!(kind(record(&fixture, session, &["two"])), ErrorKind::NotFound);
    assert_eq!(bodies(&fixture, session), Vec::<String>::new());
    assert!(fixture.engine.check().unwrap().is_erasing_pending);
    fixture.engine.prune().unwrap();
    assert!(!fixture.engine.check().unwrap().is_erasing_pending);
}

#[test]
fn followers_are_woken_by_what_concerns_a_session_only() {
    let fixture = fixture();
    let session = session(&fixture);
    let position =
        || -> Position { fixture.engine.wait_beyond(Position::default(), Duration::ZERO).unwrap() };
    let state = || fixture.engine.session_states(&[session]).unwrap()[0];
    let before = position();
    assert_eq!(state(), SessionState::Open(0));
    record(&fixture, session, &["one", "two"]).unwrap();
    let after = position();
    assert_eq!(after.events_recorded, Sequence(before.events_recorded.0 + 1));
    assert_eq!((after.newest, state()), (before.newest, SessionState::Open(2)));
    record(&fixture, session, &[]).unwrap();
    assert_eq!(position(), after);
    fixture.engine.archive_session(session).unwrap();
    assert_eq!(state(), SessionState::Archived(2));
    fixture.engine.delete_session(session).unwrap();
    assert_eq!(state(), SessionState::Gone);
    assert_eq!(position().events_recorded, Sequence(after.events_recorded.0 + 2));
}

#[test]
fn old_events_are_pruned_and_their_numbers_stay_taken() {
    let limits = Limits { events_kept_for: Duration::from_mins(1), ..Limits::default() };
    let fixture = fixture_with(limits);
    let session = session(&fixture);
    record(&fixture, session, &["one", "two"]).unwrap();
    fixture.clock.advance(Duration::from_secs(50));
    record(&fixture, session, &["three"]).unwrap();
    fixture.clock.advance(Duration::from_secs(20));
    assert_eq!(fixture.engine.prune().unwrap().events_count, 2);
    assert_eq!(bodies(&fixture, session), ["three"]);
    fixture.clock.advance(Duration::from_mins(1));
    assert_eq!(fixture.engine.prune().unwrap().events_count, 1);
    assert_eq!(record(&fixture, session, &["four"]).unwrap(), [4]);
    let usage = fixture.engine.event_usage(session).unwrap();
    assert_eq!(usage, EventUsage { newest: 4, events_count: 1, size_bytes: 4, ..usage });
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn a_redaction_by_content_finds_events_also_behind_escapes() {
    let fixture = fixture();
    let (first, second) = (session(&fixture), session(&fixture));
    let written = r#"{"text":"the key is\n\"hunter2\""}"#;
    record(&fixture, first, &["hunter2", "harmless", written]).unwrap();
    record(&fixture, second, &["also harmless"]).unwrap();
    let pattern = Pattern::text("is\n\"hunter2\"").unwrap();
    let selection = Selection { pattern: Some(pattern), ..Selection::default() };
    let scope = Scope::all(fixture.workspace);
    let plan = fixture.engine.plan_redaction(&scope, &selection, Heads::Refuse).unwrap();
    assert_eq!((plan.events_count(), plan.hits_count()), (1, 1));
    assert_eq!(plan.sessions[0].events, [3]);
    let pattern = Pattern::text("hunter2").unwrap();
    let selection = Selection { pattern: Some(pattern), ..Selection::default() };
    let receipt =
        fixture.engine.redact_selected(&actor(), &scope, &selection, &Terms::default()).unwrap();
    assert_eq!((receipt.events_count, receipt.sessions.as_slice()), (2, &[first][..]));
    assert_eq!(receipt.proof.unwrap().hits_left, Some(0));
    assert_eq!(bodies(&fixture, first), ["-", "harmless", "-"]);
    assert_eq!(bodies(&fixture, second), ["also harmless"]);
    let redaction = events(&fixture, first)[0].redaction.clone().unwrap();
    assert_eq!(redaction.by, actor());
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

/// Events are not in the feed, so a plan that was made before the transaction must not miss them.
#[test]
fn an_event_that_comes_between_plan_and_redaction_is_redacted_too() {
    let fixture = fixture();
    let session = session(&fixture);
    record(&fixture, session, &["hunter2"]).unwrap();
    let engine = fixture.engine.clone();
    let has_recorded = std::sync::atomic::AtomicBool::new(false);
    let matcher = move |text: &str| {
        // The first search is that of the plan, outside of the transaction.
        if text == "hunter2" && !has_recorded.swap(true, std::sync::atomic::Ordering::SeqCst) {
            let late = [said("hunter2 again")];
            std::thread::scope(|scope| {
                scope.spawn(|| engine.record_events(&actor(), session, &late).unwrap());
            });
        }
        text.match_indices("hunter2").map(|(at, it)| at..at + it.len()).collect()
    };
    let pattern = Pattern::matcher(&matcher, "a word").unwrap();
    let selection = Selection { pattern: Some(pattern), ..Selection::default() };
    let scope = Scope::all(fixture.workspace);
    let receipt =
        fixture.engine.redact_selected(&actor(), &scope, &selection, &Terms::default()).unwrap();
    assert_eq!(receipt.events_count, 2);
    assert_eq!(bodies(&fixture, session), ["-", "-"]);
}

#[test]
fn a_redaction_by_author_takes_the_events_of_the_session() {
    let fixture = fixture();
    let (guilty, other) = (session(&fixture), session(&fixture));
    record(&fixture, guilty, &["one"]).unwrap();
    record(&fixture, other, &["two"]).unwrap();
    let by_guilty = [said("three")];
    fixture.engine.record_events(&Actor::Session(guilty), other, &by_guilty).unwrap();
    let selection = Selection { actors: vec![Actor::Session(guilty)], ..Selection::default() };
    let scope = Scope::all(fixture.workspace);
    let redact = || fixture.engine.redact_selected(&actor(), &scope, &selection, &Terms::default());
    assert_eq!(redact().unwrap().events_count, 2);
    assert_eq!(bodies(&fixture, guilty), ["-"]);
    assert_eq!(bodies(&fixture, other), ["two", "-"]);
    assert_eq!(kind(redact()), ErrorKind::NotFound);
}

#[test]
fn an_agent_gets_a_version_with_each_change_and_an_environment_does_not() {
    let fixture = fixture();
    let engine = &fixture.engine;
    let first = agent(&fixture, "reviewer", "{}");
    let change = |body: &str| {
        let after = content("reviewer", body);
        engine.change_definition(first.id, |_| Ok(after.clone())).unwrap()
    };
    assert_eq!(change("{}").version, 1, "nothing changed");
    let second = change("{\"system\":\"be kind\"}");
    assert_eq!((second.version, second.created_at), (2, first.created_at));
    assert_eq!(engine.definition_version(first.id, 1).unwrap(), first);
    assert_eq!(engine.definition(first.id).unwrap(), second);
    assert_eq!(kind(engine.definition_version(first.id, 3)), ErrorKind::NotFound);
    assert_eq!(engine.definition_versions(first.id, None, 1).unwrap().next, Some(2));
    let archived = engine.archive_definition(first.id).unwrap();
    assert_eq!((archived.version, engine.archive_definition(first.id).unwrap()), (2, archived));
    let refused = engine.change_definition(first.id, |_| Ok(content("b", "")));
    assert_eq!(kind(refused), ErrorKind::InvalidInput);

    let place = DefinitionKind::Environment;
    let place =
        engine.create_definition(fixture.workspace, place, &content("cloud", "{}")).unwrap();
    let moved = engine.change_definition(place.id, |_| Ok(content("here", "{}"))).unwrap();
    assert_eq!((moved.version, moved.name.as_str()), (1, "here"));
    engine.delete_definition(place.id).unwrap();
    assert_eq!(kind(engine.definition(place.id)), ErrorKind::NotFound);
}

#[test]
fn a_workspace_has_so_many_agents_with_so_many_versions() {
    let limits = Limits {
        definitions_per_workspace_max: 1,
        versions_per_agent_max: 2,
        definition_size_bytes_max: 4,
        ..Limits::default()
    };
    let fixture = fixture_with(limits);
    let engine = &fixture.engine;
    let first = agent(&fixture, "a", "1");
    let create = |kind, body| {
        engine.create_definition(fixture.workspace, kind, &content("b", body)).map(drop)
    };
    assert_eq!(kind(create(DefinitionKind::Agent, "")), ErrorKind::LimitReached);
    assert_eq!(kind(create(DefinitionKind::Environment, "12345")), ErrorKind::LimitReached);
    create(DefinitionKind::Environment, "1234").unwrap();
    let change = |body: &str| {
        let after = content("a", body);
        engine.change_definition(first.id, |_| Ok(after.clone())).map(drop)
    };
    assert_eq!(kind(change("12345")), ErrorKind::LimitReached);
    change("2").unwrap();
    assert_eq!(kind(change("3")), ErrorKind::LimitReached);
    let query = DefinitionQuery {
        workspace: fixture.workspace,
        kind: DefinitionKind::Agent,
        archived: Archived::Hide,
        created: Span::default(),
        before: None,
        limit: 10,
    };
    assert_eq!(engine.definitions(&query).unwrap().items.len(), 1);
}

#[test]
fn archived_agents_make_room_for_new_ones() {
    let limits = Limits { definitions_per_workspace_max: 3, ..Limits::default() };
    let fixture = fixture_with(limits);
    let engine = &fixture.engine;
    // One that is used, and others that come and go, as a pipeline makes them.
    let kept = agent(&fixture, "kept", "{}");
    let mut passing = Vec::new();
    for number in 0..20 {
        let one = agent(&fixture, &format!("run {number}"), "{}");
        fixture.clock.advance(Duration::from_secs(1));
        engine.archive_definition(one.id).unwrap();
        passing.push(one.id);
    }
    assert!(engine.definition(kept.id).is_ok());
    let left: Vec<_> = passing.iter().filter(|id| engine.definition(**id).is_ok()).collect();
    assert_eq!(left, [&passing[18], &passing[19]], "the last ones");
    // What is not archived stays, and says so.
    agent(&fixture, "two", "{}");
    agent(&fixture, "three", "{}");
    let refused =
        engine.create_definition(fixture.workspace, DefinitionKind::Agent, &content("four", "{}"));
    let error = refused.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::LimitReached);
    assert!(error.hint().unwrap().contains("archive agents"), "{error:?}");
}

#[test]
fn all_agents_and_environments_together_have_a_size() {
    let limits = Limits { workspace_definitions_size_bytes_max: 100, ..Limits::default() };
    let fixture = fixture_with(limits);
    let engine = &fixture.engine;
    let body = |letter: &str| letter.repeat(40);
    let first = agent(&fixture, "a", &body("a"));
    let change =
        |body: String| engine.change_definition(first.id, |_| Ok(content("a", &body))).map(drop);
    change(body("b")).unwrap();
    assert_eq!(kind(change(body("c"))), ErrorKind::LimitReached);
    let place = DefinitionKind::Environment;
    let create = || engine.create_definition(fixture.workspace, place, &content("e", &body("e")));
    assert_eq!(kind(create()), ErrorKind::LimitReached);
    // With all of its versions, an archived one makes room.
    engine.archive_definition(first.id).unwrap();
    create().unwrap();
    assert_eq!(kind(engine.definition(first.id)), ErrorKind::NotFound);
}

#[test]
fn a_redaction_reaches_every_version_of_an_agent() {
    let fixture = fixture();
    let engine = &fixture.engine;
    let first = agent(&fixture, "hunter2", r#"{"system":"say hunter2"}"#);
    let plain = content("plain", r#"{"system":"say nothing"}"#);
    engine.change_definition(first.id, |_| Ok(plain.clone())).unwrap();
    let pattern = Pattern::text("hunter2").unwrap();
    let selection = Selection { pattern: Some(pattern), ..Selection::default() };
    let scope = Scope::all(fixture.workspace);
    let receipt = engine.redact_selected(&actor(), &scope, &selection, &Terms::default()).unwrap();
    assert_eq!(receipt.definitions_count, 1);
    let cut = engine.definition_version(first.id, 1).unwrap();
    assert_eq!(cut.body.as_str(), r#"{"system":"say [redacted]"}"#);
    assert_eq!(cut.name.as_str(), "[redacted]");
    let newest = engine.definition(first.id).unwrap();
    assert_eq!((newest.version, newest.name.as_str()), (2, "plain"));
    assert_eq!(receipt.proof.unwrap().hits_left, Some(0));
}

/// A clock that was wrong once must not keep sessions from being recorded.
#[test]
fn moments_of_events_never_go_back() {
    let fixture = fixture();
    let session = session(&fixture);
    record(&fixture, session, &["one"]).unwrap();
    let first = events(&fixture, session)[0].at;
    fixture.clock.set(Timestamp::from_micros(first.as_micros() - 1_000_000));
    record(&fixture, session, &["two"]).unwrap();
    let events = events(&fixture, session);
    assert_eq!(events[1].at, first.next());
}
