//! Sessions in the shape that the SDKs expect. Quipu runs no agents, so most fields are constant.

use std::collections::BTreeMap;

use quipu_core::model;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agents::{Fields, session_agent, unknown_agent};
use super::resources::resources;

/// A session.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "session")]
pub struct SessionBody {
    /// Its id.
    pub id: String,
    /// The agent that runs in it, as it was when the session was created.
    pub agent: Fields,
    /// Where it runs.
    pub environment_id: String,
    /// Its title.
    pub title: Option<String>,
    /// The owner's labels.
    pub metadata: BTreeMap<String, String>,
    /// The attached stores, then the files and repositories that were named.
    pub resources: Vec<Value>,
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

/// What is stored about a session for its answers only.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct SessionDetails {
    /// The agent's id.
    pub agent_id: String,
    /// The agent's version.
    pub agent_version: u64,
    /// What the session has in place of what its agent says.
    #[serde(skip_serializing_if = "Fields::is_empty")]
    pub overrides: Fields,
    /// The files and repositories that were named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Value>,
    /// The model's id.
    pub model_id: String,
    /// The environment's id.
    pub environment_id: String,
    /// The ids of vaults.
    pub vault_ids: Vec<String>,
}

impl SessionDetails {
    /// Parses the stored details; a session of another protocol has none.
    pub fn of(session: &model::Session) -> Self {
        serde_json::from_str(&session.details).unwrap_or_else(|_| Self {
            agent_id: session.title.clone(),
            agent_version: 1,
            model_id: "unknown".to_owned(),
            ..Self::default()
        })
    }

    /// Returns the text to store.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }
}

impl SessionBody {
    /// Returns the shape of a session whose stores are mounted below `mount_root`. `agent` is the version
    /// of the agent that it names, if that is kept here.
    pub fn new(
        session: &model::Session,
        agent: Option<&model::Definition>,
        mount_root: &str,
    ) -> Self {
        let details = SessionDetails::of(session);
        let resources = resources(session, &details, mount_root);
        let agent = match agent {
            Some(agent) => session_agent(agent, &details.overrides),
            None => {
                let mut fields =
                    unknown_agent(&details.agent_id, details.agent_version, &details.model_id);
                fields.extend(details.overrides);
                fields
            }
        };
        Self {
            id: session.id.to_string(),
            agent,
            environment_id: details.environment_id,
            title: Some(session.title.clone()).filter(|title| !title.is_empty()),
            metadata: session.metadata.pairs().clone(),
            resources,
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
