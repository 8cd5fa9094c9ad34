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
pub(crate) fn flush_in_background(engine: &Engine) {
    flush_every(FLUSH_PERIOD, engine.clone());
}

fn flush_every(span: Duration, engine: Engine) {
    thread::spawn(move || {
        loop {
            thread::sleep(span);
            log(&engine.write_uses());
        }
    });
}

/// Flushes readings periodically on the calling thread, until `stop`.
pub(crate) fn flush_until(engine: &Engine, stop: &Stop) {
    while !stop.is_set_within(FLUSH_PERIOD) {
        log(&engine.write_uses());
    }
}

/// Flushes readings before the process exits, within a bounded time.
pub(crate) fn flush_on_exit(engine: &Engine) {
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
        Ok(count) => tracing::debug!(count, "recorded which memories were read"),
        Err(error) => tracing::debug!(%error, "failed to record which memories were read"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu_core::engine::NewStore;
    use quipu_core::model::{Actor, Content, MemoryPath, Name, StorePolicy, View};
    use quipu_core::settings::Limits;
    use quipu_testkit::{InMemoryBackend, ManualClock};

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    #[test]
    fn readings_are_flushed_while_a_command_runs() {
        let (backend, clock) =
            (Arc::new(InMemoryBackend::default()), Arc::new(ManualClock::default()));
        // Each engine buffers readings of its own, like one process.
        let process =
            || Engine::new(Arc::clone(&backend) as _, Arc::clone(&clock) as _, Limits::default());
        let engine = process();
        let policy = StorePolicy { expire_after_days: Some(7), ..StorePolicy::default() };
        let new = NewStore { policy, ..NewStore::named(Name::new("notes").unwrap()) };
        let store = engine.create_store(engine.default_workspace().unwrap().id, &new).unwrap().id;
        let path = MemoryPath::parse("/tea.md").unwrap();
        engine.create(&Actor::expiry(), store, &path, &Content::new("green").unwrap()).unwrap();

        clock.advance(DAY * 6);
        engine.memory_at(store, &path, View::Full).unwrap();
        assert!(engine.has_unwritten_uses());
        flush_every(Duration::from_millis(1), engine);
        // A second reading within the hour is not buffered once the first is written.
        let is_flushed = || {
            let another = process();
            another.memory_at(store, &path, View::Full).unwrap();
            !another.has_unwritten_uses()
        };
        while !is_flushed() {
            thread::yield_now();
        }
        clock.advance(DAY * 2);
        assert_eq!(process().prune().unwrap().memories_count, 0);
    }
}
