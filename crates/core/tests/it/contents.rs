//! What is at a path, and which reads count as uses.

use std::num::NonZero;
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::backend::Purpose;
use quipu_core::engine::{PathContents, StoreUpdate};
use quipu_core::model::{Id as _, StoreId, StorePolicy, View};

use crate::support::{Fixture, actor, fixture, kind, path};

const HOUR: Duration = Duration::from_hours(1);

/// Returns the entries of a directory, or the text of a memory; `None` if nothing is there.
fn contents(fixture: &Fixture, at: Option<&str>, depth: usize) -> Option<Vec<String>> {
    let depth = NonZero::new(depth).unwrap();
    let at = at.map(path);
    match fixture.engine.contents_at(fixture.store, at.as_ref(), depth).unwrap()? {
        PathContents::Memory(memory) => Some(vec![memory.content.unwrap().as_str().to_owned()]),
        PathContents::Directory(entries) => {
            Some(entries.iter().map(|entry| entry.sort_key().to_owned()).collect())
        }
    }
}

#[test]
fn a_path_has_a_text_or_entries_down_to_a_depth() {
    let fixture = fixture();
    for at in ["/a/1", "/a/b/2", "/a/b/c/3", "/z"] {
        fixture.put(at, at);
    }
    assert_eq!(contents(&fixture, Some("/z"), 1).unwrap(), ["/z"]);
    assert_eq!(contents(&fixture, Some("/a"), 1).unwrap(), ["/a/1", "/a/b/"]);
    assert_eq!(contents(&fixture, Some("/a"), 2).unwrap(), ["/a/1", "/a/b/2", "/a/b/c/"]);
    assert_eq!(contents(&fixture, Some("/a/b/c"), 1).unwrap(), ["/a/b/c/3"]);
    assert_eq!(contents(&fixture, None, 1).unwrap(), ["/a/", "/z"]);
    assert_eq!(contents(&fixture, Some("/z/below"), 1), None);
    assert_eq!(contents(&fixture, Some("/none"), 1), None);
}

#[test]
fn the_root_of_an_empty_store_is_an_empty_directory() {
    let fixture = fixture();
    assert_eq!(contents(&fixture, None, 1).unwrap(), Vec::<String>::new());
    let unknown = StoreId::from_bits(1);
    let depth = NonZero::<usize>::MIN;
    assert_eq!(kind(fixture.engine.contents_at(unknown, None, depth)), ErrorKind::NotFound);
    let deep = fixture.engine.contents_at(unknown, Some(&path("/a")), depth);
    assert_eq!(kind(deep), ErrorKind::NotFound);
}

/// A fixture whose store deletes unused memories.
fn expiring() -> Fixture {
    let fixture = fixture();
    let policy = StorePolicy { expire_after_days: Some(1), ..StorePolicy::default() };
    let update = StoreUpdate { policy: Some(policy), ..StoreUpdate::default() };
    fixture.engine.update_store(fixture.store, &update).unwrap();
    fixture
}

#[test]
fn every_read_of_a_text_is_a_use_and_listing_is_none() {
    let fixture = expiring();
    let memory = fixture.put("/a", "text");
    let (engine, store) = (&fixture.engine, fixture.store);
    fixture.clock.advance(HOUR);
    engine.entry(store, &path("/a")).unwrap();
    contents(&fixture, None, 1);
    assert!(!engine.has_unwritten_uses());
    let reads: [&dyn Fn(); 4] = [
        &|| drop(engine.memory(store, memory.id, View::Full).unwrap()),
        &|| drop(engine.memory_at(store, &path("/a"), View::Full).unwrap()),
        &|| drop(contents(&fixture, Some("/a"), 1)),
        &|| engine.note_reading(store, memory.id),
    ];
    for read in reads {
        fixture.clock.advance(HOUR);
        read();
        assert_eq!(engine.write_uses().unwrap(), 1);
    }
}

#[test]
fn a_use_is_recorded_once_an_hour() {
    let fixture = expiring();
    let written_at = fixture.put("/a", "text").updated_at;
    let recorded = || {
        fixture.text("/a").unwrap();
        fixture.engine.write_uses().unwrap()
    };
    fixture.clock.set(written_at.plus(HOUR).minus(Duration::from_micros(1)));
    assert_eq!(recorded(), 0);
    fixture.clock.advance(Duration::from_micros(1));
    assert_eq!((recorded(), recorded()), (1, 0));
    fixture.clock.advance(HOUR);
    assert_eq!((recorded(), recorded()), (1, 0));
}

#[test]
fn uses_in_stores_that_never_expire_are_not_recorded() {
    let fixture = fixture();
    let memory = fixture.put("/a", "text");
    fixture.clock.advance(HOUR * 2);
    fixture.text("/a").unwrap();
    assert!(!fixture.engine.has_unwritten_uses());
    fixture.engine.note_reading(fixture.store, memory.id);
    assert!(fixture.engine.has_unwritten_uses(), "a door with a copy does not know the policy");
    assert_eq!(fixture.engine.write_uses().unwrap(), 0);
}

#[test]
fn more_uses_than_one_batch_are_recorded() {
    let fixture = expiring();
    for number in 0..1_100 {
        fixture.put(&format!("/{number}"), "text");
    }
    fixture.clock.advance(HOUR * 2);
    for number in 0..1_100 {
        fixture.text(&format!("/{number}")).unwrap();
    }
    assert_eq!(fixture.engine.write_uses().unwrap(), 1_100);
    fixture.clock.advance(HOUR * 23);
    assert_eq!(fixture.engine.prune().unwrap().memories_count, 0);
}

/// Texts that do not match their hash come from a failing disk.
#[test]
fn a_corrupt_text_is_never_returned_or_copied() {
    let fixture = fixture();
    let memory = fixture.put("/a", "text");
    let corrupt = quipu_core::model::Memory {
        content: Some(crate::support::content("teXt")),
        ..memory.clone()
    };
    let (engine, store) = (&fixture.engine, fixture.store);
    engine
        .backend()
        .write(Purpose::Change, &mut |writer| {
            let (sequence, _) = writer.newest_change()?;
            let version = writer.version(store, memory.version, View::Full)?.unwrap();
            let version =
                quipu_core::model::Version { content: corrupt.content.clone(), ..version };
            let (before, after) = (Some(memory.clone()), Some(corrupt.clone()));
            let transaction = sequence;
            writer.commit(&quipu_core::backend::Commit {
                sequence,
                transaction,
                version,
                before,
                after,
            })
        })
        .unwrap();
    let (a, b) = (path("/a"), path("/b"));
    let kinds = [
        kind(engine.memory(store, memory.id, View::Full)),
        kind(engine.memory_at(store, &a, View::Full)),
        kind(engine.contents_at(store, Some(&a), NonZero::<usize>::MIN)),
        kind(engine.rename(&actor(), store, &a, &b)),
        kind(engine.version(store, memory.version, View::Full)),
        kind(engine.restore(&actor(), store, memory.version, None)),
        kind(
            engine.edit(&actor(), store, &a, |_, text| Ok::<_, quipu_core::Error>(text.to_owned())),
        ),
    ];
    assert!(kinds.iter().all(|kind| *kind == ErrorKind::StorageUnusable), "{kinds:?}");
    assert!(engine.memory(store, memory.id, View::Basic).is_ok());
    fixture.put("/a", "a new text repairs it");
    assert!(engine.memory_at(store, &a, View::Full).is_ok());
}
