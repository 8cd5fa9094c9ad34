//! Persists which memories were read, for stores that delete unused ones.
//!
//! The engine buffers readings in memory so that no read blocks on a writer. Long-running commands
//! flush them periodically, and every command does on exit. Readings are hints: if they
//! cannot be written promptly, because another process holds the write lock or the disk is full,
//! they are dropped with a debug message.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use quipu_core::{Engine, Error};

use crate::stop::Stop;

/// How often a long-running command flushes readings.
const FLUSH_PERIOD: Duration = Duration::from_secs(5);

/// How long a command waits for the flush on exit.
const EXIT_TIMEOUT: Duration = Duration::from_millis(250);

/// Flushes readings periodically, on a thread that lives as long as the process.
pub(crate) fn keep_written(engine: &Engine) {
    keep_written_every(FLUSH_PERIOD, engine.clone());
}

fn keep_written_every(span: Duration, engine: Engine) {
    thread::spawn(move || {
        loop {
            thread::sleep(span);
            log(&engine.write_uses());
        }
    });
}

/// Flushes readings periodically on the calling thread, until `stop`.
pub(crate) fn write_until(engine: &Engine, stop: &Stop) {
    while !stop.is_set_within(FLUSH_PERIOD) {
        log(&engine.write_uses());
    }
}

/// Flushes readings before the process exits, within a bounded time.
pub(crate) fn write_on_exit(engine: &Engine) {
    if !engine.has_unwritten_uses() {
        return;
    }
    let (done, ended) = channel();
    let engine = engine.clone();
    // The thread is abandoned if it blocks on the write lock.
    thread::spawn(move || {
        log(&engine.write_uses());
        done.send(()).unwrap_or_default();
    });
    ended.recv_timeout(EXIT_TIMEOUT).unwrap_or_default();
}

fn log(written: &Result<usize, Error>) {
    match written {
        Ok(0) => {}
        Ok(count) => tracing::debug!(count, "noted which memories were read"),
        Err(error) => tracing::debug!(%error, "which memories were read cannot be noted"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu_core::Clock;
    use quipu_core::clock::SystemClock;
    use quipu_core::engine::NewStore;
    use quipu_core::model::{Actor, Content, MemoryPath, Name, StorePolicy, Timestamp, View};
    use quipu_core::settings::Limits;
    use quipu_sqlite::{OpenMode, SqliteBackend};

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    /// A clock that is this many days ahead.
    #[derive(Debug)]
    struct Ahead(u32);

    impl Clock for Ahead {
        fn now(&self) -> Timestamp {
            SystemClock.now().plus(DAY * self.0)
        }

        fn fill_random(&self, bytes: &mut [u8]) {
            SystemClock.fill_random(bytes);
        }
    }

    #[test]
    fn readings_are_written_while_a_command_runs() {
        let directory = tempfile::tempdir().unwrap();
        let backend = Arc::new(SqliteBackend::open(directory.path(), OpenMode::Create).unwrap());
        let engine =
            |days| Engine::new(Arc::clone(&backend) as _, Arc::new(Ahead(days)), Limits::default());
        let now = engine(0);
        let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
        let new = NewStore { policy, ..NewStore::named(Name::new("notes").unwrap()) };
        let store = now.create_store(now.default_workspace().unwrap().id, &new).unwrap().id;
        let path = MemoryPath::parse("/tea.md").unwrap();
        now.create(&Actor::expiry(), store, &path, &Content::new("green").unwrap()).unwrap();

        let later = engine(6);
        later.memory_at(store, &path, View::Full).unwrap();
        assert!(later.has_unwritten_uses());
        keep_written_every(Duration::from_millis(1), later);
        // A second reading within the hour is not noted, so nothing is left to write then.
        let is_noted = || {
            let another = engine(6);
            another.memory_at(store, &path, View::Full).unwrap();
            !another.has_unwritten_uses()
        };
        while !is_noted() {
            thread::yield_now();
        }
        assert_eq!(engine(8).prune().unwrap().memories_count, 0);
    }
}
