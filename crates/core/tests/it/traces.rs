//! What is written down beside the rows, when something is redacted.

use std::sync::{Arc, Mutex, MutexGuard};

use quipu_core::backend::Erasure;
use quipu_core::derived::{HeldTraces, Traces};
use quipu_core::engine::{Heads, Pattern, Scope, Selection, Terms};
use quipu_core::model::{Receipt, ScannedFile};
use quipu_core::{Engine, Error, ErrorKind};

use crate::support::{Fixture, actor, fixture, kind};

/// Entries in memory.
#[derive(Clone, Debug, Default)]
struct Fake(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    entries: Vec<&'static str>,
    is_broken: bool,
    /// What was asked, in order.
    asked: Vec<&'static str>,
}

impl Fake {
    fn get(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap()
    }
}

impl Traces for Fake {
    fn hold(&self) -> Result<Box<dyn HeldTraces>, Error> {
        self.get().asked.push("hold");
        Ok(Box::new(self.clone()))
    }

    fn erase_copies(&self) -> Result<(), Error> {
        self.get().asked.push("erase copies");
        Ok(())
    }
}

impl HeldTraces for Fake {
    fn count(&self, is_match: &dyn Fn(&str) -> bool) -> Result<usize, Error> {
        self.get().asked.push("count");
        Ok(self.get().entries.iter().filter(|entry| is_match(entry)).count())
    }

    fn forget(&self, is_match: &dyn Fn(&str) -> bool) -> Result<Erasure, Error> {
        self.get().asked.push("forget");
        if self.get().is_broken {
            return Err(Error::new(ErrorKind::StorageUnavailable, "the disk is gone"));
        }
        self.get().entries.retain(|entry| !is_match(entry));
        let scanned = vec![ScannedFile { name: "log".to_owned(), size_bytes: 1 }];
        Ok(Erasure { scanned, ..Erasure::default() })
    }
}

fn with_traces() -> (Fixture, Engine, Fake) {
    let (fixture, fake) = (fixture(), Fake::default());
    fake.get().entries = vec!["a sesame", "harmless"];
    let engine = fixture.engine.clone().with_traces(Arc::new(fake.clone()));
    (fixture, engine, fake)
}

fn redacted(engine: &Engine, scope: &Scope, selection: &Selection<'_>) -> Result<Receipt, Error> {
    let terms = Terms { heads: Heads::TakeOut, ..Terms::default() };
    engine.redact_selected(&actor(), scope, selection, &terms)
}

fn sesame() -> Selection<'static> {
    Selection { pattern: Some(Pattern::text("sesame").unwrap()), ..Selection::default() }
}

#[test]
fn a_redaction_by_content_reaches_them_and_names_them() {
    let (fixture, engine, fake) = with_traces();
    let scope = Scope::all(fixture.workspace);
    let plan = engine.plan_redaction(&scope, &sesame(), Heads::TakeOut).unwrap();
    assert_eq!(plan.traces_count, 1);
    assert_eq!(fake.get().entries.len(), 2, "a plan changes nothing");
    fake.get().asked.clear();
    let receipt = redacted(&engine, &scope, &sesame()).unwrap();
    assert_eq!(fake.get().entries, ["harmless"]);
    // They are held before the rows are searched, so that nothing is on its way from one to the other.
    assert_eq!(fake.get().asked, ["hold", "count", "erase copies", "forget"]);
    let scanned = receipt.proof.unwrap().scanned;
    assert!(scanned.iter().any(|file| file.name == "log"), "{scanned:?}");
}

#[test]
fn what_belongs_to_no_store_and_nobody_is_reached_by_nothing_else() {
    let (fixture, engine, fake) = with_traces();
    fixture.put("/a.md", "a sesame");
    fixture.put("/a.md", "nothing");
    let of_store = Scope { stores: Some(vec![fixture.store]), ..Scope::all(fixture.workspace) };
    redacted(&engine, &of_store, &sesame()).unwrap();
    let by_somebody = Selection { actors: vec![actor()], ..sesame() };
    redacted(&engine, &Scope::all(fixture.workspace), &by_somebody).unwrap();
    assert_eq!(fake.get().entries.len(), 2);
    assert!(!fake.get().asked.contains(&"hold"), "{:?}", fake.get().asked);
    // Copies of rows go with every redaction.
    assert_eq!(fake.get().asked, ["erase copies", "erase copies"]);
}

#[test]
fn a_redaction_that_did_not_reach_them_fails_and_can_be_run_again() {
    let (fixture, engine, fake) = with_traces();
    fixture.put("/a.md", "a sesame");
    let scope = Scope::all(fixture.workspace);
    fake.get().is_broken = true;
    let failed = redacted(&engine, &scope, &sesame());
    assert_eq!(kind(failed), ErrorKind::EraseIncomplete);
    fake.get().is_broken = false;
    redacted(&engine, &scope, &sesame()).unwrap();
    assert_eq!(fake.get().entries, ["harmless"]);
}
