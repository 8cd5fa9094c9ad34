//! Agents and environments, and the events of sessions.

use std::slice;

use quipu_core::backend::{Archived, DefinitionQuery, Order, SessionEventQuery, Span};
use quipu_core::model::{
    Content, Definition, DefinitionId, DefinitionKind, EventId, EventType, EventUsage, Id as _,
    Metadata, Name, Redaction, Session, SessionEvent, View,
};

use super::{Fixture, Rows};

fn definition(kind: DefinitionKind, number: i64) -> Definition {
    let label = ("team".to_owned(), format!("\"{number}\""));
    Definition {
        id: DefinitionId::new(kind, Rows::at(number), 8),
        version: 1,
        workspace: Rows::workspace(1).id,
        name: Name::new(format!("{kind} {number}")).expect("a valid name"),
        metadata: Metadata::new([label].into()).expect("a short pair"),
        body: Content::new(format!("{{\"number\": {number}}}")).expect("no NUL"),
        created_at: Rows::at(number),
        updated_at: Rows::at(number),
        archived_at: None,
    }
}

fn agent(number: i64) -> Definition {
    definition(DefinitionKind::Agent, number)
}

fn next(before: &Definition, at: i64) -> Definition {
    Definition {
        version: before.version + 1,
        body: Content::new(format!("changed at {at}")).expect("no NUL"),
        updated_at: Rows::at(at),
        ..before.clone()
    }
}

fn all(kind: DefinitionKind) -> DefinitionQuery {
    DefinitionQuery {
        workspace: Rows::workspace(1).id,
        kind,
        archived: Archived::Show,
        created: Span::default(),
        before: None,
        limit: 100,
    }
}

/// "Adds a version of a definition, or replaces the one with the same number." "Returns the newest version
/// of a definition." "Returns at most `limit` versions of a definition, the newest first."
pub fn a_definition_is_read_back_in_all_of_its_versions(fixture: &Fixture) {
    fixture.with_stores(&[]);
    let first = agent(1);
    let (second, third) = (next(&first, 5), next(&next(&first, 5), 6));
    let archived = Definition { archived_at: Some(Rows::at(9)), ..third.clone() };
    let cut = Definition { body: Content::new("cut").expect("no NUL"), ..second.clone() };
    let environment = definition(DefinitionKind::Environment, 1);
    fixture.write(|writer| {
        for definition in [&first, &second, &third, &archived, &cut, &agent(2), &environment] {
            writer.put_definition(definition)?;
        }
        Ok(())
    });
    assert_eq!(fixture.read(|reader| reader.definition(first.id)), Some(archived.clone()));
    assert_eq!(fixture.read(|reader| reader.definition(environment.id)), Some(environment));
    assert_eq!(fixture.read(|reader| reader.definition(agent(7).id)), None);
    let versions =
        |before, limit| fixture.read(|reader| reader.definition_versions(first.id, before, limit));
    assert_eq!(versions(None, 10), [archived.clone(), cut.clone(), first.clone()]);
    assert_eq!(versions(None, 2), [archived, cut]);
    assert_eq!(versions(Some(2), 10), slice::from_ref(&first));
    assert_eq!(versions(Some(1), 10), []);
}

/// "Returns the newest version of each definition that the query selects, the newest definition first."
/// "Returns how many definitions of a kind a workspace has, archived ones among them."
pub fn definitions_come_newest_first_and_are_selected(fixture: &Fixture) {
    fixture.with_stores(&[]);
    let other = Rows::workspace(2);
    let changed = next(&agent(1), 7);
    let archived = Definition { archived_at: Some(Rows::at(9)), ..agent(3) };
    let foreign = Definition { workspace: other.id, ..agent(4) };
    let environment = definition(DefinitionKind::Environment, 5);
    fixture.write(|writer| {
        writer.put_workspace(&other)?;
        for definition in [&agent(1), &changed, &agent(2), &archived, &foreign, &environment] {
            writer.put_definition(definition)?;
        }
        Ok(())
    });
    let list = |query: DefinitionQuery| fixture.read(|reader| reader.definitions(&query));
    let agents = all(DefinitionKind::Agent);
    assert_eq!(list(agents.clone()), [archived.clone(), agent(2), changed.clone()]);
    assert_eq!(list(all(DefinitionKind::Environment)), [environment]);
    let live = DefinitionQuery { archived: Archived::Hide, ..agents.clone() };
    assert_eq!(list(live), [agent(2), changed.clone()]);
    assert_eq!(list(DefinitionQuery { limit: 1, ..agents.clone() }), slice::from_ref(&archived));
    let rest = DefinitionQuery { before: Some(archived.id), ..agents.clone() };
    assert_eq!(list(rest), [agent(2), changed.clone()]);
    let created = Span { first: Rows::at(2), last: Rows::at(2) };
    assert_eq!(list(DefinitionQuery { created, ..agents }), [agent(2)]);
    let count = |workspace, kind| fixture.read(|reader| reader.definitions_count(workspace, kind));
    let home = Rows::workspace(1).id;
    assert_eq!(count(home, DefinitionKind::Agent), 3);
    assert_eq!(count(home, DefinitionKind::Environment), 1);
    assert_eq!(count(other.id, DefinitionKind::Agent), 1);
    // All versions of all kinds, archived ones among them.
    let size = |workspace| fixture.read(|reader| reader.definitions_size_bytes(workspace));
    let own = [agent(1), changed, agent(2), archived, definition(DefinitionKind::Environment, 5)];
    assert_eq!(size(home), own.iter().map(|it| it.body.size_bytes()).sum::<u64>());
    assert_eq!(size(other.id), foreign.body.size_bytes());
    assert_eq!(size(Rows::workspace(3).id), 0);
}

/// "Removes a definition with all of its versions."
pub fn a_removed_definition_is_gone_in_all_of_its_versions(fixture: &Fixture) {
    fixture.with_stores(&[]);
    fixture.write(|writer| {
        writer.put_definition(&agent(1))?;
        writer.put_definition(&next(&agent(1), 5))?;
        writer.put_definition(&agent(2))?;
        writer.remove_definition(agent(1).id)
    });
    fixture.read(|reader| {
        assert_eq!(reader.definition(agent(1).id)?, None);
        assert_eq!(reader.definition_versions(agent(1).id, None, 10)?, []);
        assert_eq!(reader.definitions(&all(DefinitionKind::Agent))?, [agent(2)]);
        Ok(())
    });
}

/// Returns the event of a session with this number. Its moment is that of the change with this number.
fn event(session: &Session, number: u64, kind: &str, text: &str) -> SessionEvent {
    let body = Content::new(text).expect("no NUL");
    SessionEvent {
        id: EventId::new(Rows::moment(number), 9),
        session: session.id,
        number,
        at: Rows::moment(number),
        kind: EventType::new(kind).expect("a valid type"),
        actor: Rows::actor("ada"),
        size_bytes: body.size_bytes(),
        body: Some(body),
        redaction: None,
    }
}

fn record(fixture: &Fixture, sessions: &[&Session], events: &[&SessionEvent]) {
    fixture.with_stores(&[]);
    fixture.write(|writer| {
        sessions.iter().try_for_each(|session| writer.put_session(session))?;
        for event in events {
            writer.read_session_ahead(event.session)?;
            writer.add_session_event(event)?;
        }
        Ok(())
    });
}

/// "Returns the events of a session that the query selects, in its order."
pub fn events_are_read_back_and_selected_in_both_orders(fixture: &Fixture) {
    let (session, other) = (Rows::session(1, &[]), Rows::session(2, &[]));
    let sent = event(&session, 1, "user.message", "{\"text\": \"ünï\"}");
    let said = event(&session, 2, "agent.message", "two");
    let redaction = Redaction { at: Rows::at(9), by: Rows::actor("bob") };
    let redacted = SessionEvent {
        body: None,
        size_bytes: 0,
        redaction: Some(redaction),
        ..event(&session, 3, "user.message", "")
    };
    let foreign = event(&other, 1, "user.message", "elsewhere");
    record(fixture, &[&session, &other], &[&sent, &said, &redacted, &foreign]);
    let list =
        |query: SessionEventQuery| fixture.read(|reader| reader.session_events(session.id, &query));
    let oldest = SessionEventQuery::after(0, 10);
    let newest = SessionEventQuery { order: Order::NewestFirst, after: None, ..oldest.clone() };
    assert_eq!(list(oldest.clone()), [sent.clone(), said.clone(), redacted.clone()]);
    assert_eq!(list(newest.clone()), [redacted.clone(), said.clone(), sent.clone()]);
    assert_eq!(list(SessionEventQuery::after(1, 1)), slice::from_ref(&said));
    let before = SessionEventQuery { after: Some(3), limit: 1, ..newest };
    assert_eq!(list(before), slice::from_ref(&said));
    let kinds = vec![said.kind.clone(), EventType::new("span.end").expect("a valid type")];
    assert_eq!(list(SessionEventQuery { kinds, ..oldest.clone() }), slice::from_ref(&said));
    let recorded = Span { first: said.at, last: redacted.at };
    assert_eq!(list(SessionEventQuery { recorded, ..oldest.clone() }), [said, redacted]);
    let basic = list(SessionEventQuery { view: View::Basic, limit: 1, ..oldest });
    assert_eq!(basic, [SessionEvent { body: None, ..sent }]);
}

/// "A session that does not exist has no events, and its usage is zero."
pub fn an_absent_session_has_no_events(fixture: &Fixture) {
    let session = Rows::session(1, &[]);
    fixture.read(|reader| {
        assert_eq!(reader.session_events(session.id, &SessionEventQuery::after(0, 10))?, []);
        assert_eq!(reader.event_usage(session.id)?, EventUsage::default());
        assert_eq!(reader.events_size_bytes(Rows::workspace(1).id)?, 0);
        Ok(())
    });
}

/// "Takes the body out of an event, sets its size to 0 and records who did it. The usage follows."
pub fn a_redacted_event_keeps_its_number_and_loses_its_body(fixture: &Fixture) {
    let session = Rows::session(1, &[]);
    let (first, second) = (event(&session, 1, "a", "secret"), event(&session, 2, "b", "open"));
    record(fixture, &[&session], &[&first, &second]);
    let redaction = Redaction { at: Rows::at(9), by: Rows::actor("bob") };
    fixture.write(|writer| {
        writer.redact_session_event(session.id, 1, &redaction)?;
        writer.redact_session_event(session.id, 7, &redaction)
    });
    let left = SessionEvent {
        body: None,
        size_bytes: 0,
        redaction: Some(redaction.clone()),
        ..first.clone()
    };
    fixture.read(|reader| {
        let events = reader.session_events(session.id, &SessionEventQuery::after(0, 10))?;
        assert_eq!(events, [left.clone(), second.clone()]);
        let usage = reader.event_usage(session.id)?;
        let newest_at = Some(second.at);
        let expected = EventUsage { newest: 2, newest_at, events_count: 2, size_bytes: 4 };
        assert_eq!(usage, expected);
        assert_eq!(reader.events_size_bytes(session.workspace)?, 4);
        Ok(())
    });
}

/// "Removes at most `limit` events of any session that were recorded before a moment … Of each session the
/// oldest are removed first." "The newest number and its moment stay when the event is pruned."
pub fn old_events_are_pruned_and_their_numbers_are_not_reused(fixture: &Fixture) {
    let (session, other) = (Rows::session(1, &[]), Rows::session(2, &[]));
    let events: Vec<_> = (1..=3).map(|number| event(&session, number, "a", "four")).collect();
    let foreign = event(&other, 2, "a", "seven");
    let all: Vec<_> = events.iter().chain([&foreign]).collect();
    record(fixture, &[&session, &other], &all);
    let mut counts = [0; 3];
    for count in &mut counts {
        fixture.write(|writer| {
            *count = writer.prune_session_events(Rows::at(3), 2)?;
            Ok(())
        });
    }
    assert_eq!(counts, [2, 1, 0]);
    fixture.read(|reader| {
        let query = SessionEventQuery::after(0, 10);
        assert_eq!(reader.session_events(session.id, &query)?, events[2..]);
        assert_eq!(reader.session_events(other.id, &query)?, []);
        let usage = reader.event_usage(other.id)?;
        assert_eq!(usage, EventUsage { newest: 2, newest_at: Some(foreign.at), ..usage });
        assert_eq!((usage.events_count, usage.size_bytes), (0, 0));
        assert_eq!(reader.events_size_bytes(session.workspace)?, 4);
        Ok(())
    });
}

/// "Removes a session with its events." The same holds for sessions that are pruned.
pub fn events_are_removed_with_their_session(fixture: &Fixture) {
    let removed = Session { token: None, ..Rows::session(1, &[]) };
    let pruned = Session { token: None, ..Rows::session(2, &[]) };
    let stays = Rows::session(300, &[]);
    let events: Vec<_> =
        [&removed, &pruned, &stays].map(|session| event(session, 1, "a", "four")).into();
    record(fixture, &[&removed, &pruned, &stays], &events.iter().collect::<Vec<_>>());
    fixture.write(|writer| {
        writer.remove_session(removed.id)?;
        writer.prune_sessions(Rows::at(100), 10).map(drop)
    });
    fixture.read(|reader| {
        for session in [&removed, &pruned] {
            assert_eq!(reader.session(session.id)?, None);
            assert_eq!(reader.event_usage(session.id)?, EventUsage::default());
            let events = reader.session_events(session.id, &SessionEventQuery::after(0, 10))?;
            assert_eq!(events, []);
        }
        assert_eq!(reader.event_usage(stays.id)?.events_count, 1);
        assert_eq!(reader.events_size_bytes(stays.workspace)?, 4);
        Ok(())
    });
    assert_eq!(fixture.backend.verify().expect("it verifies"), Vec::<String>::new());
}

/// "Recomputes … the usage of every session and workspace by events."
pub fn rebuilding_keeps_the_usage_of_sessions_right(fixture: &Fixture) {
    let session = Rows::session(1, &[]);
    record(fixture, &[&session], &[&event(&session, 1, "a", "four")]);
    let usage = || fixture.read(|reader| reader.event_usage(session.id));
    let before = usage();
    fixture.backend.rebuild().expect("it rebuilds");
    assert_eq!(usage(), before);
    assert_eq!(fixture.read(|reader| reader.events_size_bytes(session.workspace)), 4);
}
