//! Terms: what posting lists are kept for.
//!
//! A term is a byte for the documents that it is about, a byte for its kind, and a text. So the terms
//! of one kind are neighbors, and those that begin alike too.

use quipu_core::model::{Id as _, MemoryId};

/// What is searched, and so what a document is. Each has documents, statistics and terms of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Space {
    /// Whole memories.
    Memories,
    /// Single observations.
    Observations,
    /// Single relations and links.
    Relations,
}

impl Space {
    pub(crate) const ALL: [Self; 3] = [Self::Memories, Self::Observations, Self::Relations];

    fn byte(self) -> u8 {
        match self {
            Self::Memories => b'm',
            Self::Observations => b'o',
            Self::Relations => b'r',
        }
    }

    /// Returns the value for this space out of one for each.
    pub(crate) fn pick<T>(self, [memories, observations, relations]: [T; 3]) -> T {
        match self {
            Self::Memories => memories,
            Self::Observations => observations,
            Self::Relations => relations,
        }
    }

    /// Returns the space of the documents that have a term; `None` if it is malformed.
    pub(crate) fn of_term(term: &[u8]) -> Option<Self> {
        let byte = term.first()?;
        Self::ALL.into_iter().find(|space| space.byte() == *byte)
    }
}

/// What a term says about a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark<'a> {
    /// It has a tag; case makes no difference.
    Tag(&'a str),
    /// The type of its note; case makes no difference.
    Type(&'a str),
    /// It is at this path or in this directory, without a slash at its end.
    Place(&'a str),
    /// It has or is an observation of this category; case makes no difference.
    Category(&'a str),
    /// It is a relation of this type; case makes no difference.
    Relation(&'a str),
    /// The tag of the language of its note.
    Language(&'a str),
    /// It can be called by this name, in the form of an alias key.
    Name(&'a str),
    /// Its exact title.
    Title(&'a str),
    /// The permalink that it asks for.
    Permalink(&'a str),
    /// It has a link that may mean a memory with this name, in the form of an alias key.
    LinkTo(&'a str),
    /// A field of its frontmatter has this value.
    Field(&'a str, &'a str),
}

impl Mark<'_> {
    /// Returns the term of the mark for documents of a space.
    pub(crate) fn term(self, space: Space) -> Vec<u8> {
        let (kind, text) = match self {
            Self::Tag(tag) => (b't', tag.to_lowercase()),
            Self::Type(name) => (b'k', name.to_lowercase()),
            Self::Place(place) => (b'p', place.to_owned()),
            Self::Category(category) => (b'c', category.to_lowercase()),
            Self::Relation(name) => (b'r', name.to_lowercase()),
            Self::Language(tag) => (b'g', tag.to_owned()),
            Self::Name(key) => (b'n', key.to_owned()),
            Self::Title(title) => (b'i', title.to_owned()),
            Self::Permalink(permalink) => (b'u', permalink.to_owned()),
            Self::LinkTo(key) => (b'l', key.to_owned()),
            Self::Field(key, value) => {
                let mut term = field_prefix(key);
                term.extend_from_slice(value.as_bytes());
                return term;
            }
        };
        let mut term = vec![space.byte(), kind];
        term.extend_from_slice(text.as_bytes());
        term
    }
}

/// Returns the term by which a memory is found in its segment.
pub(crate) fn memory(id: MemoryId) -> Vec<u8> {
    let mut term = vec![Space::Memories.byte(), b'#'];
    term.extend_from_slice(&id.bits().to_be_bytes());
    term
}

/// Returns the term of a word.
pub(crate) fn word(space: Space, word: &str) -> Vec<u8> {
    let mut term = vec![space.byte(), b'w'];
    term.extend_from_slice(word.as_bytes());
    term
}

/// Returns how the terms of the values of a field begin; what follows is the value.
pub(crate) fn field_prefix(key: &str) -> Vec<u8> {
    let mut prefix = vec![Space::Memories.byte(), b'f'];
    prefix.extend_from_slice(key.as_bytes());
    // Neither a key nor a value holds this byte, so no other key begins like this one.
    prefix.push(0);
    prefix
}

/// Returns how the terms of languages begin; what follows is the tag of the language.
pub(crate) fn language_prefix() -> Vec<u8> {
    Mark::Language("").term(Space::Memories)
}
