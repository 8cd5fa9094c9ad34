//! MCP over standard input and output: the host starts this process and talks to it.

mod lines;

use std::fmt;
use std::thread;

use quipu_core::engine::NewAttachment;
use quipu_core::model::WorkspaceId;
use quipu_knowledge::Knowledge;
use quipu_service::Service;
use quipu_service::pool::PoolSettings;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::runtime::Builder;

use super::handler::{Door, Handler};
use super::{Mcp, McpSettings};
use lines::Lines;

/// The stores that the host can use.
#[derive(Clone, Debug)]
pub enum Reach {
    /// All of a workspace.
    Everything(WorkspaceId),
    /// Only these; the first is the default.
    Attached(WorkspaceId, Vec<NewAttachment>),
}

/// Why serving ended early.
#[derive(Debug)]
pub struct StdioError(String);

impl fmt::Display for StdioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StdioError {}

/// Serves one host until it closes the standard input.
pub fn serve(engine: &Knowledge, settings: McpSettings, reach: Reach) -> Result<(), StdioError> {
    let failed = |error: &dyn fmt::Display| StdioError(error.to_string());
    // A host has one request in flight, or a few.
    let service = Service::new(engine.clone(), PoolSettings::SMALL);
    let (followed, stop) = (service.clone(), service.stop().clone());
    let over = stop.clone();
    thread::spawn(move || followed.follow(|| over.is_cancelled()));
    let mcp = Mcp::new(service, settings);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(PoolSettings::SMALL.blocking_threads_max())
        .build()
        .map_err(|error| failed(&error))?;
    let served = runtime.block_on(async {
        let handler = Handler::new(mcp, Door::Stdio(reach));
        let (input, output) = rmcp::transport::stdio_pipes();
        match handler.serve(Lines::new(input, output, stop.clone())).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| failed(&error)),
            // The host disconnected before the handshake.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    });
    // The data directory is closed next, which the feed must not report as an error.
    stop.cancel();
    // A blocking read of standard input cannot be cancelled, and would hold up an orderly shutdown.
    runtime.shutdown_background();
    served
}
