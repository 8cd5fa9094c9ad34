//! Both sides as they are now, limited to what may have changed since the last sync.
//!
//! The folder is scanned in full, but only files with a new fingerprint are read. Of the store,
//! only memories that the change feed names are read. What neither side names is equal on both
//! sides by the state, and the plan never sees it.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use quipu_core::backend::{Event, VersionFilter, VersionQuery};
use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, Memory, MemoryId, StoreId, VersionId, View};
use quipu_core::{Error, ErrorKind};

use super::FolderSync;
use super::activity::Activity;
use super::plan::{self, Plan};
use super::record::{Head, Line, SyncedEntry};
use super::recovery::recovered;
use super::report::Start;
use super::rules::Rules;
use super::scan::{self, FoundFile, Scan, ScanOptions};
use super::stamp::FolderTime;
use super::state::State;

/// How many changed memories are read one by one. Beyond that, listing the store is cheaper.
const CHANGES_MAX: usize = 1000;

/// What may have changed on either side.
pub(super) struct Snapshot<'a> {
    pub(super) state: Option<State<'a>>,
    pub(super) scan: Scan,
    /// The head of the store before it was read.
    pub(super) head: Head,
    /// The entries that may have changed, by path.
    pub(super) before: HashMap<String, SyncedEntry>,
    /// The same, with the effects of a killed sync.
    synced: Vec<SyncedEntry>,
    memories: Vec<Memory>,
    /// The memories that were read, excluded ones too.
    pub(super) considered: HashSet<MemoryId>,
}

impl Snapshot<'_> {
    /// Returns how many entries are known to be unchanged.
    pub(super) fn unchanged_count(&self) -> usize {
        self.synced_count() - self.before.len()
    }

    /// Returns how many entries the state has.
    pub(super) fn synced_count(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.entries.len())
    }

    /// Plans what makes both sides equal.
    pub(super) fn plan(&mut self) -> Plan {
        let synced = std::mem::take(&mut self.synced);
        let memories = std::mem::take(&mut self.memories);
        let recovered: HashSet<_> = synced.iter().map(|entry| entry.path.clone()).collect();
        let is_synced = |path: &_| {
            let path: &quipu_core::model::MemoryPath = path;
            let is_resolved = |state: &State<'_>| {
                state.entries.contains_key(path.as_str())
                    && !self.before.contains_key(path.as_str())
            };
            recovered.contains(path) || self.state.as_ref().is_some_and(is_resolved)
        };
        plan::plan(synced, &self.scan, memories, &is_synced)
    }
}

impl FolderSync {
    /// Returns what folder and store have in common; fails if the state belongs to another store.
    pub(super) fn start(&self, state: Option<&State<'_>>) -> Result<Start, Error> {
        let Some(state) = state else { return Ok(Start::First) };
        self.require_store(state.head.store)?;
        Ok(if self.went_back(&state.head)? { Start::StoreWentBack } else { Start::Known })
    }

    /// Fails if the folder belongs to another store.
    pub(super) fn require_store(&self, store: StoreId) -> Result<(), Error> {
        if store == self.store.id {
            return Ok(());
        }
        Err(Error::invalid(format!("the folder is synced with another store, `{store}`"))
            .with_hint(
                "name that store, choose another folder, or remove `.quipu` from the folder to \
                 join it with this store",
            ))
    }

    /// Returns whether the store is older than at the last sync, as after a restored backup. Then
    /// what it lacks was never deleted, and files must not be deleted for it.
    fn went_back(&self, head: &Head) -> Result<bool, Error> {
        if self.engine.newest_sequence()? < head.sequence {
            return Ok(true);
        }
        let Some(newest) = head.newest else { return Ok(false) };
        let kept_since = self.engine.now().minus(self.engine.limits().versions_kept_for);
        match self.engine.version(self.store.id, newest, View::Basic) {
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                use quipu_core::model::Id as _;
                Ok(newest.created_at() > kept_since)
            }
            found => found.map(|_| false),
        }
    }

    /// Returns the head of the store.
    pub(super) fn head(&self) -> Result<Head, Error> {
        let sequence = self.engine.newest_sequence()?;
        let newest = self.newest_version()?;
        Ok(Head { store: self.store.id, sequence, newest, settings: self.settings() })
    }

    fn newest_version(&self) -> Result<Option<VersionId>, Error> {
        let newest = VersionQuery {
            filter: VersionFilter::default(),
            before: None,
            limit: 1,
            view: View::Basic,
        };
        let newest = self.engine.versions(self.store.id, &newest)?.items;
        Ok(newest.first().map(|version| version.id))
    }

    /// Returns a digest of the settings that decide which files can be memories.
    fn settings(&self) -> u64 {
        let text = format!("{:?} {}", self.names, self.size_bytes_max());
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Takes a snapshot of both sides.
    pub(super) fn snapshot<'a>(
        &self,
        state: Option<State<'a>>,
        (now, activity): (Option<FolderTime>, Option<&Activity>),
    ) -> Result<Snapshot<'a>, Error> {
        let scanned_at = Instant::now();
        // The head is taken before anything is read. A change that comes in between may be seen now
        // and again by the next sync, which is harmless; taken afterwards, it would never be seen.
        let head = self.head()?;
        let rules = Rules::new(&self.folder, &self.names);
        let is_whole = |state: &&State<'_>| state.interrupted.is_none();
        let looking = ScanOptions {
            folder: &self.folder,
            rules: &rules,
            data: &self.data,
            size_bytes_max: self.size_bytes_max(),
            now,
            activity: activity.map(|activity| (activity, scanned_at)),
            known: state.as_ref().filter(is_whole).filter(|it| it.head.settings == head.settings),
        };
        let mut scan = scan::scan(&looking)?;
        let changed = state.as_ref().filter(is_whole).map(|state| self.changed_since(state, &head));
        let (lines, changed) = match (&state, changed.transpose()?.flatten()) {
            (None, _) => (Vec::new(), None),
            (Some(state), Some(changed)) => maybe_changed(state, &scan, changed),
            (Some(state), None) => (state.entries.values().copied().collect(), None),
        };
        let mut before = Vec::with_capacity(lines.len());
        for line in lines {
            let entry = line.parse().ok_or_else(unreadable)?;
            if scan.is_unchanged(line) {
                scan.files.insert(entry.path.clone(), FoundFile::from(&entry));
            }
            before.push(entry);
        }
        let mut memories = self.memories(changed)?;
        let considered = memories.iter().map(|memory| memory.id).collect();
        memories.retain(|memory| !rules.exclude(memory.path.as_str()));
        let synced = match state.as_ref().map(|state| (&state.interrupted, &state.head)) {
            Some((Some(interrupted), head)) => {
                let side = (&self.engine, &self.store);
                recovered(before.clone(), (interrupted, head), &scan, side)?
            }
            Some((None, _)) | None => before.clone(),
        };
        let before = before.into_iter().map(|entry| (entry.path.to_string(), entry)).collect();
        Ok(Snapshot { state, scan, head, before, synced, memories, considered })
    }

    /// Returns the memories that changed since the state was written; `None` if the feed no longer
    /// tells, or if listing all memories is cheaper.
    fn changed_since(
        &self,
        state: &State<'_>,
        head: &Head,
    ) -> Result<Option<HashSet<MemoryId>>, Error> {
        let mut changed = HashSet::new();
        if (state.head.sequence, state.head.newest) == (head.sequence, head.newest) {
            return Ok(Some(changed));
        }
        // After a failover that lost the newest changes, their numbers belong to others.
        let known = state.head.newest.map(|id| self.engine.version(self.store.id, id, View::Basic));
        match known {
            Some(Err(error)) if *error.kind() == ErrorKind::NotFound => return Ok(None),
            Some(Err(error)) => return Err(error),
            Some(Ok(_)) | None => {}
        }
        let changes = self.engine.changes(state.head.sequence, CHANGES_MAX + 1)?;
        // A state that is ahead of the feed belongs to other data.
        let is_ahead = changes.items.is_empty();
        if changes.has_gap || is_ahead || changes.items.len() > CHANGES_MAX {
            return Ok(None);
        }
        for change in changes.items.iter().filter(|change| change.store == self.store.id) {
            let Event::Version(version) = change.event else { continue };
            match self.engine.version(self.store.id, version, View::Basic) {
                Ok(version) => drop(changed.insert(version.memory)),
                Err(error) if *error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(changed))
    }

    /// Returns the wanted memories, or all of them.
    fn memories(&self, wanted: Option<HashSet<MemoryId>>) -> Result<Vec<Memory>, Error> {
        let Some(wanted) = wanted else { return self.all_memories() };
        let mut memories = Vec::new();
        for id in wanted {
            match self.engine.memory(self.store.id, id, View::Basic) {
                Ok(memory) => memories.push(memory),
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(memories)
    }

    pub(super) fn all_memories(&self) -> Result<Vec<Memory>, Error> {
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

type MaybeChanged<'a> = (Vec<Line<'a>>, Option<HashSet<MemoryId>>);

/// Returns the entries that may have changed, and the memories to read; `None` stands for all of
/// them.
fn maybe_changed<'a>(
    state: &State<'a>,
    scan: &Scan,
    mut changed: HashSet<MemoryId>,
) -> MaybeChanged<'a> {
    let changed_texts: HashSet<_> = changed.iter().map(ToString::to_string).collect();
    let lines: Vec<_> = state
        .entries
        .values()
        .filter(|line| {
            !scan.is_unchanged(**line)
                || (!changed_texts.is_empty() && changed_texts.contains(line.memory()))
        })
        .copied()
        .collect();
    changed.extend(lines.iter().filter_map(|line| line.memory().parse::<MemoryId>().ok()));
    changed.extend(&state.store_only);
    if changed.len() > CHANGES_MAX {
        return (state.entries.values().copied().collect(), None);
    }
    (lines, Some(changed))
}

impl From<&SyncedEntry> for FoundFile {
    /// Returns the file of an unchanged entry.
    fn from(entry: &SyncedEntry) -> Self {
        Self {
            hash: entry.folder_hash,
            size_bytes: entry.stamp.map_or(0, super::stamp::Stamp::size_bytes),
            identity: entry.identity,
            stamp: entry.stamp,
        }
    }
}

fn unreadable() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the state of the sync is damaged").with_hint(
        "remove `.quipu` from the folder to join it with the store again; nothing is lost",
    )
}
