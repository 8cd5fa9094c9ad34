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
mod model;
mod panels;
pub mod quantized;
mod safetensors;
mod table;
mod tokenizer;

pub use endpoint::EndpointEncoder;
pub use model::{
    Kind, LocalEncoder, Manifest, ModelFile, OPTIONAL_FILES, TOKENIZER, WEIGHTS, sha256,
};

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

    /// Returns a vector of length one for each text, in order. A text without anything that the encoder
    /// knows has the zero vector, which is similar to nothing.
    fn encode(&self, purpose: Purpose, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeError>;
}

/// What a vector is for. Some models place questions and answers differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To look for memories.
    Question,
    /// To be found.
    Memory,
}

/// Why an encoder has failed, in words for the operator. It names no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    reason: String,
    is_of_text: bool,
}

impl EncodeError {
    /// Returns an error of the encoder itself, which would fail for any text.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_of_text: false }
    }

    /// Returns an error that says nothing about other texts: the encoder works, but rejects one of these.
    pub fn of_text(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_of_text: true }
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
