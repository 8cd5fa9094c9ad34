//! What the tree remembers between calls is never older than what other doors have done.

use quipu_core::engine::StoreUpdate;
use quipu_core::model::{Access, SecretPolicy, StorePolicy};
use quipu_core::settings::Limits;
use quipu_mount::{Invalidation, Making, NewFile, Overwrite, ROOT, TreeError};
use quipu_testkit::InMemoryBackend;

use crate::support::{EMPTY, ME, READ, fixture, fixture_over};

/// A file that must not exist yet, as `O_EXCL` asks for it.
const EXCLUSIVE: NewFile =
    NewFile { mode: EMPTY, making: Making::Openly, is_exclusive: true, creator: ME };

#[test]
fn a_name_that_was_absent_can_be_taken_by_another_door() {
    let fixture = fixture();
    fixture.make_directory("/d").unwrap();
    for name in ["/tea", "/d/tea"] {
        assert_eq!(fixture.lookup(name).unwrap_err(), TreeError::NotFound);
        assert_eq!(fixture.lookup(name).unwrap_err(), TreeError::NotFound);
        fixture.put(name, "green");
        let parent = if name == "/tea" { ROOT } else { fixture.lookup("/d").unwrap().ino };
        let created = fixture.tree.create(parent, "tea".as_ref(), EXCLUSIVE);
        assert_eq!(created.unwrap_err(), TreeError::Exists);
        assert_eq!(fixture.text(name).as_deref(), Some("green"));
    }
}

#[test]
fn a_directory_brings_its_files_to_names_that_were_absent() {
    let fixture = fixture();
    fixture.write("/tea", b"green").unwrap();
    assert_eq!(fixture.lookup("/d").unwrap_err(), TreeError::NotFound);
    fixture.make_directory("/c").unwrap();
    fixture.rename("/tea", "/c/tea").unwrap();
    assert_eq!(fixture.lookup("/c/cha").unwrap_err(), TreeError::NotFound);
    fixture.rename("/c", "/d").unwrap();
    fixture.rename("/d/tea", "/d/cha").unwrap();
    assert_eq!(fixture.text("/d/cha").as_deref(), Some("green"));
    assert_eq!(fixture.lookup("/c").unwrap_err(), TreeError::NotFound);
}

#[test]
fn a_policy_applies_to_the_next_file() {
    let fixture = fixture();
    fixture.write("/a", b"before").unwrap();
    let policy = StorePolicy { secrets: SecretPolicy::Reject, ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    let handle = fixture.open("/b", EMPTY).unwrap();
    let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6");
    assert_eq!(fixture.tree.write(handle, 0, token.as_bytes(), ME), Err(TreeError::Refused));
    fixture.tree.release(handle);
    fixture.engine.archive_store(fixture.store).unwrap();
    assert_eq!(fixture.open("/c", EMPTY), Err(TreeError::ReadOnly));
}

#[test]
fn limits_hold_to_the_last_memory_and_byte() {
    let limits =
        Limits { memories_per_store_max: 3, store_size_bytes_max: 10, ..Limits::default() };
    let fixture =
        fixture_over(std::sync::Arc::new(InMemoryBackend::default()), Access::ReadWrite, limits);
    fixture.write("/a", b"1234").unwrap();
    fixture.put("/b", "1234");
    let handle = fixture.open("/c", EMPTY).unwrap();
    assert_eq!(fixture.tree.write(handle, 0, b"123", ME), Err(TreeError::StoreFull));
    fixture.tree.release(handle);
    fixture.write("/c", b"12").unwrap();
    assert_eq!(fixture.open("/d", EMPTY), Err(TreeError::StoreFull));
    fixture.delete("/b");
    fixture.write("/d", b"1234").unwrap();
}

#[test]
fn a_close_invalidates_attributes_only_if_they_were_shown_since_the_last_write() {
    let fixture = fixture();
    let handle = fixture.open("/a", EMPTY).unwrap();
    fixture.tree.write(handle, 0, b"green", ME).unwrap();
    fixture.invalidations();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.invalidations(), [], "the write made the kernel drop them");

    let ino = fixture.lookup("/a").unwrap().ino;
    let handle = fixture.tree.open(ino, EMPTY, ME).unwrap().handle;
    fixture.tree.write(handle, 0, b"black", ME).unwrap();
    let shown = fixture.tree.attributes(ino).unwrap();
    fixture.clock.advance(std::time::Duration::from_secs(1));
    fixture.close(handle).unwrap();
    assert!(fixture.invalidations().contains(&Invalidation::Attributes(ino)));
    assert!(fixture.tree.attributes(ino).unwrap().changed_at > shown.changed_at);
}

#[test]
fn an_open_that_meets_a_replaced_file_gets_the_present_one() {
    let fixture = fixture();
    fixture.write("/tea", b"green").unwrap();
    let old = fixture.lookup("/tea").unwrap().ino;
    for text in ["black", "white tea", "red"] {
        fixture.write("/new.tmp", text.as_bytes()).unwrap();
        let (from, to) = ((ROOT, "new.tmp".as_ref()), (ROOT, "tea".as_ref()));
        fixture.tree.rename(from, to, Overwrite::Yes, ME).unwrap();
        let opened = fixture.tree.open(old, READ, ME).unwrap();
        assert!(opened.is_apart, "the kernel must not cache it as the text of the old inode");
        let read = fixture.tree.read_open(opened.handle, 0, 100).unwrap();
        assert_eq!(read, text.as_bytes());
        let size_bytes = fixture.tree.attributes(old).unwrap().size_bytes;
        assert_eq!(size_bytes, text.len() as u64);
        fixture.tree.release(opened.handle);
    }
    let opened = fixture.tree.open(old, EMPTY, ME).unwrap();
    fixture.tree.write(opened.handle, 0, b"mint", ME).unwrap();
    fixture.close(opened.handle).unwrap();
    assert_eq!(fixture.stored("/tea").as_deref(), Some("mint"));

    fixture.put("/tea", "of another door");
    fixture.delete("/tea");
    assert_eq!(fixture.tree.open(old, READ, ME).unwrap_err(), TreeError::Stale);
    fixture.put("/tea", "again");
    let opened = fixture.tree.open(old, READ, ME).unwrap();
    assert_eq!(fixture.tree.read_open(opened.handle, 0, 100).unwrap(), b"again");
}
