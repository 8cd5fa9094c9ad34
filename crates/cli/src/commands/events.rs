//! `quipu events`.

use std::io::Write;
use std::time::Duration;

use quipu_core::backend::SessionEventQuery;
use quipu_core::engine::{Position, SessionState};
use quipu_core::model::{Content, SessionEvent};
use quipu_service::wire::{ListBody, RecordedEventBody, event_holds};

use crate::args::EventsArguments;
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{Form, answer, local};

/// How many events are read in one query.
const PAGE: usize = 64;

/// How long one wait for events lasts.
const WAIT: Duration = Duration::from_secs(10);

/// How much of an event is printed for people.
const SHOWN_CHARS_MAX: usize = 200;

pub(super) fn run(context: &Context, arguments: &EventsArguments) -> Result<(), Failure> {
    let data = context.open()?;
    data.engine.session(arguments.session)?;
    if arguments.follow {
        return follow(context, &data, arguments);
    }
    let mut events = Vec::new();
    for_each(&data, arguments, arguments.after, &mut |event| {
        events.push(event);
        Ok(())
    })?;
    let bodies = events.iter().map(RecordedEventBody::from).collect();
    answer(context.form, &ListBody::complete(bodies), |out| {
        events.iter().try_for_each(|event| show(out, event))
    })
}

/// Prints events as they are recorded: lines for people, or one JSON document per line.
fn follow(context: &Context, data: &Data, arguments: &EventsArguments) -> Result<(), Failure> {
    let mut position = Position::default();
    let mut reached = arguments.after;
    loop {
        // Before reading: what is recorded afterwards moves the position on.
        position = data.engine.wait_beyond(position, WAIT)?;
        let states = data.engine.session_states(&[arguments.session])?;
        reached = for_each(data, arguments, reached, &mut |event| {
            let mut out = anstream::stdout().lock();
            match context.form {
                Form::Text => show(&mut out, &event)?,
                Form::Json => {
                    serde_json::to_writer(&mut out, &RecordedEventBody::from(&event))?;
                    writeln!(out)?;
                }
            }
            out.flush()?;
            Ok(())
        })?;
        match states.first() {
            Some(SessionState::Open(_)) => {}
            Some(SessionState::Archived(_) | SessionState::Gone) | None => return Ok(()),
        }
    }
}

/// Calls `visit` with every selected event after a number, and returns the number of the last one.
fn for_each(
    data: &Data,
    arguments: &EventsArguments,
    after: u64,
    visit: &mut dyn FnMut(SessionEvent) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut query = SessionEventQuery {
        kinds: arguments.kinds.clone(),
        ..SessionEventQuery::after(after, PAGE)
    };
    let mut reached = after;
    loop {
        let page = data.engine.session_events(arguments.session, &query)?;
        for event in page.items {
            reached = event.number;
            let is_wanted = arguments.grep.as_ref().is_none_or(|text| event_holds(&event, text));
            if is_wanted {
                visit(event)?;
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(reached),
        }
    }
}

/// Prints an event on one line. What an agent wrote must not steer a terminal.
fn show(out: &mut dyn Write, event: &SessionEvent) -> std::io::Result<()> {
    let body = match (&event.body, &event.redaction) {
        (Some(body), _) => body.clone(),
        (None, Some(_)) => Content::new("(redacted)").unwrap_or_default(),
        (None, None) => Content::default(),
    };
    let is_visible = |character: char| !character.is_control();
    let mut text: String =
        body.as_str().chars().filter(|it| is_visible(*it)).take(SHOWN_CHARS_MAX).collect();
    if body.as_str().chars().nth(SHOWN_CHARS_MAX).is_some() {
        text.push('…');
    }
    writeln!(out, "{}  {}  {}  {text}", event.number, local(event.at), event.kind)
}
