//! Files that are removed or replaced while they are in use.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use quipu_core::engine::{NewKey, Precondition};
use quipu_core::model::{Forwarding, Name, Role, View};
use quipu_core::{Error, ErrorKind};

use crate::support::{Fixture, actor, content, engine, fixture, path};

/// Reads look at the names of the files every 100 ms.
const NOTICED_WITHIN: Duration = Duration::from_millis(250);

fn write(fixture: &Fixture) -> Result<(), Error> {
    let target = (&path("/a"), &content("would be lost"));
    fixture.engine.put(&actor(), fixture.store, target, Precondition::None).map(drop)
}

fn read(fixture: &Fixture) -> Result<(), Error> {
    fixture.engine.memory_at(fixture.store, &path("/a"), View::Full).map(drop)
}

/// Does something to the files of an open data directory, and checks that everything fails loudly.
fn assert_noticed(meddle: impl Fn(&Path)) {
    let fixture = fixture();
    fixture.put("/a", "text");
    read(&fixture).expect("it is there");
    meddle(fixture.directory.path());
    let refused = |result: Result<(), Error>| {
        let error = result.expect_err("it is noticed");
        assert_eq!(*error.kind(), ErrorKind::StorageUnavailable, "{error:?}");
    };
    refused(write(&fixture));
    thread::sleep(NOTICED_WITHIN);
    refused(read(&fixture));
    refused(fixture.engine.condition().map(drop));
}

fn remove(directory: &Path, name: &str) {
    fs::remove_file(directory.join(name)).expect("it is there");
}

#[test]
fn a_removed_lock_file_is_noticed() {
    assert_noticed(|directory| remove(directory, "quipu.lock"));
}

#[test]
fn a_removed_database_is_noticed() {
    assert_noticed(|directory| remove(directory, "quipu.db"));
}

#[test]
fn a_removed_log_is_noticed() {
    assert_noticed(|directory| remove(directory, "quipu.db-wal"));
}

#[test]
fn a_moved_database_is_noticed() {
    assert_noticed(|directory| {
        fs::rename(directory.join("quipu.db"), directory.join("moved.db")).unwrap();
    });
}

#[test]
fn a_backup_that_is_moved_over_the_database_is_noticed() {
    assert_noticed(|directory| {
        fs::copy(directory.join("quipu.db"), directory.join("copy.db")).unwrap();
        fs::rename(directory.join("copy.db"), directory.join("quipu.db")).unwrap();
    });
}

/// A lock file that is removed is made again by the next process, which nobody else hears of.
#[test]
fn a_revoked_key_does_not_outlive_the_lock_file() {
    let fixture = fixture();
    let workspace = fixture.engine.default_workspace().unwrap().id;
    let (name, role) = (Name::new("test").unwrap(), Role::Admin);
    let new = NewKey {
        name,
        role,
        stores: None,
        expires_at: None,
        secret: None,
        forwarding: Forwarding::Denied,
    };
    let (key, secret) = fixture.engine.create_key(workspace, &new).unwrap();
    for _ in 0..2 {
        assert!(fixture.engine.principal(secret.reveal()).unwrap().is_some());
    }
    remove(fixture.directory.path(), "quipu.lock");
    engine(fixture.directory.path()).revoke_key(key.id).unwrap();
    thread::sleep(NOTICED_WITHIN);
    assert!(fixture.engine.principal(secret.reveal()).is_err());
}
