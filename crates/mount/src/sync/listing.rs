//! Directories, listed with as few system calls and allocations as possible.
//!
//! Most files of a folder have not changed, so most of the time of a sync is spent on asking for
//! their stat data. `std::fs::ReadDir` allocates each name twice and converts each time, which adds
//! a sixth to the bare system calls. On Linux, `getdents` and `statx` are called directly: names are
//! borrowed from the buffer, and files are named relative to their open directory.

use std::path::{Path, PathBuf};

use super::stamp::{Identity, Stamp};

#[cfg(target_os = "linux")]
pub(super) use linux::{Entry, Listing};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{Entry, Listing};

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Directory,
    Symlink,
    /// A device, a socket or a pipe.
    Special,
}

/// The stat data of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStat {
    /// `None` if the file system does not keep the time of birth.
    pub(super) identity: Option<Identity>,
    pub(super) stamp: Stamp,
}

/// What identifies a file and changes whenever it is written.
pub(super) type Fingerprint = (Identity, Stamp);

impl FileStat {
    pub(super) fn fingerprint(self) -> Option<Fingerprint> {
        Some((self.identity?, self.stamp))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CStr, CString, OsStr};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags, openat, statx};

    use super::{EntryKind, FileStat, Identity, Path, PathBuf, Stamp};

    /// The size of the buffer for entries, as in glibc.
    const BUFFER_SIZE_BYTES: usize = 32 * 1024;

    /// An open directory.
    pub(in super::super) struct Listing<'a> {
        place: &'a Path,
        directory: OwnedFd,
    }

    /// An entry of a directory.
    pub(in super::super) struct Entry<'a> {
        listing: &'a Listing<'a>,
        name: &'a CStr,
        kind: EntryKind,
    }

    impl<'a> Listing<'a> {
        pub(in super::super) fn open(place: &'a Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(Self { place, directory: openat(CWD, place, flags, Mode::empty())? })
        }

        /// Visits every entry, in no particular order; after an error there are no more.
        pub(in super::super) fn for_each(&self, mut visit: impl FnMut(io::Result<Entry<'_>>)) {
            let mut buffer = Vec::with_capacity(BUFFER_SIZE_BYTES);
            let mut entries = RawDir::new(&self.directory, buffer.spare_capacity_mut());
            while let Some(entry) = entries.next() {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => return visit(Err(error.into())),
                };
                if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                    visit(Ok(self.entry(entry.file_name(), entry.file_type())));
                }
            }
        }

        /// Calls `visit` with the entry of a name that was listed before.
        pub(in super::super) fn with_entry(
            &self,
            (name, kind): (&str, EntryKind),
            visit: impl FnOnce(Entry<'_>),
        ) {
            if let Ok(name) = CString::new(name) {
                visit(Entry { listing: self, name: &name, kind });
            }
        }

        fn entry<'b>(&'b self, name: &'b CStr, file_type: FileType) -> Entry<'b> {
            // Some file systems do not tell the type of an entry.
            let is_unknown = file_type == FileType::Unknown;
            let kind = if is_unknown { self.kind_of(name) } else { kind(file_type) };
            Entry { listing: self, name, kind }
        }

        fn kind_of(&self, name: &CStr) -> EntryKind {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let found = statx(&self.directory, name, flags, StatxFlags::TYPE);
            found.map_or(EntryKind::Special, |found| {
                kind(FileType::from_raw_mode(found.stx_mode.into()))
            })
        }
    }

    impl Entry<'_> {
        pub(in super::super) fn name(&self) -> &OsStr {
            OsStr::from_bytes(self.name.to_bytes())
        }

        pub(in super::super) fn kind(&self) -> EntryKind {
            self.kind
        }

        pub(in super::super) fn place(&self) -> PathBuf {
            self.listing.place.join(self.name())
        }

        /// Returns the stat data of the file; `None` if the system does not tell.
        pub(in super::super) fn stat(&self) -> Option<FileStat> {
            let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let found = statx(&self.listing.directory, self.name, flags, wanted).ok()?;
            Some(FileStat { identity: Identity::of_statx(&found), stamp: Stamp::of_statx(&found)? })
        }
    }

    fn kind(file_type: FileType) -> EntryKind {
        match file_type {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => EntryKind::Special,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::ffi::{OsStr, OsString};
    use std::{fs, io};

    use super::{EntryKind, FileStat, Identity, Path, PathBuf, Stamp};

    /// A directory.
    pub(in super::super) struct Listing<'a> {
        place: &'a Path,
        entries: std::cell::Cell<Option<fs::ReadDir>>,
    }

    /// An entry of a directory.
    pub(in super::super) struct Entry<'a> {
        place: &'a Path,
        name: OsString,
        kind: EntryKind,
    }

    impl<'a> Listing<'a> {
        pub(in super::super) fn open(place: &'a Path) -> io::Result<Self> {
            Ok(Self { place, entries: std::cell::Cell::new(Some(fs::read_dir(place)?)) })
        }

        /// Visits every entry, in no particular order.
        pub(in super::super) fn for_each(&self, mut visit: impl FnMut(io::Result<Entry<'_>>)) {
            for entry in self.entries.take().into_iter().flatten() {
                let entry = entry.and_then(|entry| {
                    let kind = kind(entry.file_type()?);
                    Ok(Entry { place: self.place, name: entry.file_name(), kind })
                });
                visit(entry);
            }
        }

        /// Calls `visit` with the entry of a name that was listed before.
        pub(in super::super) fn with_entry(
            &self,
            (name, kind): (&str, EntryKind),
            visit: impl FnOnce(Entry<'_>),
        ) {
            visit(Entry { place: self.place, name: name.into(), kind });
        }
    }

    impl Entry<'_> {
        pub(in super::super) fn name(&self) -> &OsStr {
            &self.name
        }

        pub(in super::super) fn kind(&self) -> EntryKind {
            self.kind
        }

        pub(in super::super) fn place(&self) -> PathBuf {
            self.place.join(&self.name)
        }

        /// Returns the stat data of the file; `None` if the system does not tell.
        pub(in super::super) fn stat(&self) -> Option<FileStat> {
            let metadata = self.place().symlink_metadata().ok()?;
            Some(FileStat { identity: Identity::of(&metadata), stamp: Stamp::of(&metadata)? })
        }
    }

    fn kind(file_type: fs::FileType) -> EntryKind {
        if file_type.is_file() {
            EntryKind::File
        } else if file_type.is_dir() {
            EntryKind::Directory
        } else if file_type.is_symlink() {
            EntryKind::Symlink
        } else {
            EntryKind::Special
        }
    }
}
