//! Puts a turn together from its events, and decides which of them the app gets to see.

use serde_json::{Map, Value};

use super::events::Event;
use super::turn::{Turn, is_memory_call, update_usage};

/// A turn that is being streamed.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    /// What the turn has used so far.
    pub(super) usage: Value,
}

#[derive(Debug)]
struct Block {
    /// Its place in the turn.
    index: u64,
    /// Its place in what the app sees; `None` if it does not see it.
    shown: Option<u64>,
    value: Value,
    input: String,
}

impl Assembly {
    /// Takes an event about a block, and returns it as the app gets to see it. `next` is the place of the
    /// next block that the app sees.
    pub(super) fn take(&mut self, event: Event, next: &mut u64) -> Option<Event> {
        let Some(index) = event.index() else { return Some(event) };
        match event.kind() {
            "content_block_start" => {
                let value = event.data.get("content_block").cloned().unwrap_or_default();
                let shown = (!is_memory_call(&value)).then(|| {
                    *next += 1;
                    *next - 1
                });
                self.blocks.push(Block { index, shown, value, input: String::new() });
            }
            "content_block_delta" => {
                let block = self.blocks.iter_mut().find(|block| block.index == index);
                if let (Some(block), Some(delta)) = (block, event.data.get("delta")) {
                    block.extend(delta);
                }
            }
            _ => {}
        }
        let shown = self.blocks.iter().find(|block| block.index == index)?.shown?;
        Some(if shown == index { event } else { renumbered(event, shown) })
    }

    /// Takes the event that says how the turn ends.
    pub(super) fn end(&mut self, event: &Event) {
        let reason = event.data.get("delta").and_then(|delta| delta.get("stop_reason")?.as_str());
        if let Some(reason) = reason {
            self.stop_reason = Some(reason.to_owned());
        }
        update_usage(&mut self.usage, event.data.get("usage").unwrap_or(&Value::Null));
    }

    /// Returns the turn.
    pub(super) fn turn(&mut self) -> Turn {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.sort_by_key(|block| block.index);
        let content = blocks.into_iter().map(Block::finished).collect();
        Turn { content, stop_reason: self.stop_reason.take() }
    }
}

fn renumbered(event: Event, index: u64) -> Event {
    let mut data = event.data;
    if let Some(data) = data.as_object_mut() {
        data.insert("index".to_owned(), index.into());
    }
    Event::of(data)
}

impl Block {
    fn extend(&mut self, delta: &Value) {
        let Some(value) = self.value.as_object_mut() else { return };
        let kind = delta.get("type").and_then(Value::as_str).unwrap_or_default();
        let text = |field: &str| delta.get(field).and_then(Value::as_str).unwrap_or_default();
        match kind {
            "text_delta" => append(value, "text", text("text")),
            "thinking_delta" => append(value, "thinking", text("thinking")),
            "signature_delta" => append(value, "signature", text("signature")),
            "input_json_delta" => self.input.push_str(text("partial_json")),
            "citations_delta" => {
                let citation = delta.get("citation").cloned().unwrap_or_default();
                let citations = value.entry("citations").or_insert(Value::Null);
                match citations.as_array_mut() {
                    Some(citations) => citations.push(citation),
                    None => *citations = Value::Array(vec![citation]),
                }
            }
            _ => {}
        }
    }

    fn finished(mut self) -> Value {
        if !self.input.is_empty()
            && let Some(value) = self.value.as_object_mut()
        {
            // What was cut off is not JSON. The API accepts nothing but an object.
            let input = serde_json::from_str(&self.input).ok().filter(Value::is_object);
            value.insert("input".to_owned(), input.unwrap_or_else(|| Map::new().into()));
        }
        self.value
    }
}

fn append(value: &mut Map<String, Value>, field: &str, text: &str) {
    let entry = value.entry(field).or_insert(Value::Null);
    if let Value::String(known) = entry {
        known.push_str(text);
    } else {
        *entry = text.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_is_what_its_events_say_and_calls_of_the_memory_are_not_shown() {
        let mut assembly = Assembly::default();
        let mut next = 5;
        let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let events = [
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "Hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
            start(1, json!({"type": "tool_use", "id": "a", "name": "memory", "input": {}})),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{\"command\":"})),
            delta(1, json!({"type": "input_json_delta", "partial_json": " \"view\"}"})),
            json!({"type": "content_block_stop", "index": 1}),
            start(2, json!({"type": "text", "text": ""})),
            delta(2, json!({"type": "text_delta", "text": "Hello"})),
            delta(2, json!({"type": "citations_delta", "citation": {"title": "x"}})),
        ];
        let shown: Vec<_> = events
            .into_iter()
            .filter_map(|data| assembly.take(Event::of(data), &mut next)?.index())
            .collect();
        assert_eq!(shown, [5, 5, 5, 6, 6, 6]);
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
        assembly.end(&Event::of(end));
        let turn = assembly.turn();
        let expected = [
            json!({"type": "thinking", "thinking": "Hm", "signature": "c2ln"}),
            json!({"type": "tool_use", "id": "a", "name": "memory", "input": {"command": "view"}}),
            json!({"type": "text", "text": "Hello", "citations": [{"title": "x"}]}),
        ];
        assert_eq!(turn.content, expected);
        assert_eq!(turn.memory_calls().len(), 1);
    }
}
