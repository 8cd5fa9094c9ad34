//! The character classes that credentials are made of, and where a run of them begins and ends.
//!
//! Two rules make the screening linear and its redaction final. A credential begins where a run
//! of its characters begins, so no run is read twice by the same rule. And a credential neither
//! begins after `]` nor ends before `[`, so where `[…]` stands for a redacted one, its neighbors
//! gain no border that they did not have.

#[cfg(test)]
mod tests;

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    /// `0-9`
    Digit,
    /// `0-9a-f`
    Hex,
    /// `0-9a-fA-F`
    AnyHex,
    /// `0-9A-Z`
    Upper,
    /// `0-9a-zA-Z`
    Alnum,
    /// `0-9a-zA-Z_-`, which is also base64url.
    Word,
    /// `0-9a-zA-Z+/`, without the `=` that may end it: see [`padding_end`].
    Base64,
    /// Everything that tokens of the `Bearer` scheme are made of.
    Bearer,
    /// Everything that may be in an assigned value, but no operator, bracket or quote.
    Value,
}

impl Class {
    /// Returns whether the byte is in the class.
    pub(super) fn holds(self, byte: u8) -> bool {
        match self {
            Self::Digit => byte.is_ascii_digit(),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::AnyHex => byte.is_ascii_hexdigit(),
            Self::Upper => matches!(byte, b'0'..=b'9' | b'A'..=b'Z'),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => is_word(byte),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'),
            Self::Bearer => is_word(byte) || matches!(byte, b'.' | b'~' | b'+' | b'/'),
            Self::Value => {
                is_word(byte)
                    || matches!(byte, b'.' | b'~' | b'+' | b'/' | b'!' | b'@' | b'#' | b'$')
                    || matches!(byte, b'%' | b'^' | b'*')
            }
        }
    }

    /// Returns the end of the run of this class that begins at `start`.
    pub(super) fn run_end(self, bytes: &[u8], start: usize) -> usize {
        let rest = bytes.get(start..).unwrap_or_default();
        start + rest.iter().take_while(|byte| self.holds(**byte)).count()
    }
}

/// Returns the end of the base64 padding at `start`: at most two `=`.
pub(super) fn padding_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().take(2).take_while(|byte| **byte == b'=').count()
}

/// Returns whether the byte is a letter, a digit, `_` or `-`.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns the byte that is `distance` before `at`.
pub(super) fn before(bytes: &[u8], at: usize, distance: usize) -> Option<u8> {
    bytes.get(at.checked_sub(distance)?).copied()
}

/// Returns whether a token may begin at `start`.
///
/// That is after anything but a word character or `]`, after an escape such as `\n` or `%3D`, and
/// after the dash of a shell default such as `${TOKEN:-…}`.
pub(super) fn begins_token(bytes: &[u8], start: usize) -> bool {
    let Some(last) = before(bytes, start, 1) else { return true };
    if !is_word(last) {
        return last != b']';
    }
    let second = before(bytes, start, 2);
    match last {
        b'n' | b'r' | b't' if second == Some(b'\\') => true,
        b'-' | b'_' => matches!(second, None | Some(b':' | b' ' | b'"' | b'\'' | b'(' | b'\n')),
        _ => {
            last.is_ascii_hexdigit()
                && second.is_some_and(|byte| byte.is_ascii_hexdigit())
                && before(bytes, start, 3) == Some(b'%')
        }
    }
}

/// Returns whether a token may end at `end`: neither a word character nor `[` follows.
pub(super) fn ends_token(bytes: &[u8], end: usize) -> bool {
    !bytes.get(end).is_some_and(|byte| is_word(*byte) || *byte == b'[')
}
