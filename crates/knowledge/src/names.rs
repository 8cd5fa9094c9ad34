//! Names of memories, and resolving them.

mod permalinks;
mod suggestions;

use quipu_core::backend::Reader;
use quipu_core::engine::existing_store;
use quipu_core::model::{
    Directory, Memory, MemoryId, MemoryPath, StoreId, Timestamp, VersionId, View, slug,
};
use quipu_core::{Error, ErrorKind};
use quipu_notes::{Glob, Identifier, Proximity, Reference, alias_key, path_candidates};

use crate::Knowledge;
use crate::card::Card;
use crate::lookup::{Lookup, NoteName};

pub(crate) use permalinks::{Cards, keys_of, store_cards};

use permalinks::with_permalink;

/// Where names are resolved, and how far links may lead.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The store for names that do not name a store.
    pub home: StoreId,
    /// Every store that may be reached, including the home.
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

/// The names of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteCard {
    /// The memory.
    pub memory: MemoryId,
    /// Its store.
    pub store: StoreId,
    /// The version that was read.
    pub version: VersionId,
    /// Its path.
    pub path: MemoryPath,
    /// Its title.
    pub title: String,
    /// Its type.
    pub kind: String,
    /// Its permalink, which is unique in the store.
    pub permalink: String,
    /// When the memory was created.
    pub created_at: Timestamp,
    /// When its text or path last changed.
    pub updated_at: Timestamp,
}

/// A parsed identifier, with its id decoded.
pub(crate) enum Wanted {
    Id(MemoryId),
    Glob(Glob),
    Name(String),
}

impl From<Reference> for Wanted {
    fn from(reference: Reference) -> Self {
        match reference {
            // A text that only looks like an id may still be a title.
            Reference::Id(text) => text.parse().map_or(Self::Name(text), Self::Id),
            Reference::Glob(glob) => Self::Glob(glob),
            Reference::Name(name) => Self::Name(name),
        }
    }
}

/// What a name resolves to.
pub(crate) enum Meaning {
    Nothing,
    One(Box<Card>),
    Several(Vec<Card>),
}

/// The maximum number of memories that a message lists.
const NAMED_MAX: usize = 5;

impl Knowledge {
    /// Resolves an identifier: an id, a path, a permalink, a title, a `memory://` URL or a wiki
    /// link, tried in this order.
    ///
    /// A name that several memories share is [`ErrorKind::Ambiguous`], with their paths in the
    /// hint; an unknown name is [`ErrorKind::NotFound`], with similar ones in the hint.
    pub fn resolve(&self, scope: &Scope, identifier: &str, view: View) -> Result<Memory, Error> {
        let found = self.engine.read(|reader| exactly(reader, scope, identifier))?;
        let found = match found {
            Some(found) => Some(found),
            None => self.called(scope, identifier)?,
        };
        let Some((store, memory)) = found else {
            return Err(self.nothing_called(scope, identifier)?);
        };
        self.engine.memory(store, memory, view)
    }

    /// Resolves an identifier with the index.
    fn called(
        &self,
        scope: &Scope,
        identifier: &str,
    ) -> Result<Option<(StoreId, MemoryId)>, Error> {
        self.lookup(&scope.stores, |lookup| {
            match meaning(lookup, scope, &Identifier::parse(identifier))? {
                Meaning::One(card) => Ok(Some((card.store, card.memory))),
                Meaning::Several(cards) => Err(ambiguous(identifier, &cards)),
                Meaning::Nothing => Ok(None),
            }
        })
    }

    /// Returns the names of a memory.
    pub fn card(&self, store: StoreId, memory: MemoryId) -> Result<NoteCard, Error> {
        self.lookup(&[store], |lookup| match lookup.note(store, memory)? {
            Some(card) => Cards::new(lookup).card(card),
            None => Err(Error::not_found(format!("no memory of the store has the id `{memory}`"))),
        })
    }
}

fn ambiguous(identifier: &str, rows: &[Card]) -> Error {
    let paths: Vec<_> = rows.iter().take(NAMED_MAX).map(|row| format!("`{}`", row.path)).collect();
    let more = rows.len().saturating_sub(paths.len());
    let more = if more > 0 { format!(" or {more} more") } else { String::new() };
    Error::new(ErrorKind::Ambiguous, format!("{} memories are called `{identifier}`", rows.len()))
        .with_hint(format!("use a path instead: {}{more}", paths.join(" or ")))
}

/// Resolves an identifier that is an id or a path from the canonical rows alone, so it works
/// however far behind the index is, and even if the index cannot be read.
///
/// Only the first reading of the identifier counts; whether a later one applies depends on whether
/// the index has the first.
fn exactly(
    reader: &dyn Reader,
    scope: &Scope,
    identifier: &str,
) -> Result<Option<(StoreId, MemoryId)>, Error> {
    existing_store(reader, scope.home)?;
    let Some(identifier) = Identifier::parse(identifier).readings().into_iter().next() else {
        return Ok(None);
    };
    let Some((store, reference)) = placed(reader, scope, &identifier)? else { return Ok(None) };
    let name = match &reference {
        Wanted::Id(id) => {
            for &store in &scope.stores {
                if reader.memory(store, *id, View::Basic)?.is_some() {
                    return Ok(Some((store, *id)));
                }
            }
            return Ok(None);
        }
        Wanted::Glob(glob) => glob.as_str(),
        Wanted::Name(name) => name,
    };
    if let Ok(id) = name.parse() {
        return Ok(reader.memory(store, id, View::Basic)?.map(|memory| (store, memory.id)));
    }
    for path in paths(name, None) {
        if let Some(memory) = reader.memory_at(store, &path, View::Basic)? {
            return Ok(Some((store, memory.id)));
        }
    }
    Ok(None)
}

/// Resolves an identifier, seen from the home of a scope.
pub(crate) fn meaning(
    lookup: &Lookup<'_>,
    scope: &Scope,
    identifier: &Identifier,
) -> Result<Meaning, Error> {
    for reading in identifier.readings() {
        match meaning_of_reading(lookup, scope, &reading)? {
            Meaning::Nothing => {}
            found @ (Meaning::One(_) | Meaning::Several(_)) => return Ok(found),
        }
    }
    Ok(Meaning::Nothing)
}

fn meaning_of_reading(
    lookup: &Lookup<'_>,
    scope: &Scope,
    identifier: &Identifier,
) -> Result<Meaning, Error> {
    let Some((store, reference)) = placed(lookup.reader, scope, identifier)? else {
        return Ok(Meaning::Nothing);
    };
    if let Wanted::Id(id) = reference {
        for &store in &scope.stores {
            if let Some(row) = lookup.note(store, id)? {
                return Ok(Meaning::One(Box::new(row)));
            }
        }
        return Ok(Meaning::Nothing);
    }
    match reference {
        Wanted::Id(_) => Ok(Meaning::Nothing),
        Wanted::Glob(glob) => match called(lookup, store, glob.as_str(), None)? {
            // A star is a wildcard only in URLs; elsewhere it is literal, as in a title.
            Meaning::Nothing if identifier.is_url => several(lookup, store, &glob),
            found @ (Meaning::Nothing | Meaning::One(_) | Meaning::Several(_)) => Ok(found),
        },
        Wanted::Name(name) => called(lookup, store, &name, None),
    }
}

fn several(lookup: &Lookup<'_>, store: StoreId, glob: &Glob) -> Result<Meaning, Error> {
    Ok(match matching(lookup, store, glob, NAMED_MAX)?.as_slice() {
        [] => Meaning::Nothing,
        [only] => Meaning::One(Box::new(only.clone())),
        several => Meaning::Several(several.to_vec()),
    })
}

/// Returns the store that an identifier refers to and the name in it; `None` if it names a store
/// that cannot be reached.
pub(crate) fn placed(
    reader: &dyn Reader,
    scope: &Scope,
    identifier: &Identifier,
) -> Result<Option<(StoreId, Wanted)>, Error> {
    if let Some(store) = &identifier.store {
        let store = store_called(reader, scope, store)?;
        return Ok(store.map(|store| (store, identifier.reference.clone().into())));
    }
    if let Some((store, reference)) = identifier.split_store()
        && let Some(store) = store_called(reader, scope, store)?
    {
        return Ok(Some((store, reference.into())));
    }
    Ok(Some((scope.home, identifier.reference.clone().into())))
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

/// Returns the first memories of a store whose path or permalink matches a pattern, by path.
pub(crate) fn matching(
    lookup: &Lookup<'_>,
    store: StoreId,
    glob: &Glob,
    limit: usize,
) -> Result<Vec<Card>, Error> {
    let fits = |card: &Card| glob.matches(card.path.as_str()) || glob.matches(&card.permalink);
    Ok(lookup.notes(store)?.into_iter().filter(fits).take(limit).collect())
}

/// Resolves a name in a store, strictly in this order: id, path, permalink, title, alias.
///
/// Seen from a directory, the nearest of several titles wins; otherwise all of them match. Without
/// a directory, a name that can only be a path never matches a memory at another path.
pub(crate) fn called(
    lookup: &Lookup<'_>,
    store: StoreId,
    name: &str,
    from: Option<&Directory>,
) -> Result<Meaning, Error> {
    let one = |card: Card| Meaning::One(Box::new(card));
    if let Ok(id) = name.parse() {
        return Ok(lookup.note(store, id)?.map_or(Meaning::Nothing, one));
    }
    for path in paths(name, from) {
        if let Some(memory) = lookup.reader.memory_at(store, &path, View::Basic)?
            && let Some(row) = lookup.note(store, memory.id)?
        {
            return Ok(one(row));
        }
    }
    let bare = name.trim_matches('/');
    let stem = bare.strip_suffix(".md");
    let is_file = from.is_none() && stem.is_some();
    let is_path = is_file || (from.is_none() && name.starts_with('/'));
    let bare = stem.unwrap_or(bare);
    if !is_file && let Some(row) = with_permalink(lookup, store, bare)? {
        return Ok(one(row));
    }
    let mut titled = lookup.notes_named(store, &NoteName::Title(name))?;
    if let Some(from) = from {
        titled.sort_by_cached_key(|row| Proximity::new(from.as_str(), row.path.as_str()));
        titled.truncate(1);
    }
    if titled.is_empty() && !is_path {
        titled = lookup.notes_named(store, &NoteName::Alias(&alias_key(bare)))?;
    }
    Ok(match titled.as_slice() {
        [] => Meaning::Nothing,
        [only] => one(only.clone()),
        _ => Meaning::Several(titled),
    })
}

/// Returns the paths that a name may refer to, seen from a directory, the likeliest first.
fn paths(name: &str, from: Option<&Directory>) -> impl Iterator<Item = MemoryPath> {
    let candidates = path_candidates(name, from.map(Directory::as_str)).into_iter();
    candidates.filter_map(|path| MemoryPath::parse(&path).ok())
}
