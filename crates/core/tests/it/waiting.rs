//! Engines that wait for nothing, or for no writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use quipu_core::backend::{Backend, Condition, LookWork, Purpose, ReadWork, Sequence, WriteWork};
use quipu_core::engine::{SearchFilter, SearchMode, SearchRequest};
use quipu_core::model::View;
use quipu_core::settings::Limits;
use quipu_core::{Engine, Error};
use quipu_testkit::InMemoryBackend;

use crate::support::{Bench, actor, bench, bench_over, content, path};

/// A backend that answers nothing without its disk, and whose indexers can be made to wait.
#[derive(Debug, Default)]
struct OnDisk {
    inner: InMemoryBackend,
    is_held: AtomicBool,
}

impl Backend for OnDisk {
    fn read(&self, work: &mut ReadWork<'_>) -> Result<(), Error> {
        self.inner.read(work)
    }

    fn read_now(&self, _: &mut ReadWork<'_>) -> Option<Result<(), Error>> {
        None
    }

    fn write(&self, purpose: Purpose, work: &mut WriteWork<'_>) -> Result<(), Error> {
        while purpose == Purpose::Derived && self.is_held.load(Ordering::SeqCst) {
            thread::park();
        }
        self.inner.write(purpose, work)
    }

    fn wait(&self, seen: Sequence, patience: Duration) -> Result<Sequence, Error> {
        self.inner.wait(seen, patience)
    }

    fn watch(&self, patience: Duration, look: &mut LookWork<'_>) -> Result<(), Error> {
        self.inner.watch(patience, look)
    }

    fn erase(&self) -> Result<(), Error> {
        self.inner.erase()
    }

    fn copy_in_memory(&self) -> Result<Option<Arc<dyn Backend>>, Error> {
        self.inner.copy_in_memory()
    }

    fn is_erased(&self) -> Result<bool, Error> {
        self.inner.is_erased()
    }

    fn condition(&self) -> Result<Condition, Error> {
        self.inner.condition()
    }

    fn verify(&self) -> Result<Vec<String>, Error> {
        self.inner.verify()
    }

    fn verify_index(&self) -> Result<Vec<String>, Error> {
        self.inner.verify_index()
    }

    fn rebuild(&self) -> Result<(), Error> {
        self.inner.rebuild()
    }
}

fn found(bench: &Bench, engine: &Engine) -> Result<usize, Error> {
    let request = SearchRequest {
        stores: vec![bench.store],
        text: "green".to_owned(),
        mode: SearchMode::Text,
        what: Vec::new(),
        filter: SearchFilter::default(),
        offset: 0,
        limit: 10,
    };
    Ok(engine.search(&request)?.hits.len())
}

#[test]
fn what_needs_the_disk_is_not_answered_without_waiting() {
    let bench = bench_over(Arc::new(OnDisk::default()), Limits::default());
    bench.put("/a", "green");
    let read = |engine: &Engine| engine.memory_at(bench.store, &path("/a"), View::Full);
    assert!(bench.engine.without_waiting(read).is_none());
    assert!(bench.engine.without_writing(read).unwrap().is_ok());
}

#[test]
fn a_change_is_refused_by_an_engine_that_cannot_write() {
    let bench = bench();
    let create =
        |engine: &Engine| engine.create(&actor(), bench.store, &path("/a"), &content("green"));
    assert!(bench.engine.without_waiting(create).is_none());
    assert!(bench.engine.without_writing(create).is_none());
    assert_eq!(bench.text("/a"), None);
}

#[test]
fn a_refusal_counts_even_if_the_work_swallows_it() {
    let bench = bench();
    let swallow = |engine: &Engine| {
        drop(engine.create(&actor(), bench.store, &path("/a"), &content("green")));
        Ok(())
    };
    assert!(bench.engine.without_writing(swallow).is_none());
}

#[test]
fn an_index_that_is_up_to_date_is_searched_without_writing() {
    let bench = bench();
    bench.put("/a", "green");
    assert!(bench.engine.without_writing(|engine| found(&bench, engine)).is_none());
    while bench.engine.index_pending().unwrap() > 0 {}
    let answer = bench.engine.without_writing(|engine| found(&bench, engine));
    assert_eq!(answer.unwrap().unwrap(), 1);
}

#[test]
fn a_search_without_writing_does_not_wait_for_an_indexer_that_waits() {
    let backend = Arc::new(OnDisk::default());
    let bench = bench_over(Arc::clone(&backend) as _, Limits::default());
    bench.put("/a", "green");
    backend.is_held.store(true, Ordering::SeqCst);
    let engine = bench.engine.clone();
    // It is left behind when the test ends.
    thread::spawn(move || engine.index_pending());
    // Whether or not the indexer has its turn already, nobody waits for it.
    for _ in 0..100 {
        assert!(bench.engine.without_writing(|engine| found(&bench, engine)).is_none());
        thread::yield_now();
    }
}
