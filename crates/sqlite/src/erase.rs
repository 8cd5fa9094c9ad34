//! Taking removed text out of every file, and clean copies.
//!
//! `secure_delete` overwrites what is deleted, but when SQLite rearranges a page it can leave a
//! copy of a neighbouring row in the unused part. So erasing builds the whole file anew, which
//! carries over live rows only, and then empties the log. The search index only notes what was
//! removed from it, until its parts are merged; so these are merged first.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::Duration;

use quipu_core::{Error, ErrorKind};
use rusqlite::Connection;

use crate::error::StorageResult as _;
use crate::{open, rows};

/// How long to wait for readers that still use the log.
const READERS_TIMEOUT: Duration = Duration::from_secs(30);

/// Tells whether text was removed that may still be in a file.
pub(crate) fn is_pending(connection: &Connection) -> Result<bool, Error> {
    let sql = "SELECT erase_pending FROM upkeep";
    let mut statement = connection.prepare_cached(sql).or_storage_error()?;
    statement.query_row([], |row| row.get(0)).or_storage_error()
}

/// Notes, inside a transaction that removes text, that erasing is due.
pub(crate) fn set_pending(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE upkeep SET erase_pending = 1")?.execute([]).map(drop)
}

/// Erases. The caller holds the gate, so no process writes meanwhile.
pub(crate) fn erase(connection: &Connection) -> Result<(), Error> {
    rows::compact_index(connection).or_storage_error()?;
    // The copy holds live rows only and has no name, but it may be too large for the memory.
    connection.pragma_update(None, "temp_store", "file").or_storage_error()?;
    let rebuilt = connection.execute_batch("VACUUM").or_storage_error();
    connection.pragma_update(None, "temp_store", "memory").or_storage_error()?;
    rebuilt?;
    truncate_log(connection)?;
    connection.execute_batch("UPDATE upkeep SET erase_pending = 0").or_storage_error()
}

/// Moves the log into the database and cuts it to nothing.
fn truncate_log(connection: &Connection) -> Result<(), Error> {
    connection.busy_timeout(READERS_TIMEOUT).or_storage_error()?;
    let is_blocked: bool = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .or_storage_error()?;
    connection.busy_timeout(open::BUSY_TIMEOUT).or_storage_error()?;
    if is_blocked {
        return Err(Error::new(
            ErrorKind::StorageUnavailable,
            "another process, such as a long backup, still reads the old text",
        ));
    }
    Ok(())
}

/// Writes a copy of a database to a file that must not exist yet.
pub(crate) fn backup(database: &Path, target: &Path) -> Result<(), Error> {
    if target.exists() {
        return Err(Error::invalid("the backup file exists already")
            .with_hint("choose a new name; a backup never overwrites"));
    }
    let unfinished = target.with_added_extension("unfinished");
    let Some(name) = unfinished.to_str() else {
        return Err(Error::invalid("the name of the backup file is not UTF-8"));
    };
    remove_if_there(&unfinished)?;
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    open::owner_only(&mut options);
    let file = options.open(&unfinished).map_err(unwritable)?;
    let connection = open::connect(database)?;
    let copied = connection.execute("VACUUM INTO ?1", [name]).or_storage_error();
    let finished = copied
        .and_then(|_| file.sync_all().or_storage_error())
        .and_then(|()| fs::rename(&unfinished, target).map_err(unwritable));
    if finished.is_err() {
        remove_if_there(&unfinished)?;
    }
    finished
}

fn unwritable(error: std::io::Error) -> Error {
    Error::invalid("the backup file cannot be written")
        .with_hint("name a file in a directory that exists and that you may write to")
        .with_source(error)
}

fn remove_if_there(file: &Path) -> Result<(), Error> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(unwritable),
    }
}
