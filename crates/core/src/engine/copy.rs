//! Copying a store.

use std::ops::Bound;

use crate::Error;
use crate::backend::{MemoryQuery, Reader};
use crate::model::{Actor, Directory, Memory, Metadata, Reason, Store, StoreId, View, WorkspaceId};

use super::intact::Intact as _;
use super::transaction::{ScreenedText, Target, Transaction};
use super::{Engine, NewStore, existing_store};

/// The label of a copy that says what it is a copy of.
pub const COPIED_FROM: &str = "copied_from";

impl Engine {
    /// Creates a store with the memories of another one, which `source` reads: the store itself, or
    /// [as it was](Self::at).
    ///
    /// All memories are read in one snapshot and written in one transaction. They get new ids and one
    /// version each; the history stays behind. The store's label `copied_from` names where they come from.
    pub fn copy_store(
        &self,
        actor: &Actor,
        (source, store): (&Self, StoreId),
        (workspace, new): (WorkspaceId, &NewStore),
    ) -> Result<(Store, usize), Error> {
        let (origin, memories) = source.read(|reader| {
            existing_store(reader, store)?;
            let origin = format!("{store}@#{}", reader.newest_change()?.0.0);
            Ok((origin, all_texts(reader, store)?))
        })?;
        let mut pairs = new.metadata.pairs().clone();
        pairs.insert(COPIED_FROM.to_owned(), origin.clone());
        let new = NewStore { metadata: Metadata::new(pairs)?, ..new.clone() };
        let reason = Reason::new(format!("copied from {origin}"))?;
        let copied_count = memories.len();
        let store = self.write(|ledger| {
            let store = self.new_store(ledger, workspace, &new)?;
            let mut transaction = Transaction {
                ledger,
                limits: &self.limits,
                actor,
                store: store.clone(),
                undone_to: None,
                reason: Some(reason.clone()),
            };
            for memory in &memories {
                let content = memory.content.clone().expect("it was read with its text");
                // It is not new text: what the store has, its copy may have.
                let text = ScreenedText::unscreened(content);
                transaction.create(Target { path: memory.path.clone(), text }, None)?;
            }
            Ok(store)
        })?;
        Ok((store, copied_count))
    }
}

fn all_texts(reader: &dyn Reader, store: StoreId) -> Result<Vec<Memory>, Error> {
    let query = MemoryQuery {
        directory: Directory::root(),
        start: Bound::Unbounded,
        limit: usize::MAX,
        view: View::Full,
    };
    reader.memories(store, &query)?.into_iter().map(Memory::intact).collect()
}
