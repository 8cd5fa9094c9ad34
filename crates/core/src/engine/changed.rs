//! What somebody changed, as one difference per memory.

use crate::Error;
use crate::backend::Reader;
use crate::model::{MemoryId, StoreId};

use super::plan::State;
use super::revert::{ChangeSelection, History};
use super::{Engine, existing_store};

/// What the selected changes of a memory come to, whatever others did in between.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The memory.
    pub memory: MemoryId,
    /// What it was before the first of them.
    pub before: Known,
    /// What it was after the last of them.
    pub after: Known,
    /// How many there are.
    pub versions_count: usize,
}

/// What is known of a memory at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It did not exist.
    Absent,
    /// It was this.
    State(State),
    /// Its text is gone, for this reason.
    Lost(String),
}

impl Known {
    /// Returns the state, if it is known.
    pub fn state(&self) -> Option<&State> {
        match self {
            Self::State(state) => Some(state),
            Self::Absent | Self::Lost(_) => None,
        }
    }
}

impl Engine {
    /// Returns the memories of a store that the selected changes were made to, in the order in which they
    /// were created.
    pub fn changed(
        &self,
        store: StoreId,
        selection: &ChangeSelection,
    ) -> Result<Vec<Changed>, Error> {
        self.read(|reader| {
            existing_store(reader, store)?;
            selection.require_valid(self.clock.now().max(reader.newest_change()?.1))?;
            let memories = selection.candidates(reader, store)?;
            let changed = memories.into_iter().map(|it| changed_one(reader, store, it, selection));
            changed.filter_map(Result::transpose).collect()
        })
    }

    /// Returns what the selected changes of one memory come to; `None` if there are none.
    ///
    /// Whoever shows page after page asks for the memories of each page: [`changed`](Self::changed)
    /// reads the texts of all.
    pub fn changed_memory(
        &self,
        store: StoreId,
        memory: MemoryId,
        selection: &ChangeSelection,
    ) -> Result<Option<Changed>, Error> {
        self.read(|reader| {
            existing_store(reader, store)?;
            changed_one(reader, store, memory, selection)
        })
    }
}

fn changed_one(
    reader: &dyn Reader,
    store: StoreId,
    memory: MemoryId,
    selection: &ChangeSelection,
) -> Result<Option<Changed>, Error> {
    let history = History::read(reader, store, memory)?;
    let runs = history.runs(|version, before| selection.selects(version, before));
    let (Some((first, _)), Some((_, last))) = (runs.first(), runs.last()) else {
        return Ok(None);
    };
    Ok(Some(Changed {
        memory,
        before: history.known_before(*first)?,
        after: history.known_after(*last)?,
        versions_count: runs.iter().map(|(first, last)| last - first + 1).sum(),
    }))
}
