//! Writes the items, on several threads, so that the engine can group their commits.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;

use indicatif::ProgressBar;
use quipu_core::engine::{MemoryUpdate, Precondition};
use quipu_core::model::{Actor, Content, Memory, MemoryPath, SecretPolicy, SessionId, Store, View};
use quipu_core::{Engine, Error, ErrorKind};
use quipu_screen::Finding;
use serde::Serialize;
use unicode_normalization::UnicodeNormalization as _;

use crate::failure::Failure;

use super::dates::Dates;
use super::dry_run::{DryRun, obstacle};
use super::matching::{Found, Matcher};
use super::reading::Unfit;
use super::source::{Collected, Item, Skipped, SkippedKind, StableId};
use super::{DETAILS_PREFIX, is_same_source};

/// How many threads write; their writes share group commits.
const THREADS_COUNT: usize = 8;

/// How many times a write is tried when others write to the same path.
const TRIES_MAX: usize = 3;

/// The outcome of an import.
#[derive(Debug, Default, Serialize)]
pub(super) struct Tally {
    pub(super) created: usize,
    pub(super) updated: usize,
    pub(super) unchanged: usize,
    /// What was not imported, notes first.
    pub(super) skipped: Vec<Skipped>,
    /// How many files are binary, such as images.
    pub(super) binaries: usize,
    /// The paths of memories that hold credentials.
    pub(super) credentials: Vec<String>,
    /// The paths of memories that bring back redacted text.
    pub(super) forgotten: Vec<String>,
}

/// What to do with changes that others made in the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Keep them.
    Careful,
    /// Replace them.
    Overwrite,
}

/// Writes items to a store.
pub(super) struct Writer<'a> {
    pub(super) engine: &'a Engine,
    pub(super) store: &'a Store,
    /// The details of sessions that import this source.
    pub(super) details: &'a str,
    pub(super) matcher: Matcher<'a>,
    pub(super) action: Action,
    pub(super) mode: Mode,
    pub(super) size_max: u64,
}

/// Whether anything is written.
pub(super) enum Action {
    /// Write as this session.
    Write(SessionId),
    /// Only count.
    Simulate(Box<DryRun>),
}

/// Who wrote the current version of a memory.
enum Author {
    /// An import of the same source.
    SameSource,
    OtherImport,
    /// A session that has been deleted.
    Unknown,
    Somebody,
}

/// The outcome of an item.
enum Outcome {
    Created,
    Updated,
    Unchanged,
    Binary,
    Skipped(String),
}

impl From<Unfit> for Outcome {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Binary => Self::Binary,
            Unfit::Reason(reason) => Self::Skipped(reason),
        }
    }
}

/// Counts what would be created in a store that does not exist yet.
pub(super) fn count_all(from: Collected, size_max: u64, dry_run: &DryRun) -> Tally {
    let mut tally = Tally { skipped: from.skipped, ..Tally::default() };
    for (item, path) in placed(from.items, &mut tally) {
        let content = item.content(size_max).map(|content| item.dated(content, size_max));
        let written =
            content.and_then(|content| dry_run.write(&content, None).map_err(Unfit::Reason));
        match written {
            Ok(credentials) => {
                tally.created += 1;
                tally.note(credentials, &path);
            }
            Err(Unfit::Binary) => tally.binaries += 1,
            Err(Unfit::Reason(reason)) => tally.skip(&item, reason),
        }
    }
    tally.skipped.sort();
    tally
}

/// Parses the path of each item; those without a valid, unused one are skipped.
fn placed(items: Vec<Item>, tally: &mut Tally) -> Vec<(Item, MemoryPath)> {
    let mut taken = HashSet::new();
    let mut placed = Vec::with_capacity(items.len());
    for item in items {
        let text: String = item.path.nfc().collect();
        match MemoryPath::parse(&text) {
            Ok(path) if taken.insert(path.clone()) => placed.push((item, path)),
            Ok(path) => tally.skip(&item, format!("another file was imported to `{path}`")),
            Err(error) => tally.skip(&item, error.to_string()),
        }
    }
    placed
}

impl Tally {
    fn note(&mut self, credentials: Credentials, path: &MemoryPath) {
        match credentials {
            Credentials::None => {}
            Credentials::Found => self.credentials.push(path.to_string()),
            // What was redacted before weighs more than that it looks like a credential.
            Credentials::Forgotten => self.forgotten.push(path.to_string()),
        }
    }

    fn skip(&mut self, item: &Item, reason: String) {
        let source = item.source.clone();
        self.skipped.push(Skipped { kind: SkippedKind::Note, source, reason });
    }
}

impl Writer<'_> {
    /// Writes all items; fails only if the storage does.
    pub(super) fn write_all(
        mut self,
        mut from: Collected,
        bar: &ProgressBar,
    ) -> Result<Tally, Failure> {
        let mut tally = Tally { skipped: from.skipped, ..Tally::default() };
        self.matcher.keep_folders(&mut from.items)?;
        let placed = placed(from.items, &mut tally);
        self.matcher.settle(&placed)?;
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
        tally.skipped.sort();
        tally.credentials.sort();
        tally.forgotten.sort();
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
                |unfit| Ok((unfit.into(), Credentials::None)),
                |content| self.write(&item, &path, &content),
            );
            let mut done = done.lock().expect("no writer panicked");
            let (tally, failed) = &mut *done;
            match written {
                Ok((outcome, credentials)) => {
                    tally.note(credentials, &path);
                    match outcome {
                        Outcome::Created => tally.created += 1,
                        Outcome::Updated => tally.updated += 1,
                        Outcome::Unchanged => tally.unchanged += 1,
                        Outcome::Binary => tally.binaries += 1,
                        Outcome::Skipped(reason) => tally.skip(&item, reason),
                    }
                }
                Err(error) if is_about_item(error.kind()) => {
                    tally.skip(&item, self.refusal(&error));
                }
                Err(error) => *failed = Some(error),
            }
            if failed.is_some() {
                return;
            }
            bar.inc(1);
        }
    }

    /// Returns why the store refused an item.
    fn refusal(&self, error: &Error) -> String {
        let limits = self.engine.limits();
        let usage = self.engine.usage(self.store.id);
        match (error.kind(), usage) {
            (ErrorKind::LimitReached, Ok(usage))
                if usage.memories_count >= limits.memories_per_store_max =>
            {
                let limit = limits.memories_per_store_max;
                format!("the store is full: its limit is {limit} memories")
            }
            (ErrorKind::LimitReached, Ok(_)) => {
                let limit = limits.store_size_bytes_max;
                format!("the store is full: its limit is {limit} bytes of text")
            }
            _ => error.message().to_owned(),
        }
    }

    /// Writes an item; if another write interferes, the item is matched again.
    ///
    /// A wait for the write lock that ended in vain is repeated once. A process that is stopped and
    /// continued finds its deadline passed, however short it has waited itself: suspending an import
    /// beside another writer used to end it halfway.
    fn write(
        &self,
        item: &Item,
        path: &MemoryPath,
        content: &Content,
    ) -> Result<(Outcome, Credentials), Error> {
        let (mut tries, mut has_waited) = (1, false);
        loop {
            match self.try_to_write(item, path, content) {
                Err(error) if *error.kind() == ErrorKind::StorageBusy && !has_waited => {
                    has_waited = true;
                }
                Err(error) if tries < TRIES_MAX && is_race(error.kind()) => tries += 1,
                done => return done,
            }
        }
    }

    fn try_to_write(
        &self,
        item: &Item,
        path: &MemoryPath,
        content: &Content,
    ) -> Result<(Outcome, Credentials), Error> {
        let found = self.matcher.find(item, path)?;
        let content = &self.dated(&found, item, content)?;
        let outcome = self.outcome(&found, (item, path), content)?;
        if !matches!(outcome, Outcome::Created | Outcome::Updated) {
            return Ok((outcome, Credentials::None));
        }
        let before = match found {
            Found::Memory(memory) => Some(memory),
            Found::Nothing | Found::Shared(_) | Found::Deleted => None,
        };
        match &self.action {
            Action::Write(session) => self.carry_out(*session, (path, before), content, outcome),
            Action::Simulate(dry_run) => {
                let refusal = match &before {
                    None => obstacle(self.engine, self.store, path)?,
                    Some(_) => None,
                };
                let written = refusal.map_or_else(|| dry_run.write(content, before.as_ref()), Err);
                Ok(match written {
                    Ok(credentials) => (outcome, credentials),
                    Err(reason) => (Outcome::Skipped(reason), Credentials::None),
                })
            }
        }
    }

    /// Returns the text to store for an item: its own, with its dates if it has some.
    ///
    /// A text that is stored already keeps the dates that it has there. Otherwise every checkout
    /// or copy of a vault, which changes the times of its files, would make a version of each note.
    fn dated(&self, found: &Found, item: &Item, content: &Content) -> Result<Content, Error> {
        let memory = match found {
            Found::Nothing | Found::Deleted => {
                return Ok(item.dated(content.clone(), self.size_max));
            }
            Found::Memory(memory) | Found::Shared(memory) => memory,
        };
        if self.is_same(memory, content) {
            return Ok(match self.mode {
                Mode::Careful => content.clone(),
                Mode::Overwrite => item.dated(content.clone(), self.size_max),
            });
        }
        let stored = self.engine.memory(self.store.id, memory.id, View::Full)?.content;
        let Some(before) = stored.as_ref().and_then(Dates::of_note) else {
            return Ok(item.dated(content.clone(), self.size_max));
        };
        match before.added_to(content, self.size_max) {
            Some(same) if self.is_same(memory, &same) => Ok(same),
            Some(_) | None => {
                let dates = item.dates.map(|dates| dates.created_with(before));
                let dated = dates.and_then(|dates| dates.added_to(content, self.size_max));
                Ok(dated.unwrap_or_else(|| content.clone()))
            }
        }
    }

    /// Returns the outcome to aim at for an item.
    fn outcome(
        &self,
        found: &Found,
        (item, path): (&Item, &MemoryPath),
        content: &Content,
    ) -> Result<Outcome, Error> {
        let skipped = |reason: &str| Ok(Outcome::Skipped(reason.to_owned()));
        Ok(match found {
            Found::Nothing => Outcome::Created,
            Found::Deleted => {
                return skipped("it was deleted in the store since; `--overwrite` brings it back");
            }
            Found::Memory(memory) | Found::Shared(memory) if self.is_same(memory, content) => {
                Outcome::Unchanged
            }
            Found::Shared(memory) => Outcome::Skipped(format!(
                "`{}` was moved in the store since, so it may be this or another imported file; \
                 `--overwrite` imports each to its own path",
                memory.path
            )),
            Found::Memory(_) if self.mode == Mode::Overwrite => Outcome::Updated,
            Found::Memory(memory) => match self.author(memory)?.objection(memory, item, path) {
                Some(reason) => Outcome::Skipped(reason),
                None if self.matcher.is_another(memory, item)? => {
                    return skipped(
                        "something else of this name was imported before; `--overwrite` replaces it",
                    );
                }
                None => Outcome::Updated,
            },
        })
    }

    fn carry_out(
        &self,
        session: SessionId,
        (path, before): (&MemoryPath, Option<Memory>),
        content: &Content,
        outcome: Outcome,
    ) -> Result<(Outcome, Credentials), Error> {
        let actor = Actor::Session(session);
        let written = match before {
            None => self.engine.create(&actor, self.store.id, path, content)?,
            Some(memory) => {
                let precondition = Precondition::ContentIs(memory.hash);
                let content = Some(content.clone());
                let update = MemoryUpdate { content, path: None, precondition };
                self.engine.update(&actor, self.store.id, memory.id, &update)?
            }
        };
        let credentials = match written.findings.as_slice() {
            [] => Credentials::None,
            findings if findings.iter().any(Finding::is_forgotten) => Credentials::Forgotten,
            [..] => Credentials::Found,
        };
        let is_changed = written.effect.has_changed();
        Ok((if is_changed { outcome } else { Outcome::Unchanged }, credentials))
    }

    /// Returns whether a memory already holds what the store would make of a text.
    fn is_same(&self, memory: &Memory, content: &Content) -> bool {
        if memory.hash == content.hash() || self.store.policy.secrets != SecretPolicy::Redact {
            return memory.hash == content.hash();
        }
        let findings = quipu_screen::findings(content.as_str());
        let redacted = Content::new(quipu_screen::redacted(content.as_str(), &findings));
        redacted.is_ok_and(|redacted| memory.hash == redacted.hash())
    }

    fn author(&self, memory: &Memory) -> Result<Author, Error> {
        let version = self.engine.version(self.store.id, memory.version, View::Basic)?;
        let Actor::Session(id) = version.actor else { return Ok(Author::Somebody) };
        match self.engine.session(id) {
            Ok(session) if is_same_source(&session.details, self.details) => Ok(Author::SameSource),
            Ok(session) if session.details.starts_with(DETAILS_PREFIX) => Ok(Author::OtherImport),
            Ok(_) => Ok(Author::Somebody),
            Err(error) if *error.kind() == ErrorKind::NotFound => Ok(Author::Unknown),
            Err(error) => Err(error),
        }
    }
}

impl Author {
    /// Returns why an item must not replace a memory, if so.
    fn objection(&self, memory: &Memory, item: &Item, path: &MemoryPath) -> Option<String> {
        let has_old_name = match &item.stable_id {
            Some(StableId::Name { endings, .. }) => {
                endings.iter().any(|ending| memory.path.as_str().ends_with(ending))
            }
            Some(StableId::Folder { .. }) | None => false,
        };
        Some(match self {
            Self::SameSource => return None,
            _ if memory.path != *path && !has_old_name => format!(
                "it was moved to `{}` in the store since; `--overwrite` replaces it there",
                memory.path
            ),
            Self::OtherImport => {
                "it differs from what was imported from another source; `--overwrite` replaces that"
                    .to_owned()
            }
            Self::Unknown => "it differs from what the store has, whose session was deleted; \
                              `--overwrite` replaces that"
                .to_owned(),
            Self::Somebody => {
                "somebody else wrote what the store has at this path; `--overwrite` replaces it"
                    .to_owned()
            }
        })
    }
}

/// Whether a text holds credentials, or text that was redacted from the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Credentials {
    None,
    Found,
    Forgotten,
}

/// Returns whether an error may be caused by a concurrent write.
fn is_race(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound | ErrorKind::PathConflict { .. } | ErrorKind::PreconditionFailed
    )
}

/// Returns whether an error concerns a single item, so that the others can still be written.
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
        | ErrorKind::StorageBusy
        | ErrorKind::StorageUnavailable
        | ErrorKind::StorageUnusable => false,
    }
}
