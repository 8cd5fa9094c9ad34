//! What happened in a session: what was sent to its agent, and what was reported about it.

use std::fmt;

use super::{Actor, Content, EventId, Redaction, SessionId, Timestamp};

/// One event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEvent {
    /// Its id.
    pub id: EventId,
    /// The session.
    pub session: SessionId,
    /// Its place among the events of the session: 1, 2, 3, … without a gap. A number is never given out
    /// again.
    pub number: u64,
    /// When it was recorded; later events of a session have later moments.
    pub at: Timestamp,
    /// What kind of event it is.
    pub kind: EventType,
    /// Who recorded it.
    pub actor: Actor,
    /// What it says, as the door that recorded it writes it down; `None` if it is redacted or was not
    /// asked for.
    pub body: Option<Content>,
    /// How long the body is; 0 once redacted.
    pub size_bytes: u64,
    /// The redaction, if there was one.
    pub redaction: Option<Redaction>,
}

/// The kind of an event, such as `user.message`: 1 to 64 lower-case letters, `.` and `_`.
///
/// Digits are left out on purpose: the type of a redacted event stays, so it must be nothing that could
/// carry a credential.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(String);

/// How long an [`EventType`] may be.
const EVENT_TYPE_SIZE_BYTES_MAX: usize = 64;

impl EventType {
    /// Checks the rules and returns the text as a type.
    pub fn new(text: &str) -> Result<Self, EventTypeError> {
        let is_allowed = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'_');
        let is_valid =
            (1..=EVENT_TYPE_SIZE_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_allowed);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(EventTypeError) }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The error for a text that is no [`EventType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTypeError;

impl fmt::Display for EventTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size_max = EVENT_TYPE_SIZE_BYTES_MAX;
        write!(f, "the type of an event is 1 to {size_max} lower-case letters, `.` and `_`")
    }
}

impl std::error::Error for EventTypeError {}

/// What is kept of the events of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventUsage {
    /// The number of the newest event that was ever recorded; 0 if there was none.
    pub newest: u64,
    /// When that was.
    pub newest_at: Option<Timestamp>,
    /// How many events are kept.
    pub events_count: u64,
    /// The sum of the sizes of their bodies.
    pub size_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_a_short_word_without_digits() {
        for good in ["user.message", "agent.mcp_tool_use", "a", &"a".repeat(64)] {
            assert_eq!(EventType::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "User.message", "a b", "key.4711", "ä", "a\n", &"a".repeat(65)] {
            assert_eq!(EventType::new(bad), Err(EventTypeError), "{bad}");
        }
    }
}
