//! A full disk of the database.

use std::io::Write as _;
use std::process::Command;

use quipu_core::ErrorKind;
use quipu_core::model::View;
use quipu_postgres::PostgresSettings;

use crate::cluster::{cluster, is_root, owned_by_server};
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
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0.path()).status().map(drop).unwrap_or_default();
    }
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    if !is_root() {
        let skipped = "## SKIPPED: a full disk was not tested: mounting a small one needs root\n";
        std::io::stderr().write_all(skipped.as_bytes()).unwrap_or_default();
        return;
    }
    let disk = SmallDisk::mount("24m");
    let place = disk.0.path().display();
    cluster().sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{place}'"));
    cluster().sql("postgres", "CREATE DATABASE filled TEMPLATE quipu_template TABLESPACE small");
    let server = Server::open(&PostgresSettings::new(cluster().url("filled")));
    let store = server.new_store("tests");
    // Texts that do not compress.
    let text = |number: u64| -> String {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + u8::try_from(state % 90).expect("it is small"))
        };
        (0..90_000).map(|_| next()).collect()
    };
    let mut written = 0;
    let refused = loop {
        match server.put(store, &format!("/{written}"), &text(written)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000, "the disk never filled up");
    };
    assert_eq!(*refused.kind(), ErrorKind::StorageFull, "{refused:?}");
    for number in 0..written {
        let memory = server.engine.memory_at(store, &path(&format!("/{number}")), View::Full);
        assert_eq!(
            memory.expect("it is there").content.expect("it is full").as_str(),
            text(number)
        );
    }
    assert_eq!(server.engine.usage(store).expect("it is read").memories_count, written);
    drop(server);
    cluster().sql("postgres", "DROP DATABASE filled WITH (FORCE)");
    cluster().sql("postgres", "DROP TABLESPACE small");
}
