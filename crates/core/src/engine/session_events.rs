//! The events of sessions: recorded in order, never changed, read back page by page.

use crate::backend::{Reader, Sequence, SessionEventQuery};
use crate::model::{
    Actor, Content, EventId, EventType, EventUsage, Id as _, Session, SessionEvent, SessionId,
    Timestamp,
};
use crate::settings::Limits;
use crate::{Error, ErrorKind};

use super::transaction::Ledger;
use super::{Engine, Page};

/// Counts the transactions that recorded or removed events, so that followers of sessions know when to
/// look. Events are not in the feed, which has changes of stores only.
const EVENTS_CURSOR: &str = "session_events";

/// How many events one call records.
pub const EVENTS_PER_CALL_MAX: usize = 1_000;

/// An event to record.
#[derive(Clone, Debug)]
pub struct NewSessionEvent {
    /// What kind of event it is.
    pub kind: EventType,
    /// What it says, which the engine does not read.
    pub body: Content,
}

/// What a follower of a session has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// It takes events; this is the number of the newest.
    Open(u64),
    /// It is archived and takes no further events; this is the number of the newest.
    Archived(u64),
    /// It does not exist any more.
    Gone,
}

impl Engine {
    /// Records events of a session in this order: all of them, or none.
    pub fn record_events(
        &self,
        actor: &Actor,
        session: SessionId,
        events: &[NewSessionEvent],
    ) -> Result<Vec<SessionEvent>, Error> {
        self.require_event_sizes(events)?;
        self.write(|ledger| {
            ledger.writer.read_session_ahead(session)?;
            let session = open_session(ledger.reader(), session)?;
            self.record_in(ledger, actor, &session, events)
        })
    }

    /// Records events inside a transaction.
    pub(super) fn record_in(
        &self,
        ledger: &mut Ledger<'_>,
        actor: &Actor,
        session: &Session,
        events: &[NewSessionEvent],
    ) -> Result<Vec<SessionEvent>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let recorded = recorded(ledger, actor, session, events)?;
        require_room(ledger.reader(), session, &recorded, &self.limits)?;
        for event in &recorded {
            ledger.writer.add_session_event(event)?;
        }
        ledger.count_events()?;
        Ok(recorded)
    }

    /// Returns the events of a session that the query selects.
    pub fn session_events(
        &self,
        session: SessionId,
        query: &SessionEventQuery,
    ) -> Result<Page<SessionEvent, u64>, Error> {
        self.read(|reader| {
            let more = SessionEventQuery { limit: query.limit.saturating_add(1), ..query.clone() };
            let events = reader.session_events(session, &more)?;
            Ok(Page::cut(events, query.limit, |event| event.number))
        })
    }

    /// Returns how much is kept of the events of a session.
    pub fn event_usage(&self, session: SessionId) -> Result<EventUsage, Error> {
        self.read(|reader| reader.event_usage(session))
    }

    /// Returns how far each of these sessions is, on one snapshot.
    pub fn session_states(&self, sessions: &[SessionId]) -> Result<Vec<SessionState>, Error> {
        self.read(|reader| sessions.iter().map(|id| session_state(reader, *id)).collect())
    }

    pub(super) fn require_event_sizes(&self, events: &[NewSessionEvent]) -> Result<(), Error> {
        if events.len() > EVENTS_PER_CALL_MAX {
            return Err(Error::invalid(format!(
                "at most {EVENTS_PER_CALL_MAX} events are recorded at once, not {}",
                events.len()
            )));
        }
        let size_bytes_max = self.limits.event_size_bytes_max;
        let too_large = events.iter().find(|event| event.body.size_bytes() > size_bytes_max);
        too_large.map_or(Ok(()), |event| {
            let message = format!(
                "an event of {} bytes is too large: at most {size_bytes_max} are kept",
                event.body.size_bytes()
            );
            Err(Error::new(ErrorKind::LimitReached, message)
                .with_hint("split it, or raise `event_size_bytes_max` in `[limits]`"))
        })
    }
}

impl Ledger<'_> {
    /// Counts that events were recorded or removed, so that followers look.
    pub(super) fn count_events(&mut self) -> Result<(), Error> {
        let count = events_recorded(self.reader())?;
        self.writer.put_cursor(EVENTS_CURSOR, Sequence(count.0 + 1))
    }
}

pub(super) fn events_recorded(reader: &dyn Reader) -> Result<Sequence, Error> {
    Ok(reader.cursor(EVENTS_CURSOR)?.unwrap_or_default())
}

fn session_state(reader: &dyn Reader, id: SessionId) -> Result<SessionState, Error> {
    let Some(session) = reader.session(id)? else { return Ok(SessionState::Gone) };
    let newest = reader.event_usage(id)?.newest;
    Ok(match session.archived_at {
        None => SessionState::Open(newest),
        Some(_) => SessionState::Archived(newest),
    })
}

fn open_session(reader: &dyn Reader, id: SessionId) -> Result<Session, Error> {
    let found = reader.session(id)?;
    let session = found.ok_or_else(|| super::sessions::no_session(id))?;
    if session.archived_at.is_some() {
        return Err(Error::invalid(format!("the session `{id}` is archived"))
            .with_hint("start a new session; what was recorded stays"));
    }
    Ok(session)
}

/// Gives events their numbers and moments.
fn recorded(
    ledger: &Ledger<'_>,
    actor: &Actor,
    session: &Session,
    events: &[NewSessionEvent],
) -> Result<Vec<SessionEvent>, Error> {
    let usage = ledger.reader().event_usage(session.id)?;
    let mut newest_at = usage.newest_at.unwrap_or(Timestamp::MIN);
    let now = ledger.moment()?;
    let numbers = usage.newest + 1..;
    Ok(numbers
        .zip(events)
        .map(|(number, event)| {
            // The order of the moments is that of the numbers, also when the clock stands still.
            let at = now.max(newest_at.next());
            newest_at = at;
            SessionEvent {
                id: EventId::new(at, ledger.random()),
                session: session.id,
                number,
                at,
                kind: event.kind.clone(),
                actor: actor.clone(),
                size_bytes: event.body.size_bytes(),
                body: Some(event.body.clone()),
                redaction: None,
            }
        })
        .collect())
}

/// Fails if a limit would be passed.
fn require_room(
    reader: &dyn Reader,
    session: &Session,
    events: &[SessionEvent],
    limits: &Limits,
) -> Result<(), Error> {
    let usage = reader.event_usage(session.id)?;
    let events_count = u64::try_from(events.len()).unwrap_or(u64::MAX);
    let size_bytes: u64 = events.iter().map(|event| event.size_bytes).sum();
    let refused = |what: &str, max: u64, setting: &str| {
        Err(Error::new(ErrorKind::LimitReached, format!("{what} {max}, which is the limit"))
            .with_hint(format!(
                "old events are pruned after `events_kept_days`; or raise `{setting}` in `[limits]`"
            )))
    };
    if usage.events_count.saturating_add(events_count) > limits.events_per_session_max {
        let max = limits.events_per_session_max;
        return refused(
            "the number of events of the session would pass",
            max,
            "events_per_session_max",
        );
    }
    if usage.size_bytes.saturating_add(size_bytes) > limits.session_events_size_bytes_max {
        let max = limits.session_events_size_bytes_max;
        let what = "the bytes of the events of the session would pass";
        return refused(what, max, "session_events_size_bytes_max");
    }
    let in_workspace = reader.events_size_bytes(session.workspace)?;
    if in_workspace.saturating_add(size_bytes) > limits.workspace_events_size_bytes_max {
        let max = limits.workspace_events_size_bytes_max;
        let what = "the bytes of the events of all sessions would pass";
        return refused(what, max, "workspace_events_size_bytes_max");
    }
    Ok(())
}
