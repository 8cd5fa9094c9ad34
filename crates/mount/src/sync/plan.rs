//! The plan: a three-way comparison of folder, store and their common ancestor.
//!
//! Planning is pure: it reads and changes nothing, so it can be tested alone and a dry run shows
//! exactly what a sync would do. Steps are idempotent: whatever part of a plan was carried out, the
//! next plan leads to the same end.
//!
//! Without the ancestor a two-way comparison could not tell "new here" from "deleted there".
//! Matching goes from certain to likely: memories by id, files by path, then by inode (a rename),
//! then by content (a rename by copy and delete). Only what is unmatched after all of that counts
//! as deleted or new. When in doubt, nothing is deleted: an entry whose file cannot be seen is
//! frozen, and a change beats a deletion.

use std::collections::{BTreeMap, HashMap, HashSet};

use quipu_core::model::{Memory, MemoryId, MemoryPath, VersionId};

use super::record::{Intent, IntentKind, SyncedEntry};
use super::scan::{FoundFile, Scan};
use super::stamp::Identity;

/// The steps of a sync, and what it leaves alone.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Entries whose file cannot be seen now. They stay in the state as they are: neither deleted
    /// nor in sync.
    pub(super) frozen: Vec<SyncedEntry>,
    /// Memories that cannot be written because something else is at their path.
    pub(super) obstructed: Vec<MemoryPath>,
}

/// A task, and the entry of the state that it is about.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) synced: Option<SyncedEntry>,
    pub(super) task: Task,
}

#[derive(Debug)]
pub(super) enum Task {
    /// The file is gone and the memory has not changed.
    DeleteMemory(Memory),
    /// The memory is gone and the file has not changed.
    DeleteFile(Place),
    /// Only the file exists.
    CreateMemory(Place),
    /// Only the memory exists.
    CreateFile(Memory),
    /// Both exist.
    Join(Join),
}

/// A file and its path.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: MemoryPath,
    pub(super) file: FoundFile,
}

/// A memory and a file to be made equal.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) memory: Memory,
    pub(super) place: Place,
    /// Where both should be.
    pub(super) path: MemoryPath,
    pub(super) text: TextFrom,
}

/// The source of the text for both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFrom {
    /// Each side keeps its own.
    Same,
    Folder,
    Store,
    /// A merge; the version is the common ancestor.
    Merge(Option<VersionId>),
}

impl Step {
    /// Returns the record for the journal; `None` if the step changes nothing.
    pub(super) fn intent(&self) -> Option<Intent> {
        let memory_of = |memory: &Memory| (memory.id, memory.version, memory.hash);
        let synced = self.synced.as_ref();
        let (kind, memory, file, from, path) = match &self.task {
            Task::DeleteMemory(memory) => {
                let from = synced.map_or(&memory.path, |synced| &synced.path);
                (IntentKind::DeleteMemory, Some(memory_of(memory)), None, from, &memory.path)
            }
            Task::DeleteFile(Place { path, file }) => {
                let from = synced.map_or(path, |synced| &synced.path);
                (IntentKind::DeleteFile, None, Some(file.hash), from, path)
            }
            Task::CreateMemory(Place { path, file }) => {
                (IntentKind::CreateMemory, None, Some(file.hash), path, path)
            }
            Task::CreateFile(memory) => {
                let path = &memory.path;
                (IntentKind::CreateFile, Some(memory_of(memory)), None, path, path)
            }
            Task::Join(join) if join.changes_nothing() => return None,
            Task::Join(Join { memory, place, path, text }) => {
                let kind = match text {
                    TextFrom::Same => IntentKind::Move,
                    TextFrom::Folder => IntentKind::ToStore,
                    TextFrom::Store => IntentKind::ToFolder,
                    TextFrom::Merge(_) => IntentKind::Merge,
                };
                (kind, Some(memory_of(memory)), Some(place.file.hash), &place.path, path)
            }
        };
        let (from, path) = (from.clone(), path.clone());
        Some(Intent { kind, memory, folder_hash: file, from, path })
    }
}

impl Join {
    pub(super) fn moves_file(&self) -> bool {
        self.path != self.place.path
    }

    pub(super) fn changes_nothing(&self) -> bool {
        self.text == TextFrom::Same && !self.moves_file() && self.path == self.memory.path
    }
}

/// Returns the steps that make both sides equal.
///
/// Entries, files and memories are only those that may have changed; `is_synced` knows the paths of
/// all entries.
pub(super) fn plan(
    synced: Vec<SyncedEntry>,
    scan: &Scan,
    memories: Vec<Memory>,
    is_synced: &dyn Fn(&MemoryPath) -> bool,
) -> Plan {
    let mut planner = Planner {
        scan,
        is_synced,
        occupied: memories.iter().map(|memory| memory.path.clone()).collect(),
        files: scan.files.iter().map(|(path, file)| (path.clone(), *file)).collect(),
        memories: memories.into_iter().map(|memory| (memory.id, memory)).collect(),
        plan: Plan::default(),
    };
    let mut matched = planner.match_files(synced);
    planner.match_renames(&mut matched);
    let unmatched = planner.memories.values().map(|memory| (memory.path.clone(), memory.id));
    let unmatched = unmatched.collect();
    for entry in matched {
        // A file that is still being written is not in the scan. It may be this one under a new
        // name, and deleting the memory now would turn a rename into a deletion and a creation.
        if entry.place.is_none() && scan.hides_renames() {
            planner.plan.frozen.push(entry.synced);
            continue;
        }
        planner.decide(entry, &unmatched);
    }
    planner.join_unmatched();
    planner.plan
}

struct Planner<'a> {
    scan: &'a Scan,
    is_synced: &'a dyn Fn(&MemoryPath) -> bool,
    /// The paths of all memories.
    occupied: HashSet<MemoryPath>,
    /// Files that are not matched yet.
    files: BTreeMap<MemoryPath, FoundFile>,
    /// Memories that are not matched yet.
    memories: HashMap<MemoryId, Memory>,
    plan: Plan,
}

/// An entry with its memory and its file, as far as they still exist.
struct Matched {
    synced: SyncedEntry,
    memory: Option<Memory>,
    place: Option<Place>,
}

impl Planner<'_> {
    /// Finds the memory of each entry by id, and its file by path.
    fn match_files(&mut self, synced: Vec<SyncedEntry>) -> Vec<Matched> {
        let mut matched = Vec::new();
        for synced in synced {
            let memory = self.memories.remove(&synced.memory);
            let is_obscure = |path: &MemoryPath| self.scan.blocks(path);
            if is_obscure(&synced.path) || memory.as_ref().is_some_and(|m| is_obscure(&m.path)) {
                self.files.remove(&synced.path);
                self.plan.frozen.push(synced);
                continue;
            }
            let place = self.place_of(&synced, memory.as_ref());
            matched.push(Matched { synced, memory, place });
        }
        matched
    }

    fn place_of(&mut self, synced: &SyncedEntry, memory: Option<&Memory>) -> Option<Place> {
        let home = self.files.get(&synced.path).copied();
        let is_new_path = |path: &&MemoryPath| !(self.is_synced)(path);
        let new_path = memory.map(|memory| &memory.path).filter(is_new_path);
        let there = new_path.and_then(|path| self.files.get(path).copied());
        let home_is_same = home.is_none_or(|file| file.hash == synced.folder_hash);
        if let (Some(path), Some(file), true) = (new_path, there, home_is_same) {
            // The file was moved after the memory already, wholly or by half: one that is still at
            // the old path is left over from a killed sync.
            self.files.remove(path);
            if let Some(file) = self.files.remove(&synced.path) {
                let place = Place { path: synced.path.clone(), file };
                self.add(None, Task::DeleteFile(place));
            }
            return Some(Place { path: path.clone(), file });
        }
        let file = self.files.remove(&synced.path)?;
        Some(Place { path: synced.path.clone(), file })
    }

    /// Looks for missing files under other names, by inode first. Two files may have equal texts,
    /// but only one is the same inode.
    fn match_renames(&mut self, matched: &mut [Matched]) {
        let is_free = |(path, _): &(&MemoryPath, &FoundFile)| !self.occupied.contains(*path);
        let free: Vec<_> = self.files.iter().filter(is_free).collect();
        let by_identity: HashMap<Identity, MemoryPath> = free
            .iter()
            .filter_map(|(path, file)| Some((file.identity?, (*path).clone())))
            .collect();
        let mut by_hash: HashMap<_, Vec<MemoryPath>> = HashMap::new();
        for (path, file) in free.iter().rev().filter(|(_, file)| file.size_bytes > 0) {
            by_hash.entry(*file.hash.as_bytes()).or_default().push((*path).clone());
        }
        for entry in matched.iter_mut().filter(|entry| entry.place.is_none()) {
            let path = entry.synced.identity.and_then(|identity| by_identity.get(&identity));
            entry.place = path.and_then(|path| self.take(path));
        }
        for entry in matched.iter_mut().filter(|entry| entry.place.is_none()) {
            let paths = by_hash.get_mut(entry.synced.folder_hash.as_bytes());
            let Some(paths) = paths else { continue };
            while entry.place.is_none() {
                let Some(path) = paths.pop() else { break };
                entry.place = self.take(&path);
            }
        }
    }

    fn take(&mut self, path: &MemoryPath) -> Option<Place> {
        let file = self.files.remove(path)?;
        Some(Place { path: path.clone(), file })
    }

    /// Plans a step for an entry. `unmatched` has the memories that were never in sync.
    fn decide(&mut self, matched: Matched, unmatched: &HashMap<MemoryPath, MemoryId>) {
        let Matched { synced, memory, place } = matched;
        match (memory, place) {
            (None, None) => {}
            (Some(memory), None) => {
                let is_same = memory.hash == synced.store_hash && memory.path == synced.path;
                let task =
                    if is_same { Task::DeleteMemory(memory) } else { Task::CreateFile(memory) };
                self.add(Some(synced), task);
            }
            (None, Some(place)) => {
                let successor = unmatched.get(&place.path).and_then(|id| self.memories.remove(id));
                self.without_memory(synced, place, successor);
            }
            (Some(memory), Some(place)) => {
                let text = text_from(&synced, &memory, &place.file);
                let has_moved_file = place.path != synced.path;
                let is_taken = self.files.contains_key(&memory.path);
                let path = if has_moved_file || is_taken { &place.path } else { &memory.path };
                let path = path.clone();
                self.add(Some(synced), Task::Join(Join { memory, place, path, text }));
            }
        }
    }

    /// Plans a step for a file whose memory is gone. Another memory may have taken its path.
    fn without_memory(&mut self, synced: SyncedEntry, place: Place, successor: Option<Memory>) {
        let is_same = place.file.hash == synced.folder_hash;
        if let Some(successor) = successor {
            let text = if successor.hash == place.file.hash {
                TextFrom::Same
            } else if is_same {
                TextFrom::Store
            } else {
                TextFrom::Merge(None)
            };
            let path = place.path.clone();
            self.add(None, Task::Join(Join { memory: successor, place, path, text }));
        } else if is_same {
            self.add(Some(synced), Task::DeleteFile(place));
        } else {
            self.add(Some(synced), Task::CreateMemory(place));
        }
    }

    /// Plans steps for files and memories that were never in sync.
    fn join_unmatched(&mut self) {
        let mut memories: Vec<_> = self.memories.drain().map(|(_, memory)| memory).collect();
        memories.sort_by(|left, right| left.path.cmp(&right.path));
        for memory in memories {
            if self.scan.is_unfinished(&memory.path) {
                continue;
            }
            if self.scan.blocks(&memory.path) {
                self.plan.obstructed.push(memory.path);
            } else if let Some(place) = self.take(&memory.path) {
                let is_same = place.file.hash == memory.hash;
                let text = if is_same { TextFrom::Same } else { TextFrom::Merge(None) };
                let path = place.path.clone();
                self.add(None, Task::Join(Join { memory, place, path, text }));
            } else {
                self.add(None, Task::CreateFile(memory));
            }
        }
        for (path, file) in std::mem::take(&mut self.files) {
            self.add(None, Task::CreateMemory(Place { path, file }));
        }
    }

    fn add(&mut self, synced: Option<SyncedEntry>, task: Task) {
        self.plan.steps.push(Step { synced, task });
    }
}

fn text_from(synced: &SyncedEntry, memory: &Memory, file: &FoundFile) -> TextFrom {
    let store_changed = memory.hash != synced.store_hash;
    let folder_changed = file.hash != synced.folder_hash;
    match (folder_changed, store_changed) {
        _ if file.hash == memory.hash => TextFrom::Same,
        (false, false) => TextFrom::Same,
        (true, false) => TextFrom::Folder,
        (false, true) => TextFrom::Store,
        (true, true) => TextFrom::Merge(Some(synced.version)),
    }
}
