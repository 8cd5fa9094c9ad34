use std::fs;
use std::path::PathBuf;
use std::thread;

use rusqlite::Connection;

use super::super::error::IndexError;
use super::super::file::{FORMAT, INDEX_FILE, IndexFile, with_suffix};
use super::super::store_rows;
use super::{Fixture, Text, store_id};

fn path(fixture: &Fixture) -> PathBuf {
    fixture.directory.path().join(INDEX_FILE)
}

/// Returns whether a file has the store of a fixture.
fn has_store(file: &IndexFile, fixture: &Fixture) -> Result<bool, IndexError> {
    file.read(|it| Ok(store_rows::store(it.connection, fixture.store)?.is_some()))
}

fn change(fixture: &Fixture, sql: &str) {
    Connection::open(path(fixture)).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn nothing_is_created_before_the_first_use() {
    let directory = tempfile::tempdir().unwrap();
    let file = IndexFile::new(directory.path());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    assert_eq!(file.size_bytes(), 0);
    file.read(|_| Ok(())).unwrap();
    assert!(directory.path().join(INDEX_FILE).exists());
}

#[test]
fn what_one_handle_writes_another_reads() {
    let mut fixture = Fixture::new();
    let other = IndexFile::new(fixture.directory.path());
    assert!(has_store(&other, &fixture).unwrap());
    fixture.put(1, "tea");
    let row = other.read(|it| store_rows::store(it.connection, fixture.store)).unwrap();
    assert_eq!(row, Some(fixture.row()));
}

/// An error in a transaction undoes all of it.
#[test]
fn a_failed_write_changes_nothing() {
    let fixture = Fixture::new();
    let failed = fixture.file.write(|connection| {
        store_rows::add_store(connection, store_id(2), super::Sequence(1))?;
        Err::<(), _>(IndexError::Outdated)
    });
    assert!(matches!(failed, Err(IndexError::Outdated)));
    let found = fixture.file.read(|it| store_rows::store(it.connection, store_id(2))).unwrap();
    assert_eq!(found, None);
}

/// A read sees one state, whatever is written meanwhile.
#[test]
fn a_read_is_one_snapshot() {
    let mut fixture = Fixture::new();
    fixture.put(1, "tea");
    let other = IndexFile::new(fixture.directory.path());
    let read = other.read(|snapshot| {
        let before = store_rows::store(snapshot.connection, fixture.store)?;
        fixture.put(2, "tea");
        Ok((before, store_rows::store(snapshot.connection, fixture.store)?))
    });
    let (before, after) = read.unwrap();
    assert_eq!(before, after);
    assert_ne!(before, Some(fixture.row()));
}

/// Reads nest: a search resolves names while it reads.
#[test]
fn reads_can_nest_and_run_side_by_side() {
    let mut fixture = Fixture::new();
    fixture.put(1, "tea");
    let inner = fixture.file.read(|_| has_store(&fixture.file, &fixture)).unwrap();
    assert!(inner);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(has_store(&fixture.file, &fixture).unwrap());
                }
            });
        }
    });
}

/// A thread that opens the first connection creates the log. Another one that looked at the files before
/// must not conclude that somebody has unlinked a log, and throw the index away.
#[test]
fn threads_that_open_the_file_at_once_lose_nothing() {
    let fixture = Fixture::new();
    for round in 0..500 {
        fixture.file.close();
        let begin = std::sync::Barrier::new(24);
        thread::scope(|scope| {
            for _ in 0..24 {
                scope.spawn(|| {
                    begin.wait();
                    assert!(has_store(&fixture.file, &fixture).unwrap(), "round {round}");
                });
            }
        });
    }
}

#[test]
fn another_format_is_not_trusted() {
    for sql in [
        format!("PRAGMA user_version = {}", FORMAT + 1),
        format!("PRAGMA user_version = {}", FORMAT - 1),
        "PRAGMA user_version = 0".to_owned(),
        "PRAGMA application_id = 7".to_owned(),
    ] {
        let fixture = Fixture::new();
        change(&fixture, &sql);
        // A handle that has it open goes on; a new one starts with an empty index.
        let other = IndexFile::new(fixture.directory.path());
        assert!(!has_store(&other, &fixture).unwrap(), "{sql}");
        other.write(|it| store_rows::add_store(it, fixture.store, super::Sequence(1))).unwrap();
        assert!(has_store(&fixture.file, &fixture).unwrap());
    }
}

/// Whatever else a file of another program has is gone, and nothing of it is in the way.
#[test]
fn foreign_tables_are_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join(INDEX_FILE);
    let foreign =
        "CREATE TABLE stores (x); CREATE TABLE \"odd name\" (y); CREATE INDEX i ON stores (x);
        INSERT INTO stores VALUES ('secret');";
    Connection::open(&name).unwrap().execute_batch(foreign).unwrap();
    let file = IndexFile::new(directory.path());
    file.write(|it| store_rows::add_store(it, store_id(1), super::Sequence(1))).unwrap();
    let tables = file.read(|it| {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('odd name', 'i')";
        Ok(it.connection.query_row(sql, [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(tables.unwrap(), 0);
}

#[test]
fn a_damaged_file_is_removed_once_it_is_noticed() {
    let fixture = Fixture::new();
    let damaged = fixture.file.read(|_| Err::<(), _>(IndexError::Damaged));
    assert!(matches!(damaged, Err(IndexError::Damaged)));
    assert!(!has_store(&fixture.file, &fixture).unwrap(), "it was replaced by an empty one");
    // Another handle notices that its file has lost its name.
    let other = IndexFile::new(fixture.directory.path());
    assert!(!has_store(&other, &fixture).unwrap());
}

/// Two handles notice the same damage one after the other: the second must not remove the file that
/// the first has made.
#[test]
fn the_replacement_of_a_damaged_file_is_not_removed() {
    let fixture = Fixture::new();
    let late = IndexFile::new(fixture.directory.path());
    let noticed = late.read(|_| {
        fixture.file.read(|_| Err::<(), _>(IndexError::Damaged)).unwrap_err();
        let add = |it: &Connection| store_rows::add_store(it, store_id(5), super::Sequence(1));
        fixture.file.write(add)?;
        Err::<(), _>(IndexError::Damaged)
    });
    assert!(matches!(noticed, Err(IndexError::Damaged)));
    let kept = late.read(|it| store_rows::store(it.connection, store_id(5))).unwrap();
    assert!(kept.is_some());
}

#[test]
fn a_file_that_was_replaced_under_a_handle_is_noticed() {
    let fixture = Fixture::new();
    let empty = tempfile::tempdir().unwrap();
    IndexFile::new(empty.path()).read(|_| Ok(())).unwrap();
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(with_suffix(&path(&fixture), suffix)).unwrap_or_default();
    }
    fs::rename(empty.path().join(INDEX_FILE), path(&fixture)).unwrap();
    assert!(!has_store(&fixture.file, &fixture).unwrap());
}

#[test]
fn discarding_leaves_an_empty_index_and_can_be_repeated() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.file.discard().unwrap();
        assert_eq!(fixture.file.size_bytes(), 0);
        assert!(!has_store(&fixture.file, &fixture).unwrap());
        fixture.add(fixture.store);
    }
    fixture.file.close();
    assert!(has_store(&fixture.file, &fixture).unwrap(), "closing loses nothing");
}

/// A directory in the place of the file can neither be read nor removed.
#[test]
fn a_place_that_cannot_be_written_is_an_empty_index() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join(INDEX_FILE)).unwrap();
    let file = IndexFile::new(directory.path());
    assert_eq!(file.read(|it| store_rows::store(it.connection, store_id(1))).unwrap(), None);
    let written = file.write(|it| store_rows::add_store(it, store_id(1), super::Sequence(1)));
    assert!(matches!(written, Err(IndexError::NotWritable(_))), "{written:?}");
    assert!(file.discard().is_err());
    // It is tried again every time.
    fs::remove_dir(directory.path().join(INDEX_FILE)).unwrap();
    file.write(|it| store_rows::add_store(it, store_id(1), super::Sequence(1))).unwrap();
}

/// Another process holds the write lock and does not finish.
#[test]
fn a_locked_file_is_read_but_not_written() {
    let mut fixture = Fixture::new();
    fixture.put(1, "tea");
    let holder = Connection::open(path(&fixture)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let written = fixture.file.write(|it| store_rows::remove_store(it, 1));
    assert!(matches!(written, Err(IndexError::NotWritable(_))));
    fixture.assert_holds_its_model();
    holder.execute_batch("ROLLBACK").unwrap();
    fixture.put(2, "tea");
    fixture.assert_holds_its_model();
}

/// A path with signs that mean something in a URI, for the last resort of a read-only connection.
#[test]
fn a_directory_may_have_any_name() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["with space", "100%", "what?", "#1", "日本", "a&b=c"] {
        let place = directory.path().join(name);
        fs::create_dir(&place).unwrap();
        let file = IndexFile::new(&place);
        file.write(|it| store_rows::add_store(it, store_id(1), super::Sequence(1))).unwrap();
        let again = IndexFile::new(&place);
        let found = again.read(|it| store_rows::store(it.connection, store_id(1))).unwrap();
        assert!(found.is_some(), "{name}");
    }
}

/// A process that closes the index can give up its directory.
#[test]
fn a_closed_handle_has_no_file_open() {
    let mut fixture = Fixture::new();
    fixture.apply(&[(1, Text::of("tea"))], &[]);
    let barrier = std::sync::Barrier::new(12);
    thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let read = fixture.file.read(|_| {
                    barrier.wait();
                    Ok(())
                });
                read.unwrap();
            });
        }
    });
    fixture.file.close();
    let is_it = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(fixture.directory.path()))
    };
    let open = fs::read_dir("/proc/self/fd");
    let open = open.map(|all| all.filter_map(Result::ok).filter(is_it).count());
    // Elsewhere there is no such directory to count in.
    assert!(open.is_err() || open.is_ok_and(|count| count == 0));
}
