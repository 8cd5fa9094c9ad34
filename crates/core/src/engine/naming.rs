//! What memories are called, and which memory a name means.

mod suggesting;

use std::collections::HashMap;

use crate::backend::Reader;
use crate::index::{NoteName, NoteRow};
use crate::model::{
    Directory, Memory, MemoryId, MemoryPath, StoreId, Timestamp, VersionId, View, slug,
};
use crate::note::{
    Glob, Identifier, Nearness, Reference, alias_key, numbered_permalink, path_candidates,
};
use crate::{Error, ErrorKind};

use super::intact::Intact as _;
use super::{Engine, existing_store};

/// Where names are looked for, and how far links may lead.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The store in which names are looked for that do not name a store.
    pub home: StoreId,
    /// Every store that may be reached, the home among them.
    pub stores: Vec<StoreId>,
}

impl Scope {
    /// Returns the scope of one store alone.
    pub fn only(store: StoreId) -> Self {
        Self { home: store, stores: vec![store] }
    }

    /// Returns the scope of a store from which others can be reached.
    pub fn new(home: StoreId, others: impl IntoIterator<Item = StoreId>) -> Self {
        let mut stores = vec![home];
        stores.extend(others.into_iter().filter(|store| *store != home));
        Self { home, stores }
    }
}

/// What a memory is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteCard {
    /// The memory.
    pub memory: MemoryId,
    /// Its store.
    pub store: StoreId,
    /// The version that was read.
    pub version: VersionId,
    /// Where it lives.
    pub path: MemoryPath,
    /// Its title.
    pub title: String,
    /// Its type.
    pub kind: String,
    /// Its permalink, which no other memory of the store has.
    pub permalink: String,
    /// When the memory was created.
    pub created_at: Timestamp,
    /// When its text or its path last changed.
    pub updated_at: Timestamp,
}

/// What a name means.
pub(super) enum Meaning {
    Nothing,
    One(Box<NoteRow>),
    Several(Vec<NoteRow>),
}

/// Among more memories that ask for the same permalink, later numbers may be shared with another.
const PERMALINKS_CHECKED_MAX: usize = 100;
/// How many memories a message names.
const NAMED_MAX: usize = 5;

impl Engine {
    /// Returns the memory that an identifier means: an id, a path, a permalink, a title, a
    /// `memory://` URL or a wiki link, tried in this order.
    ///
    /// A name that several memories have is [`ErrorKind::Ambiguous`], with their paths in the hint;
    /// one that none has is [`ErrorKind::NotFound`], with near ones in the hint.
    pub fn resolve(&self, scope: &Scope, identifier: &str, view: View) -> Result<Memory, Error> {
        let found = self.read(|reader| exactly(reader, scope, identifier, view))?;
        let found = match found {
            Some(memory) => Some(memory),
            None => self.called(scope, identifier, view)?,
        };
        match found.map(Memory::intact).transpose()? {
            Some(memory) => {
                if view == View::Full {
                    self.note_reading(memory.store, memory.id);
                }
                Ok(memory)
            }
            None => Err(self.nothing_called(scope, identifier)?),
        }
    }

    /// Returns the memory that the index knows by an identifier.
    fn called(&self, scope: &Scope, identifier: &str, view: View) -> Result<Option<Memory>, Error> {
        self.read_indexed(|reader| {
            existing_store(reader, scope.home)?;
            let row = match meaning(reader, scope, &Identifier::parse(identifier))? {
                Meaning::One(row) => row,
                Meaning::Several(rows) => return Err(ambiguous(identifier, &rows)),
                Meaning::Nothing => return Ok(None),
            };
            reader.memory(row.store, row.memory, view)
        })
    }

    /// Returns what a memory is called.
    pub fn card(&self, store: StoreId, memory: MemoryId) -> Result<NoteCard, Error> {
        self.read_indexed(|reader| match reader.note(store, memory)? {
            Some(row) => card(reader, row),
            None => Err(Error::not_found(format!("no memory of the store has the id `{memory}`"))),
        })
    }
}

fn ambiguous(identifier: &str, rows: &[NoteRow]) -> Error {
    let paths: Vec<_> = rows.iter().take(NAMED_MAX).map(|row| format!("`{}`", row.path)).collect();
    let more = rows.len().saturating_sub(paths.len());
    let more = if more > 0 { format!(" or {more} more") } else { String::new() };
    Error::new(ErrorKind::Ambiguous, format!("{} memories are called `{identifier}`", rows.len()))
        .with_hint(format!("use a path instead: {}{more}", paths.join(" or ")))
}

/// Returns the memory whose id or path an identifier is, from the canonical rows alone: it is found
/// however far behind the index is, and also if the index cannot be read.
///
/// Only the first reading of the identifier counts; what a later one means depends on whether the
/// index knows the first.
fn exactly(
    reader: &dyn Reader,
    scope: &Scope,
    identifier: &str,
    view: View,
) -> Result<Option<Memory>, Error> {
    let Some(identifier) = Identifier::parse(identifier).readings().into_iter().next() else {
        return Ok(None);
    };
    let Some((store, reference)) = placed(reader, scope, &identifier)? else { return Ok(None) };
    let name = match &reference {
        Reference::Id(id) => {
            for &store in &scope.stores {
                if let Some(memory) = reader.memory(store, *id, view)? {
                    return Ok(Some(memory));
                }
            }
            return Ok(None);
        }
        Reference::Glob(glob) => glob.as_str(),
        Reference::Name(name) => name,
    };
    if let Ok(id) = name.parse() {
        return reader.memory(store, id, view);
    }
    for path in path_candidates(name, None) {
        if let Some(memory) = reader.memory_at(store, &path, view)? {
            return Ok(Some(memory));
        }
    }
    Ok(None)
}

/// Returns what is called by an identifier, seen from the home of a scope.
pub(super) fn meaning(
    reader: &dyn Reader,
    scope: &Scope,
    identifier: &Identifier,
) -> Result<Meaning, Error> {
    for reading in identifier.readings() {
        match meaning_of_reading(reader, scope, &reading)? {
            Meaning::Nothing => {}
            found @ (Meaning::One(_) | Meaning::Several(_)) => return Ok(found),
        }
    }
    Ok(Meaning::Nothing)
}

fn meaning_of_reading(
    reader: &dyn Reader,
    scope: &Scope,
    identifier: &Identifier,
) -> Result<Meaning, Error> {
    let Some((store, reference)) = placed(reader, scope, identifier)? else {
        return Ok(Meaning::Nothing);
    };
    if let Reference::Id(id) = reference {
        for &store in &scope.stores {
            if let Some(row) = reader.note(store, id)? {
                return Ok(Meaning::One(Box::new(row)));
            }
        }
        return Ok(Meaning::Nothing);
    }
    match reference {
        Reference::Id(_) => Ok(Meaning::Nothing),
        Reference::Glob(glob) => match called(reader, store, glob.as_str(), None)? {
            // Only in URLs a star stands for anything; elsewhere for itself, as in a title.
            Meaning::Nothing if identifier.is_url => several(reader, store, &glob),
            found @ (Meaning::Nothing | Meaning::One(_) | Meaning::Several(_)) => Ok(found),
        },
        Reference::Name(name) => called(reader, store, &name, None),
    }
}

fn several(reader: &dyn Reader, store: StoreId, glob: &Glob) -> Result<Meaning, Error> {
    Ok(match matching(reader, store, glob, NAMED_MAX)?.as_slice() {
        [] => Meaning::Nothing,
        [only] => Meaning::One(Box::new(only.clone())),
        several => Meaning::Several(several.to_vec()),
    })
}

/// Returns the store that an identifier speaks of and what is called there; `None` if it names a
/// store that cannot be reached.
pub(super) fn placed(
    reader: &dyn Reader,
    scope: &Scope,
    identifier: &Identifier,
) -> Result<Option<(StoreId, Reference)>, Error> {
    if let Some(store) = &identifier.store {
        let store = store_called(reader, scope, store)?;
        return Ok(store.map(|store| (store, identifier.reference.clone())));
    }
    if let Some((store, reference)) = identifier.with_store()
        && let Some(store) = store_called(reader, scope, store)?
    {
        return Ok(Some((store, reference)));
    }
    Ok(Some((scope.home, identifier.reference.clone())))
}

fn store_called(
    reader: &dyn Reader,
    scope: &Scope,
    wanted: &str,
) -> Result<Option<StoreId>, Error> {
    let mut by_slug = None;
    for &id in &scope.stores {
        let Some(store) = reader.store(id)? else { continue };
        if store.name.as_str() == wanted || store.id.to_string() == wanted {
            return Ok(Some(id));
        }
        if by_slug.is_none() && slug(&store.name) == wanted.to_lowercase() {
            by_slug = Some(id);
        }
    }
    Ok(by_slug)
}

/// Returns the first memories of a store whose path or permalink fits a pattern, by path.
pub(super) fn matching(
    reader: &dyn Reader,
    store: StoreId,
    glob: &Glob,
    limit: usize,
) -> Result<Vec<NoteRow>, Error> {
    let mut found = Vec::new();
    each_note(reader, store, |row| {
        if glob.matches(row.path.as_str()) || glob.matches(&row.permalink) {
            found.push(row);
        }
        found.len() < limit
    })?;
    Ok(found)
}

/// How many notes are read at once.
const PAGE: usize = 512;

/// Calls `work` with each note of a store, by path, until it returns false.
pub(super) fn each_note(
    reader: &dyn Reader,
    store: StoreId,
    mut work: impl FnMut(NoteRow) -> bool,
) -> Result<(), Error> {
    let mut after: Option<MemoryPath> = None;
    loop {
        let rows = reader.notes(store, after.as_ref(), PAGE)?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.path.clone());
        for row in rows {
            if !work(row) {
                return Ok(());
            }
        }
    }
}

/// Returns what a name means in a store, strictly in this order: id, path, permalink, title, alias.
///
/// Seen from a directory, the nearest of several titles is meant; seen from nowhere, all are. From
/// nowhere, a name that can only be a path means no memory at another path.
pub(super) fn called(
    reader: &dyn Reader,
    store: StoreId,
    name: &str,
    from: Option<&Directory>,
) -> Result<Meaning, Error> {
    let one = |row: NoteRow| Meaning::One(Box::new(row));
    if let Ok(id) = name.parse() {
        return Ok(reader.note(store, id)?.map_or(Meaning::Nothing, one));
    }
    for path in path_candidates(name, from) {
        if let Some(memory) = reader.memory_at(store, &path, View::Basic)?
            && let Some(row) = reader.note(store, memory.id)?
        {
            return Ok(one(row));
        }
    }
    let bare = name.trim_matches('/');
    let stem = bare.strip_suffix(".md");
    let is_file = from.is_none() && stem.is_some();
    let is_path = is_file || (from.is_none() && name.starts_with('/'));
    let bare = stem.unwrap_or(bare);
    if !is_file && let Some(row) = with_permalink(reader, store, bare)? {
        return Ok(one(row));
    }
    let mut titled = reader.notes_named(store, &NoteName::Title(name.to_owned()))?;
    if let Some(from) = from {
        titled.sort_by_cached_key(|row| Nearness::new(from, &row.path));
        titled.truncate(1);
    }
    if titled.is_empty() && !is_path {
        titled = reader.notes_named(store, &NoteName::Alias(alias_key(bare)))?;
    }
    Ok(match titled.as_slice() {
        [] => Meaning::Nothing,
        [only] => one(only.clone()),
        _ => Meaning::Several(titled),
    })
}

/// Returns the memory that has a permalink.
fn with_permalink(
    reader: &dyn Reader,
    store: StoreId,
    permalink: &str,
) -> Result<Option<NoteRow>, Error> {
    if let Some(first) = sharing(reader, store, permalink)?.into_iter().next() {
        return Ok(Some(first));
    }
    let Some((base, number)) = permalink.rsplit_once('-') else { return Ok(None) };
    if number.parse::<usize>().is_err() {
        return Ok(None);
    }
    let sharing = sharing(reader, store, base)?;
    let permalinks = numbered(reader, store, base, sharing.len())?;
    let found = sharing.into_iter().zip(permalinks).find(|(_, it)| it == permalink);
    Ok(found.map(|(row, _)| row))
}

/// Returns the memories that ask for the same permalink, the oldest first, which has it.
fn sharing(reader: &dyn Reader, store: StoreId, permalink: &str) -> Result<Vec<NoteRow>, Error> {
    let mut rows = reader.notes_named(store, &NoteName::Permalink(permalink.to_owned()))?;
    rows.sort_by_key(|row| row.memory);
    Ok(rows)
}

/// Returns the permalinks of so many memories that ask for the same one.
fn numbered(
    reader: &dyn Reader,
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
        let name = NoteName::Permalink(candidate.clone());
        if !is_checked || reader.notes_named(store, &name)?.is_empty() {
            permalinks.push(candidate);
        }
    }
    Ok(permalinks)
}

/// What memories are called, where many are asked for.
pub(super) struct Cards<'r> {
    reader: &'r dyn Reader,
    /// The permalinks that are known already.
    permalinks: HashMap<MemoryId, String>,
}

impl<'r> Cards<'r> {
    pub(super) fn new(reader: &'r dyn Reader) -> Self {
        Self { reader, permalinks: HashMap::new() }
    }

    /// Returns what a memory is called, with the permalink that it has among all others.
    pub(super) fn card(&mut self, row: NoteRow) -> Result<NoteCard, Error> {
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

    fn permalink(&mut self, row: &NoteRow) -> Result<String, Error> {
        if let Some(known) = self.permalinks.get(&row.memory) {
            return Ok(known.clone());
        }
        let sharing = sharing(self.reader, row.store, &row.permalink)?;
        if sharing.len() > 1 {
            let all = numbered(self.reader, row.store, &row.permalink, sharing.len())?;
            self.permalinks.extend(sharing.into_iter().map(|row| row.memory).zip(all));
        }
        Ok(self.permalinks.get(&row.memory).unwrap_or(&row.permalink).clone())
    }
}

/// Returns what all memories of a store are called, by path.
pub(super) fn store_cards(reader: &dyn Reader, store: StoreId) -> Result<Vec<NoteCard>, Error> {
    let mut rows = Vec::new();
    each_note(reader, store, |row| {
        rows.push(row);
        true
    })?;
    let mut cards = Cards::new(reader);
    let mut sharing: HashMap<&str, usize> = HashMap::new();
    for row in &rows {
        *sharing.entry(&row.permalink).or_default() += 1;
    }
    let is_alone = |row: &NoteRow| sharing.get(row.permalink.as_str()) == Some(&1);
    let alone = rows.iter().filter(|row| is_alone(row));
    cards.permalinks.extend(alone.map(|row| (row.memory, row.permalink.clone())));
    rows.into_iter().map(|row| cards.card(row)).collect()
}

/// Returns what a memory is called, with the permalink that it has among all others.
pub(super) fn card(reader: &dyn Reader, row: NoteRow) -> Result<NoteCard, Error> {
    Cards::new(reader).card(row)
}

/// Returns every key by which links to a memory are found.
pub(super) fn keys_of(reader: &dyn Reader, row: &NoteRow) -> Result<Vec<String>, Error> {
    let card = card(reader, row.clone())?;
    let path = row.path.as_str().trim_start_matches('/');
    let bare = path.strip_suffix(".md").unwrap_or(path);
    let stem = bare.rsplit('/').next().unwrap_or(bare);
    let id = row.memory.to_string();
    let names = [id.as_str(), path, bare, stem, &row.title, &row.permalink, &card.permalink];
    let mut keys: Vec<_> = names.into_iter().map(alias_key).collect();
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}
