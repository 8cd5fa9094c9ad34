//! The files that hooks keep, in `hooks/` of the data directory, and what they owe to redactions.
//!
//! | file | what it is |
//! |---|---|
//! | `log.jsonl`, `log.old.jsonl` | what was decided and what has failed |
//! | `spool.jsonl` | decisions that are not in the database yet; a hook that decides does not wait for a writer |
//! | `moving.jsonl` | those that are on their way |
//! | `sessions/*.json` | what is remembered of each session of a host |
//! | `rules.json` | a copy of the rules |
//! | `lock`, `moving.lock` | held while files are written or rewritten, and while the spool is emptied |
//!
//! A line is written with one call, under the shared lock. Who rewrites or renames a file has the lock to
//! itself, for as long as that takes and no longer. Nobody waits long for either: a hook that cannot write
//! its log goes on without.

mod forgetting;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The name of the directory.
const DIRECTORY: &str = "hooks";
const LOG: &str = "log.jsonl";
const OLD_LOG: &str = "log.old.jsonl";
const SPOOL: &str = "spool.jsonl";
const MOVING: &str = "moving.jsonl";
const RULES: &str = "rules.json";
const SESSIONS: &str = "sessions";
const LOCK: &str = "lock";
const MOVING_LOCK: &str = "moving.lock";

/// A log that is larger becomes the old one, which replaces the one before.
const LOG_SIZE_BYTES_MAX: u64 = 1024 * 1024;

/// How much waits to be moved into the database. What comes then is in the log only.
const SPOOL_SIZE_BYTES_MAX: u64 = 1024 * 1024;

/// How much should wait at most.
const SPOOL_SIZE_BYTES_WANTED: u64 = 64 * 1024;

/// How long a hook waits for another one to write.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// The files of a data directory.
#[derive(Clone, Debug)]
pub(crate) struct HookFiles {
    data: PathBuf,
}

/// How much room there is for decisions that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Plenty,
    /// Somebody should empty the spool.
    Little,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Shared,
    Alone,
}

/// The spool while it is emptied, which one process at a time does.
#[derive(Debug)]
pub(crate) struct Moving {
    files: HookFiles,
    _lock: File,
}

impl HookFiles {
    pub(crate) fn of(data: &Path) -> Self {
        Self { data: data.to_owned() }
    }

    /// Returns the directory of what is remembered of sessions.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.path(SESSIONS)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.data.join(DIRECTORY).join(name)
    }

    /// Creates the directory. A data directory that does not exist is not created by a hook.
    fn create(&self) -> io::Result<()> {
        if !self.data.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        fs::create_dir_all(self.data.join(DIRECTORY))
    }

    /// Returns a lock; fails if others have it for too long.
    fn lock(&self, name: &str, hold: Hold, timeout: Duration) -> io::Result<File> {
        self.create()?;
        let path = self.path(name);
        let file =
            File::options().create(true).truncate(false).read(true).write(true).open(path)?;
        locked(&file, hold, timeout).map(|()| file)
    }

    /// Adds a line to the log.
    pub(crate) fn log(&self, line: &Value) -> io::Result<()> {
        if size(&self.path(LOG)) > LOG_SIZE_BYTES_MAX
            && let Ok(_lock) = self.lock(LOCK, Hold::Alone, Duration::ZERO)
            && size(&self.path(LOG)) > LOG_SIZE_BYTES_MAX
        {
            fs::rename(self.path(LOG), self.path(OLD_LOG))?;
        }
        let _lock = self.lock(LOCK, Hold::Shared, LOCK_TIMEOUT)?;
        append(&self.path(LOG), line)
    }

    /// Adds a decision to those that wait to be moved into the database; returns how much room there is.
    pub(crate) fn spool(&self, line: &Value) -> io::Result<Room> {
        let _lock = self.lock(LOCK, Hold::Shared, LOCK_TIMEOUT)?;
        let size_bytes = size(&self.path(SPOOL));
        if size_bytes <= SPOOL_SIZE_BYTES_MAX {
            append(&self.path(SPOOL), line)?;
        }
        Ok(if size_bytes < SPOOL_SIZE_BYTES_WANTED { Room::Plenty } else { Room::Little })
    }

    /// Returns whether decisions wait to be moved into the database.
    pub(crate) fn has_spooled(&self) -> bool {
        [SPOOL, MOVING].iter().any(|name| size(&self.path(name)) > 0)
    }

    /// Returns the lines of the log, the newest last.
    pub(crate) fn logged(&self) -> Vec<Value> {
        let text = [OLD_LOG, LOG].map(|name| read_end(&self.path(name))).concat();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Begins to empty the spool; `None` if somebody else does.
    pub(crate) fn start_moving(&self) -> io::Result<Option<Moving>> {
        match self.lock(MOVING_LOCK, Hold::Alone, Duration::ZERO) {
            Ok(lock) => Ok(Some(Moving { files: self.clone(), _lock: lock })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the copy of the rules, if there is one.
    pub(crate) fn rules(&self) -> Option<Vec<u8>> {
        fs::read(self.path(RULES)).ok()
    }

    /// Replaces the copy of the rules, unless `is_current` says that they have changed meanwhile. It is asked
    /// under the lock: what a redaction has removed since must not come back.
    pub(crate) fn keep_rules(
        &self,
        copy: &[u8],
        is_current: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let _lock = self.lock(LOCK, Hold::Shared, LOCK_TIMEOUT)?;
        if !is_current() {
            return Ok(());
        }
        let draft = self.path(&format!("{RULES}.{}", std::process::id()));
        fs::write(&draft, copy)?;
        fs::rename(draft, self.path(RULES))
    }
}

impl Moving {
    /// Returns the data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.files.data
    }

    /// Returns the decisions that wait, the oldest first.
    pub(crate) fn lines(&self) -> io::Result<Vec<Value>> {
        let (spool, moving) = (self.files.path(SPOOL), self.files.path(MOVING));
        // What somebody has begun and not finished comes first.
        if !moving.exists() && spool.exists() {
            let _lock = self.files.lock(LOCK, Hold::Alone, LOCK_TIMEOUT)?;
            fs::rename(spool, &moving)?;
        }
        let text = match fs::read_to_string(moving) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Keeps only these lines: the others are in the database now.
    pub(crate) fn keep(&self, lines: &[Value]) -> io::Result<()> {
        let moving = self.files.path(MOVING);
        let _lock = self.files.lock(LOCK, Hold::Alone, LOCK_TIMEOUT)?;
        if lines.is_empty() {
            return fs::remove_file(moving);
        }
        let text: String = lines.iter().flat_map(|line| [line.to_string(), "\n".into()]).collect();
        let mut file = File::options().write(true).open(moving)?;
        overwrite(&mut file, text.as_bytes())
    }
}

/// Locks a file; fails if others have it for too long.
fn locked(file: &File, hold: Hold, timeout: Duration) -> io::Result<()> {
    let deadline = Instant::now() + timeout;
    loop {
        let tried = match hold {
            Hold::Shared => file.try_lock_shared(),
            Hold::Alone => file.try_lock(),
        };
        match tried {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Adds a line with one call, so that lines of several processes are not mixed.
fn append(path: &Path, line: &Value) -> io::Result<()> {
    // Whoever can write here could put a pipe in place of the file, which would wait for its reader.
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other("not a file"));
    }
    let mut file = File::options().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Replaces what a file holds, byte by byte: what is shorter leaves no end of what was there before.
fn overwrite(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let old_length = file.metadata()?.len();
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)?;
    io::copy(&mut io::repeat(0).take(old_length.saturating_sub(length)), file)?;
    file.sync_data()?;
    file.set_len(length)?;
    file.sync_all()
}

/// Returns the end of a file, from the beginning of a line.
fn read_end(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let start = file.metadata()?.len().saturating_sub(2 * LOG_SIZE_BYTES_MAX);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(2 * LOG_SIZE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
