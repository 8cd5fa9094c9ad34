//! Versions: history, undo, redaction, comparison.

use quipu_core::ErrorKind;
use quipu_core::engine::Precondition;
use quipu_core::model::{Content, Id as _, VersionId, View};

use crate::support::{Fixture, actor, fixture, kind, path};

fn restore(fixture: &Fixture, version: VersionId) -> Result<(), quipu_core::Error> {
    fixture.engine.restore(&actor(), fixture.store, version, None).map(drop)
}

#[test]
fn restoring_writes_the_old_text_where_the_memory_lives_now() {
    let fixture = fixture();
    let first = fixture.put("/a", "one");
    fixture.put("/a", "two");
    fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")).unwrap();
    restore(&fixture, first.version).unwrap();
    assert_eq!(fixture.text("/b").as_deref(), Some("one"));
    assert_eq!(fixture.history().last().unwrap(), "modified /b");
}

fn undo(fixture: &Fixture, at: &str) -> Result<(), quipu_core::Error> {
    let history = fixture.engine.history(fixture.store, &path(at), 1)?;
    let memory = history.first().expect("a version").memory;
    fixture.engine.undo(&actor(), fixture.store, memory, None).map(drop)
}

#[test]
fn undoing_goes_back_one_step_each_time() {
    let fixture = fixture();
    for text in ["one", "two", "three", "two"] {
        fixture.put("/a", text);
    }
    for expected in ["three", "two", "one"] {
        undo(&fixture, "/a").unwrap();
        assert_eq!(fixture.text("/a").as_deref(), Some(expected));
    }
    assert_eq!(kind(undo(&fixture, "/a")), ErrorKind::NotFound);
    assert_eq!(fixture.text("/a").as_deref(), Some("one"));
    // A change after an undo is the next one to be undone.
    fixture.put("/a", "four");
    undo(&fixture, "/a").unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("one"));
}

#[test]
fn a_restored_version_is_a_change_that_can_be_undone() {
    let fixture = fixture();
    let first = fixture.put("/a", "one");
    fixture.put("/a", "two");
    fixture.put("/a", "three");
    restore(&fixture, first.version).unwrap();
    undo(&fixture, "/a").unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("three"));
    undo(&fixture, "/a").unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("two"));
}

#[test]
fn undoing_takes_back_a_rename_and_a_deletion() {
    let fixture = fixture();
    let id = fixture.put("/a", "one").id;
    fixture.put("/a", "two");
    fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")).unwrap();
    fixture.engine.delete(&actor(), fixture.store, id, Precondition::None).unwrap();
    undo(&fixture, "/b").unwrap();
    assert_eq!(fixture.text("/b").as_deref(), Some("two"));
    // The memory is named by where it is or by where it was.
    undo(&fixture, "/a").unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("two"));
    assert_eq!(fixture.text("/b"), None);
    undo(&fixture, "/a").unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("one"));
    assert_eq!(fixture.engine.memory_at(fixture.store, &path("/a"), View::Basic).unwrap().id, id);
}

#[test]
fn a_rename_is_not_undone_over_another_memory() {
    let fixture = fixture();
    fixture.put("/a", "one");
    fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")).unwrap();
    fixture.put("/a", "another");
    let refused = undo(&fixture, "/b").unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::PathConflict { .. }), "{refused:?}");
    assert_eq!(fixture.text("/a").as_deref(), Some("another"));
    let to = path("/c");
    let memory = fixture.engine.memory_at(fixture.store, &path("/b"), View::Basic).unwrap().id;
    fixture.engine.undo(&actor(), fixture.store, memory, Some(&to)).unwrap();
    assert_eq!(fixture.text("/c").as_deref(), Some("one"));
}

#[test]
fn a_refused_redaction_names_every_head_in_the_way() {
    let fixture = fixture();
    let (first, second) = (fixture.put("/a", "one"), fixture.put("/b", "two"));
    let ids = [first.version, second.version];
    let refused = fixture.engine.redact(&actor(), fixture.store, &ids).unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::HeadNotRedactable);
    let message = refused.to_string();
    assert!(message.contains("`/a`") && message.contains("`/b`"), "{message}");
}

#[test]
fn restoring_what_is_there_makes_no_version() {
    let fixture = fixture();
    let first = fixture.put("/a", "one");
    restore(&fixture, first.version).unwrap();
    assert_eq!(fixture.history().len(), 1);
}

#[test]
fn a_deleted_memory_is_restored_with_its_id() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one");
    fixture.engine.delete(&actor(), fixture.store, memory.id, Precondition::None).unwrap();
    let written = fixture.engine.restore(&actor(), fixture.store, memory.version, None).unwrap();
    assert_eq!((written.memory.id, written.memory.path), (memory.id, path("/a")));
    assert_eq!(fixture.history(), ["created /a", "deleted /a", "created /a"]);
}

#[test]
fn a_deleted_memory_whose_path_is_taken_is_restored_elsewhere() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one");
    fixture.engine.delete(&actor(), fixture.store, memory.id, Precondition::None).unwrap();
    fixture.put("/a", "another");
    let kind = kind(restore(&fixture, memory.version));
    assert!(matches!(kind, ErrorKind::PathConflict { .. }));
    let to = path("/b");
    fixture.engine.restore(&actor(), fixture.store, memory.version, Some(&to)).unwrap();
    assert_eq!(fixture.text("/b").as_deref(), Some("one"));
}

#[test]
fn a_deletion_cannot_be_restored_but_names_the_version_before_it() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one");
    let deleted =
        fixture.engine.delete(&actor(), fixture.store, memory.id, Precondition::None).unwrap();
    let error = restore(&fixture, deleted.id).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::InvalidInput);
    assert!(error.hint().unwrap().contains(&memory.version.to_string()));
}

#[test]
fn the_current_version_cannot_be_redacted() {
    let fixture = fixture();
    let first = fixture.put("/a", "one");
    let redact = |version| fixture.engine.redact(&actor(), fixture.store, &[version]);
    assert_eq!(kind(redact(first.version)), ErrorKind::HeadNotRedactable);
    fixture.put("/a", "two");
    redact(first.version).unwrap();
    assert_eq!(kind(restore(&fixture, first.version)), ErrorKind::InvalidInput);
}

#[test]
fn redaction_keeps_the_record_and_happens_once() {
    let fixture = fixture();
    let first = fixture.put("/a", "one");
    fixture.put("/a", "two");
    let redact = || fixture.engine.redact(&actor(), fixture.store, &[first.version]).unwrap();
    let once = redact();
    let version = &once[0];
    assert_eq!((&version.path, &version.hash, version.size_bytes), (&None, &None, None));
    assert_eq!(version.actor, actor());
    assert_eq!(version.redaction.as_ref().unwrap().by, actor());
    fixture.clock.advance(std::time::Duration::from_hours(1));
    assert_eq!(redact(), once);
}

#[test]
fn redacting_several_is_all_or_nothing() {
    let fixture = fixture();
    let first = fixture.put("/a", "one");
    let head = fixture.put("/a", "two");
    let both = [first.version, head.version];
    let refused = fixture.engine.redact(&actor(), fixture.store, &both);
    assert_eq!(kind(refused), ErrorKind::HeadNotRedactable);
    assert!(restore(&fixture, first.version).is_ok());
}

#[test]
fn history_follows_a_memory_through_renames_and_deletion() {
    let fixture = fixture();
    fixture.put("/a", "one");
    fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/b")).unwrap();
    let count = |at: &str| fixture.engine.history(fixture.store, &path(at), 10).map(|v| v.len());
    assert_eq!(count("/b").unwrap(), 2);
    fixture.engine.delete_at(&actor(), fixture.store, &path("/b")).unwrap();
    assert_eq!(count("/b").unwrap(), 3);
    assert_eq!(count("/a").unwrap(), 3);
    assert_eq!(kind(count("/c")), ErrorKind::NotFound);
}

#[test]
fn versions_are_compared_by_lines() {
    let fixture = fixture();
    let first = fixture.put("/a", "one\ntwo\n");
    let second = fixture.put("/a", "one\nthree\n");
    let deleted =
        fixture.engine.delete(&actor(), fixture.store, first.id, Precondition::None).unwrap();
    let counts = |old, new| {
        let diff = fixture.engine.diff(fixture.store, old, new).unwrap();
        (diff.added_count(), diff.removed_count())
    };
    assert_eq!(counts(Some(first.version), second.version), (1, 1));
    assert_eq!(counts(Some(second.version), deleted.id), (0, 2));
    assert_eq!(counts(None, first.version), (2, 0));
}

#[test]
fn an_unknown_version_is_not_found() {
    let fixture = fixture();
    let absent = VersionId::from_bits(1);
    assert_eq!(
        kind(fixture.engine.version(fixture.store, absent, View::Full)),
        ErrorKind::NotFound
    );
    let redacted = fixture.engine.redact(&actor(), fixture.store, &[absent]);
    assert_eq!(kind(redacted), ErrorKind::NotFound);
}

#[test]
fn the_version_before_is_found_across_other_memories() {
    let fixture = fixture();
    let first = fixture.put("/a", "one");
    fixture.put("/b", "between");
    let second = fixture.put("/a", "two");
    let version = |id| fixture.engine.version(fixture.store, id, View::Basic).unwrap();
    let before = |id| fixture.engine.previous_version(&version(id), View::Full).unwrap();
    let found = before(second.version).unwrap();
    assert_eq!((found.id, found.content), (first.version, first.content));
    assert!(before(first.version).is_none());
}

#[test]
fn a_redacted_text_is_neither_compared_nor_restored() {
    let fixture = fixture();
    let (first, second) = (fixture.put("/a", "one\n"), fixture.put("/a", "two\n"));
    fixture.engine.redact(&actor(), fixture.store, &[first.version]).unwrap();
    let diff = |old, new| fixture.engine.diff(fixture.store, old, new);
    assert_eq!(kind(diff(Some(first.version), second.version)), ErrorKind::InvalidInput);
    assert_eq!(kind(diff(None, first.version)), ErrorKind::InvalidInput);
    assert_eq!(diff(None, second.version).unwrap().added_count(), 1);
    assert_eq!(kind(restore(&fixture, first.version)), ErrorKind::InvalidInput);
    assert_eq!(kind(undo(&fixture, "/a")), ErrorKind::InvalidInput);
}

#[test]
fn an_undo_stops_where_retention_has_removed_versions() {
    let fixture = fixture();
    for number in 0..12 {
        fixture.put("/a", &number.to_string());
    }
    fixture.clock.advance(std::time::Duration::from_hours(24 * 31));
    assert_eq!(fixture.engine.prune().unwrap().versions_count, 2);
    for expected in (2..=10).rev() {
        undo(&fixture, "/a").unwrap();
        assert_eq!(fixture.text("/a"), Some(expected.to_string()));
    }
    let refused = undo(&fixture, "/a").unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::NotFound);
    assert!(refused.message().contains("no longer kept"), "{refused}");
}

#[test]
fn undoing_nothing_is_refused() {
    let fixture = fixture();
    let only = fixture.put("/a", "one");
    assert!(undo(&fixture, "/a").unwrap_err().message().contains("no change before"));
    let unknown = quipu_core::model::MemoryId::from_bits(1);
    let refused = fixture.engine.undo(&actor(), fixture.store, unknown, None);
    assert_eq!(kind(refused), ErrorKind::NotFound);
    assert_eq!(fixture.text("/a").as_deref(), only.content.as_ref().map(Content::as_str));
}

#[test]
fn history_has_a_limit_and_names_the_last_memory_at_a_path() {
    let fixture = fixture();
    let old = fixture.put("/a", "one");
    fixture.engine.delete_at(&actor(), fixture.store, &path("/a")).unwrap();
    let history = |limit| fixture.engine.history(fixture.store, &path("/a"), limit).unwrap();
    assert_eq!(history(10).len(), 2);
    assert!(history(10).iter().all(|version| version.memory == old.id));
    let new = fixture.put("/a", "two");
    assert_eq!(history(10).iter().map(|version| version.memory).collect::<Vec<_>>(), [new.id]);
    fixture.put("/a", "three");
    assert_eq!(history(1).len(), 1);
    let none = fixture.engine.history(fixture.store, &path("/none"), 1);
    assert_eq!(kind(none), ErrorKind::NotFound);
}

#[test]
fn refusals_are_listed_newest_first_for_stores_that_exist() {
    let fixture = fixture();
    let refusal = |store, path: &str| quipu_core::model::Refusal {
        store,
        at: quipu_core::Clock::now(&*fixture.clock),
        path: path.to_owned(),
        actor: actor(),
        reason: "the text is too long".to_owned(),
    };
    for at in ["/1", "/2", "/3"] {
        fixture.engine.note_refusal(&refusal(fixture.store, at)).unwrap();
    }
    let paths = |limit| -> Vec<_> {
        let refusals = fixture.engine.refusals(fixture.store, limit).unwrap();
        refusals.into_iter().map(|refusal| refusal.path).collect()
    };
    assert_eq!(paths(10), ["/3", "/2", "/1"]);
    assert_eq!(paths(1), ["/3"]);
    let unknown = quipu_core::model::StoreId::from_bits(1);
    assert_eq!(kind(fixture.engine.note_refusal(&refusal(unknown, "/1"))), ErrorKind::NotFound);
    assert_eq!(kind(fixture.engine.refusals(unknown, 1)), ErrorKind::NotFound);
}
