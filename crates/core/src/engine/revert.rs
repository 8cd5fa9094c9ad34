//! Reverting: what memories become when some of their changes are taken back.
//!
//! The versions of a memory are a line of states. Consecutive selected versions are one run. From the
//! newest run to the oldest, the difference between the state after a run and the state before it is taken
//! out of what the memory is now, by a three-way merge whose base is the state after the run. Taking the
//! runs out from the oldest on would merge into texts that still hold the later ones.

use std::collections::BTreeSet;

use crate::Error;
use crate::backend::{Reader, Span, VersionFilter, VersionQuery};
use crate::merge::{Merged, merge};
use crate::model::{
    Actor, Content, ContentHash, Memory, MemoryId, MemoryPath, Operation, Store, StoreId,
    Timestamp, Version, VersionId, View,
};

use super::changed::Known;
use super::plan::{Desired, DesiredState, State};
use super::versions::existing_version;

const ALONE: &str = "nobody else has changed it since";
const MERGED: &str = "others have changed it since, and their changes stay";
const NOTHING_ADDED: &str =
    "others have changed it since, but its text holds nothing that they added";

/// How many actors are looked up one by one.
const ACTORS_LOOKED_UP_MAX: usize = 4;

/// Selects changes of a store.
#[derive(Clone, Debug, Default)]
pub struct ChangeSelection {
    /// Only changes by one of these; by anybody if there are none.
    pub actors: Vec<Actor>,
    /// Only changes made in this span.
    pub created: Span,
    /// Only changes of the memory at this path or of memories below it, before the change or after.
    pub path: Option<MemoryPath>,
}

impl ChangeSelection {
    /// Returns what each memory becomes that a selected change was made to.
    pub(super) fn desired_states(
        &self,
        reader: &dyn Reader,
        store: &Store,
        now: Timestamp,
    ) -> Result<Vec<Desired>, Error> {
        self.require_valid(now)?;
        let mut desired_states = Vec::new();
        for memory in self.candidates(reader, store.id)? {
            let history = History::read(reader, store.id, memory)?;
            let runs = history.runs(|version, before| self.selects(version, before));
            if runs.is_empty() {
                continue;
            }
            let head = reader.memory(store.id, memory, View::Basic)?;
            let (then, why) = history.without(&runs, head.as_ref())?;
            desired_states.push(Desired { memory, now: head, then, why });
        }
        Ok(desired_states)
    }

    pub(super) fn require_valid(&self, now: Timestamp) -> Result<(), Error> {
        let Span { first, last } = self.created;
        if first > last {
            return Err(Error::invalid(format!("{first} is after {last}, so nothing is between"))
                .with_hint("exchange the two times"));
        }
        if first > now {
            return Err(Error::invalid(format!("{first} is in the future"))
                .with_hint("name a time that has passed"));
        }
        Ok(())
    }

    /// Returns the memories that have a change which is selected, as far as this is known without the
    /// changes before it.
    pub(super) fn candidates(
        &self,
        reader: &dyn Reader,
        store: StoreId,
    ) -> Result<BTreeSet<MemoryId>, Error> {
        // A key can have thousands of sessions; looking for each of them would take longer than looking
        // at every change once.
        let each: Vec<_> = match self.actors.len() {
            1..=ACTORS_LOOKED_UP_MAX => self.actors.iter().map(|it| vec![it.clone()]).collect(),
            _ => vec![Vec::new()],
        };
        let mut memories = BTreeSet::new();
        for actors in each {
            let filter =
                VersionFilter { actors, created: self.created, ..VersionFilter::default() };
            let query = VersionQuery { filter, before: None, limit: usize::MAX, view: View::Basic };
            let versions = reader.versions(store, &query)?;
            let selected = versions.iter().filter(|version| self.is_by(version));
            memories.extend(selected.map(|version| version.memory));
        }
        Ok(memories)
    }

    fn is_by(&self, version: &Version) -> bool {
        self.actors.is_empty() || self.actors.contains(&version.actor)
    }

    pub(super) fn selects(&self, version: &Version, before: Option<&Version>) -> bool {
        let is_there = |path: &MemoryPath| {
            let was_at = before.and_then(|before| before.path.as_ref());
            [version.path.as_ref(), was_at].into_iter().flatten().any(|it| is_at_or_below(it, path))
        };
        self.is_by(version)
            && self.created.contains(version.created_at)
            && self.path.as_ref().is_none_or(is_there)
    }
}

/// Returns whether a path is another one or lies below it.
pub(super) fn is_at_or_below(path: &MemoryPath, above: &MemoryPath) -> bool {
    path == above || above.as_directory().contains(path)
}

/// The kept versions of a memory, the oldest first, without their texts.
pub(super) struct History<'a> {
    reader: &'a dyn Reader,
    store: StoreId,
    versions: Vec<Version>,
}

/// Consecutive versions, by their places in a history: the first and the last.
pub(super) type Run = (usize, usize);

/// What is known of a memory between two of its versions.
#[derive(Clone)]
enum Was {
    /// It did not exist.
    Absent,
    /// It was this.
    Held(Held),
    /// It existed, but its text is gone.
    Redacted(VersionId),
    /// It existed, but the version is no longer kept.
    Pruned,
}

/// What a memory holds; the text is read when it is needed.
#[derive(Clone)]
struct Held {
    path: MemoryPath,
    hash: ContentHash,
    text: Text,
}

#[derive(Clone)]
enum Text {
    Of(VersionId),
    Merged(Content),
}

impl Held {
    fn is(&self, other: &Self) -> bool {
        self.path == other.path && self.hash == other.hash
    }
}

/// Why a memory cannot be reverted.
enum Obstacle {
    /// In words, to be reported.
    Left(String),
    /// The storage failed.
    Failed(Error),
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl<'a> History<'a> {
    pub(super) fn read(
        reader: &'a dyn Reader,
        store: StoreId,
        memory: MemoryId,
    ) -> Result<Self, Error> {
        let filter = VersionFilter { memory: Some(memory), ..VersionFilter::default() };
        let query = VersionQuery { filter, before: None, limit: usize::MAX, view: View::Basic };
        let mut versions = reader.versions(store, &query)?;
        versions.reverse();
        Ok(Self { reader, store, versions })
    }

    /// Returns the maximal runs of versions that `selects` accepts; it gets each with the one before.
    pub(super) fn runs(&self, selects: impl Fn(&Version, Option<&Version>) -> bool) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut before = None;
        for (place, version) in self.versions.iter().enumerate() {
            if selects(version, before) {
                match runs.last_mut() {
                    Some((_, last)) if *last + 1 == place => *last = place,
                    Some(_) | None => runs.push((place, place)),
                }
            }
            before = Some(version);
        }
        runs
    }

    /// Returns what the memory becomes without these runs, and why.
    fn without(
        &self,
        runs: &[Run],
        head: Option<&Memory>,
    ) -> Result<(DesiredState, &'static str), Error> {
        let head = head.map(|memory| Held {
            path: memory.path.clone(),
            hash: memory.hash,
            text: Text::Of(memory.version),
        });
        let mut ours = head.clone();
        // The version that `ours` is, as long as nothing had to be merged.
        let mut place = self.versions.len().checked_sub(1);
        let mut why = ALONE;
        for run in runs.iter().rev() {
            let (base, theirs) = (self.after(run.1), self.before(run.0));
            let result = if place == Some(run.1) {
                place = run.0.checked_sub(1);
                theirs.known()
            } else {
                (place, why) = (None, MERGED);
                self.without_run(ours, &base, &theirs)
            };
            ours = match result {
                Ok(ours) => ours,
                Err(Obstacle::Left(reason)) => return Ok((DesiredState::Unknown(reason), why)),
                Err(Obstacle::Failed(error)) => return Err(error),
            };
        }
        let then = match (ours, head) {
            (None, None) => {
                self.deleted_again(runs).map_or(DesiredState::Absent, DesiredState::Unknown)
            }
            (None, Some(_)) => {
                // What they did goes with the memory, so it must not be said to stay.
                why = if why == MERGED { NOTHING_ADDED } else { why };
                DesiredState::Absent
            }
            (Some(ours), Some(head)) if ours.is(&head) => DesiredState::Same,
            (Some(ours), _) => {
                DesiredState::State(State { content: self.text(&ours)?, path: ours.path })
            }
        };
        Ok((then, why))
    }

    /// Returns why a deleted memory stays so although one of the runs had deleted it: others have brought it
    /// back since, and then decided against it.
    fn deleted_again(&self, runs: &[Run]) -> Option<String> {
        let (last, last_place) = (self.versions.last()?, self.versions.len() - 1);
        let is_by_others = runs.last().is_some_and(|run| run.1 < last_place);
        let has_deleted = runs.iter().any(|run| matches!(self.after(run.1), Was::Absent));
        let place = last.path.as_ref().map_or_else(String::new, |path| format!(" at `{path}`"));
        (is_by_others && has_deleted)
            .then(|| format!("others have brought it back since, and deleted it again{place}"))
    }

    /// Takes the change from `theirs` to `base` out of `ours`, which others made of `base`.
    fn without_run(
        &self,
        ours: Option<Held>,
        base: &Was,
        theirs: &Was,
    ) -> Result<Option<Held>, Obstacle> {
        // Others have deleted the memory since, and it stays deleted, even if the run had deleted it too.
        let Some(ours) = ours else { return Ok(None) };
        // What others have changed to the very state before needs no merge, so no base.
        if matches!(theirs, Was::Held(theirs) if theirs.is(&ours)) {
            return Ok(Some(ours));
        }
        // It was deleted, and others have brought it back since.
        let Some(base) = base.known()? else { return Ok(Some(ours)) };
        let theirs = theirs.known()?;
        let path = match &theirs {
            Some(theirs) if ours.path == base.path => theirs.path.clone(),
            Some(_) | None => ours.path.clone(),
        };
        let Some(text) = self.merged(&ours, &base, theirs.as_ref())? else { return Ok(None) };
        Ok(Some(Held { path, ..text }))
    }

    /// Returns what holds the merged text; `None` if nothing is left of a memory that did not exist before.
    fn merged(
        &self,
        ours: &Held,
        base: &Held,
        theirs: Option<&Held>,
    ) -> Result<Option<Held>, Obstacle> {
        match theirs {
            Some(theirs) if ours.hash == base.hash => return Ok(Some(theirs.clone())),
            Some(theirs) if [base.hash, ours.hash].contains(&theirs.hash) => {
                return Ok(Some(ours.clone()));
            }
            None if ours.hash == base.hash => return Ok(None),
            Some(_) | None => {}
        }
        let before = match theirs {
            Some(theirs) => self.text(theirs)?,
            None => Content::new("").map_err(Error::from)?,
        };
        let (base, now) = (self.text(base)?, self.text(ours)?);
        match merge(base.as_str(), now.as_str(), before.as_str()) {
            Merged::Clean(text) if text.is_empty() && theirs.is_none() => Ok(None),
            Merged::Clean(text) => {
                let content = Content::new(text).map_err(Error::from)?;
                let hash = content.hash();
                Ok(Some(Held { hash, text: Text::Merged(content), path: ours.path.clone() }))
            }
            Merged::Conflicted(conflicts) => {
                let line = conflicts.first().map_or(0, |conflict| conflict.ours.start) + 1;
                Err(Obstacle::Left(format!(
                    "others have changed the same lines since, from line {line} on"
                )))
            }
        }
    }

    fn text(&self, held: &Held) -> Result<Content, Error> {
        let id = match &held.text {
            Text::Merged(content) => return Ok(content.clone()),
            Text::Of(id) => *id,
        };
        let version = existing_version(self.reader, self.store, id, View::Full)?;
        Ok(version.content.expect("a version with a hash was read with its text"))
    }

    /// Returns what is known of the memory before the version at a place.
    pub(super) fn known_before(&self, place: usize) -> Result<Known, Error> {
        self.known(&self.before(place))
    }

    /// Returns what is known of the memory after the version at a place.
    pub(super) fn known_after(&self, place: usize) -> Result<Known, Error> {
        self.known(&self.after(place))
    }

    fn known(&self, was: &Was) -> Result<Known, Error> {
        match was.known() {
            Ok(None) => Ok(Known::Absent),
            Ok(Some(held)) => {
                Ok(Known::State(State { content: self.text(&held)?, path: held.path }))
            }
            Err(Obstacle::Left(why)) => Ok(Known::Lost(why)),
            Err(Obstacle::Failed(error)) => Err(error),
        }
    }

    /// Returns what the memory was after the version at a place.
    fn after(&self, place: usize) -> Was {
        match self.versions.get(place) {
            None | Some(Version { operation: Operation::Deleted, .. }) => Was::Absent,
            Some(Version { path: Some(path), hash: Some(hash), id, .. }) => {
                Was::Held(Held { path: path.clone(), hash: *hash, text: Text::Of(*id) })
            }
            Some(version) => Was::Redacted(version.id),
        }
    }

    /// Returns what the memory was before the version at a place.
    fn before(&self, place: usize) -> Was {
        match self.versions.get(place).map(|version| version.operation) {
            None | Some(Operation::Created) => Was::Absent,
            Some(Operation::Modified | Operation::Deleted) => match place.checked_sub(1) {
                Some(place) => self.after(place),
                None => Was::Pruned,
            },
        }
    }
}

impl Was {
    /// Returns the state, or why it is not known.
    fn known(&self) -> Result<Option<Held>, Obstacle> {
        match self {
            Self::Absent => Ok(None),
            Self::Held(held) => Ok(Some(held.clone())),
            Self::Redacted(version) => {
                Err(Obstacle::Left(format!("the text of `{version}` was redacted")))
            }
            Self::Pruned => {
                Err(Obstacle::Left("the version before the change is no longer kept".to_owned()))
            }
        }
    }
}
