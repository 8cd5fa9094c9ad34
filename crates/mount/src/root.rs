//! The directory that holds the mounted stores: nothing can be put in it, not even by root.

use std::ffi::OsStr;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, ReplyAttr,
    ReplyDirectory, ReplyEntry, Request,
};
use quipu_core::model::Access;

use crate::look::Look;
use crate::nodes::ROOT;

/// A directory of directories.
#[derive(Debug)]
pub(crate) struct RootDirectory {
    pub(crate) names: Vec<String>,
    pub(crate) look: Look,
}

/// It never changes.
const KEPT_FOR: Duration = Duration::from_hours(24 * 365);

impl RootDirectory {
    fn attributes(&self, ino: u64) -> FileAttr {
        self.look.directory(ino, UNIX_EPOCH, Access::ReadOnly)
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
