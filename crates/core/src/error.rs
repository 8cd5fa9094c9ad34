//! The one error type, named by what the caller can do about it.
//!
//! A message and a hint may be shown to anybody, including a model: they contain no host path, no
//! SQL and no secret. What went wrong underneath is the source, for logs.

use std::fmt;
use std::sync::Arc;

use crate::model::{ContentError, MemoryId, MemoryPath, PathError, TextError};

/// Why a request was not carried out. Nothing has changed when this is returned, unless
/// [`ErrorKind::EraseIncomplete`] says otherwise.
#[derive(Clone)]
pub struct Error(Box<Parts>);

#[derive(Clone)]
struct Parts {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// What the caller can do about an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request breaks a rule; correct it.
    InvalidInput,
    /// The thing does not exist; look at what does.
    NotFound,
    /// Several things fit; say which one is meant.
    Ambiguous,
    /// Another memory lives at the path, above it or below it; choose another path.
    PathConflict {
        /// The memory in the way.
        memory: MemoryId,
        /// Where it lives.
        path: MemoryPath,
    },
    /// The memory changed since the caller read it, or a plan since it was made; read it again and retry.
    PreconditionFailed,
    /// The store is archived and takes no new text.
    StoreArchived,
    /// The text is longer than a memory may be; shorten it.
    ContentTooLarge,
    /// A store or workspace is full; delete something or raise the limit.
    LimitReached,
    /// The text holds a credential, or brings back redacted text, and the store refuses that; take it out.
    SecretRefused,
    /// The version is what a live memory holds; write a new version or delete the memory first.
    HeadNotRedactable,
    /// The caller may not do this.
    AccessDenied,
    /// The version is redacted, but its text may still be in a file; the erasure must be repeated.
    EraseIncomplete,
    /// The disk is full; free some space.
    StorageFull,
    /// Another writer did not finish in time; try again, or end it if it hangs.
    StorageBusy,
    /// The storage cannot be read or written now.
    StorageUnavailable,
    /// The data is damaged or not Quipu's; restore a backup or choose another directory.
    StorageUnusable,
}

impl ErrorKind {
    /// Returns one of each kind, for tables that must be complete.
    pub fn examples() -> Vec<Self> {
        let memory = crate::model::Id::from_bits(0);
        let path = MemoryPath::parse("/notes").expect("the path is valid");
        vec![
            Self::InvalidInput,
            Self::NotFound,
            Self::Ambiguous,
            Self::PathConflict { memory, path },
            Self::PreconditionFailed,
            Self::StoreArchived,
            Self::ContentTooLarge,
            Self::LimitReached,
            Self::SecretRefused,
            Self::HeadNotRedactable,
            Self::AccessDenied,
            Self::EraseIncomplete,
            Self::StorageFull,
            Self::StorageBusy,
            Self::StorageUnavailable,
            Self::StorageUnusable,
        ]
    }

    /// Returns its stable name, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
            Self::PathConflict { .. } => "path_conflict",
            Self::PreconditionFailed => "precondition_failed",
            Self::StoreArchived => "store_archived",
            Self::ContentTooLarge => "content_too_large",
            Self::LimitReached => "limit_reached",
            Self::SecretRefused => "secret_refused",
            Self::HeadNotRedactable => "head_not_redactable",
            Self::AccessDenied => "access_denied",
            Self::EraseIncomplete => "erase_incomplete",
            Self::StorageFull => "storage_full",
            Self::StorageBusy => "storage_busy",
            Self::StorageUnavailable => "storage_unavailable",
            Self::StorageUnusable => "storage_unusable",
        }
    }
}

impl Error {
    /// Creates an error with a message that is lower case and has no full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Parts { kind, message: message.into(), hint: None, source: None }))
    }

    /// Creates the error for a request that breaks a rule.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Creates the error for something that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds what went wrong underneath.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Returns what the caller can do about it.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Returns what went wrong, safe to show.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns what to do next, safe to show.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("hint", &self.0.hint)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

macro_rules! invalid_input_from {
    ($($type:ty),*) => {$(
        impl From<$type> for Error {
            fn from(error: $type) -> Self {
                Self::invalid(error.to_string())
            }
        }
    )*};
}

invalid_input_from!(PathError, ContentError, TextError);
