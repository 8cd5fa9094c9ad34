//! Long texts as JSON, faster than byte by byte.

use quipu_core::model::Content;
use serde::{Serialize as _, Serializer};
use serde_json::value::RawValue;

/// Writes the text of a memory.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
pub(super) fn text<S: Serializer>(
    content: &Option<Content>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let quoted = content.as_ref().map(|content| quoted(content.as_str()));
    let raw = quoted.map(RawValue::from_string).transpose();
    raw.map_err(serde::ser::Error::custom)?.serialize(serializer)
}

/// Returns a text as a JSON string, in the way of `serde_json`.
fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + text.len() / 8 + 2);
    json.push('"');
    let mut rest = text;
    while let Some((plain, special, tail)) = split_at_special(rest) {
        json.push_str(plain);
        push_escaped(&mut json, special);
        rest = tail;
    }
    json.push_str(rest);
    json.push('"');
    json
}

/// Splits a text at the first character that JSON does not take as it is.
fn split_at_special(text: &str) -> Option<(&str, u8, &str)> {
    let at = special_offset(text.as_bytes())?;
    let special = *text.as_bytes().get(at)?;
    Some((text.get(..at)?, special, text.get(at + 1..)?))
}

/// Looks at eight bytes at a time, then at the single bytes of the eight that hold one.
fn special_offset(bytes: &[u8]) -> Option<usize> {
    let words = bytes.chunks_exact(8);
    let tail_offset = bytes.len() - words.remainder().len();
    let has_special =
        |word: &[u8]| word.try_into().is_ok_and(|word| has_special_byte(u64::from_le_bytes(word)));
    let near = words.map(has_special).position(|found| found).map_or(tail_offset, |word| word * 8);
    let single = bytes.get(near..)?.iter().position(|byte| is_special(*byte));
    single.map(|offset| near + offset)
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Tells whether one of eight bytes is special. It may be wrong about a word only by saying yes.
fn has_special_byte(word: u64) -> bool {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    let below = |limit: u8, word: u64| {
        word.wrapping_sub(ONES.wrapping_mul(u64::from(limit))) & !word & HIGHS
    };
    let equal = |byte: u8| below(1, word ^ ONES.wrapping_mul(u64::from(byte)));
    (below(0x20, word) | equal(b'"') | equal(b'\\')) != 0
}

fn push_escaped(json: &mut String, special: u8) {
    match special {
        b'"' => json.push_str("\\\""),
        b'\\' => json.push_str("\\\\"),
        b'\n' => json.push_str("\\n"),
        b'\t' => json.push_str("\\t"),
        b'\r' => json.push_str("\\r"),
        0x08 => json.push_str("\\b"),
        0x0c => json.push_str("\\f"),
        other => json.push_str(&format!("\\u{other:04x}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expected(text: &str) -> String {
        serde_json::to_string(text).unwrap()
    }

    #[test]
    fn every_character_of_ascii_is_written_as_serde_json_writes_it() {
        for byte in 0..128_u8 {
            for before in 0..9 {
                let text = format!("{}{}end", "é".repeat(before), char::from(byte));
                assert_eq!(quoted(&text), expected(&text));
            }
        }
        assert_eq!(quoted(""), expected(""));
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_writes_it(text in r#"([a-z "\\\n\t\x00-\x1f]|\PC){0,80}"#) {
            prop_assert_eq!(quoted(&text), expected(&text));
        }
    }
}
