//! A full disk of the database.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::ErrorKind;
use quipu_core::backend::Backend as _;
use quipu_core::model::View;
use quipu_postgres::PostgresSettings;

use crate::cluster::{Cluster, Options, is_root, owned_by_server};
use crate::support::{Server, path};

/// A small file system in memory.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(size: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(directory.path())
            .status();
        assert!(mounted.expect("mount runs").success());
        owned_by_server(directory.path());
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0.path()).status().map(drop).unwrap_or_default();
    }
}

/// Returns a text that does not compress.
fn text(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + u8::try_from(state % 90).expect("it is small"))
    };
    (0..90_000).map(|_| next()).collect()
}

/// Writes until that is refused; returns how many texts were written, and why the next one was not.
fn fill(server: &Server, store: quipu_core::model::StoreId) -> (u64, quipu_core::Error) {
    let refused = (0..10_000).find_map(|number| {
        let written = server.put(store, &format!("/{number}"), &text(number));
        written.err().map(|error| (number, error))
    });
    refused.expect("the disk fills up")
}

fn assert_there(server: &Server, store: quipu_core::model::StoreId, count: u64) {
    for number in 0..count {
        let memory = server.engine.memory_at(store, &path(&format!("/{number}")), View::Full);
        let content = memory.expect("it is there").content.expect("it is full");
        assert!(content.as_str() == text(number), "/{number} is another text");
    }
}

fn is_possible() -> bool {
    if !is_root() {
        let skipped = "## SKIPPED: a full disk was not tested: mounting a small one needs root\n";
        std::io::stderr().write_all(skipped.as_bytes()).unwrap_or_default();
    }
    is_root()
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    if !is_possible() {
        return;
    }
    let disk = SmallDisk::mount("24m");
    // Others would have to wait for its checkpoints, which fail.
    let cluster = Cluster::start(&Options::default());
    let place = disk.path().display();
    cluster.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{place}'"));
    cluster.sql("postgres", "CREATE DATABASE filled TABLESPACE small");
    let server = Server::open(&PostgresSettings::new(cluster.url("filled")));
    let store = server.new_store("tests");
    server.backend.condition().expect("there is room");
    let (written, refused) = fill(&server, store);
    assert_eq!(*refused.kind(), ErrorKind::StorageFull, "{refused:?}");
    let error = server.backend.condition().expect_err("it cannot be written");
    assert_eq!(*error.kind(), ErrorKind::StorageFull, "{error:?}");
    assert_there(&server, store, written);
    assert_eq!(server.engine.usage(store).expect("it is read").memories_count, written);
    Command::new("mount")
        .args(["-o", "remount,size=64m"])
        .arg(disk.path())
        .status()
        .expect("it runs");
    server.put(store, "/later", "text").expect("there is room again");
    server.backend.condition().expect("it can be written");
}

/// Where the log has no room, the server of the database stops, and starts again when it has.
#[test]
fn a_full_disk_of_the_log_loses_nothing() {
    if !is_possible() {
        return;
    }
    let disk = SmallDisk::mount("180m");
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; 40_000_000]).expect("there is room");
    let options = Options {
        place: Some(disk.path().to_owned()),
        settings: vec!["max_wal_size=2GB", "checkpoint_timeout=1h", "shared_buffers=128MB"],
        ..Options::default()
    };
    let cluster = Cluster::start(&options);
    cluster.sql("postgres", "CREATE DATABASE filled");
    let settings = PostgresSettings {
        lock_timeout: Duration::from_secs(1),
        statement_timeout: Duration::from_secs(2),
        ..PostgresSettings::new(cluster.url("filled"))
    };
    let server = Server::open(&settings);
    let store = server.new_store("tests");
    let (written, refused) = fill(&server, store);
    let expected = [ErrorKind::StorageFull, ErrorKind::StorageUnavailable];
    assert!(expected.contains(refused.kind()), "{refused:?}");
    server.backend.condition().expect_err("it cannot be written");
    fs::remove_file(&ballast).expect("it is there");
    let start = Instant::now();
    while server.put(store, "/later", "text").is_err() {
        assert!(start.elapsed() < Duration::from_mins(1), "there is room again");
        thread::yield_now();
    }
    assert_there(&server, store, written);
    server.backend.condition().expect("it can be written");
    drop(server);
    drop(cluster);
}
