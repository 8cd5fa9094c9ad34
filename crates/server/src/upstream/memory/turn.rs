//! One turn of the model, and the sum of what turns have used.

use serde_json::{Map, Value};

/// The name of the memory tool.
pub(super) const MEMORY: &str = "memory";

/// What the model said in one turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    pub(super) content: Vec<Value>,
    pub(super) stop_reason: Option<String>,
}

/// A call of the memory tool.
#[derive(Clone, Debug)]
pub(super) struct MemoryCall {
    pub(super) id: String,
    pub(super) input: Value,
}

impl Turn {
    /// Returns what a message of the API says.
    pub(super) fn of(message: &Map<String, Value>) -> Self {
        let content = message.get("content").and_then(Value::as_array).cloned();
        let stop_reason = message.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
        Self { content: content.unwrap_or_default(), stop_reason }
    }

    /// Returns the calls of the memory tool, if the model waits for their results.
    pub(super) fn memory_calls(&self) -> Vec<MemoryCall> {
        if self.stop_reason.as_deref() != Some("tool_use") {
            return Vec::new();
        }
        let call = |block: &Value| {
            Some(MemoryCall {
                id: block.get("id")?.as_str()?.to_owned(),
                input: block.get("input").cloned().unwrap_or_default(),
            })
        };
        self.content.iter().filter(|block| is_memory_call(block)).filter_map(call).collect()
    }

    /// Returns the id of the first call that the app answers.
    pub(super) fn first_call(&self) -> Option<&str> {
        let of_app = |block: &&Value| is_call(block) && !is_memory_call(block);
        self.content.iter().find(of_app).and_then(|block| block.get("id")?.as_str())
    }

    /// Returns what the app gets to see.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Value> {
        self.content.iter().filter(|block| !is_memory_call(block))
    }
}

/// Returns whether a block calls a tool that the upstream does not carry out itself.
pub(super) fn is_call(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("tool_use")
}

/// Returns whether a block calls the memory tool.
pub(super) fn is_memory_call(block: &Value) -> bool {
    is_call(block) && block.get("name").and_then(Value::as_str) == Some(MEMORY)
}

/// Returns the ids of the calls in a message.
pub(super) fn tool_ids(message: &Value) -> Vec<String> {
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let id = |block: &Value| block.get("id")?.as_str().map(str::to_owned);
    blocks.filter(|block| is_call(block)).filter_map(id).collect()
}

/// Adds what a turn has used to a sum: numbers are added, anything else is that of the last turn.
pub(super) fn add_usage(sum: &mut Value, more: &Value) {
    match (&mut *sum, more) {
        (Value::Object(sum), Value::Object(more)) => {
            for (name, value) in more {
                add_usage(sum.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Number(number), Value::Number(other)) => {
            if let (Some(one), Some(other)) = (number.as_u64(), other.as_u64()) {
                *sum = one.saturating_add(other).into();
            }
        }
        (_, Value::Null) => {}
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => more.clone_into(sum),
    }
}

/// Replaces the fields of what one turn has used by those of a later event of the same turn, which are
/// totals.
pub(super) fn update_usage(usage: &mut Value, later: &Value) {
    let Some(later) = later.as_object() else { return };
    if !usage.is_object() {
        *usage = Value::Object(Map::new());
    }
    let Some(usage) = usage.as_object_mut() else { return };
    usage.extend(
        later.iter().filter(|(_, value)| !value.is_null()).map(|(n, v)| (n.clone(), v.clone())),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(stop_reason: &str, content: &Value) -> Turn {
        let message = json!({"content": content, "stop_reason": stop_reason});
        Turn::of(message.as_object().unwrap())
    }

    #[test]
    fn only_finished_calls_of_the_memory_tool_are_answered_here() {
        let content = json!([
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "a", "name": "memory", "input": {"command": "view"}},
            {"type": "tool_use", "id": "b", "name": "weather", "input": {}},
            {"type": "server_tool_use", "id": "c", "name": "memory", "input": {}},
        ]);
        let finished = turn("tool_use", &content);
        let ids: Vec<_> = finished.memory_calls().into_iter().map(|call| call.id).collect();
        assert_eq!(ids, ["a"]);
        assert_eq!(finished.first_call(), Some("b"));
        assert_eq!(finished.shown().count(), 3);
        assert!(turn("max_tokens", &content).memory_calls().is_empty());
    }

    #[test]
    fn usage_is_the_sum_of_all_turns() {
        let mut sum = Value::Null;
        for turn in [
            json!({"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": null,
                "cache_creation": {"ephemeral_5m_input_tokens": 2}, "service_tier": "standard"}),
            json!({"input_tokens": 4, "output_tokens": 2, "cache_read_input_tokens": 5,
                "cache_creation": {"ephemeral_5m_input_tokens": 1}, "service_tier": "batch"}),
        ] {
            add_usage(&mut sum, &turn);
        }
        let expected = json!({"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 5,
            "cache_creation": {"ephemeral_5m_input_tokens": 3}, "service_tier": "batch"});
        assert_eq!(sum, expected);
    }
}
