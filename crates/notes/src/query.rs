//! The query language.
//!
//! A query is a list of words. `"Words in quotes"` are a phrase and `word*` is a prefix; `AND`,
//! `OR`, `NOT` and parentheses combine them; `tag:x`, `type:x` and `path:x` filter. Operators must
//! be capitalized, because questions are full of `and`, `or` and `not`.
//!
//! Parsing never fails: unknown syntax is treated as words, and what exceeds the limits is dropped
//! and counted. People and models type what comes to mind, and a syntax error would cost them
//! another attempt for a query that can be answered.
//!
//! Words are kept as typed, because stemming depends on the languages of the searched stores, which
//! are not known here; [`Phrase`](crate::Phrase) turns them into terms.

mod lexer;
mod parser;
mod stop_words;
#[cfg(test)]
mod tests;

pub use stop_words::significant;

/// The maximum number of terms in a query; the rest is dropped. Each term costs a lookup in every
/// segment.
pub const TERMS_MAX: usize = 128;
/// The maximum depth of parentheses; deeper ones are ignored. It bounds the recursion over
/// expressions.
pub const DEPTH_MAX: usize = 16;

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The expression; `None` if the query is empty.
    pub expr: Option<Expr>,
    /// How many terms were dropped because there were more than [`TERMS_MAX`].
    pub omitted_count: usize,
}

/// An expression of the query language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A word, prefix or phrase.
    Term(Term),
    /// A filter on a field.
    Filter(Filter),
    /// Expressions typed next to each other without an operator: all of them should match, but a
    /// search may relax that if few texts have every word. This is not the same as `And`, which was
    /// asked for explicitly and is never relaxed.
    Juxtaposed(Vec<Expr>),
    /// All of these must match (`AND`).
    And(Vec<Expr>),
    /// At least one of these must match (`OR`).
    Or(Vec<Expr>),
    /// This must not match (`NOT`).
    Not(Box<Expr>),
}

/// Text to look for, as typed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A word, possibly with punctuation, such as `foo-bar.rs`.
    Word(String),
    /// The prefix of a word.
    Prefix(String),
    /// Adjacent words.
    Phrase(String),
}

impl Term {
    /// Returns the text without quotes and star.
    pub fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Prefix(text) | Self::Phrase(text) => text,
        }
    }
}

/// A filter on a field of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The field.
    pub field: Field,
    /// The value to match.
    pub value: String,
}

/// A field that queries can filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// A tag of the note or of an observation in it.
    Tag,
    /// The note's `type`.
    Type,
    /// The path of the memory, of a directory above it, or a pattern with `*`.
    Path,
}

impl Query {
    /// Parses a query; any text is valid.
    pub fn parse(text: &str) -> Self {
        let (tokens, omitted_count) = lexer::tokens(text);
        Self { expr: parser::parse(&tokens), omitted_count }
    }

    /// Returns the terms to look for in the order typed, without those under `NOT`.
    pub fn terms(&self) -> Vec<&Term> {
        let mut found = Vec::new();
        if let Some(expr) = &self.expr {
            expr.add_terms(&mut found);
        }
        found
    }
}

impl Expr {
    /// Returns whether it only restricts what other expressions find: a filter or a `NOT`.
    pub fn is_constraint(&self) -> bool {
        match self {
            Self::Filter(_) | Self::Not(_) => true,
            Self::Term(_) | Self::Juxtaposed(_) | Self::And(_) | Self::Or(_) => false,
        }
    }

    /// Adds the terms to look for. The parser bounds the depth, and with it this recursion.
    fn add_terms<'a>(&'a self, found: &mut Vec<&'a Term>) {
        match self {
            Self::Term(term) => found.push(term),
            Self::Juxtaposed(parts) | Self::And(parts) | Self::Or(parts) => {
                for part in parts {
                    part.add_terms(found);
                }
            }
            Self::Filter(_) | Self::Not(_) => {}
        }
    }
}
