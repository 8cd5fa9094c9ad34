//! Writing, closing, removing.

use std::sync::Arc;

use quipu_core::model::Access;
use quipu_core::settings::Limits;
use quipu_mount::{ProcessId, TreeError};
use quipu_testkit::InMemoryBackend;

use crate::support::{APPEND, EMPTY, EMPTY_APPEND, ME, READ, WRITE, fixture, fixture_over};

#[test]
fn one_close_is_one_version() {
    let fixture = fixture();
    fixture.write("/a", b"one").unwrap();
    fixture.write("/a", b"two").unwrap();
    fixture.write("/a", b"two").unwrap();
    assert_eq!(fixture.history(), ["created /a", "modified /a"]);
    assert_eq!(fixture.memories_count(), 1);
    assert_eq!(fixture.text("/a").as_deref(), Some("two"));
}

#[test]
fn the_first_close_of_a_truncated_file_stores_nothing() {
    let fixture = fixture();
    fixture.write("/a", b"old").unwrap();
    let handle = fixture.open("/a", EMPTY).unwrap();
    fixture.tree.flush(handle, ME).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("old"));
    fixture.tree.write(handle, 0, b"new", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.history(), ["created /a", "modified /a"]);
}

#[test]
fn a_truncated_file_is_stored_by_the_second_close_or_the_release() {
    let fixture = fixture();
    let handle = fixture.open("/twice", EMPTY).unwrap();
    fixture.tree.flush(handle, ME).unwrap();
    assert_eq!(fixture.stored("/twice"), None);
    fixture.tree.flush(handle, ME).unwrap();
    assert_eq!(fixture.stored("/twice").as_deref(), Some(""));
    fixture.tree.release(handle);
    let handle = fixture.open("/once", EMPTY).unwrap();
    fixture.close(handle).unwrap();
    let handle = fixture.open("/synced", EMPTY).unwrap();
    fixture.tree.sync(handle).unwrap();
    assert_eq!(fixture.history(), ["created /twice", "created /once", "created /synced"]);
    fixture.tree.release(handle);
}

#[test]
fn the_close_of_an_inherited_descriptor_stores_nothing() {
    let fixture = fixture();
    let handle = fixture.open("/a", EMPTY).unwrap();
    let writer = ProcessId(std::process::id());
    fixture.tree.write(handle, 0, b"half", writer).unwrap();
    // The process that opened it has the number 1, and runs too.
    fixture.tree.flush(handle, ProcessId(u32::MAX)).unwrap();
    fixture.tree.flush(handle, writer).unwrap();
    assert_eq!(fixture.history(), ["created /a"]);
    fixture.tree.release(handle);
}

#[test]
fn readers_see_what_is_written_and_store_nothing() {
    let fixture = fixture();
    let writer = fixture.open("/a", EMPTY).unwrap();
    fixture.tree.write(writer, 0, b"half", ME).unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("half"));
    let reader = fixture.open("/a", READ).unwrap();
    fixture.close(reader).unwrap();
    assert!(fixture.history().is_empty());
    fixture.close(writer).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("half"));
}

#[test]
fn appends_ignore_their_offset() {
    let fixture = fixture();
    fixture.write("/a", b"one\n").unwrap();
    let handle = fixture.open("/a", APPEND).unwrap();
    fixture.tree.write(handle, 0, b"two\n", ME).unwrap();
    fixture.tree.write(handle, 1, b"three\n", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn a_file_truncated_for_appending_is_written_at_its_end() {
    let fixture = fixture();
    fixture.write("/a", b"old\n").unwrap();
    let handle = fixture.open("/a", EMPTY_APPEND).unwrap();
    fixture.tree.write(handle, 0, b"one\n", ME).unwrap();
    fixture.tree.write(handle, 0, b"two\n", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_refused_text_is_dropped_with_the_last_handle() {
    let fixture = fixture();
    fixture.write("/a", b"old").unwrap();
    for bytes in [&b"cut \xc3"[..], b"\xe8\x8c"] {
        let handle = fixture.open("/a", EMPTY).unwrap();
        fixture.tree.write(handle, 0, bytes, ME).unwrap();
        assert_eq!(fixture.tree.flush(handle, ME), Err(TreeError::NotText));
        assert_eq!(fixture.read("/a").unwrap(), bytes);
        fixture.tree.release(handle);
        assert_eq!(fixture.text("/a").as_deref(), Some("old"));
    }
    assert_eq!(fixture.write("/new", b"\xc3"), Err(TreeError::NotText));
    assert_eq!(fixture.lookup("/new"), Err(TreeError::NotFound));
    assert_eq!(fixture.history(), ["created /a"]);
}

#[test]
fn a_character_split_by_a_close_can_be_completed() {
    let fixture = fixture();
    let handle = fixture.open("/a", EMPTY).unwrap();
    fixture.tree.write(handle, 0, b"caf\xc3", ME).unwrap();
    assert_eq!(fixture.tree.flush(handle, ME), Err(TreeError::NotText));
    fixture.tree.write(handle, 4, b"\xa9", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("café"));
}

#[test]
fn a_text_that_does_not_fit_is_not_stored_in_part() {
    let limits = Limits { content_size_bytes_max: 10, ..Limits::default() };
    let fixture = fixture_over(Arc::new(InMemoryBackend::default()), Access::ReadWrite, limits);
    fixture.write("/a", b"0123456789").unwrap();
    let handle = fixture.open("/a", EMPTY).unwrap();
    fixture.tree.write(handle, 0, b"12345", ME).unwrap();
    assert_eq!(fixture.tree.write(handle, 5, b"678901", ME), Err(TreeError::TooLarge));
    assert_eq!(fixture.close(handle), Err(TreeError::TooLarge));
    assert_eq!(fixture.text("/a").as_deref(), Some("0123456789"));
    assert_eq!(
        fixture.tree.truncate((fixture.lookup("/a").unwrap().ino, None), 11, ME),
        Err(TreeError::TooLarge)
    );
    assert_eq!(fixture.history(), ["created /a"]);
}

#[test]
fn full_stores_refuse_new_files_at_once() {
    let limits = Limits { memories_per_store_max: 1, ..Limits::default() };
    let fixture = fixture_over(Arc::new(InMemoryBackend::default()), Access::ReadWrite, limits);
    fixture.write("/a", b"1").unwrap();
    assert_eq!(fixture.open("/b", EMPTY), Err(TreeError::StoreFull));
    fixture.write("/b.tmp", b"scratch files are no memories").unwrap();
    assert_eq!(fixture.rename("/b.tmp", "/b"), Err(TreeError::StoreFull));
    assert_eq!(fixture.text("/b.tmp").as_deref(), Some("scratch files are no memories"));
}

#[test]
fn truncation_without_a_writer_is_durable_at_once() {
    let fixture = fixture();
    fixture.write("/a", b"green tea").unwrap();
    let ino = fixture.lookup("/a").unwrap().ino;
    fixture.tree.truncate((ino, None), 5, ME).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("green"));
    assert_eq!(fixture.tree.truncate((ino, None), 7, ME), Err(TreeError::NotText));
    assert_eq!(fixture.text("/a").as_deref(), Some("green"));
    assert_eq!(fixture.history(), ["created /a", "modified /a"]);
}

#[test]
fn a_removed_file_stays_readable_and_is_never_stored() {
    let fixture = fixture();
    fixture.write("/a", b"text").unwrap();
    let ino = fixture.lookup("/a").unwrap().ino;
    let handle = fixture.open("/a", WRITE).unwrap();
    fixture.remove("/a").unwrap();
    assert_eq!(fixture.tree.read(ino, 0, 10).unwrap(), b"text");
    fixture.tree.write(handle, 4, b" more", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.history(), ["created /a", "deleted /a"]);
    assert_eq!(fixture.tree.open(ino, READ, ME).unwrap_err(), TreeError::Stale);
}

#[test]
fn empty_directories_stay_until_they_are_removed() {
    let fixture = fixture();
    fixture.make_directory("/d").unwrap();
    fixture.make_directory("/d/e").unwrap();
    assert_eq!(fixture.make_directory("/d"), Err(TreeError::Exists));
    fixture.write("/d/e/a", b"1").unwrap();
    assert_eq!(fixture.remove_directory("/d/e"), Err(TreeError::NotEmpty));
    fixture.remove("/d/e/a").unwrap();
    assert_eq!(fixture.list("/d"), ["e"]);
    assert_eq!(fixture.remove_directory("/d"), Err(TreeError::NotEmpty));
    fixture.remove_directory("/d/e").unwrap();
    fixture.remove_directory("/d").unwrap();
    assert!(fixture.list("/").is_empty());
}

#[test]
fn invalid_names_are_refused_on_creation() {
    let fixture = fixture();
    let make = |name: &str| fixture.open(name, EMPTY).unwrap_err();
    assert_eq!(make("/a\nb"), TreeError::Invalid);
    assert_eq!(make(&"x".repeat(1100)), TreeError::NameTooLong);
    let deep = "/d".repeat(19);
    fixture.put(&format!("{deep}/a"), "1");
    fixture.make_directory(&format!("{deep}/e")).unwrap();
    assert_eq!(make(&format!("{deep}/e/f")), TreeError::Invalid);
    assert_eq!(fixture.make_directory("/a\nb"), Err(TreeError::Invalid));
}

#[test]
fn a_read_only_tree_refuses_everything() {
    let backend = Arc::new(InMemoryBackend::default());
    let fixture = fixture_over(backend, Access::ReadOnly, Limits::default());
    fixture.put("/a", "text");
    let ino = fixture.lookup("/a").unwrap().ino;
    let refused = Err(TreeError::ReadOnly);
    assert_eq!(fixture.open("/a", WRITE), refused);
    assert_eq!(fixture.open("/b", EMPTY), refused);
    assert_eq!(fixture.remove("/a").unwrap_err(), TreeError::ReadOnly);
    assert_eq!(fixture.rename("/a", "/b").unwrap_err(), TreeError::ReadOnly);
    assert_eq!(fixture.make_directory("/d").unwrap_err(), TreeError::ReadOnly);
    assert_eq!(fixture.tree.truncate((ino, None), 0, ME).unwrap_err(), TreeError::ReadOnly);
    assert_eq!(fixture.tree.accept_attributes(ino).unwrap_err(), TreeError::ReadOnly);
    assert_eq!(fixture.tree.make_file(1, "x".as_ref()).unwrap_err(), TreeError::ReadOnly);
    assert_eq!(fixture.text("/a").as_deref(), Some("text"));
    assert_eq!(fixture.history(), ["created /a"]);
}

#[test]
fn nodes_are_dropped_when_the_kernel_forgets_them() {
    let fixture = fixture();
    fixture.put("/d/a", "1");
    let (directory, file) =
        (fixture.lookup("/d").unwrap().ino, fixture.lookup("/d/a").unwrap().ino);
    fixture.tree.forget(file, 1);
    fixture.tree.forget(directory, 2);
    assert_eq!(fixture.tree.attributes(file).unwrap_err(), TreeError::Stale);
    assert_eq!(fixture.tree.attributes(directory).unwrap_err(), TreeError::Stale);
    assert_eq!(fixture.text("/d/a").as_deref(), Some("1"));
}
