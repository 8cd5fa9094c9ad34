//! Group commit: the writes of many threads in one transaction.
//!
//! A write that has announced a store takes a seat in a [`Queue`]. Its leader begins a transaction for all who
//! wait, which locks their stores and reads ahead for all of them in one round trip. Then they take turns:
//! each runs its own work on its own thread, on what was read ahead, and hands the transaction to the next one.
//! The last one commits for all. Nobody returns before the commit that holds its work.
//!
//! Changes are collected and sent with the commit, so a member that fails is mostly forgotten without a
//! statement; what it has already sent is behind a savepoint. If the transaction fails as a whole, each
//! member runs again, alone if it might be one of them that makes it fail.
//!
//! Nobody waits for a store that is not theirs. A group of different stores takes those that are free; the writes
//! to a store that another server holds run again in groups of that store only, which wait for it. The
//! tempting alternative, one group that waits for all of its stores, makes every write of the process wait
//! for the longest redaction of any of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::model::StoreId;

use crate::ahead::{self, Announcement, Held, Numbers};
use crate::error::{self, Consequence};
use crate::partition::Rewriting;
use crate::queue::{self, Called, Lane, Queue};
use crate::transaction::Transaction;

/// For how long writes to a store that another server holds stay among themselves.
const CONTENDED_FOR: Duration = Duration::from_millis(50);

/// A store for which a group has waited longer than this is contended.
const FREE_WITHIN: Duration = Duration::from_millis(5);

/// How many contended stores are remembered.
const CONTENDED_MAX: usize = 10_000;

/// Begins and commits the transactions of groups.
pub(crate) trait Database {
    /// Returns a transaction that has not begun; waits for a connection until a deadline.
    fn transaction(&self, deadline: Instant) -> Result<Transaction, (Error, Option<Consequence>)>;

    /// Commits; returns why that failed if it certainly has changed nothing.
    fn commit(&self, transaction: Transaction) -> Result<Result<(), Refused>, Error>;

    /// Returns how long a group may take after a member had its turn.
    fn patience(&self) -> Duration;
}

/// Why a transaction did not change anything.
pub(crate) struct Refused {
    pub(crate) consequence: Consequence,
    pub(crate) error: Error,
}

/// The groups of a process.
pub(crate) struct Groups {
    queue: Queue<StoreId, Announcement, Box<Group>, Outcome>,
    numbers: Numbers,
    rewriting: Arc<Rewriting>,
    /// The stores that another server holds, and until when that is assumed.
    contended: Mutex<HashMap<StoreId, Instant>>,
    committed_count: AtomicU64,
    writes_count: AtomicU64,
}

/// The place of a write in a group.
type Seat = queue::Seat<StoreId, Announcement, Box<Group>, Outcome>;

/// How a group ended for one of its members.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// It is durable.
    Committed,
    /// Nothing has changed; run again. The error is for whoever has no time left for that.
    Again(Retry, Error),
    /// Nobody knows whether it has changed anything, or trying again makes no sense.
    Failed(Error),
}

/// With whom a write runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// With others.
    Grouped,
    /// With those that wait for the same store: another server holds it.
    OfStore,
    /// Alone: it may be the reason why a group has failed.
    Alone,
}

/// A transaction that several writes share.
pub(crate) struct Group {
    transaction: Transaction,
    lane: Lane<StoreId>,
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
    /// `single_max` is how many connections may wait for stores that other servers hold.
    pub(crate) fn new(rewriting: Arc<Rewriting>, single_max: usize) -> Self {
        Self {
            queue: Queue::new(single_max),
            numbers: Numbers::default(),
            rewriting,
            contended: Mutex::default(),
            committed_count: AtomicU64::new(0),
            writes_count: AtomicU64::new(0),
        }
    }

    /// Waits for a turn in a group.
    pub(crate) fn join<'g, D: Database>(
        &'g self,
        database: &'g D,
        mut announcement: Announcement,
        (retry, deadline): (Retry, Instant),
    ) -> Result<Turn<'g, D>, Outcome> {
        let store = announcement.store;
        announcement.partition = self.numbers.partition(store);
        let lane = match retry {
            Retry::Alone => Lane::Alone,
            Retry::OfStore => Lane::Of(store),
            Retry::Grouped if self.is_contended(store) => Lane::Of(store),
            Retry::Grouped => Lane::Mixed,
        };
        let seat = Seat::new(lane, announcement);
        match self.queue.join(&seat, deadline, &|it| self.is_ready(it)) {
            Called::Leads(seats) => self.lead(database, seat, (seats, deadline)),
            Called::Turn(group) => Ok(Turn::begin(self, database, seat, group)),
            Called::Over(outcome) => Err(outcome),
            Called::GaveUp if self.is_ready(seat.announcement()) => {
                Err(Outcome::Failed(error::busy()))
            }
            Called::GaveUp => Err(Outcome::Failed(error::being_rewritten())),
        }
    }

    /// Returns whether the tables of a store can be used, as far as is known.
    fn is_ready(&self, announcement: &Announcement) -> bool {
        announcement.partition.is_none_or(|partition| !self.rewriting.has(partition))
    }

    /// Begins a group and takes the first turn.
    fn lead<'g, D: Database>(
        &'g self,
        database: &'g D,
        seat: Arc<Seat>,
        (seats, deadline): (Vec<Arc<Seat>>, Instant),
    ) -> Result<Turn<'g, D>, Outcome> {
        let lane = seat.lane();
        let unbegun = Unbegun { groups: self, lane, seats };
        let begun = self.begin(database, &unbegun.seats, deadline);
        let seats = unbegun.take();
        let others = seats.into_iter().filter(|other| !Arc::ptr_eq(other, &seat));
        let (transaction, skipped) = match begun {
            Ok(begun) => begun,
            Err(outcome) => {
                self.end(lane, others, &outcome);
                return Err(outcome);
            }
        };
        let held = Outcome::Again(Retry::OfStore, error::busy());
        let is_skipped = |seat: &Arc<Seat>| skipped.contains(&seat.announcement().store);
        let (left_out, next): (Vec<_>, Vec<_>) = others.partition(is_skipped);
        for seat in left_out {
            seat.tell(held.clone());
        }
        let next = next.into();
        let group = Group { transaction, lane, next, run: Vec::new(), changed_count: 0 };
        if is_skipped(&seat) {
            self.pass_on(database, Box::new(group));
            return Err(held);
        }
        Ok(Turn::begin(self, database, seat, Box::new(group)))
    }

    /// Begins the transaction of a group. Returns the stores that it has left out.
    fn begin<D: Database>(
        &self,
        database: &D,
        seats: &[Arc<Seat>],
        deadline: Instant,
    ) -> Result<(Transaction, HashSet<StoreId>), Outcome> {
        let count = seats.len();
        let transaction = database
            .transaction(deadline)
            .map_err(|(error, consequence)| Outcome::of(consequence, error, count))?;
        let announcements: Vec<_> = seats.iter().map(|seat| seat.announcement().clone()).collect();
        let lane = seats.first().map_or(Lane::Mixed, |seat| seat.lane());
        let held = if lane == Lane::Mixed { Held::Skip } else { Held::Wait };
        let start = Instant::now();
        let begun = ahead::begin(&transaction, &announcements, &self.numbers, held);
        match (lane, begun) {
            (Lane::Of(store), Err(error)) => {
                self.note_contended(store);
                // All of them have waited for the same.
                let count =
                    if transaction.failure() == Some(Consequence::Locked) { 1 } else { count };
                Err(Outcome::of(transaction.failure(), error, count))
            }
            (_, Err(error)) => Err(Outcome::of(transaction.failure(), error, count)),
            (Lane::Of(store), Ok(skipped)) => {
                if start.elapsed() > FREE_WITHIN {
                    self.note_contended(store);
                }
                Ok((transaction, skipped))
            }
            (Lane::Mixed | Lane::Alone, Ok(skipped)) => {
                for store in &skipped {
                    self.note_contended(*store);
                }
                Ok((transaction, skipped))
            }
        }
    }

    /// Hands the transaction to the next member, or commits if there is none.
    fn pass_on<D: Database>(&self, database: &D, mut group: Box<Group>) {
        while let Some(seat) = group.next.pop_front() {
            match seat.hand(group) {
                Some(back) => group = back,
                None => return,
            }
        }
        let Group { transaction, lane, run, changed_count, .. } = *group;
        let members_count = run.len();
        let outcome = match database.commit(transaction) {
            Ok(Ok(())) => Outcome::Committed,
            Ok(Err(Refused { consequence, error })) => {
                Outcome::of(Some(consequence), error, members_count)
            }
            Err(error) => Outcome::Failed(error),
        };
        if matches!(outcome, Outcome::Committed) && changed_count > 0 {
            self.count(changed_count);
        }
        self.end(lane, run, &outcome);
    }

    /// Tells the members of a group how it ended, and lets the next groups begin.
    fn end(
        &self,
        lane: Lane<StoreId>,
        seats: impl IntoIterator<Item = Arc<Seat>>,
        outcome: &Outcome,
    ) {
        self.queue.end(lane, seats, outcome, &|it| self.is_ready(it));
    }

    fn is_contended(&self, store: StoreId) -> bool {
        let contended = self.contended.lock().unwrap_or_else(PoisonError::into_inner);
        contended.get(&store).is_some_and(|until| Instant::now() < *until)
    }

    fn note_contended(&self, store: StoreId) {
        let mut contended = self.contended.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if contended.len() >= CONTENDED_MAX {
            contended.retain(|_, until| now < *until);
        }
        if contended.len() < CONTENDED_MAX {
            contended.insert(store, now + CONTENDED_FOR);
        }
    }

    /// Returns how many transactions were committed, how many writes were in them, and how many wait.
    pub(crate) fn counts(&self) -> (u64, u64, usize) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.committed_count), load(&self.writes_count), self.queue.waiting_count())
    }

    /// Counts a transaction that was committed.
    pub(crate) fn count(&self, writes_count: u64) {
        self.committed_count.fetch_add(1, Ordering::Relaxed);
        self.writes_count.fetch_add(writes_count, Ordering::Relaxed);
    }
}

/// The seats of a group whose transaction has not begun. A panic while it begins ends the group.
struct Unbegun<'g> {
    groups: &'g Groups,
    lane: Lane<StoreId>,
    seats: Vec<Arc<Seat>>,
}

impl Unbegun<'_> {
    fn take(mut self) -> Vec<Arc<Seat>> {
        std::mem::take(&mut self.seats)
    }
}

impl Drop for Unbegun<'_> {
    fn drop(&mut self) {
        if !self.seats.is_empty() {
            let outcome = Outcome::Again(Retry::Grouped, error::connection_lost());
            self.groups.end(self.lane, std::mem::take(&mut self.seats), &outcome);
        }
    }
}

impl Outcome {
    /// Returns what becomes of the members of a transaction that has failed as a whole.
    fn of(consequence: Option<Consequence>, error: Error, members_count: usize) -> Self {
        match consequence {
            Some(Consequence::Repeat | Consequence::Reconnect | Consequence::Rewritten) => {
                Self::Again(Retry::Grouped, error)
            }
            Some(Consequence::Locked | Consequence::Fail) if members_count > 1 => {
                Self::Again(Retry::Alone, error)
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
            return Outcome::Again(Retry::Grouped, error::connection_lost());
        };
        if let Some(consequence) = group.transaction.failure() {
            return self.give_up(group, consequence, worked);
        }
        let is_taken_back = worked.is_err() || group.transaction.larger_scope().is_some();
        if is_taken_back {
            if group.transaction.take_back_member().is_err() {
                return self.give_up(group, Consequence::Reconnect, worked);
            }
            group.run.extend(self.saw_others.then(|| Arc::clone(&self.seat)));
        } else {
            group.changed_count += 1;
            group.run.push(Arc::clone(&self.seat));
        }
        self.groups.pass_on(self.database, group);
        if is_taken_back && !self.saw_others {
            // It saw committed rows only, so there is nothing to wait for before it is refused.
            return Outcome::Committed;
        }
        // Every statement of the others has a deadline, so this one only ends what should not happen.
        let deadline = Instant::now() + self.database.patience();
        let outcome = self.seat.wait_for_outcome(deadline);
        outcome.unwrap_or_else(|| Outcome::Failed(error::outcome_unknown()))
    }

    /// Gives up the whole group.
    fn give_up(
        &self,
        group: Box<Group>,
        consequence: Consequence,
        worked: &Result<(), Error>,
    ) -> Outcome {
        let Group { transaction, lane, next, run, .. } = *group;
        drop(transaction);
        let members_count = next.len() + run.len() + 1;
        let error = worked.as_ref().err().cloned().unwrap_or_else(error::connection_lost);
        let outcome = Outcome::of(Some(consequence), error, members_count);
        self.groups.end(lane, next.into_iter().chain(run), &outcome);
        outcome
    }
}

/// A work that has panicked has changed nothing, and the others go on.
impl<D: Database> Drop for Turn<'_, D> {
    fn drop(&mut self) {
        let Some(group) = self.group.take() else { return };
        let is_sound = group.transaction.failure().is_none();
        if is_sound && group.transaction.take_back_member().is_ok() {
            self.groups.pass_on(self.database, group);
        } else {
            let failed = Err(error::connection_lost());
            self.give_up(group, Consequence::Reconnect, &failed);
        }
    }
}
