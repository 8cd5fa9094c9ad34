//! The bodies of requests. Unknown fields are rejected. Where the contract allows null, it is the
//! same as an absent field.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::Object;
use super::agents::Fields;

/// The body of a request to create a store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateStore {
    /// The name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The owner's labels.
    pub metadata: Option<BTreeMap<String, String>>,
}

/// The body of a request to change a store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateStore {
    /// The new name.
    pub name: Option<String>,
    /// The new description.
    pub description: Option<String>,
    /// Labels to set or, with null, to remove.
    pub metadata: Option<BTreeMap<String, Option<String>>>,
}

/// The body of a request to create a memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateMemory {
    /// Its path.
    pub path: String,
    /// Its text.
    pub content: String,
}

/// The body of a request to change a memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateMemory {
    /// The new text.
    pub content: Option<String>,
    /// The new path.
    pub path: Option<String>,
    /// The precondition.
    pub precondition: Option<Object<PreconditionBody>>,
}

/// The precondition of a change.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum PreconditionBody {
    /// The text has this hash.
    #[serde(rename = "content_sha256")]
    ContentSha256 {
        /// 64 lower-case hex digits.
        content_sha256: Option<String>,
    },
}

/// The body of a request to start a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// The agent: an id, or an object with one.
    pub agent: Value,
    /// The environment.
    pub environment_id: String,
    /// Its title.
    pub title: Option<String>,
    /// The owner's labels.
    pub metadata: Option<BTreeMap<String, String>>,
    /// What to attach.
    pub resources: Option<Vec<Fields>>,
    /// The ids of vaults, which are stored and echoed.
    pub vault_ids: Option<Vec<String>>,
    /// Events to record first.
    pub initial_events: Option<Vec<Value>>,
    /// Not supported: Quipu runs no agents.
    pub budget: Option<Value>,
}

/// The body of a request to change a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateSession {
    /// The new title.
    pub title: Option<String>,
    /// Labels to set or, with null, to remove.
    pub metadata: Option<BTreeMap<String, Option<String>>>,
    /// Tools and servers that the session has in place of those of its agent.
    pub agent: Option<Fields>,
    /// Not supported: Quipu runs no agents.
    pub budget: Option<Value>,
    /// Not supported: the vaults cannot be changed.
    pub vault_ids: Option<Value>,
}

/// The body of a request to start a run of the memory tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartToolSession {
    /// Its title.
    pub title: Option<String>,
}

/// The body of a request to change a store's policy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdatePolicy {
    /// `off`, `warn`, `redact` or `reject`.
    pub secrets: Option<String>,
    /// `warn` or `refuse`.
    pub forgotten: Option<String>,
    /// Who may change memories: `everyone` or `people`.
    pub writers: Option<String>,
    /// After how many days unused memories are deleted; 0 means never.
    pub expire_after_days: Option<u32>,
}

/// The body of a request to redact several versions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactVersions {
    /// The versions.
    pub memory_version_ids: Vec<String>,
}

/// The body of a request to copy a store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyStore {
    /// The name of the new store.
    pub name: String,
    /// The moment to copy; without it, the store is copied as it is.
    pub at: Option<String>,
}
