//! Events of sessions. Quipu records them; it gives them an id and a moment, and reads nothing else.

use quipu_core::engine::NewSessionEvent;
use quipu_core::model::{Content, EventType, SessionEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ActorBody;
use super::agents::Fields;

/// The body of a request that records events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendEvents {
    /// The events, in order.
    pub events: Vec<Value>,
}

/// What an app may send, and the fields that it must have.
const SENDABLE: [(&str, &[&str]); 7] = [
    ("user.message", &["content"]),
    ("user.interrupt", &[]),
    ("user.tool_confirmation", &["tool_use_id", "result"]),
    ("user.custom_tool_result", &["custom_tool_use_id"]),
    ("user.define_outcome", &["description", "rubric"]),
    ("user.tool_result", &["tool_use_id"]),
    ("system.message", &["content"]),
];

/// What an app may send when it creates a session.
const INITIAL: [&str; 2] = ["user.message", "user.define_outcome"];

/// The fields that Quipu adds itself.
const OWN_FIELDS: [&str; 3] = ["id", "type", "processed_at"];

/// The fields of an event that name the thread that it belongs to.
pub const THREAD_FIELD: &str = "session_thread_id";

/// Reads an event that an app sends; fails with a sentence. `outcome_id` names the outcome that it may
/// define.
pub fn sent_event(event: &Value, outcome_id: &str) -> Result<NewSessionEvent, String> {
    let (kind, mut fields) = parts(event)?;
    let Some((_, required)) = SENDABLE.iter().find(|(name, _)| *name == kind.as_str()) else {
        let names: Vec<_> = SENDABLE.iter().map(|(name, _)| *name).collect();
        return Err(format!("type: must be one of: {}", names.join(", ")));
    };
    for field in *required {
        let value = fields.get(*field).filter(|value| !value.is_null());
        let Some(value) = value else { return Err(format!("{field}: is required")) };
        if *field == "content" && !value.is_array() {
            return Err(format!("{field}: must be a list"));
        }
    }
    if kind.as_str() == "user.define_outcome" {
        fields.insert("outcome_id".to_owned(), json!(outcome_id));
    }
    new_event(kind, &fields)
}

/// Reads an event that stands in the request that creates a session; fails with a sentence.
pub fn initial_event(event: &Value, outcome_id: &str) -> Result<NewSessionEvent, String> {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    if !INITIAL.contains(&kind) {
        return Err(format!("type: must be one of: {}", INITIAL.join(", ")));
    }
    sent_event(event, outcome_id)
}

/// Reads an event that a harness reports, of any type; fails with a sentence.
pub fn reported_event(event: &Value) -> Result<NewSessionEvent, String> {
    let (kind, fields) = parts(event)?;
    new_event(kind, &fields)
}

fn parts(event: &Value) -> Result<(EventType, Fields), String> {
    let Value::Object(fields) = event else { return Err("must be an object".to_owned()) };
    let kind = fields.get("type").and_then(Value::as_str).ok_or("type: is required")?;
    let kind = EventType::new(kind).map_err(|error| format!("type: {error}"))?;
    let mut fields = fields.clone();
    fields.retain(|name, _| !OWN_FIELDS.contains(&name.as_str()));
    Ok((kind, fields))
}

fn new_event(kind: EventType, fields: &Fields) -> Result<NewSessionEvent, String> {
    let text = serde_json::to_string(fields).expect("values can be written as JSON");
    let body = Content::new(text).map_err(|error| error.to_string())?;
    Ok(NewSessionEvent { kind, body })
}

/// Returns an event as the SDKs read it. A redacted one says so where it had content.
pub fn event_body(event: &SessionEvent) -> Value {
    let mut fields = event_fields(event);
    if event.redaction.is_some() {
        fields.insert("content".to_owned(), json!([{"type": "redacted"}]));
    }
    fields.insert("id".to_owned(), json!(event.id.to_string()));
    fields.insert("type".to_owned(), json!(event.kind.as_str()));
    fields.insert("processed_at".to_owned(), json!(event.at.to_string()));
    Value::Object(fields)
}

/// Returns the fields that were recorded; none of a redacted event.
pub fn event_fields(event: &SessionEvent) -> Fields {
    let body = event.body.as_ref().map_or("{}", Content::as_str);
    serde_json::from_str(body).unwrap_or_default()
}

/// Returns whether a text of an event holds these characters, in whatever case.
pub fn event_holds(event: &SessionEvent, text: &str) -> bool {
    fn holds(value: &Value, text: &str) -> bool {
        match value {
            Value::String(value) => value.to_lowercase().contains(text),
            Value::Array(values) => values.iter().any(|value| holds(value, text)),
            Value::Object(fields) => fields.values().any(|value| holds(value, text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    let text = text.to_lowercase();
    event_fields(event).values().any(|value| holds(value, &text))
}

/// Returns the thread that an event belongs to; `None` is the primary one.
pub fn event_thread(event: &SessionEvent) -> Option<String> {
    // This event tells the parent about another thread.
    if event.kind.as_str() == "session.thread_created" {
        return None;
    }
    event_fields(event).get(THREAD_FIELD).and_then(Value::as_str).map(str::to_owned)
}

/// An event with what Quipu knows of it.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedEventBody {
    /// Its place in the session.
    pub number: u64,
    /// Who recorded it.
    pub recorded_by: ActorBody,
    /// How long what was recorded is.
    pub size_bytes: u64,
    /// When it was redacted, if it was.
    pub redacted_at: Option<String>,
    /// The event.
    pub event: Value,
}

impl From<&SessionEvent> for RecordedEventBody {
    fn from(event: &SessionEvent) -> Self {
        Self {
            number: event.number,
            recorded_by: ActorBody::from(&event.actor),
            size_bytes: event.size_bytes,
            redacted_at: event.redaction.as_ref().map(|redaction| redaction.at.to_string()),
            event: event_body(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_sends_seven_types_with_their_fields() {
        let message = json!({"type": "user.message", "content": [], "id": "x", "processed_at": 1});
        let event = sent_event(&message, "outc_1").unwrap();
        assert_eq!(
            (event.kind.as_str(), event.body.as_str()),
            ("user.message", r#"{"content":[]}"#)
        );
        let outcome = json!({"type": "user.define_outcome", "description": "d", "rubric": {}});
        assert!(sent_event(&outcome, "outc_1").unwrap().body.as_str().contains("outc_1"));
        for (wrong, named) in [
            (json!("user.message"), "object"),
            (json!({"content": []}), "type"),
            (json!({"type": "agent.message", "content": []}), "must be one of"),
            (json!({"type": "user.message"}), "content"),
            (json!({"type": "user.message", "content": "hi"}), "content"),
            (json!({"type": "user.tool_result"}), "tool_use_id"),
        ] {
            let refused = sent_event(&wrong, "").unwrap_err();
            assert!(refused.contains(named), "{wrong}: {refused}");
        }
        assert!(initial_event(&json!({"type": "user.interrupt"}), "").is_err());
        assert!(reported_event(&json!({"type": "agent.message"})).is_ok());
        assert!(reported_event(&json!({"type": "Agent 007"})).is_err());
    }
}
