//! The queue of writers from many processes.
//!
//! SQLite lets one writer in at a time; others must try again and again and may give up. So Quipu
//! takes a file lock first, on which the kernel lets writers wait in line without using any
//! processor time. The lock ends with its process, however that dies.
//!
//! The lock file also counts the turns: the number in it is odd while a writer is inside, and
//! another even one when nobody is. While it stands still, nothing has changed, which
//! [`crate::recall`] relies on; and since it is written at each turn, the file is a bell too:
//! whoever watches it wakes up.

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

    /// Returns the counter, to be read by others.
    pub(crate) fn turns(&self) -> io::Result<Turns> {
        self.file.try_clone().map(Turns)
    }

    /// Waits for its turn and enters.
    pub(crate) fn enter(&self) -> io::Result<()> {
        loop {
            match self.file.lock() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        }
        self.require_present()?;
        // One that was left odd was left by a writer that died inside.
        let inside = (read_number(&self.file)? | 1).wrapping_add(2);
        let counted = write_number(&self.file, inside);
        if counted.is_err() {
            self.unlock();
        }
        counted
    }

    /// Fails if somebody has removed the data directory. The database would still take writes,
    /// but they would be gone with the process.
    fn require_present(&self) -> io::Result<()> {
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&self.file.metadata()?) == 0 {
            self.unlock();
            return Err(io::Error::new(ErrorKind::NotFound, "the data directory is gone"));
        }
        Ok(())
    }

    /// Lets the next writer in.
    pub(crate) fn leave(&self) {
        let outside = read_number(&self.file).map(|number| number.wrapping_add(1));
        // If this fails, the number stays odd, and everybody looks for themselves.
        outside.and_then(|number| write_number(&self.file, number)).unwrap_or_default();
        self.unlock();
    }

    fn unlock(&self) {
        // An unlock fails only if the file is not open, and then it is not locked.
        self.file.unlock().unwrap_or_default();
    }
}

/// Reads how many turns there were.
#[derive(Debug)]
pub(crate) struct Turns(File);

impl Turns {
    /// Returns the number of turns; `None` while a writer is inside, or if it cannot be known.
    pub(crate) fn count(&self) -> Option<u64> {
        read_number(&self.0).ok().filter(|number| number.is_multiple_of(2))
    }
}

/// Reads the number at the beginning of a file; a new file has zero.
fn read_number(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    #[cfg(unix)]
    std::os::unix::fs::FileExt::read_at(file, &mut bytes, 0)?;
    #[cfg(windows)]
    std::os::windows::fs::FileExt::seek_read(file, &mut bytes, 0)?;
    Ok(u64::from_le_bytes(bytes))
}

fn write_number(file: &File, number: u64) -> io::Result<()> {
    let bytes = number.to_le_bytes();
    #[cfg(unix)]
    let written = std::os::unix::fs::FileExt::write_at(file, &bytes, 0)?;
    #[cfg(windows)]
    let written = std::os::windows::fs::FileExt::seek_write(file, &bytes, 0)?;
    if written == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}
