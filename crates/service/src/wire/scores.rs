//! What the scores of search results are made of.

use quipu_knowledge::{
    DateScore, Explanation, FieldScore, ScorePart, ScoreReason, SimilarScore, WordScore,
};
use serde::Serialize;

/// A part of a score. The parts of a hit add up to its score.
#[derive(Clone, Debug, Serialize)]
pub struct ScorePartBody {
    /// `word`, `coverage`, `date`, `freshness`, `nearness`, `neighbors`, `surroundings`, `directory`,
    /// `similar`, `similar_surroundings`, `partial` or `name`.
    pub reason: &'static str,
    /// What it adds; negative if it takes something off.
    pub score: f64,
    /// The word, if it is one.
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    pub word: Option<WordScoreBody>,
    /// How similar the best passage is, for `similar`.
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    pub similar: Option<SimilarBody>,
    /// The share that a bonus is in proportion to: of the query's words, or of the best hit's surroundings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The days that the query asks about, for `date`.
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    pub days: Option<DaysBody>,
    /// What follows from the frontmatter, for `freshness`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
}

/// The days that a query asks about.
#[derive(Clone, Debug, Serialize)]
pub struct DaysBody {
    /// The words that say so.
    pub words: String,
    /// The first day; null if there is none.
    pub first_day: Option<String>,
    /// The last day; null if there is none.
    pub last_day: Option<String>,
}

impl From<&DateScore> for DaysBody {
    fn from(days: &DateScore) -> Self {
        let DateScore { words, first_day, last_day } = days.clone();
        Self { words, first_day, last_day }
    }
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
        let mut part = ScorePartBody {
            reason: "",
            score: *score,
            word: None,
            similar: None,
            share: None,
            days: None,
            state: None,
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
            ScoreReason::Coverage(share) => {
                part.share = Some(*share);
                "coverage"
            }
            ScoreReason::Date(days) => {
                part.days = Some(days.into());
                "date"
            }
            ScoreReason::Nearness(share) => {
                part.share = Some(*share);
                "nearness"
            }
            ScoreReason::Neighbors => "neighbors",
            ScoreReason::Surroundings(share) => {
                part.share = Some(*share);
                "surroundings"
            }
            ScoreReason::SimilarSurroundings(share) => {
                part.share = Some(*share);
                "similar_surroundings"
            }
            ScoreReason::Directory(share) => {
                part.share = Some(*share);
                "directory"
            }
            ScoreReason::Freshness(state) => {
                part.state = Some(state.name());
                "freshness"
            }
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
