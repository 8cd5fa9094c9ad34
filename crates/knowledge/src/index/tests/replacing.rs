use std::fs;
use std::path::Path;

use quipu_core::ErrorKind;

use super::super::error::IndexError;
use super::super::file::{INDEX_FILE, with_suffix};
use super::super::replacing::{Identity, opening, replacing};

fn write(path: &Path, suffix: &str) {
    fs::write(with_suffix(path, suffix), "x").unwrap();
}

/// Removes a file and makes another of the same name, with another inode.
fn replace(path: &Path, suffix: &str) {
    let name = with_suffix(path, suffix);
    let other = with_suffix(path, "-other");
    fs::write(&other, "x").unwrap();
    fs::rename(other, name).unwrap();
}

#[test]
fn there_is_no_identity_without_a_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(INDEX_FILE);
    assert_eq!(Identity::of(&path), None);
    write(&path, "-wal");
    assert_eq!(Identity::of(&path), None, "a log alone is no index");
    write(&path, "");
    assert!(Identity::of(&path).is_some());
}

#[test]
fn writing_a_file_does_not_make_it_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(INDEX_FILE);
    for suffix in ["", "-wal", "-shm"] {
        write(&path, suffix);
    }
    let before = Identity::of(&path).unwrap();
    fs::write(&path, "more than before").unwrap();
    assert_eq!(Identity::of(&path), Some(before));
    assert!(!before.is_torn_from(Identity::of(&path)));
}

/// Another database is no damage; the same one with another log is.
#[test]
fn a_replaced_log_tears_a_database_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(INDEX_FILE);
    for suffix in ["", "-wal", "-shm"] {
        write(&path, suffix);
    }
    let before = Identity::of(&path).unwrap();
    for suffix in ["-wal", "-shm"] {
        replace(&path, suffix);
        let now = Identity::of(&path).unwrap();
        assert!(before.is_same_file(now) && before != now, "{suffix}");
        assert!(before.is_torn_from(Some(now)), "{suffix}");
    }
    fs::remove_file(with_suffix(&path, "-wal")).unwrap();
    assert!(before.is_torn_from(Identity::of(&path)), "a missing log is another one");
    replace(&path, "");
    let now = Identity::of(&path).unwrap();
    assert!(!before.is_same_file(now));
    assert!(!before.is_torn_from(Some(now)));
    fs::remove_file(&path).unwrap();
    assert!(!before.is_torn_from(Identity::of(&path)));
}

#[test]
fn many_may_open_and_one_may_replace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(INDEX_FILE);
    let (first, second) = (opening(&path).unwrap(), opening(&path).unwrap());
    drop((first, second));
    let sole = replacing(&path).unwrap();
    drop(sole);
    drop(opening(&path).unwrap());
}

/// Both waits end, and say who was waited for.
#[test]
fn waiting_for_another_process_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(INDEX_FILE);
    let is_busy = |error: &IndexError| {
        matches!(error, IndexError::NotWritable(error)
            if *error.kind() == ErrorKind::StorageBusy && error.to_string().contains("another process"))
    };
    let held = opening(&path).unwrap();
    assert!(replacing(&path).err().is_some_and(|error| is_busy(&error)));
    drop(held);
    let held = replacing(&path).unwrap();
    assert!(opening(&path).err().is_some_and(|error| is_busy(&error)));
    drop(held);
    assert!(replacing(&path).is_ok());
}

/// Where no lock file can be created there is nobody to coordinate with, and searching must work.
#[test]
fn a_directory_that_does_not_exist_needs_no_lock() {
    let path = Path::new("/nonexistent/quipu/index.db");
    assert!(opening(path).is_ok());
    assert!(replacing(path).is_ok());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = super::Fixture::new();
    for entry in fs::read_dir(fixture.directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", entry.path().display());
    }
}
