//! Finds a pattern in texts that write some of their characters as escapes.
//!
//! The bodies of events, agents and environments, and the details of sessions, are opaque to the engine. But
//! whoever looks for a text means what the body says: a key of two lines, or a password with a quotation
//! mark. Doors write bodies as JSON, where such characters stand behind a backslash. So a body is searched
//! as it is, and once more with its escapes undone. That may find more than it should, for example a match
//! across two fields, and it never finds less.

use super::Pattern;

/// How often escapes are undone: a text in a text in a text, as in the arguments of a tool.
const LEVELS_MAX: usize = 4;

/// Returns whether a text matches as it is or with its escapes undone.
pub(super) fn matches(pattern: &Pattern<'_>, text: &str) -> bool {
    if pattern.matches(text) {
        return true;
    }
    let mut written = text.to_owned();
    for _ in 0..LEVELS_MAX {
        if !written.contains('\\') {
            return false;
        }
        written = read(&written);
        if pattern.matches(&written) {
            return true;
        }
    }
    false
}

/// Returns a text with its escapes undone. What is no escape stays.
fn read(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escaped)) = rest.split_once('\\') {
        result.push_str(before);
        let (character, after) = escape(escaped);
        match character {
            Some(character) => result.push(character),
            None => result.push('\\'),
        }
        rest = after;
    }
    result.push_str(rest);
    result
}

/// Returns the character that an escape stands for, and what comes after it; `None` if it is no escape.
fn escape(text: &str) -> (Option<char>, &str) {
    let mut characters = text.chars();
    let after =
        |characters: std::str::Chars<'_>| -> usize { text.len() - characters.as_str().len() };
    let Some(first) = characters.next() else { return (None, text) };
    let rest = text.get(after(characters)..).unwrap_or_default();
    match first {
        '"' | '\\' | '/' => (Some(first), rest),
        'b' => (Some('\u{8}'), rest),
        'f' => (Some('\u{c}'), rest),
        'n' => (Some('\n'), rest),
        'r' => (Some('\r'), rest),
        't' => (Some('\t'), rest),
        'u' => match unit(rest) {
            Some((high @ 0xd800..=0xdbff, after)) => {
                let low = after.strip_prefix("\\u").and_then(unit);
                match low {
                    Some((low @ 0xdc00..=0xdfff, after)) => {
                        let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        (char::from_u32(code), after)
                    }
                    Some(_) | None => (None, text),
                }
            }
            Some((code, after)) => match char::from_u32(code) {
                Some(character) => (Some(character), after),
                None => (None, text),
            },
            None => (None, text),
        },
        _ => (None, text),
    }
}

/// Returns the number of four hex digits, and what comes after them.
fn unit(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    Some((code, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_the_rest_stays() {
        assert_eq!(read(r#"a \"b\" \\ c\n\u00e9\ud83c\udf75\/"#), "a \"b\" \\ c\né🍵/");
        for odd in [r"\", r"\x", r"\u12", r"\u+123", r"\ud83c", r"\udf75"] {
            assert_eq!(read(odd), odd);
        }
        assert_eq!(read(r"\ud83c\u0041"), r"\ud83cA");
    }

    #[test]
    fn a_text_is_found_however_deep_it_is_written() {
        let pattern = Pattern::text("one\n\"two\"").unwrap();
        let once = r#"{"text":"one\n\"two\""}"#;
        let twice = r#"{"text":"{\"text\":\"one\\n\\\"two\\\"\"}"}"#;
        for (text, is_found) in
            [("one\n\"two\"", true), (once, true), (twice, true), (r#"one\n"two"#, false)]
        {
            assert_eq!(matches(&pattern, text), is_found, "{text}");
        }
    }
}
