//! Writes of many threads in one transaction stay independent of each other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use quipu_core::Error;
use quipu_core::engine::Precondition;
use quipu_core::model::View;

use crate::support::{Fixture, actor, content, engine, fixture, path};

/// Runs `work` `turns_count` times in each of `threads_count` threads; it gets the thread's and the turn's number.
fn in_threads(threads_count: usize, turns_count: usize, work: impl Fn(usize, usize) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for thread in 0..threads_count {
            scope.spawn(move || (0..turns_count).for_each(|turn| work(thread, turn)));
        }
    });
}

fn create(fixture: &Fixture, at: &str) -> Result<(), Error> {
    fixture.engine.create(&actor(), fixture.store, &path(at), &content("text")).map(drop)
}

fn assert_sound(fixture: &Fixture, memories_count: u64) {
    let usage = fixture.engine.usage(fixture.store).expect("it is read");
    assert_eq!(usage.memories_count, memories_count);
    assert_eq!(fixture.engine.check().expect("the check runs").problems, []);
}

#[test]
fn every_thread_gets_its_own_answer() {
    let fixture = fixture();
    fixture.put("/taken", "x");
    in_threads(8, 40, |thread, turn| {
        assert!(create(&fixture, &format!("/{thread}/{turn}")).is_ok());
        assert!(create(&fixture, "/taken").is_err());
    });
    assert_sound(&fixture, 8 * 40 + 1);
}

/// A rename that fails in its middle has already changed rows, which takes back the whole batch;
/// the other members then run once more and must not notice.
#[test]
fn a_failure_in_the_middle_of_one_write_does_not_harm_the_others() {
    let fixture = fixture();
    fixture.put("/a/1", "x");
    fixture.put(&format!("/a/{}", "y".repeat(1000)), "x");
    let too_long = path(&format!("/{}", "z".repeat(40)));
    in_threads(6, 30, |thread, turn| {
        if thread == 0 {
            let moved = fixture.engine.rename(&actor(), fixture.store, &path("/a"), &too_long);
            assert!(moved.is_err());
        } else {
            assert!(create(&fixture, &format!("/{thread}/{turn}")).is_ok());
        }
    });
    assert!(fixture.engine.memory_at(fixture.store, &path("/a/1"), View::Full).is_ok());
    assert_sound(&fixture, 5 * 30 + 2);
}

#[test]
fn a_panic_in_one_write_does_not_harm_the_others() {
    let fixture = fixture();
    fixture.put("/counter", "0");
    let counter = path("/counter");
    in_threads(4, 25, |thread, turn| {
        let explode = thread == 0 && turn % 5 == 0;
        let add_one = |_: &_, text: &str| {
            assert!(!explode, "on purpose");
            let count: usize = text.parse().expect("a number");
            Ok::<_, Error>((count + 1).to_string())
        };
        let edit = || fixture.engine.edit(&actor(), fixture.store, &counter, add_one);
        assert_eq!(catch_unwind(AssertUnwindSafe(edit)).is_err(), explode);
    });
    let memory = fixture.engine.memory_at(fixture.store, &counter, View::Full).unwrap();
    assert_eq!(memory.content.unwrap().as_str(), "95");
}

#[test]
fn many_handles_of_one_process_share_the_work() {
    let fixture = fixture();
    let handles: Vec<_> = (0..4).map(|_| engine(fixture.directory.path())).collect();
    in_threads(4, 25, |thread, turn| {
        let target = (&path(&format!("/{thread}/{turn}")), &content("text"));
        handles[thread].put(&actor(), fixture.store, target, Precondition::None).unwrap();
    });
    assert_sound(&fixture, 100);
}
