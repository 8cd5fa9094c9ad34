//! Splits texts into the tokens of a model, as its `tokenizer.json` says.
//!
//! Two kinds are understood, which are the ones that the supported models come with: `WordPiece` as in BERT,
//! and byte-pair encoding as in Llama 2. The format can describe many others; those are refused, because a text
//! that is split in another way than the model has learned gets a vector that means nothing.
//!
//! Names of special tokens in a text, such as `[CLS]`, are ordinary text here: nobody's note steers a model.

mod bpe;
mod wordpiece;

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::EncodeError;
use bpe::Bpe;
use wordpiece::WordPiece;

/// A tokenizer, ready to be used.
#[derive(Debug)]
pub(crate) enum Tokenizer {
    WordPiece(WordPiece),
    Bpe(Bpe),
}

/// What `tokenizer.json` holds, as far as it matters here.
#[derive(Deserialize)]
struct Description {
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    model: ModelDescription,
}

#[derive(Deserialize)]
struct ModelDescription {
    /// Old files leave it out.
    #[serde(rename = "type")]
    kind: Option<String>,
    unk_token: Option<String>,
    #[serde(default)]
    vocab: Value,
    #[serde(default)]
    merges: Vec<Merge>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    max_input_chars_per_word: Option<usize>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
}

/// Two tokens that become one. Old files write them as one string with a space.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Line(String),
    Pair(String, String),
}

const SIZE_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    pub(crate) fn open(path: &Path) -> Result<Self, EncodeError> {
        let mut text = Vec::new();
        let file = File::open(path).map_err(|error| broken(&error))?;
        let read = file.take(SIZE_BYTES_MAX + 1).read_to_end(&mut text);
        read.map_err(|error| broken(&error))?;
        if text.len() as u64 > SIZE_BYTES_MAX {
            return Err(broken(&"it is too large"));
        }
        Self::parse(&text)
    }

    /// Parses the text of a `tokenizer.json`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, EncodeError> {
        Self::new(serde_json::from_slice(text).map_err(|error| broken(&error))?)
    }

    fn new(description: Description) -> Result<Self, EncodeError> {
        let Description { normalizer, pre_tokenizer, model } = description;
        match model.kind() {
            "WordPiece" => {
                expect_kind(pre_tokenizer.as_ref(), "pre-tokenizer", "BertPreTokenizer")?;
                expect_kind(normalizer.as_ref(), "normalizer", "BertNormalizer")?;
                let normalizer = normalizer.unwrap_or_default();
                WordPiece::new(model, &normalizer).map(Self::WordPiece)
            }
            "BPE" => {
                if pre_tokenizer.is_some() {
                    return Err(unsupported("pre-tokenizer", pre_tokenizer.as_ref()));
                }
                Bpe::new(model, normalizer.as_ref()).map(Self::Bpe)
            }
            other => Err(EncodeError::new(format!(
                "the model's tokenizer is of the kind `{other}`; supported are `WordPiece` and `BPE`"
            ))),
        }
    }

    /// Returns the first `tokens_max` tokens of a text, without special ones.
    pub(crate) fn tokens(&self, text: &str, tokens_max: usize) -> Vec<u32> {
        match self {
            Self::WordPiece(tokenizer) => tokenizer.tokens(text, tokens_max),
            Self::Bpe(tokenizer) => {
                let mut tokens = tokenizer.tokens(text);
                tokens.truncate(tokens_max);
                tokens
            }
        }
    }

    /// Returns the token that stands for what the vocabulary lacks, if there is one.
    pub(crate) fn unknown(&self) -> Option<u32> {
        match self {
            Self::WordPiece(tokenizer) => Some(tokenizer.unknown),
            Self::Bpe(tokenizer) => tokenizer.unknown,
        }
    }

    /// Returns the number of the token with this name.
    pub(crate) fn token(&self, name: &str) -> Option<u32> {
        match self {
            Self::WordPiece(tokenizer) => tokenizer.vocabulary.get(name).copied(),
            Self::Bpe(tokenizer) => tokenizer.vocabulary.get(name).copied(),
        }
    }

    /// Returns the largest number of a token.
    pub(crate) fn last_token(&self) -> u32 {
        let vocabulary = match self {
            Self::WordPiece(tokenizer) => &tokenizer.vocabulary,
            Self::Bpe(tokenizer) => &tokenizer.vocabulary,
        };
        vocabulary.values().copied().max().unwrap_or_default()
    }
}

impl ModelDescription {
    fn kind(&self) -> &str {
        match &self.kind {
            Some(kind) => kind,
            None if self.merges.is_empty() => "WordPiece",
            None => "BPE",
        }
    }

    fn vocabulary(&self) -> Result<HashMap<String, u32>, EncodeError> {
        HashMap::deserialize(&self.vocab).map_err(|error| broken(&error))
    }
}

/// Fails unless a part of the description has the expected type.
fn expect_kind(part: Option<&Value>, name: &str, expected: &str) -> Result<(), EncodeError> {
    match part.and_then(|part| part.get("type")).and_then(Value::as_str) {
        Some(kind) if kind == expected => Ok(()),
        _ => Err(unsupported(name, part)),
    }
}

fn unsupported(name: &str, part: Option<&Value>) -> EncodeError {
    let kind = part.and_then(|part| part.get("type")).and_then(Value::as_str).unwrap_or("none");
    EncodeError::new(format!("the model's tokenizer has an unsupported {name} (`{kind}`)"))
}

fn broken(why: &dyn std::fmt::Display) -> EncodeError {
    EncodeError::new(format!("the tokenizer is broken: {why}"))
}

#[cfg(test)]
mod tests;
