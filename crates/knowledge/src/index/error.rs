//! Why the index could not be used.

use quipu_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

use super::codec::Damaged;

/// A failure of the index.
#[derive(Clone, Debug)]
pub(crate) enum IndexError {
    /// What is in the file cannot be right. Rebuilding mends it.
    Damaged,
    /// The file cannot be written now, but it can be read: the disk is full or read-only, or another
    /// process writes and does not finish.
    NotWritable(Error),
    /// The index has changed since what was to be written was read.
    Outdated,
    /// Anything else.
    Failed(Error),
}

impl IndexError {
    /// Returns the error for somebody who wanted to search.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Failed(error) | Self::NotWritable(error) => error,
            Self::Damaged => Error::new(
                ErrorKind::StorageUnavailable,
                "the search index is damaged and could not be replaced",
            )
            .with_hint("remove `index.db` from the data directory; it is rebuilt by itself"),
            Self::Outdated => Error::new(
                ErrorKind::StorageBusy,
                "the search index changes too fast to be written",
            ),
        }
    }
}

impl From<Damaged> for IndexError {
    fn from(Damaged: Damaged) -> Self {
        Self::Damaged
    }
}

impl From<Error> for IndexError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let not_writable = |kind, message: &str, error| {
            Self::NotWritable(Error::new(kind, message).with_source(error))
        };
        match code {
            // Without a code it is a row that does not have the type of its column. A key that is
            // there twice, a missing table, or a file that ends too soon is damage as well: called
            // anything else, it would make every search fail until somebody removes the file.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::Unknown,
            )
            | None => Self::Damaged,
            Some(ErrorCode::SystemIoFailure) if is_short(&error) => Self::Damaged,
            // The memory that processes share is a file too, and needs room.
            Some(ErrorCode::SystemIoFailure) => {
                not_writable(ErrorKind::StorageUnavailable, "the disk of the index fails", error)
            }
            Some(ErrorCode::DiskFull) => not_writable(
                ErrorKind::StorageFull,
                "the disk is full, so the index was not written",
                error,
            ),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                not_writable(ErrorKind::StorageUnavailable, "the index cannot be written", error)
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => not_writable(
                ErrorKind::StorageBusy,
                "another process writes the index and does not finish",
                error,
            ),
            Some(_) => Self::Failed(unavailable(error)),
        }
    }
}

/// Returns whether the file ended before what was to be read.
fn is_short(error: &rusqlite::Error) -> bool {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    extended == Some(rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}

fn unavailable(error: rusqlite::Error) -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the search index cannot be used right now")
        .with_hint("look at the log for the cause; removing `index.db` is safe, it is rebuilt")
        .with_source(error)
}
