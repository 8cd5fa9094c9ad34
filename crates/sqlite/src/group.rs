//! Group commit: the writes of many threads with one sync.
//!
//! Leader and followers: each thread runs its own work on the one connection that writes. If other
//! threads are about to write too, the transaction stays open for them, and one of them commits for
//! all. Nobody returns before the commit that holds its work has reached the disk.
//!
//! The connection and the open transaction are a [`Seat`] that one thread has at a time. Whoever
//! leaves the seat with a transaction open has made sure that somebody else commits it: a thread
//! that waits for the seat, or one that lingers. A group ends after a number of runs and after a
//! time, whether its members changed anything or not: were refused writes free, a few threads whose
//! writes are refused would keep the transaction of one whose write is not open for good.
//!
//! Every wait for the seat has a deadline. The only wait without one is for the disk.

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
    /// Signaled when the seat becomes free.
    free: Condvar,
    hooks: Hooks,
}

/// What a group tells others, and asks them.
pub(crate) struct Hooks {
    /// Is called after a commit that changed something.
    pub(crate) committed: Box<dyn Fn() + Send + Sync>,
    /// Returns the error for a writer that has waited too long.
    pub(crate) busy: Box<dyn Fn() -> Error + Send + Sync>,
}

struct State<D> {
    /// `None` while a thread has it.
    seat: Option<Seat<D>>,
    /// When each thread that waits for the seat came, the first one first.
    waiting: Vec<(u64, Instant)>,
    arrivals_count: u64,
    figures: GroupFigures,
}

/// How the groups of a process went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupFigures {
    /// How many transactions were committed.
    pub(crate) groups: u64,
    /// How many writes were in them.
    pub(crate) writes: u64,
    /// How many threads wait now.
    pub(crate) waiting: usize,
}

/// Whose changes a run may see before they are durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Company {
    /// Those of the others in its group.
    Any,
    /// Nobody's.
    None,
}

struct Seat<D> {
    database: D,
    group: Option<OpenGroup>,
    /// How many members the last group had: as many may be expected again.
    expected_count: usize,
    /// How long the last commit took. Waiting so long for others pays if one of them comes.
    commit_time: Duration,
}

/// A transaction that further threads may join.
struct OpenGroup {
    verdict: Arc<Verdict>,
    /// How many threads have changed something.
    members_count: usize,
    /// How many threads have run, those whose work was refused among them.
    runs_count: usize,
    opened_at: Instant,
    /// Whether a member lingers, and commits when it has waited enough.
    has_lingerer: bool,
}

/// Tells the members of a group what became of it.
#[derive(Default)]
struct Verdict {
    outcome: Mutex<Option<Outcome>>,
    settled: Condvar,
}

/// What became of a group.
#[derive(Clone)]
enum Outcome {
    /// It is committed, and on the disk if its members asked for that.
    Committed,
    /// It could not be committed.
    Failed(Error),
    /// The failure of one member has taken back the changes of all, so the others run again.
    Repeat,
}

/// A group ends after this number of runs, so that its first member does not wait too long.
const RUNS_MAX: usize = 64;

/// A group ends at this age for the same reason: a run can be long.
const AGE_MAX: Duration = Duration::from_millis(10);

/// The longest that a member waits for those of the last group to come back.
const LINGER_MAX: Duration = Duration::from_micros(500);

/// When somebody has waited this long, newcomers queue behind. Until then whoever is awake may take
/// the seat, because waking a thread for every run costs more than the run.
const FAIR_AFTER: Duration = Duration::from_millis(20);

impl<D: Database> GroupCommit<D> {
    pub(crate) fn new(database: D, hooks: Hooks) -> Self {
        let commit_time = Duration::ZERO;
        let seat = Some(Seat { database, group: None, expected_count: 1, commit_time });
        let (waiting, figures) = (Vec::new(), GroupFigures::default());
        let state = State { seat, waiting, arrivals_count: 0, figures };
        Self { state: Mutex::new(state), free: Condvar::new(), hooks }
    }

    /// Runs `work` in a transaction and returns when it is durable.
    pub(crate) fn run(&self, deadline: Instant, work: &mut Work<'_, D>) -> Result<(), Error> {
        let mut company = Company::Any;
        loop {
            let (ran, outcome) = self.run_in_group(deadline, company, work)?;
            match (ran, outcome) {
                (Ok(()), Outcome::Committed) => return Ok(()),
                // What made it fail is durable, or was there before.
                (Ok(()), Outcome::Failed(error)) | (Err(error), Outcome::Committed) => {
                    return Err(error);
                }
                // It may have failed because of changes of others that are gone. To find out, it
                // runs first in its next group: otherwise one that fails again and again would
                // make the others run again and again.
                (Err(_), Outcome::Failed(_) | Outcome::Repeat) => company = Company::None,
                (Ok(()), Outcome::Repeat) => {}
            }
        }
    }

    fn run_in_group(
        &self,
        deadline: Instant,
        company: Company,
        work: &mut Work<'_, D>,
    ) -> Result<(Result<(), Error>, Outcome), Error> {
        let mut turn = self.turn(Some(deadline))?;
        if company == Company::None {
            turn.commit();
        }
        let verdict = turn.seat().join(Purpose::Change, deadline)?;
        // A panic must not leave the others' transaction open.
        let is_member = |group: &OpenGroup| group.members_count > 0;
        let has_company = turn.seat().group.as_ref().is_some_and(is_member);
        let ran = catch_unwind(AssertUnwindSafe(|| turn.seat().run_member(work)));
        self.look_after(turn);
        match ran {
            Ok(Err(error)) if !has_company => Ok((Err(error), Outcome::Committed)),
            Ok(ran) => Ok((ran, verdict.wait())),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Runs `work` in a transaction of its own.
    pub(crate) fn run_apart(
        &self,
        purpose: Purpose,
        deadline: Instant,
        work: &mut Work<'_, D>,
    ) -> Result<(), Error> {
        let mut turn = self.turn(Some(deadline))?;
        turn.commit();
        let seat = turn.seat();
        let (expected_count, commit_time) = (seat.expected_count, seat.commit_time);
        let verdict = seat.join(purpose, deadline)?;
        let ran = catch_unwind(AssertUnwindSafe(|| seat.run_member(work)));
        turn.commit();
        // This says nothing about the groups of others.
        let seat = turn.seat();
        (seat.expected_count, seat.commit_time) = (expected_count, commit_time);
        drop(turn);
        ran.unwrap_or_else(|panic| resume_unwind(panic))?;
        match verdict.wait() {
            Outcome::Failed(error) => Err(error),
            Outcome::Committed | Outcome::Repeat => Ok(()),
        }
    }

    /// Runs `work` on the connection while no transaction is open.
    pub(crate) fn alone<T>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut D) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut turn = self.turn(Some(deadline))?;
        turn.commit();
        work(&mut turn.seat().database)
    }

    pub(crate) fn figures(&self) -> GroupFigures {
        let state = self.lock();
        GroupFigures { waiting: state.waiting.len(), ..state.figures }
    }

    /// Commits the group, unless another thread is certain to do so.
    fn look_after<'g>(&'g self, mut turn: Turn<'g, D>) {
        let Some(group) = &mut turn.seat().group else { return };
        if !group.is_full() {
            let Some(kept) = turn.leave_if_awaited() else { return };
            turn = kept;
            let seat = turn.seat();
            let (expected_count, commit_time) = (seat.expected_count, seat.commit_time);
            if let Some(group) = &mut seat.group
                && (1..expected_count).contains(&group.members_count)
            {
                if group.has_lingerer {
                    return;
                }
                group.has_lingerer = true;
                drop(turn);
                thread::sleep(commit_time.min(LINGER_MAX));
                // An open group is never left alone for long, so this needs no deadline.
                let Ok(again) = self.turn(None) else { return };
                turn = again;
            }
        }
        // After lingering, the group may be another one, which its members have left to this thread.
        turn.commit();
    }

    /// Waits for the seat.
    fn turn(&self, deadline: Option<Instant>) -> Result<Turn<'_, D>, Error> {
        let mut state = self.lock();
        state.arrivals_count += 1;
        let me = state.arrivals_count;
        state.waiting.push((me, Instant::now()));
        loop {
            if state.may_sit(me) {
                if let Some(seat) = state.seat.take() {
                    state.waiting.retain(|(other, _)| *other != me);
                    return Ok(Turn { group: self, seat: Some(seat), settled: Vec::new() });
                }
            } else if state.seat.is_some() {
                // The wake-up was for the one who may sit.
                self.free.notify_all();
            }
            let now = Instant::now();
            let remaining = deadline.map(|deadline| deadline.saturating_duration_since(now));
            if remaining.is_some_and(|remaining| remaining.is_zero()) {
                state.waiting.retain(|(other, _)| *other != me);
                // If the seat is free, it is for another who may not have been woken.
                self.free.notify_all();
                drop(state);
                return Err((self.hooks.busy)());
            }
            state = match remaining {
                Some(remaining) => {
                    let waited = self.free.wait_timeout(state, remaining);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.free.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        // A panic inside a transaction is caught and rolled back, so the state is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D> State<D> {
    /// Returns whether a thread that waits may take the seat when it is free.
    fn may_sit(&self, me: u64) -> bool {
        match self.waiting.first() {
            Some((first, _)) if *first == me => true,
            Some((_, since)) => since.elapsed() < FAIR_AFTER,
            None => true,
        }
    }
}

/// The seat, while this thread has it.
struct Turn<'g, D: Database> {
    group: &'g GroupCommit<D>,
    seat: Option<Seat<D>>,
    /// Groups that are over, but whose members do not know it yet.
    settled: Vec<(Arc<Verdict>, Outcome, bool)>,
}

impl<D: Database> Turn<'_, D> {
    fn seat(&mut self) -> &mut Seat<D> {
        self.seat.as_mut().expect("a turn has the seat until it ends")
    }

    /// Commits the open group, if there is one. Its members learn of it when the turn ends, because
    /// they write again at once and need the seat.
    fn commit(&mut self) {
        if let Some(ended) = self.seat().commit() {
            let mut state = self.group.lock();
            state.figures.groups += 1;
            state.figures.writes += u64::try_from(ended.members_count).unwrap_or(u64::MAX);
            drop(state);
            let has_changed = ended.members_count > 0;
            self.settled.push((ended.verdict, ended.outcome, has_changed));
        }
    }

    /// Leaves the seat to a thread that waits for it; returns the turn if none does.
    fn leave_if_awaited(mut self) -> Option<Self> {
        let mut state = self.group.lock();
        if state.waiting.is_empty() {
            drop(state);
            return Some(self);
        }
        state.seat = self.seat.take();
        drop(state);
        None
    }
}

impl<D: Database> Drop for Turn<'_, D> {
    fn drop(&mut self) {
        let mut state = self.group.lock();
        if let Some(seat) = self.seat.take() {
            state.seat = Some(seat);
        }
        let is_first_urgent =
            state.waiting.first().is_some_and(|(_, since)| since.elapsed() >= FAIR_AFTER);
        drop(state);
        if is_first_urgent {
            // Only the first may sit now, and a single wake-up might reach another.
            self.group.free.notify_all();
        } else {
            self.group.free.notify_one();
        }
        for (verdict, outcome, has_changed) in self.settled.drain(..) {
            let is_committed = matches!(outcome, Outcome::Committed);
            verdict.settle(outcome);
            if is_committed && has_changed {
                (self.group.hooks.committed)();
            }
        }
    }
}

/// A group that is over.
struct Ended {
    verdict: Arc<Verdict>,
    members_count: usize,
    outcome: Outcome,
}

impl<D: Database> Seat<D> {
    /// Returns the verdict of the open group, or opens one.
    fn join(&mut self, purpose: Purpose, deadline: Instant) -> Result<Arc<Verdict>, Error> {
        if let Some(group) = &self.group {
            return Ok(Arc::clone(&group.verdict));
        }
        self.database.begin(purpose, deadline)?;
        let verdict = Arc::new(Verdict::default());
        self.group = Some(OpenGroup {
            verdict: Arc::clone(&verdict),
            members_count: 0,
            runs_count: 0,
            opened_at: Instant::now(),
            has_lingerer: false,
        });
        Ok(verdict)
    }

    /// Runs one thread's work; when it fails, none of its changes remain.
    fn run_member(&mut self, work: &mut Work<'_, D>) -> Result<(), Error> {
        let changes_before = self.database.changes_count();
        let ran = catch_unwind(AssertUnwindSafe(|| work(&mut self.database)));
        if let Some(group) = &mut self.group {
            group.runs_count += 1;
            group.members_count += usize::from(matches!(ran, Ok(Ok(()))));
        }
        let is_undone = !self.database.is_in_transaction();
        let has_changed = self.database.changes_count() != changes_before;
        if !matches!(ran, Ok(Ok(()))) && (is_undone || has_changed) {
            // Work checks before it changes, so this is rare; a savepoint for every member would
            // cost more than running the others once more.
            self.repeat();
        }
        ran.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Commits the open group, if there is one.
    fn commit(&mut self) -> Option<Ended> {
        let OpenGroup { verdict, members_count, .. } = self.group.take()?;
        self.expected_count = members_count;
        let start = Instant::now();
        let committed = self.database.commit();
        self.commit_time = start.elapsed();
        let outcome = match committed {
            Ok(()) => Outcome::Committed,
            Err(error) => Outcome::Failed(error),
        };
        Some(Ended { verdict, members_count, outcome })
    }

    /// Ends a group without a commit; its members run again.
    fn repeat(&mut self) {
        self.database.roll_back();
        if let Some(group) = self.group.take() {
            group.verdict.settle(Outcome::Repeat);
        }
    }
}

impl OpenGroup {
    fn is_full(&self) -> bool {
        self.runs_count >= RUNS_MAX || self.opened_at.elapsed() >= AGE_MAX
    }
}

impl Verdict {
    fn settle(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.settled.notify_all();
    }

    fn wait(&self) -> Outcome {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => {
                    let settled = self.settled.wait(outcome);
                    outcome = settled.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
