//! Vectors: memories by what they mean.
//!
//! An [`Encoder`] turns texts into vectors. [`mod@passages`] are what it is given, the indexer stores
//! the vectors in the background, a [`matrix`] holds those of a store in memory to be scanned, and
//! [`questions`] bounds the wait for the vector of a question. All of it is optional: a search never
//! fails for lack of a vector.

mod matrices;
mod matrix;
mod passages;
mod questions;

use std::sync::Arc;

use quipu_core::Error;
use quipu_core::model::{Actor, Timestamp};
use quipu_vectors::quantized::{DIMENSIONS_MAX, Quantized, Question};
use quipu_vectors::{EncodeError, Encoder, Purpose};

pub(crate) use matrices::{Available, Matrices};
pub(crate) use matrix::{Matrix, Similarity};
pub(crate) use passages::Passage;

use passages::passages;
use questions::Questions;

/// An encoder, and what this process knows of it.
#[derive(Debug)]
pub(crate) struct Meaning {
    encoder: Arc<dyn Encoder>,
    questions: Questions,
    /// When this process was given the encoder.
    since: Timestamp,
}

impl Meaning {
    pub(crate) fn new(encoder: Arc<dyn Encoder>, since: Timestamp) -> Self {
        let questions = Questions::new(Arc::clone(&encoder));
        Self { encoder, questions, since }
    }

    /// Returns when this process was given the encoder.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns what the vectors depend on.
    pub(crate) fn identity(&self) -> &str {
        self.encoder.identity()
    }

    /// Returns the length of the vectors, or says why they cannot be stored.
    pub(crate) fn dimensions(&self) -> Result<usize, String> {
        match self.encoder.dimensions() {
            dimensions @ 1..=DIMENSIONS_MAX => Ok(dimensions),
            // It does not know, as it does not work. Its own words say why.
            0 => {
                let probe = self.encoder.encode(Purpose::Memory, &["?"]);
                Err(probe.err().map_or_else(no_length, |error| error.in_detail()))
            }
            dimensions => {
                Err(format!("its vectors have the length {dimensions}, more than {DIMENSIONS_MAX}"))
            }
        }
    }

    /// Splits a memory into passages, each of which has a vector. May take as long as the encoder.
    pub(crate) fn passages(&self, title: &str, text: &str) -> Vec<Passage> {
        passages(title, text, &*self.encoder)
    }

    /// Returns the vectors of passages, or says why there are none. Takes as long as the encoder.
    pub(crate) fn embed(&self, texts: &[&str]) -> Result<Vec<Quantized>, EncodeError> {
        encode(&*self.encoder, Purpose::Memory, texts, Quantized::new)
    }

    /// Returns the vector of a question of somebody, or says why there is none. Waits a bounded time.
    pub(crate) fn question(
        &self,
        text: &str,
        asked_by: Option<&Actor>,
    ) -> Result<Arc<Question>, String> {
        self.questions.ask(text, asked_by)
    }
}

/// Returns the error for a search that needs a model where there is none.
pub(crate) fn no_model() -> Error {
    Error::invalid("semantic search needs an embedding model, and none is configured").with_hint(
        "`quipu model use NAME` chooses an installed one, `quipu model install` installs one; the \
             settings can name an endpoint instead",
    )
}

fn no_length() -> String {
    "the length of its vectors is not known".to_owned()
}

/// Calls an encoder and checks what it returns: the number of vectors, their length, and that each has
/// a direction or is zero. `convert` returns `None` for a vector with a value that is not finite.
fn encode<T>(
    encoder: &dyn Encoder,
    purpose: Purpose,
    texts: &[&str],
    convert: impl Fn(&[f32]) -> Option<T>,
) -> Result<Vec<T>, EncodeError> {
    let vectors = encoder.encode(purpose, texts)?;
    if vectors.len() != texts.len() {
        let message = format!("it returned {} embeddings for {} texts", vectors.len(), texts.len());
        return Err(EncodeError::new(message));
    }
    let dimensions = encoder.dimensions();
    let convert = |vector: Vec<f32>| {
        if vector.len() != dimensions {
            let message =
                format!("it returned an embedding of length {}, not {dimensions}", vector.len());
            return Err(EncodeError::new(message));
        }
        convert(&vector)
            .ok_or_else(|| EncodeError::new("it returned an embedding with NaN or infinity"))
    };
    vectors.into_iter().map(convert).collect()
}
