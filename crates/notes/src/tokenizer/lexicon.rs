//! The lexicon: the terms of words, computed once.
//!
//! Stemming is most of the cost of tokenizing, and words are distributed by Zipf's law: the same few
//! thousand make up most of every text. So their terms are remembered from one text to the next.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Language, Run, bigrams, each_run, each_variant, term};

/// With this many words, all of them are forgotten, which bounds the memory to a few megabytes.
/// Forgetting the least recently used one instead would need bookkeeping for every occurrence, and
/// the frequent ones are soon known again.
pub(super) const WORDS_MAX: usize = 16 * 1024;

/// Longer words are not remembered: they are keys and hashes, which are not repeated.
const WORD_SIZE_BYTES_MAX: usize = 32;

/// Tokenizes texts, and remembers the terms of their words.
#[derive(Debug, Default)]
pub struct Lexicon {
    known: HashMap<Language, Words>,
    words_count: usize,
}

/// The hash is keyed at random, since a text may be made of words that collide under a known one. It
/// is weaker than the default, which would take as long as everything else here.
type Words = HashMap<Box<str>, Word, RandomState>;

/// What a word is found by.
#[derive(Clone, Debug)]
struct Word {
    /// Empty for a lone accent.
    term: String,
    variants: Vec<String>,
}

/// What the tokenizer finds in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'w> {
    /// A term, in the order of the text.
    Term(&'w str),
    /// One of the [`variants`](super::variants) of the word or the ideographs before; the same one may
    /// be found repeatedly.
    Variant(&'w str),
}

impl Lexicon {
    /// Calls `visit` with each term of a text, in order, and with their variants.
    pub fn read(&mut self, text: &str, language: Language, mut visit: impl FnMut(Found<'_>)) {
        if self.words_count > WORDS_MAX {
            *self = Self::default();
        }
        let known = self.known.entry(language).or_default();
        let before_count = known.len();
        each_run(text, |run, range| {
            let written = text.get(range).unwrap_or_default();
            match run {
                Run::Word => {
                    if let Some(word) = known.get(written) {
                        return word.visit(&mut visit);
                    }
                    let word = Word::new(written, language);
                    word.visit(&mut visit);
                    if written.len() <= WORD_SIZE_BYTES_MAX {
                        known.insert(written.into(), word);
                    }
                }
                Run::Ideographs => {
                    let mut tokens = Vec::new();
                    bigrams(written, 0..written.len(), &mut tokens);
                    for token in &tokens {
                        visit(Found::Term(&token.term));
                    }
                    each_variant(run, written, language, |variant| visit(Found::Variant(&variant)));
                }
            }
        });
        self.words_count += known.len() - before_count;
    }

    #[cfg(test)]
    pub(super) fn words_count(&self) -> usize {
        self.words_count
    }
}

impl Word {
    fn new(written: &str, language: Language) -> Self {
        let mut variants = Vec::new();
        each_variant(Run::Word, written, language, |variant| variants.push(variant));
        variants.retain(|variant| !variant.is_empty());
        Self { term: term(written, language), variants }
    }

    fn visit(&self, visit: &mut impl FnMut(Found<'_>)) {
        if !self.term.is_empty() {
            visit(Found::Term(&self.term));
        }
        for variant in &self.variants {
            visit(Found::Variant(variant));
        }
    }
}
