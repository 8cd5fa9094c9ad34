//! What the index keeps of each memory, and what can be asked of it.
//!
//! Everything here is derived: [`Entry::read`] makes it of a memory's path and text alone, so it
//! can be made again at any time and never decides anything. A backend keeps entries and answers
//! [`IndexQuery`]s; what the words of a query mean is decided before they reach it.

mod document;
mod entry;
mod filter;
mod irregular;
mod snippet;
mod stem;
mod term_query;
mod terms;

use crate::model::{MemoryId, MemoryPath, StoreId, Timestamp, VersionId};
use crate::note::Target;

pub use document::{Column, Document, Mark};
pub use entry::{Entry, Fact, FactKind, IndexedLink};
pub use filter::{Comparison, Condition, FieldFilter, PathFilter, Sense};
pub use snippet::{Snippet, snippet};
pub use term_query::{Phrase, TermQuery, WordEnd};
pub use terms::{Term, terms};

pub(crate) use term_query::{TEXT, TITLE, measured};

/// The name of the cursor that says which change the index has reached.
///
/// The number grows whenever [`Entry::read`] makes something else of the same text, so that an
/// index of an earlier kind is built anew.
pub const INDEX_CURSOR: &str = "index.3";

/// The cursor that is not zero while the index is built anew; each time it is another number.
///
/// Its name begins with that of [`INDEX_CURSOR`]: programs of other kinds must not help.
pub const REBUILD_CURSOR: &str = "index.3.rebuild";

/// The cursor of the first kind of index, whose indexers leave the cursors of other kinds alone.
///
/// Where it is, the index may hold entries of that kind, whatever the other cursors say.
pub const FIRST_INDEX_CURSOR: &str = "index.1";

/// How the names of all cursors of the index begin.
pub const INDEX_CURSORS: &str = "index.";

/// What the index knows of a memory without reading its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteRow {
    /// The memory.
    pub memory: MemoryId,
    /// Its store.
    pub store: StoreId,
    /// The version whose text was read.
    pub version: VersionId,
    /// Where it lives.
    pub path: MemoryPath,
    /// Its title.
    pub title: String,
    /// Its type.
    pub kind: String,
    /// The permalink that it has if no older memory asks for the same.
    pub permalink: String,
    /// When the memory was created.
    pub created_at: Timestamp,
    /// When its text or path last changed.
    pub updated_at: Timestamp,
}

/// One of the names that a memory can be called by, all of which several memories may share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteName {
    /// The permalink as in [`NoteRow::permalink`].
    Permalink(String),
    /// The exact title.
    Title(String),
    /// A name in the form of [`alias_key`](crate::note::alias_key).
    Alias(String),
}

/// A link of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// The memory that it stands in.
    pub from: MemoryId,
    /// Its place among the links of that memory, from 0.
    pub position: usize,
    /// What the target is to the memory.
    pub kind: String,
    /// What it points to, as it is written.
    pub target: Target,
    /// The context of a relation.
    pub context: Option<String>,
    /// The line, counted from 1.
    pub line: usize,
}

/// Selects links of a store.
#[derive(Clone, Debug)]
pub enum LinkQuery {
    /// The links of a memory, in their order.
    From(MemoryId),
    /// The links that have one of these keys, by memory and place.
    Towards(Vec<String>),
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum What {
    /// Whole memories.
    #[default]
    Memories,
    /// Single observations.
    Observations,
    /// Single relations and links.
    Relations,
}

/// Asks the index for documents.
#[derive(Clone, Debug)]
pub struct IndexQuery {
    /// Where to search.
    pub stores: Vec<StoreId>,
    /// What to search.
    pub what: What,
    /// What a document must have.
    pub terms: TermQuery,
    /// What the frontmatter of its memory must have; everything must hold.
    pub fields: Vec<FieldFilter>,
    /// Which patterns the path of its memory must fit; everything must hold.
    pub paths: Vec<PathFilter>,
    /// Only documents of memories that changed after this moment.
    pub changed_after: Option<Timestamp>,
    /// How many at most.
    pub limit: usize,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexMatches {
    /// The best documents, the best first.
    pub hits: Vec<IndexHit>,
    /// How many documents there are in all; counting may stop early.
    pub total: Total,
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// So many, or at least so many.
    pub count: usize,
    /// Whether there may be more than were counted.
    pub is_lower_bound: bool,
}

/// One document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexHit {
    /// The store.
    pub store: StoreId,
    /// The memory.
    pub memory: MemoryId,
    /// The place of the observation or link among those of the memory, from 0; 0 for a memory.
    pub position: usize,
    /// How well it fits; more is better.
    pub score: f64,
}
