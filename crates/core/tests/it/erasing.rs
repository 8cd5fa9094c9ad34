//! What the engine does about text that was removed but may still be in a file.

use std::sync::{Arc, Mutex};

use quipu_core::backend::{Erasure, PendingErasure, ScannedFile};
use quipu_core::model::VersionId;
use quipu_core::{Derived, Engine, Error, ErrorKind};

use crate::support::{Fixture, actor, fixture, kind};

/// Something derived, which remembers what it was asked to erase and can fail.
#[derive(Debug, Default)]
struct Index {
    asked: Mutex<Vec<PendingErasure>>,
    failures_left: Mutex<u32>,
}

impl Derived for Index {
    fn erase(&self, pending: &[PendingErasure]) -> Result<Erasure, Error> {
        self.asked.lock().unwrap().extend(pending);
        let mut failures_left = self.failures_left.lock().unwrap();
        if *failures_left > 0 {
            *failures_left -= 1;
            return Err(Error::new(ErrorKind::StorageUnavailable, "the index cannot be written"));
        }
        let scanned = ScannedFile { name: "index".to_owned(), size_bytes: 1 };
        let unreachable = vec!["a replica of the index".to_owned()];
        Ok(Erasure { scanned: vec![scanned], unreachable })
    }
}

fn indexed(fixture: &Fixture, failures_left: u32) -> (Engine, Arc<Index>) {
    let index = Arc::new(Index { failures_left: failures_left.into(), ..Index::default() });
    (fixture.engine.clone().with_derived(Arc::clone(&index) as _), index)
}

/// Writes a memory twice and returns its first version, which can be redacted.
fn old_version(fixture: &Fixture, at: &str) -> VersionId {
    let old = fixture.put(at, "secret").version;
    fixture.put(at, "public");
    old
}

fn pending(engine: &Engine) -> Vec<PendingErasure> {
    engine.read(|reader| reader.pending_erasures()).unwrap()
}

#[test]
fn nothing_is_erased_while_nothing_is_pending() {
    let fixture = fixture();
    let (engine, index) = indexed(&fixture, 0);
    assert_eq!(engine.finish_erasing().unwrap(), Erasure::default());
    assert_eq!(*index.asked.lock().unwrap(), []);
}

#[test]
fn derived_data_is_erased_for_what_was_redacted() {
    let fixture = fixture();
    let (engine, index) = indexed(&fixture, 0);
    let memory = fixture.put("/a", "secret");
    fixture.put("/a", "public");
    engine.redact(&actor(), fixture.store, &[memory.version]).unwrap();
    let asked = index.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].store, asked[0].memory), (fixture.store, Some(memory.id)));
    assert_eq!(pending(&engine), []);
}

#[test]
fn an_erasure_that_fails_stays_pending_until_it_is_finished() {
    let fixture = fixture();
    let (engine, index) = indexed(&fixture, 1);
    let version = old_version(&fixture, "/a");
    let redacted = engine.redact(&actor(), fixture.store, &[version]);
    assert_eq!(kind(redacted), ErrorKind::EraseIncomplete);
    let left = pending(&engine);
    assert_eq!(left.len(), 1);
    assert!(engine.check().unwrap().is_erasing_pending);

    let erasure = engine.finish_erasing().unwrap();
    assert_eq!(erasure.scanned.iter().map(|file| &*file.name).collect::<Vec<_>>(), ["index"]);
    assert_eq!(erasure.unreachable, ["a replica of the index"]);
    assert_eq!(*index.asked.lock().unwrap(), [left.clone(), left].concat());
    assert_eq!(pending(&engine), []);
    assert!(!engine.check().unwrap().is_erasing_pending);
}

/// Somebody redacts through another handle while the index is being erased: that must not be taken
/// for erased when the first erasure is noted.
#[test]
fn what_is_redacted_during_an_erasure_stays_pending() {
    #[derive(Debug)]
    struct Meddler {
        engine: Engine,
        store: quipu_core::model::StoreId,
        version: VersionId,
    }
    impl Derived for Meddler {
        fn erase(&self, _: &[PendingErasure]) -> Result<Erasure, Error> {
            // An engine of its own, without anything derived, fails to erase after it has redacted.
            let failing = self
                .engine
                .clone()
                .with_derived(Arc::new(Index { failures_left: Mutex::new(1), ..Index::default() }));
            let redacted = failing.redact(&actor(), self.store, &[self.version]);
            assert_eq!(kind(redacted), ErrorKind::EraseIncomplete);
            Ok(Erasure::default())
        }
    }
    let fixture = fixture();
    let (first, second) = (old_version(&fixture, "/a"), old_version(&fixture, "/b"));
    let meddler = Meddler { engine: fixture.engine.clone(), store: fixture.store, version: second };
    let engine = fixture.engine.clone().with_derived(Arc::new(meddler));
    engine.redact(&actor(), fixture.store, &[first]).unwrap();
    assert_eq!(pending(&engine).len(), 1, "the second redaction is still to be erased");
    fixture.engine.finish_erasing().unwrap();
    assert_eq!(pending(&engine), []);
}
