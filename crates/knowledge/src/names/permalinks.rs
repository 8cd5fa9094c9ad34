//! Permalinks: names that are unique in a store.
//!
//! A memory requests a permalink by its frontmatter or its path, and the oldest of those that
//! request the same one gets it. The others get a numbered one, which is computed on demand.

use std::collections::HashMap;

use quipu_core::Error;
use quipu_core::model::{MemoryId, StoreId};
use quipu_notes::{alias_key, numbered_permalink};

use super::NoteCard;
use crate::card::Card;
use crate::lookup::{Lookup, NoteName};

/// Beyond this many requests for the same permalink, numbered ones may collide.
const PERMALINKS_CHECKED_MAX: usize = 100;

/// Resolves a permalink.
pub(super) fn with_permalink(
    lookup: &Lookup<'_>,
    store: StoreId,
    permalink: &str,
) -> Result<Option<Card>, Error> {
    if let Some(first) = sharing(lookup, store, permalink)?.into_iter().next() {
        return Ok(Some(first));
    }
    let Some((base, number)) = permalink.rsplit_once('-') else { return Ok(None) };
    if number.parse::<usize>().is_err() {
        return Ok(None);
    }
    let sharing = sharing(lookup, store, base)?;
    let permalinks = numbered(lookup, store, base, sharing.len())?;
    let found = sharing.into_iter().zip(permalinks).find(|(_, it)| it == permalink);
    Ok(found.map(|(row, _)| row))
}

/// Returns the memories that request the same permalink, oldest first; the first one has it.
fn sharing(lookup: &Lookup<'_>, store: StoreId, permalink: &str) -> Result<Vec<Card>, Error> {
    lookup.notes_named(store, &NoteName::Permalink(permalink))
}

/// Returns the permalinks of `count` memories that request the same one.
fn numbered(
    lookup: &Lookup<'_>,
    store: StoreId,
    base: &str,
    count: usize,
) -> Result<Vec<String>, Error> {
    let mut permalinks = vec![base.to_owned()];
    let mut number = 0;
    while permalinks.len() < count {
        number += 1;
        let candidate = numbered_permalink(base, number);
        let is_checked = permalinks.len() <= PERMALINKS_CHECKED_MAX;
        let name = NoteName::Permalink(&candidate);
        if !is_checked || lookup.notes_named(store, &name)?.is_empty() {
            permalinks.push(candidate);
        }
    }
    Ok(permalinks)
}

/// The names of many memories.
pub(crate) struct Cards<'r> {
    lookup: &'r Lookup<'r>,
    /// The permalinks that were computed so far.
    permalinks: HashMap<MemoryId, String>,
}

impl<'r> Cards<'r> {
    pub(crate) fn new(lookup: &'r Lookup<'r>) -> Self {
        Self { lookup, permalinks: HashMap::new() }
    }

    /// Returns the names of a memory, with its unique permalink.
    pub(crate) fn card(&mut self, row: Card) -> Result<NoteCard, Error> {
        Ok(NoteCard {
            permalink: self.permalink(&row)?,
            memory: row.memory,
            store: row.store,
            version: row.version,
            path: row.path,
            title: row.title,
            kind: row.kind,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }

    fn permalink(&mut self, row: &Card) -> Result<String, Error> {
        if let Some(known) = self.permalinks.get(&row.memory) {
            return Ok(known.clone());
        }
        let sharing = sharing(self.lookup, row.store, &row.permalink)?;
        if sharing.len() > 1 {
            let all = numbered(self.lookup, row.store, &row.permalink, sharing.len())?;
            self.permalinks.extend(sharing.into_iter().map(|row| row.memory).zip(all));
        }
        Ok(self.permalinks.get(&row.memory).unwrap_or(&row.permalink).clone())
    }
}

/// Returns the names of all memories of a store, by path.
pub(crate) fn store_cards(lookup: &Lookup<'_>, store: StoreId) -> Result<Vec<NoteCard>, Error> {
    let rows = lookup.notes(store)?;
    let mut cards = Cards::new(lookup);
    let mut sharing: HashMap<&str, usize> = HashMap::new();
    for row in &rows {
        *sharing.entry(&row.permalink).or_default() += 1;
    }
    let is_alone = |row: &Card| sharing.get(row.permalink.as_str()) == Some(&1);
    let alone = rows.iter().filter(|row| is_alone(row));
    cards.permalinks.extend(alone.map(|row| (row.memory, row.permalink.clone())));
    rows.into_iter().map(|row| cards.card(row)).collect()
}

/// Returns every key that links to a memory may resolve by.
pub(crate) fn keys_of(lookup: &Lookup<'_>, card: &Card) -> Result<Vec<String>, Error> {
    let shown = Cards::new(lookup).card(card.clone())?;
    let known = lookup.full_note(card.store, card.memory)?;
    let mut keys = known.map(|card| card.names).unwrap_or_default();
    keys.push(alias_key(&shown.permalink));
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}
