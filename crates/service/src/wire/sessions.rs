//! Sessions in the shape that the SDKs expect. Quipu runs no agents, so most fields are constant.

use std::collections::BTreeMap;

use quipu_core::model;
use serde::{Deserialize, Serialize};

use super::{AgentParam, AttachmentBody, ModelParam};

/// A session.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "session")]
pub struct SessionBody {
    /// Its id.
    pub id: String,
    /// The agent that runs in it.
    pub agent: AgentBody,
    /// Where it runs.
    pub environment_id: String,
    /// Its title.
    pub title: Option<String>,
    /// The owner's labels.
    pub metadata: BTreeMap<String, String>,
    /// The attached stores.
    pub resources: Vec<AttachmentBody>,
    /// `idle`, or `terminated` once archived.
    pub status: &'static str,
    /// Empty: nothing is measured.
    pub stats: Empty,
    /// Empty: nothing is measured.
    pub usage: Empty,
    /// The vaults that were named at the start.
    pub vault_ids: Vec<String>,
    /// Always empty.
    pub outcome_evaluations: [&'static str; 0],
    /// Always null.
    pub budget: Option<Empty>,
    /// Always null.
    pub deployment_id: Option<String>,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// When it was archived, if it was.
    pub archived_at: Option<String>,
}

/// An object without fields.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Empty {}

/// An agent, as far as Quipu knows it.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "agent")]
pub struct AgentBody {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: u32,
    /// Its id again: Quipu stores no agents.
    pub name: String,
    /// The model.
    pub model: ModelBody,
    /// Always null.
    pub description: Option<String>,
    /// Always null.
    pub system: Option<String>,
    /// Always null.
    pub multiagent: Option<Empty>,
    /// Who it runs as.
    pub execution_identity: IdentityBody,
    /// Always empty.
    pub mcp_servers: [&'static str; 0],
    /// Always empty.
    pub skills: [&'static str; 0],
    /// Always empty.
    pub tools: [&'static str; 0],
}

/// A model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelBody {
    /// Its id.
    pub id: String,
}

/// Who an agent runs as.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "type", rename = "service_account")]
pub struct IdentityBody {}

/// What is stored about a session for its answers only.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SessionDetails {
    /// The agent's id.
    pub agent_id: String,
    /// The agent's version.
    pub agent_version: u32,
    /// The model's id.
    pub model_id: String,
    /// The environment's id.
    pub environment_id: String,
    /// The ids of vaults.
    pub vault_ids: Vec<String>,
}

impl SessionDetails {
    /// Takes the details from a request.
    pub fn new(agent: &AgentParam, environment_id: &str, vault_ids: Vec<String>) -> Self {
        let (agent_id, version, model) = match agent {
            AgentParam::Id(id) => (id, None, None),
            AgentParam::Object { id, version, model } => (id, *version, model.as_ref()),
        };
        let model_id = match model {
            Some(ModelParam::Id(id) | ModelParam::Object { id }) => id.clone(),
            None => "unknown".to_owned(),
        };
        Self {
            agent_id: agent_id.clone(),
            agent_version: version.unwrap_or(1),
            model_id,
            environment_id: environment_id.to_owned(),
            vault_ids,
        }
    }

    /// Parses the stored details; a session of another protocol has none.
    pub fn of(session: &model::Session) -> Self {
        serde_json::from_str(&session.details).unwrap_or_else(|_| Self {
            agent_id: session.title.clone(),
            agent_version: 1,
            model_id: "unknown".to_owned(),
            environment_id: String::new(),
            vault_ids: Vec::new(),
        })
    }

    /// Returns the text to store.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }
}

impl SessionBody {
    /// Returns the shape of a session whose stores are mounted below `mount_root`.
    pub fn new(session: &model::Session, mount_root: &str) -> Self {
        let details = SessionDetails::of(session);
        let attachment = |attachment| AttachmentBody::new(attachment, mount_root);
        Self {
            id: session.id.to_string(),
            agent: AgentBody {
                name: details.agent_id.clone(),
                id: details.agent_id,
                version: details.agent_version,
                model: ModelBody { id: details.model_id },
                description: None,
                system: None,
                multiagent: None,
                execution_identity: IdentityBody {},
                mcp_servers: [],
                skills: [],
                tools: [],
            },
            environment_id: details.environment_id,
            title: Some(session.title.clone()).filter(|title| !title.is_empty()),
            metadata: session.metadata.pairs().clone(),
            resources: session.attachments.iter().map(attachment).collect(),
            status: if session.archived_at.is_some() { "terminated" } else { "idle" },
            stats: Empty {},
            usage: Empty {},
            vault_ids: details.vault_ids,
            outcome_evaluations: [],
            budget: None,
            deployment_id: None,
            created_at: session.created_at.to_string(),
            updated_at: session.updated_at.to_string(),
            archived_at: session.archived_at.map(|at| at.to_string()),
        }
    }
}
