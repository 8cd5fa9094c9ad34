//! Writing values as YAML.

use super::Value;
use super::frontmatter::DEPTH_MAX;

/// Returns the lines `key: value`; `None` if the value is nested too deep.
pub(crate) fn field(key: &str, value: &Value, indentation: &str, line_end: &str) -> Option<String> {
    let mut lines = Vec::new();
    add_field(key, value, indentation, &mut lines)?;
    Some(lines.into_iter().map(|line| line + line_end).collect())
}

fn add_field(key: &str, value: &Value, indentation: &str, lines: &mut Vec<String>) -> Option<()> {
    let name = format!("{indentation}{}:", scalar(key));
    match short(value) {
        Some(text) => lines.push(format!("{name} {text}")),
        None => {
            lines.push(name);
            add_inside(value, &format!("{indentation}  "), lines)?;
        }
    }
    Some(())
}

/// Adds the lines below a key or a dash.
fn add_inside(value: &Value, indentation: &str, lines: &mut Vec<String>) -> Option<()> {
    if indentation.len() > 2 * DEPTH_MAX {
        return None;
    }
    match value {
        Value::Null | Value::Text(_) => {}
        Value::Map(entries) => {
            for (key, value) in entries {
                add_field(key, value, indentation, lines)?;
            }
        }
        Value::List(items) => {
            for item in items {
                match short(item) {
                    Some(text) => lines.push(format!("{indentation}- {text}")),
                    None => {
                        lines.push(format!("{indentation}-"));
                        add_inside(item, &format!("{indentation}  "), lines)?;
                    }
                }
            }
        }
    }
    Some(())
}

/// Returns a value that fits on the line of its key.
fn short(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("null".to_owned()),
        Value::Text(text) => Some(scalar(text)),
        Value::List(items) if items.is_empty() => Some("[]".to_owned()),
        Value::Map(entries) if entries.is_empty() => Some("{}".to_owned()),
        Value::List(_) | Value::Map(_) => None,
    }
}

/// Returns a text as a plain scalar if YAML reads it back as that text, else in quotes.
fn scalar(text: &str) -> String {
    let is_harmless =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '.' | '/' | '-' | '+');
    let is_plain = text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '/'))
        && text.chars().all(is_harmless)
        && !text.ends_with(' ')
        && !matches!(text.to_ascii_lowercase().as_str(), "null" | "yes" | "no" | "on" | "off");
    if is_plain { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\u{feff}' | '\u{2028}' | '\u{2029}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ if character.is_control() => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
