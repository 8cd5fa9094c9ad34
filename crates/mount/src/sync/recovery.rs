//! Recovery after a kill: which intents of the last sync took effect.
//!
//! The hazard: a sync copies version 1 of a memory to the folder and is killed before it records
//! that. Then somebody writes version 2 to the store. By the old state, both sides have changed;
//! the next sync would take its own copy for an edit of the folder and put version 1 over version
//! 2.
//!
//! So each intent of the journal is compared with what is there now. If it took effect, its outcome
//! becomes the common ancestor. A file is known by the identity that was journaled before it
//! appeared, even if it was edited since; a version is known by the session that wrote it. Where
//! neither tells, the old ancestor stays and both texts are merged, which loses nothing.

use std::collections::HashMap;

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::model::{
    Actor, ContentHash, Id as _, MemoryId, MemoryPath, Operation, Store, Version, VersionId, View,
};
use quipu_core::{Engine, Error};

use super::record::{Head, Intent, IntentKind, SyncedEntry};
use super::scan::{FoundFile, Scan};
use super::state::Interrupted;

/// Returns the entries with the effects of a killed sync.
pub(super) fn recovered(
    synced: Vec<SyncedEntry>,
    (interrupted, head): (&Interrupted, &Head),
    scan: &Scan,
    (engine, store): (&Engine, &Store),
) -> Result<Vec<SyncedEntry>, Error> {
    let mut recovery = Recovery {
        synced: synced.into_iter().map(|entry| (entry.memory, entry)).collect(),
        interrupted,
        scan,
        newest: HashMap::new(),
        created: HashMap::new(),
    };
    // Reversed, so that the newest version of each memory is inserted last and stays.
    for version in versions(interrupted, engine, store)?.into_iter().rev() {
        let is_new = head.newest.is_none_or(|it| it.created_at() < version.created_at);
        match &version.path {
            Some(path) if is_new && version.operation == Operation::Created => {
                recovery.created.insert(path.clone(), version.clone());
            }
            Some(_) | None => {}
        }
        recovery.newest.insert(version.memory, version);
    }
    for intent in &interrupted.intents {
        recovery.take(intent);
    }
    Ok(recovery.synced.into_values().collect())
}

/// Returns the versions that the killed sync wrote, the newest first.
fn versions(
    interrupted: &Interrupted,
    engine: &Engine,
    store: &Store,
) -> Result<Vec<Version>, Error> {
    let Some(session) = interrupted.session else { return Ok(Vec::new()) };
    let actors = vec![Actor::Session(session)];
    let query = VersionQuery {
        filter: VersionFilter { actors, ..VersionFilter::default() },
        before: None,
        limit: usize::MAX,
        view: View::Basic,
    };
    Ok(engine.versions(store.id, &query)?.items)
}

struct Recovery<'a> {
    synced: HashMap<MemoryId, SyncedEntry>,
    interrupted: &'a Interrupted,
    scan: &'a Scan,
    /// The newest version of each memory that the killed sync wrote.
    newest: HashMap<MemoryId, Version>,
    /// The memories that it created after the state was written.
    created: HashMap<MemoryPath, Version>,
}

/// A memory at some version.
type MemoryState = (MemoryId, VersionId, ContentHash);

impl Recovery<'_> {
    fn take(&mut self, intent: &Intent) {
        match (intent.kind, intent.memory, intent.folder_hash) {
            (IntentKind::CreateMemory, _, Some(hash)) => self.created_memory(intent, hash),
            (IntentKind::DeleteFile, _, _) => {
                let is_it = |entry: &&SyncedEntry| entry.path == intent.from;
                let Some(entry) = self.synced.values().find(is_it) else { return };
                let now = self.file(&intent.path).map(|file| file.identity);
                // A file that has the same text but another identity was created since; the old one
                // was deleted as intended.
                let is_another = |now: Option<_>| now.is_some() && now != entry.identity;
                if now.is_none_or(is_another) && entry.identity.is_some() {
                    let memory = entry.memory;
                    self.synced.remove(&memory);
                }
            }
            (IntentKind::DeleteMemory, Some(past), _) => {
                // If it exists, somebody has restored it since.
                if self.version_after(past).is_some_and(|it| it.operation == Operation::Deleted) {
                    self.synced.remove(&past.0);
                }
            }
            (IntentKind::CreateFile | IntentKind::ToFolder, Some(past), _) => {
                self.wrote_file(intent, past);
            }
            (IntentKind::ToStore | IntentKind::Move, Some(past), Some(hash)) => {
                self.wrote_memory(intent, past, hash);
            }
            (IntentKind::Merge, Some(past), Some(hash)) => self.merged(intent, past, hash),
            (
                IntentKind::CreateMemory
                | IntentKind::DeleteMemory
                | IntentKind::CreateFile
                | IntentKind::ToFolder
                | IntentKind::ToStore
                | IntentKind::Move
                | IntentKind::Merge,
                ..,
            ) => {}
        }
    }

    fn created_memory(&mut self, intent: &Intent, folder_hash: ContentHash) {
        let Some(version) = self.created.get(&intent.path) else { return };
        let Some(store_hash) = version.hash else { return };
        self.record((version.memory, version.id, store_hash), folder_hash, &intent.path);
    }

    /// Resolves a step that wrote the text of a memory to the folder.
    fn wrote_file(&mut self, intent: &Intent, past: MemoryState) {
        if self.is_written(&intent.path, past.2) {
            self.record(past, past.2, &intent.path);
        } else {
            self.forget_half_moved(intent, past.0);
        }
    }

    /// Resolves a step that wrote the text of a file to the store, or moved one of them.
    fn wrote_memory(&mut self, intent: &Intent, past: MemoryState, folder_hash: ContentHash) {
        let written = self.version_after(past);
        let (is_stored, is_moving_file) = (written.is_some(), intent.from != intent.path);
        let now = written.and_then(|it| Some((it.memory, it.id, it.hash?))).unwrap_or(past);
        if is_moving_file && self.is_written(&intent.path, folder_hash) {
            self.record(now, folder_hash, &intent.path);
        } else if is_moving_file {
            self.forget_half_moved(intent, past.0);
            if is_stored && self.synced.contains_key(&past.0) {
                self.record(now, folder_hash, &intent.from);
            }
        } else if is_stored {
            self.record(now, folder_hash, &intent.path);
        }
    }

    fn merged(&mut self, intent: &Intent, past: MemoryState, folder_hash: ContentHash) {
        let written = self.version_after(past);
        let now = written.and_then(|it| Some((it.memory, it.id, it.hash?))).unwrap_or(past);
        // In a conflict the store gets the folder's text and the file is not written.
        let is_folders = written.is_some() && now.2 == folder_hash && intent.from == intent.path;
        if is_folders || self.is_written(&intent.path, now.2) {
            self.record(now, now.2, &intent.path);
        } else {
            self.forget_half_moved(intent, past.0);
        }
    }

    /// Returns the version that the killed sync wrote after this state of the memory.
    fn version_after(&self, (memory, before, _): MemoryState) -> Option<&Version> {
        let newest = self.newest.get(&memory);
        newest.filter(|version| version.created_at > before.created_at())
    }

    /// Returns whether the killed sync has written the file at this path: it has the text, or the
    /// journaled identity and was edited since.
    fn is_written(&self, path: &MemoryPath, hash: ContentHash) -> bool {
        let is_ours = |file: &FoundFile| {
            let written = &self.interrupted.written;
            file.hash == hash || file.identity.is_some_and(|identity| written.contains(&identity))
        };
        self.file(path).is_some_and(is_ours)
    }

    /// Drops the entry of a file that was between its old path and its new one. It was not deleted,
    /// and without an entry it is written again.
    fn forget_half_moved(&mut self, intent: &Intent, memory: MemoryId) {
        let is_gone = self.file(&intent.from).is_none() && self.file(&intent.path).is_none();
        if intent.from != intent.path && is_gone {
            self.synced.remove(&memory);
        }
    }

    fn file(&self, path: &MemoryPath) -> Option<&FoundFile> {
        self.scan.files.get(path)
    }

    fn record(&mut self, memory: MemoryState, folder_hash: ContentHash, path: &MemoryPath) {
        let (memory, version, store_hash) = memory;
        let identity = self.file(path).and_then(|file| file.identity);
        let (path, stamp) = (path.clone(), None);
        let entry = SyncedEntry { memory, path, version, store_hash, folder_hash, identity, stamp };
        self.synced.insert(memory, entry);
    }
}
