//! The rules of every change, run inside one transaction.
//!
//! The order of the checks is part of the contract, because it decides which error a caller sees when
//! several apply: archived store, then (by the caller) the memory's existence, no-op, precondition, path
//! conflict, refused credential, redacted text that comes back, limits. Two places in it are easy to get wrong:
//!
//! - The no-op comes before the precondition. A client that retries a write whose answer was lost finds
//!   its own text there; a stale precondition must not turn that success into a conflict.
//! - The limits come last. A caller that would be refused anyway must not be told to make room first.
//!
//! Hashing and screening take a while, so they happen before the transaction ([`ScreenedText`]); what
//! the store's policy makes of the findings is decided inside, since the policy may have changed.

use std::time::Duration;

use crate::backend::{Change, Commit, Event, Reader, Sequence, Stamp, Writer};
use crate::clock::Clock;
use crate::model::{
    Actor, Content, ForgottenPolicy, Id as _, Memory, MemoryId, MemoryPath, Operation, Reason,
    SecretPolicy, Store, StoreId, Timestamp, Tombstones, Version, VersionId,
};
use crate::settings::Limits;
use crate::{Error, ErrorKind};
use quipu_screen::{Finding, SecretKind};

use super::{Effect, Precondition, Written};

/// A writer that gives every change its place and its moment.
pub(super) struct Ledger<'a> {
    pub(super) writer: &'a mut dyn Writer,
    clock: &'a dyn Clock,
    clock_ahead_max: Duration,
    /// The sequence of the first stamp that was given out.
    first: Option<Sequence>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(
        writer: &'a mut dyn Writer,
        clock: &'a dyn Clock,
        clock_ahead_max: Duration,
    ) -> Self {
        Self { writer, clock, clock_ahead_max, first: None }
    }

    pub(super) fn reader(&self) -> &dyn Reader {
        &*self.writer
    }

    /// Returns the stamp of the next change; fails if the clock is implausibly far ahead.
    ///
    /// Every stamp must be used by a change. On a database server, other writers wait for each other
    /// from here on, so everything that can fail comes first.
    pub(super) fn stamp(&mut self) -> Result<Stamp, Error> {
        let now = self.clock.now();
        let stamp = self.writer.next_stamp(now)?;
        self.require_plausible(now, &stamp)?;
        self.first.get_or_insert(stamp.sequence);
        Ok(stamp)
    }

    /// Returns the transaction that a stamp belongs to: the first change of this ledger.
    ///
    /// A backend may commit several ledgers at once. Each of them is still a unit of its own, whose
    /// caller could not tell whether it was committed alone.
    fn transaction(&self, stamp: &Stamp) -> Sequence {
        self.first.unwrap_or(stamp.sequence)
    }

    /// Returns the moment of a row that is not in the feed, such as a key.
    ///
    /// A [`stamp`](Self::stamp) would do, but it takes the counter that all writers share, for a row
    /// that has no place in their order.
    pub(super) fn moment(&self) -> Result<Timestamp, Error> {
        let now = self.clock.now();
        let (sequence, at) = self.reader().newest_change()?;
        let stamp = Stamp::after((sequence.0 > 0).then_some((sequence, at)), now);
        self.require_plausible(now, &stamp)?;
        Ok(stamp.at)
    }

    fn require_plausible(&self, now: Timestamp, stamp: &Stamp) -> Result<(), Error> {
        match stamp.previous {
            Some(previous) if now > previous.plus(self.clock_ahead_max) => {
                Err(clock_ahead(now, previous))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Adds a change that is not a version to the feed.
    pub(super) fn record(
        &mut self,
        stamp: Stamp,
        store: StoreId,
        event: Event,
    ) -> Result<(), Error> {
        let transaction = self.transaction(&stamp);
        let Stamp { sequence, at, .. } = stamp;
        self.writer.record(&Change { sequence, transaction, at, store, event })
    }

    pub(super) fn random(&self) -> u128 {
        self.clock.random()
    }

    pub(super) fn random_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.clock.fill_random(&mut bytes);
        bytes
    }
}

/// One transaction on one store by one actor.
pub(super) struct Transaction<'l, 'w> {
    pub(super) ledger: &'l mut Ledger<'w>,
    pub(super) limits: &'l Limits,
    pub(super) actor: &'l Actor,
    pub(super) store: Store,
    /// The version that an undo goes back to, recorded in the version that it makes.
    pub(super) undone_to: Option<VersionId>,
    /// Why the change is made, recorded in every version that it makes.
    pub(super) reason: Option<Reason>,
}

/// What a memory is to become.
pub(super) struct Target {
    pub(super) path: MemoryPath,
    pub(super) text: ScreenedText,
}

/// A text with its hash and the credentials that were found in it.
///
/// Computing both takes a while, so a caller that has the text does it before its transaction.
#[derive(Clone)]
pub(super) struct ScreenedText {
    content: Content,
    findings: Vec<Finding>,
}

impl ScreenedText {
    pub(super) fn new(content: Content) -> Self {
        // The hash is computed lazily and then cached: here, and not under the write lock.
        content.hash();
        Self { findings: quipu_screen::findings(content.as_str()), content }
    }

    /// Returns the text of a memory that only moves. It is not screened: a policy that became stricter
    /// since must not keep anybody from renaming what is there.
    pub(super) fn unscreened(content: Content) -> Self {
        Self { content, findings: Vec::new() }
    }

    pub(super) fn first_finding(&self) -> Option<&Finding> {
        self.findings.first()
    }

    pub(super) fn into_content(self) -> Content {
        self.content
    }

    /// Returns the text without the credentials that were found.
    pub(super) fn redacted(&self) -> Result<Content, Error> {
        let redacted = quipu_screen::redacted(self.content.as_str(), &self.findings);
        Ok(Content::new(redacted)?)
    }
}

impl Transaction<'_, '_> {
    /// Fails if the store is archived, and so read-only.
    pub(super) fn require_open(&self) -> Result<(), Error> {
        require_open(&self.store)
    }

    /// Creates a memory, or restores a deleted one under its `id`.
    pub(super) fn create(
        &mut self,
        target: Target,
        id: Option<MemoryId>,
    ) -> Result<Written, Error> {
        self.require_open()?;
        let ScreenedText { content, mut findings } = self.apply_policy(target.text)?;
        self.require_free(&target.path, None)?;
        self.refuse_secrets(&findings)?;
        findings.extend(self.forgotten(Some(&target.path), Some(&content))?);
        self.require_room(None, &content)?;

        let stamp = self.ledger.stamp()?;
        let memory = Memory {
            id: id.unwrap_or_else(|| MemoryId::new(stamp.at, self.ledger.random())),
            store: self.store.id,
            path: target.path,
            hash: content.hash(),
            size_bytes: content.size_bytes(),
            content: Some(content),
            version: VersionId::new(stamp.at, self.ledger.random()),
            created_at: stamp.at,
            updated_at: stamp.at,
        };
        self.commit(stamp, None, Some(memory.clone()))?;
        Ok(self.written(memory, Effect::Created, findings))
    }

    /// Changes the text or the path of a memory. `before` needs no text: hashes are compared.
    pub(super) fn modify(
        &mut self,
        before: Memory,
        target: Target,
        precondition: Precondition,
    ) -> Result<Written, Error> {
        self.require_open()?;
        // First, because what the policy redacts decides whether there is anything to do.
        let ScreenedText { content, mut findings } = self.apply_policy(target.text)?;
        let hash = content.hash();
        let has_new_text = hash != before.hash;
        if !has_new_text && before.path == target.path {
            let memory = Memory { content: Some(content), ..before };
            return Ok(self.written(memory, Effect::Unchanged, findings));
        }
        precondition.check(&before)?;
        if before.path != target.path {
            self.require_free(&target.path, Some(before.id))?;
        }
        if has_new_text {
            self.refuse_secrets(&findings)?;
        }
        let new_path = (before.path != target.path).then_some(&target.path);
        findings.extend(self.forgotten(new_path, has_new_text.then_some(&content))?);
        if has_new_text {
            self.require_room(Some(&before), &content)?;
        }

        let stamp = self.ledger.stamp()?;
        let memory = Memory {
            path: target.path,
            hash,
            size_bytes: content.size_bytes(),
            content: Some(content),
            version: VersionId::new(stamp.at, self.ledger.random()),
            updated_at: stamp.at,
            ..before.clone()
        };
        self.commit(stamp, Some(before), Some(memory.clone()))?;
        Ok(self.written(memory, Effect::Changed, findings))
    }

    /// Replaces the text and the path of a memory to take something out of it.
    ///
    /// No rule applies: the limits, the policies and the archive are for those who add text, and must not
    /// keep it from being removed.
    pub(super) fn rewrite(
        &mut self,
        before: Memory,
        path: MemoryPath,
        content: Content,
    ) -> Result<Version, Error> {
        let hash = content.hash();
        let stamp = self.ledger.stamp()?;
        let memory = Memory {
            path,
            hash,
            size_bytes: content.size_bytes(),
            content: Some(content),
            version: VersionId::new(stamp.at, self.ledger.random()),
            updated_at: stamp.at,
            ..before.clone()
        };
        self.commit(stamp, Some(before), Some(memory))
    }

    pub(super) fn written(
        &self,
        memory: Memory,
        effect: Effect,
        findings: Vec<Finding>,
    ) -> Written {
        Written { memory, effect, findings, policy: self.store.policy.secrets }
    }

    /// Deletes a memory. Archived stores allow it.
    pub(super) fn delete(&mut self, before: Memory) -> Result<Version, Error> {
        let stamp = self.ledger.stamp()?;
        self.commit(stamp, Some(before), None)
    }

    /// Fails if a memory other than `except` lives at the path, above it or below it.
    pub(super) fn require_free(
        &self,
        path: &MemoryPath,
        except: Option<MemoryId>,
    ) -> Result<(), Error> {
        match self.ledger.writer.overlapping(self.store.id, path, except)? {
            Some(occupant) => Err(path_conflict(path, &occupant)),
            None => Ok(()),
        }
    }

    /// Adds the version for a change. Every change of a memory goes through here, so none is without a
    /// version.
    fn commit(
        &mut self,
        stamp: Stamp,
        before: Option<Memory>,
        after: Option<Memory>,
    ) -> Result<Version, Error> {
        let operation = match (&before, &after) {
            (None, _) => Operation::Created,
            (Some(_), Some(_)) => Operation::Modified,
            (Some(_), None) => Operation::Deleted,
        };
        let memory = after.as_ref().or(before.as_ref()).expect("a change has a memory");
        let version = Version {
            id: match &after {
                Some(after) => after.version,
                None => VersionId::new(stamp.at, self.ledger.random()),
            },
            store: self.store.id,
            memory: memory.id,
            operation,
            path: Some(memory.path.clone()),
            content: after.as_ref().and_then(|after| after.content.clone()),
            hash: after.as_ref().map(|after| after.hash),
            size_bytes: after.as_ref().map(|after| after.size_bytes),
            actor: self.actor.clone(),
            created_at: stamp.at,
            undone_to: self.undone_to,
            reason: self.reason.clone(),
            redaction: None,
        };
        let transaction = self.ledger.transaction(&stamp);
        let commit = Commit { sequence: stamp.sequence, transaction, version, before, after };
        self.ledger.writer.commit(&commit)?;
        Ok(commit.version)
    }

    /// Returns the text as it may be stored under the store's policy.
    fn apply_policy(&self, text: ScreenedText) -> Result<ScreenedText, Error> {
        match self.store.policy.secrets {
            SecretPolicy::Off => Ok(ScreenedText { findings: Vec::new(), ..text }),
            SecretPolicy::Redact if !text.findings.is_empty() => {
                Ok(ScreenedText { content: text.redacted()?, ..text })
            }
            SecretPolicy::Redact | SecretPolicy::Warn | SecretPolicy::Reject => Ok(text),
        }
    }

    /// Returns where a path or a text brings back what was redacted from the store; fails if the store
    /// refuses that.
    fn forgotten(
        &self,
        path: Option<&MemoryPath>,
        content: Option<&Content>,
    ) -> Result<Vec<Finding>, Error> {
        if path.is_none() && content.is_none() {
            return Ok(Vec::new());
        }
        let tombstones = self.reader().tombstones(self.store.id)?;
        if tombstones.is_empty() {
            return Ok(Vec::new());
        }
        let tombstones = Tombstones::new(&tombstones);
        let kind = SecretKind::Forgotten;
        let in_path = path.map(|path| tombstones.find(path.as_str())).unwrap_or_default();
        let in_path = in_path.first().map(|_| Finding { kind, line: 0, span: 0..0 });
        let text = content.map_or("", Content::as_str);
        let (mut line, mut counted_until) = (1, 0);
        let in_text = tombstones.find(text).into_iter().map(|span| {
            let between = text.get(counted_until..span.start).unwrap_or_default();
            line += between.matches('\n').count();
            counted_until = span.start;
            Finding { kind, line, span }
        });
        let findings: Vec<_> = in_path.into_iter().chain(in_text).collect();
        match (self.store.policy.forgotten, findings.first()) {
            (ForgottenPolicy::Refuse, Some(first)) => Err(forgotten_refused(first.line)),
            (ForgottenPolicy::Refuse, None) | (ForgottenPolicy::Warn, _) => Ok(findings),
        }
    }

    fn refuse_secrets(&self, findings: &[Finding]) -> Result<(), Error> {
        let (SecretPolicy::Reject, Some(first)) = (self.store.policy.secrets, findings.first())
        else {
            return Ok(());
        };
        let more = match findings.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Err(Error::new(
            ErrorKind::SecretRefused,
            format!(
                "the text holds a credential ({} in line {}){more}, which this store refuses",
                first.kind, first.line
            ),
        )
        .with_hint("store where the credential can be found instead of the credential itself"))
    }

    /// Fails if the text is too long or the store too full for it.
    ///
    /// A text that is not longer than the one it replaces is accepted even if the store is over its
    /// limit: a limit may have been lowered, and shortening memories is the way out.
    fn require_room(&self, before: Option<&Memory>, content: &Content) -> Result<(), Error> {
        let limits = self.limits;
        let size_bytes = content.size_bytes();
        if size_bytes > limits.content_size_bytes_max {
            return Err(Error::new(
                ErrorKind::ContentTooLarge,
                format!(
                    "the text has {size_bytes} bytes, but a memory has at most {}",
                    limits.content_size_bytes_max
                ),
            )
            .with_hint("split the text over several memories or shorten it"));
        }
        if before.is_some_and(|before| size_bytes <= before.size_bytes) {
            return Ok(());
        }
        let usage = self.ledger.writer.usage(self.store.id)?;
        if before.is_none() && usage.memories_count >= limits.memories_per_store_max {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!(
                    "the store holds {} memories, which is its limit",
                    limits.memories_per_store_max
                ),
            )
            .with_hint("delete memories that are no longer needed, or write to existing ones"));
        }
        let freed_bytes = before.map_or(0, |before| before.size_bytes);
        let total_bytes = usage.size_bytes - freed_bytes.min(usage.size_bytes) + size_bytes;
        if total_bytes > limits.store_size_bytes_max {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!(
                    "the store would hold {total_bytes} bytes, but its limit is {}",
                    limits.store_size_bytes_max
                ),
            )
            .with_hint("delete or shorten memories that are no longer needed"));
        }
        Ok(())
    }
}

/// Fails if a store is archived, and so read-only.
pub(super) fn require_open(store: &Store) -> Result<(), Error> {
    if store.archived_at.is_none() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::StoreArchived,
        format!("the store `{}` is archived and takes no new text", store.name),
    )
    .with_hint("write to another store; archived stores can only be read or deleted"))
}

fn forgotten_refused(line: usize) -> Error {
    let place = match line {
        0 => "the path".to_owned(),
        line => format!("line {line} of the text"),
    };
    let message =
        format!("{place} brings back what was redacted from this store, which the store refuses");
    Error::new(ErrorKind::SecretRefused, message)
        .with_hint("leave out what was redacted; it was removed for a reason")
}

/// Returns the error for a clock that is implausibly far ahead of the newest change.
fn clock_ahead(now: Timestamp, newest: Timestamp) -> Error {
    Error::new(
        ErrorKind::StorageUnavailable,
        format!("the clock says {now}, but the newest change is of {newest}; nothing was written"),
    )
    .with_hint(
        "correct the clock; if it is right, write once with \
         QUIPU_LIMITS_CLOCK_AHEAD_DAYS_MAX=36500",
    )
}

fn path_conflict(wanted: &MemoryPath, occupant: &Memory) -> Error {
    let message = if *wanted == occupant.path {
        format!("a memory already lives at `{wanted}`")
    } else if wanted.as_directory().contains(&occupant.path) {
        format!("`{wanted}` is a directory: `{}` lives in it", occupant.path)
    } else {
        format!("`{}` is a memory, so nothing can live below it", occupant.path)
    };
    let kind = ErrorKind::PathConflict { memory: occupant.id, path: occupant.path.clone() };
    Error::new(kind, message).with_hint("choose another path, or change the memory that is there")
}
