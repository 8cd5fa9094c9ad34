//! Whether a text is the one that was stored.
//!
//! A disk can return other bytes than were written. Every text has a hash, so such a text is found
//! out when it is read, and is not handed on as if somebody had written it.

use crate::model::{Memory, Version, VersionId};
use crate::{Error, ErrorKind};

/// What has a text with a hash.
pub(super) trait Intact: Sized {
    /// Fails if the text, if there is one, does not fit its hash.
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
