//! Embedding: making the vectors of memories, in the background.
//!
//! An encoder takes milliseconds for a passage, or waits for a server. So vectors are made after the text
//! was indexed and never while a lock is held that a search or a writer of the index waits for: memories
//! are read in a snapshot, encoded, and stored in a short transaction that checks what has changed
//! meanwhile. If the process dies in between, nothing was stored, and the next one finds the same
//! memories without vectors.
//!
//! One process at a time makes vectors; a lock file says which. Processes with different encoders would
//! replace each other's vectors forever, so the most recently started one wins: the number of an encoder is
//! the moment at which it was put into use, and a process that was started before that leaves it alone, also
//! if its own encoder only begins to work hours later.

use std::path::PathBuf;
use std::sync::TryLockError;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::model::{MemoryId, StoreId};
use quipu_core::{Error, ErrorKind};

use super::building::{Lock, share, try_lock};
use super::encoding::Unembedded;
use super::{Attempt, CaughtUp, Indexer, Progress as Report, read_memories};
use crate::card::Card;
use crate::index::{
    EncoderRow, IndexError, MemoryVectors, PutVectors, Space, add_encoder, embeddings, encoder,
    forget_rejected, incomplete_stores, notes_without_vectors, put_vectors, remove_outdated,
    store_row,
};
use crate::vectors::Meaning;

/// How many memories are read at once.
const MEMORIES_MAX: usize = 32;

/// How many rows of an old encoder are removed in one transaction.
const OUTDATED_MAX: usize = 256;

/// How long one step of [`embed`](Indexer::embed) takes, between two reports of its progress.
const STEP: Duration = Duration::from_millis(500);

/// How often and how long `embed` tries again if nothing can be done.
const PAUSE: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_mins(1);

/// How often in a row the encoder may fail before `embed` gives up.
const FAILURES_MAX: usize = 3;

/// What a step of embedding has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedStep {
    /// Every memory in the index has vectors, or the encoder has rejected its text.
    Complete,
    /// Something was done, and there may be more to do.
    Embedded(Embedded),
    /// Nothing could be done now: another process is embedding, the index cannot be written, or the memories
    /// are just being changed.
    Busy,
    /// A process that was started later uses another encoder. As long as it is in use, this one makes no
    /// vectors.
    Superseded,
    /// The encoder has failed, for this reason.
    Failed(String),
}

/// What became of some memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Embedded {
    /// How many were embedded.
    pub embedded: usize,
    /// How many the encoder has rejected. They are tried again when they have changed.
    pub rejected: usize,
}

impl Embedded {
    fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// What a call of `embed` has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbedReport {
    /// How many memories were embedded.
    pub embedded: usize,
    /// How many memories the encoder has rejected. They are found by their words alone.
    pub rejected: usize,
    /// How many memories there are.
    pub memories: u64,
}

/// How far this process is with making vectors.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The memory that was tried last. A memory on which the encoder fails must not keep those that are tried
    /// after it from getting vectors.
    last: Option<(StoreId, MemoryId)>,
    /// How many memories are tried one by one, after a failure, to find the one that it was for.
    singly: usize,
}

/// Why a step ends early.
enum End {
    Superseded,
    Failed(String),
    Error(IndexError),
}

impl From<IndexError> for End {
    fn from(error: IndexError) -> Self {
        Self::Error(error)
    }
}

impl Indexer {
    /// Makes vectors of memories that are in the index and have none, for about as long as `limit`.
    pub(crate) fn embed_step(
        &self,
        meaning: &Meaning,
        limit: Duration,
    ) -> Result<EmbedStep, Error> {
        let mut progress = match self.embedding.try_lock() {
            Ok(progress) => progress,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(EmbedStep::Busy),
        };
        let Lock::Acquired(_lock) = try_lock(&self.embed_lock()) else {
            return Ok(EmbedStep::Busy);
        };
        match self.embed_until(meaning, Instant::now() + limit, &mut progress) {
            Ok(step) => Ok(step),
            Err(End::Superseded) => Ok(EmbedStep::Superseded),
            Err(End::Failed(reason)) => Ok(EmbedStep::Failed(reason)),
            // The file was replaced, or cannot be written for now.
            Err(End::Error(
                IndexError::Damaged | IndexError::NotWritable(_) | IndexError::Outdated,
            )) => Ok(EmbedStep::Busy),
            Err(End::Error(error @ IndexError::Failed(_))) => Err(error.into_error()),
        }
    }

    /// Indexes all stores and makes vectors until every memory has some.
    pub(crate) fn embed(
        &self,
        meaning: &Meaning,
        progress: Report<'_>,
    ) -> Result<EmbedReport, Error> {
        let indexing = |_| progress(0.0);
        let attempt = Attempt::new(&indexing);
        for store in self.all_stores()? {
            self.catch_up(store, &attempt)?;
        }
        self.forget_rejected(meaning)?;
        let (mut failures, mut idle_since) = (0, Instant::now());
        let mut report = EmbedReport::default();
        loop {
            let step = self.embed_step(meaning, STEP)?;
            let (made, all) = self.embedded(meaning.identity())?;
            report.memories = all;
            progress(share(count(made), count(all)))?;
            match step {
                EmbedStep::Complete => {
                    self.checkpoint()?;
                    return Ok(report);
                }
                EmbedStep::Embedded(Embedded { embedded, rejected }) => {
                    report.embedded += embedded;
                    report.rejected += rejected;
                    (failures, idle_since) = (0, Instant::now());
                }
                EmbedStep::Busy if idle_since.elapsed() < PATIENCE => thread::sleep(PAUSE),
                EmbedStep::Busy => {
                    let message = "another process is embedding or holds the index, or the index is \
                                   not writable";
                    return Err(Error::new(ErrorKind::StorageBusy, message)
                        .with_hint("make sure that its disk has room, and try again in a while"));
                }
                EmbedStep::Superseded => {
                    let message = "another process embeds with another model";
                    return Err(Error::new(ErrorKind::StorageBusy, message)
                        .with_hint("stop the processes that have other settings"));
                }
                EmbedStep::Failed(_) if failures < FAILURES_MAX => failures += 1,
                EmbedStep::Failed(reason) => {
                    let message = format!("the encoder fails: {reason}");
                    let hint = "`quipu model check` tries it out; the vectors made so far are kept";
                    return Err(Error::new(ErrorKind::StorageUnavailable, message).with_hint(hint));
                }
            }
        }
    }

    /// Forgets which memories the encoder has rejected: it may have been set up to take more since.
    fn forget_rejected(&self, meaning: &Meaning) -> Result<(), Error> {
        let stores = self.all_stores()?;
        let forgotten = self.file.write(|connection| {
            let current = encoder(connection)?.filter(|row| row.identity == meaning.identity());
            let Some(current) = current else { return Ok(()) };
            for store in &stores {
                if let Some(row) = store_row(connection, *store)? {
                    forget_rejected(connection, row.num, &current)?;
                }
            }
            Ok(())
        });
        match forgotten {
            // The file was replaced, or cannot be written for now.
            Ok(())
            | Err(IndexError::Damaged | IndexError::NotWritable(_) | IndexError::Outdated) => {
                Ok(())
            }
            Err(error @ IndexError::Failed(_)) => Err(error.into_error()),
        }
    }

    /// Returns how many memories of all stores have vectors of an encoder, and how many there are.
    pub(crate) fn embedded(&self, identity: &str) -> Result<(u64, u64), Error> {
        let stores = self.all_stores()?;
        self.read_file(|connection| {
            let current = encoder(connection)?.filter(|row| row.identity == identity);
            let current = current.map(|row| row.num);
            let (mut made, mut all) = (0, 0);
            for store in &stores {
                let Some(row) = store_row(connection, *store)? else { continue };
                let of_store = embeddings(connection, row.num)?;
                let of_store = of_store.filter(|it| Some(it.encoder) == current);
                made += of_store.map_or(0, |it| it.memories);
                all += row.totals.count(Space::Memories);
            }
            Ok((made, all))
        })
    }

    /// Brings the index of every store up to date that has changed.
    pub(crate) fn catch_up_all(&self) -> Result<(), Error> {
        let attempt = Attempt::new(&|_| Ok(()));
        for store in self.all_stores()? {
            if !self.is_reached(store)? {
                let _: CaughtUp = self.catch_up(store, &attempt)?;
            }
        }
        Ok(())
    }

    fn embed_lock(&self) -> PathBuf {
        self.lock.with_file_name("embed.lock")
    }

    fn embed_until(
        &self,
        meaning: &Meaning,
        deadline: Instant,
        progress: &mut Progress,
    ) -> Result<EmbedStep, End> {
        let encoder = self.claim(meaning)?;
        let mut stores =
            self.file.read(|snapshot| incomplete_stores(snapshot.connection, &encoder))?;
        let is_complete = stores.is_empty();
        if let Some((last, _)) = progress.last
            && let Some(place) = stores.iter().position(|store| *store == last)
        {
            stores.rotate_left(place);
        } else {
            progress.last = None;
        }
        let mut done = Embedded::default();
        for store in stores {
            // One pass over each store: memories that cannot be embedded now are tried in the next step.
            while let Some(batch) = self.batch_without_vectors(store, &encoder, progress)? {
                match self.embed_batch(meaning, &encoder, (&batch, &mut done), progress) {
                    // What was done comes first; the next step fails again, or goes on.
                    Err(End::Failed(_)) if !done.is_nothing() => {
                        return Ok(EmbedStep::Embedded(done));
                    }
                    ended => ended?,
                }
                if Instant::now() >= deadline {
                    return Ok(EmbedStep::Embedded(done));
                }
            }
            progress.last = None;
        }
        while self.file.write(|connection| remove_outdated(connection, OUTDATED_MAX))? {
            if Instant::now() >= deadline {
                return Ok(EmbedStep::Embedded(done));
            }
        }
        Ok(match done {
            done if !done.is_nothing() => EmbedStep::Embedded(done),
            _ if is_complete => EmbedStep::Complete,
            _ => EmbedStep::Busy,
        })
    }

    /// Returns the row of the encoder, after putting it into use.
    fn claim(&self, meaning: &Meaning) -> Result<EncoderRow, End> {
        let dimensions = meaning.dimensions().map_err(End::Failed)?;
        let is_ours =
            |row: &EncoderRow| row.identity == meaning.identity() && row.dimensions == dimensions;
        let is_later = |row: &EncoderRow| row.num > meaning.since().as_micros();
        let known = self.file.read(|snapshot| encoder(snapshot.connection))?;
        if let Some(row) = known.filter(is_ours) {
            return Ok(row);
        }
        let now = self.engine.now();
        let row = self.file.write(|connection| match encoder(connection)? {
            Some(row) if is_ours(&row) => Ok(Some(row)),
            Some(row) if is_later(&row) => Ok(None),
            Some(_) | None => {
                add_encoder(connection, (meaning.identity(), dimensions), now).map(Some)
            }
        })?;
        row.ok_or(End::Superseded)
    }

    /// Returns the next memories of a store without vectors, the newest first; `None` after the last.
    fn batch_without_vectors(
        &self,
        store: StoreId,
        encoder: &EncoderRow,
        progress: &Progress,
    ) -> Result<Option<Unembedded>, IndexError> {
        let before = progress.last.filter(|(of, _)| *of == store).map(|(_, memory)| memory);
        let limit = if progress.singly > 0 { 1 } else { MEMORIES_MAX };
        let notes = self.file.read(|snapshot| {
            let Some(row) = store_row(snapshot.connection, store)? else { return Ok(Vec::new()) };
            notes_without_vectors(snapshot.connection, (&row, encoder), before, limit)
        })?;
        if notes.is_empty() {
            return Ok(None);
        }
        let mut cards = Vec::with_capacity(notes.len());
        for (memory, card) in &notes {
            cards.push(Card::read_row(store, *memory, card)?);
        }
        let ids: Vec<_> = cards.iter().map(|card| card.memory).collect();
        let (read_at, (memories, _)) = self
            .engine
            .read(|reader| Ok((reader.newest_change()?.0, read_memories(reader, store, &ids)?)))?;
        Ok(Some(Unembedded { store, cards, memories, read_at }))
    }

    /// Encodes some memories and stores their vectors.
    fn embed_batch(
        &self,
        meaning: &Meaning,
        encoder: &EncoderRow,
        (batch, done): (&Unembedded, &mut Embedded),
        progress: &mut Progress,
    ) -> Result<(), End> {
        let last = batch.cards.last().map(|card| (batch.store, card.memory));
        for group in batch.groups(meaning) {
            let made = match group.encoded(meaning) {
                Ok(made) => made,
                Err(error) => {
                    if batch.cards.len() == 1 {
                        progress.last = last;
                    }
                    progress.singly = MEMORIES_MAX;
                    return Err(End::Failed(error.in_detail()));
                }
            };
            let is_current = |made: &MemoryVectors, card: &[u8]| {
                let card = Card::read_row(batch.store, made.memory, card);
                card.is_ok_and(|card| card.version == made.version)
            };
            let put = self.file.write(|connection| {
                put_vectors(connection, batch.store, (encoder, batch.read_at), &made, is_current)
            })?;
            match put {
                PutVectors::Put { embedded, rejected } => {
                    done.embedded += embedded;
                    done.rejected += rejected;
                }
                // What was read before a redaction may hold what was redacted.
                PutVectors::Outdated => break,
                PutVectors::Superseded => return Err(End::Superseded),
            }
        }
        progress.last = last;
        progress.singly = progress.singly.saturating_sub(batch.cards.len());
        Ok(())
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
