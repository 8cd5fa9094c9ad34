//! The engine, as asynchronous code reaches it.
//!
//! The engine is synchronous: its calls may wait for the disk and for the write lock, which another
//! process can hold for as long as it likes. A runtime has a worker per core, so a few calls that wait on
//! workers stop everything, health checks among them. Therefore no asynchronous code of this crate
//! holds an [`Engine`]: it hands a [`Pool`] a closure and gets its result.
//!
//! [`Pool::read`] tries the closure in up to three places: on the worker with an engine that never
//! waits (what was read before and has not changed since needs no disk), then in a thread for readers
//! with an engine that never writes, then in a thread for writers. [`Pool::write`] goes to the last at
//! once. Readers and writers have permits of their own, so writers that wait for the lock cannot use
//! up what readers need, and since the second engine cannot write, no reader can turn into one that waits.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use quipu_core::Engine;
use quipu_core::model::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

/// How many threads there are for what waits, and for how long others wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How many calls read from the disk at the same time.
    pub readers_max: usize,
    /// How many calls write, or wait for the write lock, at the same time. They are committed
    /// together, so more than there are cores is useful.
    pub writers_max: usize,
    /// How many calls may write or wait for a thread to write in. One more is refused at once.
    pub writers_waiting_max: usize,
    /// How long a call waits for a thread.
    pub patience: Duration,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            readers_max: 32,
            writers_max: 64,
            writers_waiting_max: 256,
            patience: Duration::from_secs(5),
        }
    }
}

impl PoolSettings {
    /// For a server with one client.
    pub(crate) const SMALL: Self = Self {
        readers_max: 4,
        writers_max: 4,
        writers_waiting_max: 64,
        patience: Duration::from_secs(5),
    };

    /// Threads that the runtime needs for itself, such as to read the standard input.
    const THREADS_SPARE: usize = 8;

    /// Returns how many blocking threads the runtime must have for all permits to be of use.
    pub fn blocking_threads_max(&self) -> usize {
        self.readers_max + self.writers_max + Self::THREADS_SPARE
    }
}

/// Why work has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolError {
    /// No thread came free in time, so it was not begun; try again.
    Overloaded,
    /// It panicked.
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

/// An engine that asynchronous code may use.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Engine,
    readers: Arc<Semaphore>,
    writers: Arc<Semaphore>,
    writers_waiting: Semaphore,
    patience: Duration,
}

impl Inner {
    /// Goes on as a writer in the thread of a reader, if there is a place for one; hands the work
    /// back otherwise. One place is given up for the other, since the threads are as many as they.
    fn go_on_writing<T, W: FnOnce(&Engine) -> T>(
        &self,
        place: OwnedSemaphorePermit,
        work: W,
    ) -> Result<T, W> {
        drop(place);
        match self.writers.try_acquire() {
            Ok(_place) => Ok(work(&self.engine)),
            Err(_) => Err(work),
        }
    }
}

impl Pool {
    pub(crate) fn new(engine: Engine, settings: PoolSettings) -> Self {
        Self(Arc::new(Inner {
            engine,
            readers: Arc::new(Semaphore::new(settings.readers_max)),
            writers: Arc::new(Semaphore::new(settings.writers_max)),
            writers_waiting: Semaphore::new(settings.writers_waiting_max),
            patience: settings.patience,
        }))
    }

    /// Returns the present moment.
    pub(crate) fn now(&self) -> Timestamp {
        self.0.engine.now()
    }

    /// Returns 128 random bits.
    pub(crate) fn random(&self) -> u128 {
        self.0.engine.random()
    }

    /// Runs work that most likely only reads, where it waits for nobody that it need not wait for.
    ///
    /// `work` may be run up to three times, and is not told which run counts, so apart from
    /// writing to the engine it must have no effects.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl Fn(&Engine) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let tried = caught(|| self.0.engine.without_waiting(|engine| Ok(work(engine))))?;
        if let Some(Ok(done)) = tried {
            return Ok(done);
        }
        let place = self.place(&self.0.readers).await?;
        let inner = Arc::clone(&self.0);
        let read = spawn_blocking(move || {
            if let Some(Ok(done)) = inner.engine.without_writing(|engine| Ok(work(engine))) {
                return Ok(done);
            }
            inner.go_on_writing(place, work)
        });
        match joined(read).await? {
            Ok(done) => Ok(done),
            Err(work) => self.write(work).await,
        }
    }

    /// Runs work that writes.
    ///
    /// Once it has begun it is carried out, whether or not anybody still waits for it.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let waiting = self.0.writers_waiting.try_acquire();
        let _waiting = waiting.map_err(|_full| PoolError::Overloaded)?;
        let place = self.place(&self.0.writers).await?;
        let inner = Arc::clone(&self.0);
        let written = spawn_blocking(move || {
            let _place = place;
            work(&inner.engine)
        });
        joined(written).await
    }

    /// Runs work that writes, unless `check`, which only reads, refuses it before.
    ///
    /// That costs no more changes of threads than the work alone, and whoever is refused has not
    /// taken the place of a writer. The work makes the same check: nothing here relies on the first.
    pub(crate) async fn write_if<T: Send + 'static, E: Send + 'static>(
        &self,
        check: impl Fn(&Engine) -> Result<(), E> + Send + 'static,
        work: impl FnOnce(&Engine) -> Result<T, E> + Send + 'static,
    ) -> Result<Result<T, E>, PoolError> {
        match caught(|| self.0.engine.without_waiting(|engine| Ok(check(engine))))? {
            Some(Ok(Ok(()))) => return self.write(work).await,
            Some(Ok(Err(refusal))) => return Ok(Err(refusal)),
            Some(Err(_)) | None => {}
        }
        let place = self.place(&self.0.readers).await?;
        let inner = Arc::clone(&self.0);
        let checked = spawn_blocking(move || {
            match inner.engine.without_writing(|engine| Ok(check(engine))) {
                Some(Ok(Err(refusal))) => Ok(Err(refusal)),
                Some(Ok(Ok(())) | Err(_)) | None => inner.go_on_writing(place, work),
            }
        });
        match joined(checked).await? {
            Ok(done) => Ok(done),
            Err(work) => self.write(work).await,
        }
    }

    /// Runs work for as long as it takes, on the thread that calls this.
    ///
    /// That must be one that nobody waits for; asynchronous code has no such thread.
    pub(crate) fn on_own_thread<T>(&self, work: impl FnOnce(&Engine) -> T) -> T {
        work(&self.0.engine)
    }

    async fn place(&self, places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, PoolError> {
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(place);
        }
        let place = Arc::clone(places).acquire_owned();
        match tokio::time::timeout(self.0.patience, place).await {
            Ok(place) => Ok(place.expect("the semaphore is never closed")),
            Err(_) => Err(PoolError::Overloaded),
        }
    }
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, PoolError> {
    // Work has no effects that a panic could leave half done, but on the engine, which can bear it.
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
    use quipu_core::settings::Limits;
    use quipu_testkit::{InMemoryBackend, ManualClock};

    use super::*;

    fn pool(settings: PoolSettings) -> Pool {
        let backend = Arc::new(InMemoryBackend::default());
        let clock = Arc::new(ManualClock::default());
        Pool::new(Engine::new(backend, clock, Limits::default()), settings)
    }

    const TINY: PoolSettings = PoolSettings {
        readers_max: 1,
        writers_max: 1,
        writers_waiting_max: 2,
        patience: Duration::from_millis(10),
    };

    fn create(engine: &Engine) {
        let new = NewStore::named(Name::new("notes").unwrap());
        let workspace = engine.default_workspace();
        drop(workspace.and_then(|workspace| engine.create_store(workspace.id, &new)));
    }

    #[tokio::test]
    async fn what_turns_out_to_write_is_carried_out_once() {
        let pool = pool(TINY);
        pool.write(|engine| drop(engine.default_workspace())).await.unwrap();
        pool.read(create).await.unwrap();
        assert_eq!(pool.read(|engine| engine.newest_sequence().unwrap().0).await, Ok(1));
    }

    #[tokio::test]
    async fn writers_that_wait_leave_readers_their_place_and_others_hear_so_soon() {
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
        // A reader that has to write waits like a writer, and has given its place back.
        assert_eq!(pool.read(create).await, Err(PoolError::Overloaded));
        assert_eq!(pool.0.readers.available_permits(), 1);
        release.send(()).unwrap();
        assert_eq!(stuck.await.unwrap(), Ok(true));
        assert_eq!(pool.write(|_| ()).await, Ok(()));
    }

    #[tokio::test]
    async fn whoever_is_refused_takes_no_place_of_a_writer() {
        let pool = pool(PoolSettings { writers_max: 0, ..TINY });
        let refused = pool.write_if(|_| Err("no"), |_| Ok(())).await;
        assert_eq!(refused, Ok(Err("no")));
        let allowed = pool.write_if(|_| Ok::<_, ()>(()), |_| Ok(())).await;
        assert_eq!(allowed, Err(PoolError::Overloaded));
    }

    #[tokio::test]
    async fn a_panic_is_reported_and_gives_the_place_back() {
        let pool = pool(TINY);
        for _ in 0..3 {
            let failing = |_: &Engine| panic!("on purpose");
            assert_eq!(pool.write(failing).await, Err::<(), _>(PoolError::Panicked));
            assert_eq!(pool.read(failing).await, Err::<(), _>(PoolError::Panicked));
        }
        assert_eq!(pool.write(|_| ()).await, Ok(()));
    }
}
