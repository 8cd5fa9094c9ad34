//! How editors save, and moving.

use std::time::Duration;

use quipu_mount::{Making, TreeError};

use crate::support::{Bench, EMPTY, ME, bench};

/// Returns a bench with the memory `/a`, stored by another door.
fn with_memory() -> Bench {
    let bench = bench();
    bench.put("/a", "old");
    bench
}

#[track_caller]
fn assert_continued(bench: &Bench, text: &str) {
    assert_eq!(bench.history(), ["created /a", "modified /a"]);
    assert_eq!(bench.memories_count(), 1);
    assert_eq!(bench.stored("/a").as_deref(), Some(text));
    assert_eq!(bench.text("/a").as_deref(), Some(text));
}

#[test]
fn a_scratch_file_renamed_over_a_memory_continues_it() {
    for (name, making) in [
        ("/a.tmp", Making::Openly),
        ("/sedA1b2C3", Making::Privately),
        ("/.a.X7yZq1", Making::Privately),
        ("/tmpab12cd34", Making::Privately),
    ] {
        let bench = with_memory();
        bench.write_as(name, b"new", making).unwrap();
        bench.rename(name, "/a").unwrap();
        assert_continued(&bench, "new");
        assert_eq!(bench.list("/"), ["a"]);
    }
}

#[test]
fn a_memory_moved_to_a_scratch_name_is_continued_by_the_next_file() {
    let bench = with_memory();
    bench.rename("/a", "/a~").unwrap();
    assert_eq!(bench.list("/"), ["a~"]);
    assert_eq!(bench.lookup("/a"), Err(TreeError::NotFound));
    assert_eq!(bench.stored("/a").as_deref(), Some("old"));
    bench.write("/a", b"new").unwrap();
    assert_continued(&bench, "new");
    assert_eq!(bench.text("/a~").as_deref(), Some("old"));
    bench.remove("/a~").unwrap();
    assert_continued(&bench, "new");
}

#[test]
fn a_backup_is_stored_when_the_memory_is_continued() {
    let bench = with_memory();
    bench.write_as("/sedA1b2C3", b"new", Making::Privately).unwrap();
    bench.rename("/a", "/a.bak").unwrap();
    bench.rename("/sedA1b2C3", "/a").unwrap();
    assert_eq!(bench.history(), ["created /a", "modified /a", "created /a.bak"]);
    assert_eq!(bench.stored("/a.bak").as_deref(), Some("old"));
}

#[test]
fn a_memory_that_comes_back_to_its_place_was_never_away() {
    let bench = with_memory();
    bench.rename("/a", "/a~").unwrap();
    bench.rename("/a~", "/a").unwrap();
    assert_eq!(bench.history(), ["created /a"]);
    bench.rename("/a", "/a~").unwrap();
    let handle = bench.open("/a", EMPTY).unwrap();
    bench.tree.write(handle, 0, b"half", ME).unwrap();
    bench.rename("/a~", "/a").unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.history(), ["created /a"]);
    assert_eq!(bench.text("/a").as_deref(), Some("old"));
}

#[test]
fn after_a_while_a_move_to_a_scratch_name_is_a_deletion() {
    let bench = with_memory();
    bench.put("/d/b", "in a directory");
    bench.rename("/a", "/a~").unwrap();
    bench.rename("/d/b", "/d/b~").unwrap();
    assert!(bench.tree.settle_due().is_some());
    bench.clock.advance(Duration::from_secs(3));
    assert_eq!(bench.tree.settle_due(), None);
    assert_eq!(bench.history()[2..], ["deleted /a", "deleted /d/b"]);
    assert_eq!(bench.text("/a~").as_deref(), Some("old"));
    assert_eq!(bench.list("/d"), ["b~"]);
    bench.remove("/d/b~").unwrap();
    bench.remove_directory("/d").unwrap();
}

#[test]
fn after_a_while_a_move_to_a_backup_name_is_a_move() {
    let bench = with_memory();
    bench.rename("/a", "/a.bak").unwrap();
    bench.clock.advance(Duration::from_secs(3));
    bench.tree.settle_due();
    assert_eq!(bench.history(), ["created /a", "modified /a.bak"]);
    assert_eq!(bench.memories_count(), 1);
    bench.rename("/a.bak", "/b.old").unwrap();
    assert_eq!(bench.history()[2], "modified /b.old");
}

#[test]
fn a_parked_memory_can_be_moved_on_or_removed() {
    let bench = with_memory();
    bench.rename("/a", "/a~").unwrap();
    bench.rename("/a~", "/b").unwrap();
    assert_eq!(bench.history(), ["created /a", "modified /b"]);
    bench.rename("/b", "/b.bak").unwrap();
    bench.rename("/b.bak", "/b~").unwrap();
    assert_eq!(bench.list("/"), ["b~"]);
    bench.remove("/b~").unwrap();
    assert_eq!(bench.history(), ["created /a", "modified /b", "deleted /b"]);
    assert_eq!(bench.tree.settle_due(), None);
}

#[test]
fn what_is_written_to_a_parked_file_is_kept() {
    let bench = with_memory();
    let handle = bench.open("/a", crate::support::WRITE).unwrap();
    bench.rename("/a", "/a.bak").unwrap();
    bench.tree.write(handle, 0, b"new", ME).unwrap();
    bench.rename("/a.bak", "/a").unwrap();
    bench.close(handle).unwrap();
    assert_continued(&bench, "new");

    let handle = bench.open("/a", crate::support::WRITE).unwrap();
    bench.rename("/a", "/a.bak").unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.text("/a.bak").as_deref(), Some("new"));
    bench.write("/a.bak", b"newer").unwrap();
    assert_eq!(bench.history()[2..], ["modified /a.bak", "modified /a.bak"]);
}

#[test]
fn closing_the_tree_settles_what_is_parked() {
    let bench = with_memory();
    bench.rename("/a", "/a.bak").unwrap();
    let handle = bench.open("/open", EMPTY).unwrap();
    bench.tree.write(handle, 0, b"unfinished", ME).unwrap();
    bench.tree.close();
    assert_eq!(bench.stored("/a.bak").as_deref(), Some("old"));
    assert_eq!(bench.stored("/open").as_deref(), Some("unfinished"));
}

#[test]
fn a_directory_with_parked_memories_can_be_moved_and_removed() {
    let bench = bench();
    bench.put("/d/a", "old");
    bench.rename("/d/a", "/d/a~").unwrap();
    bench.rename("/d", "/e").unwrap();
    assert_eq!(bench.history(), ["created /d/a", "deleted /d/a"]);
    assert_eq!(bench.text("/e/a~").as_deref(), Some("old"));
    bench.put("/e/b", "old");
    bench.rename("/e/b", "/b~").unwrap();
    bench.remove("/e/a~").unwrap();
    bench.remove_directory("/e").unwrap();
    assert_eq!(bench.stored("/e/b"), None);
}

#[test]
fn a_new_file_hands_its_text_over_and_an_old_one_its_identity() {
    let bench = with_memory();
    bench.write("/b", b"new").unwrap();
    bench.rename("/b", "/a").unwrap();
    assert_eq!(bench.history(), ["created /a", "created /b", "deleted /b", "modified /a"]);
    assert_eq!(bench.versions()[0].memory, bench.versions()[3].memory);

    bench.write("/c", b"newer").unwrap();
    bench.clock.advance(Duration::from_mins(1));
    bench.rename("/c", "/a").unwrap();
    assert_eq!(bench.history()[4..], ["created /c", "deleted /a", "modified /a"]);
    assert_eq!(bench.versions()[4].memory, bench.versions()[6].memory);
    assert_eq!(bench.text("/a").as_deref(), Some("newer"));
}

#[test]
fn a_scratch_file_that_is_no_text_cannot_take_a_place() {
    let bench = with_memory();
    bench.write("/a.tmp", b"\xff").unwrap();
    assert_eq!(bench.rename("/a.tmp", "/a"), Err(TreeError::NotText));
    assert_eq!(bench.text("/a").as_deref(), Some("old"));
    bench.write("/a.tmp", &vec![b'x'; 200_000]).unwrap();
    assert_eq!(bench.rename("/a.tmp", "/a"), Err(TreeError::TooLarge));
    assert_eq!(bench.text("/a").as_deref(), Some("old"));
    assert_eq!(bench.read("/a.tmp").unwrap().len(), 200_000);
}

#[test]
fn directories_move_with_all_they_hold() {
    let bench = bench();
    bench.put("/d/a", "1");
    bench.make_directory("/d/empty").unwrap();
    bench.write("/d/x.tmp", b"scratch").unwrap();
    bench.rename("/d", "/e").unwrap();
    assert_eq!(bench.list("/e"), ["a", "empty", "x.tmp"]);
    assert_eq!(bench.text("/e/a").as_deref(), Some("1"));
    assert_eq!(bench.text("/e/x.tmp").as_deref(), Some("scratch"));
    assert_eq!(bench.list("/"), ["e"]);
    assert_eq!(bench.rename("/e", "/e/f"), Err(TreeError::Invalid));
}
