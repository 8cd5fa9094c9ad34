//! Memories: creating, changing, moving, deleting, and the order of the checks.

use quipu_core::engine::{Effect, MemoryUpdate, Precondition};
use quipu_core::model::{Id as _, MemoryId, StoreId, View};
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error, ErrorKind};

use crate::support::{Fixture, actor, content, fixture, fixture_with, kind, path};

fn update(fixture: &Fixture, id: MemoryId, update: &MemoryUpdate) -> Result<Effect, Error> {
    let written = fixture.engine.update(&actor(), fixture.store, id, update);
    written.map(|written| written.effect)
}

fn rename(fixture: &Fixture, from: &str, to: &str) -> Result<usize, Error> {
    let moved = fixture.engine.rename(&actor(), fixture.store, &path(from), &path(to))?;
    Ok(moved.iter().filter(|written| written.effect.has_changed()).count())
}

fn is_conflict(kind: &ErrorKind, at: &str) -> bool {
    matches!(kind, ErrorKind::PathConflict { path: occupied, .. } if *occupied == path(at))
}

#[test]
fn a_created_memory_is_its_first_version() {
    let fixture = fixture();
    let memory = fixture.create("/a", "text").unwrap().memory;
    let version = fixture.engine.version(fixture.store, memory.version, View::Full).unwrap();
    assert_eq!(version.content, Some(content("text")));
    assert_eq!(version.hash, Some(content("text").hash()));
    assert_eq!(version.actor, actor());
    assert_eq!(version.created_at, memory.created_at);
    assert_eq!(fixture.history(), ["created /a"]);
}

#[test]
fn creating_twice_is_refused() {
    let fixture = fixture();
    let first = fixture.create("/a", "one").unwrap().memory;
    let kind = kind(fixture.create("/a", "two"));
    assert_eq!(kind, ErrorKind::PathConflict { memory: first.id, path: path("/a") });
    assert_eq!(fixture.text("/a").as_deref(), Some("one"));
}

#[test]
fn a_memory_and_a_directory_cannot_share_a_path() {
    let fixture = fixture();
    fixture.put("/a/b", "x");
    assert!(is_conflict(&kind(fixture.create("/a", "x")), "/a/b"));
    assert!(is_conflict(&kind(fixture.create("/a/b/c", "x")), "/a/b"));
    assert!(fixture.create("/a.md", "x").is_ok());
}

#[test]
fn paths_that_differ_only_in_case_are_two() {
    let fixture = fixture();
    fixture.put("/a", "lower");
    fixture.put("/A", "upper");
    assert_eq!(fixture.text("/a").as_deref(), Some("lower"));
}

#[test]
fn putting_what_is_there_makes_no_version() {
    let fixture = fixture();
    fixture.put("/a", "text");
    fixture.put("/a", "text");
    assert_eq!(fixture.history(), ["created /a"]);
}

#[test]
fn an_update_of_text_and_path_is_one_version() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one");
    let change = MemoryUpdate {
        content: Some(content("two")),
        path: Some(path("/b")),
        precondition: Precondition::None,
    };
    assert_eq!(update(&fixture, memory.id, &change).unwrap(), Effect::Changed);
    assert_eq!(fixture.history(), ["created /a", "modified /b"]);
    assert_eq!(fixture.text("/b").as_deref(), Some("two"));
    assert_eq!(fixture.text("/a"), None);
}

#[test]
fn a_stale_precondition_changes_nothing() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one");
    fixture.put("/a", "two");
    let precondition = Precondition::ContentIs(memory.hash);
    let stale = MemoryUpdate { content: Some(content("three")), path: None, precondition };
    assert_eq!(kind(update(&fixture, memory.id, &stale)), ErrorKind::PreconditionFailed);
    let deleted = fixture.engine.delete(&actor(), fixture.store, memory.id, precondition);
    assert_eq!(kind(deleted), ErrorKind::PreconditionFailed);
    assert_eq!(fixture.text("/a").as_deref(), Some("two"));
}

#[test]
fn a_no_op_succeeds_despite_a_stale_precondition() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one");
    fixture.put("/a", "two");
    let precondition = Precondition::ContentIs(memory.hash);
    let repeated = MemoryUpdate { content: Some(content("two")), path: None, precondition };
    assert_eq!(update(&fixture, memory.id, &repeated).unwrap(), Effect::Unchanged);
}

#[test]
fn a_precondition_holds_for_a_rename_too() {
    let fixture = fixture();
    let memory = fixture.put("/a", "one");
    let to = |text: &str| MemoryUpdate {
        content: None,
        path: Some(path("/b")),
        precondition: Precondition::ContentIs(content(text).hash()),
    };
    assert_eq!(kind(update(&fixture, memory.id, &to("other"))), ErrorKind::PreconditionFailed);
    assert_eq!(update(&fixture, memory.id, &to("one")).unwrap(), Effect::Changed);
}

#[test]
fn the_checks_come_in_the_order_of_the_contract() {
    let limits = Limits { content_size_bytes_max: 3, ..Limits::default() };
    let fixture = fixture_with(limits);
    let memory = fixture.put("/a", "one");
    fixture.put("/b", "two");
    let everything_wrong = MemoryUpdate {
        content: Some(content("too long")),
        path: Some(path("/b")),
        precondition: Precondition::ContentIs(content("stale").hash()),
    };
    let fresh = Precondition::ContentIs(memory.hash);
    let steps = [
        (everything_wrong.clone(), ErrorKind::PreconditionFailed),
        (
            MemoryUpdate { precondition: fresh, ..everything_wrong.clone() },
            kind(fixture.create("/b", "x")),
        ),
        (
            MemoryUpdate { precondition: fresh, path: None, ..everything_wrong.clone() },
            ErrorKind::ContentTooLarge,
        ),
    ];
    for (change, expected) in steps {
        assert_eq!(kind(update(&fixture, memory.id, &change)), expected);
    }
    let absent = MemoryId::from_bits(1);
    assert_eq!(kind(update(&fixture, absent, &everything_wrong)), ErrorKind::NotFound);
    fixture.engine.archive_store(fixture.store).unwrap();
    assert_eq!(kind(update(&fixture, absent, &everything_wrong)), ErrorKind::StoreArchived);
}

#[test]
fn an_edit_sees_the_text_and_replaces_it() {
    let fixture = fixture();
    fixture.put("/a", "one");
    let append = |_: &_, text: &str| Ok::<_, Error>(format!("{text} two"));
    fixture.engine.edit(&actor(), fixture.store, &path("/a"), append).unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("one two"));
    assert_eq!(fixture.history().len(), 2);
}

#[test]
fn a_failed_edit_changes_nothing_and_returns_its_own_error() {
    #[derive(Debug, PartialEq)]
    enum Mine {
        Refused,
        Engine,
    }
    impl From<Error> for Mine {
        fn from(_: Error) -> Self {
            Self::Engine
        }
    }
    let fixture = fixture();
    fixture.put("/a", "one");
    let refuse = |_: &_, _: &str| Err(Mine::Refused);
    let at = |text: &str| fixture.engine.edit(&actor(), fixture.store, &path(text), refuse);
    assert_eq!(at("/a").map(drop), Err(Mine::Refused));
    assert_eq!(at("/absent").map(drop), Err(Mine::Engine));
    assert_eq!(fixture.history().len(), 1);
}

#[test]
fn a_directory_moves_as_one_with_one_version_each() {
    let fixture = fixture();
    let id = fixture.put("/a/x", "1").id;
    fixture.put("/a/y/z", "2");
    assert_eq!(rename(&fixture, "/a", "/b/c").unwrap(), 2);
    assert_eq!(fixture.text("/b/c/y/z").as_deref(), Some("2"));
    let moved = fixture.engine.memory_at(fixture.store, &path("/b/c/x"), View::Basic).unwrap();
    assert_eq!(moved.id, id);
    assert_eq!(
        fixture.history(),
        ["created /a/x", "created /a/y/z", "modified /b/c/x", "modified /b/c/y/z"]
    );
}

#[test]
fn a_rename_never_overwrites() {
    let fixture = fixture();
    fixture.put("/a", "1");
    fixture.put("/b/c", "2");
    assert!(is_conflict(&kind(rename(&fixture, "/a", "/b")), "/b/c"));
    assert!(is_conflict(&kind(rename(&fixture, "/a", "/b/c")), "/b/c"));
    assert!(is_conflict(&kind(rename(&fixture, "/b", "/a/x")), "/a"));
    assert_eq!(fixture.history().len(), 2);
}

#[test]
fn a_directory_cannot_move_into_itself() {
    let fixture = fixture();
    fixture.put("/a/b", "1");
    assert_eq!(kind(rename(&fixture, "/a", "/a/c")), ErrorKind::InvalidInput);
    assert_eq!(rename(&fixture, "/a", "/a").unwrap(), 0);
    assert_eq!(kind(rename(&fixture, "/x", "/y")), ErrorKind::NotFound);
}

#[test]
fn a_rename_that_makes_one_path_too_long_moves_nothing() {
    let fixture = fixture();
    fixture.put("/a/1", "1");
    fixture.put(&format!("/a/{}", "x".repeat(1000)), "2");
    assert_eq!(
        kind(rename(&fixture, "/a", &format!("/{}", "y".repeat(30)))),
        ErrorKind::InvalidInput
    );
    assert_eq!(fixture.text("/a/1").as_deref(), Some("1"));
    assert_eq!(fixture.history().len(), 2);
}

#[test]
fn a_memory_may_move_up_to_its_own_directory() {
    let fixture = fixture();
    let memory = fixture.put("/a/b", "1");
    let up = MemoryUpdate { content: None, path: Some(path("/a")), ..MemoryUpdate::default() };
    assert_eq!(update(&fixture, memory.id, &up).unwrap(), Effect::Changed);
    assert_eq!(fixture.text("/a").as_deref(), Some("1"));
}

#[test]
fn deleting_a_directory_makes_one_version_for_each_memory() {
    let fixture = fixture();
    fixture.put("/a/x", "1");
    fixture.put("/a/y", "2");
    fixture.put("/b", "3");
    let removed = fixture.engine.delete_at(&actor(), fixture.store, &path("/a")).unwrap();
    assert_eq!(removed.versions.len(), 2);
    assert_eq!(fixture.history()[3..], ["deleted /a/x", "deleted /a/y"]);
    let absent = fixture.engine.delete_at(&actor(), fixture.store, &path("/a"));
    assert_eq!(kind(absent), ErrorKind::NotFound);
}

#[test]
fn both_sides_of_every_limit() {
    let limits = Limits {
        content_size_bytes_max: 4,
        memories_per_store_max: 2,
        store_size_bytes_max: 7,
        ..Limits::default()
    };
    let fixture = fixture_with(limits);
    assert_eq!(kind(fixture.create("/a", "éé!")), ErrorKind::ContentTooLarge);
    fixture.create("/a", "éé").unwrap();
    assert_eq!(kind(fixture.create("/b", "1234")), ErrorKind::LimitReached);
    fixture.create("/b", "123").unwrap();
    assert_eq!(kind(fixture.create("/c", "")), ErrorKind::LimitReached);
    fixture.put("/a", "");
    fixture.put("/b", "1234");
    assert_eq!(fixture.engine.usage(fixture.store).unwrap().size_bytes, 4);
}

#[test]
fn a_full_store_still_takes_texts_that_do_not_grow() {
    let fixture = fixture_with(Limits { store_size_bytes_max: 3, ..Limits::default() });
    let memory = fixture.put("/a", "123");
    let put = |text: &str| {
        let content = Some(content(text));
        update(&fixture, memory.id, &MemoryUpdate { content, ..MemoryUpdate::default() })
    };
    assert_eq!(kind(put("1234")), ErrorKind::LimitReached);
    assert!(put("12").is_ok());
    assert!(put("xy").is_ok());
}

#[test]
fn an_archived_store_refuses_writes_but_allows_deletion() {
    let fixture = fixture();
    let memory = fixture.put("/a", "1");
    fixture.engine.archive_store(fixture.store).unwrap();
    assert_eq!(kind(fixture.create("/b", "2")), ErrorKind::StoreArchived);
    assert_eq!(kind(rename(&fixture, "/a", "/b")), ErrorKind::StoreArchived);
    let restored = fixture.engine.restore(&actor(), fixture.store, memory.version, None);
    assert_eq!(kind(restored), ErrorKind::StoreArchived);
    assert_eq!(fixture.text("/a").as_deref(), Some("1"));
    fixture.engine.delete(&actor(), fixture.store, memory.id, Precondition::None).unwrap();
    fixture.engine.redact(&actor(), fixture.store, &[memory.version]).unwrap();
}

#[test]
fn a_version_is_restored_only_over_the_newest_one_that_was_seen() {
    let fixture = fixture();
    let (first, second) = (fixture.put("/a", "1"), fixture.put("/a", "2"));
    let third = fixture.put("/a", "3");
    let restore = |seen| {
        let versions = (first.version, seen);
        fixture.engine.restore_seen(&actor(), fixture.store, versions, None)
    };
    assert_eq!(kind(restore(second.version)), ErrorKind::PreconditionFailed);
    assert_eq!(fixture.text("/a").as_deref(), Some("3"));
    restore(third.version).unwrap();
    assert_eq!(fixture.text("/a").as_deref(), Some("1"));
    let deletion =
        fixture.engine.delete(&actor(), fixture.store, first.id, Precondition::None).unwrap();
    assert_eq!(kind(restore(third.version)), ErrorKind::PreconditionFailed);
    assert_eq!(fixture.text("/a"), None);
    assert_eq!(restore(deletion.id).unwrap().memory.id, first.id);
}

#[test]
fn writing_to_an_unknown_store_is_not_found() {
    let fixture = fixture();
    let memory = fixture.put("/a", "1");
    let absent = StoreId::from_bits(1);
    let error = fixture.engine.memory(absent, memory.id, View::Full).unwrap_err();
    assert_eq!(error.message(), format!("no store has the id `{absent}`"));
    let created = fixture.engine.create(&actor(), absent, &path("/a"), &content("x"));
    assert_eq!(kind(created), ErrorKind::NotFound);
}

#[test]
fn a_clock_that_goes_back_does_not_reorder_history() {
    let fixture = fixture();
    let first = fixture.put("/a", "1");
    fixture.clock.set("2020-01-01T00:00:00Z".parse().unwrap());
    let second = fixture.put("/a", "2");
    assert!(second.updated_at > first.updated_at);
    assert!(second.version > first.version);
    assert_eq!(fixture.history(), ["created /a", "modified /a"]);
}

#[test]
fn the_effect_tells_created_from_changed_and_unchanged() {
    let fixture = fixture();
    let put = |text: &str| {
        let target = (&path("/a"), &content(text));
        fixture.engine.put(&actor(), fixture.store, target, Precondition::None).unwrap().effect
    };
    assert_eq!(fixture.create("/b", "one").unwrap().effect, Effect::Created);
    assert_eq!(
        [put("one"), put("two"), put("two")],
        [Effect::Created, Effect::Changed, Effect::Unchanged,]
    );
    let head = fixture.engine.memory_at(fixture.store, &path("/a"), View::Basic).unwrap();
    let restore =
        |version| fixture.engine.restore(&actor(), fixture.store, version, None).unwrap().effect;
    assert_eq!(restore(head.version), Effect::Unchanged);
    fixture.engine.delete(&actor(), fixture.store, head.id, Precondition::None).unwrap();
    assert_eq!(restore(head.version), Effect::Created, "a deleted memory is created again");
    let moved = fixture.engine.rename(&actor(), fixture.store, &path("/a"), &path("/c")).unwrap();
    assert_eq!(moved[0].effect, Effect::Changed);
    let same = fixture.engine.rename(&actor(), fixture.store, &path("/c"), &path("/c")).unwrap();
    assert_eq!(same[0].effect, Effect::Unchanged);
    assert!(Effect::Created.has_changed() && Effect::Changed.has_changed());
    assert!(!Effect::Unchanged.has_changed());
}

#[test]
fn a_precondition_needs_a_memory() {
    let fixture = fixture();
    let target = (&path("/none"), &content("text"));
    let expected = Precondition::ContentIs(content("text").hash());
    let put = fixture.engine.put(&actor(), fixture.store, target, expected);
    assert_eq!(kind(put), ErrorKind::NotFound);
    assert_eq!(fixture.text("/none"), None);
}

#[test]
fn a_store_over_a_lowered_limit_can_be_cleaned_up() {
    let generous = fixture();
    for at in ["/1", "/2", "/3"] {
        generous.put(at, "0123456789");
    }
    let limits = Limits {
        memories_per_store_max: 1,
        store_size_bytes_max: 10,
        content_size_bytes_max: 8,
        ..Limits::default()
    };
    let backend = std::sync::Arc::clone(generous.engine.backend());
    let strict = Engine::new(backend, std::sync::Arc::clone(&generous.clock) as _, limits);
    let put = |at: &str, text: &str| {
        let target = (&path(at), &content(text));
        strict.put(&actor(), generous.store, target, Precondition::None).map(drop)
    };
    assert_eq!(kind(put("/4", "new")), ErrorKind::LimitReached);
    assert_eq!(kind(put("/1", "9876543210")), ErrorKind::ContentTooLarge);
    put("/1", "shorter").unwrap();
    assert_eq!(kind(put("/1", "longer!!")), ErrorKind::LimitReached);
    strict.rename(&actor(), generous.store, &path("/2"), &path("/moved")).unwrap();
    strict.delete_at(&actor(), generous.store, &path("/moved")).unwrap();
    strict.delete_at(&actor(), generous.store, &path("/3")).unwrap();
    put("/1", "longer!!").unwrap();
}
