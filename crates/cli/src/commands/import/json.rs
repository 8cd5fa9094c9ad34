//! JSON files of other programs, lenient about common damage.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;

/// The text of a JSON file.
pub(super) struct JsonFile {
    /// The name of the file, for messages.
    pub(super) name: String,
    pub(super) text: String,
}

impl JsonFile {
    /// Reads a file. Lone surrogates and NUL, which JSON can escape but no memory can hold, become
    /// U+FFFD.
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        let read = Self::read_as_it_is(file)?;
        Ok(Self { text: mended(&read.text), ..read })
    }

    /// Returns the first document of a file; of a list, its first element.
    pub(super) fn read_first_document(file: &Path) -> Result<Value, Failure> {
        let read = Self::read_as_it_is(file)?;
        // Repairing a long file is slow, and few first documents need it.
        let first = first_document(&read.text).or_else(|| first_document(&mended(&read.text)));
        Ok(first.unwrap_or(Value::Null))
    }

    fn read_as_it_is(file: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::usage(format!("{} cannot be read: {error}", file.display()))
        };
        let bytes = fs::read(file).map_err(|error| failed(&error))?;
        let text = String::from_utf8(bytes).map_err(|error| failed(&error.utf8_error()))?;
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, text })
    }

    /// Returns all documents; each element of a list is one.
    pub(super) fn documents(&self) -> Result<Vec<Value>, Failure> {
        let mut documents = Vec::new();
        for document in serde_json::Deserializer::from_str(&self.text).into_iter::<Value>() {
            let document = document
                .map_err(|error| Failure::usage(format!("{} is no JSON: {error}", self.name)))?;
            if let Value::Array(elements) = document {
                documents.extend(elements);
            } else {
                documents.push(document);
            }
        }
        Ok(documents)
    }
}

fn first_document(text: &str) -> Option<Value> {
    let text = text.trim_start();
    let text = text.strip_prefix('[').unwrap_or(text);
    serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()
}

/// Replaces escapes of characters that a memory cannot hold.
fn mended(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        mended.push_str(plain);
        let pair = unit(escape).and_then(|high| {
            let low = escape.get(5..)?.strip_prefix('\\').and_then(unit)?;
            ((0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low)).then_some(11)
        });
        let is_lost = matches!(unit(escape), Some(0 | 0xd800..0xe000)) && pair.is_none();
        // Skip the character after the backslash, which may itself be a backslash.
        let length = pair.unwrap_or_else(|| match unit(escape) {
            Some(_) => 5,
            None => escape.chars().next().map_or(0, char::len_utf8),
        });
        let (kept, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        mended.push('\\');
        mended.push_str(if is_lost { "ufffd" } else { kept });
        rest = after;
    }
    mended.push_str(rest);
    mended
}

/// Parses `u1234` at the beginning of a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('u')?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_memory_can_hold_is_replaced() {
        let cases = [
            (r#""plain""#, r#""plain""#),
            (r#""\ud83d\ude00 \u00e9""#, r#""\ud83d\ude00 \u00e9""#),
            (r#""cut \ud83d""#, r#""cut \ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ude00\n\u0000""#, r#""\ufffd\n\ufffd""#),
            (r#""\\ud83d \\\ud83d""#, r#""\\ud83d \\\ufffd""#),
            (r#""\uD83D\u00e9""#, r#""\ufffd\u00e9""#),
            ("\"\\é\\", "\"\\é\\"),
        ];
        for (text, expected) in cases {
            assert_eq!(mended(text), expected);
        }
    }
}
