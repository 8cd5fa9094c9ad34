//! The indexer: follows the change feed and keeps the index.
//!
//! Nothing of the index is written when a memory is. Instead, whoever searches first brings the
//! index up to the newest change that was there when it began, and long-running doors do so in
//! between, so that a search finds little to do. Texts are read as notes outside of any
//! transaction; the transaction that keeps the entries also keeps how far the index has come, and
//! reads every memory again that has changed in the meantime. So an index that has reached a
//! sequence holds every memory as it was then or later, whichever process brings it further.

use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::{Archived, Event, MemoryQuery, Reader, Sequence};
use crate::index::{Entry, FIRST_INDEX_CURSOR, INDEX_CURSOR, REBUILD_CURSOR};
use crate::model::{Directory, Memory, MemoryId, StoreId, View};
use crate::{Error, ErrorKind};

use super::stores::all_stores;
use super::{Engine, Ledger};

/// So many memories are put into the index in one transaction. Writers wait for so long.
const BATCH: usize = 128;

/// Where the index stands.
struct State {
    reached: Option<Sequence>,
    rebuild: Sequence,
    newest: Sequence,
}

/// Returns how far the index has certainly come.
pub(super) fn reached(reader: &dyn Reader) -> Result<Sequence, Error> {
    let state = State::read(reader)?;
    let reached = state.reached.filter(|_| state.rebuild == Sequence(0));
    Ok(reached.unwrap_or_default())
}

impl State {
    fn read(reader: &dyn Reader) -> Result<Self, Error> {
        let is_first_kind = reader.cursor(FIRST_INDEX_CURSOR)?.is_some();
        let reached = if is_first_kind { None } else { reader.cursor(INDEX_CURSOR)? };
        Ok(Self {
            reached,
            rebuild: reader.cursor(REBUILD_CURSOR)?.unwrap_or_default(),
            newest: reader.newest_change()?.0,
        })
    }

    fn has_reached(&self, goal: Sequence) -> bool {
        self.rebuild == Sequence(0) && self.reached.is_some_and(|reached| reached >= goal)
    }

    fn is_rebuilt_with(&self, token: Sequence) -> bool {
        self.rebuild == token && self.reached.is_some()
    }
}

/// One memory that the index must take in.
struct Task {
    store: StoreId,
    memory: MemoryId,
    /// What the memory was when it was read; `None` if it was deleted.
    entry: Option<Arc<Entry>>,
}

/// How long a storage that could not be written is not tried again by those who only read.
const FAILURE_AGE_MAX: Duration = Duration::from_secs(2);

/// The copy in memory that searches use while the index cannot be written.
#[derive(Debug, Default)]
pub(super) struct Copies(Mutex<Option<Copy>>);

#[derive(Debug)]
struct Copy {
    engine: Engine,
    /// The newest change that is in it.
    newest: Sequence,
    /// Why the index could not be written, and when.
    failed: Error,
    at: Instant,
}

impl Copies {
    fn lock(&self) -> MutexGuard<'_, Option<Copy>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recent_failure(&self) -> Option<Error> {
        let kept = self.lock();
        let recent = kept.as_ref().filter(|copy| copy.at.elapsed() < FAILURE_AGE_MAX)?;
        Some(recent.failed.clone())
    }

    /// Frees the copy, unless somebody is making one: this is called where nothing may wait.
    fn clear(&self) {
        if let Ok(mut kept) = self.0.try_lock() {
            *kept = None;
        }
    }
}

/// A part of the feed, read as tasks.
enum Part {
    Tasks {
        from: Sequence,
        to: Sequence,
        tasks: Vec<Task>,
    },
    /// The feed no longer holds what the index has not seen, or the index is of another kind.
    Missing,
}

impl Engine {
    /// Brings the index a step further and returns how many changes or memories it took in; zero
    /// if the index was up to date.
    ///
    /// Searching does this by itself. A door that runs for long does it after each
    /// [`wait`](Self::wait), so that searches find little to do.
    pub fn index_pending(&self) -> Result<usize, Error> {
        // Two indexers of one process would only do the same work twice.
        let _turn = self.index_turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.read(State::read)?;
        if state.has_reached(state.newest) {
            self.copies.clear();
            return Ok(0);
        }
        // Parsing a batch of notes is wasted if the index cannot be written.
        self.require_writing()?;
        if state.rebuild != Sequence(0) && state.reached.is_some() {
            return self.build_index(state.rebuild);
        }
        match self.read(|reader| next_part(reader, state.reached))? {
            Part::Missing => {
                self.start_rebuild()?;
                Ok(1)
            }
            Part::Tasks { from, to, tasks } => {
                self.take_in(from, to, &tasks)?;
                Ok(usize::try_from(to.0.saturating_sub(from.0)).unwrap_or(usize::MAX).max(1))
            }
        }
    }

    /// Runs `work` on a snapshot in which the index holds everything that was acknowledged before
    /// this was called.
    pub(super) fn read_indexed<T>(
        &self,
        work: impl Fn(&dyn Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut first_goal = None;
        loop {
            let (goal, answer) = self.read(|reader| {
                let state = State::read(reader)?;
                let goal = first_goal.unwrap_or(state.newest);
                let answer = state.has_reached(goal).then(|| work(reader)).transpose()?;
                Ok((goal, answer))
            })?;
            if let Some(answer) = answer {
                self.copies.clear();
                return Ok(answer);
            }
            first_goal = Some(goal);
            if self.restriction.is_some() {
                self.index_pending()?;
                continue;
            }
            let failed =
                match self.copies.recent_failure().map_or_else(|| self.index_pending(), Err) {
                    Err(error) if cannot_write_now(&error) => error,
                    result => {
                        result?;
                        continue;
                    }
                };
            // Searching is a read: it needs no room on the disk, and waits for no writer.
            return match self.copy(&failed)? {
                Some(copy) => copy.read_indexed(work),
                None => Err(failed),
            };
        }
    }

    /// Returns an engine over a copy of everything in memory, whose index can be brought further.
    /// `None` if everything is too much.
    fn copy(&self, failed: &Error) -> Result<Option<Self>, Error> {
        let mut kept = self.copies.lock();
        if let Some(Copy { engine, newest, .. }) = &*kept
            && *newest == self.newest_sequence()?
        {
            return Ok(Some(engine.clone()));
        }
        let Some(backend) = self.backend.copy_in_memory()? else { return Ok(None) };
        let engine = Self::new(backend, Arc::clone(&self.clock), self.limits.clone());
        let newest = engine.newest_sequence()?;
        *kept = Some(Copy {
            engine: engine.clone(),
            newest,
            failed: failed.clone(),
            at: Instant::now(),
        });
        Ok(Some(engine))
    }

    /// Brings the index up to the newest change.
    fn index_all(&self) -> Result<(), Error> {
        let goal = self.newest_sequence()?;
        while !self.read(State::read)?.has_reached(goal) {
            self.index_pending()?;
        }
        self.copies.clear();
        Ok(())
    }

    /// Brings the index up to the newest change, unless the storage cannot be written now.
    ///
    /// What inspects a full disk must not need room itself.
    pub(super) fn index_if_possible(&self) -> Result<(), Error> {
        match self.index_all() {
            Err(error) if cannot_write_now(&error) => Ok(()),
            result => result,
        }
    }

    /// Builds the whole index anew.
    pub(super) fn rebuild_index(&self) -> Result<(), Error> {
        self.start_rebuild()?;
        self.index_all()
    }

    /// Empties the index and notes that every memory is to be put into it.
    fn start_rebuild(&self) -> Result<(), Error> {
        let token = Sequence(u64::try_from(self.random() >> 66).unwrap_or_default() | 1);
        self.write_derived(|ledger| {
            let newest = ledger.reader().newest_change()?.0;
            ledger.writer.clear_index()?;
            ledger.writer.put_cursor(INDEX_CURSOR, newest)?;
            ledger.writer.put_cursor(REBUILD_CURSOR, token)
        })
    }

    /// Puts every memory into the index that is not in it, and notes that none is missing.
    fn build_index(&self, token: Sequence) -> Result<usize, Error> {
        let stores = self.read(|reader| {
            let mut stores = Vec::new();
            for workspace in reader.workspaces()? {
                stores.extend(all_stores(reader, workspace.id, Archived::Show)?);
            }
            Ok(stores)
        })?;
        let mut count = 1;
        for store in stores {
            let mut start = Bound::Unbounded;
            loop {
                let (tasks, last) =
                    self.read(|reader| unindexed(reader, store.id, start.clone()))?;
                count += tasks.len();
                self.write_rebuilt(token, |ledger| carry_out(ledger, &tasks))?;
                let Some(last) = last else { break };
                start = Bound::Excluded(last);
            }
        }
        self.write_rebuilt(token, |ledger| ledger.writer.put_cursor(REBUILD_CURSOR, Sequence(0)))?;
        Ok(count)
    }

    /// Changes the index, unless another process has emptied it once more since.
    fn write_rebuilt(
        &self,
        token: Sequence,
        work: impl Fn(&mut Ledger<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.write_derived(|ledger| {
            let is_mine = State::read(ledger.reader())?.is_rebuilt_with(token);
            if is_mine { work(ledger) } else { Ok(()) }
        })
    }

    /// Carries out the tasks of a part, unless another process has done so.
    fn take_in(&self, from: Sequence, to: Sequence, tasks: &[Task]) -> Result<(), Error> {
        self.write_derived(|ledger| {
            if State::read(ledger.reader())?.reached != Some(from) {
                return Ok(());
            }
            carry_out(ledger, tasks)?;
            ledger.writer.put_cursor(INDEX_CURSOR, to)
        })
    }
}

/// Returns whether the storage can be read, but not written.
fn cannot_write_now(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::StorageBusy | ErrorKind::StorageUnavailable
    )
}

fn next_part(reader: &dyn Reader, reached: Option<Sequence>) -> Result<Part, Error> {
    let Some(from) = reached else { return Ok(Part::Missing) };
    let changes = reader.changes(from, BATCH)?;
    match changes.first() {
        Some(first) if first.sequence.0 != from.0 + 1 => return Ok(Part::Missing),
        Some(_) | None => {}
    }
    let mut memories = Vec::new();
    let mut to = from;
    for change in changes {
        to = change.sequence;
        if let Event::Version(id) = change.event
            && let Some(version) = reader.version(change.store, id, View::Basic)?
        {
            memories.push((version.memory, change.store));
        }
    }
    // Entries are put in the order of ids, which an index likes better than any other.
    memories.sort_unstable();
    memories.dedup();
    let mut tasks = Vec::new();
    for (memory, store) in memories {
        let read = reader.memory(store, memory, View::Full)?;
        tasks.push(Task { store, memory, entry: read.as_ref().map(entry) });
    }
    Ok(Part::Tasks { from, to, tasks })
}

/// Returns the entries of some memories that are not in the index, and the last path looked at.
fn unindexed(
    reader: &dyn Reader,
    store: StoreId,
    start: Bound<String>,
) -> Result<(Vec<Task>, Option<String>), Error> {
    let query = MemoryQuery { directory: Directory::root(), start, limit: BATCH, view: View::Full };
    let memories = reader.memories(store, &query)?;
    let last = memories.last().map(|memory| memory.path.as_str().to_owned());
    let mut tasks = Vec::new();
    for memory in memories {
        let is_known =
            reader.note(store, memory.id)?.is_some_and(|note| note.version == memory.version);
        if !is_known {
            tasks.push(Task { store, memory: memory.id, entry: Some(entry(&memory)) });
        }
    }
    Ok((tasks, last))
}

/// Carries out tasks on memories as they are now, which may be later than when the task was made.
///
/// The cursor moves past every task, so none may be left out: a memory that was edited meanwhile is
/// read again, here, where nobody can edit it. Leaving it to the change that edited it would make it
/// unfindable until that change is taken in, although its creation was acknowledged long ago.
fn carry_out(ledger: &mut Ledger<'_>, tasks: &[Task]) -> Result<(), Error> {
    let mut entries = Vec::new();
    for task in tasks {
        let read = |view| ledger.reader().memory(task.store, task.memory, view);
        match (read(View::Basic)?, &task.entry) {
            (None, _) => ledger.writer.remove_note(task.store, task.memory)?,
            (Some(now), Some(entry)) if now.version == entry.row.version => {
                entries.push(Arc::clone(entry));
            }
            (Some(_), _) => entries.extend(read(View::Full)?.as_ref().map(entry)),
        }
    }
    ledger.writer.put_notes(&entries)
}

fn entry(memory: &Memory) -> Arc<Entry> {
    Arc::new(Entry::read(memory))
}
