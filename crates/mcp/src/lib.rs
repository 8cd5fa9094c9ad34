//! The MCP server: memories for every host that speaks the Model Context Protocol.
//!
//! `docs/mcp.md` describes it. The protocol itself is the official SDK's work; here are the tools
//! ([`tools`], listed in [`catalog`]), the prompts, the resources with their notifications, and who
//! may do what ([`access`]). A connection is a [`handler::Handler`]; the same one serves stdio and
//! HTTP. This crate has no HTTP server: [`HttpEndpoint`] is mounted by one.

mod access;
mod answer;
mod arguments;
mod batch;
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
mod stdio;
mod tools;

use std::sync::Arc;

use quipu_core::model::Access;
use quipu_service::Service;
use quipu_service::pool::Pool;
use quipu_service::tool::ToolSettings;

pub use catalog::{ToolSet, UnknownTool};
pub use http::{Hosts, HttpEndpoint};
pub use stdio::{Reach, StdioError, serve};

use connections::Connections;
use sessions::Sessions;

/// How the server behaves.
#[derive(Clone, Debug, Default)]
pub struct McpSettings {
    /// Which tools are offered.
    pub tools: ToolSet,
    /// `ReadOnly` rejects every write, whatever the client's credential allows.
    pub access: Access,
    /// The instructions for models, in place of Quipu's own short protocol.
    pub instructions: Option<String>,
    /// The store that tools use when none is named, by name or id.
    pub store: Option<String>,
    /// How the memory tool behaves.
    pub tool: ToolSettings,
}

/// What all connections share.
#[derive(Clone, Debug)]
struct Mcp(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    service: Service,
    settings: McpSettings,
    sessions: Sessions,
    connections: Connections,
}

impl Mcp {
    fn new(service: Service, settings: McpSettings) -> Self {
        Self(Arc::new(Shared {
            connections: Connections::new(service.pool().clone()),
            service,
            settings,
            sessions: Sessions::default(),
        }))
    }

    fn pool(&self) -> &Pool {
        self.0.service.pool()
    }

    fn settings(&self) -> &McpSettings {
        &self.0.settings
    }
}
