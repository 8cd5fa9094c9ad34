//! The MCP server: memories for every host that speaks the Model Context Protocol.
//!
//! `docs/mcp.md` describes it. The protocol itself is the official SDK's work; here are the tools
//! ([`tools`], listed in [`catalog`]), the prompts, the resources with their notifications, and who
//! may do what ([`access`]). A connection is a [`handler::Handler`]; the same one serves stdio and HTTP.

mod access;
mod answer;
mod arguments;
mod catalog;
mod changes;
mod completion;
mod connections;
mod handler;
mod http;
mod instructions;
mod log;
mod malformed;
mod place;
mod prompts;
mod resources;
mod sessions;
mod several;
mod stdio;
mod tools;

use std::sync::Arc;

use quipu_core::model::Access;
use tokio_util::sync::CancellationToken;

pub use catalog::{ToolSet, UnknownTool};
pub(crate) use connections::{InUse, PER_CALLER_MAX, TOTAL_MAX};
pub use http::Hosts;
pub(crate) use http::service;
pub(crate) use several::messages;
pub use stdio::{Reach, StdioError, serve};

use crate::feed::Feed;
use crate::pool::Pool;
use crate::tool::ToolSettings;
use connections::Connections;
use sessions::Sessions;

/// How the server behaves.
#[derive(Clone, Debug, Default)]
pub struct McpSettings {
    /// Which tools are offered.
    pub tools: ToolSet,
    /// Whether everything that changes something is refused.
    pub access: Access,
    /// What models are told about their memory, in place of Quipu's own short protocol.
    pub instructions: Option<String>,
    /// The store that tools use when none is named, by name or id.
    pub store: Option<String>,
    /// How the memory tool behaves.
    pub tool: ToolSettings,
}

/// The store of the `memory` tool.
pub const MEMORY_STORE: &str = "memories";

/// What all connections share.
#[derive(Clone, Debug)]
pub(crate) struct Mcp(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pool: Pool,
    settings: McpSettings,
    sessions: Sessions,
    connections: Connections,
    feed: Feed,
    /// When this is cancelled, subscriptions end.
    stop: CancellationToken,
}

impl Mcp {
    /// Makes a server; clients are told what `feed` tells, and `stop` ends subscriptions.
    pub(crate) fn new(
        pool: Pool,
        settings: McpSettings,
        feed: Feed,
        stop: CancellationToken,
    ) -> Self {
        Self(Arc::new(Shared {
            feed,
            connections: Connections::new(pool.clone()),
            pool,
            settings,
            sessions: Sessions::default(),
            stop,
        }))
    }

    /// Returns the connections over HTTP.
    pub(crate) fn connections(&self) -> &Connections {
        &self.0.connections
    }

    fn pool(&self) -> &Pool {
        &self.0.pool
    }

    fn settings(&self) -> &McpSettings {
        &self.0.settings
    }
}
