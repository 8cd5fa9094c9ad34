//! Edits one server entry in the configuration of another program. Everything else is preserved,
//! including order, layout and comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

use crate::args::Host;

/// The name of the server in configurations.
pub(super) const NAME: &str = "quipu";

const TOML_GROUP: &str = "mcp_servers";

/// Returns the text with these fields set in the server's entry, or `None` if it cannot be parsed.
pub(super) fn with_server(host: Host, old: &str, fields: &Map<String, Value>) -> Option<String> {
    let Some(group) = json_group(host) else { return with_table(old, fields) };
    let (mark, text) = split_mark(old);
    let root = root(if text.trim().is_empty() { "{}" } else { text })?;
    let servers = root.object_value()?.object_value_or_create(group)?;
    match servers.get(NAME) {
        Some(_) => {
            let server = servers.object_value(NAME)?;
            fields.iter().for_each(|(name, value)| set(&server, name, value));
        }
        None => set(&servers, NAME, &Value::Object(fields.clone())),
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Some(format!("{mark}{root}{end}"))
}

/// Returns the text without the server's entry, or `None` if it cannot be parsed.
pub(super) fn without_server(host: Host, old: &str) -> Option<String> {
    let Some(group) = json_group(host) else { return without_table(old) };
    let (mark, text) = split_mark(old);
    if text.trim().is_empty() {
        return Some(old.to_owned());
    }
    let root = root(text)?;
    let servers = root.object_value()?.object_value(group);
    if let Some(server) = servers.and_then(|servers| servers.get(NAME)) {
        server.remove();
    }
    Some(format!("{mark}{root}"))
}

fn json_group(host: Host) -> Option<&'static str> {
    match host {
        Host::ClaudeDesktop | Host::ClaudeCode | Host::Cursor => Some("mcpServers"),
        Host::Vscode => Some("servers"),
        Host::Codex => None,
    }
}

/// Splits off a byte order mark.
fn split_mark(text: &str) -> (&str, &str) {
    let bare = text.trim_start_matches('\u{feff}');
    text.split_at(text.len() - bare.len())
}

fn root(text: &str) -> Option<CstRootNode> {
    CstRootNode::parse(text, &ParseOptions::default()).ok()
}

fn set(object: &CstObject, name: &str, value: &Value) {
    let value = input(value);
    match object.get(name) {
        Some(member) => member.set_value(value),
        None => drop(object.append(name, value)),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}

fn with_table(old: &str, fields: &Map<String, Value>) -> Option<String> {
    let mut document: DocumentMut = old.parse().ok()?;
    let servers = document.entry(TOML_GROUP).or_insert_with(|| {
        let mut servers = Table::new();
        // Without a header of its own, as people write it.
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let server = servers.as_table_like_mut()?.entry(NAME).or_insert(Item::Table(Table::new()));
    let server = server.as_table_like_mut()?;
    for (name, value) in fields {
        let value = match value {
            Value::Array(items) => {
                items.iter().filter_map(Value::as_str).collect::<toml_edit::Array>().into()
            }
            Value::String(text) => toml_edit::Value::from(text.as_str()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
        };
        match server.get_mut(name) {
            // Assigning keeps a comment above the key; removing and inserting would drop it.
            Some(item) => *item = Item::Value(value),
            None => drop(server.insert(name, Item::Value(value))),
        }
    }
    Some(document.to_string())
}

fn without_table(old: &str) -> Option<String> {
    let mut document: DocumentMut = old.parse().ok()?;
    if let Some(servers) = document.get_mut(TOML_GROUP) {
        servers.as_table_like_mut()?.remove(NAME);
    }
    Some(document.to_string())
}
