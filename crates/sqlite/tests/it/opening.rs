//! Data directories that are new, damaged, foreign, too new, or cannot be written.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use quipu_core::clock::SystemClock;
use quipu_core::model::View;
use quipu_core::settings::Limits;
use quipu_core::{Backend as _, Engine, Error, ErrorKind};
use quipu_sqlite::{DATABASE_FILE, OpenMode, SqliteBackend, restore_backup};
use rusqlite::Connection;

use crate::support::{actor, content, engine, fixture, new_store, path};

fn open(directory: &Path) -> Result<SqliteBackend, Error> {
    SqliteBackend::open(directory, OpenMode::Existing)
}

fn refusal(directory: &Path) -> Error {
    let error = open(directory).expect_err("it does not open");
    assert!(error.hint().is_some(), "{error:?}");
    let shown = format!("{} {}", error.message(), error.hint().unwrap_or_default());
    assert!(!shown.contains(&directory.display().to_string()), "a host path is shown: {shown}");
    error
}

#[test]
fn a_missing_directory_is_made_only_when_asked_for() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/b");
    assert_eq!(*refusal(&directory).kind(), ErrorKind::NotFound);
    assert!(!directory.exists());
    SqliteBackend::open(&directory, OpenMode::Create).unwrap();
    assert!(open(&directory).is_ok());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_data() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("data");
    let engine = engine(&directory);
    engine.default_workspace().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn a_removed_data_directory_takes_no_writes() {
    let fixture = fixture();
    fixture.put("/a", "text");
    fs::remove_dir_all(fixture.directory.path()).unwrap();
    let target = (&path("/a"), &content("this would be gone with the process"));
    let none = quipu_core::engine::Precondition::None;
    let error = fixture.engine.put(&actor(), fixture.store, target, none).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::StorageUnavailable, "{error:?}");
}

#[test]
fn an_acknowledged_write_has_reached_the_disk() {
    let fixture = fixture();
    fixture.put("/a", "text");
    let connection = Connection::open(fixture.directory.path().join(DATABASE_FILE)).unwrap();
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    // The connection's own setting is not visible from here, so the write is looked for in a copy
    // of the files as they are now, which is what a power loss would leave.
    let copy = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture.directory.path()).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with("-shm") {
            fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let survivor = engine(copy.path());
    let view = View::Full;
    let memory = survivor.memory_at(fixture.store, &path("/a"), view).unwrap();
    assert_eq!(memory.content, Some(content("text")));
    assert_eq!(survivor.check().unwrap().problems, []);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(DATABASE_FILE);
    let foreign = Connection::open(&file).unwrap();
    foreign.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    drop(foreign);
    let before = fs::read(&file).unwrap();
    let error = refusal(directory.path());
    assert_eq!(*error.kind(), ErrorKind::StorageUnusable);
    assert_eq!(error.message(), "the database was not made by Quipu");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(DATABASE_FILE);
    fs::write(&file, "this is a text, and a rather long one ".repeat(300)).unwrap();
    let before = fs::read(&file).unwrap();
    assert_eq!(*refusal(directory.path()).kind(), ErrorKind::StorageUnusable);
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_newer_schema_is_refused_with_both_numbers() {
    let fixture = fixture();
    let file = fixture.directory.path().join(DATABASE_FILE);
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let error = refusal(fixture.directory.path());
    assert_eq!(*error.kind(), ErrorKind::StorageUnusable);
    assert!(error.message().contains("schema 999"), "{error}");
}

#[test]
fn a_truncated_database_is_reported_and_kept() {
    let fixture = fixture();
    for number in 0..200 {
        fixture.put(&format!("/{number}"), &"text ".repeat(200));
    }
    let file = fixture.directory.path().join(DATABASE_FILE);
    let directory = fixture.directory;
    drop(fixture.engine);
    let bytes = fs::read(&file).unwrap();
    let half = &bytes[..bytes.len() / 2 / 4096 * 4096];
    fs::write(&file, half).unwrap();
    let error = match open(directory.path()) {
        Err(error) => error,
        Ok(backend) => backend
            .read(&mut |reader| reader.workspaces().map(drop))
            .expect_err("a truncated database cannot be read"),
    };
    assert_eq!(*error.kind(), ErrorKind::StorageUnusable, "{error:?}");
    assert_eq!(fs::read(&file).unwrap(), half);
}

#[test]
fn damage_inside_the_file_is_found_by_the_check() {
    let fixture = fixture();
    fixture.put("/a", "text");
    let file = fixture.directory.path().join(DATABASE_FILE);
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM versions").unwrap();
    drop(connection);
    let problems = fixture.engine.check().unwrap().problems;
    assert!(problems.iter().any(|problem| problem.message.contains("no owner in `versions`")));
    assert!(problems.iter().any(|problem| problem.message.contains("has no version")));
}

#[test]
fn wrong_usage_is_found_and_can_be_rebuilt() {
    let fixture = fixture();
    fixture.put("/a", "text");
    let file = fixture.directory.path().join(DATABASE_FILE);
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("UPDATE stores SET memories_count = 7").unwrap();
    let problems = fixture.engine.check().unwrap().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].remedy, quipu_core::engine::Remedy::Rebuild);
    fixture.engine.rebuild().unwrap();
    assert_eq!(fixture.engine.check().unwrap().problems, []);
}

#[test]
fn an_empty_file_is_a_new_database() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(DATABASE_FILE), "").unwrap();
    assert!(engine(directory.path()).default_workspace().is_ok());
}

#[test]
fn many_may_open_a_new_directory_at_once() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    engine(directory.path()).default_workspace().unwrap()
                });
            }
        });
        assert_eq!(engine(directory.path()).workspaces().unwrap().len(), 1);
    }
}

#[test]
fn a_backup_is_consistent_while_others_write_and_never_overwrites() {
    let fixture = fixture();
    let backend = open(fixture.directory.path()).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join(DATABASE_FILE);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                fixture.put(&format!("/{}", number % 20), &number.to_string());
                number += 1;
            }
        });
        while fixture.engine.usage(fixture.store).unwrap().memories_count < 20 {
            std::thread::yield_now();
        }
        backend.backup(&copy).unwrap();
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let restored = engine(elsewhere.path());
    assert_eq!(restored.check().unwrap().problems, []);
    assert!(restored.usage(fixture.store).unwrap().memories_count >= 20);
    let again = backend.backup(&copy).unwrap_err();
    assert_eq!(*again.kind(), ErrorKind::InvalidInput);
    restored.create(&actor(), fixture.store, &path("/new"), &content("x")).unwrap();
}

/// Whoever copies the database file alone after a clean end has everything.
#[test]
fn a_clean_end_leaves_nothing_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let backend = Arc::new(SqliteBackend::open(directory.path(), OpenMode::Create).unwrap());
    let shared = Arc::clone(&backend) as Arc<dyn quipu_core::Backend>;
    let engine = Engine::new(shared, Arc::new(SystemClock), Limits::default());
    let store = new_store(&engine, "tests");
    engine.create(&actor(), store, &path("/a"), &content("kept")).unwrap();
    // Others may still hold on to the engine, as threads of a server do.
    backend.close().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let database = directory.path().join(DATABASE_FILE);
    fs::copy(database, elsewhere.path().join(DATABASE_FILE)).unwrap();
    let copy = crate::support::engine(elsewhere.path());
    assert!(copy.memory_at(store, &path("/a"), View::Full).is_ok());
    let error = engine.memory_at(store, &path("/a"), View::Full).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::StorageUnavailable);
}

/// The log of the old database was replayed over the backup.
#[test]
fn a_backup_takes_the_place_of_a_damaged_database() {
    let fixture = fixture();
    fixture.put("/a", "backed up");
    let backups = tempfile::tempdir().unwrap();
    let backup = backups.path().join("backup.db");
    open(fixture.directory.path()).unwrap().backup(&backup).unwrap();
    for number in 0..50 {
        fixture.put("/a", &format!("later {number}"));
    }
    let directory = tempfile::tempdir().unwrap();
    // As a killed process leaves it: a database that is damaged, and its log.
    for name in [DATABASE_FILE, "quipu.db-wal"] {
        fs::copy(fixture.directory.path().join(name), directory.path().join(name)).unwrap();
    }
    let database = directory.path().join(DATABASE_FILE);
    fs::write(&database, b"rubbish".repeat(1000)).unwrap();
    assert_eq!(*refusal(directory.path()).kind(), ErrorKind::StorageUnusable);
    let restored = restore_backup(&backup, directory.path()).unwrap();
    let engine = engine(directory.path());
    let memory = engine.memory_at(fixture.store, &path("/a"), View::Full).unwrap();
    assert_eq!(memory.content.unwrap().as_str(), "backed up");
    assert_eq!(engine.check().unwrap().problems, []);
    assert!(restored.old_files.unwrap().join(DATABASE_FILE).exists());
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let fixture = fixture();
    let backups = tempfile::tempdir().unwrap();
    let backup = backups.path().join("backup.db");
    fs::write(&backup, b"rubbish".repeat(1000)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert!(restore_backup(&backup, directory.path()).is_err());
    assert!(restore_backup(&backups.path().join("missing.db"), directory.path()).is_err());
    assert!(!directory.path().join(DATABASE_FILE).exists());
    fixture.put("/a", "still works");
}

/// An old program must not write into what a newer one has made of the database.
#[test]
fn a_migration_by_another_program_ends_writing() {
    let fixture = fixture();
    fixture.put("/a", "text");
    let newer = Connection::open(fixture.directory.path().join(DATABASE_FILE)).unwrap();
    let known: i64 = newer.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let target = (&path("/a"), &content("of the past"));
    let none = quipu_core::engine::Precondition::None;
    let error = fixture.engine.put(&actor(), fixture.store, target, none).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::StorageUnusable, "{error:?}");
    assert!(error.message().contains("99"), "{error}");
    newer.pragma_update(None, "user_version", known).unwrap();
    fixture.engine.put(&actor(), fixture.store, target, none).unwrap();
}

#[test]
fn a_text_that_does_not_fit_its_hash_is_not_served() {
    let fixture = fixture();
    let id = fixture.put("/a", "what somebody wrote").memory.id;
    let raw = Connection::open(fixture.directory.path().join(DATABASE_FILE)).unwrap();
    raw.execute("UPDATE texts SET content = 'what nobody wrote'", []).unwrap();
    let engine = engine(fixture.directory.path());
    let refused = [
        engine.memory(fixture.store, id, View::Full).map(drop),
        engine.memory_at(fixture.store, &path("/a"), View::Full).map(drop),
        engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")).map(drop),
        engine
            .edit(&actor(), fixture.store, &path("/a"), |_, text| {
                Ok::<_, Error>(text.to_owned() + "!")
            })
            .map(drop),
    ];
    for result in refused {
        assert_eq!(*result.unwrap_err().kind(), ErrorKind::StorageUnusable);
    }
    assert!(engine.memory(fixture.store, id, View::Basic).is_ok());
    assert!(!engine.check().unwrap().problems.is_empty());
}
