//! Group commit: the writes of many threads in one transaction.
//!
//! A write that has announced a store takes a [`Seat`] and waits. The first one with nobody before it leads:
//! it begins a transaction for all who wait, which locks their stores and reads ahead for all of them in one
//! round trip. Then they take turns: each runs its own work on its own thread, on what was read ahead, and
//! hands the transaction to the next one. The last one commits for all. Nobody returns before the commit that
//! holds its work.
//!
//! Changes are collected and sent with the commit, so a member that fails is mostly forgotten without a
//! statement; what it has already sent is behind a savepoint. If the transaction fails as a whole, each
//! member runs again, alone if it might be one of them that makes it fail.
//!
//! Usually one group is under way, and everybody else gathers for the next. One that waits for a lock of
//! another server does not hold up the rest: after a moment, the next group begins beside it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::Error;

use crate::ahead::{self, Announcement, Numbers};
use crate::error::{self, Consequence};
use crate::transaction::Transaction;

/// How many writes share a transaction at most, so that the first of them does not wait too long.
const MEMBERS_MAX: usize = 64;

/// How many groups are under way at most.
const GROUPS_MAX: usize = 4;

/// When the last group began so long ago, it waits for somebody outside of this process, and another one may
/// begin beside it. Always having two makes each half as large, which costs more than it gains: the second
/// waits for the counter, and mostly for the same stores too.
const STUCK_AFTER: Duration = Duration::from_millis(20);

/// Begins and commits the transactions of groups.
pub(crate) trait Database {
    /// Returns a transaction that has not begun.
    fn transaction(&self) -> Result<Transaction, (Error, Option<Consequence>)>;

    /// Commits; returns why that failed if it certainly has changed nothing.
    fn commit(&self, transaction: Transaction) -> Result<Result<(), Refused>, Error>;
}

/// Why a transaction did not change anything.
pub(crate) struct Refused {
    pub(crate) consequence: Consequence,
    pub(crate) error: Error,
}

/// The groups of a process.
#[derive(Default)]
pub(crate) struct Groups {
    queue: Mutex<Queue>,
    numbers: Numbers,
    committed_count: AtomicU64,
    writes_count: AtomicU64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Seat>>,
    groups_count: usize,
    /// When the last group began.
    begun_at: Option<Instant>,
}

/// The place of a write in a group.
struct Seat {
    announcement: Announcement,
    state: Mutex<SeatState>,
    changed: Condvar,
}

enum SeatState {
    /// It waits for a group, or for its turn.
    Waiting,
    /// It begins a group of these.
    Leading(Vec<Arc<Seat>>),
    /// It runs.
    Turn(Box<Group>),
    /// It has run, or will not run in this group.
    Over(Outcome),
    /// Nobody is there any more.
    Gone,
}

/// How a group ended for one of its members.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// It is durable.
    Committed,
    /// Nothing has changed; run again. The error is for whoever has no time left for that.
    Again(Company, Error),
    /// Nobody knows whether it has changed anything, or trying again makes no sense.
    Failed(Error),
}

/// With whom a write runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// With others: the failure was nobody's fault.
    Any,
    /// Alone: it may be the reason of the failure.
    None,
}

/// A transaction that several writes share.
struct Group {
    transaction: Transaction,
    /// Those that have not run yet.
    next: VecDeque<Arc<Seat>>,
    /// Those that have run and wait for the outcome.
    run: Vec<Arc<Seat>>,
    changed_count: u64,
}

/// The time in which a member has the transaction.
pub(crate) struct Turn<'g, D: Database> {
    groups: &'g Groups,
    database: &'g D,
    seat: Arc<Seat>,
    group: Option<Box<Group>>,
    saw_others: bool,
}

impl Groups {
    /// Waits for a turn in a group.
    pub(crate) fn join<'g, D: Database>(
        &'g self,
        database: &'g D,
        announcement: Announcement,
        (company, deadline): (Company, Instant),
    ) -> Result<Turn<'g, D>, Outcome> {
        let seat = Arc::new(Seat::new(announcement));
        let seats = match company {
            Company::None => {
                self.lock().groups_count += 1;
                vec![Arc::clone(&seat)]
            }
            Company::Any => match self.queue_up(&seat) {
                Some(seats) => seats,
                None => match self.wait_for_turn(&seat, deadline) {
                    SeatState::Leading(seats) => seats,
                    SeatState::Turn(group) => {
                        return Ok(Turn::begin(self, database, seat, group));
                    }
                    SeatState::Over(outcome) => return Err(outcome),
                    SeatState::Waiting | SeatState::Gone => {
                        return Err(Outcome::Failed(error::busy()));
                    }
                },
            },
        };
        self.lead(database, seat, seats)
    }

    /// Returns the members of a group that this thread leads; `None` if it has to wait for another group.
    fn queue_up(&self, seat: &Arc<Seat>) -> Option<Vec<Arc<Seat>>> {
        let mut queue = self.lock();
        queue.waiting.push_back(Arc::clone(seat));
        queue.lead(seat)
    }

    /// Waits until there is something to do, or gives up the seat at the deadline.
    fn wait_for_turn(&self, seat: &Arc<Seat>, deadline: Instant) -> SeatState {
        loop {
            let pause = deadline.min(Instant::now() + STUCK_AFTER);
            if let Some(state) = seat.wait_until(pause) {
                return state;
            }
            if Instant::now() >= deadline {
                let state = seat.give_up();
                if matches!(state, SeatState::Gone) {
                    self.lock().waiting.retain(|other| !Arc::ptr_eq(other, seat));
                }
                return state;
            }
            if let Some(seats) = self.lock().lead(seat) {
                return SeatState::Leading(seats);
            }
        }
    }

    /// Begins a group and takes the first turn.
    fn lead<'g, D: Database>(
        &'g self,
        database: &'g D,
        seat: Arc<Seat>,
        seats: Vec<Arc<Seat>>,
    ) -> Result<Turn<'g, D>, Outcome> {
        let begun = self.begin(database, &seats);
        let others = seats.into_iter().filter(|other| !Arc::ptr_eq(other, &seat)).collect();
        match begun {
            Ok(transaction) => {
                let group = Group { transaction, next: others, run: Vec::new(), changed_count: 0 };
                Ok(Turn::begin(self, database, seat, Box::new(group)))
            }
            Err(outcome) => {
                self.end(others, &outcome);
                Err(outcome)
            }
        }
    }

    fn begin<D: Database>(
        &self,
        database: &D,
        seats: &[Arc<Seat>],
    ) -> Result<Transaction, Outcome> {
        let count = seats.len();
        let transaction = database
            .transaction()
            .map_err(|(error, consequence)| Outcome::of(consequence, error, count))?;
        let announcements: Vec<_> = seats.iter().map(|seat| seat.announcement.clone()).collect();
        ahead::begin(&transaction, &announcements, &self.numbers)
            .map_err(|error| Outcome::of(transaction.failure(), error, count))?;
        Ok(transaction)
    }

    /// Tells the members of a group how it ended, and lets the next group begin.
    fn end(&self, seats: impl IntoIterator<Item = Arc<Seat>>, outcome: &Outcome) {
        for seat in seats {
            seat.set(SeatState::Over(outcome.clone()));
        }
        loop {
            let mut queue = self.lock();
            // Beside another group, those who wait gather for the one after it.
            let seats = if queue.groups_count > 1 { Vec::new() } else { queue.take() };
            let Some(first) = seats.first().cloned() else {
                queue.groups_count -= 1;
                return;
            };
            queue.begun_at = Some(Instant::now());
            drop(queue);
            match first.try_set(SeatState::Leading(seats)) {
                None => return,
                // It has given up; the others still wait.
                Some(SeatState::Leading(seats)) => {
                    let mut queue = self.lock();
                    for seat in seats.into_iter().skip(1).rev() {
                        queue.waiting.push_front(seat);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Returns how many transactions were committed, how many writes were in them, and how many wait.
    pub(crate) fn counts(&self) -> (u64, u64, usize) {
        let waiting_count = self.lock().waiting.len();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.committed_count), load(&self.writes_count), waiting_count)
    }

    /// Counts a transaction that was committed.
    pub(crate) fn count(&self, writes_count: u64) {
        self.committed_count.fetch_add(1, Ordering::Relaxed);
        self.writes_count.fetch_add(writes_count, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Returns the members of a group that a waiting seat leads, if another group may begin now.
    fn lead(&mut self, seat: &Arc<Seat>) -> Option<Vec<Arc<Seat>>> {
        let is_stuck = self.begun_at.is_none_or(|begun| begun.elapsed() >= STUCK_AFTER);
        let may_begin = self.groups_count == 0 || self.groups_count < GROUPS_MAX && is_stuck;
        if !may_begin {
            return None;
        }
        let place = self.waiting.iter().position(|other| Arc::ptr_eq(other, seat))?;
        let leader = self.waiting.remove(place)?;
        self.waiting.push_front(leader);
        self.groups_count += 1;
        self.begun_at = Some(Instant::now());
        Some(self.take())
    }

    fn take(&mut self) -> Vec<Arc<Seat>> {
        let count = self.waiting.len().min(MEMBERS_MAX);
        self.waiting.drain(..count).collect()
    }
}

impl Outcome {
    /// Returns what becomes of the members of a transaction that has failed as a whole.
    fn of(consequence: Option<Consequence>, error: Error, members_count: usize) -> Self {
        match consequence {
            Some(Consequence::Repeat | Consequence::Reconnect) => Self::Again(Company::Any, error),
            Some(Consequence::Locked | Consequence::Fail) if members_count > 1 => {
                Self::Again(Company::None, error)
            }
            Some(Consequence::Locked | Consequence::Fail) | None => Self::Failed(error),
        }
    }
}

impl<'g, D: Database> Turn<'g, D> {
    fn begin(groups: &'g Groups, database: &'g D, seat: Arc<Seat>, group: Box<Group>) -> Self {
        let saw_others = group.transaction.has_uncommitted();
        group.transaction.begin_member();
        Self { groups, database, seat, group: Some(group), saw_others }
    }

    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        self.group.as_ref().map(|group| &group.transaction)
    }

    /// Ends the turn and returns how the write ended.
    ///
    /// A write whose work failed returns an outcome too: what made it fail may have been a change of another
    /// member that has not become durable.
    pub(crate) fn end(mut self, worked: &Result<(), Error>) -> Outcome {
        let Some(mut group) = self.group.take() else {
            return Outcome::Again(Company::Any, error::connection_lost());
        };
        if let Some(consequence) = group.transaction.failure() {
            return self.give_up(group, consequence, worked);
        }
        let is_taken_back = worked.is_err() || group.transaction.larger_scope().is_some();
        if is_taken_back {
            if group.transaction.take_back_member().is_err() {
                return self.give_up(group, Consequence::Reconnect, worked);
            }
            self.pass_on(group, self.saw_others.then(|| Arc::clone(&self.seat)));
        } else {
            group.changed_count += 1;
            self.pass_on(group, Some(Arc::clone(&self.seat)));
        }
        if is_taken_back && !self.saw_others {
            // It saw committed rows only, so there is nothing to wait for before it is refused.
            return Outcome::Committed;
        }
        self.seat.wait_for_outcome()
    }

    /// Gives up the whole group.
    fn give_up(
        &self,
        group: Box<Group>,
        consequence: Consequence,
        worked: &Result<(), Error>,
    ) -> Outcome {
        let Group { transaction, next, run, .. } = *group;
        drop(transaction);
        let members_count = next.len() + run.len() + 1;
        let error = worked.as_ref().err().cloned().unwrap_or_else(error::connection_lost);
        let outcome = Outcome::of(Some(consequence), error, members_count);
        self.groups.end(next.into_iter().chain(run), &outcome);
        outcome
    }

    /// Hands the transaction to the next member, or commits if there is none.
    ///
    /// `waiting` is the seat of this member, if it waits for the outcome.
    fn pass_on(&self, mut group: Box<Group>, waiting: Option<Arc<Seat>>) {
        group.run.extend(waiting);
        while let Some(seat) = group.next.pop_front() {
            match seat.try_set(SeatState::Turn(group)) {
                Some(SeatState::Turn(back)) => group = back,
                Some(_) | None => return,
            }
        }
        let Group { transaction, run, changed_count, .. } = *group;
        let members_count = run.len();
        let outcome = match self.database.commit(transaction) {
            Ok(Ok(())) => Outcome::Committed,
            Ok(Err(Refused { consequence, error })) => {
                Outcome::of(Some(consequence), error, members_count)
            }
            Err(error) => Outcome::Failed(error),
        };
        if matches!(outcome, Outcome::Committed) && changed_count > 0 {
            self.groups.count(changed_count);
        }
        self.groups.end(run, &outcome);
    }
}

/// A work that has panicked has changed nothing, and the others go on.
impl<D: Database> Drop for Turn<'_, D> {
    fn drop(&mut self) {
        let Some(group) = self.group.take() else { return };
        let is_sound = group.transaction.failure().is_none();
        if is_sound && group.transaction.take_back_member().is_ok() {
            self.pass_on(group, None);
        } else {
            let failed = Err(error::connection_lost());
            self.give_up(group, Consequence::Reconnect, &failed);
        }
    }
}

impl Seat {
    fn new(announcement: Announcement) -> Self {
        Self { announcement, state: Mutex::new(SeatState::Waiting), changed: Condvar::new() }
    }

    /// Waits until there is something to do; `None` if there is nothing until then.
    fn wait_until(&self, until: Instant) -> Option<SeatState> {
        let mut state = self.lock();
        loop {
            let found = std::mem::replace(&mut *state, SeatState::Waiting);
            if !matches!(found, SeatState::Waiting) {
                return Some(found);
            }
            let remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, remaining);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Leaves, unless there is something to do now.
    fn give_up(&self) -> SeatState {
        let mut state = self.lock();
        let found = std::mem::replace(&mut *state, SeatState::Gone);
        if matches!(found, SeatState::Waiting) { SeatState::Gone } else { found }
    }

    /// Waits for the end of the group. Without a deadline: every statement of the others has one.
    fn wait_for_outcome(&self) -> Outcome {
        let mut state = self.lock();
        loop {
            if let SeatState::Over(outcome) = &*state {
                return outcome.clone();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn set(&self, state: SeatState) {
        // If nobody is there any more, nobody has to learn it.
        drop(self.try_set(state));
    }

    /// Changes the state; returns the new one if nobody is there any more.
    fn try_set(&self, new: SeatState) -> Option<SeatState> {
        let mut state = self.lock();
        if matches!(*state, SeatState::Gone) {
            return Some(new);
        }
        *state = new;
        drop(state);
        self.changed.notify_all();
        None
    }

    fn lock(&self) -> MutexGuard<'_, SeatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
