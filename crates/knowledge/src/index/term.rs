//! Terms: the keys of posting lists.
//!
//! A term is a byte for the space, a byte for the kind, and a text. So terms of the same kind are
//! adjacent, and so are those with a common prefix.

use quipu_core::model::{Id as _, MemoryId};

/// The kind of documents that are searched. Each space has documents, statistics and terms of its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Space {
    /// Whole memories.
    Memories,
    /// Individual observations.
    Observations,
    /// Individual relations and links.
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

    /// Returns the element for this space.
    pub(crate) fn pick<T>(self, [memories, observations, relations]: [T; 3]) -> T {
        match self {
            Self::Memories => memories,
            Self::Observations => observations,
            Self::Relations => relations,
        }
    }

    /// Returns the space of a term; `None` if it is malformed.
    pub(crate) fn of_term(term: &[u8]) -> Option<Self> {
        let byte = term.first()?;
        Self::ALL.into_iter().find(|space| space.byte() == *byte)
    }
}

/// A property of a document that is indexed as a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark<'a> {
    /// It has a tag, case-insensitive.
    Tag(&'a str),
    /// The type of its note, case-insensitive.
    Type(&'a str),
    /// It is at this path or in this directory, without a trailing slash.
    Place(&'a str),
    /// It is or contains an observation in this category, case-insensitive.
    Category(&'a str),
    /// It is a relation of this type, case-insensitive.
    Relation(&'a str),
    /// The language tag of its note.
    Language(&'a str),
    /// It has this name, as an alias key.
    Name(&'a str),
    /// Its exact title.
    Title(&'a str),
    /// The permalink that it requests.
    Permalink(&'a str),
    /// It has a link that may resolve to a memory with this name, as an alias key.
    LinkTo(&'a str),
    /// A frontmatter field has this value.
    Field(&'a str, &'a str),
    /// It is of this day.
    Day(DayKind, Day),
}

/// In what sense a memory is of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DayKind {
    /// It says so itself, in its frontmatter, its title or its path.
    Written,
    /// It says no day, and was created or last changed on this one.
    Changed,
    /// It is about an event of this day: the one that says most of those that it says itself.
    Event,
}

impl DayKind {
    fn byte(self) -> u8 {
        match self {
            Self::Written => b'd',
            Self::Changed => b'v',
            Self::Event => b'e',
        }
    }
}

/// A day, in the order of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day([u8; 4]);

impl Day {
    pub(crate) fn new(year: i16, month: i8, day: i8) -> Self {
        // With the sign inverted, years before our era come before the others.
        let [high, low] = (year.cast_unsigned() ^ 0x8000).to_be_bytes();
        Self([high, low, month.cast_unsigned(), day.cast_unsigned()])
    }

    /// Returns the year, the month and the day.
    pub(crate) fn parts(self) -> (i16, i8, i8) {
        let Self([high, low, month, day]) = self;
        let year = (u16::from_be_bytes([high, low]) ^ 0x8000).cast_signed();
        (year, month.cast_signed(), day.cast_signed())
    }

    /// Reads the day in a term.
    pub(crate) fn of_term(term: &[u8]) -> Option<Self> {
        term.last_chunk().copied().map(Self)
    }
}

/// Returns the prefix of the terms for days of a kind; the day follows.
pub(crate) fn day_prefix(kind: DayKind) -> [u8; 2] {
    [Space::Memories.byte(), kind.byte()]
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
            Self::Day(kind, Day(day)) => return [&day_prefix(kind)[..], &day].concat(),
        };
        let mut term = vec![space.byte(), kind];
        term.extend_from_slice(text.as_bytes());
        term
    }
}

/// Returns the term that identifies a memory in its segment.
pub(crate) fn memory(id: MemoryId) -> Vec<u8> {
    let mut term = vec![Space::Memories.byte(), b'#'];
    term.extend_from_slice(&id.bits().to_be_bytes());
    term
}

/// Returns whether a term identifies a memory. All of these come before any other term.
pub(crate) fn is_memory(term: &[u8]) -> bool {
    term.starts_with(&[Space::Memories.byte(), b'#'])
}

/// Returns the term of a word.
pub(crate) fn word(space: Space, word: &str) -> Vec<u8> {
    // Indexing makes one of these for every word of a text, so it allocates once.
    let mut term = Vec::with_capacity(2 + word.len());
    term.extend_from_slice(&[space.byte(), b'w']);
    term.extend_from_slice(word.as_bytes());
    term
}

/// Returns the prefix of the terms for a field's values; the value follows.
pub(crate) fn field_prefix(key: &str) -> Vec<u8> {
    let mut prefix = vec![Space::Memories.byte(), b'f'];
    prefix.extend_from_slice(key.as_bytes());
    // No indexed key contains this byte, so no other key has this prefix.
    prefix.push(0);
    prefix
}

/// Returns the prefix of the terms for languages; the language tag follows.
pub(crate) fn language_prefix() -> Vec<u8> {
    Mark::Language("").term(Space::Memories)
}
