//! Memories: creating, changing, moving, deleting, and the order of the checks.

use quipu_core::engine::{Effect, MemoryUpdate, Precondition};
use quipu_core::model::{Id as _, MemoryId, StoreId, View};
use quipu_core::settings::Limits;
use quipu_core::{Error, ErrorKind};

use crate::support::{Bench, actor, bench, bench_with, content, kind, path};

fn update(bench: &Bench, id: MemoryId, update: &MemoryUpdate) -> Result<Effect, Error> {
    let written = bench.engine.update(&actor(), bench.store, id, update);
    written.map(|written| written.effect)
}

fn rename(bench: &Bench, from: &str, to: &str) -> Result<usize, Error> {
    let moved = bench.engine.rename(&actor(), bench.store, &path(from), &path(to))?;
    Ok(moved.iter().filter(|written| written.effect.has_changed()).count())
}

fn is_conflict(kind: &ErrorKind, at: &str) -> bool {
    matches!(kind, ErrorKind::PathConflict { path: occupied, .. } if *occupied == path(at))
}

#[test]
fn a_created_memory_is_its_first_version() {
    let bench = bench();
    let memory = bench.create("/a", "text").unwrap().memory;
    let version = bench.engine.version(bench.store, memory.version, View::Full).unwrap();
    assert_eq!(version.content, Some(content("text")));
    assert_eq!(version.hash, Some(content("text").hash()));
    assert_eq!(version.actor, actor());
    assert_eq!(version.created_at, memory.created_at);
    assert_eq!(bench.history(), ["created /a"]);
}

#[test]
fn creating_twice_is_refused() {
    let bench = bench();
    let first = bench.create("/a", "one").unwrap().memory;
    let kind = kind(bench.create("/a", "two"));
    assert_eq!(kind, ErrorKind::PathConflict { memory: first.id, path: path("/a") });
    assert_eq!(bench.text("/a").as_deref(), Some("one"));
}

#[test]
fn a_memory_and_a_directory_cannot_share_a_path() {
    let bench = bench();
    bench.put("/a/b", "x");
    assert!(is_conflict(&kind(bench.create("/a", "x")), "/a/b"));
    assert!(is_conflict(&kind(bench.create("/a/b/c", "x")), "/a/b"));
    assert!(bench.create("/a.md", "x").is_ok());
}

#[test]
fn paths_that_differ_only_in_case_are_two() {
    let bench = bench();
    bench.put("/a", "lower");
    bench.put("/A", "upper");
    assert_eq!(bench.text("/a").as_deref(), Some("lower"));
}

#[test]
fn putting_what_is_there_makes_no_version() {
    let bench = bench();
    bench.put("/a", "text");
    bench.put("/a", "text");
    assert_eq!(bench.history(), ["created /a"]);
}

#[test]
fn an_update_of_text_and_path_is_one_version() {
    let bench = bench();
    let memory = bench.put("/a", "one");
    let change = MemoryUpdate {
        content: Some(content("two")),
        path: Some(path("/b")),
        precondition: Precondition::None,
    };
    assert_eq!(update(&bench, memory.id, &change).unwrap(), Effect::Changed);
    assert_eq!(bench.history(), ["created /a", "modified /b"]);
    assert_eq!(bench.text("/b").as_deref(), Some("two"));
    assert_eq!(bench.text("/a"), None);
}

#[test]
fn a_stale_precondition_changes_nothing() {
    let bench = bench();
    let memory = bench.put("/a", "one");
    bench.put("/a", "two");
    let precondition = Precondition::ContentIs(memory.hash);
    let stale = MemoryUpdate { content: Some(content("three")), path: None, precondition };
    assert_eq!(kind(update(&bench, memory.id, &stale)), ErrorKind::PreconditionFailed);
    let deleted = bench.engine.delete(&actor(), bench.store, memory.id, precondition);
    assert_eq!(kind(deleted), ErrorKind::PreconditionFailed);
    assert_eq!(bench.text("/a").as_deref(), Some("two"));
}

#[test]
fn a_change_that_is_made_already_succeeds_despite_a_stale_precondition() {
    let bench = bench();
    let memory = bench.put("/a", "one");
    bench.put("/a", "two");
    let precondition = Precondition::ContentIs(memory.hash);
    let repeated = MemoryUpdate { content: Some(content("two")), path: None, precondition };
    assert_eq!(update(&bench, memory.id, &repeated).unwrap(), Effect::Unchanged);
}

#[test]
fn a_precondition_holds_for_a_rename_too() {
    let bench = bench();
    let memory = bench.put("/a", "one");
    let to = |text: &str| MemoryUpdate {
        content: None,
        path: Some(path("/b")),
        precondition: Precondition::ContentIs(content(text).hash()),
    };
    assert_eq!(kind(update(&bench, memory.id, &to("other"))), ErrorKind::PreconditionFailed);
    assert_eq!(update(&bench, memory.id, &to("one")).unwrap(), Effect::Changed);
}

#[test]
fn the_checks_come_in_the_order_of_the_contract() {
    let limits = Limits { content_size_bytes_max: 3, ..Limits::default() };
    let bench = bench_with(limits);
    let memory = bench.put("/a", "one");
    bench.put("/b", "two");
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
            kind(bench.create("/b", "x")),
        ),
        (
            MemoryUpdate { precondition: fresh, path: None, ..everything_wrong.clone() },
            ErrorKind::ContentTooLarge,
        ),
    ];
    for (change, expected) in steps {
        assert_eq!(kind(update(&bench, memory.id, &change)), expected);
    }
    let absent = MemoryId::from_bits(1);
    assert_eq!(kind(update(&bench, absent, &everything_wrong)), ErrorKind::NotFound);
    bench.engine.archive_store(bench.store).unwrap();
    assert_eq!(kind(update(&bench, absent, &everything_wrong)), ErrorKind::StoreArchived);
}

#[test]
fn an_edit_sees_the_text_and_replaces_it() {
    let bench = bench();
    bench.put("/a", "one");
    let append = |_: &_, text: &str| Ok::<_, Error>(format!("{text} two"));
    bench.engine.edit(&actor(), bench.store, &path("/a"), append).unwrap();
    assert_eq!(bench.text("/a").as_deref(), Some("one two"));
    assert_eq!(bench.history().len(), 2);
}

#[test]
fn an_edit_that_refuses_changes_nothing_and_its_own_error_comes_back() {
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
    let bench = bench();
    bench.put("/a", "one");
    let refuse = |_: &_, _: &str| Err(Mine::Refused);
    let at = |text: &str| bench.engine.edit(&actor(), bench.store, &path(text), refuse);
    assert_eq!(at("/a").map(drop), Err(Mine::Refused));
    assert_eq!(at("/absent").map(drop), Err(Mine::Engine));
    assert_eq!(bench.history().len(), 1);
}

#[test]
fn a_directory_moves_as_one_with_one_version_each() {
    let bench = bench();
    let id = bench.put("/a/x", "1").id;
    bench.put("/a/y/z", "2");
    assert_eq!(rename(&bench, "/a", "/b/c").unwrap(), 2);
    assert_eq!(bench.text("/b/c/y/z").as_deref(), Some("2"));
    let moved = bench.engine.memory_at(bench.store, &path("/b/c/x"), View::Basic).unwrap();
    assert_eq!(moved.id, id);
    assert_eq!(
        bench.history(),
        ["created /a/x", "created /a/y/z", "modified /b/c/x", "modified /b/c/y/z"]
    );
}

#[test]
fn a_rename_never_overwrites() {
    let bench = bench();
    bench.put("/a", "1");
    bench.put("/b/c", "2");
    assert!(is_conflict(&kind(rename(&bench, "/a", "/b")), "/b/c"));
    assert!(is_conflict(&kind(rename(&bench, "/a", "/b/c")), "/b/c"));
    assert!(is_conflict(&kind(rename(&bench, "/b", "/a/x")), "/a"));
    assert_eq!(bench.history().len(), 2);
}

#[test]
fn a_directory_cannot_move_into_itself() {
    let bench = bench();
    bench.put("/a/b", "1");
    assert_eq!(kind(rename(&bench, "/a", "/a/c")), ErrorKind::InvalidInput);
    assert_eq!(rename(&bench, "/a", "/a").unwrap(), 0);
    assert_eq!(kind(rename(&bench, "/x", "/y")), ErrorKind::NotFound);
}

#[test]
fn a_rename_that_makes_one_path_too_long_moves_nothing() {
    let bench = bench();
    bench.put("/a/1", "1");
    bench.put(&format!("/a/{}", "x".repeat(1000)), "2");
    assert_eq!(
        kind(rename(&bench, "/a", &format!("/{}", "y".repeat(30)))),
        ErrorKind::InvalidInput
    );
    assert_eq!(bench.text("/a/1").as_deref(), Some("1"));
    assert_eq!(bench.history().len(), 2);
}

#[test]
fn a_memory_may_move_up_to_its_own_directory() {
    let bench = bench();
    let memory = bench.put("/a/b", "1");
    let up = MemoryUpdate { content: None, path: Some(path("/a")), ..MemoryUpdate::default() };
    assert_eq!(update(&bench, memory.id, &up).unwrap(), Effect::Changed);
    assert_eq!(bench.text("/a").as_deref(), Some("1"));
}

#[test]
fn deleting_a_directory_makes_one_version_for_each_memory() {
    let bench = bench();
    bench.put("/a/x", "1");
    bench.put("/a/y", "2");
    bench.put("/b", "3");
    let removed = bench.engine.delete_at(&actor(), bench.store, &path("/a")).unwrap();
    assert_eq!(removed.versions.len(), 2);
    assert_eq!(bench.history()[3..], ["deleted /a/x", "deleted /a/y"]);
    let absent = bench.engine.delete_at(&actor(), bench.store, &path("/a"));
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
    let bench = bench_with(limits);
    assert_eq!(kind(bench.create("/a", "éé!")), ErrorKind::ContentTooLarge);
    bench.create("/a", "éé").unwrap();
    assert_eq!(kind(bench.create("/b", "1234")), ErrorKind::LimitReached);
    bench.create("/b", "123").unwrap();
    assert_eq!(kind(bench.create("/c", "")), ErrorKind::LimitReached);
    bench.put("/a", "");
    bench.put("/b", "1234");
    assert_eq!(bench.engine.usage(bench.store).unwrap().size_bytes, 4);
}

#[test]
fn a_full_store_still_takes_texts_that_do_not_grow() {
    let bench = bench_with(Limits { store_size_bytes_max: 3, ..Limits::default() });
    let memory = bench.put("/a", "123");
    let put = |text: &str| {
        let content = Some(content(text));
        update(&bench, memory.id, &MemoryUpdate { content, ..MemoryUpdate::default() })
    };
    assert_eq!(kind(put("1234")), ErrorKind::LimitReached);
    assert!(put("12").is_ok());
    assert!(put("xy").is_ok());
}

#[test]
fn an_archived_store_takes_no_text_but_lets_go_of_it() {
    let bench = bench();
    let memory = bench.put("/a", "1");
    bench.engine.archive_store(bench.store).unwrap();
    assert_eq!(kind(bench.create("/b", "2")), ErrorKind::StoreArchived);
    assert_eq!(kind(rename(&bench, "/a", "/b")), ErrorKind::StoreArchived);
    let restored = bench.engine.restore(&actor(), bench.store, memory.version, None);
    assert_eq!(kind(restored), ErrorKind::StoreArchived);
    assert_eq!(bench.text("/a").as_deref(), Some("1"));
    bench.engine.delete(&actor(), bench.store, memory.id, Precondition::None).unwrap();
    bench.engine.redact(&actor(), bench.store, &[memory.version]).unwrap();
}

#[test]
fn an_unknown_store_is_said_to_be_unknown() {
    let bench = bench();
    let memory = bench.put("/a", "1");
    let absent = StoreId::from_bits(1);
    let error = bench.engine.memory(absent, memory.id, View::Full).unwrap_err();
    assert_eq!(error.message(), format!("no store has the id `{absent}`"));
    let created = bench.engine.create(&actor(), absent, &path("/a"), &content("x"));
    assert_eq!(kind(created), ErrorKind::NotFound);
}

#[test]
fn a_clock_that_goes_back_does_not_reorder_history() {
    let bench = bench();
    let first = bench.put("/a", "1");
    bench.clock.set("2020-01-01T00:00:00Z".parse().unwrap());
    let second = bench.put("/a", "2");
    assert!(second.updated_at > first.updated_at);
    assert!(second.version > first.version);
    assert_eq!(bench.history(), ["created /a", "modified /a"]);
}
