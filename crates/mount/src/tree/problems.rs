//! The report of texts that were refused, or that have overridden another one.
//!
//! Programs that ignore the result of `close` lose their text silently. So the mount lists recent
//! problems in a file of its own, where an agent or its owner can see them. The file exists only
//! while there are problems. It holds no texts: one that was refused because of a credential must not
//! be kept anywhere.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quipu_core::model::{Refusal, Timestamp, VersionId};
use quipu_core::{Engine, ErrorKind};

use super::{Invalidation, TreeGuard};
use crate::error::TreeError;
use crate::nodes::{Buffer, BufferState, FileNode, Ino, NodeKind, ROOT};

/// The directory of files of the mount's own.
pub(crate) const DIRECTORY: &str = ".quipu";
/// The name of the report in it.
const NAME: &str = "problems.md";
/// How many problems are listed; older ones are dropped.
const PROBLEMS_MAX: usize = 100;
/// How long to wait before recording a problem again that met a busy storage.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// How long one wait for a problem lasts; it ends early with every problem.
const PATIENCE: Duration = Duration::from_hours(1);

/// Recent problems, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Problems(VecDeque<Problem>);

#[derive(Debug)]
struct Problem {
    at: Timestamp,
    path: String,
    kind: ProblemKind,
}

/// What happened to a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProblemKind {
    /// It was not stored.
    Refused(TreeError),
    /// It was stored, replacing this version of another door, which it conflicts with.
    Overridden(VersionId),
}

impl Problems {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn render(&self) -> String {
        let mut text = "# Problems\n\n\
            Texts that this mount has refused, or that have replaced a conflicting one, newest first.\n\
            Delete this file once you have read it.\n\n"
            .to_owned();
        for Problem { at, path, kind } in self.0.iter().rev() {
            // Writing to a string does not fail.
            writeln!(text, "- {at} `{path}` {}", kind.describe()).unwrap_or_default();
        }
        text
    }
}

impl ProblemKind {
    fn describe(self) -> String {
        match self {
            Self::Refused(error) => format!("was not stored: {}", reason(error)),
            Self::Overridden(version) => format!(
                "was stored, but conflicts with a change made elsewhere meanwhile; the other text is \
                 version `{version}`"
            ),
        }
    }
}

/// Records problems in the data directory, where `quipu log --refused` finds them after the mount has
/// ended.
///
/// This takes a thread of its own, because problems are reported with the tree's lock held, and
/// recording one is a durable write. If the queue is full, a problem is only in the report.
#[derive(Debug)]
pub(super) struct Recorder(Mutex<Option<(SyncSender<Refusal>, JoinHandle<()>)>>);

impl Recorder {
    pub(super) fn start(engine: Engine) -> Self {
        let (sender, refusals) = sync_channel(PROBLEMS_MAX);
        let thread = thread::spawn(move || record_all(&engine, &refusals));
        Self(Mutex::new(Some((sender, thread))))
    }

    /// Returns the recorder of a tree that cannot be written.
    pub(super) fn disabled() -> Self {
        Self(Mutex::default())
    }

    fn record(&self, refusal: Refusal) {
        let recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = recorder.as_ref().is_some_and(|(sender, _)| sender.try_send(refusal).is_ok());
        if !sent {
            tracing::warn!("a problem could not be recorded");
        }
    }

    /// Waits until everything is recorded, or cannot be. What is reported later is not recorded.
    ///
    /// A mount that ends reports moves that it could not store, right before the process ends: without
    /// this wait, they are lost with the thread.
    pub(super) fn finish(&self) {
        let recorder = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sender, thread)) = recorder {
            drop(sender);
            // If it panicked, there is nothing to wait for.
            thread.join().unwrap_or_default();
        }
    }
}

/// Records problems until no more can come. Those that meet a busy storage, which is often the problem
/// itself, are kept and tried again.
fn record_all(engine: &Engine, refusals: &Receiver<Refusal>) {
    let mut pending = VecDeque::new();
    let mut is_open = true;
    while is_open {
        let pause = if pending.is_empty() { PATIENCE } else { RETRY_DELAY };
        match refusals.recv_timeout(pause) {
            Ok(refusal) => pending.push_back(refusal),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => is_open = false,
        }
        pending.extend(refusals.try_iter());
        while let Some(refusal) = pending.front() {
            match engine.note_refusal(refusal) {
                // The others would wait for the same lock.
                Err(error) if *error.kind() == ErrorKind::StorageBusy => break,
                Err(error) => tracing::warn!(%error, "a problem could not be recorded"),
                Ok(()) => {}
            }
            pending.pop_front();
        }
        pending.drain(..pending.len().saturating_sub(PROBLEMS_MAX));
    }
    if !pending.is_empty() {
        tracing::warn!(count = pending.len(), "problems could not be recorded");
    }
}

/// Returns why a text was not stored, and what to do about it.
fn reason(error: TreeError) -> &'static str {
    match error {
        TreeError::NotText => "it is not UTF-8 or holds a NUL byte (EILSEQ); write text",
        TreeError::TooLarge => "it is longer than a memory may be (EFBIG); split it up",
        TreeError::StoreFull => "the store is full (EDQUOT); remove what is not needed",
        TreeError::DiskFull => "the disk is full (ENOSPC)",
        TreeError::Refused => {
            "it holds a credential, which this store refuses (EACCES); leave it out"
        }
        TreeError::ReadOnly => "the store is read-only or archived (EROFS)",
        TreeError::Busy => "other doors kept changing it (EBUSY); try again",
        TreeError::Stale => "the store or the place of the file is gone (ESTALE)",
        TreeError::NotFound
        | TreeError::Exists
        | TreeError::NotDirectory
        | TreeError::IsDirectory
        | TreeError::NotEmpty
        | TreeError::Invalid
        | TreeError::NameTooLong => "its path is taken or invalid",
        TreeError::NotPermitted | TreeError::BadHandle | TreeError::Storage => {
            "the storage failed (EIO); see the standard error of `quipu mount`"
        }
    }
}

impl TreeGuard<'_> {
    /// Reports a problem with a file.
    pub(super) fn report(&mut self, ino: Ino, kind: ProblemKind) {
        if let Ok(path) = self.last_path(ino) {
            self.report_at(path.as_str(), kind);
        }
    }

    /// Reports a problem with a path.
    pub(super) fn report_at(&mut self, path: &str, kind: ProblemKind) {
        tracing::warn!(path, ?kind, "a text was refused or overridden");
        let at = self.now();
        let settings = &self.tree.settings;
        self.tree.recorder.record(Refusal {
            store: settings.store,
            at,
            path: path.to_owned(),
            actor: settings.actor.clone(),
            reason: kind.describe(),
        });
        let problems = &mut self.state.problems.0;
        problems.push_back(Problem { at, path: path.to_owned(), kind });
        if problems.len() > PROBLEMS_MAX {
            problems.pop_front();
        }
        let text = self.state.problems.render();
        if let Err(error) = self.show_own(NAME, text) {
            tracing::warn!(?error, "the report of problems could not be updated");
        }
    }

    /// Fails for the report, which only the mount writes.
    pub(super) fn refuse_report(&self, ino: Option<Ino>) -> Result<(), TreeError> {
        let file = ino.and_then(|ino| self.state.nodes.file(ino).ok());
        if file.is_some_and(|file| file.is_report) { Err(TreeError::NotPermitted) } else { Ok(()) }
    }

    /// Updates a file of the mount's own, unless a memory has its path.
    pub(super) fn show_own(&mut self, name: &str, text: String) -> Result<(), TreeError> {
        let directory = match self.find(ROOT, DIRECTORY) {
            Ok(directory) => directory,
            Err(TreeError::NotFound) => {
                let directory = self.directory_node(ROOT, DIRECTORY)?;
                self.state.nodes.directory_mut(directory)?.kept = true;
                directory
            }
            Err(error) => return Err(error),
        };
        self.state.nodes.directory(directory)?;
        let now = self.now();
        let buffer =
            Buffer { bytes: text.into_bytes(), state: BufferState::Clean, ..Buffer::new(now) };
        let report = match self.find(directory, name) {
            Ok(known) if self.state.nodes.file(known)?.is_report => {
                self.state.nodes.file_mut(known)?.buffer = Some(buffer);
                known
            }
            Ok(_) => return Err(TreeError::Exists),
            Err(TreeError::NotFound) => {
                let file = FileNode { is_scratch: true, is_report: true, ..FileNode::new(buffer) };
                self.state.nodes.put(directory, name, NodeKind::File(file))?
            }
            Err(error) => return Err(error),
        };
        self.entries_changed(directory);
        self.entries_changed(ROOT);
        self.invalidate(Invalidation::Entry { parent: ROOT, name: DIRECTORY.to_owned() });
        self.invalidate(Invalidation::Entry { parent: directory, name: name.to_owned() });
        self.mark_outdated(report);
        Ok(())
    }
}
