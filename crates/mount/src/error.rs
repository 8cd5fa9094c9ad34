//! Errors of calls on the tree, and their errnos.

use fuser::Errno;
use quipu_core::model::{ContentError, PathError};
use quipu_core::{Error, ErrorKind};

/// An error of a file system call; each variant is one errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeError {
    /// `ENOENT`: nothing is there.
    NotFound,
    /// `EEXIST`: something is there already.
    Exists,
    /// `ENOTDIR`: it is a file.
    NotDirectory,
    /// `EISDIR`: it is a directory.
    IsDirectory,
    /// `ENOTEMPTY`: the directory holds something.
    NotEmpty,
    /// `EINVAL`: the path breaks a rule, or the call makes no sense.
    Invalid,
    /// `ENAMETOOLONG`: the path is too long.
    NameTooLong,
    /// `EILSEQ`: the text or the name is not UTF-8, or the text holds a NUL.
    NotText,
    /// `EFBIG`: the text is longer than a memory may be.
    TooLarge,
    /// `EDQUOT`: the store is full.
    StoreFull,
    /// `ENOSPC`: the disk is full.
    DiskFull,
    /// `EROFS`: the mount is read only or the store archived.
    ReadOnly,
    /// `EPERM`: memories cannot be this kind of thing.
    NotPermitted,
    /// `EACCES`: the store refuses this text.
    Refused,
    /// `EBADF`: the handle is not open, or not for this.
    BadHandle,
    /// `EBUSY`: other doors keep changing what the call is about.
    Busy,
    /// `ESTALE`: the store was deleted, or the file is no longer what was opened.
    Stale,
    /// `EIO`: the storage does not work.
    Storage,
}

/// Returns the errno for an error. `docs/mount.md` lists them.
pub(crate) fn errno(error: TreeError) -> Errno {
    match error {
        TreeError::NotFound => Errno::ENOENT,
        TreeError::Exists => Errno::EEXIST,
        TreeError::NotDirectory => Errno::ENOTDIR,
        TreeError::IsDirectory => Errno::EISDIR,
        TreeError::NotEmpty => Errno::ENOTEMPTY,
        TreeError::Invalid => Errno::EINVAL,
        TreeError::NameTooLong => Errno::ENAMETOOLONG,
        TreeError::NotText => Errno::EILSEQ,
        TreeError::TooLarge => Errno::EFBIG,
        TreeError::StoreFull => Errno::EDQUOT,
        TreeError::DiskFull => Errno::ENOSPC,
        TreeError::ReadOnly => Errno::EROFS,
        TreeError::NotPermitted => Errno::EPERM,
        TreeError::Refused => Errno::EACCES,
        TreeError::BadHandle => Errno::EBADF,
        TreeError::Busy => Errno::EBUSY,
        TreeError::Stale => Errno::ESTALE,
        TreeError::Storage => Errno::EIO,
    }
}

impl TreeError {
    /// Replaces `this` by `other`, where the error means something else to the caller.
    pub(crate) fn instead_of(self, this: Self, other: Self) -> Self {
        if self == this { other } else { self }
    }
}

impl From<Error> for TreeError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::Ambiguous => Self::Invalid,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::PathConflict { .. } => Self::Exists,
            ErrorKind::PreconditionFailed => Self::Stale,
            ErrorKind::StoreArchived => Self::ReadOnly,
            ErrorKind::ContentTooLarge => Self::TooLarge,
            ErrorKind::LimitReached => Self::StoreFull,
            ErrorKind::SecretRefused | ErrorKind::AccessDenied => Self::Refused,
            ErrorKind::StorageFull => Self::DiskFull,
            ErrorKind::HeadNotRedactable
            | ErrorKind::EraseIncomplete
            | ErrorKind::StorageBusy
            | ErrorKind::StorageUnavailable
            | ErrorKind::StorageUnusable => {
                tracing::error!(%error, source = ?std::error::Error::source(&error), "storage failed");
                Self::Storage
            }
        }
    }
}

impl From<PathError> for TreeError {
    fn from(error: PathError) -> Self {
        match error {
            PathError::TooLong => Self::NameTooLong,
            PathError::NotAbsolute
            | PathError::NotADirectory
            | PathError::EmptySegment
            | PathError::DotSegment
            | PathError::TooDeep
            | PathError::ForbiddenCharacter
            | PathError::NotNfc => Self::Invalid,
        }
    }
}

impl From<ContentError> for TreeError {
    fn from(_: ContentError) -> Self {
        Self::NotText
    }
}
