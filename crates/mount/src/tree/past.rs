//! The tree of a store as it was.
//!
//! Such a tree reads from an engine of the past, whose store never changes. Two things happen to the past
//! all the same: redactions take texts out of it, and retention gives versions up. Neither is in the feed
//! of that engine, which ends at its moment. So the tree follows the feed of the present, and looks there
//! for redactions alone. Giving versions up is not in any feed; it moves the horizon, which every call
//! compares as well.
//!
//! What is missing from a past is said in a notice beside the memories, which exists only if there is
//! something to say.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use quipu_core::backend::{Change, Event, Sequence};
use quipu_core::engine::Past;
use quipu_core::model::{Access, Id as _, Timestamp, Version, VersionId};
use quipu_core::{Engine, Error};

use super::{Invalidation, Invalidations, StoreStatus, Tree, TreeGuard, TreeSettings, problems};
use crate::nodes::Ino;

/// The name of the notice, in the directory of the mount's own files.
const NOTICE: &str = "notice.md";
/// How many redacted memories the notice lists.
const LISTED_MAX: usize = 100;
/// How many changes are read from the feed at a time.
const CHANGES_MAX: usize = 1000;

/// What a tree of the past needs besides its engine.
#[derive(Debug)]
pub(super) struct OfPast {
    present: Engine,
    past: Past,
}

impl OfPast {
    pub(super) fn at(&self) -> Timestamp {
        self.past.at
    }
}

impl Tree {
    /// Returns the read-only tree of a store as it was, and the invalidations for a kernel that caches.
    ///
    /// The engine is that of the present. Store and access in the settings have no effect.
    pub fn at(
        present: &Engine,
        past: &Past,
        settings: TreeSettings,
    ) -> Result<(Self, Receiver<Invalidation>), Error> {
        let (sender, receiver) = channel();
        let invalidations = Invalidations { sender, offset: 0 };
        Ok((Self::of_past(present, past, settings, invalidations)?, receiver))
    }

    /// Returns the tree of this store as it was. Invalidations are sent together with those of this tree,
    /// with inode numbers that are larger by an offset.
    pub(crate) fn at_moment(&self, past: &Past, offset: Ino) -> Result<Self, Error> {
        let invalidations = Invalidations { sender: self.invalidations.sender.clone(), offset };
        Self::of_past(&self.engine, past, self.settings.clone(), invalidations)
    }

    fn of_past(
        present: &Engine,
        past: &Past,
        settings: TreeSettings,
        invalidations: Invalidations,
    ) -> Result<Self, Error> {
        // Read before anything else of the past, so that no redaction is missed.
        let (seen, horizon) =
            present.read(|reader| Ok((reader.newest_change()?.0, reader.horizon(past.store)?)))?;
        let engine = present.at(past)?;
        let settings = TreeSettings { store: past.store, access: Access::ReadOnly, ..settings };
        let recorder = problems::Recorder::disabled();
        let mut tree = Self::over(engine, settings, recorder, invalidations)?;
        tree.past = Some(OfPast { present: present.clone(), past: *past });
        {
            let mut guard = tree.lock_any();
            guard.state.seen = seen;
            guard.state.horizon = horizon;
            guard.show_notice()?;
        }
        Ok(tree)
    }

    /// Returns the moment that the tree shows, unless that is the present.
    pub fn moment(&self) -> Option<Timestamp> {
        self.past.as_ref().map(OfPast::at)
    }

    /// Returns what is missing from this tree, as the notice says it; `None` if nothing is.
    pub fn notice(&self) -> Result<Option<String>, Error> {
        self.lock_any().notice()
    }

    /// Waits for changes after a position in the feed that the tree follows.
    pub fn wait(&self, seen: Sequence, timeout: Duration) -> Result<Sequence, Error> {
        let engine = self.past.as_ref().map_or(&self.engine, |past| &past.present);
        engine.wait(seen, timeout)
    }

    /// Returns whether anything of the tree is open.
    pub(crate) fn is_open(&self) -> bool {
        let guard = self.lock_any();
        !guard.state.handles.is_empty() || !guard.state.listings.is_empty()
    }

    /// Makes the kernel drop everything that it has of the tree.
    pub(crate) fn drop_from_kernel(&self) {
        self.lock_any().distrust_everything();
    }
}

impl TreeGuard<'_> {
    /// Applies the redactions that were acknowledged so far, and what retention gave up.
    pub(super) fn catch_up_with_present(&mut self, past: &OfPast) -> Result<(), Error> {
        loop {
            let (seen, store) = (self.state.seen, self.store());
            let (changes, horizon) = past.present.read(|reader| {
                let has_changed = reader.newest_change()?.0 > seen;
                let changes =
                    if has_changed { reader.changes(seen, CHANGES_MAX)? } else { Vec::new() };
                Ok((changes, reader.horizon(store)?))
            })?;
            let is_gap = changes.first().is_some_and(|first| first.sequence.0 != seen.0 + 1);
            if is_gap || horizon != self.state.horizon {
                self.state.horizon = horizon;
                self.state.is_notice_due = true;
                self.distrust_everything();
            }
            self.apply(past.at(), changes.iter().filter(|change| change.store == store));
            if let Some(last) = changes.last() {
                self.state.seen = last.sequence;
            }
            if changes.len() < CHANGES_MAX {
                break;
            }
        }
        if self.state.is_notice_due {
            self.show_notice()?;
            self.state.is_notice_due = false;
        }
        Ok(())
    }

    /// Applies changes of the store to its state at a moment.
    fn apply<'c>(&mut self, at: Timestamp, changes: impl Iterator<Item = &'c Change>) {
        let mut redacted = HashSet::new();
        for change in changes {
            match change.event {
                Event::Redacted(id) if id.created_at() <= at => {
                    redacted.insert(id);
                }
                Event::StoreDeleted => {
                    self.state.status = StoreStatus::Deleted;
                    self.distrust_everything();
                }
                Event::Redacted(_)
                | Event::Version(_)
                | Event::StoreCreated
                | Event::StoreUpdated
                | Event::StoreArchived
                | Event::Restarted => {}
            }
        }
        if !redacted.is_empty() {
            self.state.is_notice_due = true;
            self.remove_redacted(&redacted);
        }
    }

    /// Removes the files of redacted versions, wherever the kernel may have kept their texts.
    fn remove_redacted(&mut self, redacted: &HashSet<VersionId>) {
        self.state.changes_count += 1;
        for ino in self.state.nodes.inos() {
            let Ok(file) = self.state.nodes.file(ino) else { continue };
            // A file whose version is not known may be any.
            if file.memory.is_none() || file.version.is_some_and(|id| !redacted.contains(&id)) {
                continue;
            }
            let parents = self.parents(ino);
            self.distrust(ino, None);
            // Whoever opens the name next finds out whether the file is still there.
            self.state.nodes.detach(ino);
            for directory in parents {
                self.vanish_if_empty(directory);
            }
        }
    }

    /// Updates the notice, which appears with the first thing that is missing.
    fn show_notice(&mut self) -> Result<(), Error> {
        let Some(text) = self.notice()? else { return Ok(()) };
        if let Err(error) = self.show_own(NOTICE, text) {
            tracing::warn!(?error, "the notice about a past could not be shown");
        }
        Ok(())
    }

    fn notice(&self) -> Result<Option<String>, Error> {
        let Some(OfPast { present, past }) = &self.tree.past else { return Ok(None) };
        if self.state.status == StoreStatus::Deleted {
            return Ok(None);
        }
        let past = Past { horizon: self.state.horizon, ..*past };
        let redacted = present.redacted_at(&past)?;
        if past.is_complete() && redacted.is_empty() {
            return Ok(None);
        }
        Ok(Some(render(&past, &redacted)))
    }
}

/// Writes down what is missing from a past. Names are not known: a redaction takes the path out as well.
fn render(past: &Past, redacted: &[Version]) -> String {
    let mut text =
        format!("# What is missing here\n\nThis is the store as it was at {}.\n", past.at);
    // Writing to a string does not fail.
    if let Some(horizon) = past.horizon.filter(|_| !past.is_complete()) {
        write!(
            text,
            "\nIt is incomplete: retention has removed old versions since. The history is complete from \
             {horizon} on.\n"
        )
        .unwrap_or_default();
    }
    if !redacted.is_empty() {
        text.push_str("\nThese memories were redacted since and are not shown:\n\n");
    }
    for version in redacted.iter().take(LISTED_MAX) {
        writeln!(text, "- `{}`, version `{}`", version.memory, version.id).unwrap_or_default();
    }
    if let Some(more) = redacted.len().checked_sub(LISTED_MAX).filter(|&more| more > 0) {
        writeln!(text, "- and {more} more").unwrap_or_default();
    }
    text
}
