//! Backups of a database, and restoring one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use quipu_core::{Error, ErrorKind};

use crate::error::StorageResult as _;
use crate::open::{self, DATABASE_FILE, LOG_FILE, LOG_INDEX_FILE};
use crate::rows;

/// Writes a copy of a database to a file that must not exist yet.
pub(crate) fn backup(database: &Path, target: &Path) -> Result<(), Error> {
    if target.exists() {
        return Err(exists());
    }
    let unfinished = target.with_added_extension("unfinished");
    remove_if_exists(&unfinished).map_err(unwritable)?;
    let finished =
        copy(database, &unfinished).and_then(|()| publish(&unfinished, target).map_err(unwritable));
    // A partial copy is of no use to anybody.
    remove_if_exists(&unfinished).map_err(unwritable)?;
    finished
}

fn copy(database: &Path, target: &Path) -> Result<(), Error> {
    let Some(name) = target.to_str() else {
        return Err(Error::invalid("the name of the backup file is not UTF-8"));
    };
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    open::owner_only(&mut options);
    let file = options.open(target).map_err(unwritable)?;
    let connection = open::connect(database)?;
    connection.execute("VACUUM INTO ?1", [name]).or_storage_error()?;
    file.sync_all().or_storage_error()
}

/// Gives a finished file its name; fails if the name is taken.
fn publish(unfinished: &Path, target: &Path) -> io::Result<()> {
    // A rename would replace a file that was created since the check; a link fails.
    fs::hard_link(unfinished, target)?;
    sync_directory(target)
}

/// Makes the names in the directory of a file durable.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _: &Path = file;
    Ok(())
}

/// Where the files of the old database were moved to, when a backup took its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The directory with the old files; `None` if there were none.
    pub old_files: Option<PathBuf>,
}

/// Replaces the database of a data directory by a backup.
///
/// The old database is moved aside together with its log. Left in place, the log would be replayed over
/// the backup and corrupt it. Nobody may have the data directory open.
pub fn restore_backup(backup: &Path, directory: &Path) -> Result<Restored, Error> {
    check(backup)?;
    open::create_directory(directory)?;
    let database = directory.join(DATABASE_FILE);
    let _lock = locked_exclusively(&database)?;
    let unfinished = directory.join(UNFINISHED_FILE);
    remove_if_exists(&unfinished).or_storage_error()?;
    copy_file(backup, &unfinished).or_storage_error()?;
    let old_files = move_aside(directory).or_storage_error()?;
    fs::rename(&unfinished, &database).or_storage_error()?;
    sync_directory(&database).or_storage_error()?;
    Ok(Restored { old_files })
}

/// Fails unless a file is a sound database of Quipu.
fn check(backup: &Path) -> Result<(), Error> {
    if !backup.is_file() {
        return Err(Error::invalid("there is no such backup file")
            .with_hint("name a file that `quipu backup` has written"));
    }
    let connection = open::reader(backup, open::Mutability::Immutable)?;
    open::require_own(&connection)?;
    let problems = rows::verify(&connection).or_storage_error()?;
    match problems.first() {
        None => Ok(()),
        Some(first) => Err(Error::new(
            ErrorKind::StorageUnusable,
            format!("the backup is damaged itself: {first}"),
        )
        .with_hint("use another backup; nothing was changed")),
    }
}

/// Keeps others from opening a database; fails if a process has it open already, since SQLite holds a
/// shared POSIX lock on an open database.
fn locked_exclusively(database: &Path) -> Result<Option<File>, Error> {
    #[cfg(unix)]
    if database.exists() {
        use rustix::fs::{FlockOperation, fcntl_lock};
        let file = File::options().read(true).write(true).open(database).or_storage_error()?;
        if fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Error::new(
                ErrorKind::StorageBusy,
                "another program has the data directory open",
            )
            .with_hint(
                "stop every server, mount, sync and MCP host that uses it, then try again",
            ));
        }
        return Ok(Some(file));
    }
    #[cfg(not(unix))]
    let _: &Path = database;
    Ok(None)
}

/// Where a backup is copied to before it replaces the database.
const UNFINISHED_FILE: &str = "quipu.db.unfinished";

/// The name of a directory with replaced files, up to its number.
const ASIDE_PREFIX: &str = "replaced-";

/// Returns a sentence for everything in a data directory that restoring backups has left behind.
///
/// Erasing does not touch these files. They are kept so that a restore can be undone, and the database in
/// them may be damaged, so clearing its pages could destroy what somebody still wants to rescue.
pub(crate) fn leftovers(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(ASIDE_PREFIX) || name == UNFINISHED_FILE {
            names.push(name);
        }
    }
    names.sort_unstable();
    let sentence = |name: String| {
        format!(
            "`{}` was left by `quipu restore-backup` and may still hold erased text; delete it when \
             it is no longer needed",
            directory.join(name).display()
        )
    };
    Ok(names.into_iter().map(sentence).collect())
}

/// How many replaced databases may lie around before somebody must clean up.
const ASIDE_MAX: u32 = 1000;

/// Moves the database and its log into a new directory beside them.
fn move_aside(directory: &Path) -> io::Result<Option<PathBuf>> {
    let there: Vec<_> = [DATABASE_FILE, LOG_FILE, LOG_INDEX_FILE]
        .into_iter()
        .filter(|name| directory.join(name).exists())
        .collect();
    if there.is_empty() {
        return Ok(None);
    }
    let names = (1..=ASIDE_MAX).map(|number| directory.join(format!("{ASIDE_PREFIX}{number}")));
    let free = names.into_iter().find(|aside| !aside.exists());
    let aside = free.ok_or(io::ErrorKind::AlreadyExists)?;
    open::private_directory(&aside)?;
    // The log first, in case this is interrupted: a database without its log is an older state, but one
    // with the log of another database is corrupt.
    for name in there.iter().rev() {
        fs::rename(directory.join(name), aside.join(name))?;
    }
    sync_directory(&aside.join(DATABASE_FILE))?;
    sync_directory(&aside)?;
    Ok(Some(aside))
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    open::owner_only(&mut options);
    let mut target = options.open(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

fn exists() -> Error {
    Error::invalid("the backup file exists already")
        .with_hint("choose a new name; a backup never overwrites")
}

fn unwritable(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return exists();
    }
    Error::invalid("the backup file cannot be written")
        .with_hint("name a file in a directory that exists and that you may write to")
        .with_source(error)
}

fn remove_if_exists(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
