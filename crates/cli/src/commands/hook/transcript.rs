//! Transcripts of hosts, recorded as events of a session.
//!
//! A host writes a line for each message. What is new since the last time is recorded when the agent
//! stops, before its context is compacted and at the end, so that little is left for the end. Credentials
//! are taken out first: a transcript has what a person has typed and what commands have printed.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

use quipu_core::engine::NewSessionEvent;
use serde_json::{Value, json};

use super::input::Input;
use super::recording::{Recorder, event};
use super::state::Locked;
use super::{Hook, log, state};
use crate::failure::Failure;

/// How long a hook records; the rest is left to the next one. The deadline of the process is later.
const TIME_MAX: Duration = Duration::from_millis(500);

/// How much of a line is recorded.
const LINE_SIZE_BYTES_MAX: usize = 64 * 1024;

/// How much of a line is read and screened. More than is recorded: a credential that begins in what is
/// recorded is seen to its end. The rest of the line, such as a picture, is passed over.
const LINE_READ_BYTES_MAX: usize = 256 * 1024;

/// How many lines are recorded in one transaction, and how much text.
const BATCH_LINES_MAX: usize = 200;
const BATCH_SIZE_BYTES_MAX: usize = 1024 * 1024;

/// Records what is new, if the settings say so. A failure is written down and nothing else: the answer of
/// the hook does not depend on it.
pub(super) fn record(hook: &Hook<'_>, input: &Input) {
    if !hook.context.settings.hooks.transcript {
        return;
    }
    if let Err(failure) = try_record(hook, input) {
        log::failure(&hook.context.settings.data, Some(input), &failure);
    }
}

fn try_record(hook: &Hook<'_>, input: &Input) -> Result<(), Failure> {
    let Some(data) = hook.open()? else { return Ok(()) };
    let Some(mut locked) = state::lock(hook, input) else { return Ok(()) };
    let recorder = Recorder::of(&data, (input.host_name(), &input.session));
    Transcript { recorder, input }.record(&mut locked)
}

struct Transcript<'a> {
    recorder: Recorder<'a>,
    input: &'a Input,
}

/// The lines of a transcript that the host may still be writing.
struct Lines {
    file: BufReader<File>,
    /// Where the next line begins.
    end: u64,
}

impl Lines {
    /// Returns the beginning of the next complete line; `None` if there is none yet.
    fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let (mut line, mut length) = (Vec::new(), 0);
        loop {
            let chunk = self.file.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let break_at = chunk.iter().position(|byte| *byte == b'\n');
            let size = break_at.map_or(chunk.len(), |at| at + 1);
            let room = LINE_READ_BYTES_MAX.saturating_sub(line.len());
            line.extend(chunk.iter().take(size.min(room)));
            self.file.consume(size);
            length += u64::try_from(size).unwrap_or_default();
            if break_at.is_some() {
                self.end += length;
                return Ok(Some(line));
            }
        }
    }
}

impl Transcript<'_> {
    fn record(&self, locked: &mut Locked) -> Result<(), Failure> {
        let deadline = Instant::now() + TIME_MAX;
        let Some(path) = &self.input.transcript else { return Ok(()) };
        let file = match File::open(path) {
            Ok(file) => file,
            // The host may not have written it yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let length = file.metadata()?.len();
        if length < locked.state.transcript_offset {
            // It is another file now.
            locked.state.transcript_offset = 0;
        }
        let mut lines = Lines { file: BufReader::new(file), end: locked.state.transcript_offset };
        lines.file.seek(SeekFrom::Start(lines.end))?;
        while Instant::now() < deadline {
            let events = self.batch(&mut lines, deadline)?;
            if lines.end == locked.state.transcript_offset {
                break;
            }
            self.recorder.record(&mut locked.state, &events)?;
            locked.state.transcript_offset = lines.end;
            // At once: whoever ends this process must not make the next one record it again.
            locked.save();
        }
        Ok(())
    }

    /// Returns the events of the next lines.
    fn batch(&self, lines: &mut Lines, deadline: Instant) -> Result<Vec<NewSessionEvent>, Failure> {
        let (mut events, mut size_bytes) = (Vec::new(), 0);
        while events.len() < BATCH_LINES_MAX && size_bytes < BATCH_SIZE_BYTES_MAX {
            let Some(line) = lines.next()? else { break };
            size_bytes += line.len();
            events.extend(self.line_event(&String::from_utf8_lossy(&line)));
            if Instant::now() >= deadline {
                break;
            }
        }
        Ok(events)
    }

    fn line_event(&self, line: &str) -> Option<NewSessionEvent> {
        let line = line.trim();
        if line.is_empty() {
            return None;
        }
        // A line that was not read to its end is not JSON, but still screened and recorded.
        let parsed: Value = serde_json::from_str(line).unwrap_or_default();
        let screened = quipu_screen::redacted(line, &quipu_screen::findings(line));
        let kept = screened.get(..screened.floor_char_boundary(LINE_SIZE_BYTES_MAX));
        let body = json!({
            "host": self.input.host_name(),
            "kind": parsed.get("type").and_then(Value::as_str),
            "line": kept,
            "is_cut": screened.len() > LINE_SIZE_BYTES_MAX,
        });
        event("transcript.line", body)
    }
}
