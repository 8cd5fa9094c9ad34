//! Access to the engine from asynchronous code.
//!
//! The engine is synchronous: its calls block on the disk and on the write lock, which another
//! process can hold indefinitely. A runtime has one worker per core, so a few calls that block a
//! worker stall every request, health checks included. Therefore asynchronous code in this crate
//! never holds an [`Knowledge`]; it passes a closure to a [`Pool`] and awaits the result.
//!
//! [`Pool::read`] escalates in up to three steps: the closure runs on the worker with an engine
//! that never blocks (answers that are cached and still valid need no disk), then on a reader
//! thread with an engine that never writes, then on a writer thread. [`Pool::write`] starts at the
//! last step. Readers and writers have separate semaphores, so writers that are blocked on the
//! lock cannot exhaust the threads that readers need; and because the engine of the second step
//! cannot write, no reader can end up blocked on the lock while it occupies a reader's thread.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::model::Timestamp;
use quipu_knowledge::Knowledge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

/// The limits of a [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How many calls may read from the disk concurrently.
    pub readers_max: usize,
    /// How many calls may write, or block on the write lock, concurrently. Group commit makes more
    /// of them than there are cores worthwhile.
    pub writers_max: usize,
    /// How many calls may write or queue for a writer thread; further ones are rejected
    /// immediately.
    pub writers_queued_max: usize,
    /// How long a call queues for a thread before it is rejected.
    pub queue_timeout: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            readers_max: 32,
            writers_max: 64,
            writers_queued_max: 256,
            queue_timeout: Duration::from_secs(5),
        }
    }
}

impl PoolSettings {
    /// The limits for a server with a single client.
    pub const SMALL: Self = Self {
        readers_max: 4,
        writers_max: 4,
        writers_queued_max: 64,
        queue_timeout: Duration::from_secs(5),
    };

    /// Blocking threads that the runtime needs for itself, for example to read standard input.
    const THREADS_SPARE: usize = 8;

    /// Returns how many blocking threads the runtime needs so that no permit waits for a thread.
    pub fn blocking_threads_max(&self) -> usize {
        self.readers_max + self.writers_max + Self::THREADS_SPARE
    }
}

/// Why a closure returned no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolError {
    /// No thread became available in time. The closure was not started, so it can be retried.
    Overloaded,
    /// The closure panicked.
    Panicked,
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overloaded => "too many requests at once",
            Self::Panicked => "an internal error occurred",
        })
    }
}

/// An engine behind two bounded sets of threads.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Knowledge,
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    writers_queued: Semaphore,
    queue_timeout: Duration,
}

impl Inner {
    /// Runs `work` as a writer on the current reader thread, which saves a thread switch; returns
    /// `work` if there is no writer permit.
    ///
    /// The reader permit is released first: the runtime has exactly one thread per permit.
    fn continue_as_writer<T, W: FnOnce(&Knowledge) -> T>(
        &self,
        reader: OwnedSemaphorePermit,
        work: W,
    ) -> Result<T, W> {
        drop(reader);
        match self.writers.try_acquire() {
            Ok(_writer) => Ok(work(&self.engine)),
            Err(_) => Err(work),
        }
    }
}

impl Pool {
    /// Puts an engine behind threads with these limits.
    pub fn new(engine: Knowledge, settings: PoolSettings) -> Self {
        Self(Arc::new(Inner {
            engine,
            readers: Arc::new(Semaphore::new(settings.readers_max)),
            writers: Arc::new(Semaphore::new(settings.writers_max)),
            writers_queued: Semaphore::new(settings.writers_queued_max),
            queue_timeout: settings.queue_timeout,
        }))
    }

    /// Returns the present moment.
    pub fn now(&self) -> Timestamp {
        self.0.engine.now()
    }

    /// Returns 128 random bits.
    pub fn random(&self) -> u128 {
        self.0.engine.random()
    }

    /// Runs work that is expected to only read, without blocking on writers.
    ///
    /// `work` may run up to three times and only the last run counts, so it must have no side
    /// effects other than writes to the engine, which the earlier runs cannot make.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&Knowledge) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let tried = caught(|| self.0.engine.without_waiting(|engine| Ok(work(engine))))?;
        if let Some(Ok(done)) = tried {
            return Ok(done);
        }
        let reader = self.permit(&self.0.readers).await?;
        let inner = Arc::clone(&self.0);
        let read = spawn_blocking(move || {
            if let Some(Ok(done)) = inner.engine.without_writing(|engine| Ok(work(engine))) {
                return Ok(done);
            }
            inner.continue_as_writer(reader, work)
        });
        match joined(read).await? {
            Ok(done) => Ok(done),
            Err(work) => self.write(work).await,
        }
    }

    /// Runs work that writes.
    ///
    /// Once started, it runs to completion even if the returned future is dropped.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Knowledge) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let queued = self.0.writers_queued.try_acquire();
        let _queued = queued.map_err(|_full| PoolError::Overloaded)?;
        let writer = self.permit(&self.0.writers).await?;
        let inner = Arc::clone(&self.0);
        let written = spawn_blocking(move || {
            let _writer = writer;
            work(&inner.engine)
        });
        joined(written).await
    }

    /// Runs work that writes, unless `check`, which only reads, rejects it first.
    ///
    /// This costs no more thread switches than the work alone, and a rejected caller never
    /// occupies a writer permit. `work` must repeat the check: one that could not be decided
    /// without writing is skipped here.
    pub async fn write_if<T: Send + 'static, E: Send + 'static>(
        &self,
        check: impl Fn(&Knowledge) -> Result<(), E> + Send + 'static,
        work: impl FnOnce(&Knowledge) -> Result<T, E> + Send + 'static,
    ) -> Result<Result<T, E>, PoolError> {
        match caught(|| self.0.engine.without_waiting(|engine| Ok(check(engine))))? {
            Some(Ok(Ok(()))) => return self.write(work).await,
            Some(Ok(Err(refusal))) => return Ok(Err(refusal)),
            Some(Err(_)) | None => {}
        }
        let reader = self.permit(&self.0.readers).await?;
        let inner = Arc::clone(&self.0);
        let checked = spawn_blocking(move || {
            match inner.engine.without_writing(|engine| Ok(check(engine))) {
                Some(Ok(Err(refusal))) => Ok(Err(refusal)),
                Some(Ok(Ok(())) | Err(_)) | None => inner.continue_as_writer(reader, work),
            }
        });
        match joined(checked).await? {
            Ok(done) => Ok(done),
            Err(work) => self.write(work).await,
        }
    }

    /// Runs long-lived work on the calling thread, which must be dedicated to it and never a worker
    /// of a runtime.
    pub fn on_dedicated_thread<T>(&self, work: impl FnOnce(&Knowledge) -> T) -> T {
        work(&self.0.engine)
    }

    async fn permit(&self, permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, PoolError> {
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Ok(permit);
        }
        let permit = Arc::clone(permits).acquire_owned();
        match tokio::time::timeout(self.0.queue_timeout, permit).await {
            Ok(permit) => Ok(permit.expect("the semaphore is never closed")),
            Err(_) => Err(PoolError::Overloaded),
        }
    }
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, PoolError> {
    // Work has no side effects besides those on the engine, whose transactions survive a panic.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_panic| PoolError::Panicked)
}

async fn joined<T>(running: JoinHandle<T>) -> Result<T, PoolError> {
    running.await.map_err(|_panic| PoolError::Panicked)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use quipu_core::engine::NewStore;
    use quipu_core::model::Name;
    use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};

    use super::*;

    fn pool(settings: PoolSettings) -> Pool {
        let backend = Arc::new(InMemoryBackend::default());
        let clock = Arc::new(ManualClock::default());
        Pool::new(knowledge_over(backend, clock), settings)
    }

    const TINY: PoolSettings = PoolSettings {
        readers_max: 1,
        writers_max: 1,
        writers_queued_max: 2,
        queue_timeout: Duration::from_millis(10),
    };

    fn create(engine: &Knowledge) {
        let new = NewStore::named(Name::new("notes").unwrap());
        let workspace = engine.default_workspace();
        drop(workspace.and_then(|workspace| engine.create_store(workspace.id, &new)));
    }

    #[tokio::test]
    async fn a_read_that_has_to_write_is_carried_out_once() {
        let pool = pool(TINY);
        pool.write(|engine| drop(engine.default_workspace())).await.unwrap();
        pool.read(create).await.unwrap();
        assert_eq!(pool.read(|engine| engine.newest_sequence().unwrap().0).await, Ok(1));
    }

    #[tokio::test]
    async fn blocked_writers_leave_room_for_readers_and_reject_further_writers() {
        let pool = pool(TINY);
        let (release, released) = mpsc::channel::<()>();
        let stuck = tokio::spawn({
            let pool = pool.clone();
            async move { pool.write(move |_| released.recv().is_ok()).await }
        });
        while pool.0.writers.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.write(|_| ()).await, Err(PoolError::Overloaded));
        assert!(pool.read(|engine| engine.newest_sequence().is_ok()).await.unwrap());
        // A reader that has to write queues as a writer and has released its permit.
        assert_eq!(pool.read(create).await, Err(PoolError::Overloaded));
        assert_eq!(pool.0.readers.available_permits(), 1);
        release.send(()).unwrap();
        assert_eq!(stuck.await.unwrap(), Ok(true));
        assert_eq!(pool.write(|_| ()).await, Ok(()));
    }

    #[tokio::test]
    async fn a_rejected_caller_occupies_no_writer_permit() {
        let pool = pool(PoolSettings { writers_max: 0, ..TINY });
        let refused = pool.write_if(|_| Err("no"), |_| Ok(())).await;
        assert_eq!(refused, Ok(Err("no")));
        let allowed = pool.write_if(|_| Ok::<_, ()>(()), |_| Ok(())).await;
        assert_eq!(allowed, Err(PoolError::Overloaded));
    }

    #[tokio::test]
    async fn a_panic_is_reported_and_releases_the_permit() {
        let pool = pool(TINY);
        for _ in 0..3 {
            let failing = |_: &Knowledge| panic!("on purpose");
            assert_eq!(pool.write(failing).await, Err::<(), _>(PoolError::Panicked));
            assert_eq!(pool.read(failing).await, Err::<(), _>(PoolError::Panicked));
        }
        assert_eq!(pool.write(|_| ()).await, Ok(()));
    }
}
