//! Memories: reading, creating, changing, moving, deleting.

use std::ops::Bound;

use crate::backend::{MemoryQuery, Reader, Subject};
use crate::model::{
    Actor, Content, ContentHash, Directory, Memory, MemoryId, MemoryPath, StoreId, Version, View,
};
use crate::{Error, ErrorKind};

use super::intact::Intact as _;
use super::transaction::{ScreenedText, Target, Transaction};
use super::{Effect, Engine, Written, aborted, existing_store};

/// A compare-and-swap condition of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    #[default]
    None,
    /// The memory's text must have this hash.
    ContentIs(ContentHash),
}

impl Precondition {
    pub(super) fn check(self, memory: &Memory) -> Result<(), Error> {
        match self {
            Self::ContentIs(hash) if hash != memory.hash => Err(Error::new(
                ErrorKind::PreconditionFailed,
                format!("the memory at `{}` has changed since it was read", memory.path),
            )
            .with_hint("read it again and repeat the change on its new text")),
            Self::ContentIs(_) | Self::None => Ok(()),
        }
    }
}

/// A change of a memory; what is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct MemoryUpdate {
    /// The new text.
    pub content: Option<Content>,
    /// The new path.
    pub path: Option<MemoryPath>,
    /// What must be true before.
    pub precondition: Precondition,
}

/// The result of a deletion.
#[derive(Clone, Debug)]
pub struct Removed {
    /// One version for each memory that was deleted.
    pub versions: Vec<Version>,
}

impl Engine {
    /// Returns a memory by its id.
    pub fn memory(&self, store: StoreId, id: MemoryId, view: View) -> Result<Memory, Error> {
        self.reading(|reader| existing_memory(reader, store, id, view))
    }

    /// Returns the memory at a path.
    pub fn memory_at(
        &self,
        store: StoreId,
        path: &MemoryPath,
        view: View,
    ) -> Result<Memory, Error> {
        self.reading(|reader| existing_memory_at(reader, store, path, view))
    }

    /// Creates a memory. It never overwrites: an occupied path is a conflict.
    pub fn create(
        &self,
        actor: &Actor,
        store: StoreId,
        path: &MemoryPath,
        content: &Content,
    ) -> Result<Written, Error> {
        let text = ScreenedText::new(content.clone());
        self.change(actor, (store, Subject::At(path, View::Basic)), |transaction| {
            transaction.create(Target { path: path.clone(), text: text.clone() }, None)
        })
    }

    /// Stores a text at a path: creates the memory or changes it.
    ///
    /// With a precondition, the memory must exist.
    pub fn put(
        &self,
        actor: &Actor,
        store: StoreId,
        target: (&MemoryPath, &Content),
        precondition: Precondition,
    ) -> Result<Written, Error> {
        let (path, content) = target;
        let text = ScreenedText::new(content.clone());
        self.change(actor, (store, Subject::At(path, View::Basic)), |transaction| {
            transaction.require_open()?;
            let target = Target { path: path.clone(), text: text.clone() };
            match transaction.reader().memory_at(store, path, View::Basic)? {
                Some(memory) => transaction.modify(memory, target, precondition),
                None if precondition == Precondition::None => transaction.create(target, None),
                None => Err(no_memory_at(path)),
            }
        })
    }

    /// Changes the text, the path or both, as one version.
    pub fn update(
        &self,
        actor: &Actor,
        store: StoreId,
        id: MemoryId,
        update: &MemoryUpdate,
    ) -> Result<Written, Error> {
        let text = update.content.clone().map(ScreenedText::new);
        self.change(actor, (store, Subject::Memory(id, View::Full)), |transaction| {
            transaction.require_open()?;
            let view = if text.is_some() { View::Basic } else { View::Full };
            let memory = existing_memory(transaction.reader(), store, id, view)?;
            let path = update.path.as_ref().unwrap_or(&memory.path).clone();
            let text = text.clone().unwrap_or_else(|| kept_text(&memory));
            transaction.modify(memory, Target { path, text }, update.precondition)
        })
    }

    /// Replaces the text of a memory by what `work` returns for it, in one transaction.
    ///
    /// No other writer can come in between, so no update is lost. `work` may run more than once.
    /// When it fails, its error is returned and nothing has changed.
    pub fn edit<E: From<Error>>(
        &self,
        actor: &Actor,
        store: StoreId,
        path: &MemoryPath,
        mut work: impl FnMut(&Memory, &str) -> Result<String, E>,
    ) -> Result<Written, E> {
        let mut refusal = None;
        let result = self.change(actor, (store, Subject::At(path, View::Full)), |transaction| {
            transaction.require_open()?;
            let memory = existing_memory_at(transaction.reader(), store, path, View::Full)?;
            let old = memory.content.clone().expect("the memory was read with its text");
            let new = match work(&memory, old.as_str()) {
                Ok(text) => Content::new(text)?,
                Err(error) => {
                    refusal = Some(error);
                    return Err(aborted());
                }
            };
            let target = Target { path: memory.path.clone(), text: ScreenedText::new(new) };
            transaction.modify(memory, target, Precondition::None)
        });
        match (refusal, result) {
            (Some(refusal), _) => Err(refusal),
            (None, result) => result.map_err(E::from),
        }
    }

    /// Moves the memory at `from`, or every memory below it, to `to`, in one transaction.
    ///
    /// Each memory keeps its id and gets one version. It never overwrites: if anything is at `to`,
    /// above it or below it, nothing moves.
    pub fn rename(
        &self,
        actor: &Actor,
        store: StoreId,
        from: &MemoryPath,
        to: &MemoryPath,
    ) -> Result<Vec<Written>, Error> {
        self.change(actor, (store, Subject::At(from, View::Full)), |transaction| {
            transaction.require_open()?;
            let memories = transaction.memories_at_or_below(from, View::Full)?;
            if from == to {
                let unchanged = |memory| transaction.written(memory, Effect::Unchanged, Vec::new());
                return Ok(memories.into_iter().map(unchanged).collect());
            }
            if from.as_directory().contains(to) {
                return Err(Error::invalid(format!("`{from}` cannot be moved into itself"))
                    .with_hint("choose a target outside of it"));
            }
            transaction.require_free(to, None)?;
            let (from, to) = (from.as_directory(), to.as_directory());
            memories.into_iter().map(|memory| transaction.relocate(memory, &from, &to)).collect()
        })
    }

    /// Deletes a memory by its id.
    pub fn delete(
        &self,
        actor: &Actor,
        store: StoreId,
        id: MemoryId,
        precondition: Precondition,
    ) -> Result<Version, Error> {
        self.clear(actor, (store, Subject::Memory(id, View::Basic)), |transaction| {
            let memory = existing_memory(transaction.reader(), store, id, View::Basic)?;
            precondition.check(&memory)?;
            transaction.delete(memory)
        })
    }

    /// Deletes the memory at a path, or every memory below it, in one transaction.
    pub fn delete_at(
        &self,
        actor: &Actor,
        store: StoreId,
        path: &MemoryPath,
    ) -> Result<Removed, Error> {
        self.clear(actor, (store, Subject::At(path, View::Basic)), |transaction| {
            let memories = transaction.memories_at_or_below(path, View::Basic)?;
            let versions = memories.into_iter().map(|memory| transaction.delete(memory));
            Ok(Removed { versions: versions.collect::<Result<_, _>>()? })
        })
    }
}

impl Transaction<'_, '_> {
    pub(super) fn reader(&self) -> &dyn Reader {
        self.ledger.reader()
    }

    /// Returns the memory at the path, or all memories below it if it is a directory.
    fn memories_at_or_below(&self, path: &MemoryPath, view: View) -> Result<Vec<Memory>, Error> {
        let reader = self.reader();
        if let Some(memory) = reader.memory_at(self.store.id, path, view)? {
            return Ok(vec![memory.intact()?]);
        }
        let memories = reader.memories(
            self.store.id,
            &MemoryQuery {
                directory: path.as_directory(),
                start: Bound::Unbounded,
                limit: usize::MAX,
                view,
            },
        )?;
        if memories.is_empty() {
            return Err(no_memory_at(path));
        }
        memories.into_iter().map(Memory::intact).collect()
    }

    fn relocate(
        &mut self,
        memory: Memory,
        from: &Directory,
        to: &Directory,
    ) -> Result<Written, Error> {
        let path = if memory.path.as_directory() == *from {
            MemoryPath::parse(to.as_str().trim_end_matches('/'))?
        } else {
            memory.path.moved(from, to)?
        };
        let text = kept_text(&memory);
        self.modify(memory, Target { path, text }, Precondition::None)
    }
}

fn kept_text(memory: &Memory) -> ScreenedText {
    let content = memory.content.clone().expect("the memory was read with its text");
    ScreenedText::unscreened(content)
}

pub(super) fn existing_memory(
    reader: &dyn Reader,
    store: StoreId,
    id: MemoryId,
    view: View,
) -> Result<Memory, Error> {
    if let Some(memory) = reader.memory(store, id, view)? {
        return memory.intact();
    }
    existing_store(reader, store)?;
    Err(Error::not_found(format!("no memory of the store has the id `{id}`"))
        .with_hint("it may have been deleted; list the versions of this id to see"))
}

fn existing_memory_at(
    reader: &dyn Reader,
    store: StoreId,
    path: &MemoryPath,
    view: View,
) -> Result<Memory, Error> {
    if let Some(memory) = reader.memory_at(store, path, view)? {
        return memory.intact();
    }
    existing_store(reader, store)?;
    Err(no_memory_at(path))
}

fn no_memory_at(path: &MemoryPath) -> Error {
    Error::not_found(format!("no memory lives at `{path}`"))
        .with_hint("list the store to see what it holds")
}
