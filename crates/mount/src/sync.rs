//! Two-way sync between a plain folder and a store.
//!
//! A sync is a three-way comparison. [`state`] keeps the common ancestor, what both sides held when
//! they were last equal. [`snapshot`] reads what may have changed on either side since, [`plan`]
//! decides what to do about it without touching anything, and [`apply`] does it. [`recovery`] works
//! out what a killed sync had already done.
//!
//! Only what the ancestor lists can be deleted, and the ancestor lives in the folder itself. So a
//! missing folder, an unmounted disk or a lost state never looks like a deletion. Text that is
//! replaced or removed in the folder is in the store's history.

mod activity;
mod apply;
mod data_directory;
mod failure;
mod files;
mod kill;
mod listing;
mod plan;
mod preview;
mod record;
mod recovery;
mod report;
mod rules;
mod scan;
mod snapshot;
mod stamp;
mod state;
mod watch;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quipu_core::backend::Sequence;
use quipu_core::model::{Actor, Store, StoreId};
use quipu_core::{Engine, Error, ErrorKind};

pub use data_directory::DataDirectory;
pub use report::{Action, ActionKind, LeftOut, Report, Side, Start};
pub use watch::{Stopper, Watch};

use crate::names::NameRules;

use activity::Activity;
use apply::{Applied, Applier};
use failure::folder_error;
use files::Folder;
use plan::{Plan, Step, Task};
use record::Head;
use snapshot::Snapshot;
use state::{Marker, State, StateChange, StateFiles};

/// How many times a sync replans while files keep changing under it.
const ROUNDS_MAX: usize = 5;

/// How many deletions are carried out without `--allow-mass-deletion`, unless nothing would be
/// left.
const DELETIONS_UNCONFIRMED_MAX: usize = 10;

/// What to do if a sync would delete most of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MassDeletion {
    /// Fail without changing anything.
    #[default]
    Refuse,
    /// Carry out the deletions.
    Allow,
}

/// Receives the progress of a sync.
pub trait Progress: Sync {
    /// Starts a round of `count` steps.
    fn begin(&self, count: usize);

    /// Counts one step as done.
    fn advance(&self);
}

/// Ignores the progress.
impl Progress for () {
    fn begin(&self, _: usize) {}

    fn advance(&self) {}
}

/// A folder and the store it is synced with.
#[derive(Debug)]
pub struct FolderSync {
    engine: Engine,
    store: Store,
    folder: PathBuf,
    title: String,
    mass_deletion: MassDeletion,
    data: DataDirectory,
    names: NameRules,
    actor: Mutex<Option<Actor>>,
}

/// A folder that is locked against other syncs.
#[derive(Debug)]
pub struct LockedSync<'a> {
    sync: &'a FolderSync,
    marker: Marker,
    files: Folder,
    /// Whether the folder had a state at any time since it was locked. If that state disappears,
    /// the folder was unmounted or wiped, and a sync must not begin with a new one.
    has_had_state: AtomicBool,
}

impl FolderSync {
    /// Pairs a folder, which must exist, with a store.
    pub fn new(
        engine: Engine,
        store: StoreId,
        folder: &Path,
        mass_deletion: MassDeletion,
    ) -> Result<Self, Error> {
        let store = engine.store(store)?;
        let Some(folder) = folder.canonicalize().ok().filter(|folder| folder.is_dir()) else {
            return Err(Error::not_found("the folder does not exist")
                .with_hint("create it first, or mount the disk that it is on"));
        };
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let title = format!("sync {name}");
        let (data, names) = (DataDirectory::default(), NameRules::default());
        let actor = Mutex::default();
        Ok(Self { engine, store, folder, title, mass_deletion, data, names, actor })
    }

    /// Excludes the engine's own data directory, wherever in the folder it is.
    pub fn without(mut self, data: DataDirectory) -> Result<Self, Error> {
        if data.is(&self.folder) {
            return Err(Error::invalid("the folder is Quipu's data directory")
                .with_hint("choose another folder"));
        }
        self.data = data;
        Ok(self)
    }

    /// Replaces the default rules for scratch files.
    #[must_use]
    pub fn with_names(mut self, names: NameRules) -> Self {
        self.names = names;
        self
    }

    /// Returns what a sync would do, without changing anything.
    pub fn preview(&self) -> Result<Report, Error> {
        let files = StateFiles::read(&self.folder)?;
        let state = files.state();
        let start = self.start(state.as_ref())?;
        let mut snapshot = self.snapshot(state.filter(|_| start == Start::Known), (None, None))?;
        let folder = Folder::new(&self.folder, PathBuf::new(), self.size_bytes_max());
        folder.spell(std::mem::take(&mut snapshot.scan.spellings));
        let plan = snapshot.plan();
        let applied = self.applier(&folder, None).preview(&plan)?;
        let mut report = Report { start, ..Report::default() };
        let unchanged_count = plan.steps.iter().filter(|step| is_unchanged(&step.task)).count();
        report.in_sync_count = snapshot.unchanged_count() + unchanged_count;
        report.add(applied);
        report.left_out = left_out(&snapshot, &plan);
        Ok(report)
    }

    /// Locks the folder against other syncs.
    pub fn lock(&self) -> Result<LockedSync<'_>, Error> {
        if let Some(store) = state::store_of(&self.folder) {
            self.require_store(store)?;
        }
        let marker = Marker::open(&self.folder)?;
        let files = Folder::new(&self.folder, marker.scratch(), self.size_bytes_max());
        let has_had_state = AtomicBool::new(marker.has_state());
        self.tidy(&marker)?;
        Ok(LockedSync { sync: self, marker, files, has_had_state })
    }

    /// Removes scratch files of a killed sync, except those that may be the only copy of a text.
    fn tidy(&self, marker: &Marker) -> Result<(), Error> {
        let leftovers = marker.leftovers();
        if leftovers.is_empty() {
            return Ok(());
        }
        // A hash in the state proves nothing: the file it describes may be gone by now, and this
        // one may be what is left of it. Only the store counts.
        let held: HashSet<_> = self.all_memories()?.iter().map(|memory| memory.hash).collect();
        for leftover in leftovers {
            let found = scan::read(&leftover, self.size_bytes_max(), None);
            if found.is_ok_and(|(found, _)| found.size_bytes == 0 || held.contains(&found.hash)) {
                // A file that cannot be removed does no harm here.
                std::fs::remove_file(leftover).unwrap_or_default();
            }
        }
        Ok(())
    }

    fn size_bytes_max(&self) -> u64 {
        self.engine.limits().content_size_bytes_max
    }

    fn applier<'a>(&'a self, files: &'a Folder, marker: Option<&'a Marker>) -> Applier<'a> {
        Applier::new(&self.engine, &self.store, (files, marker), (&self.title, &self.actor))
    }
}

impl LockedSync<'_> {
    /// Makes both sides equal.
    pub fn run(&self, progress: &dyn Progress) -> Result<Report, Error> {
        self.run_watched(None, progress).map(|(report, _)| report)
    }

    /// Makes both sides equal, except for files that are being written. Also returns when to look
    /// at those again.
    fn run_watched(
        &self,
        activity: Option<&Mutex<Activity>>,
        progress: &dyn Progress,
    ) -> Result<(Report, Option<Duration>), Error> {
        let mut report = Report::default();
        let mut rescan_after = None;
        for round in 1..=ROUNDS_MAX {
            let mut files = StateFiles::read(&self.sync.folder)?;
            if self.has_had_state.load(Ordering::SeqCst) && !files.has_checkpoint() {
                return Err(gone());
            }
            let mut state = files.state();
            let start = self.sync.start(state.as_ref())?;
            if round == 1 {
                report.start = start;
            }
            if start != Start::Known {
                files = self.begin(&files)?;
                state = files.state();
            }
            self.has_had_state.store(true, Ordering::SeqCst);
            let Some(state) = state else { return Err(gone()) };
            let now = self.marker.now();
            let mut snapshot = {
                let activity = activity.map(|it| it.lock().unwrap_or_else(PoisonError::into_inner));
                self.sync.snapshot(Some(state), (now, activity.as_deref()))?
            };
            rescan_after = snapshot.scan.rescan_after;
            self.files.spell(std::mem::take(&mut snapshot.scan.spellings));
            let plan = snapshot.plan();
            self.sync.refuse_mass_deletion(&plan, &snapshot)?;
            let left_out = left_out(&snapshot, &plan);
            let is_working = plan.steps.iter().any(|step| Step::intent(step).is_some());
            let opens = |state: &&mut State<'_>| is_working || state.interrupted.is_some();
            if let Some(state) = snapshot.state.as_mut().filter(opens) {
                self.marker.continue_journal(state)?;
                // From here on the journal is open, so the state must be written to close it, even
                // if nothing else changes.
                state.interrupted.get_or_insert_default();
            }
            let applied =
                self.sync.applier(&self.files, Some(&self.marker)).apply(plan, progress)?;
            report.in_sync_count = snapshot.unchanged_count() + applied.synced.len();
            let is_over = applied.retry.is_empty() || round == ROUNDS_MAX;
            let mut change = change(&snapshot, &applied);
            if !is_over {
                report.actions.extend(applied.actions);
                self.keep(&snapshot, &change)?;
                continue;
            }
            report.add(applied);
            report.left_out = left_out;
            report.mark_repeated(&snapshot, &mut change);
            self.keep(&snapshot, &change)?;
            break;
        }
        Ok((report, rescan_after))
    }

    /// Writes an empty state.
    fn begin(&self, before: &StateFiles) -> Result<StateFiles, Error> {
        // Sequence 0 makes the next snapshot read every memory.
        let head = Head { sequence: Sequence(0), ..self.sync.head()? };
        self.marker.begin(before, head)?;
        StateFiles::read(&self.sync.folder)
    }

    /// Writes what both sides have in common now.
    fn keep(&self, snapshot: &Snapshot<'_>, change: &StateChange) -> Result<(), Error> {
        // The folder first: after a power loss, a file that the state lists but that never reached
        // the disk would look deleted.
        self.files.sync().map_err(|error| folder_error("the folder cannot be written", error))?;
        let Some(state) = &snapshot.state else { return Ok(()) };
        if state.interrupted.is_none() {
            if change.is_empty() {
                return Ok(());
            }
            self.marker.continue_journal(state)?;
        }
        self.marker.write(state, change)
    }
}

/// Returns what a sync changes in the state.
fn change(snapshot: &Snapshot<'_>, applied: &Applied) -> StateChange {
    let mut change = StateChange::default();
    let now: HashMap<_, _> = applied.synced.iter().map(|it| (it.path.as_str(), it)).collect();
    let gone = snapshot.before.keys().filter(|path| !now.contains_key(path.as_str()));
    change.gone = gone.cloned().collect();
    let is_new = |path: &str, entry| snapshot.before.get(path) != Some(entry);
    let new = now.into_iter().filter(|(path, entry)| is_new(path, *entry));
    change.synced = new.map(|(_, entry)| entry.clone()).collect();
    let in_sync: HashSet<_> = applied.synced.iter().map(|entry| entry.memory).collect();
    let is_store_only = |id: &&_| !in_sync.contains(*id) && !applied.deleted.contains(*id);
    let store_only: HashSet<_> =
        snapshot.considered.iter().filter(is_store_only).copied().collect();
    let Some(state) = &snapshot.state else { return change };
    change.store_only = Some(store_only).filter(|store_only| *store_only != state.store_only);
    change.head = Some(snapshot.head).filter(|head| *head != state.head);
    change
}

/// Returns what is left out, each path once.
fn left_out(snapshot: &Snapshot<'_>, plan: &Plan) -> Vec<LeftOut> {
    let mut left_out: Vec<_> = snapshot.scan.left_out.iter().map(|(it, _)| it.clone()).collect();
    let known: HashSet<_> = left_out.iter().map(|it| it.path.clone()).collect();
    let reason = "a memory belongs at this path, but something that cannot be one is in the way";
    let obstructed = plan.obstructed.iter().map(ToString::to_string);
    left_out.extend(
        obstructed
            .filter(|path| !known.contains(path))
            .map(|path| LeftOut { path, reason: reason.to_owned() }),
    );
    left_out.sort();
    left_out
}

impl FolderSync {
    fn refuse_mass_deletion(&self, plan: &Plan, snapshot: &Snapshot<'_>) -> Result<(), Error> {
        let synced_count = snapshot.synced_count();
        if self.mass_deletion == MassDeletion::Allow {
            return Ok(());
        }
        let count = |wanted: fn(&Task) -> bool| {
            plan.steps.iter().filter(|step| step.synced.is_some() && wanted(&step.task)).count()
        };
        let from_store = count(|task| matches!(task, Task::DeleteMemory(_)));
        let from_folder = count(|task| matches!(task, Task::DeleteFile(_)));
        for (deletions, from, to) in
            [(from_store, "the folder", "store"), (from_folder, "the store", "folder")]
        {
            let is_most = deletions > DELETIONS_UNCONFIRMED_MAX && deletions * 2 > synced_count;
            // Nothing but deletions and nothing unchanged: one side is empty.
            let is_all = deletions > 0
                && deletions == plan.steps.len()
                && plan.frozen.is_empty()
                && snapshot.unchanged_count() == 0;
            if is_most || is_all {
                return Err(Error::new(
                    ErrorKind::LimitReached,
                    format!(
                        "{deletions} of {synced_count} files are gone from {from}; nothing was \
                         deleted from the {to}"
                    ),
                )
                .with_hint(
                    "if this is intended, sync again with `--allow-mass-deletion`; otherwise restore \
                     them, or remove `.quipu` from the folder to get everything again",
                ));
            }
        }
        Ok(())
    }
}

fn is_unchanged(task: &Task) -> bool {
    matches!(task, Task::Join(join) if join.changes_nothing())
}

fn gone() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the folder or its `.quipu` is gone")
        .with_hint("nothing was deleted from the store; restore the folder, then sync again")
}

impl Report {
    fn add(&mut self, applied: Applied) {
        self.actions.extend(applied.actions);
        self.actions.sort_by(|left, right| left.path.cmp(&right.path));
        self.failed = [applied.failed, applied.retry].concat();
        self.failed.sort();
    }

    /// Marks what earlier syncs have reported already, and adds what this one reports first to the
    /// state.
    fn mark_repeated(&mut self, snapshot: &Snapshot<'_>, change: &mut StateChange) {
        let Some(state) = &snapshot.state else { return };
        let fingerprint: HashMap<_, _> = snapshot
            .scan
            .left_out
            .iter()
            .map(|(it, fingerprint)| (&it.path, *fingerprint))
            .collect();
        let mut paths = HashSet::new();
        for left_out in &self.left_out {
            let fingerprint = fingerprint.get(&left_out.path).copied().flatten();
            let known = state.left_out.get(&left_out.path);
            if known.is_some_and(|(reason, _)| *reason == left_out.reason) {
                self.repeated.insert(left_out.clone());
            }
            if known
                .is_none_or(|(reason, known)| *reason != left_out.reason || *known != fingerprint)
            {
                change.left_out.push((left_out.clone(), fingerprint));
            }
            paths.insert(&left_out.path);
        }
        for failed in &self.failed {
            if state.failed.contains(failed) {
                self.repeated.insert(failed.clone());
            } else {
                change.failed.push(failed.clone());
            }
        }
        let is_failing = |failed: &LeftOut| self.failed.contains(failed);
        let over = state.failed.iter().filter(|failed| !is_failing(failed)).map(|it| &it.path);
        let gone = state.left_out.keys().filter(|path| !paths.contains(path));
        change.resolved = over.chain(gone).cloned().collect();
        // A path is resolved as a whole, so a failure that persists on a path that is no longer
        // left out must be recorded again.
        let is_resolved = |path: &String| change.resolved.contains(path);
        let again =
            self.failed.iter().filter(|it| is_resolved(&it.path) && state.failed.contains(it));
        change.failed.extend(again.cloned());
    }
}
