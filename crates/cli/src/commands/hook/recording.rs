//! What hooks record in the database: events of a session that is named after the host's session.
//!
//! A hook that decides about a call does not wait for a writer. It puts the decision aside, and a hook that
//! may take its time moves it into the database: when the agent stops, before a compaction, at the end. If
//! that does not happen for long, a process of its own does it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use quipu_core::engine::{NewSession, NewSessionEvent, SessionToken};
use quipu_core::model::{Actor, Content, EventType, SessionId};
use quipu_core::{Error, ErrorKind};
use serde_json::{Value, json};

use super::input::Input;
use super::state::{self, State};
use super::{Hook, log};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::hook_files::{HookFiles, Moving, Room};
use crate::print::{answer, count};

/// How long a hook moves decisions; the rest is left to the next one.
const TIME_MAX: Duration = Duration::from_millis(500);

/// How many decisions are recorded in one transaction.
const BATCH: usize = 200;

/// Puts a decision aside.
pub(super) fn spool(hook: &Hook<'_>, files: &HookFiles, line: &Value) {
    if matches!(files.spool(line), Ok(Room::Plenty) | Err(_)) {
        return;
    }
    if let Err(failure) = start(hook) {
        let failure = failure.after("the decisions of hooks were to be recorded");
        log::failure(&hook.context.settings.data, None, &failure);
    }
}

/// Starts a process of its own, which goes on when this one has ended.
fn start(hook: &Hook<'_>) -> Result<(), Failure> {
    let mut record = Command::new(std::env::current_exe()?);
    record.arg("--data").arg(std::path::absolute(&hook.context.settings.data)?);
    record.args(["hook", "record"]).env_remove("QUIPU_SESSION");
    record.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    super::detached(&mut record).spawn()?;
    Ok(())
}

/// Moves what was put aside into the database. A failure is written down and nothing else: the answer of the
/// hook does not depend on it.
pub(super) fn move_spooled(hook: &Hook<'_>, input: &Input) {
    let files = HookFiles::of(&hook.context.settings.data);
    if !files.has_spooled() {
        return;
    }
    let moved = hook.open().and_then(|data| match data {
        Some(data) => moved(&data, &files, Some(Instant::now() + TIME_MAX)).map(drop),
        None => Ok(()),
    });
    if let Err(failure) = moved {
        log::failure(&hook.context.settings.data, Some(input), &failure);
    }
}

/// `quipu hook record`.
pub(super) fn record(context: &Context) -> Result<(), Failure> {
    let files = HookFiles::of(&context.settings.data);
    let moved_count = if files.has_spooled() { moved(&context.open()?, &files, None)? } else { 0 };
    answer(context.form, &json!({ "recorded": moved_count }), |out| {
        writeln!(out, "recorded {}", count(moved_count, "decision", "decisions"))
    })
}

/// Moves decisions until the deadline; returns how many.
fn moved(data: &Data, files: &HookFiles, deadline: Option<Instant>) -> Result<usize, Failure> {
    let Some(moving) = files.start_moving()? else { return Ok(0) };
    let mut moved_count = 0;
    // What an earlier one has begun comes alone, so there may be more behind it.
    loop {
        let lines = moving.lines()?;
        let count = lines.len();
        let left_count = move_lines(data, &moving, (lines, deadline))?;
        moved_count += count - left_count;
        if left_count > 0 || count == 0 {
            return Ok(moved_count);
        }
    }
}

/// Moves some decisions; returns how many are left.
fn move_lines(
    data: &Data,
    moving: &Moving,
    (mut left, deadline): (Vec<Value>, Option<Instant>),
) -> Result<usize, Failure> {
    let mut unmoved: Vec<Value> = Vec::new();
    while !left.is_empty() && deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let of = |line: &Value| ["host", "session"].map(|key| text(line, key).to_owned());
        let owner = left.first().map(of).unwrap_or_default();
        let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|line| of(line) == owner);
        left = others;
        let [host, session] = &owner;
        // Another hook of that session has it; the next one moves these.
        let Some(mut locked) = state::lock_of(moving.data(), (host, session)) else {
            unmoved.extend(own);
            continue;
        };
        let recorder = Recorder::of(data, (host, session));
        for batch in own.chunks(BATCH) {
            let events = batch.iter().filter_map(|line| event("rule.decision", line.clone()));
            recorder.record(&mut locked.state, &events.collect::<Vec<_>>())?;
            locked.save();
        }
        // At once: whoever ends this process must not make the next one record them again.
        let rest: Vec<_> = unmoved.iter().chain(&left).cloned().collect();
        moving.keep(&rest)?;
    }
    Ok(unmoved.len() + left.len())
}

fn text<'v>(line: &'v Value, key: &str) -> &'v str {
    line.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Records events of a host's session.
#[derive(Debug)]
pub(super) struct Recorder<'a> {
    data: &'a Data,
    host: &'a str,
    session: &'a str,
}

impl<'a> Recorder<'a> {
    pub(super) fn of(data: &'a Data, (host, session): (&'a str, &'a str)) -> Self {
        Self { data, host, session }
    }

    /// Records events in the session of this host's session, which is created with the first of them.
    pub(super) fn record(
        &self,
        state: &mut State,
        events: &[NewSessionEvent],
    ) -> Result<(), Failure> {
        if events.is_empty() {
            return Ok(());
        }
        if let Some(session) = state.session.as_deref().and_then(|id| id.parse().ok()) {
            match self.data.engine.record_events(&Actor::Session(session), session, events) {
                Ok(_) => return Ok(()),
                // Somebody has deleted it; what comes now belongs to a new one.
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let session = self.create()?;
        state.session = Some(session.to_string());
        self.data.engine.record_events(&Actor::Session(session), session, events)?;
        Ok(())
    }

    fn create(&self) -> Result<SessionId, Error> {
        let id: String = self.session.chars().take(80).collect();
        let title = format!("{} {id}", self.host);
        let new = NewSession::titled(title.trim(), Vec::new(), SessionToken::None);
        Ok(self.data.engine.create_session(self.data.workspace, &new)?.0.id)
    }
}

/// Returns an event; `None` if its text is too long for any.
pub(super) fn event(kind: &str, mut body: Value) -> Option<NewSessionEvent> {
    let fields = body.as_object_mut()?;
    fields.insert("type".to_owned(), json!(kind));
    let kind = EventType::new(kind).ok()?;
    Some(NewSessionEvent { kind, body: Content::new(body.to_string()).ok()? })
}
