//! Writing, closing, removing.

use std::sync::Arc;

use quipu_core::model::Access;
use quipu_core::settings::Limits;
use quipu_mount::{Maker, TreeError};
use quipu_testkit::InMemoryBackend;

use crate::support::{APPEND, EMPTY, EMPTY_APPEND, ME, READ, WRITE, bench, bench_over};

#[test]
fn one_close_is_one_version() {
    let bench = bench();
    bench.write("/a", b"one").unwrap();
    bench.write("/a", b"two").unwrap();
    bench.write("/a", b"two").unwrap();
    assert_eq!(bench.history(), ["created /a", "modified /a"]);
    assert_eq!(bench.memories_count(), 1);
    assert_eq!(bench.text("/a").as_deref(), Some("two"));
}

#[test]
fn the_first_close_of_an_emptied_file_stores_nothing() {
    let bench = bench();
    bench.write("/a", b"old").unwrap();
    let handle = bench.open("/a", EMPTY).unwrap();
    bench.tree.flush(handle, ME).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("old"));
    bench.tree.write(handle, 0, b"new", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.history(), ["created /a", "modified /a"]);
}

#[test]
fn an_emptied_file_is_stored_by_the_second_close_or_the_release() {
    let bench = bench();
    let handle = bench.open("/twice", EMPTY).unwrap();
    bench.tree.flush(handle, ME).unwrap();
    assert_eq!(bench.stored("/twice"), None);
    bench.tree.flush(handle, ME).unwrap();
    assert_eq!(bench.stored("/twice").as_deref(), Some(""));
    bench.tree.release(handle);
    let handle = bench.open("/once", EMPTY).unwrap();
    bench.close(handle).unwrap();
    let handle = bench.open("/synced", EMPTY).unwrap();
    bench.tree.sync(handle).unwrap();
    assert_eq!(bench.history(), ["created /twice", "created /once", "created /synced"]);
    bench.tree.release(handle);
}

#[test]
fn a_close_by_somebody_who_did_not_write_stores_nothing() {
    let bench = bench();
    let handle = bench.open("/a", EMPTY).unwrap();
    let writer = Maker(std::process::id());
    bench.tree.write(handle, 0, b"half", writer).unwrap();
    // The process that opened it has the number 1, and runs too.
    bench.tree.flush(handle, Maker(u32::MAX)).unwrap();
    bench.tree.flush(handle, writer).unwrap();
    assert_eq!(bench.history(), ["created /a"]);
    bench.tree.release(handle);
}

#[test]
fn readers_see_what_is_written_and_store_nothing() {
    let bench = bench();
    let writer = bench.open("/a", EMPTY).unwrap();
    bench.tree.write(writer, 0, b"half", ME).unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("half"));
    let reader = bench.open("/a", READ).unwrap();
    bench.close(reader).unwrap();
    assert!(bench.history().is_empty());
    bench.close(writer).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("half"));
}

#[test]
fn appends_go_to_the_end_whatever_place_they_name() {
    let bench = bench();
    bench.write("/a", b"one\n").unwrap();
    let handle = bench.open("/a", APPEND).unwrap();
    bench.tree.write(handle, 0, b"two\n", ME).unwrap();
    bench.tree.write(handle, 1, b"three\n", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn a_file_that_is_emptied_for_appending_is_written_at_its_end() {
    let bench = bench();
    bench.write("/a", b"old\n").unwrap();
    let handle = bench.open("/a", EMPTY_APPEND).unwrap();
    bench.tree.write(handle, 0, b"one\n", ME).unwrap();
    bench.tree.write(handle, 0, b"two\n", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_text_that_cannot_be_stored_is_given_up_with_the_last_handle() {
    let bench = bench();
    bench.write("/a", b"old").unwrap();
    for bytes in [&b"cut \xc3"[..], b"\xe8\x8c"] {
        let handle = bench.open("/a", EMPTY).unwrap();
        bench.tree.write(handle, 0, bytes, ME).unwrap();
        assert_eq!(bench.tree.flush(handle, ME), Err(TreeError::NotText));
        assert_eq!(bench.read("/a").unwrap(), bytes);
        bench.tree.release(handle);
        assert_eq!(bench.text("/a").as_deref(), Some("old"));
    }
    assert_eq!(bench.write("/new", b"\xc3"), Err(TreeError::NotText));
    assert_eq!(bench.lookup("/new"), Err(TreeError::NotFound));
    assert_eq!(bench.history(), ["created /a"]);
}

#[test]
fn a_character_that_is_cut_by_a_close_can_be_completed() {
    let bench = bench();
    let handle = bench.open("/a", EMPTY).unwrap();
    bench.tree.write(handle, 0, b"caf\xc3", ME).unwrap();
    assert_eq!(bench.tree.flush(handle, ME), Err(TreeError::NotText));
    bench.tree.write(handle, 4, b"\xa9", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("café"));
}

#[test]
fn what_did_not_fit_is_not_stored_in_part() {
    let limits = Limits { content_size_bytes_max: 10, ..Limits::default() };
    let bench = bench_over(Arc::new(InMemoryBackend::default()), Access::ReadWrite, limits);
    bench.write("/a", b"0123456789").unwrap();
    let handle = bench.open("/a", EMPTY).unwrap();
    bench.tree.write(handle, 0, b"12345", ME).unwrap();
    assert_eq!(bench.tree.write(handle, 5, b"678901", ME), Err(TreeError::TooLarge));
    assert_eq!(bench.close(handle), Err(TreeError::TooLarge));
    assert_eq!(bench.text("/a").as_deref(), Some("0123456789"));
    assert_eq!(
        bench.tree.truncate((bench.lookup("/a").unwrap().ino, None), 11, ME),
        Err(TreeError::TooLarge)
    );
    assert_eq!(bench.history(), ["created /a"]);
}

#[test]
fn full_stores_refuse_new_files_at_once() {
    let limits = Limits { memories_per_store_max: 1, ..Limits::default() };
    let bench = bench_over(Arc::new(InMemoryBackend::default()), Access::ReadWrite, limits);
    bench.write("/a", b"1").unwrap();
    assert_eq!(bench.open("/b", EMPTY), Err(TreeError::StoreFull));
    bench.write("/b.tmp", b"scratch files are no memories").unwrap();
    assert_eq!(bench.rename("/b.tmp", "/b"), Err(TreeError::StoreFull));
    assert_eq!(bench.text("/b.tmp").as_deref(), Some("scratch files are no memories"));
}

#[test]
fn truncation_without_a_writer_is_durable_at_once() {
    let bench = bench();
    bench.write("/a", b"green tea").unwrap();
    let ino = bench.lookup("/a").unwrap().ino;
    bench.tree.truncate((ino, None), 5, ME).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("green"));
    assert_eq!(bench.tree.truncate((ino, None), 7, ME), Err(TreeError::NotText));
    assert_eq!(bench.text("/a").as_deref(), Some("green"));
    assert_eq!(bench.history(), ["created /a", "modified /a"]);
}

#[test]
fn a_removed_file_stays_readable_and_is_never_stored() {
    let bench = bench();
    bench.write("/a", b"text").unwrap();
    let ino = bench.lookup("/a").unwrap().ino;
    let handle = bench.open("/a", WRITE).unwrap();
    bench.remove("/a").unwrap();
    assert_eq!(bench.tree.read(ino, 0, 10).unwrap(), b"text");
    bench.tree.write(handle, 4, b" more", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.history(), ["created /a", "deleted /a"]);
    assert_eq!(bench.tree.open(ino, READ, ME).unwrap_err(), TreeError::Stale);
}

#[test]
fn directories_live_until_they_are_removed() {
    let bench = bench();
    bench.make_directory("/d").unwrap();
    bench.make_directory("/d/e").unwrap();
    assert_eq!(bench.make_directory("/d"), Err(TreeError::Exists));
    bench.write("/d/e/a", b"1").unwrap();
    assert_eq!(bench.remove_directory("/d/e"), Err(TreeError::NotEmpty));
    bench.remove("/d/e/a").unwrap();
    assert_eq!(bench.list("/d"), ["e"]);
    assert_eq!(bench.remove_directory("/d"), Err(TreeError::NotEmpty));
    bench.remove_directory("/d/e").unwrap();
    bench.remove_directory("/d").unwrap();
    assert!(bench.list("/").is_empty());
}

#[test]
fn names_that_break_the_rules_are_refused_when_something_is_made() {
    let bench = bench();
    let make = |name: &str| bench.open(name, EMPTY).unwrap_err();
    assert_eq!(make("/a\nb"), TreeError::Invalid);
    assert_eq!(make(&"x".repeat(1100)), TreeError::NameTooLong);
    let deep = "/d".repeat(19);
    bench.put(&format!("{deep}/a"), "1");
    bench.make_directory(&format!("{deep}/e")).unwrap();
    assert_eq!(make(&format!("{deep}/e/f")), TreeError::Invalid);
    assert_eq!(bench.make_directory("/a\nb"), Err(TreeError::Invalid));
}

#[test]
fn a_read_only_tree_refuses_everything() {
    let backend = Arc::new(InMemoryBackend::default());
    let bench = bench_over(backend, Access::ReadOnly, Limits::default());
    bench.put("/a", "text");
    let ino = bench.lookup("/a").unwrap().ino;
    let refused = Err(TreeError::ReadOnly);
    assert_eq!(bench.open("/a", WRITE), refused);
    assert_eq!(bench.open("/b", EMPTY), refused);
    assert_eq!(bench.remove("/a").unwrap_err(), TreeError::ReadOnly);
    assert_eq!(bench.rename("/a", "/b").unwrap_err(), TreeError::ReadOnly);
    assert_eq!(bench.make_directory("/d").unwrap_err(), TreeError::ReadOnly);
    assert_eq!(bench.tree.truncate((ino, None), 0, ME).unwrap_err(), TreeError::ReadOnly);
    assert_eq!(bench.tree.accept_attributes(ino).unwrap_err(), TreeError::ReadOnly);
    assert_eq!(bench.tree.make_file(1, "x".as_ref()).unwrap_err(), TreeError::ReadOnly);
    assert_eq!(bench.text("/a").as_deref(), Some("text"));
    assert_eq!(bench.history(), ["created /a"]);
}

#[test]
fn nodes_are_forgotten_with_the_kernel() {
    let bench = bench();
    bench.put("/d/a", "1");
    let (directory, file) = (bench.lookup("/d").unwrap().ino, bench.lookup("/d/a").unwrap().ino);
    bench.tree.forget(file, 1);
    bench.tree.forget(directory, 2);
    assert_eq!(bench.tree.attributes(file).unwrap_err(), TreeError::Stale);
    assert_eq!(bench.tree.attributes(directory).unwrap_err(), TreeError::Stale);
    assert_eq!(bench.text("/d/a").as_deref(), Some("1"));
}
