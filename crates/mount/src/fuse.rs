//! The kernel's side: translates FUSE requests to calls on a [`Tree`], and nothing else.

mod flags;
mod past;
mod replies;

use std::ffi::OsStr;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use quipu_core::model::Access;
use rustix::fs::{FileType as ModeType, OFlags};

pub(crate) use self::past::WithPast;

use self::flags::{o_flags, open_flags, open_mode};
use self::replies::{file_attributes, kept_for, reply_attributes, reply_empty, reply_entry};
use crate::blocking::BlockingPool;
use crate::error::errno;
use crate::names::Making;
use crate::nodes::ProcessId;
use crate::ownership::{BLOCK_SIZE_BYTES, Ownership};
use crate::tree::{NewFile, OpenMode, Overwrite, Tree};

/// A tree as the kernel sees it.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub(crate) tree: Arc<Tree>,
    pub(crate) ownership: Ownership,
    /// Signals that the tree is no longer mounted.
    pub(crate) ended: Sender<()>,
    /// Sends invalidations to the kernel; set before the first request arrives.
    pub(crate) notifier: Arc<OnceLock<Notifier>>,
    pub(crate) blocking: BlockingPool,
}

const NAME_SIZE_BYTES_MAX: u32 = 1023;
/// The first entries of every directory, at positions 1 and 2; the tree does not list them.
const DOTS: [&str; 2] = [".", ".."];
/// A memory is smaller than this, so one request writes it.
const WRITE_SIZE_BYTES_MAX: u32 = 128 * 1024;

impl Adapter {
    /// Runs a close or sync, on the blocking pool if it has to wait for the disk.
    fn end_write(&self, handle: FileHandle, call: impl FnOnce() + Send + 'static) {
        if self.tree.has_to_store(handle.0) {
            let tree = Arc::clone(&self.tree);
            self.blocking.run(move || {
                tree.wait_for_storage_if_parked();
                call();
            });
        } else {
            call();
        }
    }

    /// Runs a call that changes a file, on the blocking pool if it may have to wait for the disk.
    fn change(&self, ino: INodeNo, call: impl FnOnce() + Send + 'static) {
        if self.tree.is_busy(ino.0) { self.blocking.run(call) } else { call() }
    }

    /// Runs a call that changes directories, on the blocking pool if it may have to settle a parked
    /// memory.
    fn change_entries(&self, call: impl FnOnce() + Send + 'static) {
        if self.tree.has_parked() { self.blocking.run(call) } else { call() }
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // The requested mode distinguishes temporary files from others. With a umask of 077 applied
        // to it by the kernel, all files would look temporary.
        let mut wanted = InitFlags::FUSE_ATOMIC_O_TRUNC
            | InitFlags::FUSE_DONT_MASK
            | InitFlags::FUSE_DO_READDIRPLUS
            | InitFlags::FUSE_PARALLEL_DIROPS
            // Files that bypass the cache can be mapped all the same.
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP
            | InitFlags::FUSE_ASYNC_DIO;
        if self.tree.is_frozen() {
            // Without a message at the open, nobody could refuse one that truncates.
            wanted.remove(InitFlags::FUSE_ATOMIC_O_TRUNC);
        }
        let available = wanted & config.capabilities();
        // Only capabilities that the kernel offers are requested, so none can be refused.
        config.add_capabilities(available).unwrap_or_default();
        config.set_max_write(WRITE_SIZE_BYTES_MAX).map(drop).unwrap_or_default();
        Ok(())
    }

    fn destroy(&mut self) {
        // There may be no receiver.
        self.ended.send(()).unwrap_or_default();
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        // Negative entries must not be cached: the kernel would not ask again before the name is
        // invalidated, and another door may just have created a memory there.
        reply_entry(self.ownership, self.tree.lookup(parent.0, name), reply);
    }

    fn forget(&self, _: &Request, ino: INodeNo, lookups: u64) {
        self.tree.forget(ino.0, lookups);
    }

    fn getattr(&self, request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let process = ProcessId(request.pid());
        reply_attributes(self.ownership, self.tree.attributes_for(ino.0, process), reply);
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (tree, ownership) = (Arc::clone(&self.tree), self.ownership);
        let (file, writer) = ((ino.0, handle.map(|handle| handle.0)), ProcessId(request.pid()));
        let call = move || reply_attributes(ownership, tree.set(file, size, writer), reply);
        if size.is_some() && !self.tree.has_writers(ino.0) {
            self.blocking.run(call);
        } else {
            self.change(ino, call);
        }
    }

    fn mknod(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        if ModeType::from_raw_mode(mode) == ModeType::RegularFile {
            let (tree, ownership) = (Arc::clone(&self.tree), self.ownership);
            let name = name.to_owned();
            self.blocking.run(move || {
                reply_entry(ownership, tree.make_file(parent.0, &name), reply);
            });
        } else {
            reply.error(Errno::EPERM);
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let (tree, ownership, name) = (Arc::clone(&self.tree), self.ownership, name.to_owned());
        self.change_entries(move || {
            reply_entry(ownership, tree.make_directory(parent.0, &name), reply);
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (tree, name) = (Arc::clone(&self.tree), name.to_owned());
        self.blocking.run(move || reply_empty(tree.remove_file(parent.0, &name), reply));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (tree, name) = (Arc::clone(&self.tree), name.to_owned());
        self.change_entries(move || reply_empty(tree.remove_directory(parent.0, &name), reply));
    }

    fn symlink(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _target: &std::path::Path,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn link(&self, _: &Request, _ino: INodeNo, _parent: INodeNo, _name: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let overwrite = if flags.is_empty() {
            Overwrite::Yes
        } else if flags == RenameFlags::RENAME_NOREPLACE {
            Overwrite::No
        } else {
            return reply.error(Errno::EINVAL);
        };
        let (tree, process) = (Arc::clone(&self.tree), ProcessId(request.pid()));
        let (name, new_name) = (name.to_owned(), new_name.to_owned());
        self.blocking.run(move || {
            let (from, to) = ((parent.0, name.as_os_str()), (new_parent.0, new_name.as_os_str()));
            reply_empty(tree.rename(from, to, overwrite, process), reply);
        });
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if self.tree.is_frozen() {
            // From now on the kernel opens files without a message and relies on its page cache.
            return reply.error(Errno::ENOSYS);
        }
        let mode = open_mode(o_flags(flags.0));
        let (tree, notifier) = (Arc::clone(&self.tree), Arc::clone(&self.notifier));
        let process = ProcessId(request.pid());
        let call = move || match tree.open(ino.0, mode, process) {
            Ok(opened) => {
                let flags = open_flags(&notifier, ino.0, opened, mode);
                reply.opened(FileHandle(opened.handle), flags);
            }
            Err(error) => reply.error(errno(error)),
        };
        match mode {
            OpenMode::Read => call(),
            OpenMode::Write(_) => self.change(ino, call),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let size_bytes = usize::try_from(size).unwrap_or(usize::MAX);
        let read = if self.tree.is_frozen() {
            self.tree.read_unopened(ino.0, offset, size_bytes)
        } else {
            self.tree.read_open(handle.0, offset, size_bytes)
        };
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let is_mapped = write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let writer = if is_mapped { ProcessId::UNKNOWN } else { ProcessId(request.pid()) };
        let (tree, bytes) = (Arc::clone(&self.tree), bytes.to_vec());
        self.change(ino, move || match tree.write(handle.0, offset, &bytes, writer) {
            Ok(()) => reply.written(u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn flush(
        &self,
        request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        if self.tree.is_frozen() {
            // No close stores anything, so none needs a message.
            return reply.error(Errno::ENOSYS);
        }
        let (tree, closer) = (Arc::clone(&self.tree), ProcessId(request.pid()));
        self.end_write(handle, move || {
            reply_empty(tree.flush(handle.0, closer), reply);
        });
    }

    fn release(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let tree = Arc::clone(&self.tree);
        self.end_write(handle, move || {
            tree.release(handle.0);
            reply.ok();
        });
    }

    fn fsync(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        if self.tree.is_frozen() {
            // Its files are open without a handle, and there is nothing to store.
            return reply.ok();
        }
        let tree = Arc::clone(&self.tree);
        self.end_write(handle, move || {
            reply_empty(tree.sync(handle.0), reply);
        });
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // The kernel must not cache listings (FOPEN_CACHE_DIR). It resumes a listing by searching its
        // current cache for the last position, and if the name at that position is gone, it reports
        // the end of the directory: a silently truncated listing.
        match self.tree.open_directory(ino.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let dot = self.ownership.directory(ino.0, UNIX_EPOCH, Access::ReadOnly);
        for (name, position) in DOTS.iter().zip(1..) {
            if position > offset {
                // They always fit, and the kernel does not count them as lookups.
                reply.add(ino, position, name, &Duration::ZERO, &dot, Generation(0));
            }
        }
        let is_beginning = offset <= 2;
        let entries =
            match self.tree.read_directory(handle.0, if is_beginning { 0 } else { offset }) {
                Ok(entries) => entries,
                Err(error) => return reply.error(errno(error)),
            };
        for entry in entries {
            let shown = file_attributes(self.ownership, &entry.attributes);
            let ino = INodeNo(entry.attributes.ino);
            if reply.add(
                ino,
                entry.next,
                &entry.name,
                &kept_for(&entry.attributes),
                &shown,
                Generation(0),
            ) {
                break;
            }
            self.tree.count_lookup(ino.0);
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.tree.release_directory(handle.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        // Removals and most renames are durable when they return; what is parked is not.
        let tree = Arc::clone(&self.tree);
        self.change_entries(move || reply_empty(tree.sync_directory(ino.0), reply));
    }

    fn statfs(&self, _: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let usage = match self.tree.usage() {
            Ok(usage) => usage,
            Err(error) => return reply.error(errno(error)),
        };
        let blocks = |size_bytes: u64| size_bytes / u64::from(BLOCK_SIZE_BYTES);
        let free = blocks(usage.size_bytes_free);
        reply.statfs(
            blocks(usage.size_bytes_max),
            free,
            free,
            usage.memories_max,
            usage.memories_free,
            BLOCK_SIZE_BYTES,
            NAME_SIZE_BYTES_MAX,
            BLOCK_SIZE_BYTES,
        );
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = o_flags(flags);
        let is_exclusive = flags.contains(OFlags::EXCL);
        let is_private = is_exclusive && mode.trailing_zeros() >= 6;
        let new = NewFile {
            mode: open_mode(flags),
            making: if is_private { Making::Privately } else { Making::Openly },
            is_exclusive,
            creator: ProcessId(request.pid()),
        };
        match self.tree.create(parent.0, name, new) {
            Ok((attributes, opened)) => reply.created(
                &kept_for(&attributes),
                &file_attributes(self.ownership, &attributes),
                Generation(0),
                FileHandle(opened.handle),
                open_flags(&self.notifier, attributes.ino, opened, new.mode),
            ),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        _length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::ENOTSUP);
    }
}
