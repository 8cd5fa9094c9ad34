//! Explanations: what a score is made of.

use std::fmt;

use quipu_notes::Phrase;

use super::clause::Evaluator;
use super::context::Bonuses;
use super::freshness::FreshnessState;
use super::plan::Word;
use super::rank::{Hit, Ranking, WordStats};
use super::scoring::Scoring;
use crate::index::{Doc, IndexError};

/// Why a hit has its score. The scores of the parts add up to that of the hit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The words in the order of the query, then the bonuses.
    pub parts: Vec<ScorePart>,
}

/// A part of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScorePart {
    /// What the score is for.
    pub reason: ScoreReason,
    /// What it adds; negative if it takes something off.
    pub score: f64,
}

/// What a part of a score is for.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreReason {
    /// The hit has a word or phrase of the query.
    Word(WordScore),
    /// The hit has this share of the query's words, weighted by their idf.
    Coverage(f64),
    /// The hit is of the days that these words of the query ask about.
    Date(String),
    /// This share of the query's words is within one passage of the hit.
    Nearness(f64),
    /// The memories beside the hit in its directory have words of the query.
    Neighbors,
    /// The hit and those around it, read as one text, score this share of the best such text.
    Surroundings(f64),
    /// The hit's directory, read as one text, scores this share of the best directory.
    Directory(f64),
    /// The note is over or stale, as its frontmatter says.
    Freshness(FreshnessState),
    /// A passage of the hit is similar to the question.
    Similar(SimilarScore),
    /// The hit has the word only as a prefix or in pieces, and follows those that have it.
    Partial,
    /// The name of the hit matches a pattern; the shorter it is, the better.
    Name,
}

/// How similar the best passage of a memory is to the question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarScore {
    /// The cosine of the angle between their vectors, at most 1.
    pub cosine: f32,
    /// How many standard deviations it is above the mean of the memories that were searched.
    pub deviations: f64,
    /// The first line of the passage, 1-based.
    pub first_line: u32,
    /// The last line of the passage, 1-based.
    pub last_line: u32,
}

/// How a word or phrase counts.
#[derive(Clone, Debug, PartialEq)]
pub struct WordScore {
    /// The stems that were looked up and found, separated by spaces; a prefix ends with a star.
    /// Several spellings are separated by ` | `.
    pub term: String,
    /// How many documents have it, in any spelling.
    pub document_frequency: usize,
    /// The inverse document frequency, by which it is weighted.
    pub idf: f64,
    /// Where it occurs in the hit.
    pub fields: Vec<FieldScore>,
    /// The length of the hit in words.
    pub length: u32,
}

/// The occurrences of a word in a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldScore {
    /// The field.
    pub field: ScoredField,
    /// How often the word occurs in it.
    pub frequency: f32,
    /// The weight of each occurrence.
    pub weight: f32,
}

/// A part of a document that is weighted for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScoredField {
    /// The title; the category of an observation, the type of a relation.
    Title,
    /// The tags.
    Tag,
    /// The headings, which are in the body too.
    Heading,
    /// The body.
    Body,
    /// Unstemmed forms, parts of identifiers, the path, and values of the frontmatter.
    Other,
}

impl ScoredField {
    /// Returns the name of the field, as in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Tag => "tag",
            Self::Heading => "heading",
            Self::Body => "body",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for ScorePart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:+.3}  ", self.score)?;
        match &self.reason {
            ScoreReason::Word(word) => write!(out, "{word}"),
            ScoreReason::Coverage(share) => {
                write!(out, "bonus for {:.0} % of the words", share * 100.0)
            }
            ScoreReason::Date(words) => write!(out, "bonus for its date: {words}"),
            ScoreReason::Nearness(share) => {
                write!(out, "bonus for {:.0} % of the words near each other", share * 100.0)
            }
            ScoreReason::Neighbors => write!(out, "from the memories before and after it"),
            ScoreReason::Surroundings(share) => {
                let share = share * 100.0;
                write!(out, "bonus for what is around it, {share:.0} % of the best surroundings")
            }
            ScoreReason::Directory(share) => {
                write!(out, "bonus for its directory, {:.0} % of the best one", share * 100.0)
            }
            ScoreReason::Freshness(state) => {
                write!(out, "{}, so × {}", state.name(), state.factor())
            }
            ScoreReason::Similar(similar) => write!(out, "{similar}"),
            ScoreReason::Partial => write!(out, "only the beginning of a word, or a part of it"),
            ScoreReason::Name => write!(out, "name"),
        }
    }
}

impl fmt::Display for SimilarScore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cosine, deviations, first_line, last_line } = self;
        let above = format!("{deviations:.1} deviations above the mean");
        write!(out, "meaning: cosine {cosine:.2}, {above}; lines {first_line} to {last_line}")
    }
}

impl fmt::Display for WordScore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term, document_frequency, idf, fields, length } = self;
        write!(out, "{term}: in {document_frequency}, idf {idf:.2};")?;
        for FieldScore { field, frequency, weight } in fields {
            write!(out, " {} {frequency} × {weight},", field.name())?;
        }
        write!(out, " of {length} words")
    }
}

impl Explanation {
    /// Returns the sum of the parts.
    pub fn score(&self) -> f64 {
        self.parts.iter().map(|part| part.score).sum()
    }

    pub(super) fn add(&mut self, reason: ScoreReason, score: f64) {
        self.parts.push(ScorePart { reason, score });
    }
}

impl Ranking<'_, '_> {
    /// Returns what the score of a document that was found by these words is made of.
    pub(crate) fn explain(&self, words: &[Word], hit: &Hit) -> Result<Explanation, IndexError> {
        let (number, doc) = hit.document.ok_or(IndexError::Damaged)?;
        let (_, segment) = self.segments.get(number).ok_or(IndexError::Damaged)?;
        let mut explanation = Explanation::default();
        let (mut covered, mut all_idfs) = (0.0, 0.0);
        for word in words {
            let stats = self.stats(&self.occurrences(word)?);
            all_idfs += stats.idf;
            if self.explain_word((word, stats), (segment, doc), &mut explanation)? {
                covered += stats.idf;
            }
        }
        if all_idfs > 0.0 {
            let share = covered / all_idfs;
            let bonus = explanation.score() * self.scoring.coverage * share;
            explanation.add(ScoreReason::Coverage(share), bonus);
        }
        if let Some(dated) = &self.dated
            && dated.inside.get(number).is_some_and(|inside| inside.contains(doc))
        {
            let bonus = explanation.score() * self.scoring.date;
            explanation.add(ScoreReason::Date(dated.span.written.clone()), bonus);
        }
        if let Some(state) = self.freshness((number, doc))? {
            let lowered = explanation.score() * (state.factor() - 1.0);
            explanation.add(ScoreReason::Freshness(state), lowered);
        }
        let Bonuses { nearness, neighbors, surroundings, directory } = hit.bonuses;
        let bonuses = [
            (ScoreReason::Nearness(nearness.share), nearness.score),
            (ScoreReason::Neighbors, neighbors),
            (ScoreReason::Surroundings(surroundings.share), surroundings.score),
            (ScoreReason::Directory(directory.share), directory.score),
        ];
        for (reason, score) in bonuses.into_iter().filter(|(_, score)| *score > 0.0) {
            explanation.add(reason, score);
        }
        Ok(explanation)
    }

    /// Adds what a word is worth to a document; returns whether the document has it.
    fn explain_word(
        &self,
        (word, stats): (&Word, WordStats),
        (segment, doc): (&Evaluator<'_, '_>, Doc),
        explanation: &mut Explanation,
    ) -> Result<bool, IndexError> {
        let found = segment.occurrences_of_word(word)?;
        let Ok(at) = found.binary_search_by_key(&doc, |(doc, _)| *doc) else { return Ok(false) };
        let Some((_, weight)) = found.get(at) else { return Ok(false) };
        let phrases = segment.phrases();
        let (mut spellings, mut fields) = (Vec::new(), Vec::<FieldScore>::new());
        for phrase in word {
            let frequencies = phrases.frequencies(*phrase, segment.segment(), doc)?;
            let before = fields.len();
            for (field, frequency) in frequencies {
                let weight = self.scoring.weight(field);
                if weight > 0.0 {
                    fields.push(FieldScore { field: Scoring::name(field), frequency, weight });
                }
            }
            if fields.len() > before {
                spellings.extend(phrases.get(*phrase).map(Phrase::to_string));
            }
        }
        let length = segment.segment().lengths(self.space)?.get(doc)?;
        let WordStats { document_frequency, idf } = stats;
        let term = spellings.join(" | ");
        let score = idf * self.saturation().of(*weight, length);
        let word = WordScore { term, document_frequency, idf, fields, length };
        explanation.add(ScoreReason::Word(word), score);
        Ok(true)
    }
}
