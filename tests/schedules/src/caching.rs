//! A cached value is never older than what was acknowledged.

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::seqlock::SeqlockCache;

/// A database of one number, behind a count of turns.
#[derive(Default)]
struct World {
    turns: AtomicU64,
    database: AtomicU64,
    acknowledged: AtomicU64,
    cache: SeqlockCache<Option<u64>>,
}

impl World {
    fn write(&self, number: u64) {
        self.turns.fetch_add(1, Ordering::SeqCst);
        self.database.store(number, Ordering::SeqCst);
        self.turns.fetch_add(1, Ordering::SeqCst);
        self.acknowledged.store(number, Ordering::SeqCst);
    }

    fn count(&self) -> Option<u64> {
        Some(self.turns.load(Ordering::SeqCst)).filter(|turns| turns % 2 == 0)
    }

    fn read(&self) -> u64 {
        if let Some(Some(number)) = self.cache.with(|| self.count(), |cached| *cached) {
            return number;
        }
        let turn = self.count();
        let number = self.database.load(Ordering::SeqCst);
        if let Some(turn) = turn.filter(|_| turn == self.count()) {
            self.cache.add(turn, |cached| *cached = Some(number));
        }
        number
    }
}

#[test]
fn no_reading_is_older_than_what_was_acknowledged_before_it() {
    crate::check(|| {
        let world = Arc::new(World::default());
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    for _ in 0..3 {
                        let before = world.acknowledged.load(Ordering::SeqCst);
                        let number = world.read();
                        assert!(number >= before, "{number} was read after {before}");
                    }
                })
            })
            .collect();
        for number in 1..=3 {
            world.write(number);
        }
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(world.read(), 3);
    });
}
