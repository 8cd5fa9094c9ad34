//! Operations of a file system: what is at a path, and renaming onto an existing memory.

use crate::backend::Subject;
use crate::model::{
    Actor, Directory, Listing, Memory, MemoryId, MemoryPath, StoreId, Version, View,
};
use crate::{Error, ErrorKind};

use super::memories::existing_memory;
use super::transaction::{ScreenedText, Target};
use super::{Engine, Precondition, Written, existing_store};

/// Which of two memories survives when one is moved onto the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivor {
    /// The one that is moved; the one that was there is deleted.
    Moved,
    /// The one that was there, if this holds for it, with the text of the one that is moved, which is
    /// deleted.
    Target(Precondition),
}

/// The result of moving a memory onto another one.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// The memory that survives.
    pub written: Written,
    /// The deletion of the other one.
    pub deleted: Version,
}

impl Engine {
    /// Returns what is at a path: a memory without its text, or a directory. This does not count as a use.
    pub fn entry(&self, store: StoreId, path: &MemoryPath) -> Result<Option<Listing>, Error> {
        self.read(|reader| {
            let found = reader.overlapping(store, path, None)?;
            if found.is_none() {
                existing_store(reader, store)?;
            }
            let directory = path.as_directory();
            Ok(found.and_then(|memory| listing_at(path, directory.clone(), memory)))
        })
    }

    /// Moves a memory onto another one, in one transaction: two versions, one of them a deletion.
    ///
    /// A deletion followed by a rename would leave a moment without any memory at the path, in which a
    /// reader finds nothing and another writer can take the path.
    pub fn replace(
        &self,
        actor: &Actor,
        store: StoreId,
        (moved, target): (MemoryId, MemoryId),
        survivor: Survivor,
    ) -> Result<Replaced, Error> {
        self.change(actor, (store, Subject::Memories([moved, target])), |transaction| {
            transaction.require_open()?;
            if moved == target {
                return Err(Error::new(
                    ErrorKind::InvalidInput,
                    "a memory cannot be moved onto itself",
                ));
            }
            let reader = transaction.reader();
            let moved = existing_memory(reader, store, moved, View::Full)?;
            let target = existing_memory(reader, store, target, View::Full)?;
            let content = moved.content.clone().expect("the memory was read with its text");
            let target_path = target.path.clone();
            let (kept, lost, precondition) = match survivor {
                Survivor::Moved => (moved, target, Precondition::None),
                Survivor::Target(precondition) => (target, moved, precondition),
            };
            precondition.check(&kept)?;
            let deleted = transaction.delete(lost)?;
            let target = Target { path: target_path, text: ScreenedText::unscreened(content) };
            let written = transaction.modify(kept, target, Precondition::None)?;
            Ok(Replaced { written, deleted })
        })
    }
}

fn listing_at(path: &MemoryPath, directory: Directory, memory: Memory) -> Option<Listing> {
    if memory.path == *path {
        return Some(Listing::Memory(memory));
    }
    directory.contains(&memory.path).then_some(Listing::Directory(directory))
}
