//! The queue of writers from many processes.
//!
//! SQLite lets one writer in at a time; others must try again and again and may give up. So Quipu
//! takes a file lock first, on which the kernel lets writers wait in line without using any
//! processor time. The lock ends with its process, however that dies.
//!
//! The lock file is also a bell: its first byte is written when a writer enters and when its
//! commit can be seen, and whoever watches the file wakes up.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The lock file of a data directory, open in this process.
#[derive(Debug)]
pub(crate) struct Gate {
    file: File,
    path: PathBuf,
}

impl Gate {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        crate::open::owner_only(&mut options);
        Ok(Self { file: options.open(path)?, path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for its turn and enters.
    pub(crate) fn enter(&self) -> io::Result<()> {
        loop {
            match self.file.lock() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result.and_then(|()| self.require_present()),
            }
        }
    }

    /// Fails if somebody has removed the data directory. The database would still take writes,
    /// but they would be gone with the process.
    fn require_present(&self) -> io::Result<()> {
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&self.file.metadata()?) == 0 {
            self.leave();
            return Err(io::Error::new(ErrorKind::NotFound, "the data directory is gone"));
        }
        Ok(())
    }

    /// Lets the next writer in.
    pub(crate) fn leave(&self) {
        // An unlock fails only if the file is not open, and then it is not locked.
        self.file.unlock().unwrap_or_default();
    }

    /// Wakes whoever watches the file.
    pub(crate) fn ring(&self) {
        // The bell is a hint: waiters also look when their patience ends.
        #[cfg(unix)]
        let rung = std::os::unix::fs::FileExt::write_at(&self.file, b"!", 0);
        #[cfg(windows)]
        let rung = std::os::windows::fs::FileExt::seek_write(&self.file, b"!", 0);
        rung.unwrap_or_default();
    }
}
