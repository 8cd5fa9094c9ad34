//! Answers of tools: a text for models, and the same as structured data.

use quipu_core::Error;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::arguments::Format;

/// What a tool found or did.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) data: Value,
}

impl Answer {
    pub(super) fn new(text: impl Into<String>, data: Value) -> Self {
        Self { text: text.into(), data }
    }

    /// Converts the answer into the protocol's result.
    pub(super) fn into_result(self, format: Format) -> CallToolResult {
        let text = match format {
            Format::Text => self.text,
            Format::Json => self.data.to_string(),
        };
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(self.data);
        result
    }
}

/// Converts an error into an answer that a model can act on.
pub(super) fn refused(error: &Error) -> CallToolResult {
    let text = match error.hint() {
        Some(hint) => format!("Error: {}; {hint}", error.message()),
        None => format!("Error: {}", error.message()),
    };
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({
        "error": error.kind().as_str(),
        "message": error.message(),
        "hint": error.hint(),
    }));
    result
}
