//! Threads that share the transactions of groups, as `quipu-postgres` has them do.

use std::time::Duration;

use shuttle::sync::Arc;
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

use crate::queue::{Called, Lane, Queue, Seat, Seats};
use crate::sync::Instant;

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(30);

/// What a group ends with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Committed,
    /// The store was held by somebody else.
    Held,
}

/// The members that have not run yet, and those that have.
struct Group {
    lane: Lane<u8>,
    next: Seats<u8, usize, Box<Group>, Outcome>,
    run: Seats<u8, usize, Box<Group>, Outcome>,
}

type Place = Arc<Seat<u8, usize, Box<Group>, Outcome>>;

struct World {
    queue: Queue<u8, usize, Box<Group>, Outcome>,
    /// Who has run since the last commit, which belongs to one group at a time.
    uncommitted: Mutex<Vec<usize>>,
    committed: Mutex<Vec<usize>>,
    is_running: AtomicBool,
    groups_count: AtomicUsize,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(2),
            uncommitted: Mutex::new(Vec::new()),
            committed: Mutex::new(Vec::new()),
            is_running: AtomicBool::new(false),
            groups_count: AtomicUsize::new(0),
        })
    }

    /// Runs as a member of a group; returns the outcome, or nothing if that did not come in time.
    fn write(&self, writer: usize, (lane, patience): (Lane<u8>, Duration)) -> Option<Outcome> {
        let seat = Seat::new(lane, writer);
        let group = match self.queue.join(&seat, Instant::now() + patience, &|_| true) {
            Called::Leads(seats) => {
                self.groups_count.fetch_add(1, Ordering::SeqCst);
                let next = seats.into_iter().filter(|other| !Arc::ptr_eq(other, &seat));
                let mut next: Vec<_> = next.collect();
                // One that another server holds runs again, elsewhere.
                if lane == Lane::Mixed
                    && let Some(held) = next.pop()
                {
                    held.tell(Outcome::Held);
                }
                Box::new(Group { lane, next, run: Vec::new() })
            }
            Called::Turn(group) => group,
            Called::Over(outcome) => return Some(outcome),
            Called::GaveUp => return None,
        };
        self.run(writer, &seat, group);
        seat.wait_for_outcome(Instant::now() + LONG)
    }

    /// Takes a turn, and hands the group on or commits it.
    fn run(&self, writer: usize, seat: &Place, mut group: Box<Group>) {
        self.uncommitted.lock().unwrap().push(writer);
        group.run.push(Arc::clone(seat));
        while !group.next.is_empty() {
            let seat = group.next.remove(0);
            match seat.hand(group) {
                Some(back) => group = back,
                None => return,
            }
        }
        let Group { lane, run, .. } = *group;
        let mut uncommitted = self.uncommitted.lock().unwrap();
        let members: Vec<_> = run.iter().map(|seat| *seat.announcement()).collect();
        uncommitted.retain(|writer| !members.contains(writer));
        self.committed.lock().unwrap().extend(members);
        drop(uncommitted);
        self.queue.end(lane, run, &Outcome::Committed, &|_| true);
    }
}

fn lanes(writer: usize) -> Lane<u8> {
    match writer % 3 {
        0 => Lane::Alone,
        1 => Lane::Of(1),
        _ => Lane::Mixed,
    }
}

/// Whoever is told that a write is committed has run in a group that was, and nobody waits forever: a schedule in
/// which a thread does is a deadlock, which the checker reports.
fn everybody_learns_the_outcome(lane: fn(usize) -> Lane<u8>, patience: Duration) {
    let world = World::new();
    let threads: Vec<_> = (0..4)
        .map(|writer| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let mut outcome = world.write(writer, (lane(writer), patience));
                while outcome == Some(Outcome::Held) {
                    outcome = world.write(writer, (Lane::Of(2), LONG));
                }
                (writer, outcome)
            })
        })
        .collect();
    let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let committed = world.committed.lock().unwrap();
    for (writer, outcome) in outcomes {
        let count = committed.iter().filter(|other| **other == writer).count();
        match outcome {
            Some(_) => assert_eq!(count, 1, "{writer} was told that it is committed"),
            // It gave up before its turn, or while it waited for the commit.
            None => assert!(count <= 1, "{writer} has run twice"),
        }
    }
    assert_eq!(world.queue.waiting_count(), 0);
    assert!(world.uncommitted.lock().unwrap().is_empty());
    // Nothing is left that would keep the next group from beginning.
    for lane in [Lane::Mixed, Lane::Of(1), Lane::Of(2), Lane::Alone] {
        let seat = Seat::new(lane, 99);
        let called = world.queue.join(&seat, Instant::now() + LONG, &|_| true);
        let Called::Leads(seats) = called else { panic!("{lane:?} is still taken") };
        world.queue.end(lane, seats, &Outcome::Committed, &|_| true);
    }
}

#[test]
fn members_of_mixed_groups_learn_the_outcome() {
    crate::check(|| everybody_learns_the_outcome(|_| Lane::Mixed, LONG));
}

#[test]
fn members_of_all_lanes_learn_the_outcome() {
    crate::check(|| everybody_learns_the_outcome(lanes, LONG));
}

/// Deadlines pass at any moment, also between that nothing was found and that the seat is given up.
#[test]
fn those_who_give_up_leave_nothing_behind() {
    crate::check(|| everybody_learns_the_outcome(|_| Lane::Mixed, SHORT));
    crate::check(|| everybody_learns_the_outcome(lanes, SHORT));
}
