//! Snapshots, atomicity, and waiting for changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::{Backend, Event, Purpose, Sequence, Writer};
use quipu_core::model::{Name, Store};
use quipu_core::{Error, ErrorKind};

use super::{Fixture, Rows};

/// Longer than any test should wait; nothing depends on how long exactly.
const LONG: Duration = Duration::from_secs(30);

fn put_store(backend: &dyn Backend, number: i64) {
    backend
        .write(Purpose::Change, &mut |writer| {
            let number_of_change = u64::try_from(number).expect("a small number");
            writer.put_store(&Rows::store(number))?;
            let change = Rows::change(number_of_change, &Rows::store(number), Event::StoreCreated);
            writer.record(&change)
        })
        .expect("the write succeeds");
}

fn stores_count(backend: &dyn Backend) -> usize {
    let mut count = 0;
    backend
        .read(&mut |reader| {
            count = reader.stores(&Rows::all_stores())?.len();
            Ok(())
        })
        .expect("the read succeeds");
    count
}

/// Runs `work` 20 times in each of so many threads, which share the handles.
fn write_from_many_threads(
    handles: &[Arc<dyn Backend>],
    threads_count: usize,
    work: impl Fn(&mut dyn Writer) -> Result<(), Error> + Sync,
) {
    let twenty_times = |handle: &Arc<dyn Backend>| {
        for _ in 0..20 {
            handle.write(Purpose::Change, &mut |writer| work(writer)).expect("the write succeeds");
        }
    };
    thread::scope(|scope| {
        for handle in handles.iter().cycle().take(threads_count) {
            scope.spawn(|| twenty_times(handle));
        }
    });
}

/// "The snapshot holds every write that has returned."
pub fn a_snapshot_holds_every_write_that_has_returned(fixture: &Fixture) {
    for number in 1..=3 {
        put_store(&*fixture.backend, number);
        assert_eq!(stores_count(&*fixture.backend), usize::try_from(number).unwrap_or_default());
    }
}

/// "Nothing that happens during `work` changes it."
pub fn nothing_that_happens_during_a_read_changes_its_snapshot(fixture: &Fixture) {
    put_store(&*fixture.backend, 1);
    fixture.read(|reader| {
        assert_eq!(reader.stores(&Rows::all_stores())?.len(), 1);
        thread::scope(|scope| {
            scope.spawn(|| put_store(&*fixture.backend, 2));
        });
        assert_eq!(reader.stores(&Rows::all_stores())?.len(), 1);
        assert_eq!(reader.newest_change()?.0, Sequence(1));
        Ok(())
    });
    assert_eq!(stores_count(&*fixture.backend), 2);
}

/// "An error of `work` is returned as it is."
pub fn an_error_of_a_read_is_returned_as_it_is(fixture: &Fixture) {
    let error = fixture.backend.read(&mut |_| Err(Error::invalid("no"))).expect_err("it fails");
    assert_eq!((error.kind(), error.message()), (&ErrorKind::InvalidInput, "no"));
}

/// "When `work` fails, its error is returned and nothing has changed."
pub fn a_failed_write_changes_nothing_and_returns_its_error(fixture: &Fixture) {
    fixture.with_stores(&[]);
    let error = fixture
        .backend
        .write(Purpose::Change, &mut |writer| {
            writer.put_store(&Rows::store(1))?;
            Err(Error::invalid("no"))
        })
        .expect_err("it fails");
    assert_eq!((error.kind(), error.message()), (&ErrorKind::InvalidInput, "no"));
    assert_eq!(stores_count(&*fixture.backend), 0);
    put_store(&*fixture.backend, 2);
    assert_eq!(stores_count(&*fixture.backend), 1);
}

/// A panic counts as a failure, and the backend goes on.
pub fn a_write_that_panics_changes_nothing(fixture: &Fixture) {
    fixture.with_stores(&[]);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        fixture.backend.write(Purpose::Change, &mut |writer| {
            writer.put_store(&Rows::store(1))?;
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(stores_count(&*fixture.backend), 0);
    put_store(&*fixture.backend, 2);
    assert_eq!(stores_count(&*fixture.backend), 1);
}

/// "It reads its own changes."
pub fn a_write_reads_its_own_changes(fixture: &Fixture) {
    fixture.write(|writer| {
        writer.put_store(&Rows::store(1))?;
        assert!(writer.store(Rows::store(1).id)?.is_some());
        Ok(())
    });
}

/// "Runs `work` in a transaction that no other write of any process overlaps."
pub fn writes_do_not_overlap(fixture: &Fixture) {
    let running_count = AtomicUsize::new(0);
    let alone = |_: &mut dyn Writer| {
        assert_eq!(running_count.fetch_add(1, Ordering::SeqCst), 0);
        thread::yield_now();
        running_count.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    let handles = [Arc::clone(&fixture.backend), fixture.again()];
    write_from_many_threads(&handles, 8, alone);
}

/// "Seen by every later read", also through another handle.
pub fn a_write_is_seen_through_every_handle(fixture: &Fixture) {
    let other = fixture.again();
    put_store(&*fixture.backend, 1);
    assert_eq!(stores_count(&*other), 1);
    put_store(&*other, 2);
    assert_eq!(stores_count(&*fixture.backend), 2);
}

/// Many writers read and change one row without losing an update.
pub fn writers_of_many_handles_lose_no_update(fixture: &Fixture) {
    let counter = Rows::store(1);
    let zero = Store { name: Name::new("0").expect("a name"), ..counter };
    fixture.with_stores(&[&zero]);
    let add_one = |writer: &mut dyn Writer| {
        let mut store = writer.store(zero.id)?.expect("the store is there");
        let count: u32 = store.name.as_str().parse().expect("a number");
        store.name = Name::new((count + 1).to_string())?;
        writer.put_store(&store)
    };
    let handles = [Arc::clone(&fixture.backend), fixture.again(), fixture.again()];
    write_from_many_threads(&handles, 9, add_one);
    let store = fixture.read(|reader| reader.store(zero.id)).expect("the store is there");
    assert_eq!(store.name.as_str(), "180");
}

/// "It returns at once if there is such a change already."
pub fn waiting_returns_at_once_when_there_is_a_change_already(fixture: &Fixture) {
    put_store(&*fixture.backend, 1);
    let newest = fixture.backend.wait(Sequence(0), LONG).expect("the wait succeeds");
    assert_eq!(newest, Sequence(1));
}

/// "Or until `patience` ends, and returns the highest sequence."
pub fn waiting_ends_with_its_patience(fixture: &Fixture) {
    put_store(&*fixture.backend, 1);
    let patience = Duration::from_millis(30);
    let start = Instant::now();
    assert_eq!(fixture.backend.wait(Sequence(1), patience).expect("it waits"), Sequence(1));
    assert!(start.elapsed() >= patience);
    assert_eq!(fixture.backend.wait(Sequence(9), Duration::ZERO).expect("it waits"), Sequence(1));
}

/// "Waits until a change with a higher sequence is committed": by the same handle.
pub fn waiting_ends_with_a_change_of_the_same_handle(fixture: &Fixture) {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| fixture.backend.wait(Sequence(0), LONG));
        put_store(&*fixture.backend, 1);
        let newest = waiter.join().expect("no panic").expect("the wait succeeds");
        assert_eq!(newest, Sequence(1));
    });
}

/// "After every commit of any process, whether or not it has a change."
pub fn a_watch_looks_after_commits_without_a_change(fixture: &Fixture) {
    let put = |backend: &dyn Backend, number: u64| {
        let work = &mut |writer: &mut dyn Writer| writer.put_cursor("watched", Sequence(number));
        backend.write(Purpose::Change, work).expect("it is written");
    };
    for (writer, goal) in [(Arc::clone(&fixture.backend), 1), (fixture.again(), 2)] {
        let (looked, looks) = mpsc::channel();
        let look = &mut || {
            looked.send(()).expect("somebody listens");
            Ok(fixture.read(|reader| reader.cursor("watched")) == Some(Sequence(goal)))
        };
        let start = Instant::now();
        thread::scope(|scope| {
            let watching = scope.spawn(move || fixture.backend.watch(LONG, look));
            looks.recv().expect("it looks at once");
            put(&*writer, goal);
            watching.join().expect("no panic").expect("the watch succeeds");
        });
        assert!(start.elapsed() < LONG, "it was only seen when the patience ended");
    }
}

/// "Until `patience` ends", and "an error of `look` is returned as it is".
pub fn a_watch_ends_with_its_patience_or_an_error(fixture: &Fixture) {
    let patience = Duration::from_millis(30);
    let start = Instant::now();
    fixture.backend.watch(patience, &mut || Ok(false)).expect("it waits");
    assert!(start.elapsed() >= patience);
    let failed = fixture.backend.watch(LONG, &mut || Err(Error::invalid("on purpose")));
    assert_eq!(failed.expect_err("it fails").message(), "on purpose");
}

/// "By any process": through a handle of its own.
pub fn waiting_ends_with_a_change_of_another_handle(fixture: &Fixture) {
    let other = fixture.again();
    let start = Instant::now();
    for number in 1..=5 {
        let seen = Sequence(u64::try_from(number - 1).expect("a small number"));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| other.wait(seen, LONG));
            put_store(&*fixture.backend, number);
            let newest = waiter.join().expect("no panic").expect("the wait succeeds");
            assert!(newest > seen);
        });
    }
    assert!(start.elapsed() < LONG, "a change was only seen when the patience ended");
}
