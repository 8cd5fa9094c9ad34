//! Writing what was collected, by several threads, so that the engine can group the commits.

use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;
use std::thread;

use indicatif::ProgressBar;
use quipu_core::engine::{Effect, MemoryUpdate, Precondition};
use quipu_core::model::{Actor, Content, Memory, MemoryPath, SessionId, StoreId, View};
use quipu_core::{Engine, Error, ErrorKind};
use serde::Serialize;
use unicode_normalization::UnicodeNormalization as _;

use crate::failure::Failure;

use super::SESSION_DETAILS;
use super::source::{Body, Collected, Item, Skipped};

/// How many writers share a commit.
const THREADS_COUNT: usize = 8;

/// What came of an import.
#[derive(Debug, Default, Serialize)]
pub(super) struct Tally {
    pub(super) created: usize,
    pub(super) updated: usize,
    pub(super) unchanged: usize,
    pub(super) skipped: Vec<Skipped>,
    /// The paths of memories that hold credentials.
    pub(super) credentials: Vec<String>,
}

/// What to do with memories that were changed in the store since they were imported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are left alone.
    Careful,
    /// They are replaced.
    Overwrite,
}

/// Writes items to a store.
pub(super) struct Writer<'a> {
    pub(super) engine: &'a Engine,
    pub(super) store: StoreId,
    /// Who writes; without one nothing is written and everything is only counted.
    pub(super) session: Option<SessionId>,
    pub(super) mode: Mode,
    pub(super) size_max: u64,
}

/// What came of an item.
enum Outcome {
    Created,
    Updated,
    Unchanged,
    Skipped(String),
}

/// Counts what would be created in a store that does not exist yet.
pub(super) fn count_all(from: Collected, size_max: u64) -> Tally {
    let mut tally = Tally { skipped: from.skipped, ..Tally::default() };
    for (item, path) in placed(from.items, &mut tally) {
        match item.content(size_max) {
            Ok(_) => tally.created += 1,
            Err(reason) => tally.skip(&item, reason),
        }
        drop(path);
    }
    tally
}

/// Gives each item its path; those that can have none are skipped.
fn placed(items: Vec<Item>, tally: &mut Tally) -> Vec<(Item, MemoryPath)> {
    let mut taken = HashSet::new();
    let mut placed = Vec::with_capacity(items.len());
    for item in items {
        let text: String = item.path.nfc().collect();
        match MemoryPath::parse(&text) {
            Ok(path) if taken.insert(path.clone()) => placed.push((item, path)),
            Ok(path) => tally.skip(&item, format!("something else was imported to `{path}`")),
            Err(error) => tally.skip(&item, error.to_string()),
        }
    }
    placed
}

impl Tally {
    fn skip(&mut self, item: &Item, reason: String) {
        self.skipped.push(Skipped { source: item.source.clone(), reason });
    }
}

impl Item {
    fn content(&self, size_max: u64) -> Result<Content, String> {
        let too_long = || format!("it is longer than the {size_max} bytes that a memory may have");
        let content = match &self.body {
            Body::Text(text) => Content::new(text.as_str()),
            Body::File(file) => {
                let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
                if metadata.len() > size_max {
                    return Err(too_long());
                }
                Content::from_bytes(&fs::read(file).map_err(|error| error.to_string())?)
            }
        };
        let content = content.map_err(|error| error.to_string())?;
        if content.size_bytes() > size_max { Err(too_long()) } else { Ok(content) }
    }
}

impl Writer<'_> {
    /// Writes everything and tells what came of it. It stops when the storage does not work.
    pub(super) fn write_all(&self, from: Collected, bar: &ProgressBar) -> Result<Tally, Failure> {
        let mut tally = Tally { skipped: from.skipped, ..Tally::default() };
        let placed = placed(from.items, &mut tally);
        let work = Mutex::new(placed.into_iter());
        let done = Mutex::new((tally, None));
        thread::scope(|scope| {
            for _ in 0..THREADS_COUNT {
                scope.spawn(|| self.write_some(&work, &done, bar));
            }
        });
        let (mut tally, failed) = done.into_inner().expect("no writer panicked");
        if let Some(error) = failed {
            return Err(Error::into(error));
        }
        tally.skipped.sort_by(|left, right| left.source.cmp(&right.source));
        tally.credentials.sort();
        Ok(tally)
    }

    fn write_some(
        &self,
        work: &Mutex<std::vec::IntoIter<(Item, MemoryPath)>>,
        done: &Mutex<(Tally, Option<Error>)>,
        bar: &ProgressBar,
    ) {
        loop {
            let next = work.lock().expect("no writer panicked").next();
            let Some((item, path)) = next else { return };
            let written = item.content(self.size_max).map_or_else(
                |reason| Ok((Outcome::Skipped(reason), Credentials::None)),
                |content| self.write(&path, content),
            );
            let mut done = done.lock().expect("no writer panicked");
            let (tally, failed) = &mut *done;
            match written {
                Ok((outcome, credentials)) => {
                    if credentials == Credentials::Found {
                        tally.credentials.push(path.to_string());
                    }
                    match outcome {
                        Outcome::Created => tally.created += 1,
                        Outcome::Updated => tally.updated += 1,
                        Outcome::Unchanged => tally.unchanged += 1,
                        Outcome::Skipped(reason) => tally.skip(&item, reason),
                    }
                }
                Err(error) if is_about_item(error.kind()) => {
                    tally.skip(&item, error.message().to_owned());
                }
                Err(error) => *failed = Some(error),
            }
            if failed.is_some() {
                return;
            }
            bar.inc(1);
        }
    }

    fn write(&self, path: &MemoryPath, content: Content) -> Result<(Outcome, Credentials), Error> {
        let before = match self.engine.memory_at(self.store, path, View::Basic) {
            Ok(memory) => Some(memory),
            Err(error) if *error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let outcome = match &before {
            None => Outcome::Created,
            Some(memory) if memory.hash == content.hash() => Outcome::Unchanged,
            Some(memory) if self.mode == Mode::Overwrite || self.is_imported(memory)? => {
                Outcome::Updated
            }
            Some(_) => Outcome::Skipped(
                "it was changed in the store since; `--overwrite` replaces it".to_owned(),
            ),
        };
        let (Outcome::Created | Outcome::Updated, Some(session)) = (&outcome, self.session) else {
            return Ok((outcome, Credentials::None));
        };
        let actor = Actor::Session(session);
        let written = match before {
            None => self.engine.create(&actor, self.store, path, &content)?,
            Some(memory) => {
                let precondition = Precondition::ContentIs(memory.hash);
                let update = MemoryUpdate { content: Some(content), path: None, precondition };
                self.engine.update(&actor, self.store, memory.id, &update)?
            }
        };
        let credentials =
            if written.findings.is_empty() { Credentials::None } else { Credentials::Found };
        // A store that replaces credentials may end with the text that it had.
        let is_changed = written.effect == Effect::Changed;
        Ok((if is_changed { outcome } else { Outcome::Unchanged }, credentials))
    }

    /// Tells whether an import was the last to write a memory.
    fn is_imported(&self, memory: &Memory) -> Result<bool, Error> {
        let version = self.engine.version(self.store, memory.version, View::Basic)?;
        let Actor::Session(id) = version.actor else { return Ok(false) };
        match self.engine.session(id) {
            Ok(session) => Ok(session.details == SESSION_DETAILS),
            Err(error) if *error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether a text holds credentials.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Credentials {
    None,
    Found,
}

/// Tells whether an error is about one item, so that the others can still be written.
fn is_about_item(kind: &ErrorKind) -> bool {
    match kind {
        ErrorKind::InvalidInput
        | ErrorKind::NotFound
        | ErrorKind::Ambiguous
        | ErrorKind::PathConflict { .. }
        | ErrorKind::PreconditionFailed
        | ErrorKind::ContentTooLarge
        | ErrorKind::LimitReached
        | ErrorKind::SecretRefused => true,
        ErrorKind::StoreArchived
        | ErrorKind::HeadNotRedactable
        | ErrorKind::AccessDenied
        | ErrorKind::EraseIncomplete
        | ErrorKind::StorageFull
        | ErrorKind::StorageUnavailable
        | ErrorKind::StorageUnusable => false,
    }
}
