//! What runs beside the server: followers of the feed, retention, webhooks.

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

/// How long a webhook waits after the changes could not be read.
const WEBHOOK_PAUSE: Duration = Duration::from_secs(10);

/// How often to look whether another server has stopped to deliver.
const LEASE_PAUSE: Duration = Duration::from_secs(1);

/// How long the end of the process waits for the threads; what they do is safe to cut off.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Threads that run until they are told to stop.
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
        companions.spawn(move |stop| uses::write_until(&engine, stop));
        let every = settings.serve.prune_every_minutes;
        let every = every.map_or(PRUNE_EVERY, |minutes| Duration::from_secs(minutes * 60));
        let engine = data.engine.clone();
        companions.spawn(move |stop| prune_until(&engine, every, stop));
        for endpoint in endpoints {
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

    /// Tells the threads to stop. Those that wait for changes notice when the storage is closed.
    pub(super) fn stop(&self) {
        self.stop.set();
    }

    /// Waits for the threads, but not for long.
    pub(super) fn join(self) {
        let deadline = Instant::now() + JOIN_TIMEOUT;
        for thread in self.threads {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            if !thread.is_finished() {
                tracing::debug!("a thread was cut off at the end");
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
                sessions = pruned.sessions_count,
                stores = pruned.stores_count,
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
        tracing::error!(%error, url = endpoint.url, "a webhook cannot follow the changes");
        if stop.is_set_within(WEBHOOK_PAUSE) {
            return;
        }
    }
}

/// Waits for the lock that makes this process the only one to deliver; `None` if it is to stop
/// first. The kernel releases it when the process ends, however that happens.
fn lease(path: &Path, stop: &Stop) -> Option<File> {
    let mut is_reported = false;
    loop {
        let taken = File::options().create(true).append(true).open(path).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        match taken {
            Ok(file) => return Some(file),
            Err(error) if !is_reported => {
                is_reported = true;
                tracing::info!(
                    lease = %path.display(), reason = %error,
                    "another server delivers this webhook; waiting for it to end"
                );
            }
            Err(_) => {}
        }
        if stop.is_set_within(LEASE_PAUSE) {
            return None;
        }
    }
}
