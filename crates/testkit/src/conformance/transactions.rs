//! Snapshots, atomicity, and waiting for changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::backend::{Backend, Event, Purpose, Sequence, Stamp, Subject, Writer};
use quipu_core::model::{Name, Store, View};
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

/// Runs `work` 20 times in each of `threads_count` threads, which share the handles.
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

/// "From its first call on, no other write of any process overlaps it": without an announcement, and with
/// that of one store.
pub fn writes_do_not_overlap(fixture: &Fixture) {
    let store = Rows::store(1);
    fixture.with_stores(&[&store]);
    let running_count = AtomicUsize::new(0);
    let run_alone = |writer: &mut dyn Writer| {
        writer.usage(store.id)?;
        assert_eq!(running_count.fetch_add(1, Ordering::SeqCst), 0);
        thread::yield_now();
        running_count.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    let handles = [Arc::clone(&fixture.backend), fixture.again()];
    write_from_many_threads(&handles, 8, |writer| {
        writer.workspaces()?;
        run_alone(writer)
    });
    write_from_many_threads(&handles, 8, |writer| {
        writer.read_ahead(store.id, Subject::Store)?;
        run_alone(writer)
    });
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

/// "It returns immediately if there is such a change already."
pub fn waiting_returns_at_once_when_there_is_a_change_already(fixture: &Fixture) {
    put_store(&*fixture.backend, 1);
    let newest = fixture.backend.wait(Sequence(0), LONG).expect("the wait succeeds");
    assert_eq!(newest, Sequence(1));
}

/// "Or until the timeout, and returns the highest sequence."
pub fn waiting_ends_with_its_timeout(fixture: &Fixture) {
    put_store(&*fixture.backend, 1);
    let timeout = Duration::from_millis(30);
    let start = Instant::now();
    assert_eq!(fixture.backend.wait(Sequence(1), timeout).expect("it waits"), Sequence(1));
    assert!(start.elapsed() >= timeout);
    assert_eq!(fixture.backend.wait(Sequence(9), Duration::ZERO).expect("it waits"), Sequence(1));
}

/// "Blocks until any process commits a change with a higher sequence": this one.
pub fn waiting_ends_with_a_change_of_the_same_handle(fixture: &Fixture) {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| fixture.backend.wait(Sequence(0), LONG));
        put_store(&*fixture.backend, 1);
        let newest = waiter.join().expect("no panic").expect("the wait succeeds");
        assert_eq!(newest, Sequence(1));
    });
}

/// "After every commit of any process, whether or not it has a change."
pub fn a_watch_is_called_after_commits_without_a_change(fixture: &Fixture) {
    let put = |backend: &dyn Backend, number: u64| {
        let work = &mut |writer: &mut dyn Writer| writer.put_cursor("watched", Sequence(number));
        backend.write(Purpose::Change, work).expect("it is written");
    };
    for (writer, goal) in [(Arc::clone(&fixture.backend), 1), (fixture.again(), 2)] {
        let (calls, called) = mpsc::channel();
        let is_done = &mut || {
            calls.send(()).expect("somebody listens");
            Ok(fixture.read(|reader| reader.cursor("watched")) == Some(Sequence(goal)))
        };
        let start = Instant::now();
        thread::scope(|scope| {
            let watching = scope.spawn(move || fixture.backend.watch(LONG, is_done));
            called.recv().expect("it is called at once");
            put(&*writer, goal);
            watching.join().expect("no panic").expect("the watch succeeds");
        });
        assert!(start.elapsed() < LONG, "it was only seen at the timeout");
    }
}

/// "Until … the timeout passes", and "an error of `is_done` is returned as it is".
pub fn a_watch_ends_with_its_timeout_or_an_error(fixture: &Fixture) {
    let timeout = Duration::from_millis(30);
    let start = Instant::now();
    fixture.backend.watch(timeout, &mut || Ok(false)).expect("it waits");
    assert!(start.elapsed() >= timeout);
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
    assert!(start.elapsed() < LONG, "a change was only seen at the timeout");
}

/// "The snapshot holds every write that has returned", also one of another handle.
pub fn reading_without_waiting_is_never_stale(fixture: &Fixture) {
    let other = fixture.again();
    put_store(&*fixture.backend, 1);
    let name = |backend: &dyn Backend| -> Option<String> {
        let mut name = None;
        let read = backend.read_now(&mut |reader| {
            name = reader.store(Rows::store(1).id)?.map(|store| store.name.to_string());
            Ok(())
        });
        read.map(|read| read.expect("it reads")).and(name)
    };
    for number in 0..20 {
        let renamed = format!("name {number}");
        let store = Store { name: Name::new(&*renamed).expect("a name"), ..Rows::store(1) };
        let writer = if number % 2 == 0 { &fixture.backend } else { &other };
        writer.write(Purpose::Change, &mut |writer| writer.put_store(&store)).expect("it writes");
        for backend in [&fixture.backend, &other] {
            // The first one may need the disk; an ordinary read makes the next one possible.
            for _ in 0..2 {
                assert!(name(&**backend).is_none_or(|name| name == renamed), "{renamed}");
                backend.read(&mut |reader| reader.store(store.id).map(drop)).expect("it reads");
            }
        }
    }
}

/// "It changes no answer, neither before nor after the transaction's own changes."
pub fn reading_ahead_changes_no_answer(fixture: &Fixture) {
    let (store, absent) = (Rows::store(1), Rows::store(2));
    fixture.with_stores(&[&store]);
    let before = Rows::memory(&store, 1, "/a", "old");
    let after = Rows::changed(&before, 2, "/a", "longer");
    fixture.with_memories(1, &[&before]);
    let subjects = [
        Subject::Store,
        Subject::At(&before.path, View::Full),
        Subject::Memory(before.id, View::Basic),
        Subject::Memories([before.id, after.id]),
        Subject::Version(before.version),
    ];
    for subject in subjects {
        let failed = fixture.backend.write(Purpose::Change, &mut |writer| {
            writer.read_ahead(absent.id, subject)?;
            assert_eq!(writer.store(absent.id)?, None);
            writer.read_ahead(store.id, subject)?;
            let head = |writer: &dyn Writer| writer.memory_at(store.id, &before.path, View::Full);
            assert_eq!(head(writer)?.as_ref(), Some(&before));
            assert_eq!(writer.usage(store.id)?.size_bytes, 3);
            writer.commit(&Rows::commit(2, Some(&before), Some(&after)))?;
            assert_eq!(head(writer)?.as_ref(), Some(&after));
            assert_eq!(writer.usage(store.id)?.size_bytes, 6);
            Err(Error::invalid("rolled back for the next subject"))
        });
        assert_eq!(*failed.expect_err("it fails").kind(), ErrorKind::InvalidInput);
    }
}

fn record_next(writer: &mut dyn Writer) -> Result<Stamp, Error> {
    let stamp = writer.next_stamp(Rows::at(1))?;
    let change = Rows::change(stamp.sequence.0, &Rows::store(1), Event::StoreUpdated);
    writer.record(&quipu_core::backend::Change { at: stamp.at, ..change })?;
    Ok(stamp)
}

/// "The sequence is the one after the newest change", that of the same transaction too.
pub fn stamps_of_one_transaction_follow_each_other(fixture: &Fixture) {
    fixture.with_stores(&[&Rows::store(1)]);
    fixture.write(|writer| {
        let stamps = [record_next(writer)?, record_next(writer)?, record_next(writer)?];
        assert_eq!(stamps.map(|stamp| stamp.sequence.0), [1, 2, 3]);
        assert!(stamps.is_sorted_by(|left, right| left.at < right.at));
        assert_eq!(stamps[2].previous, Some(stamps[1].at));
        Ok(())
    });
}

/// "A stamp whose transaction fails is given out again, so the sequence has no gaps."
pub fn a_stamp_of_a_failed_write_is_given_out_again(fixture: &Fixture) {
    fixture.with_stores(&[&Rows::store(1)]);
    fixture.write(|writer| record_next(writer).map(drop));
    let mut lost = None;
    let failed = fixture.backend.write(Purpose::Change, &mut |writer| {
        lost = Some(record_next(writer)?);
        Err(Error::invalid("on purpose"))
    });
    assert!(failed.is_err());
    let mut next = None;
    fixture.write(|writer| {
        next = Some(record_next(writer)?);
        Ok(())
    });
    assert_eq!(next, lost);
    assert_eq!(next.map(|stamp| stamp.sequence), Some(Sequence(2)));
}

/// "Until the transaction ends, no other writer of any process gets the same."
pub fn no_two_writers_get_the_same_stamp(fixture: &Fixture) {
    fixture.with_stores(&[&Rows::store(1)]);
    let handles = [Arc::clone(&fixture.backend), fixture.again()];
    write_from_many_threads(&handles, 6, |writer| record_next(writer).map(drop));
    let changes = fixture.read(|reader| reader.changes(Sequence(0), 1000));
    let sequences: Vec<_> = changes.iter().map(|change| change.sequence.0).collect();
    assert_eq!(sequences, (1..=120).collect::<Vec<_>>());
    assert!(changes.is_sorted_by(|left, right| left.at < right.at));
}

/// "Every later call on it fails. … Other handles and other processes are not affected."
pub fn a_closed_handle_fails_and_others_do_not(fixture: &Fixture) {
    let other = fixture.again();
    put_store(&*fixture.backend, 1);
    // Read twice, so that what can be answered from memory is.
    assert_eq!((stores_count(&*fixture.backend), stores_count(&*other)), (1, 1));
    let store = |backend: &dyn Backend| {
        backend.read(&mut |reader| reader.store(Rows::store(1).id).map(drop))
    };
    store(&*fixture.backend).expect("it is open");
    fixture.backend.condition().expect("it is open");
    fixture.backend.close().expect("it closes");
    let failures = [
        store(&*fixture.backend),
        fixture.backend.read_now(&mut |_| Ok(())).unwrap_or_else(|| store(&*fixture.backend)),
        fixture.backend.write(Purpose::Change, &mut |_| Ok(())),
        fixture.backend.wait(Sequence(0), LONG).map(drop),
        fixture.backend.condition().map(drop),
    ];
    for (number, failure) in failures.into_iter().enumerate() {
        let error = failure.expect_err("it is closed");
        assert_eq!(*error.kind(), ErrorKind::StorageUnavailable, "call {number}");
    }
    put_store(&*other, 2);
    assert_eq!(stores_count(&*other), 2);
    assert_eq!(stores_count(&*fixture.again()), 2);
}

/// "And so does a wait for changes that is under way."
pub fn closing_ends_a_wait(fixture: &Fixture) {
    put_store(&*fixture.backend, 1);
    let (calls, called) = mpsc::channel();
    let start = Instant::now();
    thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            fixture.backend.watch(LONG, &mut || {
                // Nobody listens after the first call.
                calls.send(()).unwrap_or_default();
                fixture.backend.read(&mut |reader| reader.newest_change().map(drop))?;
                Ok(false)
            })
        });
        called.recv().expect("it is called at once");
        fixture.backend.close().expect("it closes");
        assert!(waiter.join().expect("no panic").is_err());
    });
    assert!(start.elapsed() < LONG, "it only ended at the timeout");
}
