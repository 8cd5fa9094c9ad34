//! Maps errors of SQLite and the file system to what the caller can do about them.

use std::path::Path;
use std::time::Duration;

use quipu_core::{Error, ErrorKind};
use rusqlite::ErrorCode;

use crate::holder::Holder;

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
        // Without a code it is a value of the wrong type, which Quipu has not written.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => damaged(),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => not_writable(),
        Some(ErrorCode::CannotOpen) => not_openable(),
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed,
        ) => busy(),
        // An I/O error, for example. It is transient, or the disk is failing; the database itself may be
        // sound, so this must not send anybody to their backups.
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
        "stop everything that uses the data directory, then bring back a backup with \
         `quipu restore-backup FILE`; it keeps the damaged files aside",
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

/// Returns the error for a change when the last space of the disk is reserved for removals.
pub(crate) fn only_removals() -> Error {
    full().with_hint("free some space, or delete memories or stores: that still works")
}

fn not_writable() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the data directory cannot be written")
        .with_hint("check its owner and permissions and that its disk is not mounted read-only")
}

fn not_a_directory() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the data directory is not a directory")
        .with_hint("choose another one with `--data`")
}

fn not_openable() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the database cannot be opened").with_hint(
        "check its owner and permissions, and how many files the process may open (`ulimit -n`)",
    )
}

fn busy() -> Error {
    Error::new(ErrorKind::StorageBusy, "the database is held by another program")
        .with_hint(
            "it may be a Quipu process that is stopped: `ps -eo pid,stat,args` shows it with `T`, and \
             `kill -CONT PID` continues it; otherwise close other programs that have the database open",
        )
}

/// Returns the error for a writer whose deadline has passed while another one held the lock.
pub(crate) fn held(waited: Duration, holder: Option<&Holder>) -> Error {
    let seconds = waited.as_secs_f64();
    let (who, hint) = match holder {
        Some(holder) => (holder.to_string(), holder.hint()),
        None => (
            "another program that does not identify itself".to_owned(),
            "find out who has `quipu.lock` locked, and end it; reading still works".to_owned(),
        ),
    };
    let message =
        format!("nothing was written in {seconds} s, because the write lock is held by {who}");
    Error::new(ErrorKind::StorageBusy, message).with_hint(hint)
}

/// Returns the error for files that are no longer the ones that were opened.
pub(crate) fn replaced(file: &Path) -> Error {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Error::new(
        ErrorKind::StorageUnavailable,
        format!("`{name}` was removed or replaced while it was in use"),
    )
    .with_hint(
        "put the file back if it was moved, then restart everything that uses the data directory",
    )
}

pub(crate) fn migrated(found: i64, known: i64) -> Error {
    Error::new(
        ErrorKind::StorageUnusable,
        format!(
            "another Quipu has migrated the database to schema {found} meanwhile, but this one \
             knows {known}"
        ),
    )
    .with_hint("nothing was written; restart this program with the version of the other one")
}

pub(crate) fn log_too_long() -> Error {
    Error::new(
        ErrorKind::StorageBusy,
        "the log has reached its largest size, because a process still reads an old state",
    )
    .with_hint(
        "wait for a long backup or export to end, or end a stopped program; reading still works",
    )
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the data directory is being closed")
        .with_hint("this program is about to end")
}

pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the data directory is on a read-only file system")
        .with_hint("only reading is possible here")
}

pub(crate) fn log_on_read_only() -> Error {
    Error::new(
        ErrorKind::StorageUnavailable,
        "the data directory is on a read-only file system and was not closed cleanly",
    )
    .with_hint("open it once where it can be written, so that its log is moved into the database")
}

/// Returns the error for a write by a user who may only read.
pub(crate) fn not_permitted() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "you may read the data directory, but not write it")
        .with_hint("run this as its owner, or ask the owner for write access")
}

/// Returns the error for a file or directory that this user may not even read.
pub(crate) fn not_readable(path: &Path) -> Error {
    let name = path.display();
    Error::new(ErrorKind::StorageUnavailable, format!("you may not read `{name}`"))
        .with_hint("run this as the owner of the data directory, or ask the owner for read access")
}

pub(crate) fn log_on_protected() -> Error {
    Error::new(
        ErrorKind::StorageUnavailable,
        "the data directory was not closed cleanly, and you may not write it",
    )
    .with_hint("let its owner run any command once, so that the log is moved into the database")
}

pub(crate) fn changed_while_read() -> Error {
    Error::new(ErrorKind::StorageBusy, "the database was changed while it was read")
        .with_hint("try again")
}

pub(crate) fn not_utf8() -> Error {
    Error::invalid("the name of the data directory is not UTF-8")
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the storage does not work right now")
        .with_hint("look at the log for the cause")
}
