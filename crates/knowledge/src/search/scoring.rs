//! The parameters of ranking.

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
}

impl Scoring {
    /// The parameters that searches use.
    ///
    /// `k1` and `b` are the usual ones: short notes prefer a lower `k1`, long conversations a higher
    /// one. The weights did best with them on the questions of `bench/retrieval`. A word of the first
    /// heading is in the title, in a heading and in the body, so it has the weight 3.5. Heavier titles
    /// and headings (6 and 2.5) put notes with one of the words in their title before those that answer
    /// the question.
    pub const DEFAULT: Self =
        Self { k1: 1.2, b: 0.75, title: 2.0, tag: 4.0, heading: 0.5, other: 0.4, coverage: 0.5 };

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
}

impl Default for Scoring {
    fn default() -> Self {
        Self::DEFAULT
    }
}
