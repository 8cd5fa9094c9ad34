//! Explanations: what a score is made of.

use std::fmt;

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
    /// The memories beside the hit in its directory have words of the query.
    Neighbors,
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
    /// The stems that were looked up, separated by spaces; a prefix ends with a star.
    pub term: String,
    /// How many documents have it.
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
            ScoreReason::Neighbors => write!(out, "from the memories before and after it"),
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
