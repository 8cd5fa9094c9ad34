//! The connections over HTTP: who owns them, and how long they live.
//!
//! The SDK keeps the connections and knows nothing of their owners, limits or idle time. The table
//! here is kept beside the SDK's; the two may differ for a moment, so a sweep reconciles them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use quipu_core::model::{Actor, Timestamp};
use quipu_service::pool::Pool;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionId, SessionManager as _};

/// How long a connection may be idle. It is long because clients recover badly from a lost one.
const IDLE_MAX: Duration = Duration::from_hours(4);

/// How many connections one caller may have. Hosts open one per window, or per agent.
pub(super) const PER_CALLER_MAX: usize = 64;

/// How many connections there may be in all.
pub(super) const TOTAL_MAX: usize = 1024;

/// The interval between sweeps.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

/// All connections over HTTP.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: Pool,
    manager: Arc<LocalSessionManager>,
    owned: Mutex<HashMap<SessionId, Owned>>,
    sweeping: Once,
}

#[derive(Debug)]
struct Owned {
    /// Who opened it; `None` if the client disconnected before it learned of the connection.
    owner: Option<Actor>,
    /// The actor whose limit it counts against: the owner, or the key behind it.
    payer: Option<Actor>,
    used_at: Timestamp,
    /// How many requests are in progress, event streams included.
    requests: usize,
}

/// A connection that is in use for as long as this lives.
#[derive(Debug)]
pub(super) struct InUse {
    connections: Connections,
    id: SessionId,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let now = self.connections.0.pool.now();
        if let Some(owned) = self.connections.owned().get_mut(&self.id) {
            owned.requests -= 1;
            owned.used_at = now;
        }
    }
}

impl Connections {
    pub(super) fn new(pool: Pool) -> Self {
        let mut manager = LocalSessionManager::default();
        // The manager's own timeout counts messages only, so it would close a quiet event stream.
        manager.session_config.keep_alive = None;
        Self(Arc::new(Inner {
            pool,
            manager: Arc::new(manager),
            owned: Mutex::default(),
            sweeping: Once::new(),
        }))
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.0.manager)
    }

    /// Starts the sweeper, if it is not running. It ends when the last handle is dropped.
    pub(super) fn keep_swept(&self) {
        let connections = Arc::downgrade(&self.0);
        let sweep = async move {
            loop {
                tokio::time::sleep(SWEEP_EVERY).await;
                let Some(inner) = connections.upgrade() else { return };
                Self(inner).sweep().await;
            }
        };
        self.0.sweeping.call_once(|| drop(tokio::spawn(sweep)));
    }

    /// Returns how many connections there are.
    pub(super) fn count(&self) -> usize {
        self.owned().len()
    }

    /// Returns whether a caller may open another connection, possibly in place of an idle one.
    pub(super) fn has_room(&self, payer: &Actor) -> bool {
        let all = self.owned();
        let is_idle = |owned: &Owned| owned.requests == 0;
        let mut own = all.values().filter(|owned| owned.payer.as_ref() == Some(payer));
        if own.clone().count() >= PER_CALLER_MAX {
            return own.any(is_idle);
        }
        all.len() < TOTAL_MAX || all.values().any(is_idle)
    }

    /// Records the owner of a new connection, and closes the least recently used idle one if there
    /// are too many now.
    ///
    /// A caller over its own limit loses one of its own connections; only the total limit may cost
    /// somebody else one. Otherwise a single key could evict the connections of all others.
    pub(super) async fn begin(&self, id: &str, owner: Actor, payer: Actor) {
        let id: SessionId = id.into();
        let used_at = self.0.pool.now();
        let ended = {
            let mut all = self.owned();
            let (owner, requests) = (Some(owner), 0);
            let new = Owned { owner, payer: Some(payer.clone()), used_at, requests };
            all.insert(Arc::clone(&id), new);
            let own = all.values().filter(|owned| owned.payer.as_ref() == Some(&payer)).count();
            let idle = all.iter().filter(|(other, owned)| {
                let is_candidate = own <= PER_CALLER_MAX || owned.payer.as_ref() == Some(&payer);
                owned.requests == 0 && **other != id && is_candidate
            });
            let is_full = own > PER_CALLER_MAX || all.len() > TOTAL_MAX;
            let oldest = idle.min_by_key(|(_, owned)| owned.used_at).map(|(id, _)| Arc::clone(id));
            let ended = oldest.filter(|_| is_full);
            if let Some(ended) = &ended {
                all.remove(ended);
            }
            ended
        };
        if let Some(ended) = ended {
            self.close(&ended).await;
        }
    }

    /// Closes connections that have been idle for too long.
    ///
    /// A client that vanishes without a `DELETE` leaves its connection open, and the notifications
    /// that are queued for it would keep it alive forever.
    async fn sweep(&self) {
        let now = self.0.pool.now();
        let mut idle = Vec::new();
        {
            let live = self.0.manager.sessions.read().await;
            let mut all = self.owned();
            // A client that disconnects during the handshake leaves a connection without an owner.
            // It gets an entry here, so that it expires like the others.
            for id in live.keys() {
                let unknown = || Owned { owner: None, payer: None, used_at: now, requests: 0 };
                all.entry(Arc::clone(id)).or_insert_with(unknown);
            }
            all.retain(|id, owned| {
                let is_idle = owned.requests == 0 && owned.used_at.plus(IDLE_MAX) < now;
                if is_idle {
                    idle.push(Arc::clone(id));
                }
                !is_idle && live.contains_key(id)
            });
        }
        for id in idle {
            self.close(&id).await;
        }
    }

    /// Marks a connection as in use, if it belongs to this client.
    pub(super) fn enter(&self, id: &str, client: &Actor) -> Option<InUse> {
        let id: SessionId = id.into();
        let mut all = self.owned();
        let owned = all.get_mut(&id).filter(|owned| owned.owner.as_ref() == Some(client))?;
        owned.requests += 1;
        Some(InUse { connections: self.clone(), id })
    }

    pub(super) async fn close(&self, id: &SessionId) {
        if let Err(error) = self.0.manager.close_session(id).await {
            tracing::warn!(%error, "an MCP connection could not be closed");
        }
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<SessionId, Owned>> {
        self.0.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
