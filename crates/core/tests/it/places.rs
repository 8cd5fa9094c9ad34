//! What is at a place, and moving a memory onto another one.

use quipu_core::ErrorKind;
use quipu_core::engine::{Precondition, Survivor};
use quipu_core::model::Listing;

use crate::support::{actor, fixture, kind, path};

#[test]
fn a_path_has_a_memory_a_directory_or_nothing() {
    let fixture = fixture();
    let memory = fixture.put("/a/b.md", "text");
    let at = |place: &str| fixture.engine.entry(fixture.store, &path(place)).unwrap();
    let Some(Listing::Memory(found)) = at("/a/b.md") else { panic!("no memory") };
    assert_eq!((found.id, found.size_bytes, found.content), (memory.id, 4, None));
    assert!(matches!(at("/a"), Some(Listing::Directory(directory)) if directory.as_str() == "/a/"));
    assert_eq!(at("/a/b"), None);
    assert_eq!(at("/a/b.md/c"), None);
    assert_eq!(at("/b"), None);
}

#[test]
fn a_path_in_an_unknown_store_is_not_found() {
    let fixture = fixture();
    fixture.engine.delete_store(fixture.store).unwrap();
    assert_eq!(kind(fixture.engine.entry(fixture.store, &path("/a"))), ErrorKind::NotFound);
}

#[test]
fn a_memory_moved_onto_another_keeps_its_id() {
    let fixture = fixture();
    let (old, new) = (fixture.put("/old", "old"), fixture.put("/new", "new"));
    let pair = (new.id, old.id);
    let replaced = fixture.engine.replace(&actor(), fixture.store, pair, Survivor::Moved).unwrap();
    assert_eq!((replaced.written.memory.id, replaced.deleted.memory), (new.id, old.id));
    assert_eq!(fixture.text("/old").as_deref(), Some("new"));
    assert_eq!(fixture.text("/new"), None);
    assert_eq!(fixture.history()[2..], ["deleted /old", "modified /old"]);
}

#[test]
fn the_target_can_survive_with_the_moved_text() {
    let fixture = fixture();
    let (old, new) = (fixture.put("/old", "old"), fixture.put("/new", "new"));
    let pair = (new.id, old.id);
    let replaced = fixture
        .engine
        .replace(&actor(), fixture.store, pair, Survivor::Target(Precondition::None))
        .unwrap();
    assert_eq!((replaced.written.memory.id, replaced.deleted.memory), (old.id, new.id));
    assert_eq!(fixture.text("/old").as_deref(), Some("new"));
    assert_eq!(fixture.text("/new"), None);
    assert_eq!(fixture.history()[2..], ["deleted /new", "modified /old"]);
}

#[test]
fn a_target_that_has_changed_does_not_survive_unnoticed() {
    let fixture = fixture();
    let (old, new) = (fixture.put("/old", "old"), fixture.put("/new", "new"));
    fixture.put("/old", "of another");
    let survivor = Survivor::Target(Precondition::ContentIs(old.hash));
    let replaced = fixture.engine.replace(&actor(), fixture.store, (new.id, old.id), survivor);
    assert_eq!(kind(replaced), ErrorKind::PreconditionFailed);
    assert_eq!(fixture.text("/old").as_deref(), Some("of another"));
    assert_eq!(fixture.text("/new").as_deref(), Some("new"));
}

#[test]
fn a_memory_is_not_moved_onto_itself_or_onto_nothing() {
    let fixture = fixture();
    let (memory, gone) = (fixture.put("/a", "a"), fixture.put("/b", "b"));
    fixture.engine.delete_at(&actor(), fixture.store, &path("/b")).unwrap();
    let replace = |target| {
        kind(fixture.engine.replace(&actor(), fixture.store, (memory.id, target), Survivor::Moved))
    };
    assert_eq!(replace(memory.id), ErrorKind::InvalidInput);
    assert_eq!(replace(gone.id), ErrorKind::NotFound);
    assert_eq!(fixture.text("/a").as_deref(), Some("a"));
}
