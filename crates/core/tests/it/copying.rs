//! Copying stores.

use quipu_core::engine::{COPIED_FROM, NewStore};
use quipu_core::model::View;
use quipu_core::settings::Limits;
use quipu_core::{ErrorKind, Moment};

use crate::support::{actor, fixture, fixture_with, kind, name, path};

#[test]
fn a_copy_has_the_memories_and_says_where_they_are_from() {
    let fixture = fixture();
    let first = fixture.put("/a", "1");
    fixture.put("/d/b", "2");
    let past = fixture.engine.moment(fixture.store, &Moment::Version(first.version)).unwrap();
    fixture.put("/a", "3");
    let engine = &fixture.engine;
    let copy = |source, label| {
        let new = NewStore::named(name(label));
        engine
            .copy_store(&actor(), (source, fixture.store), (fixture.workspace, &new))
            .expect("it is copied")
    };
    let (now, now_count) = copy(engine, "now");
    let (then, then_count) = copy(&engine.at(&past).unwrap(), "then");
    assert_eq!((now_count, then_count), (2, 1));
    let text = |store| {
        let memory = engine.memory_at(store, &path("/a"), View::Full).unwrap();
        assert_ne!(memory.id, first.id);
        memory.content.unwrap().as_str().to_owned()
    };
    assert_eq!((text(now.id), text(then.id)), ("3".to_owned(), "1".to_owned()));
    let origin = &now.metadata.pairs()[COPIED_FROM];
    assert!(origin.starts_with(&format!("{}@#", fixture.store)), "{origin}");
    let versions = engine.history(then.id, &path("/a"), 9).unwrap();
    assert_eq!(versions.len(), 1);
    assert!(versions[0].reason.as_ref().unwrap().as_str().starts_with("copied from memstore_"));
    assert_eq!(engine.check().unwrap().problems, []);
}

#[test]
fn a_copy_that_does_not_fit_leaves_nothing() {
    let fixture = fixture_with(Limits { store_size_bytes_max: 10, ..Limits::default() });
    fixture.put("/a", "12345");
    fixture.put("/b", "67890");
    let smaller = quipu_core::Engine::new(
        std::sync::Arc::clone(fixture.engine.backend()),
        std::sync::Arc::clone(&fixture.clock) as _,
        Limits { store_size_bytes_max: 9, ..Limits::default() },
    );
    let new = NewStore::named(name("copy"));
    let copied =
        smaller.copy_store(&actor(), (&fixture.engine, fixture.store), (fixture.workspace, &new));
    assert_eq!(kind(copied), ErrorKind::LimitReached);
    assert_eq!(kind(fixture.engine.find_store(fixture.workspace, "copy")), ErrorKind::NotFound);
}
