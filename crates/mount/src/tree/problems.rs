//! The report of what was not stored, or stored in the place of another text.
//!
//! Programs that ignore what `close` answers lose their text without a word. So the mount keeps a list
//! of what it has refused or overridden lately, as a file in the mount itself, where an agent or its
//! owner can see it. The file is there only when there is something to say. Texts are not in it: a
//! text that was refused because of a credential must not be kept anywhere.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use quipu_core::Engine;
use quipu_core::model::{Refusal, Timestamp, VersionId};

use super::{Invalidation, TreeGuard};
use crate::error::TreeError;
use crate::nodes::{Buffer, BufferState, FileNode, Ino, NodeKind, ROOT};

/// Where the report is.
const DIRECTORY: &str = ".quipu";
const NAME: &str = "problems.md";
/// How many problems are listed; the oldest are forgotten.
const PROBLEMS_MAX: usize = 100;

/// What went wrong lately, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Problems(VecDeque<Problem>);

#[derive(Debug)]
struct Problem {
    at: Timestamp,
    path: String,
    kind: ProblemKind,
}

/// What became of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProblemKind {
    /// It was not stored.
    Refused(TreeError),
    /// It was stored in the place of this version of another door, which it could not be merged with.
    Overridden(VersionId),
}

impl Problems {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn render(&self) -> String {
        let mut text = "# Problems\n\n\
            What this mount has not stored, or stored in the place of another text; the newest comes first.\n\
            Remove this file when you have read it.\n\n"
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
                "was stored, but another door had changed it meanwhile and both changes could not be \
                 merged: the other text is version `{version}`"
            ),
        }
    }
}

/// Keeps problems in the store's data too, where `quipu log --refused` finds them after the mount has
/// ended.
///
/// A thread of its own does that, because whoever reports a problem holds the tree's lock. If it falls
/// behind, problems are only in the report.
#[derive(Debug)]
pub(super) struct Recorder(SyncSender<Refusal>);

impl Recorder {
    pub(super) fn start(engine: Engine) -> Self {
        let (sender, refusals) = sync_channel::<Refusal>(PROBLEMS_MAX);
        thread::spawn(move || {
            for refusal in refusals {
                if let Err(error) = engine.note_refusal(&refusal) {
                    tracing::warn!(%error, "a problem cannot be recorded");
                }
            }
        });
        Self(sender)
    }

    fn record(&self, refusal: Refusal) {
        if let Err(error) = self.0.try_send(refusal) {
            tracing::warn!(%error, "a problem cannot be recorded");
        }
    }
}

/// Says why a text was not stored, and what to do.
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
        TreeError::Stale => "the store or the place of the file is gone (ESTALE)",
        TreeError::NotFound
        | TreeError::Exists
        | TreeError::NotDirectory
        | TreeError::IsDirectory
        | TreeError::NotEmpty
        | TreeError::Invalid
        | TreeError::NameTooLong => "something else is at its place, or the path breaks a rule",
        TreeError::NotPermitted | TreeError::BadHandle | TreeError::Storage => {
            "the storage does not work (EIO); the standard error of `quipu mount` says why"
        }
    }
}

impl TreeGuard<'_> {
    /// Adds what became of a file's text to the report.
    pub(super) fn report(&mut self, ino: Ino, kind: ProblemKind) {
        if let Ok(Some(path)) = self.state.nodes.path(ino) {
            self.report_at(path.as_str(), kind);
        }
    }

    /// Adds what became of the text for a path to the report.
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
        if let Err(error) = self.show_report() {
            tracing::warn!(?error, "the report of problems cannot be shown");
        }
    }

    /// Fails for the report, which is the mount's own.
    pub(super) fn refuse_report(&self, ino: Option<Ino>) -> Result<(), TreeError> {
        let file = ino.and_then(|ino| self.state.nodes.file(ino).ok());
        if file.is_some_and(|file| file.is_report) { Err(TreeError::NotPermitted) } else { Ok(()) }
    }

    /// Puts the report where it can be read, unless a memory is there.
    fn show_report(&mut self) -> Result<(), TreeError> {
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
        let text = self.state.problems.render();
        let buffer =
            Buffer { bytes: text.into_bytes(), state: BufferState::Clean, ..Buffer::new(now) };
        let report = match self.find(directory, NAME) {
            Ok(known) if self.state.nodes.file(known)?.is_report => {
                self.state.nodes.file_mut(known)?.buffer = Some(buffer);
                known
            }
            Ok(_) => return Err(TreeError::Exists),
            Err(TreeError::NotFound) => {
                let file = FileNode { is_scratch: true, is_report: true, ..FileNode::new(buffer) };
                self.state.nodes.put(directory, NAME, NodeKind::File(file))?
            }
            Err(error) => return Err(error),
        };
        self.entries_changed(directory);
        self.entries_changed(ROOT);
        self.invalidate(Invalidation::Entry { parent: ROOT, name: DIRECTORY.to_owned() });
        self.invalidate(Invalidation::Entry { parent: directory, name: NAME.to_owned() });
        self.mark_outdated(report);
        Ok(())
    }
}
