//! The text of a memory and its hash.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

/// The text of a memory: UTF-8 without NUL, kept byte for byte.
///
/// The maximum length is a setting, so the engine checks it.
#[derive(Clone)]
pub struct Content(Arc<Text>);

struct Text {
    text: Box<str>,
    /// Computed on first use, so that it can be computed before a transaction begins.
    hash: OnceLock<ContentHash>,
}

impl Content {
    /// Returns the text as content, unless it holds a NUL character.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, ContentError> {
        let text = text.into();
        match text.find('\0') {
            Some(offset) => Err(ContentError::Nul { offset }),
            None => Ok(Self(Arc::new(Text { text, hash: OnceLock::new() }))),
        }
    }

    /// Returns the bytes as content, unless they are not UTF-8 or hold a NUL.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ContentError> {
        match str::from_utf8(bytes) {
            Ok(text) => Self::new(text),
            Err(error) => Err(ContentError::NotUtf8 { offset: error.valid_up_to() }),
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the length in bytes.
    pub fn size_bytes(&self) -> u64 {
        u64::try_from(self.0.text.len()).expect("a length fits in 64 bits")
    }

    /// Returns the SHA-256 of the bytes.
    pub fn hash(&self) -> ContentHash {
        *self.0.hash.get_or_init(|| ContentHash(Sha256::digest(self.0.text.as_bytes()).into()))
    }
}

impl Default for Content {
    /// Returns the empty text.
    fn default() -> Self {
        Self(Arc::new(Text { text: Box::default(), hash: OnceLock::new() }))
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    /// Shows the size only, because content must never reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.0.text.len())
    }
}

/// The error for bytes that cannot be a memory's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentError {
    /// A NUL character stands at this byte.
    Nul {
        /// How many bytes come before it.
        offset: usize,
    },
    /// The bytes from here on are not UTF-8.
    NotUtf8 {
        /// How many bytes come before them.
        offset: usize,
    },
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nul { offset } => {
                write!(f, "the content has a NUL character at byte {offset}; memories are text")
            }
            Self::NotUtf8 { offset } => {
                write!(f, "the content is not UTF-8 at byte {offset}; memories are text")
            }
        }
    }
}

impl std::error::Error for ContentError {}

/// The SHA-256 of a memory's bytes, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Returns the hash with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            let halves = [byte >> 4, byte & 15].map(|half| DIGITS.get(usize::from(half)));
            for (digit, half) in pair.iter_mut().zip(halves) {
                *digit = *half.expect("half a byte is below 16");
            }
        }
        f.write_str(str::from_utf8(&text).expect("digits are ASCII"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseHashError;

impl fmt::Display for ParseHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content hash is 64 lower-case hex digits")
    }
}

impl std::error::Error for ParseHashError {}

impl FromStr for ContentHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, ParseHashError> {
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(ParseHashError),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(ParseHashError);
        }
        let mut bytes = [0; 32];
        for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = nibble(high)? << 4 | nibble(low)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha256_of_the_bytes() {
        let empty = Content::new("").unwrap();
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(empty.hash().to_string(), expected);
        assert_eq!(expected.parse(), Ok(empty.hash()));
    }

    #[test]
    fn nothing_is_normalized() {
        for text in ["a\r\nb", "\u{feff}x", "e\u{301}", " \t\n"] {
            assert_eq!(Content::from_bytes(text.as_bytes()).unwrap().as_str(), text);
        }
    }

    #[test]
    fn nul_and_invalid_utf8_are_refused_with_their_offset() {
        assert_eq!(Content::new("ab\0"), Err(ContentError::Nul { offset: 2 }));
        assert_eq!(Content::from_bytes(b"a\xff"), Err(ContentError::NotUtf8 { offset: 1 }));
    }

    #[test]
    fn hashes_in_another_form_are_refused() {
        let upper = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";
        for text in ["", "e3b0", upper, &"é".repeat(32), &"0".repeat(65)] {
            assert!(text.parse::<ContentHash>().is_err(), "{text}");
        }
    }

    #[test]
    fn debug_output_never_shows_the_text() {
        assert_eq!(format!("{:?}", Content::new("secret").unwrap()), "Content(6 bytes)");
    }
}
