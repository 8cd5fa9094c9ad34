//! Detects bit rot.
//!
//! A disk can return other bytes than were written. Every text has a hash that is checked when it is
//! read, so that a corrupt text is never returned as if somebody had written it, and never copied into
//! a new version with a hash that fits.

use crate::model::{Memory, Version, VersionId};
use crate::{Error, ErrorKind};

/// A row that has a text with a hash.
pub(super) trait Intact: Sized {
    /// Fails if there is a text that does not match its hash.
    fn intact(self) -> Result<Self, Error>;
}

impl Intact for Memory {
    fn intact(self) -> Result<Self, Error> {
        match &self.content {
            Some(content) if content.hash() != self.hash => Err(damaged(self.version)),
            Some(_) | None => Ok(self),
        }
    }
}

impl Intact for Version {
    fn intact(self) -> Result<Self, Error> {
        match &self.content {
            Some(content) if Some(content.hash()) != self.hash => Err(damaged(self.id)),
            Some(_) | None => Ok(self),
        }
    }
}

fn damaged(version: VersionId) -> Error {
    Error::new(
        ErrorKind::StorageUnusable,
        format!("the text of `{version}` is damaged: it does not fit its hash"),
    )
    .with_hint("`quipu check` lists all that is damaged; restore an older version, or a backup")
}
