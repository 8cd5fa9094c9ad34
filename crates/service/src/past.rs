//! A store as it was, as the protocols answer about it.
//!
//! Every answer about the past says what its moment means, and what it lacks: versions that retention
//! gave up, and texts that were redacted. That is decided here, once for all protocols.

use quipu_core::engine::Past;
use quipu_core::model::{StoreId, Timestamp, Version};
use quipu_core::{Error, ErrorKind, Moment};
use quipu_knowledge::Knowledge;

/// A store at a moment, with an engine that reads it and no other store.
#[derive(Clone, Debug)]
pub struct Then {
    /// The moment, and from when on the history is complete.
    pub past: Past,
    /// The engine.
    pub engine: Knowledge,
}

impl Then {
    /// Opens a store at the moment that a person or a model has written.
    pub fn parse(engine: &Knowledge, store: StoreId, text: &str) -> Result<Self, Error> {
        let then = Self::new(engine, store, &Self::moment(engine, text)?)?;
        Ok(if is_now(text) { then.judged_by(&Moment::Time(engine.now())) } else { then })
    }

    /// Returns the same, in which notes are expired or stale as of the time that a moment names.
    #[must_use]
    pub fn judged_by(self, moment: &Moment) -> Self {
        Self { engine: self.engine.judged_by(moment), ..self }
    }

    /// Reads a moment. `now` is the state after the newest change, as for [`now`](Self::now).
    pub fn moment(engine: &Knowledge, text: &str) -> Result<Moment, Error> {
        if is_now(text) {
            return Ok(Moment::Sequence(engine.newest_sequence()?));
        }
        Moment::parse(text, engine.now())
    }

    /// Opens a store at a moment.
    pub fn new(engine: &Knowledge, store: StoreId, moment: &Moment) -> Result<Self, Error> {
        let past = engine.moment(store, moment)?;
        Ok(Self { engine: engine.at(&past)?.judged_by(moment), past })
    }

    /// Opens a store as it is. Unlike the store itself, this does not change while it is read.
    ///
    /// That is the state after the newest change, not at the time of the clock: if the clock was set back,
    /// acknowledged changes are ahead of it.
    pub fn now(engine: &Knowledge, store: StoreId) -> Result<Self, Error> {
        Self::new(engine, store, &Moment::Sequence(engine.newest_sequence()?))
    }

    /// Returns the store.
    pub fn store(&self) -> StoreId {
        self.past.store
    }

    /// Returns from when on the history is complete, if it is not complete at this moment.
    pub fn complete_from(&self) -> Option<Timestamp> {
        self.past.horizon.filter(|_| !self.past.is_complete())
    }

    /// Returns the memories of this moment that cannot be shown, because they were redacted since.
    pub fn redacted(&self) -> Result<Vec<Version>, Error> {
        self.engine.redacted_at(&self.past)
    }

    /// Adds to "not found" that it was looked for in the past, and what the past no longer has.
    ///
    /// What was redacted has no path or title anymore, so whether it is what was looked for cannot be
    /// told.
    pub fn explained(&self, error: Error) -> Error {
        if *error.kind() != ErrorKind::NotFound {
            return error;
        }
        let redacted_count = match self.redacted() {
            Ok(redacted) => redacted.len(),
            Err(error) => return error,
        };
        let mut hints = Vec::new();
        if let Some(from) = self.complete_from() {
            hints.push(format!("old versions were removed: the past is complete from `{from}` on"));
        }
        if redacted_count > 0 {
            hints.push(format!("redacted since then: {redacted_count}"));
        }
        hints.extend(error.hint().map(str::to_owned));
        let said = Error::not_found(format!("{}, as of `{}`", error.message(), self.past.at));
        if hints.is_empty() { said } else { said.with_hint(hints.join("; ")) }
    }
}

fn is_now(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("now")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use quipu_core::engine::{NewStore, Precondition};
    use quipu_core::model::{Actor, Content, MemoryPath, Name, View};
    use quipu_core::settings::Limits;
    use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_with};

    use super::*;

    #[test]
    fn not_found_says_what_the_past_no_longer_has() {
        let limits =
            Limits { versions_kept_for: Duration::ZERO, versions_kept_min: 1, ..Limits::default() };
        let clock = Arc::new(ManualClock::default());
        let engine =
            knowledge_with(Arc::new(InMemoryBackend::default()), Arc::clone(&clock) as _, limits);
        let workspace = engine.default_workspace().unwrap().id;
        let new = NewStore::named(Name::new("notes").unwrap());
        let store = engine.create_store(workspace, &new).unwrap().id;
        let actor = Actor::expiry();
        let put = |path: &str, text: &str| {
            let (path, text) = (MemoryPath::parse(path).unwrap(), Content::new(text).unwrap());
            let written = engine.put(&actor, store, (&path, &text), Precondition::None).unwrap();
            written.memory.version
        };
        let missing = |moment: &Moment| {
            let then = Then::new(&engine, store, moment).unwrap();
            let path = MemoryPath::parse("/nothing").unwrap();
            let error = then.engine.memory_at(store, &path, View::Basic).unwrap_err();
            let error = then.explained(error);
            (error.message().to_owned(), error.hint().unwrap_or_default().to_owned())
        };
        let first = put("/a", "1");
        let second = put("/b", "1");
        let (message, hint) = missing(&Moment::Version(second));
        let at = engine.version(store, second, View::Basic).unwrap().created_at;
        assert_eq!(message, format!("no memory lives at `/nothing`, as of `{at}`"));
        assert_eq!(hint, "list the store to see what it holds");

        put("/a", "2");
        engine.redact(&actor, store, &[first]).unwrap();
        assert!(missing(&Moment::Version(second)).1.starts_with("redacted since then: 1; "));
        put("/b", "2");
        clock.advance(Duration::from_secs(1));
        engine.prune().unwrap();
        let hint = missing(&Moment::Time(at)).1;
        assert!(hint.contains("complete from `") && !hint.contains("redacted"), "{hint}");
    }
}
