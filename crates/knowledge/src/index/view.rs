//! Views: reading the index of a store from its segments, on disk and in memory.

use std::collections::HashMap;
use std::sync::Arc;

use quipu_core::model::{MemoryId, StoreId, Timestamp};
use rusqlite::Connection;

use super::bits::Bits;
use super::block::{Block, BlockPositions, BlockReader, find_in_block};
use super::codec::Damaged;
use super::columns::{FactRow, Fixed, Numbers, fixed, memory_id, moment};
use super::error::IndexError;
use super::file::Snapshot;
use super::note_rows;
use super::postings::{Doc, Postings};
use super::rows::{self, SegmentRow, SegmentState};
use super::segment::{Segment, Totals};
use super::store_rows::StoreRow;
use super::term::{self, Space};

/// A snapshot of the index of one store.
pub(crate) struct StoreView<'c> {
    pub(crate) store: StoreId,
    pub(crate) totals: Totals,
    pub(crate) segments: Vec<SegmentView<'c>>,
    /// The time of the store that it reflects.
    pub(crate) reached: Timestamp,
    snapshot: Snapshot<'c>,
    /// The number of the store in the file; `None` if it has no row.
    num: Option<i64>,
    /// The number of memories in the file.
    stored_count: u64,
    /// The cards of the overlay; `None` for deleted memories.
    newer: HashMap<MemoryId, Option<Arc<[u8]>>>,
}

/// Changes that the index file lacks, indexed in memory.
#[derive(Clone, Debug)]
pub(crate) struct Overlay {
    /// The time of the store that it reflects.
    pub(crate) reached: Timestamp,
    pub(crate) segment: Arc<Segment>,
    pub(crate) totals: Totals,
    /// The cards of the changed memories; `None` for deleted ones.
    pub(crate) cards: HashMap<MemoryId, Option<Arc<[u8]>>>,
}

/// A segment with its live memories.
pub(crate) struct SegmentView<'c> {
    pub(super) lists: Lists<'c>,
    counts: [usize; 3],
    is_foreign: bool,
    live: Bits,
}

/// Where the lists of a segment are.
pub(super) enum Lists<'c> {
    Stored(Snapshot<'c>, i64),
    InMemory(Arc<Segment>),
}

/// With this many segments or more, small ones are read as a whole. A store that is searched
/// together with a thousand others mostly has a single one, of which only a few terms are needed.
const BUSY_SEGMENTS_MIN: usize = 3;

/// The postings of a term and its positions.
pub(crate) struct List {
    pub(crate) postings: Vec<u8>,
    pub(crate) positions: Vec<u8>,
}

impl<'c> StoreView<'c> {
    pub(crate) fn new(
        snapshot: Snapshot<'c>,
        store: StoreId,
        row: Option<&StoreRow>,
        overlay: Option<&Overlay>,
    ) -> Result<Self, IndexError> {
        let mut view = Self {
            store,
            totals: row.map(|row| row.totals).unwrap_or_default(),
            segments: Vec::new(),
            reached: row.map_or(Timestamp::MIN, |row| row.cursor.at),
            snapshot,
            num: row.map(|row| row.num),
            stored_count: row.map_or(0, |row| row.totals.count(Space::Memories)),
            newer: HashMap::new(),
        };
        if let Some(row) = row {
            let mut segments = rows::segments(snapshot.connection, row.num)?;
            segments.retain(|segment| segment.state == SegmentState::Live);
            // Pages of different ages may each be intact, so rows that belong together are
            // cross-checked.
            let alive = |row: &SegmentRow| row.counts[0].saturating_sub(row.dead);
            let alive: usize = segments.iter().map(alive).sum();
            if u64::try_from(alive).ok() != Some(view.stored_count) {
                return Err(IndexError::Damaged);
            }
            let is_busy = segments.len() >= BUSY_SEGMENTS_MIN;
            for segment in &segments {
                let small = if is_busy { snapshot.small_segment(segment)? } else { None };
                let mut stored = SegmentView::stored(snapshot, segment)?;
                if let Some(small) = small {
                    stored.lists = Lists::InMemory(small);
                }
                view.segments.push(stored);
            }
        }
        if let Some(overlay) = overlay {
            view.apply_overlay(overlay)?;
        }
        Ok(view)
    }

    /// Adds the overlay, and hides what it replaces.
    fn apply_overlay(&mut self, overlay: &Overlay) -> Result<(), IndexError> {
        if let Some(num) = self.num {
            for memory in overlay.cards.keys() {
                let old = note_rows::note(self.snapshot.connection, num, *memory)?;
                let Some(old) = old else { continue };
                self.totals.subtract(&old.totals);
                let term = term::memory(*memory);
                self.segments.iter_mut().try_for_each(|segment| segment.kill_marked(&term))?;
            }
        }
        self.totals.add(&overlay.totals);
        self.segments.push(SegmentView::in_memory(Arc::clone(&overlay.segment)));
        self.newer.clone_from(&overlay.cards);
        self.reached = overlay.reached;
        Ok(())
    }

    /// Returns the snapshot and the number of the store in it; `None` if it has no row.
    pub(crate) fn stored(&self) -> Option<(&'c Connection, i64)> {
        self.num.map(|num| (self.snapshot.connection, num))
    }

    /// Calls `work` with the card of a memory, if there is one.
    pub(crate) fn with_card<T>(
        &self,
        memory: MemoryId,
        work: impl FnOnce(&[u8]) -> Result<T, IndexError>,
    ) -> Result<Option<T>, IndexError> {
        match (self.newer.get(&memory), self.num) {
            (Some(Some(card)), _) => work(card).map(Some),
            (Some(None), _) | (None, None) => Ok(None),
            (None, Some(num)) => match note_rows::note(self.snapshot.connection, num, memory)? {
                Some(row) => work(&row.card).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Calls `work` with every card of the store, unordered, until it returns `false`.
    pub(crate) fn each_card(
        &self,
        mut work: impl FnMut(MemoryId, &[u8]) -> Result<bool, IndexError>,
    ) -> Result<(), IndexError> {
        let mut wants_more = true;
        if let Some(num) = self.num {
            let mut count = 0;
            note_rows::each_note(self.snapshot.connection, num, |memory, card| {
                count += 1;
                if !self.newer.contains_key(&memory) {
                    wants_more = work(memory, card)?;
                }
                Ok(wants_more)
            })?;
            if wants_more && count != self.stored_count {
                return Err(IndexError::Damaged);
            }
        }
        for (memory, card) in &self.newer {
            let Some(card) = card.as_ref().filter(|_| wants_more) else { continue };
            wants_more = work(*memory, card)?;
        }
        Ok(())
    }

    /// Returns the distinct language tags of its notes, without English.
    pub(crate) fn foreign_languages(&self) -> Result<Vec<String>, IndexError> {
        let prefix = term::language_prefix();
        let mut tags: Vec<String> = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.is_foreign) {
            segment.each_with_prefix(&prefix, |term, postings| {
                let tag = str::from_utf8(term.get(prefix.len()..).unwrap_or_default());
                let tag = tag.ok().ok_or(Damaged)?;
                // A language that only dead notes use does not count.
                let mut docs = Postings::new(postings).filter_map(Result::ok);
                let is_alive = docs.any(|posting| segment.live.contains(posting.doc));
                if is_alive && !tags.iter().any(|known| known == tag) {
                    tags.push(tag.to_owned());
                }
                Ok(())
            })?;
        }
        tags.sort_unstable();
        Ok(tags)
    }

    /// Returns the memories with a term, unordered.
    pub(crate) fn memories_with(&self, term: &[u8]) -> Result<Vec<MemoryId>, IndexError> {
        let mut memories = Vec::new();
        for segment in &self.segments {
            for doc in segment.docs_with(Space::Memories, term)?.iter() {
                memories.push(segment.memory(doc)?);
            }
        }
        Ok(memories)
    }
}

impl<'c> SegmentView<'c> {
    /// Returns a segment in the file.
    pub(crate) fn stored(snapshot: Snapshot<'c>, row: &SegmentRow) -> Result<Self, IndexError> {
        let [count, ..] = row.counts;
        let mut live = Bits::all(count);
        if row.dead > 0 {
            live.subtract(&rows::dead(snapshot.connection, row)?);
        }
        let lists = Lists::Stored(snapshot, row.id);
        Ok(Self { lists, counts: row.counts, is_foreign: row.is_foreign, live })
    }

    /// Returns a segment whose memories are all live.
    pub(crate) fn in_memory(segment: Arc<Segment>) -> Self {
        let (counts, is_foreign) = (segment.columns.counts(), segment.is_foreign());
        let live = Bits::all(counts[0]);
        Self { lists: Lists::InMemory(segment), counts, is_foreign, live }
    }

    /// Hides the memories with a term.
    fn kill_marked(&mut self, term: &[u8]) -> Result<(), IndexError> {
        for doc in self.docs_with(Space::Memories, term)?.iter() {
            self.kill(doc);
        }
        Ok(())
    }

    /// Hides a memory.
    pub(crate) fn kill(&mut self, doc: Doc) {
        self.live.remove(doc);
    }

    /// Returns the number of documents in a space, dead ones included.
    pub(crate) fn count(&self, space: Space) -> usize {
        space.pick(self.counts)
    }

    /// Returns whether a memory is live.
    pub(crate) fn is_live(&self, memory: Doc) -> bool {
        self.live.contains(memory)
    }

    /// Returns the live documents of a space.
    pub(crate) fn live(&self, space: Space) -> Result<Bits, IndexError> {
        if space == Space::Memories {
            return Ok(self.live.clone());
        }
        let mut live = Bits::none(self.count(space));
        let rows = self.fact_rows(space)?;
        for (doc, row) in (0..).zip(rows.iter()) {
            if self.live.contains(FactRow::from_bytes(row).memory) {
                live.insert(doc)?;
            }
        }
        Ok(live)
    }

    /// Returns the live documents with a term.
    pub(crate) fn docs_with(&self, space: Space, term: &[u8]) -> Result<Bits, IndexError> {
        let mut docs = Bits::none(self.count(space));
        self.with_postings(term, |postings| {
            for posting in Postings::new(postings) {
                docs.insert(posting?.doc)?;
            }
            Ok(())
        })?;
        if !docs.is_empty() {
            docs.intersect(&self.live(space)?);
        }
        Ok(docs)
    }

    /// Calls `work` with the postings of a term, if the segment has it.
    pub(crate) fn with_postings(
        &self,
        term: &[u8],
        work: impl FnOnce(&[u8]) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let find = |first: &[u8], postings: &[u8]| match find_in_block(first, postings, term)? {
            Some((_, list)) => work(list),
            None => Ok(()),
        };
        match &self.lists {
            Lists::Stored(snapshot, id) => rows::with_block(snapshot.connection, *id, term, find)
                .map(Option::unwrap_or_default),
            Lists::InMemory(segment) => match segment.block_of(term) {
                Some(block) => find(&block.first, &block.postings),
                None => Ok(()),
            },
        }
    }

    /// Returns the posting list of a term, if the segment has it.
    pub(crate) fn list(&self, term: &[u8]) -> Result<Option<List>, IndexError> {
        let list = |place: usize, postings: Vec<u8>, positions: &[u8]| -> Result<_, IndexError> {
            let mut all = BlockPositions::new(positions);
            for _ in 0..place {
                all.next()?;
            }
            Ok(Some(List { postings, positions: all.next()?.to_vec() }))
        };
        let find = |first: &[u8], postings: &[u8]| -> Result<_, IndexError> {
            let found = find_in_block(first, postings, term)?;
            Ok(found.map(|(place, list)| (first.to_vec(), place, list.to_vec())))
        };
        match &self.lists {
            Lists::Stored(snapshot, id) => {
                let found = rows::with_block(snapshot.connection, *id, term, find)?.flatten();
                let Some((first, place, postings)) = found else { return Ok(None) };
                let positions = rows::block_positions(snapshot.connection, *id, &first)?;
                list(place, postings, &positions)
            }
            Lists::InMemory(segment) => {
                let Some(block) = segment.block_of(term) else { return Ok(None) };
                let found = find(&block.first, &block.postings)?;
                let Some((_, place, postings)) = found else { return Ok(None) };
                list(place, postings, &block.positions)
            }
        }
    }

    /// Calls `work` with each term that has a prefix and its postings, in order.
    pub(crate) fn each_with_prefix(
        &self,
        prefix: &[u8],
        mut work: impl FnMut(&[u8], &[u8]) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let mut read_block = |first: &[u8], postings: &[u8]| -> Result<bool, IndexError> {
            let mut terms = BlockReader::new(first, postings);
            while let Some((term, list)) = terms.next()? {
                if term.starts_with(prefix) {
                    work(term, list)?;
                } else if term > prefix {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match &self.lists {
            Lists::Stored(snapshot, id) => {
                rows::each_block(snapshot.connection, *id, prefix, read_block)
            }
            Lists::InMemory(segment) => {
                for block in segment.blocks_from(prefix) {
                    if !read_block(&block.first, &block.postings)? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Calls `work` with every term, its postings and its positions.
    pub(crate) fn each_list(
        &self,
        mut work: impl FnMut(&[u8], &[u8], &[u8]) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let mut read_block = |block: &Block| -> Result<(), IndexError> {
            let mut terms = BlockReader::new(&block.first, &block.postings);
            let mut positions = BlockPositions::new(&block.positions);
            while let Some((term, postings)) = terms.next()? {
                work(term, postings, positions.next()?)?;
            }
            Ok(())
        };
        match &self.lists {
            Lists::InMemory(segment) => segment.blocks.iter().try_for_each(read_block),
            Lists::Stored(snapshot, id) => {
                let mut after: Option<Block> = None;
                loop {
                    let blocks = rows::blocks_after(snapshot.connection, *id, after.as_ref(), 64)?;
                    blocks.iter().try_for_each(&mut read_block)?;
                    after = blocks.into_iter().next_back();
                    if after.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Returns the lengths of the documents of a space in words.
    pub(crate) fn lengths(&self, space: Space) -> Result<Numbers, IndexError> {
        match &self.lists {
            Lists::Stored(snapshot, id) => {
                Ok(Numbers(snapshot.column(*id, rows::column_names(space).0)?))
            }
            Lists::InMemory(segment) => {
                let columns = &segment.columns;
                let lengths =
                    columns.facts(space).map_or(&columns.memories.lengths, |it| &it.lengths);
                Ok(Numbers(lengths.as_bytes().into()))
            }
        }
    }

    /// Returns the id of a memory.
    pub(crate) fn memory(&self, doc: Doc) -> Result<MemoryId, IndexError> {
        let id = match &self.lists {
            Lists::Stored(snapshot, id) => fixed(&snapshot.column(*id, "memory_ids")?, doc)?,
            Lists::InMemory(segment) => segment.columns.memories.ids.get(doc)?,
        };
        Ok(memory_id(id))
    }

    /// Returns the time of a memory's last change.
    pub(crate) fn updated_at(&self, doc: Doc) -> Result<Timestamp, IndexError> {
        let at = match &self.lists {
            Lists::Stored(snapshot, id) => fixed(&snapshot.column(*id, "memory_times")?, doc)?,
            Lists::InMemory(segment) => segment.columns.memories.times.get(doc)?,
        };
        Ok(moment(at))
    }

    /// Returns the id of a segment that is read from the file; small ones are held in memory.
    pub(crate) fn id(&self) -> Option<i64> {
        match &self.lists {
            Lists::Stored(_, id) => Some(*id),
            Lists::InMemory(_) => None,
        }
    }

    /// Calls `work` with each memory and the time of its last change, dead ones included.
    pub(crate) fn each_memory(
        &self,
        mut work: impl FnMut(MemoryId, Timestamp),
    ) -> Result<(), IndexError> {
        let mut zipped = |ids: &[u8], times: &[u8]| {
            let rows = ids.as_chunks::<16>().0.iter().zip(times.as_chunks::<8>().0);
            rows.for_each(|(id, at)| work(memory_id(*id), moment(*at)));
        };
        match &self.lists {
            Lists::Stored(snapshot, id) => {
                let ids = snapshot.column(*id, "memory_ids")?;
                zipped(&ids, &snapshot.column(*id, "memory_times")?);
            }
            Lists::InMemory(segment) => {
                let memories = &segment.columns.memories;
                zipped(memories.ids.as_bytes(), memories.times.as_bytes());
            }
        }
        Ok(())
    }

    /// Returns the memory of a document, and its index among those of the memory.
    pub(crate) fn fact(&self, space: Space, doc: Doc) -> Result<FactRow, IndexError> {
        if space == Space::Memories {
            return Ok(FactRow { memory: doc, position: 0 });
        }
        let row = match &self.lists {
            Lists::Stored(snapshot, id) => {
                fixed(&snapshot.column(*id, rows::column_names(space).1)?, doc)?
            }
            Lists::InMemory(segment) => {
                segment.columns.facts(space).ok_or(Damaged)?.rows.get(doc)?
            }
        };
        Ok(FactRow::from_bytes(row))
    }

    fn fact_rows(&self, space: Space) -> Result<Fixed<8>, IndexError> {
        match &self.lists {
            Lists::Stored(snapshot, id) => {
                let column = snapshot.column(*id, rows::column_names(space).1)?;
                Ok(Fixed::from_bytes(column.to_vec())?)
            }
            Lists::InMemory(segment) => {
                Ok(segment.columns.facts(space).ok_or(Damaged)?.rows.clone())
            }
        }
    }
}
