//! Carries out a plan.
//!
//! The order is store, folder, state. The store comes first because it keeps versions: whatever
//! happens afterwards, the text is in the history. The state comes last because an entry in it is
//! the license to delete; writing it earlier would turn a step that never happened into a deletion.
//!
//! Every change is a compare-and-swap against what the plan was made from. If the file or the
//! memory has changed in the meantime, the step is dropped and planned again. Intents are journaled
//! before they are carried out, so that [`recovery`](super::recovery) can tell after a kill which
//! of them took effect.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use quipu_core::engine::{MemoryUpdate, NewAttachment, NewSession, Precondition, SessionToken};
use quipu_core::merge::{Merged, merge};
use quipu_core::model::{
    Access, Actor, Content, Instructions, Memory, MemoryId, MemoryPath, Store, VersionId, View,
};
use quipu_core::{Engine, Error};
use tempfile::TempPath;

use super::Progress;
use super::failure::{StepError, despite_a_stop};
use super::files::{Folder, Obstacle};
use super::kill::kill_point;
use super::plan::{Join, Place, Plan, Step, Task, TextFrom};
use super::record::{Record, SyncedEntry};
use super::report::{Action, ActionKind, LeftOut, Side};
use super::stamp::Identity;
use super::state::{Durability, Marker};

/// How many threads apply steps. Their writes share group commits; more threads would only queue.
const THREADS_COUNT: usize = 16;

/// Applies the steps of a plan to store and folder.
#[derive(Debug)]
pub(super) struct Applier<'a> {
    engine: &'a Engine,
    store: &'a Store,
    folder: &'a Folder,
    /// Where the journal is; `None` for a preview.
    marker: Option<&'a Marker>,
    /// The title of the session, and the session once it has begun.
    title: &'a str,
    actor: &'a Mutex<Option<Actor>>,
}

/// The outcome of a plan.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) synced: Vec<SyncedEntry>,
    pub(super) actions: Vec<Action>,
    /// Memories that were deleted.
    pub(super) deleted: HashSet<MemoryId>,
    pub(super) failed: Vec<LeftOut>,
    /// Steps to plan again, because something changed in the meantime.
    pub(super) retry: Vec<LeftOut>,
}

/// The outcome of a step.
#[derive(Debug, Default)]
struct StepResult {
    synced: Option<SyncedEntry>,
    actions: Vec<ActionKind>,
    /// A moved file that is still to be written. Two files may swap names, so every moved file
    /// leaves its old place before any is written to its new one.
    file: Option<MovedFile>,
}

/// A file between its old path and its new one.
#[derive(Debug)]
struct MovedFile {
    text: Content,
    /// The old file, which is kept until the new one is complete.
    aside: TempPath,
}

impl<'a> Applier<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        store: &'a Store,
        (folder, marker): (&'a Folder, Option<&'a Marker>),
        session: (&'a str, &'a Mutex<Option<Actor>>),
    ) -> Self {
        Self { engine, store, folder, marker, title: session.0, actor: session.1 }
    }

    /// Carries out a plan: deletions first, then moves, then the rest, so that paths are free
    /// before something else takes them.
    pub(super) fn apply(&self, plan: Plan, progress: &dyn Progress) -> Result<Applied, Error> {
        self.announce(&plan)?;
        let mut applied = Applied { synced: plan.frozen, ..Applied::default() };
        let mut phases = [Vec::new(), Vec::new(), Vec::new()];
        let [deletions, moves, rest] = &mut phases;
        for step in plan.steps {
            match &step.task {
                Task::DeleteMemory(_) | Task::DeleteFile(_) => deletions.push(step),
                Task::Join(join) if join.changes_nothing() => {
                    applied.synced.push(unchanged(join));
                }
                Task::Join(join) if join.moves_file() => moves.push(step),
                Task::Join(_) | Task::CreateMemory(_) | Task::CreateFile(_) => rest.push(step),
            }
        }
        progress.begin(phases.iter().map(Vec::len).sum());
        for steps in phases {
            let done = in_parallel(steps, |step| {
                let done = self.step(&step);
                progress.advance();
                (step, done)
            });
            let files = applied.collect(done)?;
            let written = in_parallel(files, |(step, done)| {
                let written = self.write_moved(&step, done);
                (step, written)
            });
            applied.collect(written)?;
        }
        Ok(applied)
    }

    /// Journals the intents of a plan, durably and all at once: one sync to disk instead of one for
    /// each step.
    fn announce(&self, plan: &Plan) -> Result<(), Error> {
        let intents: Vec<_> = plan.steps.iter().filter_map(Step::intent).collect();
        if intents.is_empty() {
            return Ok(());
        }
        let mut records = String::new();
        let actor = self.actor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Actor::Session(session)) = &*actor {
            records += &format!("{}\n", Record::Session(*session));
        }
        for intent in intents {
            records += &format!("{}\n", Record::Intent(intent));
        }
        kill_point("before the intents are written");
        self.journal(&records, Durability::Synced)?;
        kill_point("after the intents were written");
        Ok(())
    }

    fn journal(&self, records: &str, durability: Durability) -> Result<(), Error> {
        self.marker.map_or(Ok(()), |marker| marker.append(records, durability))
    }

    /// Journals the identity of a file before it appears at its path. It need not survive a power
    /// loss, since then the file itself may be gone, too.
    fn announce_file(&self, path: &MemoryPath, identity: Option<Identity>) -> Result<(), Obstacle> {
        let Some(identity) = identity else { return Ok(()) };
        let record = format!("{}\n", Record::Written(identity, path.clone()));
        self.journal(&record, Durability::Deferred).map_err(Obstacle::Journal)
    }

    fn create_file(&self, path: &MemoryPath, text: &Content) -> Result<Place, StepError> {
        self.folder.create(path, text, &|identity| self.announce_file(path, identity))?;
        self.placed(path, text)
    }

    fn step(&self, step: &Step) -> Result<StepResult, StepError> {
        let is_known = step.synced.is_some();
        match &step.task {
            Task::DeleteMemory(memory) => {
                let precondition = Precondition::ContentIs(memory.hash);
                let actor = self.actor()?;
                kill_point("before a memory is deleted");
                despite_a_stop(|| {
                    self.engine.delete(&actor, self.store.id, memory.id, precondition)
                })?;
                kill_point("after a memory was deleted");
                Ok(StepResult {
                    actions: vec![ActionKind::Deleted(Side::Store)],
                    ..StepResult::default()
                })
            }
            Task::DeleteFile(place) => {
                drop(self.folder.remove(&place.path, place.file.hash)?);
                Ok(StepResult {
                    actions: vec![ActionKind::Deleted(Side::Folder)],
                    ..StepResult::default()
                })
            }
            Task::CreateMemory(place) => {
                let content = self.folder.read(&place.path, place.file.hash)?;
                let actor = self.actor()?;
                kill_point("before a memory is created");
                let written = despite_a_stop(|| {
                    self.engine.create(&actor, self.store.id, &place.path, &content)
                })?;
                kill_point("after a memory was created");
                let action = if is_known { ActionKind::Revived } else { ActionKind::Created };
                let synced = synced_entry(&written.memory, place);
                Ok(StepResult {
                    synced: Some(synced),
                    actions: vec![action(Side::Store)],
                    file: None,
                })
            }
            Task::CreateFile(memory) => {
                let content = self.text_of(memory)?;
                let place = self.create_file(&memory.path, &content)?;
                let action = if is_known { ActionKind::Revived } else { ActionKind::Created };
                let synced = synced_entry(memory, &place);
                Ok(StepResult {
                    synced: Some(synced),
                    actions: vec![action(Side::Folder)],
                    file: None,
                })
            }
            Task::Join(join) => self.join(join),
        }
    }

    fn join(&self, join: &Join) -> Result<StepResult, StepError> {
        let Join { memory, place, path, .. } = join;
        let (text, action) = self.decided(join)?;
        let mut actions: Vec<_> = action.into_iter().collect();
        let update = MemoryUpdate {
            content: text.clone().filter(|text| text.hash() != memory.hash),
            path: (*path != memory.path).then(|| path.clone()),
            precondition: Precondition::ContentIs(memory.hash),
        };
        let mut memory = memory.clone();
        if update.content.is_some() || update.path.is_some() {
            if update.path.is_some() {
                actions.push(ActionKind::Moved { side: Side::Store, from: memory.path.clone() });
            }
            let actor = self.actor()?;
            kill_point("before a memory is changed");
            let (store, id) = (self.store.id, memory.id);
            memory = despite_a_stop(|| self.engine.update(&actor, store, id, &update))?.memory;
            kill_point("after a memory was changed");
        }
        if join.moves_file() {
            let text = match text {
                Some(text) => text,
                None => self.folder.read(&place.path, place.file.hash)?,
            };
            let aside = self.folder.remove(&place.path, place.file.hash)?;
            actions.push(ActionKind::Moved { side: Side::Folder, from: place.path.clone() });
            let place = Place { path: path.clone(), ..place.clone() };
            let file = Some(MovedFile { text, aside });
            return Ok(StepResult { synced: Some(synced_entry(&memory, &place)), actions, file });
        }
        let place = match text.filter(|text| text.hash() != place.file.hash) {
            Some(text) => {
                let announce = |identity| self.announce_file(&place.path, identity);
                self.folder.replace(&place.path, place.file.hash, (&text, &announce))?;
                self.placed(&place.path, &text)?
            }
            None => place.clone(),
        };
        Ok(StepResult { synced: Some(synced_entry(&memory, &place)), actions, file: None })
    }

    fn write_moved(&self, step: &Step, done: StepResult) -> Result<StepResult, StepError> {
        let (Task::Join(join), Some(moved), Some(before)) = (&step.task, done.file, done.synced)
        else {
            return Ok(StepResult::default());
        };
        let MovedFile { text, aside } = moved;
        let Place { path, file } = match self.create_file(&join.path, &text) {
            Ok(place) => place,
            Err(error) => {
                if text.hash() != before.store_hash {
                    // The store has redacted a credential, so this may be the only copy of the
                    // text.
                    aside.keep().map_err(|error| Obstacle::Io(error.error))?;
                }
                return Err(error);
            }
        };
        let synced = SyncedEntry {
            path,
            folder_hash: file.hash,
            identity: file.identity,
            stamp: file.stamp,
            ..before
        };
        Ok(StepResult { synced: Some(synced), actions: done.actions, file: None })
    }

    /// Returns the text for both sides, unless each keeps its own, and the action to report.
    pub(super) fn decided(
        &self,
        join: &Join,
    ) -> Result<(Option<Content>, Option<ActionKind>), StepError> {
        let ours = || self.folder.read(&join.place.path, join.place.file.hash);
        match join.text {
            TextFrom::Same => Ok((None, None)),
            TextFrom::Folder => Ok((Some(ours()?), Some(ActionKind::Changed(Side::Store)))),
            TextFrom::Store => {
                Ok((Some(self.text_of(&join.memory)?), Some(ActionKind::Changed(Side::Folder))))
            }
            TextFrom::Merge(base) => {
                let (text, action) = self.merged(base, &join.memory, ours()?)?;
                Ok((Some(text), Some(action)))
            }
        }
    }

    fn merged(
        &self,
        base: Option<VersionId>,
        memory: &Memory,
        ours: Content,
    ) -> Result<(Content, ActionKind), StepError> {
        let theirs = self.text_of(memory)?;
        // The base may have been pruned or redacted. Without it, different texts are a conflict.
        let base = base.map(|id| self.engine.version(self.store.id, id, View::Full));
        let base = base.and_then(Result::ok).and_then(|version| version.content);
        let base = base.as_ref().map_or("", Content::as_str);
        if let Merged::Clean(text) = merge(base, ours.as_str(), theirs.as_str()) {
            let text = Content::new(text).map_err(Error::from)?;
            if text.size_bytes() <= self.engine.limits().content_size_bytes_max {
                return Ok((text, ActionKind::Merged));
            }
        }
        Ok((ours, ActionKind::Conflict { version: memory.version }))
    }

    /// Returns the text of a memory, provided that it has not changed since it was planned.
    fn text_of(&self, memory: &Memory) -> Result<Content, StepError> {
        let now = self.engine.memory(self.store.id, memory.id, View::Full)?;
        match now.content {
            Some(content) if now.hash == memory.hash && now.path == memory.path => Ok(content),
            Some(_) | None => Err(StepError::Retry("it changed during the sync".to_owned())),
        }
    }

    /// Returns the place of a file that was just written.
    fn placed(&self, path: &MemoryPath, text: &Content) -> Result<Place, StepError> {
        let mut file = self.folder.found(path)?;
        // Somebody has edited it already. Recording the hash that was written, without a
        // fingerprint, makes the next sync see the edit as one.
        if file.hash != text.hash() {
            file.hash = text.hash();
            file.identity = None;
            file.stamp = None;
        }
        Ok(Place { path: path.clone(), file })
    }

    /// Returns the session of this sync, which is created with the first change of the store.
    fn actor(&self) -> Result<Actor, StepError> {
        let mut actor = self.actor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(actor) = &*actor {
            return Ok(actor.clone());
        }
        let attachment = NewAttachment {
            store: self.store.id,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let new = NewSession::titled(self.title, vec![attachment], SessionToken::None);
        let created = despite_a_stop(|| self.engine.create_session(self.store.workspace, &new));
        let (session, _) = created.map_err(StepError::Fatal)?;
        let record = format!("{}\n", Record::Session(session.id));
        self.journal(&record, Durability::Synced).map_err(StepError::Fatal)?;
        let session = Actor::Session(session.id);
        *actor = Some(session.clone());
        Ok(session)
    }
}

impl Applied {
    /// Collects results and returns those with a moved file still to be written.
    fn collect(
        &mut self,
        results: Vec<(Step, Result<StepResult, StepError>)>,
    ) -> Result<Vec<(Step, StepResult)>, Error> {
        let mut unfinished = Vec::new();
        for (step, result) in results {
            match result {
                Ok(done) if done.file.is_some() => unfinished.push((step, done)),
                Ok(done) => {
                    if let Task::DeleteMemory(memory) = &step.task {
                        self.deleted.insert(memory.id);
                    }
                    self.note(&step, done.actions);
                    self.synced.extend(done.synced);
                }
                Err(error) => {
                    self.note_error(&step, error)?;
                    // The common ancestor of both sides is still what it was.
                    self.synced.extend(step.synced);
                }
            }
        }
        Ok(unfinished)
    }

    pub(super) fn note(&mut self, step: &Step, actions: Vec<ActionKind>) {
        let path = step.path();
        self.actions.extend(actions.into_iter().map(|kind| Action { path: path.clone(), kind }));
    }

    pub(super) fn note_error(&mut self, step: &Step, error: StepError) -> Result<(), Error> {
        let left_out = |reason| LeftOut { path: step.path().to_string(), reason };
        match error {
            StepError::Retry(reason) => self.retry.push(left_out(reason)),
            StepError::Failed(reason) => self.failed.push(left_out(reason)),
            StepError::Fatal(error) => return Err(error),
        }
        Ok(())
    }
}

impl Step {
    /// Returns the path at which the step ends.
    fn path(&self) -> &MemoryPath {
        match &self.task {
            Task::DeleteMemory(memory) | Task::CreateFile(memory) => &memory.path,
            Task::DeleteFile(place) | Task::CreateMemory(place) => &place.path,
            Task::Join(join) => &join.path,
        }
    }
}

fn unchanged(join: &Join) -> SyncedEntry {
    synced_entry(&join.memory, &join.place)
}

fn synced_entry(memory: &Memory, place: &Place) -> SyncedEntry {
    SyncedEntry {
        memory: memory.id,
        path: place.path.clone(),
        version: memory.version,
        store_hash: memory.hash,
        folder_hash: place.file.hash,
        identity: place.file.identity,
        stamp: place.file.stamp,
    }
}

/// Runs `work` for every item on several threads; after a fatal error no further item is begun.
fn in_parallel<T: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> (Step, Result<StepResult, StepError>) + Sync,
) -> Vec<(Step, Result<StepResult, StepError>)> {
    let threads_count = THREADS_COUNT.min(items.len());
    let items = Mutex::new(items.into_iter());
    let results = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let worker = || {
        while !is_over.load(Ordering::Relaxed) {
            let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item else { return };
            let result = work(item);
            if matches!(result.1, Err(StepError::Fatal(_))) {
                is_over.store(true, Ordering::Relaxed);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        }
    };
    if threads_count == 1 {
        worker();
        return results.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    std::thread::scope(|scope| {
        for _ in 0..threads_count {
            scope.spawn(worker);
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}
