//! What went wrong with a file, in the words of the engine's errors.

use std::io;

use quipu_core::{Error, ErrorKind};

/// Returns the error for a folder that does not work.
pub(super) fn folder_error(message: impl Into<String>, error: io::Error) -> Error {
    let (kind, hint) = if error.kind() == io::ErrorKind::StorageFull {
        (ErrorKind::StorageFull, "free some space, then sync again")
    } else {
        (ErrorKind::StorageUnavailable, "look at the cause, then sync again; nothing is lost")
    };
    Error::new(kind, message).with_hint(hint).with_source(error)
}
