//! Byte-pair encoding without a division into words, as in Llama 2.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde_json::Value;

use super::{Merge, ModelDescription, broken, unsupported};
use crate::EncodeError;

/// Begins with single characters and merges the pair that was learned first, again and again.
#[derive(Debug)]
pub(crate) struct Bpe {
    pub(super) vocabulary: HashMap<String, u32>,
    pub(super) unknown: Option<u32>,
    /// What a pair becomes; the pair that was learned first has the lowest rank.
    merges: HashMap<(u32, u32), Merged>,
    /// What stands before each text.
    prepended: String,
    /// What stands for a space.
    space: String,
    /// The token of each byte, for characters that the vocabulary lacks.
    bytes: Option<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Merged {
    rank: usize,
    token: u32,
}

/// A token of a text, in a list that is linked both ways.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    token: u32,
    previous: Option<usize>,
    next: Option<usize>,
    /// Whether it has become a part of the symbol before it.
    is_merged: bool,
}

impl Bpe {
    pub(super) fn new(
        model: ModelDescription,
        normalizer: Option<&Value>,
    ) -> Result<Self, EncodeError> {
        let (prepended, space) =
            marks(normalizer).ok_or_else(|| unsupported("normalizer", normalizer))?;
        if model.ignore_merges
            || model.continuing_subword_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty())
            || model.end_of_word_suffix.as_ref().is_some_and(|suffix| !suffix.is_empty())
        {
            return Err(EncodeError::new(
                "the model's tokenizer has unsupported options".to_owned(),
            ));
        }
        let vocabulary: HashMap<String, u32> = model.vocabulary()?;
        let mut merges = HashMap::new();
        for (rank, merge) in model.merges.iter().enumerate() {
            let (left, right) = merge.parts().ok_or_else(|| broken(&"a merge has no two parts"))?;
            let token = |name: &str| vocabulary.get(name).copied();
            let known = token(left).zip(token(right)).zip(token(&format!("{left}{right}")));
            let (pair, token) = known.ok_or_else(|| broken(&"a merge names no token"))?;
            merges.entry(pair).or_insert(Merged { rank, token });
        }
        let bytes: Option<Vec<u32>> =
            (0..=u8::MAX).map(|byte| vocabulary.get(&format!("<0x{byte:02X}>")).copied()).collect();
        let unknown = model.unk_token.and_then(|name| vocabulary.get(&name).copied());
        let bytes = bytes.filter(|_| model.byte_fallback);
        Ok(Self { vocabulary, unknown, merges, prepended, space, bytes })
    }

    pub(super) fn tokens(&self, text: &str) -> Vec<u32> {
        let mut symbols = self.symbols(text);
        let mut pairs = BinaryHeap::new();
        for place in 0..symbols.len() {
            pairs.extend(self.pair(&symbols, place));
        }
        while let Some(Reverse((merged, place))) = pairs.pop() {
            // The neighbors may have changed since the pair was noted.
            if self.pair(&symbols, place) != Some(Reverse((merged, place))) {
                continue;
            }
            let left = join(&mut symbols, place, merged.token);
            pairs.extend(self.pair(&symbols, place));
            pairs.extend(left.and_then(|left| self.pair(&symbols, left)));
        }
        symbols.iter().filter(|symbol| !symbol.is_merged).map(|symbol| symbol.token).collect()
    }

    /// Returns what a symbol and the next one become, if they are a pair.
    fn pair(&self, symbols: &[Symbol], place: usize) -> Option<Reverse<(Merged, usize)>> {
        let symbol = symbols.get(place).filter(|symbol| !symbol.is_merged)?;
        let next = symbols.get(symbol.next?)?;
        let merged = self.merges.get(&(symbol.token, next.token))?;
        Some(Reverse((*merged, place)))
    }

    /// Returns the characters of a text as tokens.
    fn symbols(&self, text: &str) -> Vec<Symbol> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut tokens = Vec::new();
        let text = format!("{}{text}", self.prepended).replace(' ', &self.space);
        for character in text.chars() {
            let mut buffer = [0; 4];
            let name: &str = character.encode_utf8(&mut buffer);
            match (self.vocabulary.get(name), &self.bytes) {
                (Some(token), _) => tokens.push(*token),
                (None, Some(bytes)) => {
                    tokens.extend(name.bytes().filter_map(|byte| bytes.get(usize::from(byte))));
                }
                (None, None) => tokens.extend(self.unknown),
            }
        }
        let count = tokens.len();
        let symbol = |(place, token): (usize, u32)| Symbol {
            token,
            previous: place.checked_sub(1),
            next: Some(place + 1).filter(|next| *next < count),
            is_merged: false,
        };
        tokens.into_iter().enumerate().map(symbol).collect()
    }
}

/// Merges a symbol with the next one, and returns the one before it.
fn join(symbols: &mut [Symbol], place: usize, token: u32) -> Option<usize> {
    let next = symbols.get(place)?.next?;
    let right = symbols.get_mut(next)?;
    right.is_merged = true;
    let after = right.next;
    if let Some(after) = after.and_then(|after| symbols.get_mut(after)) {
        after.previous = Some(place);
    }
    let symbol = symbols.get_mut(place)?;
    (symbol.token, symbol.next) = (token, after);
    symbol.previous
}

/// Returns what stands before a text and what stands for a space.
fn marks(normalizer: Option<&Value>) -> Option<(String, String)> {
    let Some(normalizer) = normalizer else { return Some((String::new(), " ".to_owned())) };
    let kind = |part: &Value| part.get("type").and_then(Value::as_str).map(str::to_owned);
    let text = |part: &Value, key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
    let parts = match kind(normalizer)?.as_str() {
        "Sequence" => normalizer.get("normalizers")?.as_array()?.clone(),
        _ => vec![normalizer.clone()],
    };
    let (mut prepended, mut space) = (String::new(), " ".to_owned());
    for part in &parts {
        match kind(part)?.as_str() {
            "Prepend" => prepended = text(part, "prepend")?,
            "Replace" if part.pointer("/pattern/String")? == " " => space = text(part, "content")?,
            _ => return None,
        }
    }
    Some((prepended, space))
}

impl Merge {
    fn parts(&self) -> Option<(&str, &str)> {
        match self {
            Self::Line(line) => line.split_once(' '),
            Self::Pair(left, right) => Some((left, right)),
        }
    }
}
