//! Adding one entry to a JSON file that belongs to another program.
//!
//! Everything else in the file stays as it is, byte by byte: order, layout and comments too.

use std::ops::Range;

/// Returns the text with `entry` as the member `keys` of nested objects, in place of the one that
/// was there. `None` if the text is not an object, or a key on the way is something else.
pub(super) fn with_entry(text: &str, keys: &[&str], entry: &str) -> Option<String> {
    let bare = text.trim_start_matches('\u{feff}');
    if bare.trim().is_empty() {
        return with_entry("{}", keys, entry);
    }
    let start = text.len() - bare.len();
    let object = object_at(text, skipped(text, start)?)?;
    inserted(text, &object, keys, entry, 1)
}

/// Tells whether the text has such a member of nested objects, and it is an object itself.
pub(super) fn has_object(text: &str, keys: &[&str]) -> bool {
    let bare = text.trim_start_matches('\u{feff}');
    let start = text.len() - bare.len();
    let object = skipped(text, start).and_then(|start| object_at(text, start));
    let found = keys.iter().fold(object, |object, key| {
        let object = object?;
        let (_, value) = object.members.iter().find(|(name, _)| name == key)?;
        object_at(text, value.start)
    });
    found.is_some()
}

/// An object in a text.
struct Object {
    /// After the opening brace.
    start: usize,
    /// At the closing brace.
    end: usize,
    /// Keys with where their values are.
    members: Vec<(String, Range<usize>)>,
}

fn inserted(
    text: &str,
    object: &Object,
    keys: &[&str],
    entry: &str,
    depth: usize,
) -> Option<String> {
    let (key, deeper) = keys.split_first()?;
    let found = object.members.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    if let Some(value) = found {
        if deeper.is_empty() {
            let indented = indented(entry, depth);
            return replaced(text, value.clone(), &indented);
        }
        let inner = object_at(text, value.start)?;
        return inserted(text, &inner, deeper, entry, depth + 1);
    }
    let value = deeper.iter().rev().fold(entry.to_owned(), |inner, key| {
        format!("{{\n  \"{key}\": {}\n}}", indented(&inner, 1))
    });
    let pad = "  ".repeat(depth);
    let member = format!("\n{pad}\"{key}\": {}", indented(&value, depth));
    let closing = "  ".repeat(depth - 1);
    let addition = if object.members.is_empty() {
        format!("{member}\n{closing}")
    } else {
        format!("{member},")
    };
    let place = object.start..if object.members.is_empty() { object.end } else { object.start };
    let has_comment = object.members.is_empty() && !text.get(place.clone())?.trim().is_empty();
    if has_comment { None } else { replaced(text, place, &addition) }
}

fn replaced(text: &str, place: Range<usize>, with: &str) -> Option<String> {
    Some(format!("{}{with}{}", text.get(..place.start)?, text.get(place.end..)?))
}

fn indented(text: &str, depth: usize) -> String {
    text.replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

/// Reads the object that begins here.
fn object_at(text: &str, start: usize) -> Option<Object> {
    let mut at = expected(text, start, "{")?;
    let mut object = Object { start: at, end: at, members: Vec::new() };
    loop {
        at = skipped(text, at)?;
        if text.get(at..)?.starts_with('}') {
            return Some(Object { end: at, ..object });
        }
        let key_end = value_end(text, at)?;
        let key = serde_json::from_str(text.get(at..key_end)?).ok()?;
        let value = skipped(text, expected(text, skipped(text, key_end)?, ":")?)?;
        let end = value_end(text, value)?;
        object.members.push((key, value..end));
        at = skipped(text, end)?;
        if text.get(at..)?.starts_with(',') {
            at += 1;
        } else if !text.get(at..)?.starts_with('}') {
            return None;
        }
    }
}

fn expected(text: &str, at: usize, sign: &str) -> Option<usize> {
    text.get(at..)?.starts_with(sign).then_some(at + sign.len())
}

/// Returns the place after white space and comments.
fn skipped(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        let comment = if trimmed.starts_with("//") {
            trimmed.find('\n').unwrap_or(trimmed.len())
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/")? + 2
        } else {
            return Some(at);
        };
        at += comment;
    }
}

/// Returns the place after the value that begins here.
fn value_end(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    match rest.chars().next()? {
        '"' => string_end(text, start),
        '{' | '[' => {
            let mut depth = 0_usize;
            let mut at = start;
            loop {
                at = skipped(text, at)?;
                let character = text.get(at..)?.chars().next()?;
                match character {
                    '"' => at = string_end(text, at)?,
                    '{' | '[' => {
                        depth += 1;
                        at += 1;
                    }
                    '}' | ']' => {
                        depth -= 1;
                        at += 1;
                        if depth == 0 {
                            return Some(at);
                        }
                    }
                    other => at += other.len_utf8(),
                }
            }
        }
        _ => {
            let length = rest.find(|c: char| ",}]/".contains(c) || c.is_whitespace());
            Some(start + length.unwrap_or(rest.len()))
        }
    }
}

fn string_end(text: &str, start: usize) -> Option<usize> {
    let mut is_escaped = false;
    for (offset, character) in text.get(start + 1..)?.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(start + 1 + offset + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KEYS: [&str; 2] = ["mcpServers", "quipu"];

    fn added(text: &str) -> Value {
        let new = with_entry(text, &KEYS, "{\n  \"command\": \"quipu\"\n}").unwrap();
        serde_json::from_str(&new).unwrap_or_else(|error| panic!("{error}: {new}"))
    }

    #[test]
    fn an_entry_is_added_wherever_there_is_none() {
        let expected = json!({"command": "quipu"});
        for text in ["", "{}", " {\n}\n", "{\"mcpServers\": {}}"] {
            assert_eq!(added(text), json!({"mcpServers": {"quipu": expected}}), "{text}");
        }
        let full = added("{\"a\": [1, \"}\"], \"mcpServers\": {\"b\": {\"c\": null}}}");
        let servers = json!({"quipu": expected, "b": {"c": null}});
        assert_eq!(full, json!({"a": [1, "}"], "mcpServers": servers}));
    }

    #[test]
    fn an_entry_is_replaced_and_nothing_else_changes() {
        let text =
            "{\n  // mine\n  \"mcpServers\": {\"quipu\": {\"x\": 1}, \"z\": 2}, /* end */\n}\n";
        let new = with_entry(text, &KEYS, "{}").unwrap();
        assert_eq!(new, text.replace("{\"x\": 1}", "{}"));
        assert_eq!(with_entry(&new, &KEYS, "{}").unwrap(), new);
    }

    #[test]
    fn comments_and_a_byte_order_mark_stay() {
        let text = "\u{feff}{ // one\n\"a\": \"//\" }";
        let new = with_entry(text, &KEYS, "{}").unwrap();
        assert!(new.starts_with("\u{feff}{") && new.contains("// one\n\"a\": \"//\" }"));
    }

    #[test]
    fn what_is_no_object_is_left_alone() {
        for text in ["[]", "{", "{\"mcpServers\": 3}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "x"] {
            assert_eq!(with_entry(text, &KEYS, "{}"), None, "{text}");
        }
    }
}
