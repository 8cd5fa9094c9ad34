//! Definitions: the agents and environments that sessions name.

use super::words::words;
use super::{AgentId, Content, EnvironmentId, Id as _, Metadata, Name, Timestamp, WorkspaceId};

/// An agent or an environment, as of one of its versions.
///
/// Quipu runs neither. It keeps them, so that a session can say what it ran with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its id.
    pub id: DefinitionId,
    /// The number of the version: 1, 2, 3, … An environment has no versions; its number is always 1.
    pub version: u64,
    /// The workspace that it belongs to.
    pub workspace: WorkspaceId,
    /// What people call it.
    pub name: Name,
    /// The owner's own labels.
    pub metadata: Metadata,
    /// Everything else about it, as the door that created it writes it down; nothing else reads this.
    pub body: Content,
    /// When its first version was made.
    pub created_at: Timestamp,
    /// When this version was made or, if it was archived since, when that was.
    pub updated_at: Timestamp,
    /// When it was archived, if it was; kept in its newest version alone.
    pub archived_at: Option<Timestamp>,
}

/// What a definition defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionKind {
    /// An agent.
    Agent,
    /// An environment.
    Environment,
}

words!(DefinitionKind { Agent = "agent", Environment = "environment" });

/// The id of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionId {
    /// That of an agent.
    Agent(AgentId),
    /// That of an environment.
    Environment(EnvironmentId),
}

impl DefinitionId {
    /// Creates an id for something defined at `at`; `random` distinguishes it from others of that moment.
    pub fn new(kind: DefinitionKind, at: Timestamp, random: u128) -> Self {
        match kind {
            DefinitionKind::Agent => Self::Agent(AgentId::new(at, random)),
            DefinitionKind::Environment => Self::Environment(EnvironmentId::new(at, random)),
        }
    }

    /// Returns the id with these bits.
    pub fn from_bits(kind: DefinitionKind, bits: u128) -> Self {
        match kind {
            DefinitionKind::Agent => Self::Agent(AgentId::from_bits(bits)),
            DefinitionKind::Environment => Self::Environment(EnvironmentId::from_bits(bits)),
        }
    }

    /// Returns what it is the id of.
    pub fn kind(self) -> DefinitionKind {
        match self {
            Self::Agent(_) => DefinitionKind::Agent,
            Self::Environment(_) => DefinitionKind::Environment,
        }
    }

    /// Returns the bits, for a backend to store with the kind.
    pub fn bits(self) -> u128 {
        match self {
            Self::Agent(id) => id.bits(),
            Self::Environment(id) => id.bits(),
        }
    }
}

impl std::fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Agent(id) => id.fmt(f),
            Self::Environment(id) => id.fmt(f),
        }
    }
}
