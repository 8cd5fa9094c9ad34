//! A tree together with its past, as the kernel sees them.
//!
//! Whatever concerns the store as it is goes on to the [`Adapter`] unchanged; what concerns the past is
//! answered here. The past cannot be written: each such call is `EROFS`, whoever makes it.
//!
//! `.quipu/at` is not listed anywhere, so no program that walks the tree walks all of its past. It is found
//! by those who know its name.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use quipu_core::model::Access;

use super::flags::{o_flags, open_flags, open_mode};
use super::replies::{
    file_attributes, kept_for, reply_attributes, reply_entry, reply_entry_briefly,
};
use super::{Adapter, DOTS};
use crate::error::{TreeError, errno};
use crate::nodes::{ProcessId, ROOT};
use crate::pasts::{AT, AT_NAME, HIDDEN, PastNode, Pasts, is_past};
use crate::tree::{Attributes, OWN_DIRECTORY, OpenMode};

/// A store and its past.
#[derive(Debug)]
pub(crate) struct WithPast {
    pub(crate) present: Adapter,
    pub(crate) pasts: Arc<Pasts>,
}

impl WithPast {
    /// Looks up a name that may be the way to the past.
    fn lookup_way(&self, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let tree = &self.present.tree;
        let found = match tree.lookup(parent.0, name) {
            Err(TreeError::NotFound) if parent.0 == ROOT && name == OWN_DIRECTORY => HIDDEN,
            Err(TreeError::NotFound) if tree.is_own_directory(parent.0) && name == AT_NAME => AT,
            // A memory of the store comes first.
            found => return reply_entry(self.present.ownership, found, reply),
        };
        reply_entry_briefly(self.present.ownership, Ok(self.pasts.own(found)), reply);
    }

    fn lookup_past(&self, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (parent, name) = (parent.0, name.to_owned());
        if parent == HIDDEN {
            let found =
                if name == AT_NAME { Ok(self.pasts.own(AT)) } else { Err(TreeError::NotFound) };
            return reply_entry_briefly(self.present.ownership, found, reply);
        }
        if parent == AT {
            let (pasts, ownership) = (Arc::clone(&self.pasts), self.present.ownership);
            return self.present.blocking.run(move || {
                reply_entry_briefly(ownership, pasts.moment(&name), reply);
            });
        }
        let found = self.pasts.branch(parent).and_then(|branch| {
            branch.tree.lookup(branch.ino, &name).map(|found| branch.outside(found))
        });
        reply_entry(self.present.ownership, found, reply);
    }

    fn past_attributes(&self, ino: INodeNo) -> Result<Attributes, TreeError> {
        match self.pasts.node(ino.0)? {
            PastNode::Own(attributes) => Ok(attributes),
            PastNode::Of(branch) => Ok(branch.outside(branch.tree.attributes(branch.ino)?)),
        }
    }

    fn open_past(&self, ino: INodeNo, flags: OpenFlags, process: ProcessId, reply: ReplyOpen) {
        let mode = open_mode(o_flags(flags.0));
        if mode != OpenMode::Read {
            return reply.error(Errno::EROFS);
        }
        let opened =
            self.pasts.branch(ino.0).and_then(|branch| branch.tree.open(branch.ino, mode, process));
        match opened {
            Ok(opened) => {
                let flags = open_flags(&self.present.notifier, ino.0, opened, mode);
                reply.opened(FileHandle(opened.handle), flags);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn list_past(
        &self,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<(), TreeError> {
        let ownership = self.present.ownership;
        let node = self.pasts.node(ino.0)?;
        let dot = ownership.directory(ino.0, UNIX_EPOCH, Access::ReadOnly);
        for (name, position) in DOTS.iter().zip(1..) {
            if position > offset {
                // They always fit, and the kernel does not count them as lookups.
                reply.add(ino, position, name, &Duration::ZERO, &dot, Generation(0));
            }
        }
        let PastNode::Of(branch) = node else { return Ok(()) };
        let from = if offset <= 2 { 0 } else { offset };
        for entry in branch.tree.read_directory(handle.0, from)? {
            let outside = branch.outside(entry.attributes);
            let shown = file_attributes(ownership, &outside);
            let ino = INodeNo(outside.ino);
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
            branch.tree.count_lookup(entry.attributes.ino);
        }
        Ok(())
    }

    /// Returns whether a name is that of the hidden directory, which cannot be removed or moved.
    fn is_hidden(&self, parent: INodeNo, name: &OsStr) -> bool {
        parent.0 == ROOT && name == OWN_DIRECTORY && !self.present.tree.has(parent.0, name)
    }
}

impl Filesystem for WithPast {
    fn init(&mut self, request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        self.present.init(request, config)
    }

    fn destroy(&mut self) {
        self.present.destroy();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if is_past(parent.0) {
            self.lookup_past(parent, name, reply);
        } else if name == OWN_DIRECTORY || name == AT_NAME {
            self.lookup_way(parent, name, reply);
        } else {
            self.present.lookup(request, parent, name, reply);
        }
    }

    fn forget(&self, request: &Request, ino: INodeNo, lookups: u64) {
        if !is_past(ino.0) {
            self.present.forget(request, ino, lookups);
        } else if let Ok(PastNode::Of(branch)) = self.pasts.node(ino.0) {
            branch.tree.forget(branch.ino, lookups);
        }
    }

    fn getattr(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        if is_past(ino.0) {
            reply_attributes(self.present.ownership, self.past_attributes(ino), reply);
        } else {
            self.present.getattr(request, ino, handle, reply);
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        crtime: Option<SystemTime>,
        chgtime: Option<SystemTime>,
        bkuptime: Option<SystemTime>,
        flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if is_past(ino.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.setattr(
            request, ino, mode, uid, gid, size, atime, mtime, ctime, handle, crtime, chgtime,
            bkuptime, flags, reply,
        );
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        if is_past(parent.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.mknod(request, parent, name, mode, umask, rdev, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        if is_past(parent.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.mkdir(request, parent, name, mode, umask, reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if is_past(parent.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.unlink(request, parent, name, reply);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if is_past(parent.0) || self.is_hidden(parent, name) {
            return reply.error(Errno::EROFS);
        }
        self.present.rmdir(request, parent, name, reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        if is_past(parent.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.symlink(request, parent, name, target, reply);
    }

    fn link(
        &self,
        request: &Request,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        if is_past(parent.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.link(request, ino, parent, name, reply);
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
        let is_to_own = new_parent.0 == ROOT && new_name == OWN_DIRECTORY;
        let is_hidden = is_to_own || self.is_hidden(parent, name);
        if is_past(parent.0) || is_past(new_parent.0) || is_hidden {
            return reply.error(Errno::EROFS);
        }
        self.present.rename(request, parent, name, new_parent, new_name, flags, reply);
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        // One `ENOSYS` is for all files of the mount.
        if is_past(ino.0) && !self.present.tree.is_frozen() {
            self.open_past(ino, flags, ProcessId(request.pid()), reply);
        } else {
            self.present.open(request, ino, flags, reply);
        }
    }

    fn read(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if !is_past(ino.0) {
            return self.present.read(request, ino, handle, offset, size, flags, owner, reply);
        }
        let size_bytes = usize::try_from(size).unwrap_or(usize::MAX);
        let read = self.pasts.branch(ino.0).and_then(|branch| {
            if self.present.tree.is_frozen() {
                branch.tree.read_unopened(branch.ino, offset, size_bytes)
            } else {
                branch.tree.read_open(handle.0, offset, size_bytes)
            }
        });
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
        flags: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if is_past(ino.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.write(request, ino, handle, offset, bytes, write_flags, flags, owner, reply);
    }

    fn flush(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        if is_past(ino.0) && !self.present.tree.is_frozen() {
            return reply.ok();
        }
        self.present.flush(request, ino, handle, owner, reply);
    }

    fn release(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        flags: OpenFlags,
        owner: Option<LockOwner>,
        flush: bool,
        reply: ReplyEmpty,
    ) {
        if !is_past(ino.0) {
            return self.present.release(request, ino, handle, flags, owner, flush, reply);
        }
        if let Ok(branch) = self.pasts.branch(ino.0) {
            branch.tree.release(handle.0);
        }
        reply.ok();
    }

    fn fsync(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        if is_past(ino.0) {
            return reply.ok();
        }
        self.present.fsync(request, ino, handle, datasync, reply);
    }

    fn opendir(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if !is_past(ino.0) {
            return self.present.opendir(request, ino, flags, reply);
        }
        let handle = match self.pasts.node(ino.0) {
            Ok(PastNode::Own(_)) => Ok(0),
            Ok(PastNode::Of(branch)) => branch.tree.open_directory(branch.ino),
            Err(error) => Err(error),
        };
        match handle {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn readdirplus(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        if !is_past(ino.0) {
            return self.present.readdirplus(request, ino, handle, offset, reply);
        }
        match self.list_past(ino, handle, offset, &mut reply) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn releasedir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        if !is_past(ino.0) {
            return self.present.releasedir(request, ino, handle, flags, reply);
        }
        if let Ok(PastNode::Of(branch)) = self.pasts.node(ino.0) {
            branch.tree.release_directory(handle.0);
        }
        reply.ok();
    }

    fn fsyncdir(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        if is_past(ino.0) {
            return reply.ok();
        }
        self.present.fsyncdir(request, ino, handle, datasync, reply);
    }

    fn statfs(&self, request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.present.statfs(request, ino, reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        if is_past(parent.0) {
            return reply.error(Errno::EROFS);
        }
        self.present.create(request, parent, name, mode, umask, flags, reply);
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.present.fallocate(request, ino, handle, offset, length, mode, reply);
    }
}
