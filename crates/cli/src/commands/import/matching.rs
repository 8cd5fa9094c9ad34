//! Which memory of a store an item is.

use std::collections::HashMap;

use quipu_core::model::{Content, Listing, Memory, MemoryId, MemoryPath, Store, View};
use quipu_core::{Engine, Error, ErrorKind};
use quipu_notes::Note;

use super::earlier::{Earlier, Written};
use super::source::{Item, Lasting, Mark, TITLE_FIELD};
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
        let Some(Lasting::Name { mark, .. }) = &item.lasting else { return Ok(false) };
        // A thing may get another title, but not another id.
        if mark.field == TITLE_FIELD {
            return Ok(false);
        }
        let memory = self.engine.memory(self.store.id, memory.id, View::Full)?;
        let value = mark.value_in(&memory.path, memory.content.as_ref());
        Ok(value.is_some_and(|value| value != mark.value))
    }

    fn candidate(&self, item: &Item, path: &MemoryPath) -> Result<Option<(How, MemoryId)>, Error> {
        let at_path = match self.engine.entry(self.store.id, path)? {
            Some(Listing::Memory(memory)) => Some(memory.id),
            Some(Listing::Directory(_)) | None => None,
        };
        let before = self.earlier.at(path);
        let Some(Lasting::Name { endings, mark }) = &item.lasting else {
            let by_history = before.map(|written| (How::ByHistory, written.memory));
            return Ok(at_path.map(|id| (How::AtItsPath, id)).or(by_history));
        };
        let directory = path.parent();
        let named_so = endings.iter().flat_map(|it| self.earlier.ending(directory.as_str(), it));
        let elsewhere =
            named_so.filter(|(it, place)| *place != path.as_str() && Some(it.memory) != at_path);
        let mut elsewhere = elsewhere.map(|(written, _)| written).peekable();
        if let Some(id) = at_path
            && (elsewhere.peek().is_none() || self.has(before, id, mark)?)
        {
            return Ok(Some((How::AtItsPath, id)));
        }
        for written in before.filter(|_| at_path.is_none()).into_iter().chain(elsewhere) {
            if self.had(&written, mark)? {
                return Ok(Some((How::ByItsId, written.memory)));
            }
        }
        Ok(at_path.map(|id| (How::AtItsPath, id)))
    }

    /// Tells whether what was imported to the place of a memory is that memory, and had a mark.
    fn has(&self, before: Option<Written>, id: MemoryId, mark: &Mark) -> Result<bool, Error> {
        let before = before.filter(|written| written.memory == id);
        before.map_or(Ok(false), |written| self.had(&written, mark))
    }

    /// Puts things into the folders that earlier imports made for them under other names.
    pub(super) fn keep_folders(&self, items: &mut [Item]) -> Result<(), Error> {
        let mut folders: HashMap<String, Option<String>> = HashMap::new();
        for item in items {
            let Some(Lasting::Folder { ending, file, mark }) = &item.lasting else { continue };
            let Some((folder, name)) = item.path.rsplit_once('/') else { continue };
            let known = match folders.get(&mark.value) {
                Some(known) => known.clone(),
                None => self.earlier_folder(folder, &format!("{ending}/{file}"), mark)?,
            };
            folders.insert(mark.value.clone(), known.clone());
            if let Some(known) = known {
                item.path = format!("{known}/{name}");
            }
        }
        Ok(())
    }

    /// Returns the folder beside another one to which a file that ends so and has the mark was
    /// imported last.
    fn earlier_folder(
        &self,
        folder: &str,
        ending: &str,
        mark: &Mark,
    ) -> Result<Option<String>, Error> {
        let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
        for (written, path) in self.earlier.ending(&format!("{above}/"), ending) {
            if self.had(&written, mark)? {
                return Ok(path.rsplit_once('/').map(|(folder, _)| folder.to_owned()));
            }
        }
        Ok(None)
    }

    /// Tells whether what was imported had a mark.
    fn had(&self, written: &Written, mark: &Mark) -> Result<bool, Error> {
        match self.engine.version(self.store.id, written.version, View::Full) {
            Ok(version) => Ok(version.path.is_some_and(|path| {
                let value = mark.value_in(&path, version.content.as_ref());
                value.is_some_and(|value| value == mark.value)
            })),
            Err(error) if *error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Mark {
    /// Returns the value that a text has where the mark would be.
    fn value_in(&self, path: &MemoryPath, text: Option<&Content>) -> Option<String> {
        let note = Note::parse(path.as_str(), text?.as_str());
        if self.field == TITLE_FIELD {
            return Some(note.title);
        }
        let field = note.metadata.into_iter().find(|(key, _)| key == self.field);
        field.and_then(|(_, value)| value.as_text().map(str::to_owned))
    }
}
