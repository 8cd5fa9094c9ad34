//! A no-op file system: the cost of FUSE itself on a host, with the same library.
//!
//! It can be written to as well, and forgets what is written.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, Session, WriteFlags,
};

use crate::engine::text;

/// The same notes as in the other file systems. It answers each request with prepared data and has
/// neither stores, handles nor changes; new files are accepted and stay empty.
struct Nothing {
    texts: Vec<String>,
}

const ROOT: u64 = 1;
const NOTES: u64 = 2;
/// The first inode of the files.
const FIRST: u64 = 3;
/// How long the kernel may cache replies.
const KEPT_FOR: Duration = Duration::from_hours(24);

/// Mounts the notes in a directory until the session is dropped.
pub(super) fn mount(root: &Path, files: u32) -> BackgroundSession {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("nothing".to_owned()), MountOption::NoAtime];
    let nothing = Nothing { texts: (0..files.into()).map(text).collect() };
    let session = Session::new(nothing, root, &config).expect("it can be mounted");
    session.spawn().expect("it can be served")
}

impl Nothing {
    fn attributes(&self, ino: u64) -> FileAttr {
        let (kind, perm) = match ino {
            ROOT | NOTES => (FileType::Directory, 0o755),
            _ => (FileType::RegularFile, 0o644),
        };
        let size = self.text(ino).len().try_into().expect("a text is short");
        FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: 4,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Returns the inode that a name has or would have.
    fn ino(name: &OsStr) -> Option<u64> {
        let number = name.to_str()?.strip_suffix(".md")?.parse::<u64>().ok()?;
        Some(FIRST + number)
    }

    fn text(&self, ino: u64) -> &str {
        let place = ino.checked_sub(FIRST).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.texts.get(place)).map_or("", String::as_str)
    }
}

impl Filesystem for Nothing {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let wanted = InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_PARALLEL_DIROPS;
        config.add_capabilities(wanted & config.capabilities()).unwrap_or_default();
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = match parent.0 {
            ROOT => (name == "notes").then_some(NOTES),
            _ => Self::ino(name).filter(|ino| !self.text(*ino).is_empty()),
        };
        match found {
            Some(ino) => reply.entry(&KEPT_FOR, &self.attributes(ino), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&KEPT_FOR, &self.attributes(ino.0));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let Some(ino) = Self::ino(name) else { return reply.error(Errno::EINVAL) };
        let (attributes, flags) = (self.attributes(ino), FopenFlags::FOPEN_KEEP_CACHE);
        reply.created(&KEPT_FOR, &attributes, Generation(0), FileHandle(0), flags);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.written(u32::try_from(bytes.len()).expect("a text is short"));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let text = self.text(ino.0).as_bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let end = start.saturating_add(size as usize).min(text.len());
        reply.data(text.get(start..end).unwrap_or_default());
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR;
        reply.opened(FileHandle(0), flags);
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let entries: Vec<_> = match ino.0 {
            ROOT => vec![(NOTES, "notes".to_owned())],
            _ => (0..self.texts.len() as u64)
                .map(|number| (FIRST + number, format!("{number:06}.md")))
                .collect(),
        };
        let rest = entries.iter().zip(1..).skip(usize::try_from(offset).unwrap_or(usize::MAX));
        for ((ino, name), next) in rest {
            let attributes = self.attributes(*ino);
            if reply.add(INodeNo(*ino), next, name, &KEPT_FOR, &attributes, Generation(0)) {
                break;
            }
        }
        reply.ok();
    }
}
