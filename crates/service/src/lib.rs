//! What Quipu's protocols share, below both HTTP and MCP.
//!
//! [`Service`] is one engine as the protocols of a process use it: the [`pool`] through which
//! asynchronous code reaches the engine, and the change [`feed`]. [`tool`] is the memory tool, [`past`]
//! is a store as it was, and [`wire`] has the JSON shapes, which are defined nowhere else in Quipu.
//!
//! Nothing here speaks a protocol. `quipu-server` (HTTP) and `quipu-mcp` depend on this crate and not
//! on each other, so they build side by side; [`endpoint`] is the seam between them.

mod author;
pub mod authors;
pub mod caller;
pub mod credential;
pub mod endpoint;
pub mod feed;
mod followed;
mod follower;
pub mod log;
pub mod past;
pub mod pattern;
pub mod pool;
pub mod prompt;
pub mod suggestions;
pub mod tool;
pub mod wire;

use quipu_knowledge::Knowledge;
use tokio_util::sync::CancellationToken;

pub use author::{Author, DraftedSession};
pub use follower::{embed_index, follow_index};

use feed::Feed;
use pool::{Pool, PoolSettings};

/// One engine as the protocols of a process share it.
#[derive(Clone, Debug)]
pub struct Service {
    pool: Pool,
    feed: Feed,
    stop: CancellationToken,
}

impl Service {
    /// Puts an engine behind a pool with these limits.
    pub fn new(engine: Knowledge, limits: PoolSettings) -> Self {
        Self { pool: Pool::new(engine, limits), feed: Feed::new(), stop: CancellationToken::new() }
    }

    /// Returns the way to the engine.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the change feed, which [`Service::follow`] drives.
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Returns the token that ends all streams and subscriptions when it is cancelled.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Broadcasts changes to all followers of the feed until `stop` returns `true`. Blocks the
    /// calling thread.
    pub fn follow(&self, stop: impl Fn() -> bool) {
        self.pool.on_dedicated_thread(|engine| self.feed.follow(engine, stop));
    }
}
