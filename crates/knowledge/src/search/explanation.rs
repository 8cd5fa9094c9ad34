//! Explanations: what a score is made of.

use std::fmt;

use quipu_notes::{Date, DateSpan, Phrase};

use super::clause::Evaluator;
use super::context::Bonuses;
use super::freshness::FreshnessState;
use super::occurrences::Weight;
use super::plan::Word;
use super::rank::{Hit, Ranking, WordStats};
use super::scoring::Scoring;
use crate::index::{Doc, Field, IndexError};

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
    /// The hit is of the days that the query asks about.
    Date(DateScore),
    /// This share of the query's words is within one passage of the hit.
    Nearness(f64),
    /// The memories beside the hit in its directory have words of the query.
    Neighbors,
    /// The hit and those around it, read as one text, score this share of the best such text.
    Surroundings(f64),
    /// The hit's directory, read as one text, scores this share of the best directory.
    Directory(f64),
    /// The note is expired or stale, as its frontmatter says.
    Freshness(FreshnessState),
    /// A passage of the hit is similar to the question.
    Similar(SimilarScore),
    /// The hit and those around it are similar to the question, this share of the most similar ones.
    SimilarSurroundings(f64),
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

/// The days that a query asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateScore {
    /// The words of the query that say so.
    pub words: String,
    /// The first day, as `2025-03-04`; `None` if there is none.
    pub first_day: Option<String>,
    /// The last day; `None` if there is none.
    pub last_day: Option<String>,
}

impl From<&DateSpan> for DateScore {
    fn from(span: &DateSpan) -> Self {
        let written = |day: Date, none: Date| (day != none).then(|| day.to_string());
        Self {
            words: span.written.clone(),
            first_day: written(span.first, Date::MIN),
            last_day: written(span.last, Date::MAX),
        }
    }
}

impl fmt::Display for DateScore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { words, first_day, last_day } = self;
        match (first_day, last_day) {
            (Some(first), Some(last)) if first == last => write!(out, "{words} ({first})"),
            (Some(first), Some(last)) => write!(out, "{words} ({first} to {last})"),
            (Some(first), None) => write!(out, "{words} (from {first})"),
            (None, Some(last)) => write!(out, "{words} (to {last})"),
            (None, None) => write!(out, "{words}"),
        }
    }
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
            ScoreReason::Date(days) => write!(out, "bonus for its date: {days}"),
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
                write!(out, "{}: × {}", state.name(), state.factor())
            }
            ScoreReason::Similar(similar) => write!(out, "{similar}"),
            ScoreReason::SimilarSurroundings(share) => {
                let share = share * 100.0;
                write!(out, "bonus for the meaning of what is around it, {share:.0} % of the best")
            }
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

    /// Returns the explanation of a score that has one part.
    pub(super) fn of(reason: ScoreReason, score: f64) -> Self {
        Self { parts: vec![ScorePart { reason, score }] }
    }

    fn add(&mut self, reason: ScoreReason, score: f64) {
        self.parts.push(ScorePart { reason, score });
    }

    /// Adds further parts. What a note loses for being expired or stale is one part.
    pub(super) fn extend(&mut self, parts: &[ScorePart]) {
        let is_freshness = |part: &ScorePart| matches!(part.reason, ScoreReason::Freshness(_));
        for part in parts {
            match self.parts.iter_mut().find(|known| is_freshness(known) && is_freshness(part)) {
                Some(known) => known.score += part.score,
                None => self.parts.push(part.clone()),
            }
        }
    }
}

impl Ranking<'_, '_> {
    /// Returns what the scores of documents that were found by these words are made of.
    ///
    /// Each posting list is read once for all of them: of a query of many prefixes, reading it for each would
    /// take minutes.
    pub(super) fn explain(
        &self,
        words: &[Word],
        hits: &[&Hit],
    ) -> Result<Vec<Explanation>, IndexError> {
        let mut explanations = vec![Explanation::default(); hits.len()];
        let (mut covered, mut all_idfs) = (vec![0.0; hits.len()], 0.0);
        for word in words {
            let stats = self.stats(&self.occurrences(word)?);
            all_idfs += stats.idf;
            let before: Vec<_> = explanations.iter().map(|it| it.parts.len()).collect();
            self.explain_word((word, stats), hits, &mut explanations)?;
            for ((explanation, before), covered) in
                explanations.iter().zip(before).zip(&mut covered)
            {
                if explanation.parts.len() > before {
                    *covered += stats.idf;
                }
            }
        }
        for ((explanation, hit), covered) in explanations.iter_mut().zip(hits).zip(covered) {
            if all_idfs > 0.0 {
                let share = covered / all_idfs;
                let bonus = explanation.score() * self.scoring.coverage * share;
                explanation.add(ScoreReason::Coverage(share), bonus);
            }
            self.explain_bonuses(hit, explanation)?;
        }
        Ok(explanations)
    }

    /// Adds what does not depend on single words.
    fn explain_bonuses(&self, hit: &Hit, explanation: &mut Explanation) -> Result<(), IndexError> {
        let (number, doc) = hit.document.ok_or(IndexError::Damaged)?;
        // What was found by its meaning has no words that could be worth more or less.
        let own = explanation.score();
        if let Some(dated) = self.dated.as_ref().filter(|_| own > 0.0)
            && dated.inside.get(number).is_some_and(|inside| inside.contains(doc))
        {
            let bonus = own * self.scoring.date;
            explanation.add(ScoreReason::Date((&dated.span).into()), bonus);
        }
        if let Some(state) = self.freshness((number, doc))?.filter(|_| own > 0.0) {
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
        Ok(())
    }

    /// Adds what a word is worth to the documents that have it.
    fn explain_word(
        &self,
        (word, stats): (&Word, WordStats),
        hits: &[&Hit],
        explanations: &mut [Explanation],
    ) -> Result<(), IndexError> {
        let WordStats { document_frequency, idf } = stats;
        let saturation = self.saturation();
        for (number, (_, segment)) in self.segments.iter().enumerate() {
            let found = segment.occurrences_of_word(word)?;
            let weight = |doc: Doc| {
                let at = found.binary_search_by_key(&doc, |(doc, _)| *doc).ok()?;
                found.get(at).map(|(_, weight)| *weight)
            };
            let with = hits.iter().zip(explanations.iter_mut()).filter_map(|(hit, explanation)| {
                let (_, doc) = hit.document.filter(|(of, _)| *of == number)?;
                Some((doc, weight(doc)?, explanation))
            });
            let mut with: Vec<_> = with.collect();
            if with.is_empty() {
                continue;
            }
            with.sort_unstable_by_key(|(doc, ..)| *doc);
            let docs: Vec<_> = with.iter().map(|(doc, ..)| *doc).collect();
            let lengths = segment.segment().lengths(self.space)?;
            let spellings = self.spellings(word, segment, &docs)?;
            for ((doc, weight, explanation), (term, fields)) in with.into_iter().zip(spellings) {
                let length = lengths.get(doc)?;
                let word = WordScore { term, document_frequency, idf, fields, length };
                explanation.add(ScoreReason::Word(word), idf * saturation.of(weight, length));
            }
        }
        Ok(())
    }

    /// Returns how a word is spelled in each of some documents, which must be sorted, and in which fields.
    fn spellings(
        &self,
        word: &Word,
        segment: &Evaluator<'_, '_>,
        docs: &[Doc],
    ) -> Result<Vec<(String, Vec<FieldScore>)>, IndexError> {
        let mut spellings = vec![(String::new(), Vec::new()); docs.len()];
        for phrase in word {
            let phrases = segment.phrases();
            let shown = phrases.get(*phrase).map(Phrase::to_string).unwrap_or_default();
            let frequencies = phrases.frequencies(*phrase, segment.segment(), docs)?;
            for ((term, all), frequencies) in spellings.iter_mut().zip(frequencies) {
                let fields = self.fields(&frequencies);
                if fields.is_empty() {
                    continue;
                }
                let separator = if term.is_empty() { "" } else { " | " };
                term.push_str(separator);
                term.push_str(&shown);
                all.extend(fields);
            }
        }
        Ok(spellings)
    }

    /// Returns the fields that count, with their weights.
    fn fields(&self, frequencies: &[(Field, Weight)]) -> Vec<FieldScore> {
        let field = |(field, frequency): &(Field, Weight)| {
            let weight = self.scoring.weight(*field);
            (weight > 0.0).then(|| FieldScore {
                field: Scoring::name(*field),
                frequency: *frequency,
                weight,
            })
        };
        frequencies.iter().filter_map(field).collect()
    }
}
