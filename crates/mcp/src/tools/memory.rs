//! `memory`: the memory tool of the Messages API, word for word.

use quipu_core::Error;
use quipu_core::model::{Access, Actor};
use quipu_service::tool::{self, MemoryTool, ToolSettings};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::Call;
use crate::access::require_open;
use crate::arguments::Arguments;

/// The arguments that are paths.
const PATHS: [&str; 3] = ["path", "old_path", "new_path"];
const ROOT: &str = "memories";

/// Converts numbers that came as strings; anything else is left for the tool to reject.
fn set_numbers(input: &mut Value, arguments: &Arguments) {
    let Value::Object(fields) = input else { return };
    if fields.get("insert_line").is_some_and(Value::is_string)
        && let Ok(Some(line)) = arguments.number("insert_line")
    {
        fields.insert("insert_line".to_owned(), json!(line));
    }
    if fields.get("view_range").is_some_and(Value::is_string)
        && let Ok(words) = arguments.list("view_range")
        && let Ok(numbers) = words.iter().map(|word| word.parse()).collect::<Result<Vec<i64>, _>>()
    {
        fields.insert("view_range".to_owned(), json!(numbers));
    }
}

/// Returns whether a command writes.
pub(super) fn writes(arguments: &Arguments) -> bool {
    arguments.as_value().get("command").and_then(Value::as_str).is_some_and(tool::writes)
}

pub(super) fn run(call: &Call, arguments: &Arguments) -> Result<CallToolResult, Error> {
    let mut input = arguments.as_value();
    for name in PATHS {
        if let Some(Value::String(path)) = input.get_mut(name)
            && (path == ROOT || path.starts_with("memories/"))
        {
            path.insert(0, '/');
        }
    }
    set_numbers(&mut input, arguments);
    let store = call.client.memory_store()?;
    let identity = &call.client.identity;
    let access = identity.access(store.id).unwrap_or(Access::ReadOnly);
    call.require_wanted()?;
    let is_change = writes(arguments);
    if is_change {
        require_open(&store)?;
    }
    // A command that writes nothing needs no author, so no session is recorded for it; the tool
    // wants an actor all the same.
    let is_author = is_change && access == Access::ReadWrite;
    let actor = if is_author { call.actor()? } else { Actor::expiry() };
    let settings = ToolSettings { access, ..identity.settings.tool };
    let tool = MemoryTool::new(call.engine().clone(), store.id, actor, settings);
    let answer = tool.call(&input);
    let content = vec![ContentBlock::text(answer.content.clone())];
    let mut result = if answer.is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = Some(json!({"result": answer.content}));
    Ok(result)
}
