//! Background threads of the server: followers of the change feed, retention, webhooks.

use std::cell::Cell;
use std::fs::File;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_core::engine::Pruned;
use quipu_core::{Engine, Error};
use quipu_server::App;
use quipu_server::webhooks::{self, Delivered, Delivering, Endpoint, Pauses};

use crate::context::Data;
use crate::settings::Settings;
use crate::stop::Stop;
use crate::uses;

const PRUNE_EVERY: Duration = Duration::from_hours(1);

/// How long a webhook waits after the change feed could not be read.
const WEBHOOK_PAUSE: Duration = Duration::from_secs(10);

/// How often to retry the lease while another server holds it.
const LEASE_PAUSE: Duration = Duration::from_secs(1);

/// How long shutdown waits for the threads; their work is safe to interrupt.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Background threads that run until they are stopped.
#[derive(Debug)]
pub(super) struct Companions {
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Companions {
    pub(super) fn start(
        app: &App,
        data: &Data,
        settings: &Settings,
        endpoints: Vec<Endpoint>,
    ) -> Self {
        let mut companions = Self { stop: Stop::default(), threads: Vec::new() };
        let follower = app.clone();
        companions.spawn(move |stop| follower.follow(|| stop.is_set()));
        let engine = data.engine.clone();
        companions.spawn(move |stop| quipu_service::follow_index(&engine, || stop.is_set()));
        let engine = data.engine.clone();
        companions.spawn(move |stop| quipu_service::embed_index(&engine, || stop.is_set()));
        let engine = data.engine.clone();
        companions.spawn(move |stop| uses::flush_until(&engine, stop));
        let every = settings.serve.prune_every_minutes;
        let every = every.map_or(PRUNE_EVERY, |minutes| Duration::from_secs(minutes * 60));
        let engine = data.engine.clone();
        companions.spawn(move |stop| prune_until(&engine, every, stop));
        for endpoint in endpoints {
            // Also while another server delivers to it.
            app.deliveries().add(&endpoint);
            let directory = settings.data.clone();
            let (engine, workspace) = (data.engine.clone(), data.workspace);
            let (pauses, deliveries) = (Pauses::default(), app.deliveries());
            let delivering = Delivering { workspace, pauses, deliveries };
            companions.spawn(move |stop| {
                deliver_until(&engine, &endpoint, &delivering, &directory, stop);
            });
        }
        companions
    }

    fn spawn(&mut self, work: impl FnOnce(&Stop) + Send + 'static) {
        let stop = self.stop.clone();
        self.threads.push(std::thread::spawn(move || work(&stop)));
    }

    /// Signals the threads to stop. Those that wait for changes notice when the storage is closed.
    pub(super) fn stop(&self) {
        self.stop.set();
    }

    /// Waits for the threads, at most [`JOIN_TIMEOUT`].
    pub(super) fn join(self) {
        let deadline = Instant::now() + JOIN_TIMEOUT;
        for thread in self.threads {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            if !thread.is_finished() {
                tracing::debug!("a thread was still running at exit");
            }
        }
    }
}

fn prune_until(engine: &Engine, every: Duration, stop: &Stop) {
    loop {
        match prune(engine, every) {
            Ok(None) => {}
            Ok(Some(pruned)) => tracing::info!(
                versions = pruned.versions_count,
                memories = pruned.memories_count,
                events = pruned.events_count,
                sessions = pruned.sessions_count,
                stores = pruned.stores_count,
                keys = pruned.keys_count,
                "pruned"
            ),
            Err(_) if stop.is_set() => return,
            Err(error) => tracing::error!(%error, "pruning failed"),
        }
        if stop.is_set_within(every) {
            return;
        }
    }
}

/// Prunes, unless another server does or the clock is not to be trusted. With a wrong clock it would remove what is
/// not old, for all servers that share the data.
fn prune(engine: &Engine, every: Duration) -> Result<Option<Pruned>, Error> {
    if let Some(skew) = engine.clock_skew()? {
        tracing::warn!(%skew, "nothing is pruned by this server");
        return Ok(None);
    }
    if let Some(gap) = engine.clock_gap()? {
        let hours = gap.as_secs() / (60 * 60);
        tracing::info!(
            hours,
            "nothing is pruned until something is written: the clock is far ahead of the newest change"
        );
        return Ok(None);
    }
    // Renewed by the same server before it ends.
    if !engine.lease("prune", every.saturating_mul(2))? {
        return Ok(None);
    }
    engine.prune().map(Some)
}

/// How long a server may deliver without renewing its lease, and how often it is renewed. In between a delivery
/// may be attempted, which takes up to 15 s.
const DELIVERY_LEASE: Duration = Duration::from_mins(2);
const RENEW_EVERY: Duration = Duration::from_secs(20);

/// Delivers to one endpoint, while no other server does, on this host or another one.
fn deliver_until(
    engine: &Engine,
    endpoint: &Endpoint,
    delivering: &Delivering,
    directory: &Path,
    stop: &Stop,
) {
    let Some(_lease) = lease(&directory.join(endpoint.lease_name()), stop) else { return };
    let shared = SharedLease::new(engine, endpoint.lease_name());
    while !stop.is_set() {
        if !shared.is_held() {
            if stop.is_set_within(LEASE_PAUSE) {
                return;
            }
            continue;
        }
        let is_over = || stop.is_set() || !shared.is_held();
        match webhooks::deliver(engine, endpoint, delivering, &is_over) {
            Ok(Delivered::Stopped) => {}
            Ok(Delivered::Disabled) => return,
            Err(_) if stop.is_set() => return,
            Err(error) => {
                tracing::error!(%error, url = endpoint.url, "a webhook cannot read the change feed");
                if stop.is_set_within(WEBHOOK_PAUSE) {
                    return;
                }
            }
        }
    }
}

/// A lease that servers of several hosts share, renewed while somebody asks for it.
struct SharedLease<'e> {
    engine: &'e Engine,
    name: String,
    /// When it was last asked for, and whether this server has it.
    state: Cell<Option<(Instant, bool)>>,
}

impl<'e> SharedLease<'e> {
    fn new(engine: &'e Engine, name: String) -> Self {
        Self { engine, name, state: Cell::new(None) }
    }

    /// Returns whether this server has the lease. One that cannot be renewed is given up.
    fn is_held(&self) -> bool {
        if let Some((at, is_held)) = self.state.get()
            && at.elapsed() < RENEW_EVERY
        {
            return is_held;
        }
        let at = Instant::now();
        let is_held = match self.engine.lease(&self.name, DELIVERY_LEASE) {
            Ok(is_held) => is_held,
            Err(error) => {
                tracing::warn!(%error, "the lease of a webhook could not be renewed");
                false
            }
        };
        self.state.set(Some((at, is_held)));
        is_held
    }
}

/// Waits for the file lock that makes this process the only one to deliver, or returns `None` when
/// stopped. The kernel releases the lock when the process exits, even if it is killed.
fn lease(path: &Path, stop: &Stop) -> Option<File> {
    let mut is_logged = false;
    loop {
        let taken = File::options().create(true).append(true).open(path).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        match taken {
            Ok(file) => return Some(file),
            Err(error) if !is_logged => {
                is_logged = true;
                tracing::info!(
                    lease = %path.display(), reason = %error,
                    "another server delivers this webhook; waiting for its lease"
                );
            }
            Err(_) => {}
        }
        if stop.is_set_within(LEASE_PAUSE) {
            return None;
        }
    }
}
