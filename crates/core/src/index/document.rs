//! Documents: terms in columns.

use std::collections::{BTreeSet, HashMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::terms::{Run, each_run, further_terms, term_of, terms};

/// The terms of a memory, an observation or a relation; each column is terms with single spaces
/// between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The title and what else it can be found by, so that titles can be searched alone; the
    /// category of an observation, the kind of a relation.
    pub title: String,
    /// The tags.
    pub tags: String,
    /// The headings.
    pub headings: String,
    /// The text.
    pub body: String,
    /// What else it can be found by: words with their endings, parts of identifiers, the path.
    pub extra: String,
    /// What it is marked with, for exact conditions.
    pub marks: String,
}

/// A column of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// [`Document::title`]
    Title,
    /// [`Document::tags`]
    Tags,
    /// [`Document::headings`]
    Headings,
    /// [`Document::body`]
    Body,
    /// [`Document::extra`]
    Extra,
    /// [`Document::marks`]
    Marks,
}

impl Column {
    /// Every column, in the order of [`Document`].
    pub const ALL: [Self; 6] =
        [Self::Title, Self::Tags, Self::Headings, Self::Body, Self::Extra, Self::Marks];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Tags => "tags",
            Self::Headings => "headings",
            Self::Body => "body",
            Self::Extra => "extra",
            Self::Marks => "marks",
        }
    }

    /// Returns how much a term in this column counts.
    pub fn weight(self) -> f64 {
        match self {
            Self::Title => 6.0,
            Self::Tags => 4.0,
            Self::Headings => 2.5,
            Self::Body => 1.0,
            Self::Extra => 0.4,
            Self::Marks => 0.0,
        }
    }
}

impl Document {
    /// Returns the terms of a column.
    pub fn column(&self, column: Column) -> &str {
        match column {
            Column::Title => &self.title,
            Column::Tags => &self.tags,
            Column::Headings => &self.headings,
            Column::Body => &self.body,
            Column::Extra => &self.extra,
            Column::Marks => &self.marks,
        }
    }
}

/// Something that a document is marked with, for conditions that must hold exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'a> {
    /// Every document has it.
    Any,
    /// A tag; case makes no difference.
    Tag(&'a str),
    /// The note's type; case makes no difference.
    Kind(&'a str),
    /// The path of the memory, or of a directory above it, without a slash at its end.
    Place(&'a str),
    /// The category of an observation; case makes no difference.
    Category(&'a str),
    /// The kind of a relation; case makes no difference.
    Relation(&'a str),
}

impl Mark<'_> {
    /// Returns the term that stands for it: a letter and 16 digits, which no word of a text is but
    /// by intent.
    pub fn term(self) -> String {
        let (letter, value) = match self {
            Self::Any => return "a0000000000000000".to_owned(),
            Self::Tag(tag) => ('t', tag.to_lowercase()),
            Self::Kind(kind) => ('k', kind.to_lowercase()),
            Self::Place(place) => ('p', place.to_owned()),
            Self::Category(category) => ('c', category.to_lowercase()),
            Self::Relation(kind) => ('r', kind.to_lowercase()),
        };
        let hash = Sha256::digest(value.as_bytes());
        hash.iter().take(8).fold(letter.to_string(), |term, byte| format!("{term}{byte:02x}"))
    }
}

impl Mark<'_> {
    /// Tells whether a word could be the term of a mark.
    pub fn is_like(word: &str) -> bool {
        let mut letters = word.bytes();
        word.len() == 17
            && letters.next().is_some_and(|first| first.is_ascii_lowercase())
            && letters.all(|digit| digit.is_ascii_hexdigit())
    }
}

/// Returns the terms of texts, with single spaces between them.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    // Most words of a text are in it more than once.
    let mut known: HashMap<&str, String> = HashMap::new();
    for text in texts {
        each_run(text, |run, range| {
            let written = text.get(range).unwrap_or_default();
            match run {
                Run::Word => {
                    let term = known.entry(written).or_insert_with(|| term_of(written));
                    if !term.is_empty() {
                        push(&mut joined, term);
                    }
                }
                Run::Ideographs => {
                    for term in terms(written) {
                        push(&mut joined, &term.text);
                    }
                }
            }
        });
    }
    joined
}

/// Returns what else texts can be found by, each term once.
pub(super) fn extra<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let mut seen = HashSet::new();
    let mut found = BTreeSet::new();
    let mut keep = |term: String| {
        if !term.is_empty() {
            found.insert(term);
        }
    };
    for text in texts {
        each_run(text, |run, range| {
            let written = text.get(range).unwrap_or_default();
            if seen.insert(written) {
                further_terms(run, written, &mut keep);
            }
        });
    }
    found
}

/// Returns terms with single spaces between them.
pub(super) fn spaced<'a>(terms: impl IntoIterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for term in terms {
        push(&mut joined, term);
    }
    joined
}

fn push(joined: &mut String, term: &str) {
    if !joined.is_empty() {
        joined.push(' ');
    }
    joined.push_str(term);
}
