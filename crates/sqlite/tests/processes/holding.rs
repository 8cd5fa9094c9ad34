//! Processes that hold the write lock, or the data directory.

use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::clock::SystemClock;
use quipu_core::engine::Precondition;
use quipu_core::model::{StoreId, View};
use quipu_core::settings::Limits;
use quipu_core::{Backend as _, Engine, ErrorKind};
use quipu_sqlite::{OpenMode, OpenSettings, SqliteBackend, restore_backup};

use crate::support::{actor, content, engine, fixture, path};
use crate::{lines, start};

/// Writes as fast as it can, with several threads.
pub(crate) fn busy_writer(directory: &Path, rest: &[String]) {
    let store: StoreId = rest[0].parse().expect("a store's id");
    let engine = engine(directory);
    println!("ready");
    thread::scope(|scope| {
        for thread in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for number in 0_u64.. {
                    let target = (&path(&format!("/{thread}")), &content(&number.to_string()));
                    engine.put(&actor(), store, target, Precondition::None).expect("it writes");
                }
            });
        }
    });
}

fn signal(child: &Child, name: &str) {
    // The shell's own `kill`: small systems have no program of that name.
    let command = format!("kill {name} {}", child.id());
    let sent = std::process::Command::new("sh").args(["-c", &command]).status();
    assert!(sent.expect("`sh` runs").success());
}

/// Ctrl-Z on an import blocked every writer forever, without an error.
pub(crate) fn a_stopped_writer_is_named_and_reading_goes_on() {
    let fixture = fixture();
    fixture.put("/a", "text");
    let directory = fixture.directory.path();
    let settings = OpenSettings {
        lock_timeout: Duration::from_millis(500),
        ..OpenSettings::new(OpenMode::Existing)
    };
    let backend = SqliteBackend::open_with(directory, &settings).expect("it opens");
    let engine = Engine::new(Arc::new(backend), Arc::new(SystemClock), Limits::default());
    let mut writer = start("busy", directory, &[&fixture.store.to_string()]);
    assert_eq!(lines(&mut writer).next().as_deref(), Some("ready"));
    let put = || {
        let target = (&path("/a"), &content("new"));
        engine.put(&actor(), fixture.store, target, Precondition::None)
    };
    // It is not always inside when it is stopped.
    let error = loop {
        signal(&writer, "-STOP");
        thread::sleep(Duration::from_millis(20));
        let stopped = put();
        signal(&writer, "-CONT");
        match stopped {
            Ok(_) => thread::sleep(Duration::from_millis(7)),
            Err(error) => break error,
        }
    };
    assert_eq!(*error.kind(), ErrorKind::StorageBusy, "{error:?}");
    let named = format!("process {}", writer.id());
    assert!(error.message().contains(&named), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("kill -CONT")), "{error:?}");
    assert!(engine.memory_at(fixture.store, &path("/a"), View::Full).is_ok());
    put().expect("it goes on");
    writer.kill().expect("it is killed");
    writer.wait().expect("it ends");
}

/// A process that leaves and comes back at once was always faster than one that had to be woken.
pub(crate) fn a_busy_process_does_not_overtake_one_that_waits() {
    let fixture = fixture();
    let mut writer = start("busy", fixture.directory.path(), &[&fixture.store.to_string()]);
    assert_eq!(lines(&mut writer).next().as_deref(), Some("ready"));
    let mut longest = Duration::ZERO;
    for number in 0..50 {
        let start = Instant::now();
        fixture.put("/mine", &number.to_string());
        longest = longest.max(start.elapsed());
    }
    writer.kill().expect("it is killed");
    writer.wait().expect("it ends");
    println!("beside a busy process, a write took at most {longest:?}");
    assert!(longest < Duration::from_secs(3), "a write took {longest:?}");
}

pub(crate) fn a_backup_is_not_restored_under_a_running_process() {
    let fixture = fixture();
    let backups = tempfile::tempdir().expect("a directory");
    let backup = backups.path().join("backup.db");
    let opened = SqliteBackend::open(fixture.directory.path(), OpenMode::Existing);
    opened.and_then(|backend| backend.backup(&backup)).expect("it is backed up");
    let directory = tempfile::tempdir().expect("a directory");
    restore_backup(&backup, directory.path()).expect("it is restored");
    let mut writer = start("busy", directory.path(), &[&fixture.store.to_string()]);
    assert_eq!(lines(&mut writer).next().as_deref(), Some("ready"));
    let error = restore_backup(&backup, directory.path()).expect_err("it is in use");
    assert_eq!(*error.kind(), ErrorKind::StorageBusy, "{error:?}");
    writer.kill().expect("it is killed");
    writer.wait().expect("it ends");
    restore_backup(&backup, directory.path()).expect("it is free again");
}
