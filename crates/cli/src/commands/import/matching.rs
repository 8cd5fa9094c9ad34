//! Which memory of a store an item is.

use std::collections::HashMap;

use quipu_core::model::{Content, Listing, Memory, MemoryId, MemoryPath, Store, View};
use quipu_core::note::{Note, Value};
use quipu_core::{Engine, Error, ErrorKind};

use super::earlier::{Earlier, Written};
use super::source::{Item, Lasting};
use super::writing::Mode;

/// What an item finds in the store.
pub(super) enum Found {
    Nothing,
    /// The memory that it is or was.
    Memory(Memory),
    /// A memory that another item of the same import is or was, too.
    Shared(Memory),
    /// It was there once.
    Deleted,
}

/// Finds the memories of items.
pub(super) struct Matcher<'a> {
    engine: &'a Engine,
    store: &'a Store,
    earlier: Earlier,
    mode: Mode,
    /// The memories that several items find, with the path of the only item that may write there,
    /// if one may.
    shared: HashMap<MemoryId, Option<MemoryPath>>,
}

/// How an item found a memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    AtItsPath,
    /// By the history: it was imported to the item's path.
    ByHistory,
    /// By the history: it was imported under another name, but holds the item's id.
    ByItsId,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        store: &'a Store,
        earlier: Earlier,
        mode: Mode,
    ) -> Matcher<'a> {
        Matcher { engine, store, earlier, mode, shared: HashMap::new() }
    }

    /// Settles which item may write a memory that several of them find, since they would replace
    /// each other's text.
    pub(super) fn settle(&mut self, items: &[(Item, MemoryPath)]) -> Result<(), Error> {
        if self.earlier.is_empty() {
            return Ok(());
        }
        let mut claims: HashMap<MemoryId, Vec<(How, &MemoryPath)>> = HashMap::new();
        for (item, path) in items {
            if let Some((how, memory)) = self.candidate(item, path)? {
                claims.entry(memory).or_default().push((how, path));
            }
        }
        claims.retain(|_, claims| claims.len() > 1);
        let settled = claims.into_iter().map(|(memory, claims)| {
            let by = |wanted: How| claims.iter().find(|(how, _)| *how == wanted);
            let owner = match self.mode {
                // An id is a proof; all else would be a guess.
                Mode::Careful => by(How::ByItsId),
                Mode::Overwrite => {
                    by(How::AtItsPath).or_else(|| by(How::ByItsId)).or_else(|| claims.first())
                }
            };
            (memory, owner.map(|(_, path)| (*path).clone()))
        });
        self.shared = settled.collect();
        Ok(())
    }

    /// Returns the memory that an item is: the one at its path, else the one that an earlier import
    /// made of it, wherever that is now.
    pub(super) fn find(&self, item: &Item, path: &MemoryPath) -> Result<Found, Error> {
        let Some((_, id)) = self.candidate(item, path)? else { return Ok(Found::Nothing) };
        let owner = self.shared.get(&id);
        let is_others = owner.is_some_and(|owner| owner.as_ref() != Some(path));
        if is_others && self.mode == Mode::Overwrite {
            return Ok(Found::Nothing);
        }
        match self.engine.memory(self.store.id, id, View::Basic) {
            Ok(memory) if is_others => Ok(Found::Shared(memory)),
            Ok(memory) => Ok(Found::Memory(memory)),
            Err(error) if *error.kind() == ErrorKind::NotFound => match self.mode {
                Mode::Careful => Ok(Found::Deleted),
                Mode::Overwrite => Ok(Found::Nothing),
            },
            Err(error) => Err(error),
        }
    }

    /// Tells whether a memory says that it is something else than an item.
    pub(super) fn is_another(&self, memory: &Memory, item: &Item) -> Result<bool, Error> {
        let Some(lasting) = &item.lasting else { return Ok(false) };
        let memory = self.engine.memory(self.store.id, memory.id, View::Full)?;
        let id = lasting.id_in(&memory.path, memory.content.as_ref());
        Ok(id.is_some_and(|id| id != lasting.id))
    }

    fn candidate(&self, item: &Item, path: &MemoryPath) -> Result<Option<(How, MemoryId)>, Error> {
        if let Some(Listing::Memory(memory)) = self.engine.entry(self.store.id, path)? {
            return Ok(Some((How::AtItsPath, memory.id)));
        }
        let same_path = self.earlier.at(path);
        let Some(lasting) = &item.lasting else {
            return Ok(same_path.map(|written| (How::ByHistory, written.memory)));
        };
        let directory = path.parent();
        let renamed = self.earlier.ending(directory.as_str(), &lasting.ending);
        for written in same_path.into_iter().chain(renamed) {
            if self.was(&written, lasting)? {
                return Ok(Some((How::ByItsId, written.memory)));
            }
        }
        Ok(None)
    }

    /// Tells whether something with this id was imported.
    fn was(&self, written: &Written, lasting: &Lasting) -> Result<bool, Error> {
        match self.engine.version(self.store.id, written.version, View::Full) {
            Ok(version) => Ok(version.path.is_some_and(|path| {
                lasting.id_in(&path, version.content.as_ref()) == Some(lasting.id.clone())
            })),
            Err(error) if *error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Lasting {
    /// Returns the id that a text has in its frontmatter.
    fn id_in(&self, path: &MemoryPath, text: Option<&Content>) -> Option<String> {
        let metadata = Note::parse(path, text?.as_str()).metadata;
        let id = metadata.into_iter().find(|(key, _)| *key == self.field).map(|(_, value)| value);
        id.as_ref().and_then(Value::as_text).map(str::to_owned)
    }
}
