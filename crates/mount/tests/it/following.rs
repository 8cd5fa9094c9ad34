//! What other doors do, and what the kernel is told.

use quipu_mount::{Notice, ROOT, TreeError};

use crate::support::{APPEND, Bench, EMPTY, ME, WRITE, bench, path};

fn entry(parent: u64, name: &str) -> Notice {
    Notice::Entry { parent, name: name.to_owned() }
}

/// Follows, and returns what was told.
fn told(bench: &Bench) -> Vec<Notice> {
    bench.told();
    bench.follow();
    bench.told()
}

#[test]
fn own_changes_need_no_telling() {
    let bench = bench();
    bench.write("/a", b"1").unwrap();
    bench.make_directory("/d").unwrap();
    bench.rename("/a", "/d/a").unwrap();
    bench.rename("/d", "/e").unwrap();
    bench.remove("/e/a").unwrap();
    assert_eq!(told(&bench), []);
}

#[test]
fn a_new_memory_is_told_by_the_first_name_that_is_not_known() {
    let bench = bench();
    bench.put("/a", "1");
    assert_eq!(told(&bench), [entry(ROOT, "a")]);
    bench.put("/d/e/f", "1");
    assert_eq!(told(&bench), [entry(ROOT, "d")]);
    let d = bench.lookup("/d").unwrap().ino;
    bench.put("/d/g", "1");
    assert_eq!(told(&bench), [entry(d, "g")]);
}

#[test]
fn a_changed_text_is_told_and_read_anew() {
    let bench = bench();
    bench.put("/a", "1");
    bench.follow();
    let ino = bench.lookup("/a").unwrap().ino;
    let open = bench.tree.open(ino, crate::support::READ, ME).unwrap();
    assert_eq!(bench.tree.read(ino, 0, 10).unwrap(), b"1");
    bench.put("/a", "two");
    assert!(told(&bench).contains(&Notice::Content(ino)));
    assert_eq!(bench.tree.read(ino, 0, 10).unwrap(), b"two");
    let again = bench.tree.open(ino, crate::support::READ, ME).unwrap();
    assert!(open.is_unchanged && !again.is_unchanged);
}

#[test]
fn what_went_away_is_told_with_the_directories_that_went_with_it() {
    let bench = bench();
    bench.put("/d/e/a", "1");
    bench.follow();
    let (d, e) = (bench.lookup("/d").unwrap().ino, bench.lookup("/d/e").unwrap().ino);
    bench.lookup("/d/e/a").unwrap();
    bench.delete("/d/e/a");
    let told = told(&bench);
    for notice in [entry(e, "a"), entry(d, "e"), entry(ROOT, "d")] {
        assert!(told.contains(&notice), "{told:?}");
    }
    assert_eq!(bench.lookup("/d"), Err(TreeError::NotFound));
}

#[test]
fn a_moved_memory_is_told_at_both_places() {
    let bench = bench();
    bench.put("/a", "1");
    bench.follow();
    bench.lookup("/a").unwrap();
    bench.move_elsewhere("/a", "/b");
    let told = told(&bench);
    assert!(told.contains(&entry(ROOT, "a")) && told.contains(&entry(ROOT, "b")), "{told:?}");
    assert_eq!((bench.text("/a"), bench.text("/b").as_deref()), (None, Some("1")));
}

#[test]
fn both_changes_of_an_open_file_are_kept() {
    let bench = bench();
    bench.write("/a", b"1\n2\n3\n4\n5\n").unwrap();
    let handle = bench.open("/a", WRITE).unwrap();
    bench.tree.write(handle, 0, b"I", ME).unwrap();
    bench.put("/a", "1\n2\n3\n4\nV\n");
    bench.follow();
    bench.told();
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("I\n2\n3\n4\nV\n"));
    assert_eq!(bench.text("/a").as_deref(), Some("I\n2\n3\n4\nV\n"));
    let ino = bench.lookup("/a").unwrap().ino;
    assert!(bench.told().contains(&Notice::Content(ino)));
    assert_eq!(bench.history(), ["created /a", "modified /a", "modified /a"]);
}

#[test]
fn of_contradicting_changes_the_last_close_wins() {
    let bench = bench();
    bench.write("/a", b"one\n").unwrap();
    let handle = bench.open("/a", EMPTY).unwrap();
    bench.tree.write(handle, 0, b"mine\n", ME).unwrap();
    bench.put("/a", "theirs\n");
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("mine\n"));
    assert_eq!(bench.history().len(), 3);
}

#[test]
fn appended_lines_follow_those_of_others() {
    let bench = bench();
    bench.write("/a", b"one\n").unwrap();
    let handle = bench.open("/a", APPEND).unwrap();
    bench.tree.write(handle, 0, b"three\n", ME).unwrap();
    bench.put("/a", "one\ntwo\n");
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("one\ntwo\nthree\n"));
}

/// Five lines, of which the first and the last may be others.
fn lines(first: &str, last: &str) -> String {
    format!("{first}\n2\n3\n4\n{last}\n")
}

#[test]
fn what_is_written_is_a_change_of_what_could_be_read() {
    for theirs in ["V", "a longer last line"] {
        let bench = bench();
        bench.put("/a", &lines("1", "5"));
        let handle = bench.open("/a", WRITE).unwrap();
        assert_eq!(bench.tree.read_open(handle, 0, 100).unwrap(), lines("1", "5").as_bytes());
        bench.put("/a", &lines("1", theirs));
        bench.follow();
        bench.tree.write(handle, 0, lines("I", "5").as_bytes(), ME).unwrap();
        bench.close(handle).unwrap();
        assert_eq!(bench.stored("/a"), Some(lines("I", theirs)));
        assert_eq!(bench.text("/a"), Some(lines("I", theirs)));
    }
}

#[test]
fn whoever_reads_again_from_the_beginning_changes_the_new_text() {
    let bench = bench();
    bench.write("/a", b"one").unwrap();
    let handle = bench.open("/a", WRITE).unwrap();
    bench.put("/a", "two and more");
    bench.follow();
    // The rest of what was begun belongs to its beginning.
    assert_eq!(bench.tree.read_open(handle, 1, 100).unwrap(), b"ne");
    assert_eq!(bench.tree.read_open(handle, 0, 100).unwrap(), b"two and more");
    assert_eq!(bench.tree.read_open(handle, 1, 100).unwrap(), b"wo and more");
    bench.tree.write(handle, 12, b"!", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("two and more!"));
}

#[test]
fn others_read_what_is_stored_while_a_writer_knows_an_old_text() {
    let bench = bench();
    bench.put("/a", "one");
    let writer = bench.open("/a", WRITE).unwrap();
    bench.put("/a", "two");
    let ino = bench.lookup("/a").unwrap().ino;
    let reader = bench.tree.open(ino, crate::support::READ, ME).unwrap();
    assert!(reader.is_apart);
    assert_eq!(bench.tree.read_open(reader.handle, 0, 100).unwrap(), b"two");
    bench.tree.release(reader.handle);
    bench.close(writer).unwrap();
    assert!(!bench.tree.open(ino, crate::support::READ, ME).unwrap().is_apart);
}

#[test]
fn a_second_write_of_an_open_file_is_a_change_of_the_first() {
    let bench = bench();
    bench.put("/a", &lines("1", "5"));
    let handle = bench.open("/a", WRITE).unwrap();
    bench.put("/a", &lines("1", "a longer last line"));
    bench.tree.write(handle, 0, lines("I", "5").as_bytes(), ME).unwrap();
    bench.tree.sync(handle).unwrap();
    assert_eq!(bench.stored("/a"), Some(lines("I", "a longer last line")));
    bench.tree.write(handle, 2, b"Z", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/a").as_deref(), Some("I\nZ\n3\n4\na longer last line\n"));
}

#[test]
fn replacing_a_file_that_was_read_is_a_change_of_what_was_read() {
    type Save = fn(&Bench, &str);
    let in_place: Save = |bench, text| bench.write("/a", text.as_bytes()).unwrap();
    let renaming: Save = |bench, text| {
        bench.write("/a.tmp", text.as_bytes()).unwrap();
        bench.rename("/a.tmp", "/a").unwrap();
    };
    let ordinary: Save = |bench, text| {
        bench.write("/b", text.as_bytes()).unwrap();
        bench.rename("/b", "/a").unwrap();
    };
    let backup: Save = |bench, text| {
        bench.rename("/a", "/a~").unwrap();
        bench.write("/a", text.as_bytes()).unwrap();
    };
    for save in [in_place, renaming, ordinary, backup] {
        let bench = bench();
        let id = bench.put("/a", &lines("1", "5")).id;
        assert_eq!(bench.text("/a"), Some(lines("1", "5")));
        bench.put("/a", &lines("1", "V"));
        save(&bench, &lines("I", "5"));
        assert_eq!(bench.stored("/a"), Some(lines("I", "V")));
        // The process that has written knows its own text, not the merged one, until it reads again.
        bench.put("/a", &lines("I", "fünf"));
        save(&bench, &lines("i", "5"));
        assert_eq!(bench.stored("/a"), Some(lines("i", "fünf")));
        assert_eq!(bench.versions().last().unwrap().memory, id);
    }
}

#[test]
fn what_was_shown_long_ago_does_not_matter() {
    let bench = bench();
    bench.put("/a", &lines("1", "5"));
    assert_eq!(bench.text("/a"), Some(lines("1", "5")));
    bench.put("/a", &lines("1", "V"));
    bench.clock.advance(std::time::Duration::from_hours(2));
    bench.write("/a", lines("I", "5").as_bytes()).unwrap();
    assert_eq!(bench.stored("/a"), Some(lines("I", "5")));
}

#[test]
fn a_deleted_file_that_is_written_comes_back() {
    for is_followed in [true, false] {
        let bench = bench();
        bench.write("/d/a", b"x").unwrap_err();
        bench.make_directory("/d").unwrap();
        bench.write("/d/a", b"one").unwrap();
        let handle = bench.open("/d/a", EMPTY).unwrap();
        bench.tree.write(handle, 0, b"two", ME).unwrap();
        bench.delete("/d/a");
        if is_followed {
            bench.follow();
        }
        bench.close(handle).unwrap();
        assert_eq!(bench.stored("/d/a").as_deref(), Some("two"));
        bench.follow();
        assert_eq!(bench.text("/d/a").as_deref(), Some("two"));
    }
}

#[test]
fn a_deleted_file_that_is_open_for_writing_is_there_until_it_is_closed() {
    let bench = bench();
    bench.write("/a", b"one").unwrap();
    let handle = bench.open("/a", WRITE).unwrap();
    bench.delete("/a");
    bench.follow();
    assert_eq!(bench.text("/a").as_deref(), Some("one"));
    bench.close(handle).unwrap();
    assert_eq!(bench.text("/a"), None);

    bench.write("/b", b"one").unwrap();
    let handle = bench.open("/b", WRITE).unwrap();
    bench.delete("/b");
    bench.follow();
    bench.tree.write(handle, 0, b"two", ME).unwrap();
    bench.close(handle).unwrap();
    assert_eq!(bench.stored("/b").as_deref(), Some("two"));
}

#[test]
fn a_moved_file_that_is_written_is_stored_where_it_is() {
    for is_followed in [true, false] {
        let bench = bench();
        bench.write("/a", b"one").unwrap();
        let handle = bench.open("/a", EMPTY).unwrap();
        bench.tree.write(handle, 0, b"two", ME).unwrap();
        bench.move_elsewhere("/a", "/b");
        if is_followed {
            bench.follow();
        }
        bench.close(handle).unwrap();
        bench.follow();
        assert_eq!((bench.text("/a"), bench.text("/b").as_deref()), (None, Some("two")));
        assert_eq!(bench.memories_count(), 1);
    }
}

#[test]
fn a_memory_takes_the_place_of_a_directory_that_lives_here_only() {
    let bench = bench();
    bench.make_directory("/d").unwrap();
    bench.write("/d/x.tmp", b"scratch").unwrap();
    bench.put("/d", "a memory");
    assert_eq!(told(&bench), [entry(ROOT, "d")]);
    assert_eq!(bench.text("/d").as_deref(), Some("a memory"));
}

#[test]
fn an_archived_store_is_read_only_and_a_deleted_one_gone() {
    let bench = bench();
    bench.write("/a", b"one").unwrap();
    let handle = bench.open("/a", APPEND).unwrap();
    bench.tree.write(handle, 0, b" more", ME).unwrap();
    bench.engine.archive_store(bench.store).unwrap();
    assert_eq!(bench.remove("/a"), Err(TreeError::ReadOnly));
    assert_eq!(bench.close(handle), Err(TreeError::ReadOnly));
    bench.follow();
    assert_eq!(bench.text("/a").as_deref(), Some("one"));
    bench.engine.delete_store(bench.store).unwrap();
    assert_eq!(bench.lookup("/b"), Err(TreeError::Stale));
    bench.follow();
    assert_eq!(bench.lookup("/a"), Err(TreeError::Stale));
    assert!(bench.engine.entry(bench.store, &path("/a")).is_err());
}
