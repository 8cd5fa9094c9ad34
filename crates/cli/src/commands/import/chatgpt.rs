//! ChatGPT's export: `conversations.json`, or several files of that format.

use std::collections::{HashMap, HashSet};

use quipu_core::model::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;

use super::conversation::{Conversation, Message};
use super::json::JsonFile;
use super::source::Collected;

#[derive(Deserialize)]
struct Exported {
    #[serde(default)]
    title: Option<String>,
    #[serde(default, alias = "conversation_id")]
    id: Option<String>,
    create_time: Option<f64>,
    update_time: Option<f64>,
    current_node: Option<String>,
    mapping: HashMap<String, Node>,
}

#[derive(Deserialize)]
struct Node {
    parent: Option<String>,
    message: Option<Said>,
}

#[derive(Deserialize)]
struct Said {
    author: Author,
    content: Option<Content>,
    create_time: Option<f64>,
}

#[derive(Deserialize)]
struct Author {
    role: String,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Value>>,
    text: Option<String>,
}

/// Adds the conversations of an export.
pub(super) fn collect(file: &JsonFile, size_max: u64, into: &mut Collected) -> Result<(), Failure> {
    for (number, document) in (1..).zip(file.documents()?) {
        let both = document.get("id").is_some() && document.get("conversation_id").is_some();
        let document = if both { without(document, "conversation_id") } else { document };
        match serde_json::from_value::<Exported>(document) {
            Ok(exported) => exported.into_conversation().add_to(size_max, into)?,
            Err(error) => {
                into.skip(format!("{}, conversation {number}", file.name), error.to_string());
            }
        }
    }
    Ok(())
}

fn without(mut document: Value, key: &str) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields.remove(key);
    }
    document
}

impl Exported {
    fn into_conversation(self) -> Conversation {
        Conversation {
            program: "chatgpt",
            messages: self.messages(),
            id: self.id.unwrap_or_default(),
            title: self.title.unwrap_or_default(),
            created: self.create_time.and_then(moment),
            modified: self.update_time.and_then(moment),
        }
    }

    /// Returns the messages of the current branch, the oldest first.
    fn messages(&self) -> Vec<Message> {
        let time =
            |node: &Node| node.message.as_ref().and_then(|said| said.create_time).unwrap_or(0.0);
        let newest = || {
            let by_time = |left: &(&String, &Node), right: &(&String, &Node)| {
                time(left.1).total_cmp(&time(right.1)).then_with(|| left.0.cmp(right.0))
            };
            self.mapping.iter().max_by(by_time).map(|(id, _)| id)
        };
        let current = self.current_node.as_ref().filter(|id| self.mapping.contains_key(*id));
        let mut next = current.or_else(newest);
        let mut seen = HashSet::new();
        let mut messages = Vec::new();
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            let Some(node) = self.mapping.get(id) else { break };
            messages.extend(node.message.as_ref().and_then(Said::as_message));
            next = node.parent.as_ref();
        }
        messages.reverse();
        messages
    }
}

impl Said {
    fn as_message(&self) -> Option<Message> {
        let speaker = match self.author.role.as_str() {
            "user" => "User",
            "assistant" => "Assistant",
            _ => return None,
        };
        let content = self.content.as_ref()?;
        let parts =
            content.parts.iter().flatten().filter_map(part_text).chain(content.text.as_deref());
        let text = parts.collect::<Vec<_>>().join("\n\n");
        (!text.trim().is_empty()).then_some(Message { speaker, text })
    }
}

/// Returns the text of a part. Transcripts of speech are in an object of their own.
fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| part.get("text").and_then(Value::as_str))
}

/// Converts Unix time in seconds.
fn moment(seconds: f64) -> Option<Timestamp> {
    let span = jiff::SignedDuration::try_from_secs_f64(seconds).ok()?;
    let micros = i64::try_from(span.as_micros()).ok()?;
    (micros > 0).then(|| Timestamp::from_micros(micros))
}
