//! The write lock between processes: a fair queue, a seqlock and a wake-up in one file.
//!
//! **Lock.** SQLite admits one writer at a time; the others sleep and retry (`busy_timeout`), in no order,
//! and the unlucky one starves. So a writer takes an exclusive `flock` on the lock file first, on which
//! the kernel blocks without using any processor time. The kernel releases it with the
//! process, however that dies, so there is no stale lock to clean up, as a file with a process id in it
//! would leave.
//!
//! **Fairness.** `flock` wakes its waiters, but a writer that releases the lock and takes it again is
//! faster than any of them. Hence a second lock, the turnstile, which is held while waiting for the
//! first: whoever comes back must pass the turnstile too, behind the one who waits in it.
//!
//! **Deadline.** A process can be stopped while it holds the lock, and then nobody gets in. So a wait
//! has a deadline ([`TimedCall`]), and the holder leaves its name in the file for the error message of
//! those whose deadline has passed.
//!
//! **Seqlock.** The first eight bytes of the lock file are a count, odd while a writer is inside and the
//! next even number afterwards. While it stands still, nothing has changed, which is what
//! [`crate::recall`] relies on. SQLite's own `PRAGMA data_version` would need a connection
//! and a read transaction to say the same; this is one `pread`. A writer that dies inside
//! leaves the count odd, and readers go to the database until the next writer repairs it.
//!
//! **Wake-up.** The count is written at the end of each turn, so watching the file ([`crate::feed`]) is
//! enough to learn of commits by other processes: it is the bell that the last writer rings on leaving.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::LockHeld;
use quipu_core::clock::{Clock as _, SystemClock};

use crate::error::{self, StorageResult as _};
use crate::holder::{HOLDER_SIZE, Holder};
use crate::sync::{Arc, Instant};
use crate::timed_call::TimedCall;

/// The lock file of a data directory, open in this process.
#[derive(Debug)]
pub(crate) struct Gate {
    file: Arc<File>,
    path: PathBuf,
    turnstile: File,
    turnstile_path: PathBuf,
    /// What this process calls itself.
    program: String,
    /// How long writers wait.
    timeout: Duration,
    blocked: TimedCall<File>,
}

/// Where the name of the holder is in the file, after the count of turns.
const HOLDER_OFFSET: u64 = 8;

impl Gate {
    /// Opens the two files, whose names are given, in a directory.
    pub(crate) fn open(
        [path, turnstile_path]: [PathBuf; 2],
        program: &str,
        timeout: Duration,
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        crate::open::owner_only(&mut options);
        Ok(Self {
            file: Arc::new(options.open(&path)?),
            path,
            turnstile: options.open(&turnstile_path)?,
            turnstile_path,
            program: program.to_owned(),
            timeout,
            blocked: TimedCall::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the count of turns, for readers.
    pub(crate) fn turn_count(&self) -> TurnCount {
        TurnCount(Arc::clone(&self.file))
    }

    /// Returns when a writer that arrives now gives up.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Waits until the deadline for the lock and takes it.
    pub(crate) fn enter(&self, deadline: Instant) -> Result<GateGuard, Error> {
        let file = self.locked(deadline)?;
        // From here on, dropping it unlocks the file.
        let guard = GateGuard { file };
        // An odd count was left by a writer that died inside. Moving on to another odd number in either
        // case keeps every turn distinct, so that one long hold can be told from many short ones.
        let turn = (read_count(&guard.file).or_storage_error()? | 1).wrapping_add(2);
        let holder = Holder::new(&self.program, SystemClock.now());
        let mut record = turn.to_le_bytes().to_vec();
        record.extend(holder.to_bytes());
        write_all_at(&guard.file, &record, 0).or_storage_error()?;
        Ok(guard)
    }

    /// Returns an open file that holds the lock.
    fn locked(&self, deadline: Instant) -> Result<Lock, Error> {
        if self.try_lock().or_storage_error()? {
            return Ok(Lock(Arc::clone(&self.file)));
        }
        // `flock` has no timeout. So a thread blocks on it in our place, with open files of its own: a
        // lock belongs to the open file description, and if the thread gets it after everybody here has
        // given up, closing that file must not release a lock that another thread holds by now.
        let (path, turnstile_path) = (self.path.clone(), self.turnstile_path.clone());
        let holder = Holder::new(&self.program, SystemClock.now());
        let waited = self.blocked.wait_until(deadline, move || {
            let turnstile = File::options().read(true).write(true).open(turnstile_path)?;
            lock_uninterrupted(&turnstile)?;
            // A process can be stopped here too, and then it is the one that everybody waits for.
            write_all_at(&turnstile, &holder.to_bytes(), 0)?;
            let file = File::options().read(true).write(true).open(path)?;
            lock_uninterrupted(&file)?;
            Ok(file)
        });
        match waited {
            Some(file) => Ok(Lock(Arc::new(file.or_storage_error()?))),
            None => Err(self.busy()),
        }
    }

    /// Takes the lock if nobody has it and nobody waits for it.
    fn try_lock(&self) -> io::Result<bool> {
        if !is_locked(self.turnstile.try_lock())? {
            return Ok(false);
        }
        let locked = is_locked(self.file.try_lock());
        self.turnstile.unlock()?;
        locked
    }

    /// Returns who holds the lock, or the turnstile in front of it: behind a process that was stopped
    /// while it waited, nobody gets in either.
    pub(crate) fn held(&self) -> io::Result<Option<LockHeld>> {
        // Separate open files: through `self.file`, this process would be granted the lock that its own
        // writer holds, and would release it afterwards.
        let probes = [File::open(&self.path)?, File::open(&self.turnstile_path)?];
        let mut is_free = true;
        for probe in &probes {
            is_free &= is_locked(probe.try_lock_shared())?;
        }
        if is_free {
            return Ok(None);
        }
        let unknown = || "another program that does not identify itself".to_owned();
        let holder = self.holder().map_or_else(unknown, |holder| holder.to_string());
        Ok(Some(LockHeld { turn: read_count(&self.file)?, holder }))
    }

    /// Returns the error for a writer whose deadline has passed; it names the holder.
    pub(crate) fn busy(&self) -> Error {
        error::held(self.timeout, self.holder().as_ref())
    }

    /// Returns the process that left its name, in the lock file or in the turnstile.
    ///
    /// The thread that blocks on behalf of this process leaves this process's own name in the turnstile.
    /// If the lock is held by a foreign program that leaves no name, that is not who is waited for.
    fn holder(&self) -> Option<Holder> {
        let mut bytes = [0; HOLDER_SIZE];
        let is_inside = read_count(&self.file).is_ok_and(|count| count % 2 == 1);
        let read = if is_inside {
            read_at(&self.file, &mut bytes, HOLDER_OFFSET)
        } else {
            read_at(&self.turnstile, &mut bytes, 0)
        };
        let holder = read.ok().and_then(|_| Holder::from_bytes(&bytes))?;
        (is_inside || !holder.is_this_process()).then_some(holder)
    }
}

fn is_locked(result: Result<(), TryLockError>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// An open file that holds the lock.
#[derive(Debug)]
struct Lock(Arc<File>);

impl std::ops::Deref for Lock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An unlock fails only if the file is not open, and then it is not locked.
        self.0.unlock().unwrap_or_default();
    }
}

/// The turn of a writer; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct GateGuard {
    file: Lock,
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        let outside = read_count(&self.file).map(|count| (count | 1).wrapping_add(1));
        let counted = outside.and_then(|count| write_all_at(&self.file, &count.to_le_bytes(), 0));
        // If this fails, the count stays odd, and readers go to the database: slower, never wrong.
        counted.unwrap_or_default();
    }
}

/// The count of turns, as readers see it.
#[derive(Clone, Debug)]
pub(crate) struct TurnCount(Arc<File>);

impl TurnCount {
    /// Returns the count; `None` while a writer is inside, or if it cannot be read.
    pub(crate) fn get(&self) -> Option<u64> {
        read_count(&self.0).ok().filter(|count| count.is_multiple_of(2))
    }
}

fn lock_uninterrupted(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reads the count at the beginning of a lock file; that of a new file is zero.
fn read_count(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    read_at(file, &mut bytes, 0)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads at most a buffer of bytes; the rest of the buffer stays as it is.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_at(file, buffer, offset);
    #[cfg(windows)]
    return std::os::windows::fs::FileExt::seek_read(file, buffer, offset);
}

fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    let written = std::os::unix::fs::FileExt::write_at(file, bytes, offset)?;
    #[cfg(windows)]
    let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
    if written == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}
