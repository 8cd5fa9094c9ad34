//! Digests of plans.

use std::fmt;
use std::str::FromStr;

use super::{Content, ContentError, ContentHash};

/// The minimum number of digits by which a digest can be named.
const DIGITS_MIN: usize = 8;
/// The number of digits of a whole digest.
const DIGITS: usize = 64;

/// The SHA-256 of a plan, written as 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(ContentHash);

impl Digest {
    /// Returns the digest of a plan's canonical text, which must not hold a NUL.
    pub fn of(canonical: String) -> Result<Self, ContentError> {
        Ok(Self(Content::new(canonical)?.hash()))
    }

    /// Returns the digest of several plans that are carried out one after the other. That of a single
    /// plan is the plan's own.
    pub fn combined(digests: &[Self]) -> Self {
        if let [only] = digests {
            return *only;
        }
        let lines: Vec<_> = digests.iter().map(Self::to_string).collect();
        Self::of(lines.join("\n")).expect("hex digits hold no NUL")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What a caller expects a digest to be: all of its digits, or at least the first 8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedDigest(String);

impl ExpectedDigest {
    /// Returns whether a digest is the expected one.
    pub fn accepts(&self, digest: Digest) -> bool {
        digest.to_string().starts_with(&self.0)
    }
}

impl From<Digest> for ExpectedDigest {
    fn from(digest: Digest) -> Self {
        Self(digest.to_string())
    }
}

/// The error for a text that cannot be the beginning of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseDigestError;

impl fmt::Display for ParseDigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a digest has {DIGITS} hex digits, of which the first {DIGITS_MIN} are enough")
    }
}

impl std::error::Error for ParseDigestError {}

impl FromStr for ExpectedDigest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !(DIGITS_MIN..=DIGITS).contains(&text.len()) {
            return Err(ParseDigestError);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_named_by_its_first_digits() {
        let digest = Digest::of("plan".to_owned()).unwrap();
        let text = digest.to_string();
        assert_eq!(text.len(), DIGITS);
        for digits in [DIGITS_MIN, 20, DIGITS] {
            let expected: ExpectedDigest = text.get(..digits).unwrap().parse().unwrap();
            assert!(expected.accepts(digest));
            assert!(!expected.accepts(Digest::of("another".to_owned()).unwrap()));
        }
        assert_eq!(text.to_uppercase().parse(), Ok(ExpectedDigest::from(digest)));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "1234567", "12345678x", &"0".repeat(DIGITS + 1)] {
            assert_eq!(text.parse::<ExpectedDigest>(), Err(ParseDigestError), "{text}");
        }
    }

    #[test]
    fn several_plans_have_a_digest_that_depends_on_each() {
        let [one, two] = ["one", "two"].map(|text| Digest::of(text.to_owned()).unwrap());
        assert_eq!(Digest::combined(&[one]), one);
        assert_ne!(Digest::combined(&[one, two]), Digest::combined(&[two, one]));
    }
}
