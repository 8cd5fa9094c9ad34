//! Who leads a group, who takes part in it, and who learns how it ended.
//!
//! A thread takes a [`Seat`] in a lane and waits. The first one with nobody before it leads: it takes the seats
//! of all who wait in its lane, and begins. Then the group is handed from seat to seat, and at the end each seat
//! is told the outcome. This is only about threads; what a group is, [`crate::group`] says.
//!
//! Every wait has a deadline, and a seat that has given up is passed over. A seat that was given something at
//! the very moment of its deadline has not given up: whoever gave it counts on it.

use std::collections::VecDeque;
use std::time::Duration;

use crate::sync::{Arc, Condvar, Instant, Mutex, MutexGuard, PoisonError};

/// How many seats a group has at most, so that the first of them does not wait too long.
pub(crate) const MEMBERS_MAX: usize = 64;

/// How many groups of the mixed lane are under way at most.
const MIXED_MAX: usize = 4;

/// When the last group began so long ago, something outside of this process holds it up, and another one may
/// begin beside it. Always having two makes each half as large, which costs more than it gains: the second
/// waits for the counter, and mostly for the same stores too.
const STUCK_AFTER: Duration = Duration::from_millis(20);

/// Where a seat waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane<K> {
    /// With everybody whose store is free.
    Mixed,
    /// With those that wait for the same store.
    Of(K),
    /// With nobody.
    Alone,
}

/// The seats of a process that wait, and the groups that are under way.
pub(crate) struct Queue<K, A, G, O> {
    line: Mutex<Line<K, A, G, O>>,
    /// How many groups that may have to wait for a store are under way at most.
    single_max: usize,
}

struct Line<K, A, G, O> {
    waiting: VecDeque<Arc<Seat<K, A, G, O>>>,
    mixed_count: usize,
    /// When the last group of the mixed lane began.
    begun_at: Option<Instant>,
    /// The lanes of the groups under way that are not mixed.
    single: Vec<Lane<K>>,
}

/// The place of a thread.
pub(crate) struct Seat<K, A, G, O> {
    lane: Lane<K>,
    announcement: A,
    state: Mutex<State<K, A, G, O>>,
    changed: Condvar,
}

/// The seats of a group, the leader's first.
pub(crate) type Seats<K, A, G, O> = Vec<Arc<Seat<K, A, G, O>>>;

/// Who leads a group, and its seats.
type Led<K, A, G, O> = (Arc<Seat<K, A, G, O>>, Seats<K, A, G, O>);

enum State<K, A, G, O> {
    Waiting,
    Leading(Seats<K, A, G, O>),
    Turn(G),
    Over(O),
    Gone,
}

/// What a seat has waited for.
pub(crate) enum Called<K, A, G, O> {
    /// It leads a group of these seats.
    Leads(Seats<K, A, G, O>),
    /// It is its turn in a group.
    Turn(G),
    /// The group has ended without it.
    Over(O),
    /// Nothing came before the deadline.
    GaveUp,
}

impl<K: Copy + PartialEq, A, G, O: Clone> Queue<K, A, G, O> {
    pub(crate) fn new(single_max: usize) -> Self {
        let line =
            Line { waiting: VecDeque::new(), mixed_count: 0, begun_at: None, single: Vec::new() };
        Self { line: Mutex::new(line), single_max: single_max.max(1) }
    }

    /// Waits for something to do. A seat that is not ready neither leads nor is taken along.
    pub(crate) fn join(
        &self,
        seat: &Arc<Seat<K, A, G, O>>,
        deadline: Instant,
        is_ready: &dyn Fn(&A) -> bool,
    ) -> Called<K, A, G, O> {
        self.line().waiting.push_back(Arc::clone(seat));
        loop {
            if let Some(seats) = self.line().lead(seat, self.single_max, is_ready) {
                return Called::Leads(seats);
            }
            let pause = deadline.min(Instant::now() + STUCK_AFTER);
            if let Some(called) = seat.wait_until(pause) {
                return called;
            }
            if Instant::now() >= deadline {
                let called = seat.give_up();
                if matches!(called, Called::GaveUp) {
                    self.line().waiting.retain(|other| !Arc::ptr_eq(other, seat));
                }
                return called;
            }
        }
    }

    /// Ends a group of a lane, and calls the leaders of the next ones.
    pub(crate) fn end(
        &self,
        lane: Lane<K>,
        seats: impl IntoIterator<Item = Arc<Seat<K, A, G, O>>>,
        outcome: &O,
        is_ready: &dyn Fn(&A) -> bool,
    ) {
        for seat in seats {
            seat.tell(outcome.clone());
        }
        let mut is_counted = true;
        loop {
            let mut line = self.line();
            if std::mem::take(&mut is_counted) {
                line.leave(lane);
            }
            let Some((leader, seats)) = line.next(self.single_max, is_ready) else { return };
            drop(line);
            // Otherwise another lane may have room too.
            if let Err(State::Leading(seats)) = leader.offer(State::Leading(seats)) {
                // It has given up; the others still wait.
                let mut line = self.line();
                line.leave(leader.lane);
                for seat in seats.into_iter().skip(1).rev() {
                    line.waiting.push_front(seat);
                }
            }
        }
    }

    /// Returns how many seats wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.line().waiting.len()
    }

    fn line(&self) -> MutexGuard<'_, Line<K, A, G, O>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + PartialEq, A, G, O> Line<K, A, G, O> {
    /// Returns the seats of a group that this one leads, if another group may begin now.
    fn lead(
        &mut self,
        seat: &Arc<Seat<K, A, G, O>>,
        single_max: usize,
        is_ready: &dyn Fn(&A) -> bool,
    ) -> Option<Seats<K, A, G, O>> {
        let is_stuck = self.begun_at.is_none_or(|begun| begun.elapsed() >= STUCK_AFTER);
        let mixed_max = if is_stuck { MIXED_MAX } else { 1 };
        if !self.may_begin(seat.lane, (mixed_max, single_max)) || !is_ready(&seat.announcement) {
            return None;
        }
        let place = self.waiting.iter().position(|other| Arc::ptr_eq(other, seat))?;
        Some(self.begin(place, is_ready))
    }

    /// Returns the next group that may begin, with its leader.
    fn next(
        &mut self,
        single_max: usize,
        is_ready: &dyn Fn(&A) -> bool,
    ) -> Option<Led<K, A, G, O>> {
        // Beside another mixed group, those who wait gather for the one after it.
        let may_lead = |seat: &Arc<Seat<K, A, G, O>>| {
            self.may_begin(seat.lane, (1, single_max)) && is_ready(&seat.announcement)
        };
        let place = self.waiting.iter().position(may_lead)?;
        let leader = Arc::clone(self.waiting.get(place)?);
        Some((leader, self.begin(place, is_ready)))
    }

    fn may_begin(&self, lane: Lane<K>, (mixed_max, single_max): (usize, usize)) -> bool {
        match lane {
            Lane::Mixed => self.mixed_count < mixed_max,
            Lane::Of(_) => self.single.len() < single_max && !self.single.contains(&lane),
            Lane::Alone => self.single.len() < single_max,
        }
    }

    /// Takes the seats of a group that begins, led by the one at a place.
    fn begin(&mut self, place: usize, is_ready: &dyn Fn(&A) -> bool) -> Seats<K, A, G, O> {
        let Some(leader) = self.waiting.remove(place) else { return Vec::new() };
        let lane = leader.lane;
        match lane {
            Lane::Mixed => {
                self.mixed_count += 1;
                self.begun_at = Some(Instant::now());
            }
            Lane::Of(_) | Lane::Alone => self.single.push(lane),
        }
        let mut seats = vec![leader];
        if lane == Lane::Alone {
            return seats;
        }
        let mut rest = VecDeque::with_capacity(self.waiting.len());
        for seat in self.waiting.drain(..) {
            let is_taken = seats.len() < MEMBERS_MAX && seat.lane == lane;
            if is_taken && is_ready(&seat.announcement) {
                seats.push(seat);
            } else {
                rest.push_back(seat);
            }
        }
        self.waiting = rest;
        seats
    }

    fn leave(&mut self, lane: Lane<K>) {
        match lane {
            Lane::Mixed => self.mixed_count -= 1,
            Lane::Of(_) | Lane::Alone => {
                if let Some(place) = self.single.iter().position(|other| *other == lane) {
                    self.single.swap_remove(place);
                }
            }
        }
    }
}

impl<K: Copy, A, G, O> Seat<K, A, G, O> {
    pub(crate) fn new(lane: Lane<K>, announcement: A) -> Arc<Self> {
        let state = Mutex::new(State::Waiting);
        Arc::new(Self { lane, announcement, state, changed: Condvar::new() })
    }

    pub(crate) fn lane(&self) -> Lane<K> {
        self.lane
    }

    pub(crate) fn announcement(&self) -> &A {
        &self.announcement
    }

    /// Hands the group on; returns it if this seat has given up.
    pub(crate) fn hand(&self, group: G) -> Option<G> {
        match self.offer(State::Turn(group)) {
            Err(State::Turn(group)) => Some(group),
            Ok(()) | Err(_) => None,
        }
    }

    /// Tells the outcome.
    pub(crate) fn tell(&self, outcome: O) {
        // If nobody is there any more, nobody has to learn it.
        drop(self.offer(State::Over(outcome)));
    }

    /// Waits for the outcome; `None` if it does not come before the deadline.
    pub(crate) fn wait_for_outcome(&self, deadline: Instant) -> Option<O> {
        loop {
            match self.wait_until(deadline) {
                Some(Called::Over(outcome)) => return Some(outcome),
                // It has had its turn.
                Some(Called::Leads(_) | Called::Turn(_) | Called::GaveUp) => {}
                None => {
                    return match self.give_up() {
                        Called::Over(outcome) => Some(outcome),
                        Called::Leads(_) | Called::Turn(_) | Called::GaveUp => None,
                    };
                }
            }
        }
    }

    /// Waits until there is something to do; `None` if there is nothing until then.
    fn wait_until(&self, until: Instant) -> Option<Called<K, A, G, O>> {
        let mut state = self.state();
        loop {
            if let Some(called) = state.take() {
                return Some(called);
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
    fn give_up(&self) -> Called<K, A, G, O> {
        let mut state = self.state();
        state.take().unwrap_or_else(|| {
            *state = State::Gone;
            Called::GaveUp
        })
    }

    /// Changes the state; returns the new one if nobody is there any more.
    fn offer(&self, new: State<K, A, G, O>) -> Result<(), State<K, A, G, O>> {
        let mut state = self.state();
        if matches!(*state, State::Gone) {
            return Err(new);
        }
        *state = new;
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State<K, A, G, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, A, G, O> State<K, A, G, O> {
    /// Takes what there is to do.
    fn take(&mut self) -> Option<Called<K, A, G, O>> {
        match std::mem::replace(self, Self::Waiting) {
            Self::Waiting => None,
            Self::Leading(seats) => Some(Called::Leads(seats)),
            Self::Turn(group) => Some(Called::Turn(group)),
            Self::Over(outcome) => Some(Called::Over(outcome)),
            Self::Gone => {
                *self = Self::Gone;
                None
            }
        }
    }
}
