//! The JSON shapes of the Memory Stores contract, and a few of Quipu's own.
//!
//! Field names, types and nulls are part of the contract; `openapi.json` lists them. The core
//! knows nothing of JSON, so the conversions are here.

mod agents;
mod events;
mod filters;
mod forgetting;
mod knowledge;
mod object;
mod own;
mod past;
mod plans;
mod requests;
mod resources;
mod scores;
mod sessions;
mod suggestions;

use std::collections::BTreeMap;

use quipu_core::model;
use serde::{Serialize, Serializer};

pub use agents::{
    Fields, agent_body, agent_content, environment_body, environment_content, overrides,
};
pub use events::{
    RecordedEventBody, SendEvents, THREAD_FIELD, event_body, event_fields, event_holds,
    event_thread, initial_event, reported_event, sent_event,
};
pub use filters::field_filters;
pub use forgetting::{Audience, ReceiptBody, RedactSelection, RedactionPlanBody};
pub use knowledge::{
    ContextBody, ContextItemBody, CoverageBody, HitBody, LinkBody, NoteBody, NoteLinkBody,
    ObservationBody, OrphansBody, PassageBody, RecentBody, RelatedBody, SearchBody, value,
};
pub use object::Object;
pub use own::{
    AttachmentBody, ChangeBody, CheckBody, DiffBody, FindingBody, KeyBody, PolicyBody, PrunedBody,
    SessionSummary, StoreDetails, TokenBody, ToolSessionBody, WorkspaceBody,
};
pub use past::{
    AsOfBody, BlameBody, BlamedLineBody, ComparisonBody, CopyBody, DifferenceBody, PastListBody,
    PastMemoryBody, PastSearchBody, PastStoreBody, RedactedBody, SEARCHED, SideBody, SourceBody,
};
pub use plans::{
    ChangedBody, Diffs, PlanBody, Restore, RevertChanges, SpanBody, StepBody, changed_diff,
    step_diff,
};
pub use requests::{
    CopyStore, CreateMemory, CreateSession, CreateStore, PreconditionBody, RedactVersions,
    StartToolSession, UpdateMemory, UpdatePolicy, UpdateSession, UpdateStore,
};
pub use resources::{RESOURCES_MAX, has_id, kept_resource, resources};
pub use scores::{FieldScoreBody, ScorePartBody, SimilarBody, WordScoreBody, score_parts};
pub use sessions::{SessionBody, SessionDetails};
pub use suggestions::{
    FreshnessBody, LeftOutBody, ReasonsBody, SuggestBody, SuggestionBody, SuggestionsBody,
};

/// A page of a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListBody<T> {
    /// The items.
    pub data: Vec<T>,
    /// The value of `page` for the next page; null on the last one.
    pub next_page: Option<String>,
}

impl<T> ListBody<T> {
    /// Returns the only page of a list.
    pub fn complete(data: Vec<T>) -> Self {
        Self { data, next_page: None }
    }
}

/// The answer to a deletion.
#[derive(Clone, Debug, Serialize)]
pub struct DeletedBody {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl DeletedBody {
    /// For a store.
    pub fn store(id: model::StoreId) -> Self {
        Self { id: id.to_string(), kind: "memory_store_deleted" }
    }

    /// For a memory.
    pub fn memory(id: model::MemoryId) -> Self {
        Self { id: id.to_string(), kind: "memory_deleted" }
    }

    /// For an environment.
    pub fn environment(id: model::DefinitionId) -> Self {
        Self { id: id.to_string(), kind: "environment_deleted" }
    }

    /// For a file or a repository of a session.
    pub fn resource(id: &str) -> Self {
        Self { id: id.to_owned(), kind: "session_resource_deleted" }
    }

    /// For a session.
    pub fn session(id: model::SessionId) -> Self {
        Self { id: id.to_string(), kind: "session_deleted" }
    }
}

/// A store.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "memory_store")]
pub struct StoreBody {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for; may be empty.
    pub description: String,
    /// The owner's labels.
    pub metadata: BTreeMap<String, String>,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// When it was archived, if it was.
    pub archived_at: Option<String>,
}

impl From<&model::Store> for StoreBody {
    fn from(store: &model::Store) -> Self {
        Self {
            id: store.id.to_string(),
            name: store.name.to_string(),
            description: store.description.to_string(),
            metadata: store.metadata.pairs().clone(),
            created_at: store.created_at.to_string(),
            updated_at: store.updated_at.to_string(),
            archived_at: store.archived_at.map(|at| at.to_string()),
        }
    }
}

/// A memory.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "memory")]
pub struct MemoryBody {
    /// Its id.
    pub id: String,
    /// Its store.
    pub memory_store_id: String,
    /// Its path.
    pub path: String,
    /// Its text, in the full view.
    #[serde(serialize_with = "text")]
    pub content: Option<model::Content>,
    /// The length of its text.
    pub content_size_bytes: u64,
    /// The hash of its text.
    pub content_sha256: String,
    /// Its newest version.
    pub memory_version_id: String,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
}

impl From<&model::Memory> for MemoryBody {
    fn from(memory: &model::Memory) -> Self {
        Self {
            id: memory.id.to_string(),
            memory_store_id: memory.store.to_string(),
            path: memory.path.to_string(),
            content: memory.content.clone(),
            content_size_bytes: memory.size_bytes,
            content_sha256: memory.hash.to_string(),
            memory_version_id: memory.version.to_string(),
            created_at: memory.created_at.to_string(),
            updated_at: memory.updated_at.to_string(),
        }
    }
}

#[expect(clippy::ref_option, reason = "the signature is serde's")]
fn text<S: Serializer>(content: &Option<model::Content>, serializer: S) -> Result<S::Ok, S::Error> {
    content.as_ref().map(model::Content::as_str).serialize(serializer)
}

/// One line of a listing.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum ListingBody {
    /// A memory.
    Memory(MemoryBody),
    /// A directory.
    Prefix(PrefixBody),
}

/// A directory in a listing.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "memory_prefix")]
pub struct PrefixBody {
    /// Its path, with a trailing slash.
    pub path: String,
}

impl From<&model::Listing> for ListingBody {
    fn from(listing: &model::Listing) -> Self {
        match listing {
            model::Listing::Memory(memory) => Self::Memory(memory.into()),
            model::Listing::Directory(directory) => {
                Self::Prefix(PrefixBody { path: directory.to_string() })
            }
        }
    }
}

/// A version.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "memory_version")]
pub struct VersionBody {
    /// Its id.
    pub id: String,
    /// Its store.
    pub memory_store_id: String,
    /// Its memory.
    pub memory_id: String,
    /// `created`, `modified` or `deleted`.
    pub operation: &'static str,
    /// The path after the change; null once redacted.
    pub path: Option<String>,
    /// The text after the change, in the full view; null for a deletion and once redacted.
    pub content: Option<String>,
    /// The hash of that text; null for a deletion and once redacted.
    pub content_sha256: Option<String>,
    /// The length of that text; null for a deletion and once redacted.
    pub content_size_bytes: Option<u64>,
    /// When the change was made.
    pub created_at: String,
    /// Who made the change.
    pub created_by: ActorBody,
    /// When it was redacted, if it was.
    pub redacted_at: Option<String>,
    /// Who redacted it, if it was.
    pub redacted_by: Option<ActorBody>,
}

impl From<&model::Version> for VersionBody {
    fn from(version: &model::Version) -> Self {
        let redaction = version.redaction.as_ref();
        Self {
            id: version.id.to_string(),
            memory_store_id: version.store.to_string(),
            memory_id: version.memory.to_string(),
            operation: version.operation.as_str(),
            path: version.path.as_ref().map(ToString::to_string),
            content: version.content.as_ref().map(|content| content.as_str().to_owned()),
            content_sha256: version.hash.as_ref().map(ToString::to_string),
            content_size_bytes: version.size_bytes,
            created_at: version.created_at.to_string(),
            created_by: (&version.actor).into(),
            redacted_at: redaction.map(|redaction| redaction.at.to_string()),
            redacted_by: redaction.map(|redaction| (&redaction.by).into()),
        }
    }
}

/// The author of a change.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ActorBody {
    /// An agent.
    SessionActor {
        /// Its session.
        session_id: String,
    },
    /// A program with a key.
    ApiActor {
        /// Its key.
        api_key_id: String,
    },
    /// A person.
    UserActor {
        /// The person.
        user_id: String,
    },
    /// A service.
    ServiceAccountActor {
        /// The service.
        service_account_id: String,
    },
}

impl From<&model::Actor> for ActorBody {
    fn from(actor: &model::Actor) -> Self {
        let id = actor.to_string();
        match actor {
            model::Actor::Session(_) => Self::SessionActor { session_id: id },
            model::Actor::ApiKey(_) => Self::ApiActor { api_key_id: id },
            model::Actor::User(_) => Self::UserActor { user_id: id },
            model::Actor::ServiceAccount(_) => Self::ServiceAccountActor { service_account_id: id },
        }
    }
}
