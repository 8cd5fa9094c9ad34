//! The index of some stores together with their canonical rows.

use std::cell::Cell;
use std::collections::HashMap;

use quipu_core::Error;
use quipu_core::backend::Reader;
use quipu_core::model::{MemoryId, StoreId, Timestamp};
use quipu_notes::tokenizer::Language;

use crate::card::{Card, LinkRow};
use crate::entry::link_keys;
use crate::index::{IndexError, Mark, Space, StoreView};

/// Reads the index, and the canonical rows beside it.
pub(crate) struct Lookup<'l> {
    /// The canonical rows, which are at least as new as the index.
    pub(crate) reader: &'l dyn Reader,
    views: &'l HashMap<StoreId, StoreView<'l>>,
    /// Whether the index lacks acknowledged changes.
    pub(crate) is_behind: bool,
    is_damaged: Cell<bool>,
}

/// A kind of name, which several memories may share.
pub(crate) enum NoteName<'n> {
    /// The permalink that it requests.
    Permalink(&'n str),
    /// The exact title.
    Title(&'n str),
    /// An alias key.
    Alias(&'n str),
}

impl<'l> Lookup<'l> {
    pub(crate) fn new(reader: &'l dyn Reader, views: &'l HashMap<StoreId, StoreView<'l>>) -> Self {
        Self { reader, views, is_behind: false, is_damaged: Cell::new(false) }
    }

    /// Converts an error of the index for the caller. Damage is recorded, so that the index is
    /// replaced and the work is retried.
    pub(crate) fn failed(&self, error: IndexError) -> Error {
        if matches!(error, IndexError::Damaged) {
            self.is_damaged.set(true);
        }
        error.into_error()
    }

    /// Returns the error for a document whose memory has no card. Both are written together, so
    /// this is damage.
    pub(crate) fn damaged(&self) -> Error {
        self.failed(IndexError::Damaged)
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.get()
    }

    /// Returns the view of a store.
    pub(crate) fn view(&self, store: StoreId) -> Option<&'l StoreView<'l>> {
        self.views.get(&store)
    }

    /// Returns the time up to which the index of a store is complete.
    pub(crate) fn reached(&self, store: StoreId) -> Timestamp {
        self.view(store).map_or(Timestamp::MIN, |view| view.reached)
    }

    /// Returns the languages of the notes of some stores, English first.
    pub(crate) fn languages(&self, stores: &[StoreId]) -> Result<Vec<Language>, Error> {
        let mut languages = vec![Language::English];
        for view in stores.iter().filter_map(|store| self.view(*store)) {
            for tag in view.foreign_languages().map_err(|error| self.failed(error))? {
                let language = Language::from_tag(&tag);
                languages.extend(language.filter(|language| !languages.contains(language)));
            }
        }
        Ok(languages)
    }

    /// Returns the card of a memory, without its names and links.
    pub(crate) fn note(&self, store: StoreId, memory: MemoryId) -> Result<Option<Card>, Error> {
        self.card(store, memory, Card::read_row)
    }

    /// Returns the card of a memory with its names and links.
    pub(crate) fn full_note(
        &self,
        store: StoreId,
        memory: MemoryId,
    ) -> Result<Option<Card>, Error> {
        self.card(store, memory, Card::read)
    }

    fn card(
        &self,
        store: StoreId,
        memory: MemoryId,
        read: fn(StoreId, MemoryId, &[u8]) -> Result<Card, crate::index::Damaged>,
    ) -> Result<Option<Card>, Error> {
        let Some(view) = self.view(store) else { return Ok(None) };
        let found = view.with_card(memory, |card| Ok(read(store, memory, card)?));
        found.map_err(|error| self.failed(error))
    }

    /// Returns the memories of a store with a name, oldest first.
    pub(crate) fn notes_named(
        &self,
        store: StoreId,
        name: &NoteName<'_>,
    ) -> Result<Vec<Card>, Error> {
        let mark = match name {
            NoteName::Permalink(permalink) => Mark::Permalink(permalink),
            NoteName::Title(title) => Mark::Title(title),
            NoteName::Alias(key) => Mark::Name(key),
        };
        let mut cards = Vec::new();
        for memory in self.marked(store, mark)? {
            cards.push(self.note(store, memory)?.ok_or_else(|| self.damaged())?);
        }
        Ok(cards)
    }

    /// Returns the memories of a store with a mark, oldest first.
    fn marked(&self, store: StoreId, mark: Mark<'_>) -> Result<Vec<MemoryId>, Error> {
        let Some(view) = self.view(store) else { return Ok(Vec::new()) };
        let found = view.memories_with(&mark.term(Space::Memories));
        let mut memories = found.map_err(|error| self.failed(error))?;
        memories.sort_unstable();
        Ok(memories)
    }

    /// Returns at most `limit` links of a memory, in order.
    pub(crate) fn links_from(
        &self,
        store: StoreId,
        memory: MemoryId,
        limit: usize,
    ) -> Result<Vec<LinkRow>, Error> {
        let mut links = self.full_note(store, memory)?.map(|card| card.links).unwrap_or_default();
        links.truncate(limit);
        Ok(links)
    }

    /// Returns at most `limit` links of a store that may resolve by one of these keys, sorted by
    /// memory and position.
    pub(crate) fn links_towards(
        &self,
        store: StoreId,
        keys: &[String],
        limit: usize,
    ) -> Result<Vec<LinkRow>, Error> {
        let mut memories = Vec::new();
        for key in keys {
            memories.extend(self.marked(store, Mark::LinkTo(key))?);
        }
        memories.sort_unstable();
        memories.dedup();
        let mut found = Vec::new();
        for memory in memories {
            let card = self.full_note(store, memory)?.ok_or_else(|| self.damaged())?;
            let means = |link: &LinkRow| {
                link_keys(&card.path, &link.target).iter().any(|key| keys.contains(key))
            };
            found.extend(card.links.iter().filter(|link| means(link)).cloned());
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Returns the cards of all memories of a store, by path, without their names and links.
    pub(crate) fn notes(&self, store: StoreId) -> Result<Vec<Card>, Error> {
        self.cards(store, Card::read_row)
    }

    /// Returns all memories of a store with their names and links, by path. One scan is twice as fast as
    /// looking up the links of each.
    pub(crate) fn full_notes(&self, store: StoreId) -> Result<Vec<Card>, Error> {
        self.cards(store, Card::read)
    }

    fn cards(
        &self,
        store: StoreId,
        read: fn(StoreId, MemoryId, &[u8]) -> Result<Card, crate::index::Damaged>,
    ) -> Result<Vec<Card>, Error> {
        let Some(view) = self.view(store) else { return Ok(Vec::new()) };
        let mut cards = Vec::new();
        let scanned = view.each_card(|memory, card| {
            cards.push(read(store, memory, card)?);
            Ok(true)
        });
        scanned.map_err(|error| self.failed(error))?;
        cards.sort_unstable_by(|left, right| left.path.cmp(&right.path));
        Ok(cards)
    }
}
