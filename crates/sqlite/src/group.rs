//! Group commit: the writes of many threads with one sync.
//!
//! Leader and followers: each thread runs its own work on the one connection that writes. If other
//! threads are about to write too, it leaves the transaction open for them, and the last one, the
//! leader, commits for all. Nobody returns before the commit that holds its work has reached the disk.
//!
//! The connection and the open transaction are a [`Slot`] that one thread holds at a time. The
//! invariant that keeps writers from hanging: a thread that releases the slot with a transaction open
//! has made sure that another one will commit it, either a thread that waits for the slot or one that
//! lingers.
//!
//! Designs that were rejected:
//!
//! - A dedicated writer thread with a queue. A lone writer would pay for two context switches per
//!   write, more than the write itself costs; here it runs and commits on its own thread.
//! - A fixed delay before each commit. It would slow down a lone writer for nobody's benefit. A thread
//!   lingers only if the last group had more members than this one has so far, and at most as long as
//!   the last commit took.
//! - A savepoint for each member. Work checks before it changes, so a member that fails after a change
//!   is rare. Running the others once more then costs less than two statements for every write.
//!
//! A group ends after a number of runs and after a time, whether its members changed anything or not:
//! if refused writes were free, a few threads whose writes are all refused could keep the transaction
//! of one whose write was accepted open forever.
//!
//! Every wait for the slot has a deadline. The only wait without one is for the disk.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::Purpose;

use crate::sync::{Arc, Condvar, Instant, Mutex, MutexGuard, PoisonError, thread};

/// What a group of writes runs on.
pub(crate) trait Database {
    /// Begins a transaction, at the latest at the deadline.
    fn begin(&mut self, purpose: Purpose, deadline: Instant) -> Result<(), Error>;

    /// Commits the transaction; when that fails, it is rolled back.
    fn commit(&mut self) -> Result<(), Error>;

    /// Rolls the transaction back, if one is open.
    fn roll_back(&mut self);

    /// Returns whether a transaction is open: a failure can end it.
    fn is_in_transaction(&self) -> bool;

    /// Returns a number that changes with every change.
    fn changes_count(&self) -> u64;
}

/// What a member of a group runs.
pub(crate) type Work<'w, D> = dyn FnMut(&mut D) -> Result<(), Error> + 'w;

/// The one connection that writes, shared by all threads of the process.
pub(crate) struct GroupCommit<D> {
    state: Mutex<State<D>>,
    /// Signaled when the slot becomes free.
    slot_freed: Condvar,
    hooks: Hooks,
}

/// Callbacks into the rest of the backend.
pub(crate) struct Hooks {
    /// Called after a commit that changed something.
    pub(crate) committed: Box<dyn Fn() + Send + Sync>,
    /// Returns the error for a writer whose deadline has passed.
    pub(crate) busy: Box<dyn Fn() -> Error + Send + Sync>,
}

struct State<D> {
    /// `None` while a thread holds it.
    slot: Option<Slot<D>>,
    /// Tickets of the threads that wait for the slot and when they came, the oldest first.
    waiting: Vec<(u64, Instant)>,
    tickets_count: u64,
    stats: GroupStats,
}

/// Counters since the process started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupStats {
    /// How many transactions were committed.
    pub(crate) groups: u64,
    /// How many writes were in them.
    pub(crate) writes: u64,
    /// How many threads wait now.
    pub(crate) waiting: usize,
}

/// Whose uncommitted changes a run may see.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Those of earlier members: it joins the open group.
    Any,
    /// None: it is the first in a new group.
    First,
}

struct Slot<D> {
    database: D,
    group: Option<OpenGroup>,
    /// How many members the last group had: as many may be expected again.
    expected_count: usize,
    /// How long the last commit took. Lingering as long pays off if one more member arrives.
    commit_time: Duration,
}

/// A transaction that further threads may join.
struct OpenGroup {
    completion: Arc<Completion>,
    /// How many threads have changed something.
    members_count: usize,
    /// How many threads have run, including those whose work was refused.
    runs_count: usize,
    opened_at: Instant,
    /// Whether a member lingers, and commits when its time is up.
    has_lingerer: bool,
}

/// A latch that hands the outcome of a group to its members.
#[derive(Default)]
struct Completion {
    outcome: Mutex<Option<Outcome>>,
    completed: Condvar,
}

/// How a group ended.
#[derive(Clone)]
enum Outcome {
    /// It is durable.
    Committed,
    /// It could not be committed.
    Failed(Error),
    /// The failure of one member has rolled back the changes of all, so the others run again.
    Retry,
}

/// A group ends after this number of runs, so that its first member does not wait too long.
const RUNS_MAX: usize = 64;

/// A group ends at this age for the same reason: a run can be long.
const AGE_MAX: Duration = Duration::from_millis(10);

/// The longest that a member lingers for those of the last group to come back.
const LINGER_MAX: Duration = Duration::from_micros(500);

/// When the oldest waiter has waited this long, newcomers queue behind it. Until then any thread that is
/// awake may barge in, because waking a sleeping one for every run costs more than the run.
const FAIR_AFTER: Duration = Duration::from_millis(20);

impl<D: Database> GroupCommit<D> {
    pub(crate) fn new(database: D, hooks: Hooks) -> Self {
        let commit_time = Duration::ZERO;
        let slot = Some(Slot { database, group: None, expected_count: 1, commit_time });
        let (waiting, stats) = (Vec::new(), GroupStats::default());
        let state = State { slot, waiting, tickets_count: 0, stats };
        Self { state: Mutex::new(state), slot_freed: Condvar::new(), hooks }
    }

    /// Runs `work` in a transaction and returns when it is durable.
    pub(crate) fn run(&self, deadline: Instant, work: &mut Work<'_, D>) -> Result<(), Error> {
        let mut position = Position::Any;
        loop {
            let (ran, outcome) = self.run_in_group(deadline, position, work)?;
            match (ran, outcome) {
                (Ok(()), Outcome::Committed) => return Ok(()),
                // Whatever made the work fail is durable, or was there before: the error is true.
                (Ok(()), Outcome::Failed(error)) | (Err(error), Outcome::Committed) => {
                    return Err(error);
                }
                // It may have failed because of changes by other members that are gone now: "the path
                // is taken", say. Returning that error would report a conflict with something that
                // never happened. It runs first in its next group to find out; in any other position,
                // one that fails again and again would make the others run again and again.
                (Err(_), Outcome::Failed(_) | Outcome::Retry) => position = Position::First,
                (Ok(()), Outcome::Retry) => {}
            }
        }
    }

    fn run_in_group(
        &self,
        deadline: Instant,
        position: Position,
        work: &mut Work<'_, D>,
    ) -> Result<(Result<(), Error>, Outcome), Error> {
        let mut slot = self.acquire(Some(deadline))?;
        if position == Position::First {
            slot.commit();
        }
        let completion = slot.get().join(Purpose::Change, deadline)?;
        let has_members = |group: &OpenGroup| group.members_count > 0;
        let saw_others = slot.get().group.as_ref().is_some_and(has_members);
        // A panic must not leave the transaction of others open.
        let ran = catch_unwind(AssertUnwindSafe(|| slot.get().run_member(work)));
        self.commit_or_hand_over(slot);
        match ran {
            // It saw committed rows only, so there is nothing to wait for before it is refused.
            Ok(Err(error)) if !saw_others => Ok((Err(error), Outcome::Committed)),
            Ok(ran) => Ok((ran, completion.wait())),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Runs `work` in a transaction of its own.
    pub(crate) fn run_alone(
        &self,
        purpose: Purpose,
        deadline: Instant,
        work: &mut Work<'_, D>,
    ) -> Result<(), Error> {
        let mut guard = self.acquire(Some(deadline))?;
        guard.commit();
        let slot = guard.get();
        let (expected_count, commit_time) = (slot.expected_count, slot.commit_time);
        let completion = slot.join(purpose, deadline)?;
        let ran = catch_unwind(AssertUnwindSafe(|| slot.run_member(work)));
        guard.commit();
        // A group of one by design predicts nothing about the groups of others.
        let slot = guard.get();
        (slot.expected_count, slot.commit_time) = (expected_count, commit_time);
        drop(guard);
        ran.unwrap_or_else(|panic| resume_unwind(panic))?;
        match completion.wait() {
            Outcome::Failed(error) => Err(error),
            Outcome::Committed | Outcome::Retry => Ok(()),
        }
    }

    /// Runs `work` on the connection while no transaction is open.
    pub(crate) fn outside_transaction<T>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut D) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut slot = self.acquire(Some(deadline))?;
        slot.commit();
        work(&mut slot.get().database)
    }

    pub(crate) fn stats(&self) -> GroupStats {
        let state = self.lock();
        GroupStats { waiting: state.waiting.len(), ..state.stats }
    }

    /// Commits the group as its leader, unless another thread is certain to do so.
    fn commit_or_hand_over<'g>(&'g self, mut guard: SlotGuard<'g, D>) {
        let Some(group) = &mut guard.get().group else { return };
        if !group.is_full() {
            let Some(kept) = guard.hand_over() else { return };
            guard = kept;
            let slot = guard.get();
            let (expected_count, commit_time) = (slot.expected_count, slot.commit_time);
            if let Some(group) = &mut slot.group
                && (1..expected_count).contains(&group.members_count)
            {
                if group.has_lingerer {
                    return;
                }
                group.has_lingerer = true;
                drop(guard);
                thread::sleep(commit_time.min(LINGER_MAX));
                // Without a deadline: giving up here would leave the group open forever. It is short
                // anyhow, since nobody holds the slot for longer than one run and one commit.
                let Ok(again) = self.acquire(None) else { return };
                guard = again;
            }
        }
        // After lingering, the open group may be a later one, whose members have handed the slot over to
        // this thread because it was waiting. So it commits whatever is open.
        guard.commit();
    }

    /// Waits for the slot.
    fn acquire(&self, deadline: Option<Instant>) -> Result<SlotGuard<'_, D>, Error> {
        let mut state = self.lock();
        state.tickets_count += 1;
        let ticket = state.tickets_count;
        state.waiting.push((ticket, Instant::now()));
        loop {
            // Before the deadline is checked: whoever handed the slot over to this thread relies on it
            // to commit the open group.
            if state.may_take_slot(ticket) {
                if let Some(slot) = state.slot.take() {
                    state.waiting.retain(|(other, _)| *other != ticket);
                    return Ok(SlotGuard { group: self, slot: Some(slot), finished: Vec::new() });
                }
            } else if state.slot.is_some() {
                // This thread took the wake-up that was meant for the oldest waiter. Without passing
                // it on, both would sleep beside a free slot.
                self.slot_freed.notify_all();
            }
            let now = Instant::now();
            let remaining = deadline.map(|deadline| deadline.saturating_duration_since(now));
            if remaining.is_some_and(|remaining| remaining.is_zero()) {
                state.waiting.retain(|(other, _)| *other != ticket);
                // The same hazard: this thread may have been woken for a free slot that it leaves.
                self.slot_freed.notify_all();
                drop(state);
                return Err((self.hooks.busy)());
            }
            state = match remaining {
                Some(remaining) => {
                    let waited = self.slot_freed.wait_timeout(state, remaining);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.slot_freed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        // A panic inside a transaction is caught and rolled back, so the state is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D> State<D> {
    /// Returns whether a thread that waits may take the slot when it is free.
    fn may_take_slot(&self, ticket: u64) -> bool {
        match self.waiting.first() {
            Some((first, _)) if *first == ticket => true,
            Some((_, since)) => since.elapsed() < FAIR_AFTER,
            None => true,
        }
    }
}

/// The slot, while this thread holds it.
struct SlotGuard<'g, D: Database> {
    group: &'g GroupCommit<D>,
    slot: Option<Slot<D>>,
    /// Groups that are over, but whose members have not been notified yet.
    finished: Vec<FinishedGroup>,
}

impl<D: Database> SlotGuard<'_, D> {
    fn get(&mut self) -> &mut Slot<D> {
        self.slot.as_mut().expect("a guard holds the slot until it is dropped")
    }

    /// Commits the open group, if there is one.
    ///
    /// Its members are notified when the guard is dropped, not here: they write again at once, and
    /// waking them while the slot is taken would only make them queue for it.
    fn commit(&mut self) {
        if let Some(finished) = self.get().commit() {
            let mut state = self.group.lock();
            state.stats.groups += 1;
            state.stats.writes += u64::try_from(finished.members_count).unwrap_or(u64::MAX);
            drop(state);
            self.finished.push(finished);
        }
    }

    /// Releases the slot to a thread that waits for it; returns the guard if none does.
    ///
    /// Looking and releasing happen under one lock: a waiter that gave up in between would leave the
    /// transaction without anybody to commit it.
    fn hand_over(mut self) -> Option<Self> {
        let mut state = self.group.lock();
        if state.waiting.is_empty() {
            drop(state);
            return Some(self);
        }
        state.slot = self.slot.take();
        drop(state);
        None
    }
}

impl<D: Database> Drop for SlotGuard<'_, D> {
    fn drop(&mut self) {
        let mut state = self.group.lock();
        if let Some(slot) = self.slot.take() {
            state.slot = Some(slot);
        }
        let is_first_overdue =
            state.waiting.first().is_some_and(|(_, since)| since.elapsed() >= FAIR_AFTER);
        drop(state);
        if is_first_overdue {
            // Only the first may take the slot now, and a single wake-up might reach another.
            self.group.slot_freed.notify_all();
        } else {
            self.group.slot_freed.notify_one();
        }
        for finished in self.finished.drain(..) {
            let is_committed = matches!(finished.outcome, Outcome::Committed);
            finished.completion.complete(finished.outcome);
            if is_committed && finished.members_count > 0 {
                (self.group.hooks.committed)();
            }
        }
    }
}

struct FinishedGroup {
    completion: Arc<Completion>,
    members_count: usize,
    outcome: Outcome,
}

impl<D: Database> Slot<D> {
    /// Returns the completion of the open group, or opens one.
    fn join(&mut self, purpose: Purpose, deadline: Instant) -> Result<Arc<Completion>, Error> {
        if let Some(group) = &self.group {
            return Ok(Arc::clone(&group.completion));
        }
        self.database.begin(purpose, deadline)?;
        let completion = Arc::new(Completion::default());
        self.group = Some(OpenGroup {
            completion: Arc::clone(&completion),
            members_count: 0,
            runs_count: 0,
            opened_at: Instant::now(),
            has_lingerer: false,
        });
        Ok(completion)
    }

    /// Runs one thread's work; when it fails, none of its changes remain.
    fn run_member(&mut self, work: &mut Work<'_, D>) -> Result<(), Error> {
        let changes_before = self.database.changes_count();
        let ran = catch_unwind(AssertUnwindSafe(|| work(&mut self.database)));
        if let Some(group) = &mut self.group {
            group.runs_count += 1;
            group.members_count += usize::from(matches!(ran, Ok(Ok(()))));
        }
        // SQLite rolls back by itself on some failures, such as a full disk.
        let is_undone = !self.database.is_in_transaction();
        let has_changed = self.database.changes_count() != changes_before;
        if !matches!(ran, Ok(Ok(()))) && (is_undone || has_changed) {
            self.retry();
        }
        ran.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Commits the open group, if there is one.
    fn commit(&mut self) -> Option<FinishedGroup> {
        let OpenGroup { completion, members_count, .. } = self.group.take()?;
        self.expected_count = members_count;
        let start = Instant::now();
        let committed = self.database.commit();
        self.commit_time = start.elapsed();
        let outcome = match committed {
            Ok(()) => Outcome::Committed,
            Err(error) => Outcome::Failed(error),
        };
        Some(FinishedGroup { completion, members_count, outcome })
    }

    /// Rolls the group back; its members run again.
    fn retry(&mut self) {
        self.database.roll_back();
        if let Some(group) = self.group.take() {
            group.completion.complete(Outcome::Retry);
        }
    }
}

impl OpenGroup {
    fn is_full(&self) -> bool {
        self.runs_count >= RUNS_MAX || self.opened_at.elapsed() >= AGE_MAX
    }
}

impl Completion {
    fn complete(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.completed.notify_all();
    }

    fn wait(&self) -> Outcome {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => {
                    let completed = self.completed.wait(outcome);
                    outcome = completed.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
