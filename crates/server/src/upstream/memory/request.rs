//! What a request for a model with memory says to the upstream.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use quipu_core::backend::Event;
use quipu_knowledge::Knowledge;
use serde_json::{Map, Value, json};

use super::super::pass::Forwarding;
use super::opened::Opened;
use super::recall::Hidden;
use super::turn::{MEMORY, is_call, tool_ids};
use crate::answer::Failure;

/// The beta header that enables the memory tool.
const BETA: &str = "context-management-2025-06-27";
const BETAS: HeaderName = HeaderName::from_static("anthropic-beta");

/// The type of the memory tool.
const TOOL: &str = "memory_20250818";

/// How many changes are looked through for redactions. If there are more, what was kept is not used.
const CHANGES_MAX: usize = 1000;

/// Adds what the memory tool needs to the beta header.
pub(super) fn ask_for_beta(headers: &mut HeaderMap) {
    let betas = headers.get_all(&BETAS).iter().filter_map(|value| value.to_str().ok());
    if !betas.flat_map(|value| value.split(',')).any(|beta| beta.trim() == BETA) {
        headers.append(BETAS, HeaderValue::from_static(BETA));
    }
}

/// Adds the store's prompt to the system text and the memory tool to the tools.
///
/// Both are added at the end, so that what the app has cached up to there stays cached.
pub(super) fn equip(opened: &Opened, body: &mut Map<String, Value>) -> Result<(), Failure> {
    let system = body.entry("system").or_insert(Value::Null);
    match system {
        Value::Null => *system = json!(opened.prompt),
        Value::String(text) if text.is_empty() => *system = json!(opened.prompt),
        Value::String(text) => {
            text.push_str("\n\n");
            text.push_str(&opened.prompt);
        }
        Value::Array(blocks) => blocks.push(json!({"type": "text", "text": opened.prompt})),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(Failure::invalid("system: must be a string or a list of blocks"));
        }
    }
    let tools = body.entry("tools").or_insert(Value::Null);
    if tools.is_null() {
        *tools = json!([]);
    }
    let tools = tools.as_array_mut();
    let tools = tools.ok_or_else(|| Failure::invalid("tools: must be a list"))?;
    let text =
        |tool: &Value, field: &str| tool.get(field).and_then(Value::as_str).map(str::to_owned);
    match tools.iter().find(|tool| text(tool, "name").as_deref() == Some(MEMORY)) {
        None => tools.push(json!({"type": TOOL, "name": MEMORY})),
        Some(tool) if text(tool, "type").is_some_and(|kind| kind.starts_with("memory_")) => {}
        Some(_) => {
            return Err(Failure::invalid(
                "tools: `memory` is reserved for the memory tool when `quipu-store` is set; rename your tool",
            ));
        }
    }
    Ok(())
}

/// Puts what was left out of earlier answers back into the messages.
pub(super) async fn restore(
    forwarding: &Forwarding,
    opened: &Opened,
    body: &mut Map<String, Value>,
) -> Result<(), Failure> {
    let Some(Value::Array(messages)) = body.get_mut("messages") else { return Ok(()) };
    let recall = &forwarding.upstream.recall;
    let mut restored = Vec::with_capacity(messages.len());
    let mut results = Vec::new();
    for mut message in std::mem::take(messages) {
        if !results.is_empty() {
            put_in_front(&mut message, std::mem::take(&mut results));
        }
        let is_assistant = message.get("role").and_then(Value::as_str) == Some("assistant");
        let ids = if is_assistant { tool_ids(&message) } else { Vec::new() };
        let hidden = ids.iter().find_map(|id| Some((id, recall.get(opened.scope, id)?)));
        match hidden {
            Some((_, hidden)) if is_intact(opened, &hidden).await? => {
                results.clone_from(&hidden.results);
                restored.extend(with_calls_of(&hidden.messages, &message));
            }
            Some((id, _)) => {
                recall.forget(opened.scope, id);
                restored.push(message);
            }
            None => restored.push(message),
        }
    }
    *messages = restored;
    Ok(())
}

/// Returns whether nothing was redacted in the store since; what was redacted must not come back.
async fn is_intact(opened: &Opened, hidden: &Arc<Hidden>) -> Result<bool, Failure> {
    let (since, store) = (hidden.sequence, opened.scope.store);
    let changes = move |engine: &Knowledge| engine.changes(since, CHANGES_MAX);
    let changes = opened.pool().read(changes).await??;
    let is_all = changes.items.len() < CHANGES_MAX && !changes.has_gap;
    let is_redaction = |event: &Event| matches!(event, Event::Redacted(_) | Event::StoreDeleted);
    let has_lost =
        |change: &quipu_core::backend::Change| change.store == store && is_redaction(&change.event);
    Ok(is_all && !changes.items.iter().any(has_lost))
}

/// Puts results in front of what a user's message says; the API wants them there.
fn put_in_front(message: &mut Value, mut results: Vec<Value>) {
    if message.get("role").and_then(Value::as_str) != Some("user") {
        return;
    }
    let Some(content) = message.get_mut("content") else { return };
    match content {
        Value::Array(blocks) => {
            results.append(blocks);
            *blocks = results;
        }
        Value::String(text) => {
            results.push(json!({"type": "text", "text": text}));
            *content = Value::Array(results);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

/// Returns messages in which the app's calls are as the app has sent them: it may have marked one as the
/// end of what is cached.
fn with_calls_of(messages: &[Value], sent: &Value) -> Vec<Value> {
    let calls: Vec<_> = blocks(sent).filter(|block| is_call(block)).collect();
    let mut messages = messages.to_vec();
    for message in &mut messages {
        let Some(Value::Array(blocks)) = message.get_mut("content") else { continue };
        for block in blocks.iter_mut().filter(|block| is_call(block)) {
            if let Some(call) = calls.iter().find(|call| call.get("id") == block.get("id")) {
                (*call).clone_into(block);
            }
        }
    }
    messages
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message.get("content").and_then(Value::as_array).into_iter().flatten()
}
