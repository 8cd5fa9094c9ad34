//! Folder sync: a plain folder and a store, kept equal in both directions.
//!
//! [`snapshot`] finds what may have changed on both sides since the last sync, which [`state`] knows;
//! [`plan`] works out what to do, [`apply`] does it, and [`recovery`] finds out what a killed sync
//! has done. Nothing is deleted because a folder, a disk or the state is not there, and a text that
//! leaves the folder is in the store's history.

mod activity;
mod apply;
mod data_directory;
mod failure;
mod files;
mod kill;
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

/// What is being tried again at most so often, when things change all the time.
const ROUNDS_MAX: usize = 5;

/// So many deletions need no question, if something is left.
const DELETIONS_UNCONFIRMED_MAX: usize = 10;

/// What to do if a sync would delete most of what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MassDeletion {
    /// Change nothing and say so.
    #[default]
    Refuse,
    /// Delete it.
    Allow,
}

/// Is told how far a sync has come.
pub trait Progress: Sync {
    /// So many things are to be done.
    fn begin(&self, count: usize);

    /// One of them is done.
    fn advance(&self);
}

/// Nobody wants to know.
impl Progress for () {
    fn begin(&self, _: usize) {}

    fn advance(&self) {}
}

/// A folder and the store that it is kept equal to.
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

/// A folder that no other sync may touch.
#[derive(Debug)]
pub struct LockedSync<'a> {
    sync: &'a FolderSync,
    marker: Marker,
    files: Folder,
    /// Whether the folder has had a state since it was locked.
    has_had_state: AtomicBool,
}

impl FolderSync {
    /// Names a folder, which must exist, and a store.
    pub fn new(
        engine: Engine,
        store: StoreId,
        folder: &Path,
        mass_deletion: MassDeletion,
    ) -> Result<Self, Error> {
        let store = engine.store(store)?;
        let Some(folder) = folder.canonicalize().ok().filter(|folder| folder.is_dir()) else {
            return Err(Error::not_found("the folder does not exist")
                .with_hint("make it first; if it is on a disk that is not mounted, mount it"));
        };
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let title = format!("sync {name}");
        let (data, names) = (DataDirectory::default(), NameRules::default());
        let actor = Mutex::default();
        Ok(Self { engine, store, folder, title, mass_deletion, data, names, actor })
    }

    /// Leaves the engine's own data directory out, wherever in the folder it is.
    pub fn without(mut self, data: DataDirectory) -> Result<Self, Error> {
        if data.is(&self.folder) {
            return Err(Error::invalid("the folder is Quipu's data directory")
                .with_hint("choose another folder"));
        }
        self.data = data;
        Ok(self)
    }

    /// Leaves files out by other rules than the usual ones.
    #[must_use]
    pub fn with_names(mut self, names: NameRules) -> Self {
        self.names = names;
        self
    }

    /// Tells what a sync would do, and changes nothing.
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

    /// Keeps other syncs out of the folder.
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

    /// Removes what a killed sync has left behind, unless it may be the only copy of a text.
    fn tidy(&self, marker: &Marker) -> Result<(), Error> {
        let leftovers = marker.leftovers();
        if leftovers.is_empty() {
            return Ok(());
        }
        // What was agreed may be gone from the folder by now, so only the store counts.
        let held: HashSet<_> = self.all_memories()?.iter().map(|memory| memory.hash).collect();
        for leftover in leftovers {
            let found = scan::read(&leftover, self.size_bytes_max(), None);
            if found.is_ok_and(|(found, _)| found.size_bytes == 0 || held.contains(&found.hash)) {
                // What cannot be removed is in nobody's way.
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

    /// Makes both sides equal, except for files that somebody is writing just now; also returns
    /// when to look at those again.
    fn run_watched(
        &self,
        activity: Option<&Mutex<Activity>>,
        progress: &dyn Progress,
    ) -> Result<(Report, Option<Duration>), Error> {
        let mut report = Report::default();
        let mut rescan_after = None;
        for round in 1..=ROUNDS_MAX {
            let mut files = StateFiles::read(&self.sync.folder)?;
            if self.has_had_state.load(Ordering::SeqCst) && !files.has_snapshot() {
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
                // From here on the journal is open, and what is kept must close it.
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

    /// Begins a state in which nothing is agreed.
    fn begin(&self, before: &StateFiles) -> Result<StateFiles, Error> {
        // Nothing was ever taken into account, so every memory is looked at.
        let head = Head { sequence: Sequence(0), ..self.sync.head()? };
        self.marker.begin(before, head)?;
        StateFiles::read(&self.sync.folder)
    }

    /// Notes what both sides have in common now.
    fn keep(&self, snapshot: &Snapshot<'_>, change: &StateChange) -> Result<(), Error> {
        // What the state says to be in the folder must be there, whatever happens to the power.
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

/// Returns what takes no part, each path once.
fn left_out(snapshot: &Snapshot<'_>, plan: &Plan) -> Vec<LeftOut> {
    let mut left_out: Vec<_> = snapshot.scan.left_out.iter().map(|(it, _)| it.clone()).collect();
    let known: HashSet<_> = left_out.iter().map(|it| it.path.clone()).collect();
    let reason = "a memory belongs here, but something that cannot be one is in its place";
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
            // If nothing else is to be done, one side is empty.
            let is_all = deletions > 0
                && deletions == plan.steps.len()
                && plan.frozen.is_empty()
                && snapshot.unchanged_count() == 0;
            if is_most || is_all {
                return Err(Error::new(
                    ErrorKind::LimitReached,
                    format!(
                        "{deletions} of {synced_count} files are gone from {from}, and nothing was \
                         deleted from the {to} for it"
                    ),
                )
                .with_hint(
                    "if that is meant, sync again with `--allow-mass-deletion`; if not, bring them \
                     back, or remove `.quipu` from the folder to get everything again",
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
        .with_hint("nothing was deleted from the store; bring the folder back, then sync again")
}

impl Report {
    fn add(&mut self, applied: Applied) {
        self.actions.extend(applied.actions);
        self.actions.sort_by(|left, right| left.path.cmp(&right.path));
        self.failed = [applied.failed, applied.retry].concat();
        self.failed.sort();
    }

    /// Finds out what earlier syncs said already, and what the state must know of what this one says.
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
        // What is settled in one way may go on in the other.
        let is_resolved = |path: &String| change.resolved.contains(path);
        let again =
            self.failed.iter().filter(|it| is_resolved(&it.path) && state.failed.contains(it));
        change.failed.extend(again.cloned());
    }
}
