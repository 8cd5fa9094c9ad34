//! The language of searches.
//!
//! A query is words. `"Several in quotes"` stand together, `word*` is a beginning, `AND`, `OR`,
//! `NOT` and parentheses combine, `tag:x`, `type:x` and `path:x` narrow down. There is no wrong
//! query: what is not understood is words, and what is too much is left out.
//!
//! Words are given as they were typed; how they are cut into terms is the index's work.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

/// How many words and phrases of a query count; the others are left out.
pub const TERMS_MAX: usize = 128;
/// How deep parentheses may be nested; deeper ones mean nothing.
pub const DEPTH_MAX: usize = 16;

/// A query, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What is asked for; `None` if nothing is.
    pub wanted: Option<Expression>,
    /// How many words were left out because there were too many.
    pub left_out: usize,
}

/// What memories must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// One word, beginning or phrase.
    Term(Term),
    /// A condition on a field.
    Filter(Filter),
    /// What was typed beside each other: all of it, or as many of the words as can be had when few
    /// texts hold all.
    Together(Vec<Expression>),
    /// All of these, as `AND` asks.
    All(Vec<Expression>),
    /// At least one of these, as `OR` asks.
    Any(Vec<Expression>),
    /// Not this, as `NOT` asks.
    Not(Box<Expression>),
}

/// A piece of text to look for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A word; it may hold signs, such as `foo-bar.rs`.
    Word(String),
    /// The beginning of a word.
    Prefix(String),
    /// Words that stand beside each other.
    Phrase(String),
}

impl Term {
    /// Returns what was typed, without quotes and star.
    pub fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Prefix(text) | Self::Phrase(text) => text,
        }
    }
}

/// A condition on a field of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The field.
    pub field: Field,
    /// The value that it must have.
    pub value: String,
}

/// A field that a query can speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// A tag of the note or of an observation in it.
    Tag,
    /// The note's `type`.
    Type,
    /// The path: the memory's own, a directory above it, or a pattern with `*`.
    Path,
}

impl Query {
    /// Reads a query.
    pub fn parse(text: &str) -> Self {
        let (tokens, left_out) = lexer::tokens(text);
        Self { wanted: parser::parse(&tokens), left_out }
    }

    /// Returns the terms that are looked for, in the order in which they were typed.
    pub fn wanted_terms(&self) -> Vec<&Term> {
        let mut found = Vec::new();
        if let Some(wanted) = &self.wanted {
            wanted.add_terms(&mut found);
        }
        found
    }
}

impl Expression {
    /// Adds the terms that are looked for. The depth of an expression is bounded, so this is too.
    fn add_terms<'a>(&'a self, found: &mut Vec<&'a Term>) {
        match self {
            Self::Term(term) => found.push(term),
            Self::Together(parts) | Self::All(parts) | Self::Any(parts) => {
                for part in parts {
                    part.add_terms(found);
                }
            }
            Self::Filter(_) | Self::Not(_) => {}
        }
    }
}
