//! Threads that index: one leads, the others follow.

use std::time::Duration;

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use crate::turn::{Asked, Turn};

const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
struct World {
    turn: Turn,
    /// How many threads write the index.
    writing_count: AtomicUsize,
    /// How many changes there are, and how many of them are indexed.
    changes_count: AtomicUsize,
    indexed_count: AtomicUsize,
}

impl World {
    /// Writes the index, which only one thread at a time may do.
    fn write(&self) {
        assert_eq!(self.writing_count.fetch_add(1, Ordering::SeqCst), 0);
        let changes_count = self.changes_count.load(Ordering::SeqCst);
        self.indexed_count.fetch_max(changes_count, Ordering::SeqCst);
        thread::yield_now();
        self.writing_count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Makes a change and catches up with it; returns how often that took a leader.
    fn change_and_search(&self) -> usize {
        let goal = self.changes_count.fetch_add(1, Ordering::SeqCst) + 1;
        let mut followed_count = 0;
        while self.indexed_count.load(Ordering::SeqCst) < goal {
            match self.turn.lead_or_follow(PATIENCE) {
                Asked::Leads(_turn) => self.write(),
                Asked::Followed => followed_count += 1,
                // The changes would be searched in memory.
                Asked::GaveUp => return followed_count,
            }
        }
        followed_count
    }
}

/// A leader that began before the change may miss it, but the next one cannot.
#[test]
fn nobody_follows_more_than_two_leaders() {
    crate::check(|| {
        let world = Arc::new(World::default());
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let world = Arc::clone(&world);
                thread::spawn(move || (0..2).map(|_| world.change_and_search()).max())
            })
            .collect();
        for thread in threads {
            assert!(thread.join().unwrap().is_some_and(|count| count <= 2));
        }
    });
}

#[test]
fn a_builder_is_alone_and_holds_nobody_up() {
    crate::check(|| {
        let world = Arc::new(World::default());
        let builder = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let _turn = world.turn.build();
                world.write();
            })
        };
        let searcher = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.change_and_search())
        };
        builder.join().unwrap();
        assert!(searcher.join().unwrap() <= 2);
        assert!(matches!(world.turn.lead_or_follow(PATIENCE), Asked::Leads(_)));
    });
}
