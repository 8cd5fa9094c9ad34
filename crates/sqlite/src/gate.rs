//! The queue of writers from many processes.
//!
//! SQLite lets one writer in at a time; others must poll and may starve. So Quipu takes a file lock
//! first, on which the kernel lets writers wait without using any processor time. The lock ends with
//! its process, however that dies.
//!
//! The kernel wakes those who wait, but a writer that leaves and comes back at once is faster than
//! any of them. So there is a second lock, a turnstile: it is held while waiting for the first one,
//! and whoever comes back must pass it too, behind the one who waits.
//!
//! A process can also be stopped while it is inside, and then nobody gets in. So a wait has a
//! deadline, and whoever is inside leaves its name in the file, for the error of those who have
//! waited in vain.
//!
//! The lock file doubles as a seqlock and as the wake-up for followers: the number at its beginning
//! is odd while a writer is inside, and another even one when nobody is. While it stands still, nothing
//! has changed, which [`crate::recall`] relies on; and since it is written at each turn, watching the
//! file is enough to learn of changes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::LockHeld;
use quipu_core::clock::{Clock as _, SystemClock};

use crate::error::{self, StorageResult as _};
use crate::holder::{HOLDER_SIZE, Holder};
use crate::patience::Patience;
use crate::sync::{Arc, Instant};

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
    waiting: Patience<File>,
}

/// Where the name of who is inside stands in the file, after the number of turns.
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
            waiting: Patience::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the counter, to be read by others.
    pub(crate) fn turns(&self) -> Turns {
        Turns(Arc::clone(&self.file))
    }

    /// Returns the moment at which a writer that comes now gives up.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Waits for its turn, until the deadline, and enters.
    pub(crate) fn enter(&self, deadline: Instant) -> Result<Inside, Error> {
        let file = self.locked(deadline)?;
        // From here on, dropping it unlocks the file.
        let inside = Inside { file };
        // One that was left odd was left by a writer that died inside.
        let turn = (read_number(&inside.file).or_storage_error()? | 1).wrapping_add(2);
        let holder = Holder::new(&self.program, SystemClock.now());
        let mut record = turn.to_le_bytes().to_vec();
        record.extend(holder.to_bytes());
        write_all_at(&inside.file, &record, 0).or_storage_error()?;
        Ok(inside)
    }

    /// Returns an open file that holds the lock.
    fn locked(&self, deadline: Instant) -> Result<Lock, Error> {
        if self.try_lock().or_storage_error()? {
            return Ok(Lock(Arc::clone(&self.file)));
        }
        // The kernel's queue knows no deadlines. So a thread of its own stands in it, with open files
        // of its own: a lock belongs to the open file, and if the thread's turn comes after everybody
        // here has given up, closing that file must not take away the lock of another.
        let (path, turnstile_path) = (self.path.clone(), self.turnstile_path.clone());
        let holder = Holder::new(&self.program, SystemClock.now());
        let waited = self.waiting.wait_until(deadline, move || {
            let turnstile = File::options().read(true).write(true).open(turnstile_path)?;
            lock_uninterrupted(&turnstile)?;
            // A process can be stopped here too.
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

    /// Returns who holds the lock, or the turnstile in front of it, if anybody does: behind a process
    /// that was stopped while it waited, nobody gets in either.
    pub(crate) fn held(&self) -> io::Result<Option<LockHeld>> {
        // Open files of their own: on shared ones, this process would not notice its own writer,
        // and would take the lock away from it afterwards.
        let probes = [File::open(&self.path)?, File::open(&self.turnstile_path)?];
        let mut is_free = true;
        for probe in &probes {
            is_free &= is_locked(probe.try_lock_shared())?;
        }
        if is_free {
            return Ok(None);
        }
        let unknown = || "another program that does not say who it is".to_owned();
        let holder = self.holder().map_or_else(unknown, |holder| holder.to_string());
        Ok(Some(LockHeld { turn: read_number(&self.file)?, holder }))
    }

    /// Returns the error for a writer that has waited too long: it says for whom.
    pub(crate) fn busy(&self) -> Error {
        error::held(self.timeout, self.holder().as_ref())
    }

    /// Returns who left their name, inside or while waiting.
    ///
    /// The thread that waits for this process leaves this process's name at the turnstile. If the
    /// lock is held by a program that leaves none, that is not who is waited for.
    fn holder(&self) -> Option<Holder> {
        let mut bytes = [0; HOLDER_SIZE];
        let is_inside = read_number(&self.file).is_ok_and(|number| number % 2 == 1);
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
pub(crate) struct Inside {
    file: Lock,
}

impl Drop for Inside {
    fn drop(&mut self) {
        let outside = read_number(&self.file).map(|number| (number | 1).wrapping_add(1));
        let counted = outside.and_then(|number| write_all_at(&self.file, &number.to_le_bytes(), 0));
        // If this fails, the number stays odd, and everybody looks for themselves.
        counted.unwrap_or_default();
    }
}

/// Reads how many turns there were.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<File>);

impl Turns {
    /// Returns the number of turns; `None` while a writer is inside, or if it cannot be known.
    pub(crate) fn count(&self) -> Option<u64> {
        read_number(&self.0).ok().filter(|number| number.is_multiple_of(2))
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

/// Reads the number at the beginning of a file; a new file has zero.
fn read_number(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    read_at(file, &mut bytes, 0)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Reads what is there; the rest of the buffer stays as it is.
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
