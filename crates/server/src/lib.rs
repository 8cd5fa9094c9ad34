//! Everything that Quipu speaks over HTTP or stdio.
//!
//! [`pool`] is how asynchronous code reaches the engine; [`tool`] is the memory tool, [`mcp`] the MCP server, [`http`] the REST API; [`wire`] holds the
//! JSON shapes, which nothing else in Quipu has.

mod author;
mod credential;
mod feed;
mod follower;
pub mod http;
pub mod log;
pub mod mcp;
mod pool;
pub mod tool;
pub mod wire;

pub use author::{Author, DraftedSession};
pub use follower::follow_index;
pub use pool::PoolSettings;
