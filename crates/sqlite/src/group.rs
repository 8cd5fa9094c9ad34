//! Group commit: the writes of many threads with one sync.
//!
//! Each thread runs its own work on the one writing connection. If other threads are about to
//! write too, the transaction stays open for them; one of them commits for all. Nobody returns
//! before the commit that holds its work has reached the disk.
//!
//! Work that can be done again has transactions of its own without a sync. They reach the disk with
//! the next commit that has one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::backend::WriteWork;
use rusqlite::Connection;

use crate::error::StorageResult as _;
use crate::feed::Feed;
use crate::gate::Gate;
use crate::recall::Source;
use crate::rows::Rows;

/// The one connection that writes, shared by all threads of the process.
pub(crate) struct GroupCommit {
    state: Mutex<State>,
    /// How many threads wait for their turn at `state`; each will look after the open batch.
    waiting_count: AtomicUsize,
    feed: Arc<Feed>,
}

struct State {
    connection: Connection,
    gate: Gate,
    batch: Option<OpenBatch>,
    sync: Sync,
    /// How many members the last batch had: so many may be expected again.
    expected_count: usize,
    /// How long the last commit took. To wait so long for others pays if one of them comes.
    commit_time: Duration,
}

/// When a commit reaches the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    /// Before it returns.
    AtOnce,
    /// With the next one.
    Later,
}

/// A transaction that further threads may join.
struct OpenBatch {
    outcome: Arc<Outcome>,
    members_count: usize,
    /// Whether a member lingers, and commits when it has waited enough.
    has_lingerer: bool,
}

/// A batch that is over, but whose members do not know it yet.
struct Ended {
    outcome: Arc<Outcome>,
    members_count: usize,
    fate: Fate,
}

/// Tells the members of a batch what became of it.
#[derive(Default)]
struct Outcome {
    fate: Mutex<Option<Fate>>,
    settled: Condvar,
}

/// What became of a batch.
#[derive(Clone)]
enum Fate {
    /// It is committed, and on the disk if its members asked for that.
    Committed,
    /// It could not be committed.
    Failed(Error),
    /// The failure of one member has taken back the changes of all, so the others run again.
    Repeat,
}

/// A batch ends at this size, so that its first member does not wait too long.
const MEMBERS_MAX: usize = 64;

/// The longest that a member waits for those of the last batch to come back.
const LINGER_MAX: Duration = Duration::from_micros(500);

impl GroupCommit {
    pub(crate) fn new(connection: Connection, gate: Gate, feed: Arc<Feed>) -> Self {
        Self {
            state: Mutex::new(State {
                connection,
                gate,
                batch: None,
                sync: Sync::AtOnce,
                expected_count: 1,
                commit_time: Duration::ZERO,
            }),
            waiting_count: AtomicUsize::new(0),
            feed,
        }
    }

    /// Runs `work` in a transaction and returns when it is durable.
    pub(crate) fn run(&self, work: &mut WriteWork<'_>) -> Result<(), Error> {
        loop {
            match self.run_in_batch(work)? {
                Fate::Committed => return Ok(()),
                Fate::Failed(error) => return Err(error),
                Fate::Repeat => {}
            }
        }
    }

    fn run_in_batch(&self, work: &mut WriteWork<'_>) -> Result<Fate, Error> {
        self.waiting_count.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        self.waiting_count.fetch_sub(1, Ordering::SeqCst);

        let outcome = state.join(Sync::AtOnce)?;
        // A panic must not leave the others' transaction open.
        let ran = catch_unwind(AssertUnwindSafe(|| state.run_member(work)));
        self.look_after(state, &outcome);
        match ran {
            Ok(Ok(())) => Ok(outcome.wait()),
            Ok(Err(error)) => Err(error),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Runs `work` in a transaction of its own, which a power failure may undo.
    pub(crate) fn run_unsynced(&self, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(ended) = state.commit() {
            self.announce(ended);
        }
        let (expected_count, commit_time) = (state.expected_count, state.commit_time);
        state.join(Sync::Later)?;
        let ran = catch_unwind(AssertUnwindSafe(|| state.run_member(work)));
        let ended = state.commit();
        // This says nothing about the batches of others.
        (state.expected_count, state.commit_time) = (expected_count, commit_time);
        drop(state);
        ran.unwrap_or_else(|panic| resume_unwind(panic))?;
        match ended.map(|ended| ended.fate) {
            Some(Fate::Failed(error)) => Err(error),
            Some(Fate::Committed | Fate::Repeat) | None => Ok(()),
        }
    }

    /// Runs `work` while no transaction is open and no other process writes.
    pub(crate) fn alone<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut state = self.lock();
        if let Some(ended) = state.commit() {
            self.announce(ended);
        }
        state.set_sync(Sync::AtOnce)?;
        state.gate.enter().or_storage_error()?;
        let result = work(&state.connection);
        state.gate.leave();
        result
    }

    /// Commits the batch, unless another thread is certain to do so.
    fn look_after<'a>(&'a self, mut state: MutexGuard<'a, State>, mine: &Arc<Outcome>) {
        let expected_count = state.expected_count;
        let Some(batch) = &mut state.batch else { return };
        if batch.members_count < MEMBERS_MAX {
            if self.waiting_count.load(Ordering::SeqCst) > 0 {
                return;
            }
            if (1..expected_count).contains(&batch.members_count) {
                if batch.has_lingerer {
                    return;
                }
                batch.has_lingerer = true;
                let linger = state.commit_time.min(LINGER_MAX);
                drop(state);
                thread::sleep(linger);
                state = self.lock();
            }
        }
        if state.batch.as_ref().is_some_and(|batch| Arc::ptr_eq(&batch.outcome, mine)) {
            let ended = state.commit();
            // The members write again at once, so the state must be free when they wake.
            drop(state);
            if let Some(ended) = ended {
                self.announce(ended);
            }
        }
    }

    fn announce(&self, ended: Ended) {
        let has_changed = matches!(ended.fate, Fate::Committed) && ended.members_count > 0;
        ended.outcome.settle(ended.fate);
        if has_changed {
            self.feed.changed();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic inside a transaction is caught and rolled back, so the state is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the open batch, or opens one.
    fn join(&mut self, sync: Sync) -> Result<Arc<Outcome>, Error> {
        if let Some(batch) = &self.batch {
            return Ok(Arc::clone(&batch.outcome));
        }
        self.set_sync(sync)?;
        self.gate.enter().or_storage_error()?;
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            self.gate.leave();
            return Err(error);
        }
        let outcome = Arc::new(Outcome::default());
        let batch =
            OpenBatch { outcome: Arc::clone(&outcome), members_count: 0, has_lingerer: false };
        self.batch = Some(batch);
        Ok(outcome)
    }

    /// Says when the next transaction reaches the disk.
    fn set_sync(&mut self, sync: Sync) -> Result<(), Error> {
        if self.sync != sync {
            let level = match sync {
                Sync::AtOnce => "full",
                Sync::Later => "normal",
            };
            self.connection.pragma_update(None, "synchronous", level).or_storage_error()?;
            self.sync = sync;
        }
        Ok(())
    }

    /// Runs one thread's work; when it fails, none of its changes remain.
    fn run_member(&mut self, work: &mut WriteWork<'_>) -> Result<(), Error> {
        let changes_before = self.connection.total_changes();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            work(&mut Rows::new(Source::Database(&self.connection)))
        }));
        if matches!(ran, Ok(Ok(()))) {
            if let Some(batch) = &mut self.batch {
                batch.members_count += 1;
            }
        } else if self.connection.is_autocommit() {
            // SQLite has given up the transaction by itself, as it does when the disk is full.
            self.repeat();
        } else if self.connection.total_changes() != changes_before {
            // Work checks before it changes, so this is rare; a savepoint for every member would
            // cost more than running the others once more.
            self.execute("ROLLBACK")?;
            self.repeat();
        }
        ran.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Commits the open batch, if there is one.
    fn commit(&mut self) -> Option<Ended> {
        let OpenBatch { outcome, members_count, .. } = self.batch.take()?;
        self.expected_count = members_count;
        let start = Instant::now();
        let committed = self.execute("COMMIT");
        self.commit_time = start.elapsed();
        let fate = match committed {
            Ok(()) => Fate::Committed,
            Err(error) => {
                if !self.connection.is_autocommit() {
                    // The error of the commit is the one to report.
                    self.execute("ROLLBACK").unwrap_or_default();
                }
                Fate::Failed(error)
            }
        };
        self.gate.leave();
        Some(Ended { outcome, members_count, fate })
    }

    /// Ends a batch whose transaction is gone; its members run again.
    fn repeat(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.gate.leave();
            batch.outcome.settle(Fate::Repeat);
        }
    }

    fn execute(&self, sql: &str) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached(sql).or_storage_error()?;
        statement.raw_execute().or_storage_error().map(drop)
    }
}

impl Outcome {
    fn settle(&self, fate: Fate) {
        *self.fate.lock().unwrap_or_else(PoisonError::into_inner) = Some(fate);
        self.settled.notify_all();
    }

    fn wait(&self) -> Fate {
        let fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = self.settled.wait_while(fate, |fate| fate.is_none());
        let fate = settled.unwrap_or_else(PoisonError::into_inner);
        fate.clone().expect("the wait ends with a fate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenMode, SqliteBackend};

    #[test]
    fn only_work_that_can_be_done_again_goes_without_a_sync() {
        let directory = tempfile::tempdir().unwrap();
        let backend = SqliteBackend::open(directory.path(), OpenMode::Create).unwrap();
        let group = &backend.writer;
        let level = |connection: &Connection| -> i64 {
            connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
        };
        let (normal, full) = (1, 2);
        for _ in 0..2 {
            group.run_unsynced(&mut |_| Ok(())).unwrap();
            assert_eq!(level(&group.lock().connection), normal);
            group.run(&mut |_| Ok(())).unwrap();
            assert_eq!(level(&group.lock().connection), full);
            group.run_unsynced(&mut |_| Err(Error::invalid("on purpose"))).unwrap_err();
            assert_eq!(group.alone(|connection| Ok(level(connection))).unwrap(), full);
        }
    }

    #[test]
    fn a_panic_without_a_sync_lets_others_write() {
        let directory = tempfile::tempdir().unwrap();
        let backend = SqliteBackend::open(directory.path(), OpenMode::Create).unwrap();
        let group = &backend.writer;
        let panicking = || group.run_unsynced(&mut |_| panic!("on purpose"));
        catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
        group.run(&mut |_| Ok(())).unwrap();
    }
}
