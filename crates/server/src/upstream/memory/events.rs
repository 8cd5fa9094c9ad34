//! The events of a streamed answer, one by one.

use axum::body::Bytes;
use serde_json::Value;

use super::super::download::{Cut, Download, bad_gateway};
use super::super::watch::Watch;
use super::ANSWER_SIZE_BYTES_MAX;
use super::budget::Held;
use crate::answer::Failure;

/// The longest event: a block that the upstream has fetched from elsewhere is one event.
const EVENT_SIZE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// As it came, with the empty line at its end.
    pub(super) raw: Bytes,
    /// Its data; null if they are not JSON.
    pub(super) data: Value,
}

impl Event {
    fn new(raw: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(&raw);
        let data: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        let data = serde_json::from_str(&data.join("\n")).unwrap_or_default();
        Self { data, raw: raw.into() }
    }

    /// Makes an event of the API, whose name is the type of its data.
    pub(super) fn of(data: Value) -> Self {
        let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
        let raw = format!("event: {name}\ndata: {data}\n\n").into();
        Self { raw, data }
    }

    /// Returns what kind of event it is.
    pub(super) fn kind(&self) -> &str {
        self.data.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn index(&self) -> Option<u64> {
        self.data.get("index").and_then(Value::as_u64)
    }
}

/// Why there are no more events.
#[derive(Debug)]
pub(super) enum Stop {
    Cut(Cut),
    Failed(Failure),
}

/// Reads the events of a body.
#[derive(Debug)]
pub(super) struct Events<'h> {
    download: Download,
    buffer: Buffer,
    size_bytes: usize,
    /// Room for what is put together of them.
    held: &'h mut Held,
    held_before: usize,
}

impl<'h> Events<'h> {
    pub(super) fn new(download: Download, held: &'h mut Held) -> Self {
        let held_before = held.size_bytes();
        Self { download, buffer: Buffer::default(), size_bytes: 0, held, held_before }
    }

    /// Returns the next event; `None` at the end of the body.
    pub(super) async fn next(&mut self, watch: &mut Watch) -> Result<Option<Event>, Stop> {
        loop {
            if let Some(raw) = self.buffer.next() {
                return Ok(Some(Event::new(raw)));
            }
            let Some(chunk) = self.download.next(watch).await else { return Ok(None) };
            let chunk = chunk.map_err(Stop::Cut)?;
            self.size_bytes += chunk.len();
            self.held.grow_to(self.held_before + self.size_bytes).map_err(Stop::Failed)?;
            self.buffer.bytes.extend_from_slice(&chunk);
            let is_long = self.buffer.bytes.len() > EVENT_SIZE_BYTES_MAX.max(chunk.len());
            if is_long || self.size_bytes > ANSWER_SIZE_BYTES_MAX {
                return Err(Stop::Failed(bad_gateway("the answer of the upstream is too long")));
            }
        }
    }
}

/// Bytes that were read and not yet given out.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// How many of them were searched in vain for the end of an event.
    searched: usize,
}

impl Buffer {
    /// Takes the first event out, if it is complete.
    fn next(&mut self) -> Option<Vec<u8>> {
        let from = self.searched.saturating_sub(3);
        let rest = self.bytes.get(from..).unwrap_or_default();
        let end = (0..rest.len()).find_map(|place| {
            let rest = rest.get(place..)?;
            [b"\n\n".as_slice(), b"\n\r\n"]
                .iter()
                .find(|end| rest.starts_with(end))
                .map(|end| place + end.len())
        });
        let Some(end) = end else {
            self.searched = self.bytes.len();
            return None;
        };
        self.searched = 0;
        let rest = self.bytes.split_off(from + end);
        Some(std::mem::replace(&mut self.bytes, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_they_are_cut() {
        let text = "event: a\ndata: {\"type\": \"a\"}\n\n: comment\n\nevent: b\r\ndata: {\"type\":\r\ndata: \"b\"}\r\n\r\n";
        for size in 1..text.len() {
            let mut buffer = Buffer::default();
            let mut events = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                buffer.bytes.extend_from_slice(chunk);
                while let Some(raw) = buffer.next() {
                    events.push(Event::new(raw));
                }
            }
            let kinds: Vec<_> = events.iter().map(Event::kind).collect();
            assert_eq!(kinds, ["a", "", "b"], "{size}");
            let raw: Vec<_> = events.iter().flat_map(|event| event.raw.to_vec()).collect();
            assert_eq!(raw, text.as_bytes(), "{size}");
            assert!(buffer.bytes.is_empty());
        }
    }
}
