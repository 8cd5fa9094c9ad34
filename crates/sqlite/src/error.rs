//! What SQLite's and the file system's errors mean to a caller.

use quipu_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

/// Turns a failure of SQLite or the file system into an [`Error`] that may be shown.
pub(crate) trait StorageResult<T> {
    fn or_storage_error(self) -> Result<T, Error>;
}

impl<T> StorageResult<T> for rusqlite::Result<T> {
    fn or_storage_error(self) -> Result<T, Error> {
        self.map_err(from_sqlite)
    }
}

impl<T> StorageResult<T> for std::io::Result<T> {
    fn or_storage_error(self) -> Result<T, Error> {
        self.map_err(from_io)
    }
}

fn from_sqlite(error: rusqlite::Error) -> Error {
    let described = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => full(),
        // Without a code it is a row that does not fit its type, which Quipu has not written.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => damaged(),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            not_writable()
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => busy(),
        Some(_) => unavailable(),
    };
    described.with_source(error)
}

fn from_io(error: std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    #[expect(clippy::wildcard_enum_match_arm, reason = "the list of kinds is not ours")]
    let described = match error.kind() {
        Io::StorageFull | Io::QuotaExceeded => full(),
        Io::PermissionDenied | Io::ReadOnlyFilesystem => not_writable(),
        Io::NotADirectory | Io::AlreadyExists => not_a_directory(),
        _ => unavailable(),
    };
    described.with_source(error)
}

pub(crate) fn damaged() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the database is damaged or not a database").with_hint(
        "keep a copy of the data directory, then put a backup in the place of the database file",
    )
}

pub(crate) fn foreign() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the database was not made by Quipu")
        .with_hint("choose another data directory")
}

pub(crate) fn too_new(found: i64, known: i64) -> Error {
    Error::new(
        ErrorKind::StorageUnusable,
        format!("the database has schema {found}, but this Quipu knows only up to {known}"),
    )
    .with_hint("use the newer Quipu that made it, or choose another data directory")
}

pub(crate) fn missing() -> Error {
    Error::new(ErrorKind::NotFound, "there is no Quipu data in the data directory yet")
        .with_hint("create a store first, or choose another directory with `--data`")
}

fn full() -> Error {
    Error::new(ErrorKind::StorageFull, "the disk is full, so nothing was written")
        .with_hint("free some space and try again")
}

fn not_writable() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the data directory cannot be written")
        .with_hint("check its owner and permissions and that its disk is not mounted read-only")
}

fn not_a_directory() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the data directory is not a directory")
        .with_hint("choose another one with `--data`")
}

fn busy() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the database is held by another program")
        .with_hint("close programs other than Quipu that have the database open")
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the storage does not work right now")
        .with_hint("look at the log for the cause")
}
