//! Files that are open for writing while another process of the mount replaces them.

use std::time::Duration;

use quipu_mount::{Making, NewFile, OpenMode, ProcessId, ROOT};

use crate::support::{APPEND, EMPTY, Fixture, ME, READ, WRITE, fixture};

const BEFORE: &str = "one\ntwo\nthree\nfour\n";
const REPLACED: &str = "ONE\ntwo\nthree\nfour\n";

/// A way to replace `/a`.
type Replace = fn(&Fixture, &str);

const BY_SCRATCH_FILE: Replace = |fixture, text| {
    fixture.write("/a.tmp", text.as_bytes()).unwrap();
    fixture.rename("/a.tmp", "/a").unwrap();
};
const BY_NEW_FILE: Replace = |fixture, text| {
    fixture.write("/b", text.as_bytes()).unwrap();
    fixture.rename("/b", "/a").unwrap();
};
const BY_OLDER_MEMORY: Replace = |fixture, text| {
    fixture.put("/b", text);
    fixture.rename("/b", "/a").unwrap();
};
const BY_MOVING_IT_AWAY: Replace = |fixture, text| {
    fixture.rename("/a", "/a~").unwrap();
    fixture.write("/a", text.as_bytes()).unwrap();
    fixture.remove("/a~").unwrap();
};
const ALL: [Replace; 4] = [BY_SCRATCH_FILE, BY_NEW_FILE, BY_OLDER_MEMORY, BY_MOVING_IT_AWAY];

/// Returns a fixture with the memory `/a`, and a handle of it.
fn opened(mode: OpenMode) -> (Fixture, u64) {
    let fixture = fixture();
    fixture.put("/a", BEFORE);
    let handle = fixture.open("/a", mode).unwrap();
    (fixture, handle)
}

/// A process other than the one that replaces files.
fn other() -> ProcessId {
    ProcessId(std::process::id())
}

fn problems(fixture: &Fixture) -> String {
    fixture.text("/.quipu/problems.md").unwrap_or_default()
}

#[track_caller]
fn assert_stored(fixture: &Fixture, text: &str) {
    assert_eq!(fixture.stored("/a").as_deref(), Some(text));
    assert_eq!(fixture.text("/a").as_deref(), Some(text));
}

#[test]
fn what_is_appended_to_a_replaced_file_is_merged() {
    for replace in ALL {
        let (fixture, handle) = opened(APPEND);
        replace(&fixture, REPLACED);
        assert_stored(&fixture, REPLACED);
        fixture.tree.write(handle, 0, b"important\n", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, &format!("{REPLACED}important\n"));
        assert_eq!(problems(&fixture), "");
    }
}

#[test]
fn what_is_written_into_a_replaced_file_is_a_change_of_what_could_be_read() {
    for replace in ALL {
        let (fixture, handle) = opened(WRITE);
        assert_eq!(fixture.tree.read_open(handle, 0, 100).unwrap(), BEFORE.as_bytes());
        replace(&fixture, "ONE, and longer\ntwo\nthree\nfour\n");
        fixture.tree.write(handle, 14, b"FOUR\n", ME).unwrap();
        fixture.tree.sync(handle).unwrap();
        assert_stored(&fixture, "ONE, and longer\ntwo\nthree\nFOUR\n");
        fixture.tree.write(handle, 8, b"THREE\n", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, "ONE, and longer\ntwo\nTHREE\nFOUR\n");
    }
}

#[test]
fn what_was_written_before_the_replacement_is_merged_too() {
    for replace in ALL {
        let (fixture, handle) = opened(APPEND);
        fixture.tree.write(handle, 0, b"before\n", other()).unwrap();
        replace(&fixture, REPLACED);
        fixture.tree.write(handle, 0, b"after\n", other()).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, &format!("{REPLACED}before\nafter\n"));
    }
}

#[test]
fn what_the_replacement_contains_already_is_not_added_again() {
    for replace in ALL {
        let (fixture, handle) = opened(APPEND);
        fixture.tree.write(handle, 0, b"before\n", other()).unwrap();
        // All handles share one text, so whoever replaces the file has read that.
        replace(&fixture, &format!("{REPLACED}before\n"));
        fixture.tree.write(handle, 0, b"after\n", other()).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, &format!("{REPLACED}before\nafter\n"));
    }
}

#[test]
fn what_a_program_replaces_itself_is_superseded() {
    for replace in [BY_SCRATCH_FILE, BY_NEW_FILE, BY_OLDER_MEMORY] {
        let (fixture, handle) = opened(WRITE);
        fixture.tree.write(handle, 0, b"half", ME).unwrap();
        replace(&fixture, REPLACED);
        fixture.close(handle).unwrap();
        assert_stored(&fixture, REPLACED);
        assert_eq!(problems(&fixture), "");

        let (fixture, handle) = opened(APPEND);
        fixture.tree.write(handle, 0, b"before\n", ME).unwrap();
        replace(&fixture, REPLACED);
        fixture.tree.write(handle, 0, b"after\n", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, &format!("{REPLACED}after\n"));
    }
}

#[test]
fn a_conflict_with_a_replacement_keeps_both_texts_and_is_reported() {
    for replace in ALL {
        let (fixture, handle) = opened(WRITE);
        replace(&fixture, "ONE\n");
        fixture.tree.write(handle, 0, b"1ne", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, &BEFORE.replace("one", "1ne"));
        let kept = fixture.versions().into_iter().filter_map(|version| version.content);
        assert!(kept.into_iter().any(|text| text.as_str() == "ONE\n"));
        assert!(
            problems(&fixture).contains("`/a` was stored, but conflicts"),
            "{}",
            problems(&fixture)
        );
    }
}

#[test]
fn a_truncation_does_not_reach_a_later_replacement() {
    for replace in ALL {
        let (fixture, handle) = opened(EMPTY);
        replace(&fixture, REPLACED);
        fixture.close(handle).unwrap();
        assert_stored(&fixture, REPLACED);
        assert_eq!(problems(&fixture), "");

        let (fixture, handle) = opened(EMPTY);
        replace(&fixture, REPLACED);
        fixture.put("/a", "of another door\n");
        fixture.tree.write(handle, 0, b"mine\n", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, "mine\n");
        assert!(problems(&fixture).contains("`/a` was stored, but conflicts"));
    }
}

#[test]
fn a_new_file_that_another_process_replaces_before_its_first_close_is_kept() {
    for replace in [BY_SCRATCH_FILE, BY_OLDER_MEMORY] {
        let fixture = fixture();
        let new =
            NewFile { mode: EMPTY, making: Making::Openly, is_exclusive: false, creator: other() };
        let handle = fixture.tree.create(ROOT, "a".as_ref(), new).unwrap().1.handle;
        fixture.tree.write(handle, 0, b"mine\n", other()).unwrap();
        replace(&fixture, "theirs\n");
        fixture.close(handle).unwrap();
        assert_stored(&fixture, "mine\n");
        assert!(problems(&fixture).contains("`/a` was stored, but conflicts"));
    }
}

#[test]
fn what_is_written_follows_the_memory_that_replaced_the_file() {
    for replace in ALL {
        let (fixture, handle) = opened(APPEND);
        replace(&fixture, REPLACED);
        fixture.rename("/a", "/moved").unwrap();
        fixture.tree.write(handle, 0, b"important\n", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_eq!(fixture.text("/moved"), Some(format!("{REPLACED}important\n")));
        assert_eq!(fixture.text("/a"), None);
    }
}

#[test]
fn a_file_that_is_replaced_again_and_again_keeps_its_writers() {
    let (fixture, first) = opened(APPEND);
    BY_SCRATCH_FILE(&fixture, REPLACED);
    let second = fixture.open("/a", APPEND).unwrap();
    BY_NEW_FILE(&fixture, "ONE\nTWO\nthree\nfour\n");
    fixture.tree.write(second, 0, b"second\n", ME).unwrap();
    fixture.close(second).unwrap();
    fixture.tree.write(first, 0, b"first\n", ME).unwrap();
    fixture.close(first).unwrap();
    assert_stored(&fixture, "ONE\nTWO\nthree\nfour\nsecond\nfirst\n");
}

#[test]
fn nothing_is_stored_of_a_replaced_file_that_is_removed() {
    for replace in ALL {
        let (fixture, handle) = opened(APPEND);
        replace(&fixture, REPLACED);
        fixture.remove("/a").unwrap();
        fixture.tree.write(handle, 0, b"important\n", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_eq!(fixture.text("/a"), None);
        assert_eq!(fixture.history().last().unwrap(), "deleted /a");
    }
}

#[test]
fn a_replaced_file_that_another_door_deletes_is_made_again() {
    for is_followed in [true, false] {
        let (fixture, handle) = opened(APPEND);
        BY_SCRATCH_FILE(&fixture, REPLACED);
        fixture.delete("/a");
        if is_followed {
            fixture.follow();
        }
        fixture.tree.write(handle, 0, b"important\n", ME).unwrap();
        fixture.close(handle).unwrap();
        assert_stored(&fixture, &format!("{BEFORE}important\n"));
    }
}

#[test]
fn readers_of_a_replaced_file_read_what_they_opened() {
    let (fixture, writer) = opened(APPEND);
    let reader = fixture.open("/a", READ).unwrap();
    BY_SCRATCH_FILE(&fixture, REPLACED);
    assert_eq!(fixture.tree.read_open(reader, 0, 100).unwrap(), BEFORE.as_bytes());
    let present = fixture.open("/a", READ).unwrap();
    assert_eq!(fixture.tree.read_open(present, 0, 100).unwrap(), REPLACED.as_bytes());
    fixture.tree.write(writer, 0, b"important\n", ME).unwrap();
    fixture.close(writer).unwrap();
    let merged = format!("{REPLACED}important\n");
    assert_eq!(fixture.tree.read_open(present, 0, 100).unwrap(), merged.as_bytes());
}

#[test]
fn the_backup_of_a_replaced_file_keeps_the_text_that_was_moved_away() {
    let (fixture, handle) = opened(APPEND);
    fixture.tree.write(handle, 0, b"unfinished\n", ME).unwrap();
    fixture.rename("/a", "/a.bak").unwrap();
    fixture.write("/a", REPLACED.as_bytes()).unwrap();
    assert_eq!(fixture.stored("/a.bak").as_deref(), Some(BEFORE));
    fixture.close(handle).unwrap();
    assert_stored(&fixture, &format!("{REPLACED}unfinished\n"));
    fixture.clock.advance(Duration::from_mins(1));
    fixture.tree.settle_due();
    assert_eq!(fixture.stored("/a.bak").as_deref(), Some(BEFORE));
}

#[test]
fn what_was_closed_while_its_file_was_moved_away_is_merged() {
    let (fixture, handle) = opened(APPEND);
    fixture.rename("/a", "/a~").unwrap();
    fixture.tree.write(handle, 0, b"important\n", ME).unwrap();
    fixture.close(handle).unwrap();
    fixture.write("/a", REPLACED.as_bytes()).unwrap();
    assert_stored(&fixture, &format!("{REPLACED}important\n"));
}
