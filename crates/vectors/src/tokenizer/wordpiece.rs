//! `WordPiece`, as BERT and its descendants use it.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

use super::{ModelDescription, broken};
use crate::EncodeError;

/// Splits at spaces and punctuation, then takes the longest known piece from the left, again and again.
#[derive(Debug)]
pub(crate) struct WordPiece {
    pub(super) vocabulary: HashMap<String, u32>,
    pub(super) unknown: u32,
    normalizer: Normalizer,
    /// Marks a piece that continues a word.
    prefix: String,
    /// A longer word is unknown.
    word_chars_max: usize,
}

/// What is made of the characters of a text before it is split.
#[derive(Debug, Deserialize)]
struct Normalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    /// As `lowercase`, if it is not said.
    strip_accents: Option<bool>,
    lowercase: bool,
}

const WORD_CHARS_MAX: usize = 100;

impl WordPiece {
    pub(super) fn new(model: ModelDescription, normalizer: &Value) -> Result<Self, EncodeError> {
        let normalizer = Normalizer::deserialize(normalizer).map_err(|error| broken(&error))?;
        let vocabulary = model.vocabulary()?;
        let unknown = model.unk_token.unwrap_or_else(|| "[UNK]".to_owned());
        let unknown = vocabulary.get(&unknown).copied();
        Ok(Self {
            unknown: unknown.ok_or_else(|| broken(&"it has no token for unknown words"))?,
            vocabulary,
            normalizer,
            prefix: model.continuing_subword_prefix.unwrap_or_else(|| "##".to_owned()),
            word_chars_max: model.max_input_chars_per_word.unwrap_or(WORD_CHARS_MAX),
        })
    }

    pub(super) fn tokens(&self, text: &str, tokens_max: usize) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut word = String::new();
        for character in self.normalizer.characters(text).chain([' ']) {
            let is_punctuation = is_punctuation(character);
            if !is_punctuation && !character.is_whitespace() {
                word.push(character);
                continue;
            }
            self.split(&word, &mut tokens);
            word.clear();
            if is_punctuation {
                self.split(character.encode_utf8(&mut [0; 4]), &mut tokens);
            }
            // A long note costs no more than what the model takes in.
            if tokens.len() >= tokens_max {
                break;
            }
        }
        tokens.truncate(tokens_max);
        tokens
    }

    /// Appends the pieces of a word, or the unknown token if it has a part that is no piece.
    fn split(&self, word: &str, tokens: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let start_count = tokens.len();
        let mut rest = if word.chars().count() > self.word_chars_max { None } else { Some(word) };
        let mut piece = String::new();
        while let Some(part) = rest.filter(|part| !part.is_empty()) {
            let prefix = if tokens.len() == start_count { "" } else { self.prefix.as_str() };
            let mut found = None;
            for (end, last) in part.char_indices().rev() {
                let (candidate, after) = part.split_at(end + last.len_utf8());
                piece.clear();
                piece.push_str(prefix);
                piece.push_str(candidate);
                if let Some(token) = self.vocabulary.get(&piece) {
                    found = Some((*token, after));
                    break;
                }
            }
            rest = found.map(|(token, after)| {
                tokens.push(token);
                after
            });
        }
        if rest.is_none() {
            tokens.truncate(start_count);
            tokens.push(self.unknown);
        }
    }
}

impl Normalizer {
    fn characters(&self, text: &str) -> impl Iterator<Item = char> {
        let (clean, lowercase) = (self.clean_text, self.lowercase);
        let strip_accents = self.strip_accents.unwrap_or(lowercase);
        let cleaned = text.chars().filter(move |character| !clean || !is_dropped(*character));
        let spaced = cleaned.flat_map(move |character| {
            let is_ideograph = self.handle_chinese_chars && is_ideograph(character);
            let space = is_ideograph.then_some(' ');
            space.into_iter().chain([character]).chain(space)
        });
        let mut composed = Some(spaced);
        let decomposed = composed.take_if(|_| strip_accents).map(|spaced| {
            spaced.nfd().filter(|c| c.general_category() != GeneralCategory::NonspacingMark)
        });
        let characters = decomposed.into_iter().flatten().chain(composed.into_iter().flatten());
        characters.flat_map(move |character| {
            let lower = lowercase.then(|| character.to_lowercase());
            let same = (!lowercase).then_some(character);
            lower.into_iter().flatten().chain(same)
        })
    }
}

fn is_dropped(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        // Characters without a meaning yet are kept, as the models have learned it.
        _ => matches!(
            character.general_category(),
            GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::PrivateUse
        ),
    }
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || character.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// Returns whether a character is a word of its own. Kana and Hangul are not.
fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}'
            | '\u{2b920}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}
