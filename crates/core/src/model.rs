//! The nouns: values that are valid by construction.
//!
//! `docs/model.md` explains them to users. Nothing here decides what may change; that is the
//! engine's job.

mod actor;
mod content;
mod definition;
mod digest;
mod id;
mod key;
mod memory;
mod path;
mod receipt;
mod refusal;
mod session;
mod session_event;
mod store;
mod text;
mod time;
mod tombstone;
mod version;
mod words;

pub use actor::{Actor, ParseActorError, PrincipalName, PrincipalNameError};
pub use content::{Content, ContentError, ContentHash, ParseHashError};
pub use definition::{Definition, DefinitionId, DefinitionKind};
pub use digest::{Digest, ExpectedDigest, ParseDigestError};
pub use id::{
    AgentId, EnvironmentId, EventId, Id, KeyId, MemoryId, ParseIdError, ReceiptId, SessionId,
    StoreId, VersionId, WorkspaceId,
};
pub use key::{
    Forwarding, KEY_PAYLOAD_SIZE_BYTES_MAX, Key, KeyKind, KeySecret, PERSON_NAME_SIZE_BYTES_MAX,
    Role, SecretHash, Workspace,
};
pub use memory::{Listing, Memory, View};
pub use path::{Directory, MemoryPath, PATH_SIZE_BYTES_MAX, PathError, SEGMENTS_MAX};
pub use receipt::{CopyKind, CopyMade, HeadChange, Proof, Receipt, ReceiptHead, ScannedFile};
pub use refusal::Refusal;
pub use session::{Access, Attachment, Session, slug};
pub use session_event::{EventType, EventTypeError, EventUsage, SessionEvent};
pub use store::{
    DeletedStore, ForgottenPolicy, Metadata, SecretPolicy, Store, StorePolicy, Writers,
};
pub use text::{Description, Instructions, Name, Reason, TextError};
pub use time::{ParseTimestampError, Timestamp};
pub use tombstone::{TOMBSTONE_SIZE_BYTES_MIN, Tombstone, Tombstones};
pub use version::{Operation, Redaction, Version};
pub use words::ParseWordError;
