//! Which memories were read, written down for stores that delete what nobody uses.
//!
//! The engine keeps readings in memory, so that no read waits for a writer. Commands that run for long
//! write them down now and then, and every command when it ends. A reading is only a hint: if it
//! cannot be written soon, because another process writes for long or the disk is full, it is
//! given up, and nobody is told but the log.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use quipu_core::{Engine, Error};

/// How often a command that runs for long writes readings down.
const EVERY: Duration = Duration::from_secs(5);

/// How long the end of a command waits for them.
const END_TIMEOUT: Duration = Duration::from_millis(250);

/// Writes readings down now and then, in a thread that ends with the process.
pub(crate) fn keep_written(engine: &Engine) {
    keep_written_every(EVERY, engine.clone());
}

fn keep_written_every(span: Duration, engine: Engine) {
    thread::spawn(move || {
        loop {
            thread::sleep(span);
            log(&engine.write_uses());
        }
    });
}

/// Writes readings down before the process ends, if that takes no more than a moment.
pub(crate) fn write_at_end(engine: &Engine) {
    if !engine.has_unwritten_uses() {
        return;
    }
    let (done, ended) = channel();
    let engine = engine.clone();
    // It is left behind if it waits for somebody.
    thread::spawn(move || {
        log(&engine.write_uses());
        done.send(()).unwrap_or_default();
    });
    ended.recv_timeout(END_TIMEOUT).unwrap_or_default();
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

    /// A clock that goes wrong by so many days.
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
        // Whoever reads it then need not note that, because it is noted already.
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
