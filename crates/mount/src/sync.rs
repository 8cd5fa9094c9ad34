//! Folder sync: a plain folder and a store, kept equal in both directions.
//!
//! [`scan`] reads the folder, [`state`] knows what both sides last had in common, [`plan`] works out
//! what to do, [`apply`] does it. Nothing is deleted because a folder, a disk or the state is not
//! there, and a text that leaves the folder is in the store's history.

mod apply;
mod data_directory;
mod failure;
mod files;
mod plan;
mod report;
mod rules;
mod scan;
mod state;
mod watch;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::engine::ListQuery;
use quipu_core::model::{Actor, Directory, Id as _, Listing, Memory, Store, StoreId, View};
use quipu_core::{Engine, Error, ErrorKind};

pub use data_directory::DataDirectory;
pub use report::{Deed, DeedKind, LeftOut, Report, Side, Start};
pub use watch::{Stopper, Watch};

use apply::{Applied, Hands};
use failure::folder_error;
use files::Folder;
use plan::{Plan, Task};
use rules::Rules;
use scan::Scan;
use state::{Agreed, Marker, State};

/// What is being tried again at most so often, when things change all the time.
const ROUNDS_MAX: usize = 5;

/// So many deletions need no question, if something is left.
const DELETIONS_UNASKED_MAX: usize = 10;

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

/// Both sides as they are now.
struct Look {
    start: Start,
    state: Option<State>,
    scan: Scan,
    memories: Vec<Memory>,
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
        let (data, actor) = (DataDirectory::default(), Mutex::default());
        Ok(Self { engine, store, folder, title, mass_deletion, data, actor })
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

    /// Tells what a sync would do, and changes nothing.
    pub fn preview(&self) -> Result<Report, Error> {
        let look = self.look()?;
        let files = Folder::new(&self.folder, PathBuf::new(), self.size_bytes_max());
        let (start, left_out) = (look.start, look.scan.left_out.clone());
        let plan = plan_of(look);
        let applied = self.hands(&files).foresee(&plan)?;
        let mut report = Report { left_out, start, ..Report::default() };
        report.in_sync_count = plan.steps.iter().filter(|step| is_unchanged(&step.task)).count();
        report.add(applied, &plan);
        Ok(report)
    }

    /// Keeps other syncs out of the folder.
    pub fn lock(&self) -> Result<LockedSync<'_>, Error> {
        self.require_own_state(state::read(&self.folder)?.as_ref())?;
        let marker = Marker::open(&self.folder)?;
        let files = Folder::new(&self.folder, marker.scratch(), self.size_bytes_max());
        let has_had_state = AtomicBool::new(marker.has_state());
        self.tidy(&marker)?;
        Ok(LockedSync { sync: self, marker, files, has_had_state })
    }

    /// Removes what a killed sync has left behind, unless it may be the only copy of a text.
    fn tidy(&self, marker: &Marker) -> Result<(), Error> {
        let state = state::read(&self.folder)?;
        let agreed = state.iter().flat_map(|state| &state.agreed).map(|entry| entry.folder_hash);
        let memories = self.memories()?;
        let held: HashSet<_> = memories.iter().map(|memory| memory.hash).chain(agreed).collect();
        marker.tidy(|file| match scan::read(file, self.size_bytes_max()) {
            Ok((found, _)) => found.size_bytes == 0 || held.contains(&found.hash),
            Err(_) => false,
        });
        Ok(())
    }

    fn size_bytes_max(&self) -> u64 {
        self.engine.limits().content_size_bytes_max
    }

    fn hands<'a>(&'a self, files: &'a Folder) -> Hands<'a> {
        Hands::new(&self.engine, &self.store, files, (&self.title, &self.actor))
    }

    fn look(&self) -> Result<Look, Error> {
        let state = state::read(&self.folder)?;
        self.require_own_state(state.as_ref())?;
        let rules = Rules::new(&self.folder);
        let scan = scan::scan(&self.folder, &rules, &self.data, self.size_bytes_max())?;
        let start = match &state {
            None => Start::First,
            Some(state) if self.went_back(state)? => Start::StoreWentBack,
            Some(_) => Start::Known,
        };
        let mut memories = self.memories()?;
        memories.retain(|memory| !rules.exclude(memory.path.as_str()));
        Ok(Look { start, state: state.filter(|_| start == Start::Known), scan, memories })
    }

    fn require_own_state(&self, state: Option<&State>) -> Result<(), Error> {
        match state {
            Some(state) if state.store != self.store.id => Err(Error::invalid(format!(
                "the folder is in sync with another store, `{}`",
                state.store
            ))
            .with_hint(
                "name that store, choose another folder, or remove `.quipu` from the folder to \
                 join it with this store",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Tells whether the store has forgotten what it held at the last sync, as a restored backup
    /// does. Then what it does not hold was not deleted.
    fn went_back(&self, state: &State) -> Result<bool, Error> {
        if self.engine.newest_sequence()? < state.sequence {
            return Ok(true);
        }
        let Some(newest) = state.newest else { return Ok(false) };
        let kept_since = self.engine.now().minus(self.engine.limits().versions_kept_for);
        match self.engine.version(self.store.id, newest, View::Basic) {
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                Ok(newest.created_at() > kept_since)
            }
            found => found.map(|_| false),
        }
    }

    fn memories(&self) -> Result<Vec<Memory>, Error> {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: None,
            limit: usize::MAX,
            view: View::Basic,
        };
        let listed = self.engine.list(self.store.id, &query)?.items;
        let memory = |line| match line {
            Listing::Memory(memory) => Some(memory),
            Listing::Directory(_) => None,
        };
        Ok(listed.into_iter().filter_map(memory).collect())
    }
}

impl LockedSync<'_> {
    /// Makes both sides equal.
    pub fn run(&self, progress: &dyn Progress) -> Result<Report, Error> {
        let mut report = Report::default();
        for round in 1..=ROUNDS_MAX {
            let is_last = round == ROUNDS_MAX;
            if self.has_had_state.load(Ordering::SeqCst) && !self.marker.has_state() {
                return Err(gone());
            }
            let look = self.sync.look()?;
            if round == 1 {
                report.start = look.start;
            }
            report.left_out.clone_from(&look.scan.left_out);
            let before = look.state.clone();
            let agreed_count = before.as_ref().map_or(0, |state| state.agreed.len());
            let plan = plan_of(look);
            self.sync.refuse_mass_deletion(&plan, agreed_count)?;
            let obstructed = Plan { obstructed: plan.obstructed.clone(), ..Plan::default() };
            let applied = self.sync.hands(&self.files).apply(plan, progress)?;
            report.in_sync_count = applied.agreed.len();
            self.keep(before.as_ref(), applied.agreed.clone())?;
            let is_done = applied.again.is_empty();
            if is_done || is_last {
                report.add(applied, &obstructed);
                break;
            }
            report.deeds.extend(applied.deeds);
        }
        Ok(report)
    }

    /// Notes what both sides have in common now.
    fn keep(&self, before: Option<&State>, mut agreed: Vec<Agreed>) -> Result<(), Error> {
        // What the state says to be in the folder must be there, whatever happens to the power.
        self.files.sync().map_err(|error| folder_error("the folder cannot be written", error))?;
        agreed.sort_by(|left, right| left.path.cmp(&right.path));
        let engine = &self.sync.engine;
        let newest = VersionQuery {
            filter: VersionFilter::default(),
            before: None,
            limit: 1,
            view: View::Basic,
        };
        let sequence = engine.newest_sequence()?;
        let newest = engine.versions(self.sync.store.id, &newest)?.items;
        let state = State {
            store: self.sync.store.id,
            sequence,
            newest: newest.first().map(|version| version.id),
            agreed,
        };
        if before != Some(&state) {
            self.marker.write(&state)?;
        }
        self.has_had_state.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl FolderSync {
    fn refuse_mass_deletion(&self, plan: &Plan, agreed_count: usize) -> Result<(), Error> {
        if self.mass_deletion == MassDeletion::Allow {
            return Ok(());
        }
        let count = |wanted: fn(&Task) -> bool| {
            plan.steps.iter().filter(|step| step.agreed.is_some() && wanted(&step.task)).count()
        };
        let from_store = count(|task| matches!(task, Task::DeleteMemory(_)));
        let from_folder = count(|task| matches!(task, Task::DeleteFile(_)));
        for (deletions, from, to) in
            [(from_store, "the folder", "store"), (from_folder, "the store", "folder")]
        {
            let is_most = deletions > DELETIONS_UNASKED_MAX && deletions * 2 > agreed_count;
            // If nothing else is to be done, one side is empty.
            let is_all = deletions > 0 && deletions == plan.steps.len() && plan.frozen.is_empty();
            if is_most || is_all {
                return Err(Error::new(
                    ErrorKind::LimitReached,
                    format!(
                        "{deletions} of {agreed_count} files are gone from {from}, and nothing was \
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

fn plan_of(look: Look) -> Plan {
    let agreed = look.state.map_or_else(Vec::new, |state| state.agreed);
    plan::plan(agreed, &look.scan, look.memories)
}

fn is_unchanged(task: &Task) -> bool {
    matches!(task, Task::Join(join) if join.changes_nothing())
}

fn gone() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the folder or its `.quipu` is gone")
        .with_hint("nothing was deleted from the store; bring the folder back, then sync again")
}

impl Report {
    fn add(&mut self, applied: Applied, plan: &Plan) {
        self.deeds.extend(applied.deeds);
        self.deeds.sort_by(|left, right| left.path.cmp(&right.path));
        self.failed = [applied.failed, applied.again].concat();
        self.failed.sort();
        let reason = "a memory belongs here, but something that cannot be one is in its place";
        self.left_out.extend(
            plan.obstructed
                .iter()
                .map(|path| LeftOut { path: path.to_string(), reason: reason.to_owned() }),
        );
        self.left_out.sort();
    }
}
