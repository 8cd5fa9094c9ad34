//! Batches: several messages in one list, which revision 2025-03-26 has.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

/// The maximum number of messages in a batch.
pub(super) const MESSAGES_MAX: usize = 100;

/// Why a list of messages is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    NotJson(serde_json::Error),
    Empty,
    TooMany,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "the list of messages is not JSON: {error}"),
            Self::Empty => f.write_str("the list of messages is empty"),
            Self::TooMany => {
                write!(f, "a list has at most {MESSAGES_MAX} messages; send the others in another")
            }
        }
    }
}

/// Parses a list of messages. Those beyond the limit are skipped, never allocated.
pub(super) fn messages(text: &[u8]) -> Result<Vec<Value>, Refusal> {
    match serde_json::from_slice(text).map_err(Refusal::NotJson)? {
        Several(None) => Err(Refusal::TooMany),
        Several(Some(messages)) if messages.is_empty() => Err(Refusal::Empty),
        Several(Some(messages)) => Ok(messages),
    }
}

/// The messages of a list; `None` if there are too many.
struct Several(Option<Vec<Value>>);

impl<'de> Deserialize<'de> for Several {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List)
    }
}

struct List;

impl<'de> Visitor<'de> for List {
    type Value = Several;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Several, A::Error> {
        let mut messages = Vec::new();
        while messages.len() < MESSAGES_MAX {
            match list.next_element()? {
                Some(message) => messages.push(message),
                None => return Ok(Several(Some(messages))),
            }
        }
        let mut others = 0_usize;
        while list.next_element::<IgnoredAny>()?.is_some() {
            others += 1;
        }
        Ok(Several((others == 0).then_some(messages)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(count: usize) -> Vec<u8> {
        format!("[{}]", vec!["1"; count].join(",")).into_bytes()
    }

    #[test]
    fn a_batch_has_between_one_message_and_the_maximum() {
        assert_eq!(messages(&list(MESSAGES_MAX)).unwrap().len(), MESSAGES_MAX);
        assert!(matches!(messages(&list(MESSAGES_MAX + 1)), Err(Refusal::TooMany)));
        assert!(matches!(messages(&list(0)), Err(Refusal::Empty)));
    }

    #[test]
    fn a_malformed_list_is_not_json_however_long_it_is() {
        let mut broken = list(2 * MESSAGES_MAX);
        broken.pop();
        assert!(matches!(messages(&broken), Err(Refusal::NotJson(_))));
    }
}
