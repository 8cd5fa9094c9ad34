//! Vectors of texts: what makes them, and how they are compared.
//!
//! A vector places a text by its meaning: texts about the same thing are near each other, whatever
//! words they use. Vectors are optional, so nothing here may make a start slower, a write wait or a
//! search fail.
//!
//! This crate knows no store. `quipu-knowledge` keeps the vectors and searches them.

mod bert;
mod endpoint;
#[cfg(test)]
mod fixture;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod model;
mod panels;
mod prefixes;
pub mod quantized;
mod safetensors;
mod table;
mod tokenizer;

pub use endpoint::EndpointEncoder;
pub use model::{
    Kind, LocalEncoder, Manifest, ModelFile, OPTIONAL_FILES, TOKENIZER, WEIGHTS, sha256,
};
pub use prefixes::Prefixes;

use std::fmt;

/// Makes vectors of texts.
///
/// Calls may take long and may block: an encoder computes, or waits for a server. The caller bounds
/// how long it waits for questions, and encodes memories in the background.
pub trait Encoder: fmt::Debug + Send + Sync {
    /// Returns what the vectors depend on: the kind of the encoder and a digest of its weights, or the
    /// address and the name of a model. Vectors of different identities are not comparable.
    fn identity(&self) -> &str;

    /// Returns the length of the vectors. An endpoint that has encoded nothing yet is asked for it, so this may
    /// block; it is zero if the endpoint does not answer.
    fn dimensions(&self) -> usize;

    /// Returns how many tokens of a text are read. What follows them is ignored.
    fn tokens_max(&self) -> usize {
        TOKENS_MAX_ASSUMED
    }

    /// Returns how many tokens a text has, at least roughly. May load a model.
    fn tokens(&self, text: &str) -> usize {
        estimated_tokens(text)
    }

    /// Returns how many questions may be encoded at the same time.
    fn questions_max(&self) -> usize {
        1
    }

    /// Returns a vector of length one for each text, in order. A text without anything that the encoder
    /// knows has the zero vector, which is similar to nothing.
    fn encode(&self, purpose: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError>;
}

/// How many tokens an encoder is assumed to read that cannot be asked: as many as the smallest ones.
const TOKENS_MAX_ASSUMED: usize = 256;

/// Estimates how many tokens a text has for an encoder whose vocabulary is unknown. The vocabularies of small
/// encoders have most English words, and split other words, numbers and code into short pieces.
pub fn estimated_tokens(text: &str) -> usize {
    const WORD_CHARS: usize = 6;
    const NUMBER_CHARS: usize = 3;
    const FOREIGN_CHARS: usize = 2;
    let (mut count, mut before, mut length) = (0, None, 0_usize);
    for letter in text.chars() {
        // From here on, scripts without spaces and symbols, each of which is a token.
        let chars = match letter {
            _ if letter.is_whitespace() => None,
            _ if letter.is_ascii_alphabetic() => Some(WORD_CHARS),
            _ if letter.is_ascii_digit() => Some(NUMBER_CHARS),
            '\u{2e80}'.. => Some(1),
            _ if letter.is_alphabetic() => Some(FOREIGN_CHARS),
            _ => Some(1),
        };
        length = if chars == before { length + 1 } else { 1 };
        before = chars;
        // The first of each `chars` letters in a row begins a token.
        count += usize::from(chars.is_some_and(|chars| (length - 1).is_multiple_of(chars)));
    }
    count
}

/// What a vector is for. Some models place questions and answers differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To look for memories.
    Question,
    /// To be found.
    Memory,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 2] = [Self::Question, Self::Memory];
}

/// Why an encoder has failed, in words that every caller of a search may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    reason: String,
    /// What only the operator may read.
    detail: Option<String>,
    is_of_text: bool,
}

impl EncodeError {
    /// Returns an error of the encoder itself, which would fail for any text.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: None, is_of_text: false }
    }

    /// Returns an error that says nothing about other texts: the encoder works, but rejects one of these.
    pub fn of_text(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), detail: None, is_of_text: true }
    }

    /// Returns the error with what only the operator may read, such as the names in a certificate. It is no
    /// secret.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// Returns the reason in words for the operator.
    pub fn in_detail(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{self} ({detail})"),
            None => self.to_string(),
        }
    }

    /// Returns whether the encoder works and has rejected a text.
    pub fn is_of_text(&self) -> bool {
        self.is_of_text
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for EncodeError {}

/// Returns a vector with the same direction and length one; the zero vector stays what it is.
fn normalized(mut vector: Vec<f32>) -> Result<Vec<f32>, EncodeError> {
    // The sum of squares of large numbers overflows 32 bits.
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() {
        return Err(EncodeError::of_text("its embedding contains NaN or infinity"));
    }
    if length > 0.0 {
        for number in &mut vector {
            #[expect(clippy::cast_possible_truncation, reason = "at most one")]
            let scaled = (f64::from(*number) / length) as f32;
            *number = scaled;
        }
    }
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_estimated_by_the_kinds_of_characters() {
        for (text, expected) in [
            ("", 0),
            ("  \n", 0),
            ("tea", 1),
            ("green tea", 2),
            ("connections", 2),
            ("don't!", 4),
            ("2026-11-18", 2 + 1 + 1 + 1 + 1),
            ("чай", 2),
            ("漢字かな", 4),
            ("a1b2", 4),
        ] {
            assert_eq!(estimated_tokens(text), expected, "{text}");
        }
    }
}
