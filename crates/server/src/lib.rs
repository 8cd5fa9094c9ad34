//! Everything that Quipu speaks over HTTP or stdio.
//!
//! [`tool`] is the memory tool, [`mcp`] the MCP server, [`http`] the REST API; [`wire`] holds the
//! JSON shapes, which nothing else in Quipu has.

mod feed;
mod follower;
pub mod http;
pub mod mcp;
pub mod tool;
pub mod wire;

pub use follower::follow_index;
