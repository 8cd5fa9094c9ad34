//! Finding the note that an identifier means.

use quipu_core::engine::Scope;
use quipu_core::model::{ContentHash, Memory, ParseHashError, Store, View};
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
/// Otherwise the stores are tried in their order; the error is that of the first.
pub(super) fn exact(call: &Call, identifier: &str, arguments: &Arguments) -> Result<Found, Error> {
    let scopes = scopes(call, arguments)?;
    let mut missing = None;
    for scope in &scopes {
        match call.engine().resolve(scope, identifier, View::Full) {
            Ok(memory) => return Ok(Found { store: call.engine().store(memory.store)?, memory }),
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(missing.unwrap_or_else(nothing_yet))
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
