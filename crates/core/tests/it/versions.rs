//! Versions: history, undo, redaction, comparison.

use quipu_core::ErrorKind;
use quipu_core::engine::Precondition;
use quipu_core::model::{Id as _, VersionId, View};

use crate::support::{Bench, actor, bench, kind, path};

fn restore(bench: &Bench, version: VersionId) -> Result<(), quipu_core::Error> {
    bench.engine.restore(&actor(), bench.store, version, None).map(drop)
}

#[test]
fn restoring_writes_the_old_text_where_the_memory_lives_now() {
    let bench = bench();
    let first = bench.put("/a", "one");
    bench.put("/a", "two");
    bench.engine.rename(&actor(), bench.store, &path("/a"), &path("/b")).unwrap();
    restore(&bench, first.version).unwrap();
    assert_eq!(bench.text("/b").as_deref(), Some("one"));
    assert_eq!(bench.history().last().unwrap(), "modified /b");
}

fn undo(bench: &Bench, at: &str) -> Result<(), quipu_core::Error> {
    let history = bench.engine.history(bench.store, &path(at), 1)?;
    let memory = history.first().expect("a version").memory;
    bench.engine.undo(&actor(), bench.store, memory, None).map(drop)
}

#[test]
fn undoing_goes_back_one_step_each_time() {
    let bench = bench();
    for text in ["one", "two", "three", "two"] {
        bench.put("/a", text);
    }
    for expected in ["three", "two", "one"] {
        undo(&bench, "/a").unwrap();
        assert_eq!(bench.text("/a").as_deref(), Some(expected));
    }
    assert_eq!(kind(undo(&bench, "/a")), ErrorKind::NotFound);
    assert_eq!(bench.text("/a").as_deref(), Some("one"));
    // A change after an undo is the next one to be undone.
    bench.put("/a", "four");
    undo(&bench, "/a").unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("one"));
}

#[test]
fn a_restored_version_is_a_change_that_can_be_undone() {
    let bench = bench();
    let first = bench.put("/a", "one");
    bench.put("/a", "two");
    bench.put("/a", "three");
    restore(&bench, first.version).unwrap();
    undo(&bench, "/a").unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("three"));
    undo(&bench, "/a").unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("two"));
}

#[test]
fn undoing_takes_back_a_rename_and_a_deletion() {
    let bench = bench();
    let id = bench.put("/a", "one").id;
    bench.put("/a", "two");
    bench.engine.rename(&actor(), bench.store, &path("/a"), &path("/b")).unwrap();
    bench.engine.delete(&actor(), bench.store, id, Precondition::None).unwrap();
    undo(&bench, "/b").unwrap();
    assert_eq!(bench.text("/b").as_deref(), Some("two"));
    // The memory is named by where it is or by where it was.
    undo(&bench, "/a").unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("two"));
    assert_eq!(bench.text("/b"), None);
    undo(&bench, "/a").unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("one"));
    assert_eq!(bench.engine.memory_at(bench.store, &path("/a"), View::Basic).unwrap().id, id);
}

#[test]
fn a_rename_is_not_undone_over_another_memory() {
    let bench = bench();
    bench.put("/a", "one");
    bench.engine.rename(&actor(), bench.store, &path("/a"), &path("/b")).unwrap();
    bench.put("/a", "another");
    let refused = undo(&bench, "/b").unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::PathConflict { .. }), "{refused:?}");
    assert_eq!(bench.text("/a").as_deref(), Some("another"));
    let to = path("/c");
    let memory = bench.engine.memory_at(bench.store, &path("/b"), View::Basic).unwrap().id;
    bench.engine.undo(&actor(), bench.store, memory, Some(&to)).unwrap();
    assert_eq!(bench.text("/c").as_deref(), Some("one"));
}

#[test]
fn a_refused_redaction_names_every_head_in_the_way() {
    let bench = bench();
    let (first, second) = (bench.put("/a", "one"), bench.put("/b", "two"));
    let ids = [first.version, second.version];
    let refused = bench.engine.redact(&actor(), bench.store, &ids).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::HeadNotRedactable);
    let message = refused.to_string();
    assert!(message.contains("`/a`") && message.contains("`/b`"), "{message}");
}

#[test]
fn restoring_what_is_there_makes_no_version() {
    let bench = bench();
    let first = bench.put("/a", "one");
    restore(&bench, first.version).unwrap();
    assert_eq!(bench.history().len(), 1);
}

#[test]
fn a_deleted_memory_comes_back_with_its_id() {
    let bench = bench();
    let memory = bench.put("/a", "one");
    bench.engine.delete(&actor(), bench.store, memory.id, Precondition::None).unwrap();
    let written = bench.engine.restore(&actor(), bench.store, memory.version, None).unwrap();
    assert_eq!((written.memory.id, written.memory.path), (memory.id, path("/a")));
    assert_eq!(bench.history(), ["created /a", "deleted /a", "created /a"]);
}

#[test]
fn a_deleted_memory_whose_place_is_taken_comes_back_elsewhere() {
    let bench = bench();
    let memory = bench.put("/a", "one");
    bench.engine.delete(&actor(), bench.store, memory.id, Precondition::None).unwrap();
    bench.put("/a", "another");
    let kind = kind(restore(&bench, memory.version));
    assert!(matches!(kind, ErrorKind::PathConflict { .. }));
    let to = path("/b");
    bench.engine.restore(&actor(), bench.store, memory.version, Some(&to)).unwrap();
    assert_eq!(bench.text("/b").as_deref(), Some("one"));
}

#[test]
fn a_deletion_cannot_be_restored_but_names_the_version_before_it() {
    let bench = bench();
    let memory = bench.put("/a", "one");
    let deleted =
        bench.engine.delete(&actor(), bench.store, memory.id, Precondition::None).unwrap();
    let error = restore(&bench, deleted.id).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::InvalidInput);
    assert!(error.hint().unwrap().contains(&memory.version.to_string()));
}

#[test]
fn what_a_memory_holds_now_cannot_be_redacted() {
    let bench = bench();
    let first = bench.put("/a", "one");
    let redact = |version| bench.engine.redact(&actor(), bench.store, &[version]);
    assert_eq!(kind(redact(first.version)), ErrorKind::HeadNotRedactable);
    bench.put("/a", "two");
    redact(first.version).unwrap();
    assert_eq!(kind(restore(&bench, first.version)), ErrorKind::InvalidInput);
}

#[test]
fn redaction_keeps_the_record_and_happens_once() {
    let bench = bench();
    let first = bench.put("/a", "one");
    bench.put("/a", "two");
    let redact = || bench.engine.redact(&actor(), bench.store, &[first.version]).unwrap();
    let once = redact();
    let version = &once[0];
    assert_eq!((&version.path, &version.hash, version.size_bytes), (&None, &None, None));
    assert_eq!(version.actor, actor());
    assert_eq!(version.redaction.as_ref().unwrap().by, actor());
    bench.clock.advance(std::time::Duration::from_hours(1));
    assert_eq!(redact(), once);
}

#[test]
fn redacting_several_is_all_or_nothing() {
    let bench = bench();
    let first = bench.put("/a", "one");
    let head = bench.put("/a", "two");
    let both = [first.version, head.version];
    let refused = bench.engine.redact(&actor(), bench.store, &both);
    assert_eq!(kind(refused), ErrorKind::HeadNotRedactable);
    assert!(restore(&bench, first.version).is_ok());
}

#[test]
fn history_follows_a_memory_through_renames_and_deletion() {
    let bench = bench();
    bench.put("/a", "one");
    bench.engine.rename(&actor(), bench.store, &path("/a"), &path("/b")).unwrap();
    let count = |at: &str| bench.engine.history(bench.store, &path(at), 10).map(|v| v.len());
    assert_eq!(count("/b").unwrap(), 2);
    bench.engine.delete_at(&actor(), bench.store, &path("/b")).unwrap();
    assert_eq!(count("/b").unwrap(), 3);
    assert_eq!(count("/a").unwrap(), 3);
    assert_eq!(kind(count("/c")), ErrorKind::NotFound);
}

#[test]
fn versions_are_compared_by_lines() {
    let bench = bench();
    let first = bench.put("/a", "one\ntwo\n");
    let second = bench.put("/a", "one\nthree\n");
    let deleted = bench.engine.delete(&actor(), bench.store, first.id, Precondition::None).unwrap();
    let counts = |old, new| {
        let diff = bench.engine.diff(bench.store, old, new).unwrap();
        (diff.added_count(), diff.removed_count())
    };
    assert_eq!(counts(Some(first.version), second.version), (1, 1));
    assert_eq!(counts(Some(second.version), deleted.id), (0, 2));
    assert_eq!(counts(None, first.version), (2, 0));
}

#[test]
fn an_unknown_version_is_said_to_be_unknown() {
    let bench = bench();
    let absent = VersionId::from_bits(1);
    assert_eq!(kind(bench.engine.version(bench.store, absent, View::Full)), ErrorKind::NotFound);
    let redacted = bench.engine.redact(&actor(), bench.store, &[absent]);
    assert_eq!(kind(redacted), ErrorKind::NotFound);
}
