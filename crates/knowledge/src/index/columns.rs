//! Columns: the data of a segment's documents besides their terms.
//!
//! A search needs the length of every match, but ids only for a page of hits, and paths only for
//! patterns. So each column is a blob of its own, with values of fixed width that are used as they
//! are on the disk, without decoding the whole column.

use std::sync::Arc;

use quipu_core::model::{Id as _, MemoryId, Timestamp};

use super::codec::{Damaged, Input, put_bytes};
use super::places::Places;
use super::postings::Doc;
use super::term::Space;

/// A column of values of `N` bytes each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fixed<const N: usize>(Vec<u8>);

impl<const N: usize> Fixed<N> {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, Damaged> {
        if bytes.len().is_multiple_of(N) { Ok(Self(bytes)) } else { Err(Damaged) }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn push(&mut self, value: [u8; N]) {
        self.0.extend_from_slice(&value);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len() / N
    }

    pub(crate) fn get(&self, doc: Doc) -> Result<[u8; N], Damaged> {
        let doc = usize::try_from(doc).ok().ok_or(Damaged)?;
        self.0.as_chunks::<N>().0.get(doc).copied().ok_or(Damaged)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = [u8; N]> {
        self.0.as_chunks::<N>().0.iter().copied()
    }
}

impl Fixed<4> {
    pub(crate) fn number(&self, doc: Doc) -> Result<u32, Damaged> {
        self.get(doc).map(u32::from_le_bytes)
    }
}

/// The memories of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memories {
    pub(crate) lengths: Fixed<4>,
    pub(crate) ids: Fixed<16>,
    pub(crate) times: Fixed<8>,
    pub(crate) paths: Vec<u8>,
    /// The order of the paths, which [`finish`](Self::finish) computes.
    pub(crate) places: Places,
}

impl Memories {
    pub(crate) fn push(&mut self, length: u32, row: &MemoryRow) {
        self.lengths.push(length.to_le_bytes());
        self.ids.push(row.id.bits().to_be_bytes());
        self.times.push(row.updated_at.as_micros().to_le_bytes());
        put_bytes(&mut self.paths, row.path.as_bytes());
    }

    /// Orders the memories, after the last was added or a path was changed.
    pub(crate) fn finish(&mut self) -> Result<(), Damaged> {
        self.places = Places::of(&self.paths)?;
        Ok(())
    }
}

/// The row of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryRow {
    pub(crate) id: MemoryId,
    pub(crate) updated_at: Timestamp,
    pub(crate) path: String,
}

/// The observations or the relations of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) lengths: Fixed<4>,
    /// The memory of each, and its index among those of the memory, 0-based.
    pub(crate) rows: Fixed<8>,
}

/// The row of an observation or a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FactRow {
    pub(crate) memory: Doc,
    pub(crate) position: u32,
}

impl FactRow {
    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Self {
        // One integer, with the memory in its lower half.
        let both = u64::from_le_bytes(bytes);
        let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        Self { memory: half(both), position: half(both >> 32) }
    }

    fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.position) << 32 | u64::from(self.memory)).to_le_bytes()
    }
}

impl Facts {
    pub(crate) fn push(&mut self, length: u32, row: FactRow) {
        self.lengths.push(length.to_le_bytes());
        self.rows.push(row.to_bytes());
    }
}

/// All columns of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) memories: Memories,
    pub(crate) observations: Facts,
    pub(crate) relations: Facts,
}

impl Columns {
    /// Returns the column of observations or relations; `None` for memories.
    pub(crate) fn facts_mut(&mut self, space: Space) -> Option<&mut Facts> {
        match space {
            Space::Memories => None,
            Space::Observations => Some(&mut self.observations),
            Space::Relations => Some(&mut self.relations),
        }
    }

    pub(crate) fn facts(&self, space: Space) -> Option<&Facts> {
        match space {
            Space::Memories => None,
            Space::Observations => Some(&self.observations),
            Space::Relations => Some(&self.relations),
        }
    }

    /// Returns the number of documents in each space.
    pub(crate) fn counts(&self) -> [usize; 3] {
        [self.memories.lengths.len(), self.observations.rows.len(), self.relations.rows.len()]
    }
}

/// Decodes a memory's id.
pub(crate) fn memory_id(bytes: [u8; 16]) -> MemoryId {
    MemoryId::from_bits(u128::from_be_bytes(bytes))
}

/// Decodes a timestamp.
pub(crate) fn moment(bytes: [u8; 8]) -> Timestamp {
    Timestamp::from_micros(i64::from_le_bytes(bytes))
}

/// Calls `work` with each path of a column.
pub(crate) fn each_path(paths: &[u8], mut work: impl FnMut(Doc, &str)) -> Result<(), Damaged> {
    let mut input = Input::new(paths);
    let mut doc = 0;
    while !input.is_empty() {
        work(doc, input.text()?);
        doc += 1;
    }
    Ok(())
}

/// A column of numbers.
pub(crate) struct Numbers(pub(super) Arc<[u8]>);

impl Numbers {
    pub(crate) fn get(&self, doc: Doc) -> Result<u32, Damaged> {
        fixed(&self.0, doc).map(u32::from_le_bytes)
    }
}

/// Returns one value of a column of fixed width.
pub(super) fn fixed<const N: usize>(column: &[u8], doc: Doc) -> Result<[u8; N], Damaged> {
    let doc = usize::try_from(doc).ok().ok_or(Damaged)?;
    column.as_chunks::<N>().0.get(doc).copied().ok_or(Damaged)
}
