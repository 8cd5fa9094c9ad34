//! How editors save, and moving.

use std::time::Duration;

use quipu_mount::{Making, TreeError};

use crate::support::{EMPTY, Fixture, ME, fixture};

/// Returns a fixture with the memory `/a`, stored by another door.
fn with_memory() -> Fixture {
    let fixture = fixture();
    fixture.put("/a", "old");
    fixture
}

#[track_caller]
fn assert_continued(fixture: &Fixture, text: &str) {
    assert_eq!(fixture.history(), ["created /a", "modified /a"]);
    assert_eq!(fixture.memories_count(), 1);
    assert_eq!(fixture.stored("/a").as_deref(), Some(text));
    assert_eq!(fixture.text("/a").as_deref(), Some(text));
}

#[test]
fn a_scratch_file_renamed_over_a_memory_continues_it() {
    for (name, making) in [
        ("/a.tmp", Making::Openly),
        ("/sedA1b2C3", Making::Privately),
        ("/.a.X7yZq1", Making::Privately),
        ("/tmpab12cd34", Making::Privately),
    ] {
        let fixture = with_memory();
        fixture.write_as(name, b"new", making).unwrap();
        fixture.rename(name, "/a").unwrap();
        assert_continued(&fixture, "new");
        assert_eq!(fixture.list("/"), ["a"]);
    }
}

#[test]
fn a_memory_moved_to_a_scratch_name_is_continued_by_the_next_file() {
    let fixture = with_memory();
    fixture.rename("/a", "/a~").unwrap();
    assert_eq!(fixture.list("/"), ["a~"]);
    assert_eq!(fixture.lookup("/a"), Err(TreeError::NotFound));
    assert_eq!(fixture.stored("/a").as_deref(), Some("old"));
    fixture.write("/a", b"new").unwrap();
    assert_continued(&fixture, "new");
    assert_eq!(fixture.text("/a~").as_deref(), Some("old"));
    fixture.remove("/a~").unwrap();
    assert_continued(&fixture, "new");
}

#[test]
fn a_backup_is_stored_when_the_memory_is_continued() {
    let fixture = with_memory();
    fixture.write_as("/sedA1b2C3", b"new", Making::Privately).unwrap();
    fixture.rename("/a", "/a.bak").unwrap();
    fixture.rename("/sedA1b2C3", "/a").unwrap();
    assert_eq!(fixture.history(), ["created /a", "modified /a", "created /a.bak"]);
    assert_eq!(fixture.stored("/a.bak").as_deref(), Some("old"));
}

#[test]
fn moving_a_parked_memory_back_changes_nothing() {
    let fixture = with_memory();
    fixture.rename("/a", "/a~").unwrap();
    fixture.rename("/a~", "/a").unwrap();
    assert_eq!(fixture.history(), ["created /a"]);
    fixture.rename("/a", "/a~").unwrap();
    let handle = fixture.open("/a", EMPTY).unwrap();
    fixture.tree.write(handle, 0, b"half", ME).unwrap();
    fixture.rename("/a~", "/a").unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.history(), ["created /a"]);
    assert_eq!(fixture.text("/a").as_deref(), Some("old"));
}

#[test]
fn a_move_to_a_scratch_name_settles_as_a_deletion() {
    let fixture = with_memory();
    fixture.put("/d/b", "in a directory");
    fixture.rename("/a", "/a~").unwrap();
    fixture.rename("/d/b", "/d/b~").unwrap();
    assert!(fixture.tree.settle_due().is_some());
    fixture.clock.advance(Duration::from_secs(3));
    assert_eq!(fixture.tree.settle_due(), None);
    assert_eq!(fixture.history()[2..], ["deleted /a", "deleted /d/b"]);
    assert_eq!(fixture.text("/a~").as_deref(), Some("old"));
    assert_eq!(fixture.list("/d"), ["b~"]);
    fixture.remove("/d/b~").unwrap();
    fixture.remove_directory("/d").unwrap();
}

#[test]
fn a_move_to_a_backup_name_settles_as_a_rename() {
    let fixture = with_memory();
    fixture.rename("/a", "/a.bak").unwrap();
    fixture.clock.advance(Duration::from_secs(3));
    fixture.tree.settle_due();
    assert_eq!(fixture.history(), ["created /a", "modified /a.bak"]);
    assert_eq!(fixture.memories_count(), 1);
    fixture.rename("/a.bak", "/b.old").unwrap();
    assert_eq!(fixture.history()[2], "modified /b.old");
}

#[test]
fn a_parked_memory_can_be_moved_on_or_removed() {
    let fixture = with_memory();
    fixture.rename("/a", "/a~").unwrap();
    fixture.rename("/a~", "/b").unwrap();
    assert_eq!(fixture.history(), ["created /a", "modified /b"]);
    fixture.rename("/b", "/b.bak").unwrap();
    fixture.rename("/b.bak", "/b~").unwrap();
    assert_eq!(fixture.list("/"), ["b~"]);
    fixture.remove("/b~").unwrap();
    assert_eq!(fixture.history(), ["created /a", "modified /b", "deleted /b"]);
    assert_eq!(fixture.tree.settle_due(), None);
}

#[test]
fn what_is_written_to_a_parked_file_is_kept() {
    let fixture = with_memory();
    let handle = fixture.open("/a", crate::support::WRITE).unwrap();
    fixture.rename("/a", "/a.bak").unwrap();
    fixture.tree.write(handle, 0, b"new", ME).unwrap();
    fixture.rename("/a.bak", "/a").unwrap();
    fixture.close(handle).unwrap();
    assert_continued(&fixture, "new");

    let handle = fixture.open("/a", crate::support::WRITE).unwrap();
    fixture.rename("/a", "/a.bak").unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.text("/a.bak").as_deref(), Some("new"));
    fixture.write("/a.bak", b"newer").unwrap();
    assert_eq!(fixture.history()[2..], ["modified /a.bak", "modified /a.bak"]);
}

#[test]
fn closing_the_tree_settles_parked_memories() {
    let fixture = with_memory();
    fixture.rename("/a", "/a.bak").unwrap();
    let handle = fixture.open("/open", EMPTY).unwrap();
    fixture.tree.write(handle, 0, b"unfinished", ME).unwrap();
    fixture.tree.close();
    assert_eq!(fixture.stored("/a.bak").as_deref(), Some("old"));
    assert_eq!(fixture.stored("/open").as_deref(), Some("unfinished"));
}

#[test]
fn a_directory_with_parked_memories_can_be_moved_and_removed() {
    let fixture = fixture();
    fixture.put("/d/a", "old");
    fixture.rename("/d/a", "/d/a~").unwrap();
    fixture.rename("/d", "/e").unwrap();
    assert_eq!(fixture.history(), ["created /d/a", "deleted /d/a"]);
    assert_eq!(fixture.text("/e/a~").as_deref(), Some("old"));
    fixture.put("/e/b", "old");
    fixture.rename("/e/b", "/b~").unwrap();
    fixture.remove("/e/a~").unwrap();
    fixture.remove_directory("/e").unwrap();
    assert_eq!(fixture.stored("/e/b"), None);
}

#[test]
fn a_new_file_passes_on_its_text_and_an_old_one_its_identity() {
    let fixture = with_memory();
    fixture.write("/b", b"new").unwrap();
    fixture.rename("/b", "/a").unwrap();
    assert_eq!(fixture.history(), ["created /a", "created /b", "deleted /b", "modified /a"]);
    assert_eq!(fixture.versions()[0].memory, fixture.versions()[3].memory);

    fixture.write("/c", b"newer").unwrap();
    fixture.clock.advance(Duration::from_mins(1));
    fixture.rename("/c", "/a").unwrap();
    assert_eq!(fixture.history()[4..], ["created /c", "deleted /a", "modified /a"]);
    assert_eq!(fixture.versions()[4].memory, fixture.versions()[6].memory);
    assert_eq!(fixture.text("/a").as_deref(), Some("newer"));
}

#[test]
fn a_binary_scratch_file_cannot_replace_a_memory() {
    let fixture = with_memory();
    fixture.write("/a.tmp", b"\xff").unwrap();
    assert_eq!(fixture.rename("/a.tmp", "/a"), Err(TreeError::NotText));
    assert_eq!(fixture.text("/a").as_deref(), Some("old"));
    fixture.write("/a.tmp", &vec![b'x'; 200_000]).unwrap();
    assert_eq!(fixture.rename("/a.tmp", "/a"), Err(TreeError::TooLarge));
    assert_eq!(fixture.text("/a").as_deref(), Some("old"));
    assert_eq!(fixture.read("/a.tmp").unwrap().len(), 200_000);
}

#[test]
fn directories_move_with_their_contents() {
    let fixture = fixture();
    fixture.put("/d/a", "1");
    fixture.make_directory("/d/empty").unwrap();
    fixture.write("/d/x.tmp", b"scratch").unwrap();
    fixture.rename("/d", "/e").unwrap();
    assert_eq!(fixture.list("/e"), ["a", "empty", "x.tmp"]);
    assert_eq!(fixture.text("/e/a").as_deref(), Some("1"));
    assert_eq!(fixture.text("/e/x.tmp").as_deref(), Some("scratch"));
    assert_eq!(fixture.list("/"), ["e"]);
    assert_eq!(fixture.rename("/e", "/e/f"), Err(TreeError::Invalid));
}

#[test]
fn the_directory_of_the_report_stays_where_it_is() {
    let fixture = fixture();
    fixture.write("/bad.md", b"ok\xc3").unwrap_err();
    assert!(fixture.list("/.quipu").contains(&"problems.md".to_owned()));
    assert_eq!(fixture.rename("/.quipu", "/other"), Err(TreeError::ReadOnly));
}
