//! Static tables: a vector for each token, and a text is the average of its tokens.
//!
//! Tables of the model2vec and of the wordllama kind are understood. They know no order of words, and cost a
//! hundredth of what a transformer costs.

use std::path::Path;

use serde::Deserialize;

use crate::model::read_config;
use crate::safetensors::{Tensor, Weights};
use crate::tokenizer::Tokenizer;
use crate::{EncodeError, Kind};

/// An open table. Its rows stay in the file until a text needs them.
#[derive(Debug)]
pub(crate) struct Table {
    tokenizer: Tokenizer,
    weights: Weights,
    rows: Tensor,
    dimensions: usize,
    /// The row of each token, if tokens share rows.
    mapping: Option<Vec<usize>>,
    /// How much each token counts, if that differs.
    importance: Option<Vec<f32>>,
    /// What is left out of the average.
    ignored: Option<u32>,
    tokens_max: usize,
}

#[derive(Deserialize)]
struct Config {
    max_length: Option<usize>,
}

/// What model2vec takes in if its configuration says nothing else.
const TOKENS_MAX: usize = 512;

impl Table {
    /// Opens the table in a directory.
    pub(crate) fn open(directory: &Path, kind: Kind) -> Result<Self, EncodeError> {
        let weights = Weights::open(&directory.join("model.safetensors"))?;
        let tokenizer = Tokenizer::open(&directory.join("tokenizer.json"))?;
        let rows = weights.tensor(kind.table_name(), 2)?.clone();
        let &[rows_count, dimensions] = rows.shape.as_slice() else {
            return Err(EncodeError::new("the table has no rows".to_owned()));
        };
        let (mut mapping, mut importance) = (None, None);
        let (mut ignored, mut tokens_max) = (None, usize::MAX);
        if kind == Kind::Model2Vec {
            mapping =
                optional(&weights, "mapping")?.map(|rows| rows.into_iter().map(row).collect());
            importance = optional(&weights, "weights")?;
            ignored = tokenizer.unknown();
            let config: Option<Config> = read_config(directory, "config.json")?;
            tokens_max = config.and_then(|config| config.max_length).unwrap_or(TOKENS_MAX);
        }
        if mapping.iter().flatten().any(|row: &usize| *row >= rows_count) {
            return Err(EncodeError::new("a token has a row that the table lacks".to_owned()));
        }
        let tokens_count = mapping.as_ref().map_or(rows_count, Vec::len);
        let table =
            Self { tokenizer, weights, rows, dimensions, mapping, importance, ignored, tokens_max };
        if table.tokenizer.last_token() as usize >= tokens_count {
            return Err(EncodeError::new(
                "the tokenizer has more tokens than the table".to_owned(),
            ));
        }
        Ok(table)
    }

    /// Returns how many tokens of a text are read.
    pub(crate) fn tokens_max(&self) -> usize {
        self.tokens_max
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Fails if a number of the table is not finite.
    pub(crate) fn check(&self, kind: Kind) -> Result<(), EncodeError> {
        self.weights.check_finite(kind.table_name(), 2)
    }

    /// Returns the sum of a text's tokens, which has the direction of their average.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<f32>, EncodeError> {
        let mut sum = vec![0.0; self.dimensions];
        let mut numbers = vec![0.0; self.dimensions];
        for token in self.tokenizer.tokens(text, self.tokens_max) {
            if Some(token) == self.ignored {
                continue;
            }
            let token = token as usize;
            let importance = self.importance.as_ref().and_then(|list| list.get(token).copied());
            let mapped = self.mapping.as_ref().and_then(|mapping| mapping.get(token).copied());
            let position = mapped.unwrap_or(token).saturating_mul(self.dimensions);
            self.weights.read(&self.rows, position, &mut numbers)?;
            for (sum, number) in sum.iter_mut().zip(&numbers) {
                *sum += number * importance.unwrap_or(1.0);
            }
        }
        Ok(sum)
    }
}

fn optional(weights: &Weights, name: &str) -> Result<Option<Vec<f32>>, EncodeError> {
    if !weights.contains(name) {
        return Ok(None);
    }
    weights.check_finite(name, 1)?;
    let shape = weights.tensor(name, 1)?.shape.clone();
    weights.numbers(name, &shape).map(Some)
}

/// Returns the number of a row; of a row that cannot be, one that no table has.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn row(number: f32) -> usize {
    if number < 0.0 { usize::MAX } else { number as usize }
}
