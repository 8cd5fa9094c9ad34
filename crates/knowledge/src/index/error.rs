//! Errors of the index.

use quipu_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

use super::codec::Damaged;

/// An error of the index.
#[derive(Clone, Debug)]
pub(crate) enum IndexError {
    /// The contents of the file are invalid. Rebuilding repairs it.
    Damaged,
    /// The file can be read but not written: the disk is full or read-only, or another process
    /// holds the write lock and does not finish.
    NotWritable(Error),
    /// The index has changed since the data to be written was read.
    Outdated,
    /// Any other error.
    Failed(Error),
}

impl IndexError {
    /// Returns the error to report to the caller of a search.
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
            // An error without a code is a value of the wrong type. A duplicate key, a missing
            // table and a truncated file are damage as well: reported as anything else, they would
            // make every search fail until the file is removed by hand.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::Unknown,
            )
            | None => Self::Damaged,
            Some(ErrorCode::SystemIoFailure) if is_short(&error) => Self::Damaged,
            // The shared memory of SQLite is a file too, and needs space.
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

/// Returns whether the file ended too early.
fn is_short(error: &rusqlite::Error) -> bool {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    extended == Some(rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}

fn unavailable(error: rusqlite::Error) -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the search index cannot be used right now")
        .with_hint("look at the log for the cause; removing `index.db` is safe, it is rebuilt")
        .with_source(error)
}
