//! Watch mode: syncs again whenever one of the sides changes. Waiting uses no CPU time.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use quipu_core::backend::Sequence;
use quipu_core::model::StoreId;
use quipu_core::{Engine, Error, ErrorKind};

use super::activity::{Activity, SETTLE_TIME};
use super::report::Report;
use super::{LockedSync, Progress};

/// How long both sides must be quiet before a sync. Programs change files in several steps.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How long after the first change a sync begins even if changes keep coming.
const DEBOUNCE_MAX: Duration = Duration::from_secs(2);
/// How long a single wait for the store lasts.
const STORE_WAIT: Duration = Duration::from_hours(1);
/// How many changes of the feed are searched for one of the store.
const CHANGES_MAX: usize = 1000;

enum Wake {
    Changed,
    Failed(Error),
    Stop,
}

/// A watch on a folder and a store.
#[derive(Debug)]
pub struct Watch {
    sender: Sender<Wake>,
    receiver: Receiver<Wake>,
}

/// Ends a [`Watch`].
#[derive(Clone, Debug)]
pub struct Stopper(Sender<Wake>);

impl Stopper {
    /// Ends the watch after the sync that is under way.
    pub fn stop(&self) {
        // Sending fails only if the watch has ended already.
        self.0.send(Wake::Stop).unwrap_or_default();
    }
}

impl Default for Watch {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver }
    }
}

impl Watch {
    /// Returns a handle that ends the watch.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }

    /// Syncs now and after every change, until it is stopped. Every report is passed to
    /// `on_report`.
    pub fn run(
        self,
        sync: &LockedSync<'_>,
        progress: &dyn Progress,
        mut on_report: impl FnMut(&Report),
    ) -> Result<(), Error> {
        // Both watches begin before the first sync. Changes during it may then be seen twice, but
        // none is missed.
        let activity = Arc::new(Mutex::default());
        let watcher = (Arc::clone(&activity), self.sender.clone());
        let _watcher = watch_folder(&sync.sync.folder, watcher)?;
        let (engine, store) = (sync.sync.engine.clone(), sync.sync.store.id);
        let seen = engine.newest_sequence()?;
        let sender = self.sender.clone();
        thread::spawn(move || follow_store(&engine, store, seen, &sender));
        let (mut report, mut rescan_after) = sync.run_watched(Some(&activity), progress)?;
        if let Some(wait) = rescan_after {
            // Files that were written just before the start belong to the first report.
            thread::sleep(wait.min(SETTLE_TIME * 2));
            let first = report;
            (report, rescan_after) = sync.run_watched(Some(&activity), progress)?;
            report.start = first.start;
            report.actions.splice(0..0, first.actions);
        }
        loop {
            on_report(&report);
            if let Next::End = self.next(rescan_after)? {
                return Ok(());
            }
            (report, rescan_after) = sync.run_watched(Some(&activity), progress)?;
        }
    }

    /// Waits for a change, at most for `patience`, then until both sides are quiet.
    fn next(&self, patience: Option<Duration>) -> Result<Next, Error> {
        let first = match patience {
            Some(patience) => self.receiver.recv_timeout(patience),
            None => self.receiver.recv().map_err(RecvTimeoutError::from),
        };
        let mut wake = match first {
            Ok(wake) => wake,
            Err(RecvTimeoutError::Timeout) => return Ok(Next::Sync),
            Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
        };
        let since = Instant::now();
        loop {
            match wake {
                Wake::Changed => {}
                Wake::Failed(error) => return Err(error),
                Wake::Stop => return Ok(Next::End),
            }
            if since.elapsed() > DEBOUNCE_MAX {
                return Ok(Next::Sync);
            }
            wake = match self.receiver.recv_timeout(DEBOUNCE) {
                Ok(wake) => wake,
                Err(RecvTimeoutError::Timeout) => return Ok(Next::Sync),
                Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
            };
        }
    }
}

enum Next {
    Sync,
    End,
}

fn watch_folder(
    folder: &Path,
    (activity, sender): (Arc<Mutex<Activity>>, Sender<Wake>),
) -> Result<RecommendedWatcher, Error> {
    let root = folder.to_owned();
    let happened = move |event: notify::Result<notify::Event>| {
        if let Ok(event) = &event {
            activity.lock().unwrap_or_else(PoisonError::into_inner).note(event, &root);
        }
        // An error may mean that events were lost, so it is a reason to sync as well.
        if event.map_or(true, |event| is_significant(&event, &root)) {
            sender.send(Wake::Changed).unwrap_or_default();
        }
    };
    let watched = notify::recommended_watcher(happened).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    watched.map_err(|error| {
        Error::new(ErrorKind::StorageUnavailable, "the folder cannot be watched")
            .with_hint(
                "sync without `--watch` from time to time; on Linux, `fs.inotify.max_user_watches` \
                 limits how many directories can be watched",
            )
            .with_source(error)
    })
}

/// Returns whether an event may be about a file that is synced.
fn is_significant(event: &notify::Event, folder: &Path) -> bool {
    // The sync itself reads files, which must not wake it.
    let written = AccessKind::Close(AccessMode::Write);
    let is_reading = matches!(event.kind, EventKind::Access(kind) if kind != written);
    let is_hidden = |path: &Path| {
        let inside = path.strip_prefix(folder).unwrap_or(path);
        let names: Vec<_> = inside.iter().map(|name| name.to_string_lossy()).collect();
        let is_rules = names.last().is_some_and(|name| name == ".gitignore");
        let hidden_count = names.iter().filter(|name| name.starts_with('.')).count();
        hidden_count > usize::from(is_rules)
    };
    let is_all_hidden = !event.paths.is_empty() && event.paths.iter().all(|path| is_hidden(path));
    // The removal of the state must end the watch, so it counts.
    let is_marker = event.kind.is_remove() || matches!(event.kind, EventKind::Modify(_));
    let names_marker = event.paths.iter().any(|path| path.ends_with(super::state::MARKER));
    !is_reading && (!is_all_hidden || (is_marker && names_marker))
}

fn follow_store(engine: &Engine, store: StoreId, mut seen: Sequence, sender: &Sender<Wake>) {
    loop {
        let wake = match newer(engine, store, seen) {
            Ok((newest, is_ours)) => {
                seen = newest;
                if !is_ours {
                    continue;
                }
                Wake::Changed
            }
            Err(error) => Wake::Failed(error),
        };
        let is_over = matches!(wake, Wake::Failed(_));
        if sender.send(wake).is_err() || is_over {
            return;
        }
    }
}

/// Waits for changes; returns the newest sequence and whether any change is in the store.
fn newer(engine: &Engine, store: StoreId, seen: Sequence) -> Result<(Sequence, bool), Error> {
    let newest = engine.wait(seen, STORE_WAIT)?;
    let changes = engine.changes(seen, CHANGES_MAX)?;
    let is_ours = changes.items.iter().any(|change| change.store == store);
    Ok((newest, is_ours || changes.has_gap || changes.items.len() == CHANGES_MAX))
}
