//! The parameters of ranking.

use super::explanation::ScoredField;
use crate::index::Field;

/// The parameters of ranking: those of BM25, and the weights of the fields.
///
/// They are values and not constants so that `quipu-bench retrieval --tune` can compare them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scoring {
    /// Term frequency saturation: the higher, the more further occurrences count.
    pub k1: f64,
    /// Length normalization: 0 ignores the length, 1 normalizes by it fully.
    pub b: f64,
    /// How many words are added to every length, and so to the mean length. Among texts of a few
    /// words the length says little, and without this a text of two words would win by being short.
    pub length_prior: f64,
    /// The length in words beyond which length counts by its square root.
    pub long: f64,
    /// The weight of a word in the title.
    pub title: f32,
    /// The weight of a tag.
    pub tag: f32,
    /// The weight of a word in a heading, in addition to that in the body.
    pub heading: f32,
    /// The weight of anything else that is not in the body: unstemmed forms, parts of identifiers,
    /// the path, and values of the frontmatter. A word in the body has the weight 1.
    pub other: f32,
    /// The bonus for having all words of the query: a score is multiplied by 1 plus this times the
    /// share of the words that the document has, weighted by their idf.
    pub coverage: f64,
    /// The bonus for being of the days that the query asks about.
    pub date: f64,
    /// The bonus for having the words of the query near each other: this times the share of the words
    /// that are within one passage.
    pub nearness: f64,
    /// Which share of the scores of the memories beside it in its directory is added to that of an
    /// empty memory. The longer a memory is, the smaller is its share.
    pub neighbor: f64,
    /// The length in words from which on a memory takes in nothing of its neighbors. More than zero.
    pub neighbor_length: f64,
    /// The bonus for being among memories that have the words of the query.
    pub surroundings: f64,
    /// The bonus for being in a directory that has the words of the query.
    pub directory: f64,
    /// What meaning is worth: this share of the best score by words for a cosine that is
    /// `similar_ceiling` standard deviations above the mean, or more.
    pub similar: f64,
    /// How many standard deviations above the mean a cosine must be to count at all.
    pub similar_floor: f64,
    /// How many standard deviations above the mean are worth `similar`. More than the floor.
    pub similar_ceiling: f64,
    /// The bonus for being among memories that are similar too.
    pub similar_surroundings: f64,
}

impl Scoring {
    /// The parameters that searches use.
    ///
    /// Cross-validation over notes, dialogues and public collections of abstracts chooses no better
    /// ones, see `docs/search.md`. Conversations need a length normalization that is full: with the
    /// usual `b` of 0.75, long answers crowd out the short message that holds the fact. Without a
    /// length prior, that made a bare title of three words win over an abstract. A weight for headings
    /// lifted long answers, whose headings repeat the words of the question.
    pub const DEFAULT: Self = Self {
        k1: 2.5,
        b: 1.0,
        length_prior: 30.0,
        long: 300.0,
        title: 1.0,
        tag: 4.0,
        heading: 0.0,
        other: 0.7,
        coverage: 1.0,
        date: 1.5,
        nearness: 1.5,
        neighbor: 0.3,
        neighbor_length: 200.0,
        surroundings: 1.0,
        directory: 1.0,
        similar: 0.8,
        similar_floor: 1.0,
        similar_ceiling: 5.0,
        similar_surroundings: 1.0,
    };

    /// Returns the weight of an occurrence in a field.
    pub(crate) fn weight(&self, field: Field) -> f32 {
        match field {
            Field::Title | Field::TitleForms => self.title,
            Field::Tags => self.tag,
            Field::Headings => self.heading,
            Field::Body => 1.0,
            Field::Forms => self.other,
        }
    }

    /// Returns what a field is called in explanations.
    pub(crate) fn name(field: Field) -> ScoredField {
        match field {
            Field::Title | Field::TitleForms => ScoredField::Title,
            Field::Tags => ScoredField::Tag,
            Field::Headings => ScoredField::Heading,
            Field::Body => ScoredField::Body,
            Field::Forms => ScoredField::Other,
        }
    }
}

impl Default for Scoring {
    fn default() -> Self {
        Self::DEFAULT
    }
}
