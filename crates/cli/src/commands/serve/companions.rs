//! Background threads of the server: followers of the change feed, retention, webhooks.

use std::fs::File;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_core::Engine;
use quipu_server::App;
use quipu_server::webhooks::{self, Delivering, Endpoint, Pauses};

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
        match engine.prune() {
            Ok(pruned) => tracing::info!(
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

/// Delivers to one endpoint, while no other server on the same data directory does.
fn deliver_until(
    engine: &Engine,
    endpoint: &Endpoint,
    delivering: &Delivering,
    directory: &Path,
    stop: &Stop,
) {
    let Some(_lease) = lease(&directory.join(endpoint.lease_name()), stop) else { return };
    let is_stopped = || stop.is_set();
    while let Err(error) = webhooks::deliver(engine, endpoint, delivering, &is_stopped) {
        if stop.is_set() {
            return;
        }
        tracing::error!(%error, url = endpoint.url, "a webhook cannot read the change feed");
        if stop.is_set_within(WEBHOOK_PAUSE) {
            return;
        }
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
