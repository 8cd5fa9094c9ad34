//! Versions: history, undo, redaction.

use crate::backend::{Reader, Subject, VersionFilter, VersionQuery};
use crate::diff::Diff;
use crate::model::{
    Actor, Content, MemoryId, MemoryPath, Operation, Receipt, Refusal, StoreId, Version, VersionId,
    View,
};
use crate::{Error, ErrorKind};

use super::forget::{Scope, new_receipt, redact_versions};
use super::intact::Intact as _;
use super::transaction::{ScreenedText, Target, Transaction};
use super::writers::require_writer;
use super::{Engine, Page, Precondition, Written, existing_store};

/// How many refusals of a store are kept.
pub(super) const REFUSALS_KEPT: usize = 1_000;

impl Engine {
    /// Returns a version.
    pub fn version(&self, store: StoreId, id: VersionId, view: View) -> Result<Version, Error> {
        self.read(|reader| existing_version(reader, store, id, view))
    }

    /// Lists versions, the newest first.
    pub fn versions(
        &self,
        store: StoreId,
        query: &VersionQuery,
    ) -> Result<Page<Version, VersionId>, Error> {
        self.read(|reader| {
            existing_store(reader, store)?;
            let more = VersionQuery { limit: query.limit.saturating_add(1), ..query.clone() };
            let versions = reader.versions(store, &more)?.into_iter().map(Version::intact);
            let versions = versions.collect::<Result<_, _>>()?;
            Ok(Page::cut(versions, query.limit, |version| version.id))
        })
    }

    /// Returns the versions of the memory at a path or, if there is none, of the last one that was there;
    /// the newest first.
    pub fn history(
        &self,
        store: StoreId,
        path: &MemoryPath,
        limit: usize,
    ) -> Result<Vec<Version>, Error> {
        self.read(|reader| history_at(reader, store, path, limit))
    }

    /// Returns the version of a memory that came before this one, if it is still kept.
    pub fn previous_version(
        &self,
        version: &Version,
        view: View,
    ) -> Result<Option<Version>, Error> {
        self.read(|reader| previous(reader, version, view))
    }

    /// Writes the text of an old version again, as a new version.
    ///
    /// A live memory gets the text at its current path. A deleted one is restored with its id, at the
    /// version's path or at `to`.
    pub fn restore(
        &self,
        actor: &Actor,
        store: StoreId,
        id: VersionId,
        to: Option<&MemoryPath>,
    ) -> Result<Written, Error> {
        self.change(actor, (store, Subject::Version(id)), |transaction| {
            transaction.require_open()?;
            let version = existing_version(transaction.reader(), store, id, View::Full)?;
            restored(transaction, &version, to)
        })
    }

    /// Restores a version as [`restore`](Self::restore) does, but only if `seen` is still the newest
    /// version of its memory, which may be its deletion.
    ///
    /// A hash of the text would not do as the condition: a memory that was deleted has none.
    pub fn restore_seen(
        &self,
        actor: &Actor,
        store: StoreId,
        (id, seen): (VersionId, VersionId),
        to: Option<&MemoryPath>,
    ) -> Result<Written, Error> {
        self.change(actor, (store, Subject::Version(id)), |transaction| {
            transaction.require_open()?;
            let version = existing_version(transaction.reader(), store, id, View::Full)?;
            require_newest(transaction.reader(), &version, seen)?;
            restored(transaction, &version, to)
        })
    }

    /// Undoes the last change of a memory, which may be deleted: text and path become what they were
    /// before. Undoing again goes one step further back. Also returns the version that it went back to.
    pub fn undo(
        &self,
        actor: &Actor,
        store: StoreId,
        memory: MemoryId,
        to: Option<&MemoryPath>,
    ) -> Result<(Version, Written), Error> {
        self.change(actor, (store, Subject::Memory(memory, View::Full)), |transaction| {
            transaction.require_open()?;
            let target = before_last_change(transaction.reader(), store, memory)?;
            transaction.undone_to = Some(target.id);
            let written = write_back(transaction, &target, to.cloned())?;
            Ok((target, written))
        })
    }

    /// Removes the text of versions permanently; it is in no file when this returns.
    ///
    /// Versions that are redacted already stay as they are. If one of them cannot be redacted,
    /// none is.
    pub fn redact(
        &self,
        actor: &Actor,
        store: StoreId,
        ids: &[VersionId],
    ) -> Result<Vec<Version>, Error> {
        let versions = self.remove(|ledger| {
            let found = existing_store(ledger.reader(), store)?;
            require_writer(ledger.reader(), &found, actor)?;
            refuse_heads(ledger.reader(), store, ids)?;
            let mut redacted = Vec::new();
            for &id in ids {
                let version = existing_version(ledger.reader(), store, id, View::Basic)?;
                if version.redaction.is_none() && !redacted.contains(&id) {
                    redacted.push(id);
                }
            }
            redact_versions(ledger, actor, (store, &redacted))?;
            let mut versions = Vec::with_capacity(ids.len());
            for &id in ids {
                versions.push(existing_version(ledger.reader(), store, id, View::Basic)?);
            }
            if !redacted.is_empty() {
                let scope = Scope::store(&found);
                let receipt = new_receipt(ledger, actor, &scope)?;
                let selection = match redacted.len() {
                    1 => "1 version".to_owned(),
                    count => format!("{count} versions"),
                };
                let receipt = Receipt { selection, versions: redacted, ..receipt };
                ledger.writer.put_receipt(&receipt)?;
            }
            Ok(versions)
        })?;
        self.erase()?;
        Ok(versions)
    }

    /// Records that a text was not stored, or not as its writer expected.
    pub fn note_refusal(&self, refusal: &Refusal) -> Result<(), Error> {
        self.write(|ledger| {
            existing_store(ledger.reader(), refusal.store)?;
            ledger.writer.put_refusal(refusal, REFUSALS_KEPT)
        })
    }

    /// Returns the latest refusals in a store, the newest first.
    pub fn refusals(&self, store: StoreId, limit: usize) -> Result<Vec<Refusal>, Error> {
        self.read(|reader| {
            existing_store(reader, store)?;
            reader.refusals(store, limit)
        })
    }

    /// Compares the texts of two versions; a deletion counts as an empty text, as does `None`.
    pub fn diff(
        &self,
        store: StoreId,
        old: Option<VersionId>,
        new: VersionId,
    ) -> Result<Diff, Error> {
        self.read(|reader| {
            let text = |id| {
                let version = existing_version(reader, store, id, View::Full)?;
                comparable(&version)
            };
            let old = old.map(text).transpose()?;
            Ok(Diff::new(old.as_ref().map_or("", Content::as_str), text(new)?.as_str()))
        })
    }
}

fn selected(
    reader: &dyn Reader,
    store: StoreId,
    filter: VersionFilter,
    limit: usize,
) -> Result<Vec<Version>, Error> {
    reader.versions(store, &VersionQuery { filter, before: None, limit, view: View::Basic })
}

pub(super) fn existing_version(
    reader: &dyn Reader,
    store: StoreId,
    id: VersionId,
    view: View,
) -> Result<Version, Error> {
    if let Some(version) = reader.version(store, id, view)? {
        return version.intact();
    }
    existing_store(reader, store)?;
    Err(Error::not_found(format!("no version of the store has the id `{id}`"))
        .with_hint("it may have been pruned; list the versions to see which are kept"))
}

/// Fails if a memory has a newer version than the one that the caller has seen.
fn require_newest(reader: &dyn Reader, version: &Version, seen: VersionId) -> Result<(), Error> {
    let filter = VersionFilter { memory: Some(version.memory), ..VersionFilter::default() };
    let newest = selected(reader, version.store, filter, 1)?.pop().map(|newest| newest.id);
    if newest == Some(seen) {
        return Ok(());
    }
    let message = format!("the memory `{}` has changed since `{seen}`", version.memory);
    Err(Error::new(ErrorKind::PreconditionFailed, message)
        .with_hint("look at its newest version, and decide again; nothing was changed"))
}

pub(super) fn previous(
    reader: &dyn Reader,
    version: &Version,
    view: View,
) -> Result<Option<Version>, Error> {
    let filter = VersionFilter { memory: Some(version.memory), ..VersionFilter::default() };
    let query = VersionQuery { filter, before: Some(version.id), limit: 1, view };
    reader.versions(version.store, &query)?.pop().map(Version::intact).transpose()
}

fn restorable(reader: &dyn Reader, version: &Version) -> Result<Content, Error> {
    if let Some(content) = &version.content {
        return Ok(content.clone());
    }
    if version.redaction.is_some() {
        return Err(redacted(version));
    }
    let error = Error::invalid(format!("`{}` is a deletion, so it has no text", version.id));
    Err(match previous(reader, version, View::Basic)? {
        Some(before) => error.with_hint(format!("the version before it is `{}`", before.id)),
        None => error.with_hint("the version before it is no longer kept"),
    })
}

fn comparable(version: &Version) -> Result<Content, Error> {
    match (&version.content, version.operation) {
        (Some(content), _) => Ok(content.clone()),
        (None, Operation::Deleted) if version.redaction.is_none() => Ok(Content::new("")?),
        (None, _) => Err(redacted(version)),
    }
}

fn redacted(version: &Version) -> Error {
    Error::invalid(format!("the text of `{}` was redacted", version.id))
        .with_hint("redaction cannot be undone; choose another version")
}

/// Refuses versions that are the current text of a memory, and names all of them.
fn refuse_heads(reader: &dyn Reader, store: StoreId, ids: &[VersionId]) -> Result<(), Error> {
    let mut heads = Vec::new();
    for &id in ids {
        let version = existing_version(reader, store, id, View::Basic)?;
        let memory = reader.memory(store, version.memory, View::Basic)?;
        heads.extend(memory.filter(|memory| memory.version == id));
    }
    heads.dedup_by_key(|memory| memory.version);
    let (first, others) = match heads.as_slice() {
        [] => return Ok(()),
        [first, others @ ..] => (first, others),
    };
    let mut message =
        format!("`{}` is what the memory at `{}` holds now", first.version, first.path);
    for other in others {
        message += &format!("; `{}` is what the one at `{}` holds", other.version, other.path);
    }
    let hint = match others {
        [] => "write a new version or delete the memory first, then redact this one",
        [..] => "write new versions or delete the memories first, then redact these",
    };
    Err(Error::new(ErrorKind::HeadNotRedactable, message).with_hint(hint))
}

/// Returns at most `limit` versions of the memory at a path, or of the last one that was there; the
/// newest first.
fn history_at(
    reader: &dyn Reader,
    store: StoreId,
    path: &MemoryPath,
    limit: usize,
) -> Result<Vec<Version>, Error> {
    existing_store(reader, store)?;
    let live = reader.memory_at(store, path, View::Basic)?.map(|memory| memory.id);
    let at_path = VersionFilter { path: Some(path.clone()), ..VersionFilter::default() };
    let memory = match live {
        Some(memory) => memory,
        None => selected(reader, store, at_path, 1)?
            .first()
            .map(|version| version.memory)
            .ok_or_else(|| no_history(path))?,
    };
    let of_memory = VersionFilter { memory: Some(memory), ..VersionFilter::default() };
    selected(reader, store, of_memory, limit)
}

/// Returns the version that a memory goes back to when its last change is undone.
fn before_last_change(
    reader: &dyn Reader,
    store: StoreId,
    memory: MemoryId,
) -> Result<Version, Error> {
    let of_memory = VersionFilter { memory: Some(memory), ..VersionFilter::default() };
    let newest = selected(reader, store, of_memory, 1)?.pop();
    let mut last = newest.ok_or_else(|| {
        Error::not_found(format!("no version of the store belongs to the memory `{memory}`"))
    })?;
    let gone = || Error::not_found("the version before the last change is no longer kept");
    // An undo is a version like any other. Undoing that version would alternate between two texts, so
    // another undo continues from the version that the last one went back to.
    while let Some(older) = last.undone_to {
        last = reader.version(store, older, View::Basic)?.ok_or_else(gone)?;
    }
    loop {
        match previous(reader, &last, View::Full)? {
            // The last change restored the memory. What was there before is behind the deletion.
            Some(deletion) if deletion.operation == Operation::Deleted => last = deletion,
            Some(found) => return Ok(found),
            None if last.operation == Operation::Created => {
                return Err(Error::not_found("there is no change before this one to go back to")
                    .with_hint("deleting the memory takes it away"));
            }
            None => return Err(gone()),
        }
    }
}

/// Gives a memory the text of an old version: at `to`, where it is now, or at the version's own path.
fn restored(
    transaction: &mut Transaction<'_, '_>,
    version: &Version,
    to: Option<&MemoryPath>,
) -> Result<Written, Error> {
    let live = transaction.reader().memory(version.store, version.memory, View::Basic)?;
    write_back(transaction, version, to.cloned().or_else(|| live.map(|memory| memory.path)))
}

/// Gives a memory the text of an old version, at `path` or at the version's own.
fn write_back(
    transaction: &mut Transaction<'_, '_>,
    version: &Version,
    path: Option<MemoryPath>,
) -> Result<Written, Error> {
    let text = ScreenedText::new(restorable(transaction.reader(), version)?);
    let path = path.or_else(|| version.path.clone()).expect("a version with a text has a path");
    let target = Target { path, text };
    match transaction.reader().memory(version.store, version.memory, View::Full)? {
        Some(memory) => transaction.modify(memory, target, Precondition::None),
        None => transaction.create(target, Some(version.memory)),
    }
}

fn no_history(path: &MemoryPath) -> Error {
    Error::not_found(format!("no memory lives or lived at `{path}`"))
        .with_hint("list the store to see what it holds")
}
