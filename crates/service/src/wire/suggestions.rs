//! What is suggested for a text.

use quipu_knowledge::{Freshness, LeftOut, Suggestion, Suggestions};
use serde::{Deserialize, Serialize};

use super::{ActorBody, NoteBody, SimilarBody};

/// The body of a request for suggestions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuggestBody {
    /// The prompt, file or task.
    pub text: String,
    /// How many tokens the suggestions may take.
    pub budget: Option<usize>,
    /// The maximum number of suggestions.
    pub limit: Option<usize>,
    /// The ids of memories that are known already.
    pub exclude: Option<Vec<String>>,
}

/// Suggestions for a text.
#[derive(Clone, Debug, Serialize)]
pub struct SuggestionsBody {
    /// The suggestions, best first.
    pub suggestions: Vec<SuggestionBody>,
    /// How many tokens they take in `markdown`, as an estimate.
    pub tokens: usize,
    /// What matches and is left out, because it is expired.
    pub left_out: Vec<LeftOutBody>,
    /// Whether the end of the text was not read.
    pub is_text_cut: bool,
    /// Whether recent changes may be missing.
    pub is_behind: bool,
    /// The suggestions, to be put in front of a model; empty if there are none.
    pub markdown: String,
}

impl SuggestionsBody {
    /// Makes the body of suggestions and their markdown.
    pub fn new(suggestions: &Suggestions, markdown: String) -> Self {
        Self {
            suggestions: suggestions.items.iter().map(SuggestionBody::from).collect(),
            tokens: suggestions.tokens,
            left_out: suggestions.left_out.iter().map(LeftOutBody::from).collect(),
            is_text_cut: suggestions.is_text_cut,
            is_behind: suggestions.is_behind,
            markdown,
        }
    }
}

/// A memory relevant to a text.
#[derive(Clone, Debug, Serialize)]
pub struct SuggestionBody {
    /// The memory.
    #[serde(flatten)]
    pub note: NoteBody,
    /// Its score; higher is better.
    pub score: f64,
    /// Why it is suggested.
    pub reasons: ReasonsBody,
    /// The note, or the passage that matches best.
    pub text: String,
    /// Whether `text` is all of the note.
    pub is_whole: bool,
    /// Who made the version that was read.
    pub created_by: ActorBody,
    /// How many tokens it takes, as an estimate.
    pub tokens: usize,
}

/// Why a memory is suggested.
#[derive(Clone, Debug, Serialize)]
pub struct ReasonsBody {
    /// The words of the text that it has, the most telling first.
    pub words: Vec<String>,
    /// How similar it is to the text, if it says the same in other words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similar: Option<SimilarBody>,
    /// Why it counts less; null if it does not.
    pub freshness: Option<FreshnessBody>,
    /// The memories that match and that it replaces.
    pub replaces: Vec<String>,
    /// The other suggestions that it links to.
    pub links_to: Vec<String>,
}

impl From<&Suggestion> for SuggestionBody {
    fn from(item: &Suggestion) -> Self {
        let reasons = ReasonsBody {
            words: item.words.clone(),
            similar: item.similar.map(SimilarBody::from),
            freshness: item.freshness.as_ref().map(FreshnessBody::from),
            replaces: item.replaces.iter().map(ToString::to_string).collect(),
            links_to: item.links_to.iter().map(ToString::to_string).collect(),
        };
        Self {
            note: (&item.note).into(),
            score: item.score,
            reasons,
            text: item.text.clone(),
            is_whole: item.is_whole,
            created_by: (&item.actor).into(),
            tokens: item.tokens,
        }
    }
}

/// A memory that matches and is left out.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOutBody {
    /// Where it is.
    pub path: String,
    /// Why.
    pub freshness: FreshnessBody,
}

impl From<&LeftOut> for LeftOutBody {
    fn from(left: &LeftOut) -> Self {
        Self { path: left.path.to_string(), freshness: (&left.freshness).into() }
    }
}

/// Why a note counts less than others.
#[derive(Clone, Debug, Serialize)]
pub struct FreshnessBody {
    /// `expired` or `stale`.
    pub state: &'static str,
    /// The field of the frontmatter that says so.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// What the score is multiplied by.
    pub factor: f64,
}

impl From<&Freshness> for FreshnessBody {
    fn from(freshness: &Freshness) -> Self {
        Self {
            state: freshness.state.name(),
            field: freshness.field.name(),
            value: freshness.value.clone(),
            factor: freshness.state.factor(),
        }
    }
}
