//! What the engine does about text that was removed but may still be in a file.

use std::sync::{Arc, Mutex};

use quipu_core::backend::{Erasure, PendingErasure, ScannedFile};
use quipu_core::model::VersionId;
use quipu_core::{Derived, Engine, Error, ErrorKind};

use crate::support::{Bench, actor, bench, kind};

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

fn indexed(bench: &Bench, failures_left: u32) -> (Engine, Arc<Index>) {
    let index = Arc::new(Index { failures_left: failures_left.into(), ..Index::default() });
    (bench.engine.clone().with_derived(Arc::clone(&index) as _), index)
}

/// Writes a memory twice and returns its first version, which can be redacted.
fn old_version(bench: &Bench, at: &str) -> VersionId {
    let old = bench.put(at, "secret").version;
    bench.put(at, "public");
    old
}

fn pending(engine: &Engine) -> Vec<PendingErasure> {
    engine.read(|reader| reader.pending_erasures()).unwrap()
}

#[test]
fn nothing_is_erased_while_nothing_is_pending() {
    let bench = bench();
    let (engine, index) = indexed(&bench, 0);
    assert_eq!(engine.finish_erasing().unwrap(), Erasure::default());
    assert_eq!(*index.asked.lock().unwrap(), []);
}

#[test]
fn what_is_derived_is_told_what_was_redacted() {
    let bench = bench();
    let (engine, index) = indexed(&bench, 0);
    let memory = bench.put("/a", "secret");
    bench.put("/a", "public");
    engine.redact(&actor(), bench.store, &[memory.version]).unwrap();
    let asked = index.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].store, asked[0].memory), (bench.store, Some(memory.id)));
    assert_eq!(pending(&engine), []);
}

#[test]
fn an_erasure_that_fails_stays_pending_until_it_is_finished() {
    let bench = bench();
    let (engine, index) = indexed(&bench, 1);
    let version = old_version(&bench, "/a");
    let redacted = engine.redact(&actor(), bench.store, &[version]);
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
    let bench = bench();
    let (first, second) = (old_version(&bench, "/a"), old_version(&bench, "/b"));
    let meddler = Meddler { engine: bench.engine.clone(), store: bench.store, version: second };
    let engine = bench.engine.clone().with_derived(Arc::new(meddler));
    engine.redact(&actor(), bench.store, &[first]).unwrap();
    assert_eq!(pending(&engine).len(), 1, "the second redaction is still to be erased");
    bench.engine.finish_erasing().unwrap();
    assert_eq!(pending(&engine), []);
}
