//! Evidence: which words of a text are searched for, and how many of them a memory must have.
//!
//! The words are weighed by their idf in the searched stores and by how often the text has them. A word that
//! no memory has counts as much as the rarest one: a prompt about something unknown consists of such
//! words, and the two others that a memory happens to have are then a small share of it. Words of requests
//! and words of every second memory help to order memories, but are no evidence.
//!
//! A memory whose title is in a short text is named by it, whatever else the text says: of `dinner for
//! Nora tonight`, a note about Nora has one word of three.

use std::collections::HashSet;

use quipu_notes::tokenizer::{Language, stems};
use quipu_notes::{Phrase, SubjectKind, subject_words};

use crate::index::IndexError;
use crate::search::{Clause, Hit, Phrases, Ranking, Word};

/// How many distinct words of a text are looked up, the most promising first. Looking up all words of a
/// long file would take longer than everything else.
const LOOKED_UP_MAX: usize = 128;
/// How many of them are searched for.
const WORDS_MAX: usize = 32;
/// Which share of the evidence in a text a memory must have: `SHARE` divided by the number of words, within
/// these bounds. So one word of two is enough, two of five, and four of thirty.
const SHARE: f64 = 1.8;
const SHARE_MIN: f64 = 0.12;
const SHARE_MAX: f64 = 0.35;
/// The least idf of all the words of a memory. In a store of a few memories, almost every word is rare.
const EVIDENCE_MIN: f64 = 0.25;
/// A word of more memories than this and of more than half of all is common.
const COMMON_MIN: usize = 5;
/// What an unknown pair of characters counts in a script without spaces: most pairs are the end of one
/// word and the beginning of the next.
const UNKNOWN_PAIR: f64 = 0.3;
/// The number of words up to which a text names a memory by a title of one word.
const SHORT_MAX: usize = 8;

/// A title of more words is a sentence.
const TITLE_WORDS_MAX: usize = 12;

/// The words of a text.
pub(super) struct Subject {
    words: Vec<Candidate>,
}

/// A word of the text, before it is known how rare it is.
struct Candidate {
    written: String,
    count: usize,
    kind: SubjectKind,
    word: Word,
}

/// The words of a text that are searched for.
pub(super) struct Weighed {
    words: Vec<SearchedWord>,
    /// The evidence in the text, unknown words included.
    all: f64,
    share_min: f64,
    is_short: bool,
}

/// A word that is searched for.
#[derive(Clone, Debug)]
pub(super) struct SearchedWord {
    /// As in the text.
    pub(super) written: String,
    word: Word,
    /// What it counts as evidence.
    evidence: f64,
    /// How telling it is.
    weight: f64,
}

impl SearchedWord {
    /// Returns the phrases that the word may match.
    pub(super) fn phrases<'p>(&self, phrases: &'p Phrases) -> impl Iterator<Item = &'p Phrase> {
        self.word.iter().filter_map(|id| phrases.get(*id))
    }
}

impl Subject {
    pub(super) fn new(text: &str, languages: &[Language], phrases: &mut Phrases) -> Self {
        let found = subject_words(text, LOOKED_UP_MAX).into_iter();
        let words = found.map(|it| {
            let spellings = Phrase::spellings(it.written, languages).into_iter();
            let word = spellings.map(|phrase| phrases.add_to_text(phrase)).collect();
            Candidate { written: it.written.to_owned(), count: it.count, kind: it.kind, word }
        });
        Self { words: words.collect() }
    }

    /// Weighs the words by how rare they are in the searched stores.
    pub(super) fn weighed(self, ranking: &Ranking<'_, '_>) -> Result<Weighed, IndexError> {
        let mut words = Vec::new();
        for Candidate { written, count, kind, word } in self.words {
            let known = ranking.rarity(&word)?;
            let is_common = known.document_frequency > COMMON_MIN
                && known.document_frequency * 2 > known.documents;
            let is_unknown_pair = known.document_frequency == 0 && kind == SubjectKind::Pair;
            let share = match kind {
                _ if is_common => 0.0,
                SubjectKind::Request => 0.0,
                SubjectKind::Pair if is_unknown_pair => UNKNOWN_PAIR,
                SubjectKind::Topic | SubjectKind::Pair => 1.0,
            };
            // A word that is repeated says more about the text, but not ten times as much.
            let frequency = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
            let weight = known.idf * (1.0 + frequency.ln());
            let evidence = share * weight;
            words.push(SearchedWord {
                written,
                word,
                evidence,
                weight: evidence.max(weight / 4.0),
            });
        }
        words.sort_by(|left, right| right.weight.total_cmp(&left.weight));
        words.truncate(WORDS_MAX);
        let count = words.iter().filter(|word| word.evidence > 0.0).count();
        let share = SHARE / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX));
        let all = words.iter().map(|word| word.evidence).sum();
        let share_min = share.clamp(SHARE_MIN, SHARE_MAX);
        Ok(Weighed { words, all, share_min, is_short: count <= SHORT_MAX })
    }
}

impl Weighed {
    /// Returns whether the text has words that say what it is about.
    pub(super) fn has_evidence(&self) -> bool {
        self.all > 0.0
    }

    /// Returns the words to score by.
    pub(super) fn words(&self) -> Vec<Word> {
        self.words.iter().map(|word| word.word.clone()).filter(|word| !word.is_empty()).collect()
    }

    /// Returns the condition that a memory has one of the words.
    pub(super) fn clause(&self) -> Clause {
        Clause::Any(self.words().into_iter().flatten().map(Clause::Words).collect())
    }

    /// Returns the words that a memory has, the most telling first.
    pub(super) fn found(
        &self,
        ranking: &Ranking<'_, '_>,
        hit: &Hit,
    ) -> Result<Vec<SearchedWord>, IndexError> {
        let mut found = Vec::new();
        for word in &self.words {
            if ranking.has(hit, &word.word)? {
                found.push(word.clone());
            }
        }
        Ok(found)
    }

    /// Returns what these words say about a memory.
    pub(super) fn evidence(found: &[SearchedWord]) -> f64 {
        found.iter().map(|word| word.evidence).sum()
    }

    /// Returns whether these words are enough to say that a memory is relevant to the text.
    pub(super) fn is_enough(&self, found: &[SearchedWord]) -> bool {
        let evidence = Self::evidence(found);
        evidence >= EVIDENCE_MIN && evidence >= self.share_min * self.all
    }

    /// Returns whether the words of a title are all among these, and enough of them to mean it.
    pub(super) fn is_named(
        &self,
        title: &str,
        found: &[SearchedWord],
        languages: &[Language],
    ) -> bool {
        let evidence = found.iter().filter(|word| word.evidence >= EVIDENCE_MIN);
        let known: HashSet<_> = evidence.flat_map(|word| stems(&word.written, languages)).collect();
        let title = subject_words(title, TITLE_WORDS_MAX);
        let is_known = |word: &str| stems(word, languages).iter().any(|stem| known.contains(stem));
        let is_long_enough = title.len() > 1 || (title.len() == 1 && self.is_short);
        is_long_enough && title.iter().all(|word| is_known(word.written))
    }
}
