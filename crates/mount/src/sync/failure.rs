//! What can go wrong: I/O errors of the folder as engine errors, and why a step was not carried out.

use std::io;

use quipu_core::{Error, ErrorKind};

use super::files::Obstacle;

/// Why a step was not carried out.
#[derive(Debug)]
pub(super) enum StepError {
    /// Something changed in the meantime; plan it again.
    Retry(String),
    /// The store or the file system refuses it; other steps can go on.
    Failed(String),
    /// The storage fails, so no further step is begun.
    Fatal(Error),
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound
            | ErrorKind::PathConflict { .. }
            | ErrorKind::PreconditionFailed => Self::Retry(error.message().to_owned()),
            ErrorKind::InvalidInput
            | ErrorKind::ContentTooLarge
            | ErrorKind::LimitReached
            | ErrorKind::SecretRefused => Self::Failed(error.message().to_owned()),
            ErrorKind::Ambiguous
            | ErrorKind::StoreArchived
            | ErrorKind::HeadNotRedactable
            | ErrorKind::AccessDenied
            | ErrorKind::EraseIncomplete
            | ErrorKind::StorageFull
            | ErrorKind::StorageBusy
            | ErrorKind::StorageUnavailable
            | ErrorKind::StorageUnusable => Self::Fatal(error),
        }
    }
}

impl From<Obstacle> for StepError {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Changed => Self::Retry("it changed during the sync".to_owned()),
            Obstacle::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                Self::Fatal(folder_error("the folder's disk is full", error))
            }
            Obstacle::Io(error) => Self::Failed(error.kind().to_string()),
            Obstacle::Journal(error) => Self::Fatal(error),
        }
    }
}

/// Runs a write of the store, and repeats it once if it has waited for the write lock in vain.
///
/// A process that is stopped and continued finds its deadline passed, however short it has waited itself,
/// and even if it is the one that held the lock: a suspended sync ended halfway, naming itself as the
/// cause.
pub(super) fn despite_a_stop<T>(write: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    match write() {
        Err(error) if *error.kind() == ErrorKind::StorageBusy => write(),
        done => done,
    }
}

/// Wraps an I/O error of the folder.
pub(super) fn folder_error(message: impl Into<String>, error: io::Error) -> Error {
    let (kind, hint) = if error.kind() == io::ErrorKind::StorageFull {
        (ErrorKind::StorageFull, "free some space, then sync again")
    } else {
        (ErrorKind::StorageUnavailable, "fix the cause, then sync again; nothing is lost")
    };
    Error::new(kind, message).with_hint(hint).with_source(error)
}
