//! Finding the note that an identifier means.

use quipu_core::engine::Scope;
use quipu_core::model::{ContentHash, Memory, ParseHashError, Store, View};
use quipu_core::note::{Identifier, Reference};
use quipu_core::{Error, ErrorKind};

use super::Call;
use crate::mcp::arguments::Arguments;

/// A note, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) store: Store,
    /// With its text.
    pub(super) memory: Memory,
}

/// Returns the one note that an identifier means, in the store of `project` if that is given.
///
/// Otherwise the default store comes first; without one, no other store may have such a note.
pub(super) fn exact(call: &Call, identifier: &str, arguments: &Arguments) -> Result<Found, Error> {
    let has_order = arguments.word("project")?.is_some() || call.client.default_store()?.is_some();
    let mut found: Vec<Found> = Vec::new();
    let mut missing = None;
    for scope in &scopes(call, arguments)? {
        match call.engine().resolve(scope, identifier, View::Full) {
            Ok(memory) if found.iter().any(|it| it.memory.id == memory.id) => {}
            Ok(memory) => found.push(Found { store: call.engine().store(memory.store)?, memory }),
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

/// Returns the one note that an identifier means and that is to be changed: a pattern never means
/// one.
pub(super) fn to_change(
    call: &Call,
    identifier: &str,
    arguments: &Arguments,
) -> Result<Found, Error> {
    let parsed = Identifier::parse(identifier);
    if parsed.is_url && matches!(parsed.reference, Reference::Glob(_)) {
        return Err(Error::invalid(format!("`{identifier}` is a pattern; nothing was changed"))
            .with_hint("name one note; build_context lists those that fit"));
    }
    exact(call, identifier, arguments)
}

fn ambiguous<'f>(identifier: &str, found: impl Iterator<Item = &'f Found>) -> Error {
    let places: Vec<_> =
        found.map(|it| format!("`{}` of `{}`", it.memory.path, it.store.name)).collect();
    Error::new(ErrorKind::Ambiguous, format!("{} notes are called `{identifier}`", places.len()))
        .with_hint(format!("name the store as `project`: {}", places.join(" or ")))
}

/// Returns where names are looked for, one store after the other, and how far links may lead.
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
