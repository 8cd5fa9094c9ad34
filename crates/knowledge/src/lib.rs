//! What Quipu derives from memories: their names, the links between them, and a search index for
//! each store.
//!
//! Everything here can be rebuilt from the memories, and never decides anything about them.
//! [`Knowledge`] is the interface for doors. It reads the canonical rows through [`quipu_core`],
//! parses texts with [`quipu_notes`], and maintains the [`index`] in a file of its own with the
//! [`indexer`].

mod card;
mod context;
mod entry;
#[cfg(test)]
mod fixture;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(test)]
mod golden;
mod graph;
mod index;
mod indexer;
mod lookup;
mod names;
mod recent;
mod search;
mod suggest;
mod sync;
mod vectors;
mod verify;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::backend::Sequence;
use quipu_core::engine::Past;
use quipu_core::model::{StoreId, Timestamp};
use quipu_core::{Engine, Error, Moment};
use quipu_vectors::Encoder;

pub use card::LinkRow;
pub use context::{Context, ContextItem, ContextRequest, DEPTH_MAX, Direction, Related};
pub use graph::{Graph, Hubs, NoteLink, Orphans};
pub use index::INDEX_FILE;
pub use indexer::{EmbedReport, EmbedStep, Embedded};
pub use names::{NoteCard, Scope};
pub use recent::{RecentChange, RecentRequest};
pub use search::{
    Coverage, DateScore, Explanation, FieldScore, Found, Freshness, FreshnessField, FreshnessState,
    RankedBy, ScorePart, ScoreReason, ScoredField, Scoring, SearchFilter, SearchHit, SearchMode,
    SearchPage, SearchRequest, SearchTarget, SimilarScore, Total, WordScore,
};
pub use suggest::{
    BUDGET_TOKENS_DEFAULT, BUDGET_TOKENS_MAX, LIMIT_DEFAULT, LIMIT_MAX, LeftOut, SuggestRequest,
    Suggestion, Suggestions, TEXT_SIZE_BYTES_MAX, tokens,
};

use indexer::{Attempt, Indexer};
use lookup::Lookup;
use vectors::Meaning;

/// An engine that also knows the names of memories, their links and their words.
#[derive(Clone, Debug)]
pub struct Knowledge {
    engine: Engine,
    indexer: Arc<Indexer>,
    scoring: Scoring,
    meaning: Option<Arc<Meaning>>,
    /// The time by which notes are expired or stale; `None` for that of the clock.
    judged_at: Option<Timestamp>,
}

impl Knowledge {
    /// Adds knowledge to an engine. The index is kept in `directory`, and created on first use.
    pub fn new(engine: Engine, directory: &Path) -> Self {
        let indexer = Arc::new(Indexer::new(engine.clone(), directory));
        let engine = engine.with_derived(Arc::clone(&indexer) as _);
        Self { engine, indexer, scoring: Scoring::DEFAULT, meaning: None, judged_at: None }
    }

    /// Adds knowledge to an engine that has more stores than this host is asked about. A store is indexed when
    /// it is first searched, and the stores that were not searched for the longest time leave when the index
    /// is larger than `size_bytes_max`.
    pub fn on_demand(engine: Engine, directory: &Path, size_bytes_max: u64) -> Self {
        let indexer = Indexer::new(engine.clone(), directory).on_demand(size_bytes_max);
        let indexer = Arc::new(indexer);
        let engine = engine.with_derived(Arc::clone(&indexer) as _);
        Self { engine, indexer, scoring: Scoring::DEFAULT, meaning: None, judged_at: None }
    }

    /// Returns the same knowledge that ranks with other parameters, to compare them.
    #[must_use]
    pub fn with_scoring(&self, scoring: Scoring) -> Self {
        Self { scoring, ..self.clone() }
    }

    /// Returns the same knowledge that also searches by meaning, with vectors of this encoder.
    ///
    /// Vectors are made by [`embed`](Self::embed) or [`embed_step`](Self::embed_step); a search uses those
    /// that there are.
    #[must_use]
    pub fn with_encoder(self, encoder: Option<Arc<dyn Encoder>>) -> Self {
        let since = self.engine.now();
        Self { meaning: encoder.map(|encoder| Arc::new(Meaning::new(encoder, since))), ..self }
    }

    /// Returns the knowledge of a store as it was. See [`Engine::at`].
    ///
    /// Each search reads the whole store and indexes it in memory: an index of each moment would outlive
    /// redactions, and nobody asks about the same moment often. A store that is too large for that is
    /// searched in part, and the answer says so ([`SearchPage::is_behind`]).
    ///
    /// Notes are expired or stale as of the store's last change by then, until
    /// [`judged_by`](Self::judged_by) names the moment that was asked for.
    pub fn at(&self, past: &Past) -> Result<Self, Error> {
        let engine = self.engine.at(past)?;
        let indexer = Arc::new(self.indexer.of_past(engine.clone()));
        Ok(Self { engine, indexer, judged_at: Some(past.at), ..self.clone() })
    }

    /// Returns the same knowledge of the past, in which notes are expired or stale as of the time that a
    /// moment names. A place in the feed and a version name none.
    #[must_use]
    pub fn judged_by(self, moment: &Moment) -> Self {
        match moment {
            Moment::Time(at) | Moment::Resolved(at) => Self { judged_at: Some(*at), ..self },
            Moment::Sequence(_) | Moment::Version(_) => self,
        }
    }

    /// Returns the time by which notes are expired or stale.
    fn judged_at(&self) -> Timestamp {
        self.judged_at.unwrap_or_else(|| self.engine.now())
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs `work` with a handle that never blocks; `None` if `work` would have to.
    pub fn without_waiting<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        self.engine.without_waiting(|engine| work(&self.with_engine(engine)))
    }

    /// Runs `work` with a handle that cannot write memories, and so never waits for a writer;
    /// `None` if `work` would have to write.
    pub fn without_writing<T>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        self.engine.without_writing(|engine| work(&self.with_engine(engine)))
    }

    fn with_engine(&self, engine: &Engine) -> Self {
        Self { engine: engine.clone(), ..self.clone() }
    }

    /// Brings the indexes of all stores that changed after `seen` up to date and runs the merges
    /// that are due; returns the sequence reached. `None` checks all stores.
    ///
    /// Searches are correct without it. A long-running door calls it after changes, so that a
    /// search finds little to apply.
    pub fn follow(&self, seen: Option<Sequence>) -> Result<Sequence, Error> {
        self.indexer.follow(seen)
    }

    /// Returns the sequence that [`follow`](Self::follow) has reached in this process.
    pub fn followed(&self) -> Sequence {
        self.indexer.followed()
    }

    /// Brings the indexes of some stores up to date, as a search would, and calls `progress` from
    /// time to time with the completed fraction; an error from it aborts the call.
    pub fn catch_up(
        &self,
        stores: &[StoreId],
        progress: &dyn Fn(f64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.engine.require_blocking()?;
        let attempt = Attempt::new(progress);
        for &store in stores {
            self.indexer.catch_up(store, &attempt)?;
        }
        Ok(())
    }

    /// Returns what the vectors depend on, which names the encoder; `None` if there is none.
    pub fn encoder_identity(&self) -> Option<&str> {
        self.meaning.as_ref().map(|meaning| meaning.identity())
    }

    /// Makes vectors of memories that have none, for about as long as `limit`, in the background of a
    /// long-running door. Neither searches nor the indexing of text wait for it. Without an encoder, it is
    /// always complete.
    pub fn embed_step(&self, limit: Duration) -> Result<EmbedStep, Error> {
        let Some(meaning) = &self.meaning else { return Ok(EmbedStep::Complete) };
        self.engine.require_blocking()?;
        self.indexer.catch_up_all()?;
        self.indexer.embed_step(meaning, limit)
    }

    /// Makes the vectors of all memories, also of those that the encoder has rejected before, and calls
    /// `progress` from time to time with the completed fraction; an error from it aborts the call. What was
    /// made until then is kept.
    pub fn embed(&self, progress: &dyn Fn(f64) -> Result<(), Error>) -> Result<EmbedReport, Error> {
        let Some(meaning) = &self.meaning else { return Err(vectors::no_model()) };
        self.engine.require_blocking()?;
        self.indexer.embed(meaning, progress)
    }

    /// Returns how many memories of all stores have vectors of the encoder, and how many there are.
    pub fn embedded(&self) -> Result<(u64, u64), Error> {
        self.indexer.embedded(self.encoder_identity().unwrap_or_default())
    }

    /// Changes how much memory the vectors of the stores that were searched last may take. A store that has
    /// more is searched by words alone.
    pub fn limit_vectors(&self, size_bytes_max: usize) {
        self.indexer.matrices.limit(size_bytes_max);
    }

    /// Returns how much memory these vectors take.
    pub fn vectors_size_bytes(&self) -> usize {
        self.indexer.matrices.size_bytes()
    }

    /// Gives back the memory of vectors that no search has needed for a while. Long-running doors call it
    /// from time to time.
    pub fn forget_idle_vectors(&self) {
        self.indexer.matrices.forget_idle();
    }

    /// Runs the merges that are due in the index of a store.
    pub fn tidy_index(&self, store: StoreId) -> Result<(), Error> {
        self.indexer.tidy(store)
    }

    /// Returns the size of the index in bytes, its write-ahead log included.
    pub fn index_size_bytes(&self) -> u64 {
        self.indexer.size_bytes()
    }

    /// Returns the free space inside of the index to the file system. Searches go on meanwhile. An index
    /// that cannot be written now stays as it is.
    pub fn compact_index(&self) -> Result<(), Error> {
        self.indexer.compact()
    }

    /// Removes the whole index; the next search rebuilds it.
    pub fn discard_index(&self) -> Result<(), Error> {
        self.indexer.discard()
    }

    /// Closes the index and everything else. Any later use fails.
    pub fn close(&self) -> Result<(), Error> {
        self.indexer.close();
        self.engine.backend().close()
    }

    fn lookup<T>(
        &self,
        stores: &[StoreId],
        work: impl Fn(&Lookup<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.indexer.read(&self.engine, stores, work)
    }
}

impl Deref for Knowledge {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}
