//! Restoring a folder or a store as it was at a moment.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::Error;
use crate::backend::{MemoryQuery, Reader};
use crate::model::{
    Directory, Id as _, Memory, MemoryId, MemoryPath, Store, Timestamp, Version, View,
};

use super::plan::{Desired, DesiredState, State};
use super::revert::is_at_or_below;
use super::versions::existing_version;

const PRESENT: &str = "it was like this then";
const ABSENT: &str = "it did not exist then";

/// The state that a store, or a part of it, is to go back to.
#[derive(Clone, Debug)]
pub struct Restoration {
    /// The moment.
    pub at: Timestamp,
    /// Only the memory that is or was at this path, and those that are or were below it.
    pub path: Option<MemoryPath>,
    /// Whether all of that state must be known.
    pub completeness: Completeness,
}

/// Whether a past state must be known completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completeness {
    /// It must.
    #[default]
    Required,
    /// What is not known anymore is left as it is now.
    Partial,
}

impl Restoration {
    /// Returns what each memory becomes that is or was in the place.
    pub(super) fn desired_states(
        &self,
        reader: &dyn Reader,
        store: &Store,
        now: Timestamp,
    ) -> Result<Vec<Desired>, Error> {
        self.require_valid(reader, store, now)?;
        let mut wanted: BTreeMap<MemoryId, (Option<Memory>, Option<Version>)> = BTreeMap::new();
        let live = reader.memories(
            store.id,
            &MemoryQuery {
                directory: Directory::root(),
                start: Bound::Unbounded,
                limit: usize::MAX,
                view: View::Basic,
            },
        )?;
        let past = reader.versions_at(store.id, self.at, View::Basic)?;
        for memory in live {
            wanted.insert(memory.id, (Some(memory), None));
        }
        for version in past {
            let memory = version.memory;
            wanted.entry(memory).or_default().1 = Some(version);
        }
        wanted.retain(|_, (now, then)| self.covers(now.as_ref(), then.as_ref()));
        if let (Some(path), true) = (&self.path, wanted.is_empty()) {
            let message = format!("nothing is at or below `{path}` now, and nothing was then");
            return Err(Error::not_found(message).with_hint("list the store to see what it holds"));
        }
        let is_complete = reader.horizon(store.id)?.is_none_or(|horizon| self.at >= horizon);
        let mut desired_states = Vec::new();
        for (memory, (now, then)) in wanted {
            let then = match then {
                Some(version) => state(reader, &version, now.as_ref())?,
                // Its id tells when it was created, however much of its history is gone.
                None if is_complete || memory.created_at() > self.at => DesiredState::Absent,
                None => {
                    DesiredState::Unknown("its versions of that time are no longer kept".to_owned())
                }
            };
            let why = if matches!(then, DesiredState::Absent) { ABSENT } else { PRESENT };
            desired_states.push(Desired { memory, now, then, why });
        }
        Ok(desired_states)
    }

    fn require_valid(
        &self,
        reader: &dyn Reader,
        store: &Store,
        now: Timestamp,
    ) -> Result<(), Error> {
        if self.at > now {
            return Err(Error::invalid(format!("{} is in the future", self.at))
                .with_hint("name a time that has passed"));
        }
        if self.at < store.created_at {
            return Err(Error::invalid(format!(
                "the store `{}` did not exist at {}: it was created at {}",
                store.name, self.at, store.created_at
            ))
            .with_hint("name a later time"));
        }
        match (self.completeness, reader.horizon(store.id)?) {
            (Completeness::Required, Some(horizon)) if self.at < horizon => {
                Err(Error::invalid(format!(
                    "not all of the state at {} is known: the history of the store `{}` is complete \
                     from {horizon} on",
                    self.at, store.name
                ))
                .with_hint("name a later time, or accept that what is not known stays as it is"))
            }
            (Completeness::Required | Completeness::Partial, _) => Ok(()),
        }
    }

    fn covers(&self, now: Option<&Memory>, then: Option<&Version>) -> bool {
        let Some(above) = &self.path else { return true };
        let paths =
            [now.map(|memory| &memory.path), then.and_then(|version| version.path.as_ref())];
        paths.into_iter().flatten().any(|path| is_at_or_below(path, above))
    }
}

/// Returns what a memory was after a version.
fn state(
    reader: &dyn Reader,
    version: &Version,
    now: Option<&Memory>,
) -> Result<DesiredState, Error> {
    let (Some(path), Some(hash)) = (&version.path, version.hash) else {
        let why = format!("the text of `{}`, which it held then, was redacted", version.id);
        return Ok(DesiredState::Unknown(why));
    };
    // Most memories of a store have not changed since, and their texts need not be read.
    if now.is_some_and(|now| now.path == *path && now.hash == hash) {
        return Ok(DesiredState::Same);
    }
    let version = existing_version(reader, version.store, version.id, View::Full)?;
    let content = version.content.expect("a version with a hash was read with its text");
    Ok(DesiredState::State(State { path: path.clone(), content }))
}
