//! A store as it was.
//!
//! [`Engine::at`] returns an engine over a [`PastBackend`], which answers every read as the store was at
//! a moment and refuses to write. So whatever reads a store can read its past: listings, exports, mounts
//! and indexes need no second code path, and cannot disagree with each other about what the past was.
//!
//! The state at a moment never changes, except that redactions take texts out and retention gives up
//! versions. That is why a tree that was read once is kept, but only until either happens.

mod agents;
mod backend;

use std::sync::Arc;

use crate::Error;
use crate::backend::{Change, Reader, Sequence, Span, VersionFilter, VersionQuery};
use crate::model::{StoreId, Timestamp, Version, View};
use crate::moment::Moment;

use super::versions::existing_version;
use super::{Engine, existing_store};
use backend::PastBackend;

pub(super) use backend::Trees;

/// What is known of a store at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// The store.
    pub store: StoreId,
    /// The moment: that of the newest version of the store by then, or of its creation. Not that of any
    /// later change: when other stores change is not for everybody to know.
    pub at: Timestamp,
    /// From which moment on the history is complete; `None` if it is complete from the beginning.
    pub horizon: Option<Timestamp>,
}

impl Past {
    /// Returns whether everything that the store held is known.
    pub fn is_complete(&self) -> bool {
        self.horizon.is_none_or(|horizon| horizon <= self.at)
    }
}

impl Engine {
    /// Returns what a moment means for a store.
    ///
    /// Fails for a moment in the future, before the store was created, and for a place in the feed or a
    /// version that is not kept.
    pub fn moment(&self, store: StoreId, moment: &Moment) -> Result<Past, Error> {
        let now = self.now();
        self.read(|reader| {
            let created_at = existing_store(reader, store)?.created_at;
            let at = resolved(reader, store, moment, now)?;
            let horizon = reader.horizon(store)?;
            // What was pruned may have been newer than the newest version that is kept.
            let complete_from = horizon.filter(|horizon| *horizon <= at).unwrap_or(created_at);
            let newest = newest_version_by(reader, store, at)?.unwrap_or(created_at);
            Ok(Past { store, at: newest.max(complete_from), horizon })
        })
    }

    /// Returns a moment of a store as one that means the same for every other store.
    ///
    /// The moment of a [`Past`] does not: it is that of the last change of its own store.
    pub fn shared_moment(&self, store: StoreId, moment: &Moment) -> Result<Moment, Error> {
        self.time_of(store, moment).map(Moment::Resolved)
    }

    /// Returns the time of a moment. It may be later than that of its [`Past`], whose newest version may
    /// have been pruned: what was created in between did exist.
    pub fn time_of(&self, store: StoreId, moment: &Moment) -> Result<Timestamp, Error> {
        let now = self.now();
        self.read(|reader| resolved(reader, store, moment, now))
    }

    /// Returns an engine that reads a store as it was, and knows no other store.
    ///
    /// The store appears as archived. Versions below the [horizon](Past::horizon) may be missing; what was
    /// redacted is missing too, and listed by [`redacted_at`](Self::redacted_at).
    pub fn at(&self, past: &Past) -> Result<Self, Error> {
        let sequence = self.read(|reader| newest_change_by(reader, past.at))?;
        let backend =
            PastBackend::new(Arc::clone(&self.backend), past, sequence, Arc::clone(&self.trees));
        let (clock, limits) = (Arc::clone(&self.clock), self.limits.clone());
        Ok(Self {
            restriction: self.restriction.clone(),
            ..Self::new(Arc::new(backend), clock, limits)
        })
    }

    /// Returns the memories that a store held at a moment and whose texts were redacted since.
    pub fn redacted_at(&self, past: &Past) -> Result<Vec<Version>, Error> {
        let mut versions =
            self.read(|reader| reader.versions_at(past.store, past.at, View::Basic))?;
        versions.retain(|version| version.redaction.is_some());
        Ok(versions)
    }
}

/// Returns the time of a moment; fails if the store did not exist yet.
fn resolved(
    reader: &dyn Reader,
    store: StoreId,
    moment: &Moment,
    now: Timestamp,
) -> Result<Timestamp, Error> {
    let created_at = existing_store(reader, store)?.created_at;
    let (newest, newest_at) = reader.newest_change()?;
    let at = match *moment {
        Moment::Time(at) if at > now.max(newest_at) => {
            return Err(Error::invalid(format!("`{at}` is in the future"))
                .with_hint(format!("the latest moment is now, `{now}`")));
        }
        // Not later than the newest change: the next one may get an earlier moment than `at`, and would
        // then appear in a past that was already open.
        Moment::Time(at) => whole_transactions(reader, at.min(newest_at))?,
        Moment::Resolved(at) => at.min(newest_at),
        Moment::Sequence(sequence) => feed_moment(reader, sequence, newest)?,
        Moment::Version(id) => existing_version(reader, store, id, View::Basic)?.created_at,
    };
    if at < created_at {
        return Err(Error::not_found(format!("the store did not exist at `{moment}`"))
            .with_hint(format!("it was created at `{created_at}`")));
    }
    Ok(at)
}

/// Returns when the newest version of a store by a moment was made.
fn newest_version_by(
    reader: &dyn Reader,
    store: StoreId,
    at: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let created = Span { last: at, ..Span::default() };
    let filter = VersionFilter { created, ..VersionFilter::default() };
    let query = VersionQuery { filter, before: None, limit: 1, view: View::Basic };
    Ok(reader.versions(store, &query)?.first().map(|version| version.created_at))
}

/// Returns the moment of a change.
fn feed_moment(
    reader: &dyn Reader,
    sequence: Sequence,
    newest: Sequence,
) -> Result<Timestamp, Error> {
    let name = Moment::Sequence(sequence);
    if sequence > newest {
        return Err(Error::invalid(format!("`{name}` is in the future"))
            .with_hint(format!("the newest change is `{}`", Moment::Sequence(newest))));
    }
    let before = Sequence(sequence.0.saturating_sub(1));
    match reader.changes(before, 1)?.first() {
        Some(change) if change.sequence == sequence => Ok(change.at),
        Some(_) | None => {
            let error = Error::not_found(format!("the change `{name}` is no longer kept"));
            Err(match reader.oldest_change()? {
                Some((oldest, _)) => error.with_hint(format!(
                    "the oldest that is kept is `{}`; a time works further back",
                    Moment::Sequence(oldest)
                )),
                None => error,
            })
        }
    }
}

/// Returns the moment, or that of the last change before the transaction in whose middle it is: every
/// change has a moment of its own, but nobody ever saw a part of a transaction.
///
/// If the feed does not reach back that far, the moment stays as it is.
fn whole_transactions(reader: &dyn Reader, at: Timestamp) -> Result<Timestamp, Error> {
    let newest = newest_change_by(reader, at)?;
    let next = reader.changes(newest, 1)?;
    let Some(Change { transaction, .. }) = next.first().filter(|next| next.transaction <= newest)
    else {
        return Ok(at);
    };
    // Nothing is before the first change of all.
    let Some(before) = transaction.0.checked_sub(1).filter(|before| *before > 0) else {
        return Ok(Timestamp::MIN);
    };
    let last = reader.changes(Sequence(before - 1), 1)?;
    let last = last.first().filter(|last| last.sequence == Sequence(before));
    Ok(last.map_or(at, |last| last.at))
}

/// Returns the newest change that was made by a moment, or the one before the oldest that is kept.
pub fn newest_change_by(reader: &dyn Reader, at: Timestamp) -> Result<Sequence, Error> {
    let Some((oldest, _)) = reader.oldest_change()? else { return Ok(Sequence(0)) };
    // Moments grow with the sequence, which has no gaps.
    let (mut low, mut high) = (oldest.0.saturating_sub(1), reader.newest_change()?.0.0);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let change = reader.changes(Sequence(middle - 1), 1)?;
        match change.first() {
            Some(change) if change.at <= at => low = middle,
            Some(_) | None => high = middle - 1,
        }
    }
    Ok(Sequence(low))
}
