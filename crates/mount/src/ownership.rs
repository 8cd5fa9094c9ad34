//! Owner, mode and other constant attributes of files and directories.

use std::time::SystemTime;

use fuser::{FileAttr, FileType, INodeNo};
use quipu_core::model::Access;

/// The owner that files are shown with, and who may access them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ownership {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) sharing: Sharing,
}

/// Who may use a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The user who mounted it.
    Owner,
    /// Every user of the host.
    Everyone,
}

pub(crate) const BLOCK_SIZE_BYTES: u32 = 4096;

impl Ownership {
    pub(crate) fn directory(self, ino: u64, changed_at: SystemTime, access: Access) -> FileAttr {
        let attributes = self.attributes(ino, FileType::Directory, changed_at);
        FileAttr { perm: self.mode(access) | 0o111, nlink: 2, ..attributes }
    }

    pub(crate) fn file(self, ino: u64, changed_at: SystemTime, access: Access) -> FileAttr {
        let attributes = self.attributes(ino, FileType::RegularFile, changed_at);
        FileAttr { perm: self.mode(access), ..attributes }
    }

    fn attributes(self, ino: u64, kind: FileType, changed_at: SystemTime) -> FileAttr {
        FileAttr {
            ino: INodeNo(ino),
            size: 0,
            blocks: 0,
            atime: changed_at,
            mtime: changed_at,
            ctime: changed_at,
            crtime: changed_at,
            kind,
            perm: 0,
            nlink: 1,
            uid: self.user,
            gid: self.group,
            rdev: 0,
            blksize: BLOCK_SIZE_BYTES,
            flags: 0,
        }
    }

    fn mode(self, access: Access) -> u16 {
        match (access, self.sharing) {
            (Access::ReadOnly, _) => 0o444,
            (Access::ReadWrite, Sharing::Owner) => 0o644,
            (Access::ReadWrite, Sharing::Everyone) => 0o666,
        }
    }
}
