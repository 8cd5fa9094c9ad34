//! Memories: one text at a path.

use super::{Content, ContentHash, Directory, MemoryId, MemoryPath, StoreId, Timestamp, VersionId};

/// One text at a path: the current state of a memory. Its past is in its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its id, which survives renames.
    pub id: MemoryId,
    /// The store that it belongs to.
    pub store: StoreId,
    /// Its path.
    pub path: MemoryPath,
    /// Its text; `None` when it was read with [`View::Basic`].
    pub content: Option<Content>,
    /// The hash of its text.
    pub hash: ContentHash,
    /// The length of its text.
    pub size_bytes: u64,
    /// Its newest version.
    pub version: VersionId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its text or its path last changed.
    pub updated_at: Timestamp,
}

/// How much of a memory or version is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// Everything but the text.
    Basic,
    /// The text too.
    Full,
}

/// One entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// A memory.
    Memory(Memory),
    /// A directory that stands for the memories in it.
    Directory(Directory),
}

impl Listing {
    /// Returns the text that listings are sorted by, byte by byte.
    pub fn sort_key(&self) -> &str {
        match self {
            Self::Memory(memory) => memory.path.as_str(),
            Self::Directory(directory) => directory.as_str(),
        }
    }
}
