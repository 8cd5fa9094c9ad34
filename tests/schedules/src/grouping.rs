//! No write is acknowledged before the commit that holds it, and no writer waits forever.

use std::time::Duration;

use quipu_core::backend::Purpose;
use quipu_core::{Error, ErrorKind};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;

use crate::group::{Database, GroupCommit, Hooks};
use crate::sync::Instant;

/// A database that keeps numbers.
#[derive(Default)]
struct Numbers {
    committed: Arc<Mutex<Vec<u64>>>,
    open: Option<Vec<u64>>,
    changes: u64,
    /// How many commits are to fail.
    failures: u64,
}

impl Database for Numbers {
    fn begin(&mut self, _: Purpose, _: Instant) -> Result<(), Error> {
        assert!(self.open.is_none(), "a transaction is open already");
        self.open = Some(Vec::new());
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        let numbers = self.open.take().expect("a transaction is open");
        thread::yield_now();
        if self.failures > 0 && !numbers.is_empty() {
            self.failures -= 1;
            return Err(Error::new(ErrorKind::StorageFull, "on purpose"));
        }
        self.committed.lock().unwrap().extend(numbers);
        Ok(())
    }

    fn roll_back(&mut self) {
        self.open = None;
    }

    fn is_in_transaction(&self) -> bool {
        self.open.is_some()
    }

    fn changes_count(&self) -> u64 {
        self.changes
    }
}

impl Numbers {
    fn add(&mut self, number: u64) {
        self.changes += 1;
        self.open.as_mut().expect("a transaction is open").push(number);
    }
}

struct World {
    group: GroupCommit<Numbers>,
    committed: Arc<Mutex<Vec<u64>>>,
}

impl World {
    fn new(failures: u64) -> Arc<Self> {
        let committed = Arc::default();
        let numbers = Numbers { committed: Arc::clone(&committed), failures, ..Numbers::default() };
        let busy = || Error::new(ErrorKind::StorageBusy, "somebody else writes");
        let hooks = Hooks { committed: Box::new(|| ()), busy: Box::new(busy) };
        Arc::new(Self { group: GroupCommit::new(numbers, hooks), committed })
    }

    fn holds(&self, number: u64) -> usize {
        self.committed.lock().unwrap().iter().filter(|other| **other == number).count()
    }

    fn deadline() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    /// Writes a number, and checks that the answer is true.
    fn write(&self, number: u64) {
        let written = self.group.run(Self::deadline(), &mut |numbers| {
            numbers.add(number);
            Ok(())
        });
        match written {
            Ok(()) => assert_eq!(self.holds(number), 1, "{number} is acknowledged"),
            Err(_) => assert_eq!(self.holds(number), 0, "{number} is refused"),
        }
    }

    /// Writes a number and then fails, so that it must not stay.
    fn fail(&self, number: u64) {
        let written = self.group.run(Self::deadline(), &mut |numbers| {
            numbers.add(number);
            Err(Error::invalid("on purpose"))
        });
        assert!(written.is_err());
        assert_eq!(self.holds(number), 0, "{number} was rolled back");
    }

    /// Is refused before it changes anything.
    fn refuse(&self) {
        let refused = self.group.run(Self::deadline(), &mut |_| Err(Error::invalid("on purpose")));
        assert!(refused.is_err());
    }
}

/// Runs one closure in each thread.
fn together(world: &Arc<World>, work: Vec<fn(&World)>) {
    let threads: Vec<_> = work
        .into_iter()
        .map(|work| {
            let world = Arc::clone(world);
            thread::spawn(move || work(&world))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn an_acknowledged_write_is_committed() {
    crate::check(|| {
        let world = World::new(0);
        together(
            &world,
            vec![
                |world| (0..2).for_each(|number| world.write(number)),
                |world| (10..12).for_each(|number| world.write(number)),
                |world| (0..3).for_each(|_| world.refuse()),
            ],
        );
    });
}

#[test]
fn a_failure_rolls_back_its_own_changes_only() {
    crate::check(|| {
        let world = World::new(0);
        together(
            &world,
            vec![
                |world| (0..2).for_each(|number| world.write(number)),
                |world| (10..12).for_each(|number| world.fail(number)),
                |world| world.write(20),
            ],
        );
    });
}

#[test]
fn a_commit_that_fails_acknowledges_nobody() {
    crate::check(|| {
        let world = World::new(1);
        together(
            &world,
            vec![|world| world.write(1), |world| world.write(2), |world| {
                (0..2).for_each(|_| world.refuse())
            }],
        );
    });
}

#[test]
fn exclusive_work_finds_no_open_transaction() {
    crate::check(|| {
        let world = World::new(0);
        together(
            &world,
            vec![
                |world| (0..2).for_each(|number| world.write(number)),
                |world| {
                    let alone = world.group.outside_transaction(World::deadline(), |numbers| {
                        assert!(!numbers.is_in_transaction());
                        Ok(())
                    });
                    drop(alone);
                },
                |world| {
                    let mut add = |numbers: &mut Numbers| {
                        numbers.add(30);
                        Ok(())
                    };
                    if world.group.run_alone(Purpose::Removal, World::deadline(), &mut add).is_ok() {
                        assert_eq!(world.holds(30), 1);
                    }
                },
            ],
        );
        // Nobody has left a transaction open.
        let is_open =
            world.group.outside_transaction(World::deadline(), |numbers| Ok(numbers.is_in_transaction()));
        assert!(!is_open.unwrap());
    });
}
