//! The parameters of ranking.

use crate::index::Field;

/// The parameters of ranking: those of BM25, and the weights of the fields.
///
/// The defaults were chosen by cross-validation, which `quipu-bench retrieval --tune` repeats; it is
/// the reason why these are not constants.
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
}

impl Scoring {
    /// The parameters that searches use.
    pub const DEFAULT: Self =
        Self { k1: 1.2, b: 0.75, title: 6.0, tag: 4.0, heading: 2.5, other: 0.4 };

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
