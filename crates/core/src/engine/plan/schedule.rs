//! The order of a plan's steps, and which memories cannot get their paths because these are taken.
//!
//! Each step makes one version, so every path must be free when its memory arrives: deletions come first,
//! then moves, each after the move that frees its path, then what comes back. Memories that exchanged
//! their paths wait for each other and stay where they are; moving one of them aside would be a second
//! version of it, and a version that nobody asked for. The text of what stays goes back nevertheless.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;

use crate::Error;
use crate::backend::{MemoryQuery, Reader};
use crate::model::{Directory, Memory, MemoryId, MemoryPath, StoreId, View};

use super::{Action, State, Step};

/// Returns the steps in an order in which all of them succeed. Where there is none, memories keep their
/// paths; what is left as it is comes last.
pub(super) fn ordered(
    reader: &dyn Reader,
    store: StoreId,
    mut steps: Vec<Step>,
) -> Result<Vec<Step>, Error> {
    steps.sort_by(|a, b| place(a).cmp(&place(b)));
    if !steps.iter().any(|step| arrival(step).is_some()) {
        steps.sort_by_key(rank);
        return Ok(steps);
    }
    let query = MemoryQuery {
        directory: Directory::root(),
        start: Bound::Unbounded,
        limit: usize::MAX,
        view: View::Basic,
    };
    let live = reader.memories(store, &query)?;
    let moves = Schedule::new(&steps, &live).run();
    let order: HashMap<_, _> = moves.order.iter().zip(0..).map(|(id, n)| (*id, n)).collect();
    for step in &mut steps {
        if let Some(obstacle) = moves.refused.get(&step.memory) {
            step.keep_path(obstacle);
        }
    }
    steps.sort_by_key(|step| (rank(step), order.get(&step.memory).copied().unwrap_or(0)));
    Ok(steps)
}

/// Returns what steps are sorted by where their order is free: the path, then the id.
fn place(step: &Step) -> (Option<&MemoryPath>, MemoryId) {
    let before = step.before.as_ref().map(|before| &before.path);
    (before.or_else(|| arrival(step)), step.memory)
}

/// Returns what steps are sorted by first: what is done to their memories.
pub(super) fn rank(step: &Step) -> u8 {
    match step.action {
        Action::Delete => 0,
        Action::Change(_) => 1,
        Action::Create(_) => 2,
        Action::Leave => 3,
    }
}

/// Returns the path that must be free for a step, if it needs one.
pub(super) fn arrival(step: &Step) -> Option<&MemoryPath> {
    match &step.action {
        Action::Create(State { path, .. }) => Some(path),
        Action::Change(State { path, .. }) => {
            let is_move = step.before.as_ref().is_some_and(|before| before.path != *path);
            is_move.then_some(path)
        }
        Action::Delete | Action::Leave => None,
    }
}

/// Memories by their paths.
#[derive(Default)]
struct Paths<'a>(BTreeMap<&'a str, (MemoryId, &'a MemoryPath)>);

impl<'a> Paths<'a> {
    fn insert(&mut self, path: &'a MemoryPath, memory: MemoryId) {
        self.0.insert(path.as_str(), (memory, path));
    }

    /// Returns the memories that cannot be at their paths while another one is at `path`.
    fn overlapping(&self, path: &MemoryPath) -> Vec<(MemoryId, &'a MemoryPath)> {
        let mut found: Vec<_> = self.above(path).collect();
        let directory = path.as_directory();
        let below = self.0.range(directory.as_str()..).map(|(_, it)| *it);
        found.extend(below.take_while(|(_, other)| directory.contains(other)));
        found
    }

    /// Returns where one of these is; what lies below a path can be much, so it is not collected.
    fn occupant(&self, path: &MemoryPath) -> Option<&'a MemoryPath> {
        let directory = path.as_directory();
        let below = || self.0.range(directory.as_str()..).next().map(|(_, it)| *it);
        let (_, found) = self.above(path).next().or_else(below)?;
        found.overlaps(path).then_some(found)
    }

    fn above(&self, path: &MemoryPath) -> impl Iterator<Item = (MemoryId, &'a MemoryPath)> {
        let paths = path.ancestors().chain([path.as_str()]);
        paths.filter_map(|path| self.0.get(path).copied())
    }
}

/// The steps that need a free path, and what they need it from.
struct Schedule<'a> {
    /// Where each of them arrives, in the order of the steps.
    arrivals: Vec<(MemoryId, &'a MemoryPath)>,
    /// Where those are now that move.
    departures: HashMap<MemoryId, &'a MemoryPath>,
    /// What stays where it is.
    fixed: Paths<'a>,
}

/// The result of a schedule.
#[derive(Default)]
struct Moves {
    /// The moves in their order.
    order: Vec<MemoryId>,
    /// Why others cannot be made.
    refused: HashMap<MemoryId, String>,
}

impl<'a> Schedule<'a> {
    fn new(steps: &'a [Step], live: &'a [Memory]) -> Self {
        let mut leaving = HashSet::new();
        let mut arrivals = Vec::new();
        let mut departures = HashMap::new();
        for step in steps {
            let arrival = arrival(step);
            if arrival.is_some() || step.action == Action::Delete {
                leaving.insert(step.memory);
            }
            if let (Some(_), Some(before)) = (arrival, &step.before) {
                departures.insert(step.memory, &before.path);
            }
            arrivals.extend(arrival.map(|path| (step.memory, path)));
        }
        let mut fixed = Paths::default();
        for memory in live.iter().filter(|memory| !leaving.contains(&memory.id)) {
            fixed.insert(&memory.path, memory.id);
        }
        Self { arrivals, departures, fixed }
    }

    fn run(mut self) -> Moves {
        let mut moves = Moves::default();
        let mut claims = Paths::default();
        let mut refused = VecDeque::new();
        for &(memory, path) in &self.arrivals {
            // If two memories should go to overlapping paths, the first one does.
            match self.fixed.occupant(path).or_else(|| claims.occupant(path)) {
                None => claims.insert(path, memory),
                Some(occupant) => refused.push_back((memory, taken(path, occupant))),
            }
        }
        self.refuse(&mut claims, refused, &mut moves);
        let (order, waiting) = self.order(&claims);
        moves.order = order;
        let waiting = waiting.into_iter().map(|(memory, path)| (memory, exchanged(path)));
        self.refuse(&mut claims, waiting.collect(), &mut moves);
        moves
    }

    /// Leaves memories where they are, and those that need the paths where these stay.
    fn refuse(
        &mut self,
        claims: &mut Paths<'a>,
        mut refused: VecDeque<(MemoryId, String)>,
        moves: &mut Moves,
    ) {
        while let Some((memory, why)) = refused.pop_front() {
            moves.refused.entry(memory).or_insert(why);
            let Some(path) = self.departures.remove(&memory) else { continue };
            self.fixed.insert(path, memory);
            for (blocked, wanted) in claims.overlapping(path) {
                if blocked != memory {
                    claims.0.remove(wanted.as_str());
                    refused.push_back((blocked, taken(wanted, path)));
                }
            }
        }
    }

    /// Returns the moves so that each comes after those that free its path, and those that wait for each
    /// other or for one of these, with the path that they wait for.
    ///
    /// This is Kahn's algorithm. Paths that are claimed do not overlap, so a departure stands in the way
    /// of few arrivals, and the work is linear but for the lookups.
    fn order(&self, claims: &Paths<'a>) -> (Vec<MemoryId>, Vec<(MemoryId, &'a MemoryPath)>) {
        let mut leaving = Paths::default();
        for (memory, path) in &self.departures {
            leaving.insert(path, *memory);
        }
        let mut waits_for: HashMap<MemoryId, usize> = HashMap::new();
        let mut frees: HashMap<MemoryId, Vec<MemoryId>> = HashMap::new();
        let mut ready = VecDeque::new();
        let claimed = self.arrivals.iter().filter(|(memory, path)| {
            let claim = claims.0.get(path.as_str());
            claim.is_some_and(|(claimant, _)| claimant == memory)
        });
        let moving: Vec<_> =
            claimed.filter(|(memory, _)| self.departures.contains_key(memory)).copied().collect();
        for &(memory, path) in &moving {
            let occupants = leaving.overlapping(path).into_iter().map(|(other, _)| other);
            let occupants: Vec<_> = occupants.filter(|other| *other != memory).collect();
            if occupants.is_empty() {
                ready.push_back(memory);
            } else {
                waits_for.insert(memory, occupants.len());
            }
            for other in occupants {
                frees.entry(other).or_default().push(memory);
            }
        }
        let mut order = Vec::new();
        while let Some(memory) = ready.pop_front() {
            order.push(memory);
            for next in frees.remove(&memory).unwrap_or_default() {
                let Some(count) = waits_for.get_mut(&next) else { continue };
                *count -= 1;
                if *count == 0 {
                    waits_for.remove(&next);
                    ready.push_back(next);
                }
            }
        }
        let waiting = moving.into_iter().filter(|(memory, _)| waits_for.contains_key(memory));
        (order, waiting.collect())
    }
}

fn taken(wanted: &MemoryPath, occupant: &MemoryPath) -> String {
    if wanted == occupant {
        return format!("another memory is at `{wanted}`, where it should go");
    }
    format!("`{occupant}` is in the way of `{wanted}`, where it should go")
}

fn exchanged(wanted: &MemoryPath) -> String {
    format!(
        "the memory at `{wanted}`, where it should go, is one of several that exchanged their paths; \
         move them by hand"
    )
}
