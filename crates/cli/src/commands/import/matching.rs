//! Matches items with memories of the store.

use std::collections::HashMap;

use quipu_core::model::{Content, Listing, Memory, MemoryId, MemoryPath, Store, View};
use quipu_core::{Engine, Error, ErrorKind};
use quipu_notes::Note;

use super::previous::{PreviousImports, Written};
use super::source::{Item, Mark, StableId, TITLE_FIELD};
use super::writing::Mode;

/// What an item matches in the store.
pub(super) enum Found {
    Nothing,
    /// The item's memory.
    Memory(Memory),
    /// A memory that another item of the same import matches, too.
    Shared(Memory),
    /// The item's memory was deleted.
    Deleted,
}

/// Matches items with memories.
pub(super) struct Matcher<'a> {
    engine: &'a Engine,
    store: &'a Store,
    previous: PreviousImports,
    mode: Mode,
    /// Memories that several items match, with the path of the one item that may write to it, if
    /// any.
    shared: HashMap<MemoryId, Option<MemoryPath>>,
}

/// How an item matches a memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchKind {
    AtItsPath,
    /// It was once imported to the item's path.
    ByHistory,
    /// It was imported under another name but has the item's id.
    ByItsId,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        store: &'a Store,
        previous: PreviousImports,
        mode: Mode,
    ) -> Matcher<'a> {
        Matcher { engine, store, previous, mode, shared: HashMap::new() }
    }

    /// Decides which item may write to a memory that several of them match; otherwise they would
    /// overwrite each other.
    pub(super) fn settle(&mut self, items: &[(Item, MemoryPath)]) -> Result<(), Error> {
        if self.previous.is_empty() {
            return Ok(());
        }
        let mut claims: HashMap<MemoryId, Vec<(MatchKind, &MemoryPath)>> = HashMap::new();
        for (item, path) in items {
            if let Some((how, memory)) = self.candidate(item, path)? {
                claims.entry(memory).or_default().push((how, path));
            }
        }
        claims.retain(|_, claims| claims.len() > 1);
        let settled = claims.into_iter().map(|(memory, claims)| {
            let by = |wanted: MatchKind| claims.iter().find(|(how, _)| *how == wanted);
            let owner = match self.mode {
                // Only an id is proof. Anything else would be a guess.
                Mode::Careful => by(MatchKind::ByItsId),
                Mode::Overwrite => by(MatchKind::AtItsPath)
                    .or_else(|| by(MatchKind::ByItsId))
                    .or_else(|| claims.first()),
            };
            (memory, owner.map(|(_, path)| (*path).clone()))
        });
        self.shared = settled.collect();
        Ok(())
    }

    /// Returns the item's memory: the one at its path, else the one that a previous import created
    /// from it, wherever it is now.
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

    /// Returns whether a memory has the id of another item.
    pub(super) fn is_another(&self, memory: &Memory, item: &Item) -> Result<bool, Error> {
        let Some(StableId::Name { mark, .. }) = &item.stable_id else { return Ok(false) };
        // Titles change, ids do not.
        if mark.field == TITLE_FIELD {
            return Ok(false);
        }
        let memory = self.engine.memory(self.store.id, memory.id, View::Full)?;
        let value = mark.value_in(&memory.path, memory.content.as_ref());
        Ok(value.is_some_and(|value| value != mark.value))
    }

    fn candidate(
        &self,
        item: &Item,
        path: &MemoryPath,
    ) -> Result<Option<(MatchKind, MemoryId)>, Error> {
        let at_path = match self.engine.entry(self.store.id, path)? {
            Some(Listing::Memory(memory)) => Some(memory.id),
            Some(Listing::Directory(_)) | None => None,
        };
        let before = self.previous.at(path);
        let Some(StableId::Name { endings, mark }) = &item.stable_id else {
            let by_history = before.map(|written| (MatchKind::ByHistory, written.memory));
            return Ok(at_path.map(|id| (MatchKind::AtItsPath, id)).or(by_history));
        };
        let directory = path.parent();
        let named_so = endings.iter().flat_map(|it| self.previous.ending(directory.as_str(), it));
        let elsewhere =
            named_so.filter(|(it, place)| *place != path.as_str() && Some(it.memory) != at_path);
        let mut elsewhere = elsewhere.map(|(written, _)| written).peekable();
        if let Some(id) = at_path
            && (elsewhere.peek().is_none() || self.has(before, id, mark)?)
        {
            return Ok(Some((MatchKind::AtItsPath, id)));
        }
        for written in before.filter(|_| at_path.is_none()).into_iter().chain(elsewhere) {
            if self.had(&written, mark)? {
                return Ok(Some((MatchKind::ByItsId, written.memory)));
            }
        }
        Ok(at_path.map(|id| (MatchKind::AtItsPath, id)))
    }

    /// Returns whether a previous import created this memory, with the mark.
    fn has(&self, before: Option<Written>, id: MemoryId, mark: &Mark) -> Result<bool, Error> {
        let before = before.filter(|written| written.memory == id);
        before.map_or(Ok(false), |written| self.had(&written, mark))
    }

    /// Moves items to the folders that previous imports created for them under other names.
    pub(super) fn keep_folders(&self, items: &mut [Item]) -> Result<(), Error> {
        let mut folders: HashMap<String, Option<String>> = HashMap::new();
        for item in items {
            let Some(StableId::Folder { ending, file, mark }) = &item.stable_id else { continue };
            let Some((folder, name)) = item.path.rsplit_once('/') else { continue };
            let known = match folders.get(&mark.value) {
                Some(known) => known.clone(),
                None => self.previous_folder(folder, &format!("{ending}/{file}"), mark)?,
            };
            folders.insert(mark.value.clone(), known.clone());
            if let Some(known) = known {
                item.path = format!("{known}/{name}");
            }
        }
        Ok(())
    }

    /// Returns the sibling folder to which a file with this ending and mark was last imported.
    fn previous_folder(
        &self,
        folder: &str,
        ending: &str,
        mark: &Mark,
    ) -> Result<Option<String>, Error> {
        let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
        for (written, path) in self.previous.ending(&format!("{above}/"), ending) {
            if self.had(&written, mark)? {
                return Ok(path.rsplit_once('/').map(|(folder, _)| folder.to_owned()));
            }
        }
        Ok(None)
    }

    /// Returns whether an imported version has a mark.
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
    /// Returns the value of the mark's field in a text.
    fn value_in(&self, path: &MemoryPath, text: Option<&Content>) -> Option<String> {
        let note = Note::parse(path.as_str(), text?.as_str());
        if self.field == TITLE_FIELD {
            return Some(note.title);
        }
        let field = note.metadata.into_iter().find(|(key, _)| key == self.field);
        field.and_then(|(_, value)| value.as_text().map(str::to_owned))
    }
}
