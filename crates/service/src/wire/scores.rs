//! What the scores of search results are made of.

use quipu_knowledge::{Explanation, FieldScore, ScorePart, ScoreReason, SimilarScore, WordScore};
use serde::Serialize;

/// A part of a score. The parts of a hit add up to its score.
#[derive(Clone, Debug, Serialize)]
pub struct ScorePartBody {
    /// `word`, `coverage`, `date`, `freshness`, `nearness`, `neighbors`, `directory`,
    /// `similar`, `partial` or `name`.
    pub reason: &'static str,
    /// What it adds; negative if it takes something off.
    pub score: f64,
    /// The word, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    pub word: Option<WordScoreBody>,
    /// How similar the best passage is, for `similar`.
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    pub similar: Option<SimilarBody>,
    /// The share of the query's words that a bonus is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// How similar the best passage of a memory is to the question.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SimilarBody {
    /// The cosine of the angle between their vectors.
    pub cosine: f32,
    /// How many standard deviations it is above the mean of all memories.
    pub deviations: f64,
    /// The first line of the passage.
    pub first_line: u32,
    /// The last line of the passage.
    pub last_line: u32,
}

impl From<SimilarScore> for SimilarBody {
    fn from(similar: SimilarScore) -> Self {
        let SimilarScore { cosine, deviations, first_line, last_line } = similar;
        Self { cosine, deviations, first_line, last_line }
    }
}

/// How a word or phrase of the query counts.
#[derive(Clone, Debug, Serialize)]
pub struct WordScoreBody {
    /// The stems that were looked up.
    pub term: String,
    /// How many documents have it.
    pub document_frequency: usize,
    /// The inverse document frequency, by which it is weighted.
    pub idf: f64,
    /// Where it occurs.
    pub fields: Vec<FieldScoreBody>,
    /// The length of the hit in words.
    pub length: u32,
}

/// The occurrences of a word in a field.
#[derive(Clone, Debug, Serialize)]
pub struct FieldScoreBody {
    /// `title`, `tag`, `heading`, `body` or `other`.
    pub field: &'static str,
    /// How often the word occurs in it.
    pub frequency: f32,
    /// The weight of each occurrence.
    pub weight: f32,
}

/// Returns the parts of a score.
pub fn score_parts(explanation: &Explanation) -> Vec<ScorePartBody> {
    let part = |ScorePart { reason, score }: &ScorePart| {
        let mut part =
            ScorePartBody { reason: "", score: *score, word: None, similar: None, share: None };
        part.share = match reason {
            ScoreReason::Coverage(share)
            | ScoreReason::Nearness(share)
            | ScoreReason::Surroundings(share)
            | ScoreReason::SimilarSurroundings(share)
            | ScoreReason::Directory(share) => Some(*share),
            ScoreReason::Word(_)
            | ScoreReason::Date(_)
            | ScoreReason::Neighbors
            | ScoreReason::Similar(_)
            | ScoreReason::Freshness(_)
            | ScoreReason::Partial
            | ScoreReason::Name => None,
        };
        part.reason = match reason {
            ScoreReason::Word(word) => {
                part.word = Some(word.into());
                "word"
            }
            ScoreReason::Similar(similar) => {
                part.similar = Some((*similar).into());
                "similar"
            }
            ScoreReason::Coverage(_) => "coverage",
            ScoreReason::Date(_) => "date",
            ScoreReason::Nearness(_) => "nearness",
            ScoreReason::Neighbors => "neighbors",
            ScoreReason::Surroundings(_) => "surroundings",
            ScoreReason::SimilarSurroundings(_) => "similar_surroundings",
            ScoreReason::Directory(_) => "directory",
            ScoreReason::Freshness(_) => "freshness",
            ScoreReason::Partial => "partial",
            ScoreReason::Name => "name",
        };
        part
    };
    explanation.parts.iter().map(part).collect()
}

impl From<&WordScore> for WordScoreBody {
    fn from(word: &WordScore) -> Self {
        let field = |it: &FieldScore| FieldScoreBody {
            field: it.field.name(),
            frequency: it.frequency,
            weight: it.weight,
        };
        Self {
            term: word.term.clone(),
            document_frequency: word.document_frequency,
            idf: word.idf,
            fields: word.fields.iter().map(field).collect(),
            length: word.length,
        }
    }
}
