//! Parsing and tokenizing of text.
//!
//! A memory's text is a markdown [`Note`] with links to other notes; a search is a
//! [`Query`](query::Query); both become the same terms in the [`tokenizer`]. All of it is pure:
//! text in, data out. Nothing here knows about stores, reads a file or fails: any text is a valid
//! note, and any query is at least a list of words.
//!
//! Ids, paths and times are plain text and [`jiff::Timestamp`]s, for the caller to convert to its
//! own types.

mod dates;
pub mod edit;
mod excerpt;
mod filter;
mod glob;
mod identifier;
mod note;
mod outline;
mod passage;
mod permalink;
mod phrase;
pub mod query;
mod snippet;
mod subject;
pub mod tokenizer;

pub use dates::{Date, DateSpan, EventReference, day_of, written_date};
pub use excerpt::excerpt;
pub use filter::{Comparison, FieldFilter, Predicate};
pub use glob::Glob;
pub use identifier::{Identifier, Proximity, Reference, alias_key, path_candidates};
pub use note::{
    Edge, Heading, KIND_DEFAULT, LINKS_TO, Link, LinkStyle, LinkTarget, Note, Observation,
    Relation, Remark, TimeKind, TimeQualifier, Value, end_of,
};
pub use outline::{LineKind, Outline};
pub use passage::Passage;
pub use permalink::{numbered_permalink, permalink, slug};
pub use phrase::{Phrase, TermMatch};
pub use snippet::{Snippet, snippet};
pub use subject::{SubjectKind, SubjectWord, subject_words};
