//! The read-only directory that holds the mounted stores. Nothing can be created in it, not even by
//! root.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyDirectory, ReplyEmpty, ReplyEntry, Request,
    TimeOrNow,
};
use quipu_core::model::Access;

use crate::nodes::ROOT;
use crate::ownership::Ownership;

/// A directory of directories.
#[derive(Debug)]
pub(crate) struct RootDirectory {
    pub(crate) names: Vec<String>,
    pub(crate) ownership: Ownership,
}

/// It never changes.
const KEPT_FOR: Duration = Duration::from_hours(24 * 365);

impl RootDirectory {
    fn attributes(&self, ino: u64) -> FileAttr {
        self.ownership.directory(ino, UNIX_EPOCH, Access::ReadOnly)
    }

    /// Returns the number of the directory of this name.
    fn ino(&self, name: &OsStr) -> Option<u64> {
        (ROOT + 1..).zip(&self.names).find(|(_, known)| known.as_str() == name).map(|(ino, _)| ino)
    }
}

impl Filesystem for RootDirectory {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.ino(name).filter(|_| parent.0 == ROOT) {
            Some(ino) => reply.entry(&KEPT_FOR, &self.attributes(ino), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&KEPT_FOR, &self.attributes(ino.0));
    }

    // Changes are refused here as well: root can remount a read-only file system as writable, and
    // then the kernel forwards them.

    fn setattr(
        &self,
        _: &Request,
        _ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.error(Errno::EROFS);
    }

    fn mknod(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EROFS);
    }

    fn mkdir(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EROFS);
    }

    fn create(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EROFS);
    }

    fn symlink(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _target: &Path,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EROFS);
    }

    fn link(&self, _: &Request, _ino: INodeNo, _parent: INodeNo, _name: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn unlink(&self, _: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn rmdir(&self, _: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn rename(
        &self,
        _: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _new_parent: INodeNo,
        _new_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let names = if ino.0 == ROOT { self.names.as_slice() } else { &[] };
        let entries = (ROOT + 1..).zip(names).zip(1..).skip(skipped);
        for ((ino, name), next) in entries {
            if reply.add(INodeNo(ino), next, FileType::Directory, name) {
                break;
            }
        }
        reply.ok();
    }
}
