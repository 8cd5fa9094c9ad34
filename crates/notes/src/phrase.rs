//! Phrases: from typed words to the terms to look up.

#[cfg(test)]
mod tests;

use std::fmt;

use crate::tokenizer::{
    Language, Run, Token, each_run, english_first, folded, is_ideograph, parts, stems, tokenize,
};

/// Adjacent terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phrase {
    /// The terms; there is at least one.
    pub terms: Vec<String>,
    /// How the last of them is compared.
    pub last: TermMatch,
}

/// How a query term is compared with an index term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TermMatch {
    /// They are equal.
    Exact,
    /// The index term has it as a prefix.
    Prefix,
}

/// Shorter prefixes would match nearly everything.
const PREFIX_CHARS_MIN: usize = 2;
/// A word that changes more often between letters and digits is a key or a hash, not an identifier.
const PARTS_MAX: usize = 16;

impl Phrase {
    /// Returns the phrases that a typed word may match; any of them is sufficient.
    ///
    /// There are several for identifiers (`parseJson` also matches `parse_json`) and for words with
    /// distinct stems in the languages, and none for punctuation. `foo-bar` and `日本語` have
    /// several terms.
    pub fn spellings(word: &str, languages: &[Language]) -> Vec<Self> {
        let mut letters = word.chars().filter(|letter| letter.is_alphanumeric());
        if let (Some(letter), None) = (letters.next(), letters.next())
            && is_ideograph(letter)
        {
            return Self::prefix(word, languages);
        }
        let joined = word.replace(['_', '-'], "");
        let mut spellings = Distinct::default();
        for language in english_first(languages) {
            if spellings.add(terms(word, language), TermMatch::Exact) {
                spellings.add(spelled_out(word, language), TermMatch::Exact);
                spellings.add(terms(&joined, language), TermMatch::Exact);
            }
        }
        spellings.0
    }

    /// Returns each term of a typed word that has several, such as `foo-bar` or `日本語`.
    pub fn pieces(word: &str, languages: &[Language]) -> Vec<Self> {
        let tokens = tokenize(word, Language::English);
        if tokens.len() < 2 {
            return Vec::new();
        }
        let stems = tokens.iter().flat_map(|token| {
            let piece = word.get(token.range.clone()).unwrap_or_default();
            // Bigrams are the same in every language.
            if piece.contains(is_ideograph) {
                vec![token.term.clone()]
            } else {
                stems(piece, languages)
            }
        });
        stems.map(|term| Self { terms: vec![term], last: TermMatch::Exact }).collect()
    }

    /// Returns the phrases that quoted words may match; any of them is sufficient. There is one for
    /// each language with distinct stems.
    pub fn quoted(text: &str, languages: &[Language]) -> Vec<Self> {
        let mut phrases = Distinct::default();
        for language in english_first(languages) {
            phrases.add(terms(text, language), TermMatch::Exact);
        }
        phrases.0
    }

    /// Returns the phrases for words of which the last is a prefix; any of them is sufficient.
    pub fn prefix(text: &str, languages: &[Language]) -> Vec<Self> {
        let mut last_run = None;
        each_run(text, |run, range| last_run = Some((run, range)));
        let Some((run, range)) = last_run else { return Vec::new() };
        let last = text.get(range).unwrap_or_default();
        let prefix = folded(last);
        if prefix.is_empty() {
            return Self::quoted(text, languages);
        }
        let is_long = last.chars().count() >= PREFIX_CHARS_MIN || last.chars().all(is_ideograph);
        let last_match = if is_long { TermMatch::Prefix } else { TermMatch::Exact };
        let mut phrases = Distinct::default();
        for language in english_first(languages) {
            let mut terms = terms(text, language);
            if run == Run::Word {
                // Stemming a prefix could remove what looks like a suffix: `organizatio` has one.
                terms.pop();
                terms.push(prefix.to_string());
            }
            phrases.add(terms, last_match);
        }
        phrases.0
    }

    /// Returns whether these terms are the phrase.
    pub fn matches(&self, terms: &[&str]) -> bool {
        let last = self.terms.len().saturating_sub(1);
        terms.len() == self.terms.len()
            && self.terms.iter().zip(terms).enumerate().all(|(place, (wanted, term))| {
                match self.last {
                    TermMatch::Prefix if place == last => term.starts_with(wanted.as_str()),
                    TermMatch::Prefix | TermMatch::Exact => term == wanted,
                }
            })
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = match self.last {
            TermMatch::Exact => "",
            TermMatch::Prefix => "*",
        };
        write!(out, "{}{star}", self.terms.join(" "))
    }
}

/// Phrases without duplicates.
#[derive(Default)]
struct Distinct(Vec<Phrase>);

impl Distinct {
    /// Adds a phrase unless it is a duplicate; returns `false` if it has no terms.
    fn add(&mut self, terms: Vec<String>, last: TermMatch) -> bool {
        if terms.iter().all(String::is_empty) {
            return false;
        }
        let phrase = Phrase { terms, last };
        if !self.0.contains(&phrase) {
            self.0.push(phrase);
        }
        true
    }
}

fn terms(text: &str, language: Language) -> Vec<String> {
    tokenize(text, language).into_iter().map(|Token { term, .. }| term).collect()
}

/// Returns the terms of a word, with identifiers split into their parts.
fn spelled_out(word: &str, language: Language) -> Vec<String> {
    let mut pieces = Vec::new();
    each_run(word, |run, range| {
        let piece = word.get(range).unwrap_or_default();
        let parts = if run == Run::Word { identifier_parts(piece) } else { Vec::new() };
        if parts.is_empty() {
            pieces.extend(terms(piece, language));
        }
        pieces.extend(parts.into_iter().flat_map(|part| terms(part, language)));
    });
    pieces
}

/// Returns the parts of an identifier; empty for all other words.
fn identifier_parts(word: &str) -> Vec<&str> {
    let parts = parts(word);
    if parts.len() > PARTS_MAX { Vec::new() } else { parts }
}

/// A typed text, truncated to a number of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Truncated<'a> {
    /// The beginning that fits.
    pub(crate) kept: &'a str,
    /// How many pieces that is.
    pub(crate) kept_count: usize,
    /// How many pieces come after it.
    pub(crate) omitted_count: usize,
}

/// Truncates a typed text to at most `room` pieces: `foo-bar`, `fooBar` and `"foo bar"` have two,
/// `日本語` has three.
///
/// Counting words instead would let one word of a thousand hyphens cost a thousand lookups.
pub(crate) fn truncated(written: &str, room: usize) -> Truncated<'_> {
    let (mut kept_count, mut total_count, mut end) = (0, 0, 0);
    each_run(written, |run, range| {
        let piece = written.get(range.clone()).unwrap_or_default();
        let mut add = |count: usize, piece_end: usize| {
            total_count += count;
            if total_count <= room {
                (kept_count, end) = (total_count, piece_end);
            }
        };
        match run {
            Run::Word => add(identifier_parts(piece).len().max(1), range.end),
            Run::Ideographs => {
                let ends = piece.char_indices().map(|(at, letter)| at + letter.len_utf8());
                ends.for_each(|piece_end| add(1, range.start + piece_end));
            }
        }
    });
    if total_count <= room && room > 0 {
        return Truncated { kept: written, kept_count: total_count.max(1), omitted_count: 0 };
    }
    let kept = written.get(..end).unwrap_or_default();
    Truncated { kept, kept_count, omitted_count: total_count.max(1) - kept_count }
}
