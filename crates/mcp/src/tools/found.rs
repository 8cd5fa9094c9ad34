//! Resolves identifiers to notes.

use quipu_core::model::{ContentHash, Memory, MemoryId, MemoryPath, ParseHashError, Store, View};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Scope;
use quipu_notes::{Identifier, Reference};
use quipu_service::past::Then;

use super::{Call, past};
use crate::arguments::Arguments;

/// A note, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) store: Store,
    /// With its text.
    pub(super) memory: Memory,
}

/// Something that was found in a store.
#[derive(Debug)]
pub(super) struct Hit<T> {
    pub(super) store: Store,
    pub(super) memory: MemoryId,
    path: Option<MemoryPath>,
    pub(super) what: T,
}

impl<T> Hit<T> {
    pub(super) fn new(store: Store, memory: MemoryId, path: Option<MemoryPath>, what: T) -> Self {
        Self { store, memory, path, what }
    }
}

/// Resolves an identifier to exactly one note.
pub(super) fn exact(call: &Call, identifier: &str, arguments: &Arguments) -> Result<Found, Error> {
    let scopes = scopes(call, arguments)?;
    let look = |scope: &Scope| living(call, scope, identifier);
    let found = one(call, arguments, (identifier, &scopes), look)?;
    Ok(Found { store: found.store, memory: found.what })
}

/// Resolves an identifier to exactly one note, of the present or of the moment that the call asks about.
pub(super) fn exact_as_of(
    call: &Call,
    identifier: &str,
    arguments: &Arguments,
) -> Result<(Found, Option<Then>), Error> {
    let Some(moment) = past::moment(arguments)? else {
        return Ok((exact(call, identifier, arguments)?, None));
    };
    let scopes = past::scopes(call, arguments, identifier)?;
    let look = |scope: &Scope| {
        let look = |call: &Call| living(call, scope, identifier);
        let (hit, then) = past::within(call, (scope, &moment), look)?;
        Ok(Hit { store: hit.store, memory: hit.memory, path: hit.path, what: (hit.what, then) })
    };
    let found = one(call, arguments, (identifier, &scopes), look)?;
    let (memory, then) = found.what;
    Ok((Found { store: found.store, memory }, Some(then)))
}

/// Resolves an identifier to exactly one note, which is to be changed.
pub(super) fn to_change(
    call: &Call,
    identifier: &str,
    arguments: &Arguments,
) -> Result<Found, Error> {
    refuse_pattern(identifier)?;
    exact(call, identifier, arguments)
}

/// Resolves an identifier to a note that is not deleted, starting from the store of `scope`.
pub(super) fn living(call: &Call, scope: &Scope, identifier: &str) -> Result<Hit<Memory>, Error> {
    let memory = call.engine().resolve(scope, identifier, View::Full)?;
    let store = call.engine().store(memory.store)?;
    Ok(Hit::new(store, memory.id, Some(memory.path.clone()), memory))
}

/// Looks in the store of `project` if that is given, otherwise in the default store first. Without a
/// default store, only one of the stores may have a match.
pub(super) fn one<T>(
    call: &Call,
    arguments: &Arguments,
    (identifier, scopes): (&str, &[Scope]),
    look: impl Fn(&Scope) -> Result<Hit<T>, Error>,
) -> Result<Hit<T>, Error> {
    let has_order = arguments.word("project")?.is_some() || call.client.default_store()?.is_some();
    let mut found: Vec<Hit<T>> = Vec::new();
    let mut missing = None;
    for scope in scopes {
        match look(scope) {
            Ok(hit) if found.iter().any(|known| known.memory == hit.memory) => {}
            Ok(hit) => found.push(hit),
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
        if has_order && !found.is_empty() {
            break;
        }
    }
    match found.pop() {
        Some(only) if found.is_empty() => Ok(only),
        Some(last) => Err(ambiguous(identifier, found.iter().chain([&last]))),
        None => Err(missing.unwrap_or_else(nothing_yet)),
    }
}

/// Fails for a pattern: a change must name exactly one note.
pub(super) fn refuse_pattern(identifier: &str) -> Result<(), Error> {
    let parsed = Identifier::parse(identifier);
    if parsed.is_url && matches!(parsed.reference, Reference::Glob(_)) {
        return Err(Error::invalid(format!("`{identifier}` is a pattern; nothing was changed"))
            .with_hint("name one note; build_context lists those that fit"));
    }
    Ok(())
}

fn ambiguous<'h, T: 'h>(identifier: &str, hits: impl Iterator<Item = &'h Hit<T>>) -> Error {
    let place = |hit: &Hit<T>| {
        let path = hit.path.as_ref().map_or_else(|| hit.memory.to_string(), ToString::to_string);
        format!("`{path}` of `{}`", hit.store.name)
    };
    let places: Vec<_> = hits.map(place).collect();
    Error::new(ErrorKind::Ambiguous, format!("{} notes are called `{identifier}`", places.len()))
        .with_hint(format!("name the store as `project`: {}", places.join(" or ")))
}

/// Returns the stores in which names are resolved, in order, each with the stores that links may
/// lead to.
pub(super) fn scopes(call: &Call, arguments: &Arguments) -> Result<Vec<Scope>, Error> {
    let project = arguments.word("project")?;
    let homes = call.client.stores_to_read(project.as_deref())?;
    let reachable: Vec<_> = call.client.stores()?.iter().map(|store| store.id).collect();
    Ok(homes.iter().map(|home| Scope::new(home.id, reachable.iter().copied())).collect())
}

/// Returns the error for a client that has no store.
pub(super) fn nothing_yet() -> Error {
    Error::not_found("there are no notes yet").with_hint("write_note makes the first")
}

/// Returns the checksum that a note must still have.
pub(super) fn expected_checksum(arguments: &Arguments) -> Result<Option<ContentHash>, Error> {
    let Some(word) = arguments.word("expected_checksum")? else { return Ok(None) };
    let hash: Result<ContentHash, ParseHashError> = word.to_lowercase().parse();
    match hash {
        Ok(hash) => Ok(Some(hash)),
        Err(error) => Err(Error::invalid(format!("expected_checksum: {error}"))
            .with_hint("take it from the answer of read_note")),
    }
}
