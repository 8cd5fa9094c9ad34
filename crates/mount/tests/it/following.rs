//! Changes of other doors, and the invalidations for the kernel.

use std::time::Duration;

use quipu_mount::{Invalidation, ProcessId, ROOT, TreeError};

use crate::support::{APPEND, EMPTY, Fixture, ME, READ, WRITE, fixture, path};

/// Long enough for a change not to be recent.
const A_WHILE: Duration = Duration::from_secs(10);
/// A process that has opened nothing.
const OTHER: ProcessId = ProcessId(2);

fn entry(parent: u64, name: &str) -> Invalidation {
    Invalidation::Entry { parent, name: name.to_owned() }
}

/// Follows the feed, and returns the invalidations.
fn invalidations(fixture: &Fixture) -> Vec<Invalidation> {
    fixture.invalidations();
    fixture.follow();
    fixture.invalidations()
}

#[test]
fn own_changes_invalidate_nothing() {
    let fixture = fixture();
    fixture.write("/a", b"1").unwrap();
    fixture.make_directory("/d").unwrap();
    fixture.rename("/a", "/d/a").unwrap();
    fixture.rename("/d", "/e").unwrap();
    fixture.remove("/e/a").unwrap();
    assert_eq!(invalidations(&fixture), []);
}

#[test]
fn a_new_memory_invalidates_the_first_unknown_name() {
    let fixture = fixture();
    fixture.put("/a", "1");
    assert_eq!(invalidations(&fixture), [entry(ROOT, "a")]);
    fixture.put("/d/e/f", "1");
    assert_eq!(invalidations(&fixture), [entry(ROOT, "d")]);
    let d = fixture.lookup("/d").unwrap().ino;
    fixture.put("/d/g", "1");
    assert_eq!(invalidations(&fixture), [entry(d, "g")]);
}

#[test]
fn a_changed_text_is_invalidated_and_read_again() {
    let fixture = fixture();
    fixture.put("/a", "1");
    fixture.follow();
    fixture.clock.advance(A_WHILE);
    let ino = fixture.lookup("/a").unwrap().ino;
    let open = fixture.tree.open(ino, READ, ME).unwrap();
    assert_eq!(fixture.tree.read(ino, 0, 10).unwrap(), b"1");
    fixture.put("/a", "two");
    assert!(invalidations(&fixture).contains(&Invalidation::Content(ino)));
    assert_eq!(fixture.tree.read(ino, 0, 10).unwrap(), b"two");
    let again = fixture.tree.open(ino, READ, ME).unwrap();
    assert!(open.is_unchanged && !again.is_unchanged);
}

#[test]
fn a_deletion_invalidates_the_directories_that_vanish_with_it() {
    let fixture = fixture();
    fixture.put("/d/e/a", "1");
    fixture.follow();
    let (d, e) = (fixture.lookup("/d").unwrap().ino, fixture.lookup("/d/e").unwrap().ino);
    fixture.lookup("/d/e/a").unwrap();
    fixture.delete("/d/e/a");
    let invalidated = invalidations(&fixture);
    for invalidation in [entry(e, "a"), entry(d, "e"), entry(ROOT, "d")] {
        assert!(invalidated.contains(&invalidation), "{invalidated:?}");
    }
    assert_eq!(fixture.lookup("/d"), Err(TreeError::NotFound));
}

#[test]
fn a_moved_memory_is_invalidated_at_both_paths() {
    let fixture = fixture();
    fixture.put("/a", "1");
    fixture.follow();
    fixture.lookup("/a").unwrap();
    fixture.move_elsewhere("/a", "/b");
    let invalidated = invalidations(&fixture);
    assert!(
        invalidated.contains(&entry(ROOT, "a")) && invalidated.contains(&entry(ROOT, "b")),
        "{invalidated:?}"
    );
    assert_eq!((fixture.text("/a"), fixture.text("/b").as_deref()), (None, Some("1")));
}

#[test]
fn both_changes_of_an_open_file_are_kept() {
    let fixture = fixture();
    fixture.write("/a", b"1\n2\n3\n4\n5\n").unwrap();
    let handle = fixture.open("/a", WRITE).unwrap();
    fixture.tree.write(handle, 0, b"I", ME).unwrap();
    fixture.put("/a", "1\n2\n3\n4\nV\n");
    fixture.follow();
    fixture.invalidations();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("I\n2\n3\n4\nV\n"));
    assert_eq!(fixture.text("/a").as_deref(), Some("I\n2\n3\n4\nV\n"));
    let ino = fixture.lookup("/a").unwrap().ino;
    assert!(fixture.invalidations().contains(&Invalidation::Content(ino)));
    assert_eq!(fixture.history(), ["created /a", "modified /a", "modified /a"]);
}

#[test]
fn the_last_close_wins_a_conflict() {
    let fixture = fixture();
    fixture.write("/a", b"one\n").unwrap();
    let handle = fixture.open("/a", EMPTY).unwrap();
    fixture.tree.write(handle, 0, b"mine\n", ME).unwrap();
    fixture.put("/a", "theirs\n");
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("mine\n"));
    assert_eq!(fixture.history().len(), 3);
}

#[test]
fn appended_lines_follow_those_of_others() {
    let fixture = fixture();
    fixture.write("/a", b"one\n").unwrap();
    let handle = fixture.open("/a", APPEND).unwrap();
    fixture.tree.write(handle, 0, b"three\n", ME).unwrap();
    fixture.put("/a", "one\ntwo\n");
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("one\ntwo\nthree\n"));
}

/// Five lines, of which the first and the last may be others.
fn lines(first: &str, last: &str) -> String {
    format!("{first}\n2\n3\n4\n{last}\n")
}

#[test]
fn what_is_written_is_a_change_of_what_could_be_read() {
    for theirs in ["V", "a longer last line"] {
        let fixture = fixture();
        fixture.put("/a", &lines("1", "5"));
        let handle = fixture.open("/a", WRITE).unwrap();
        assert_eq!(fixture.tree.read_open(handle, 0, 100).unwrap(), lines("1", "5").as_bytes());
        fixture.put("/a", &lines("1", theirs));
        fixture.follow();
        fixture.tree.write(handle, 0, lines("I", "5").as_bytes(), ME).unwrap();
        fixture.close(handle).unwrap();
        assert_eq!(fixture.stored("/a"), Some(lines("I", theirs)));
        assert_eq!(fixture.text("/a"), Some(lines("I", theirs)));
    }
}

#[test]
fn whoever_reads_again_from_the_beginning_changes_the_new_text() {
    let fixture = fixture();
    fixture.write("/a", b"one").unwrap();
    let handle = fixture.open("/a", WRITE).unwrap();
    fixture.put("/a", "two and more");
    fixture.follow();
    // The rest of what was begun belongs to its beginning.
    assert_eq!(fixture.tree.read_open(handle, 1, 100).unwrap(), b"ne");
    assert_eq!(fixture.tree.read_open(handle, 0, 100).unwrap(), b"two and more");
    assert_eq!(fixture.tree.read_open(handle, 1, 100).unwrap(), b"wo and more");
    fixture.tree.write(handle, 12, b"!", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("two and more!"));
}

#[test]
fn readers_get_the_stored_text_while_a_writer_has_an_old_base() {
    let fixture = fixture();
    fixture.put("/a", "one");
    let writer = fixture.open("/a", WRITE).unwrap();
    fixture.put("/a", "two");
    let ino = fixture.lookup("/a").unwrap().ino;
    let reader = fixture.tree.open(ino, READ, ME).unwrap();
    assert!(reader.is_apart);
    assert_eq!(fixture.tree.read_open(reader.handle, 0, 100).unwrap(), b"two");
    fixture.tree.release(reader.handle);
    fixture.close(writer).unwrap();
    fixture.tree.dropped(ino, fixture.tree.outdated(ino));
    fixture.clock.advance(A_WHILE);
    assert!(!fixture.tree.open(ino, READ, ME).unwrap().is_apart);
}

#[test]
fn a_file_that_has_just_changed_is_read_apart_from_the_cache() {
    let fixture = fixture();
    fixture.put("/a", "1");
    fixture.follow();
    for _ in 0..2 {
        let ino = fixture.lookup("/a").unwrap().ino;
        let opened = fixture.tree.open(ino, READ, ME).unwrap();
        assert!(opened.is_apart);
        fixture.tree.release(opened.handle);
        // With the next lookup the name has another node.
        fixture.tree.forget(ino, 1);
    }
    fixture.clock.advance(A_WHILE);
    let ino = fixture.lookup("/a").unwrap().ino;
    assert!(!fixture.tree.open(ino, READ, ME).unwrap().is_apart);
    fixture.put("/a", "2");
    assert!(fixture.tree.open(ino, READ, ME).unwrap().is_apart);
}

#[test]
fn what_is_read_in_parts_is_one_text() {
    let fixture = fixture();
    fixture.put("/a", "green tea");
    let ino = fixture.lookup("/a").unwrap().ino;
    let handle = fixture.tree.open(ino, READ, ME).unwrap().handle;
    let read = |offset, size_bytes| {
        String::from_utf8(fixture.tree.read_open(handle, offset, size_bytes).unwrap()).unwrap()
    };
    assert_eq!(read(0, 6), "green ");
    fixture.put("/a", "black coffee, without sugar");
    fixture.follow();
    assert_eq!((read(6, 100), read(9, 100)), ("tea".into(), String::new()));
    // Whoever has seen the end and waits for more gets what was added.
    assert_eq!(read(9, 100), "fee, without sugar");
    assert_eq!(read(0, 5), "black");
}

#[test]
fn as_many_bytes_are_read_as_a_program_was_told() {
    let fixture = fixture();
    fixture.put("/a", "green");
    let ino = fixture.lookup("/a").unwrap().ino;
    let handle = fixture.tree.open(ino, READ, ME).unwrap().handle;
    assert_eq!(fixture.tree.attributes_for(ino, ME).unwrap().size_bytes, 5);
    fixture.put("/a", "black coffee");
    assert_eq!(fixture.tree.attributes_for(ino, OTHER).unwrap().size_bytes, 12);
    assert_eq!(fixture.tree.read_open(handle, 0, 5).unwrap(), b"green");
    assert_eq!(fixture.tree.attributes_for(ino, ME).unwrap().size_bytes, 12);
    assert_eq!(fixture.tree.read_open(handle, 0, 12).unwrap(), b"black coffee");
}

#[test]
fn a_second_write_of_an_open_file_is_a_change_of_the_first() {
    let fixture = fixture();
    fixture.put("/a", &lines("1", "5"));
    let handle = fixture.open("/a", WRITE).unwrap();
    fixture.put("/a", &lines("1", "a longer last line"));
    fixture.tree.write(handle, 0, lines("I", "5").as_bytes(), ME).unwrap();
    fixture.tree.sync(handle).unwrap();
    assert_eq!(fixture.stored("/a"), Some(lines("I", "a longer last line")));
    fixture.tree.write(handle, 2, b"Z", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/a").as_deref(), Some("I\nZ\n3\n4\na longer last line\n"));
}

#[test]
fn replacing_a_file_that_was_read_is_a_change_of_what_was_read() {
    type Save = fn(&Fixture, &str);
    let in_place: Save = |fixture, text| fixture.write("/a", text.as_bytes()).unwrap();
    let renaming: Save = |fixture, text| {
        fixture.write("/a.tmp", text.as_bytes()).unwrap();
        fixture.rename("/a.tmp", "/a").unwrap();
    };
    let ordinary: Save = |fixture, text| {
        fixture.write("/b", text.as_bytes()).unwrap();
        fixture.rename("/b", "/a").unwrap();
    };
    let backup: Save = |fixture, text| {
        fixture.rename("/a", "/a~").unwrap();
        fixture.write("/a", text.as_bytes()).unwrap();
    };
    for save in [in_place, renaming, ordinary, backup] {
        let fixture = fixture();
        let id = fixture.put("/a", &lines("1", "5")).id;
        assert_eq!(fixture.text("/a"), Some(lines("1", "5")));
        fixture.put("/a", &lines("1", "V"));
        save(&fixture, &lines("I", "5"));
        assert_eq!(fixture.stored("/a"), Some(lines("I", "V")));
        // The process that has written knows its own text, not the merged one, until it reads again.
        fixture.put("/a", &lines("I", "fünf"));
        save(&fixture, &lines("i", "5"));
        assert_eq!(fixture.stored("/a"), Some(lines("i", "fünf")));
        assert_eq!(fixture.versions().last().unwrap().memory, id);
    }
}

#[test]
fn what_was_read_while_others_were_writing_is_a_base_too() {
    let fixture = fixture();
    fixture.put("/a", &lines("1", "5"));
    let writer = fixture.open("/a", APPEND).unwrap();
    fixture.tree.write(writer, 0, b"6\n", OTHER).unwrap();
    assert_eq!(fixture.text("/a"), Some(lines("1", "5") + "6\n"));
    fixture.tree.write(writer, 0, b"7\n", OTHER).unwrap();
    fixture.tree.flush(writer, OTHER).unwrap();
    fixture.tree.release(writer);
    fixture.write("/a.tmp", (lines("I", "5") + "6\n").as_bytes()).unwrap();
    fixture.rename("/a.tmp", "/a").unwrap();
    assert_eq!(fixture.stored("/a"), Some(lines("I", "5") + "6\n7\n"));
}

#[test]
fn a_text_that_was_read_long_ago_is_no_base() {
    let fixture = fixture();
    fixture.put("/a", &lines("1", "5"));
    assert_eq!(fixture.text("/a"), Some(lines("1", "5")));
    fixture.put("/a", &lines("1", "V"));
    fixture.clock.advance(Duration::from_hours(2));
    fixture.write("/a", lines("I", "5").as_bytes()).unwrap();
    assert_eq!(fixture.stored("/a"), Some(lines("I", "5")));
}

#[test]
fn a_deleted_file_that_is_written_comes_back() {
    for is_followed in [true, false] {
        let fixture = fixture();
        fixture.write("/d/a", b"x").unwrap_err();
        fixture.make_directory("/d").unwrap();
        fixture.write("/d/a", b"one").unwrap();
        let handle = fixture.open("/d/a", EMPTY).unwrap();
        fixture.tree.write(handle, 0, b"two", ME).unwrap();
        fixture.delete("/d/a");
        if is_followed {
            fixture.follow();
        }
        fixture.close(handle).unwrap();
        assert_eq!(fixture.stored("/d/a").as_deref(), Some("two"));
        fixture.follow();
        assert_eq!(fixture.text("/d/a").as_deref(), Some("two"));
    }
}

#[test]
fn a_deleted_file_that_is_open_for_writing_is_there_until_it_is_closed() {
    let fixture = fixture();
    fixture.write("/a", b"one").unwrap();
    let handle = fixture.open("/a", WRITE).unwrap();
    fixture.delete("/a");
    fixture.follow();
    assert_eq!(fixture.text("/a").as_deref(), Some("one"));
    fixture.close(handle).unwrap();
    assert_eq!(fixture.text("/a"), None);

    fixture.write("/b", b"one").unwrap();
    let handle = fixture.open("/b", WRITE).unwrap();
    fixture.delete("/b");
    fixture.follow();
    fixture.tree.write(handle, 0, b"two", ME).unwrap();
    fixture.close(handle).unwrap();
    assert_eq!(fixture.stored("/b").as_deref(), Some("two"));
}

#[test]
fn a_moved_file_that_is_written_is_stored_where_it_is() {
    for is_followed in [true, false] {
        let fixture = fixture();
        fixture.write("/a", b"one").unwrap();
        let handle = fixture.open("/a", EMPTY).unwrap();
        fixture.tree.write(handle, 0, b"two", ME).unwrap();
        fixture.move_elsewhere("/a", "/b");
        if is_followed {
            fixture.follow();
        }
        fixture.close(handle).unwrap();
        fixture.follow();
        assert_eq!((fixture.text("/a"), fixture.text("/b").as_deref()), (None, Some("two")));
        assert_eq!(fixture.memories_count(), 1);
    }
}

#[test]
fn a_memory_replaces_a_directory_of_the_mount_only() {
    let fixture = fixture();
    fixture.make_directory("/d").unwrap();
    fixture.write("/d/x.tmp", b"scratch").unwrap();
    fixture.put("/d", "a memory");
    assert_eq!(invalidations(&fixture), [entry(ROOT, "d")]);
    assert_eq!(fixture.text("/d").as_deref(), Some("a memory"));
}

#[test]
fn an_archived_store_is_read_only_and_a_deleted_one_gone() {
    let fixture = fixture();
    fixture.write("/a", b"one").unwrap();
    let handle = fixture.open("/a", APPEND).unwrap();
    fixture.tree.write(handle, 0, b" more", ME).unwrap();
    fixture.engine.archive_store(fixture.store).unwrap();
    assert_eq!(fixture.remove("/a"), Err(TreeError::ReadOnly));
    assert_eq!(fixture.close(handle), Err(TreeError::ReadOnly));
    fixture.follow();
    assert_eq!(fixture.text("/a").as_deref(), Some("one"));
    fixture.engine.delete_store(fixture.store).unwrap();
    assert_eq!(fixture.lookup("/b"), Err(TreeError::Stale));
    fixture.follow();
    assert_eq!(fixture.lookup("/a"), Err(TreeError::Stale));
    assert!(fixture.engine.entry(fixture.store, &path("/a")).is_err());
}

#[test]
fn a_restored_store_is_what_it_was() {
    let fixture = fixture();
    fixture.put("/a", "one");
    let workspace = fixture.engine.default_workspace().unwrap().id;
    let restore = || {
        fixture.engine.delete_store(fixture.store).unwrap();
        assert_eq!(fixture.lookup("/a"), Err(TreeError::Stale));
        fixture.engine.restore_store(workspace, "tests", None).unwrap();
        assert_eq!(fixture.text("/a").as_deref(), Some("one"));
    };
    restore();
    fixture.write("/b", b"two").unwrap();
    fixture.engine.archive_store(fixture.store).unwrap();
    restore();
    assert_eq!(fixture.write("/b", b"three"), Err(TreeError::ReadOnly));
    assert_eq!(fixture.stored("/b").as_deref(), Some("two"));
}

#[test]
fn the_text_whose_size_was_asked_for_is_the_base_of_what_is_saved() {
    let fixture = fixture();
    let base = "1\n2\n3\n4\n5\n6\n7\n8\n";
    fixture.put("/a", base);
    let ino = fixture.lookup("/a").unwrap().ino;
    let reader = fixture.tree.open(ino, READ, ME).unwrap();
    assert!(reader.is_apart);
    assert_eq!(fixture.tree.attributes_for(ino, ME).unwrap().size_bytes, base.len() as u64);
    fixture.put("/a", &base.replace('7', "S"));
    fixture.follow();
    assert_eq!(fixture.tree.read_open(reader.handle, 0, 100).unwrap(), base.as_bytes());
    fixture.tree.release(reader.handle);
    fixture.write("/a.tmp", base.replace('2', "two").as_bytes()).unwrap();
    fixture.rename("/a.tmp", "/a").unwrap();
    let both = base.replace('2', "two").replace('7', "S");
    assert_eq!(fixture.stored("/a"), Some(both));
}

#[test]
fn a_file_that_is_emptied_after_its_open_merges_like_one_that_is_opened_empty() {
    let fixture = fixture();
    let base = "1\n2\n3\n4\n5\n6\n7\n8\n";
    fixture.put("/a", base);
    assert_eq!(fixture.read("/a").unwrap(), base.as_bytes());
    fixture.put("/a", &base.replace('7', "S"));
    fixture.follow();
    let ino = fixture.lookup("/a").unwrap().ino;
    let writer = fixture.open("/a", WRITE).unwrap();
    fixture.tree.truncate((ino, Some(writer)), 0, ME).unwrap();
    fixture.tree.write(writer, 0, base.replace('2', "T").as_bytes(), ME).unwrap();
    fixture.close(writer).unwrap();
    assert_eq!(fixture.stored("/a"), Some(base.replace('2', "T").replace('7', "S")));
}
