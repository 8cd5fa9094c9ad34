//! Workspaces and stores.

use std::collections::BTreeMap;

use crate::backend::{Archived, Event, Reader, Span, StoreQuery, Usage};
use crate::model::{
    DeletedStore, Description, Id as _, Metadata, Name, Store, StoreId, StorePolicy, Workspace,
    WorkspaceId,
};
use crate::{Error, ErrorKind};

use super::transaction::Ledger;
use super::{Engine, Page, existing_store, no_store};

/// The properties of a new store.
#[derive(Clone, Debug)]
pub struct NewStore {
    /// Its name.
    pub name: Name,
    /// What it is for.
    pub description: Description,
    /// The owner's labels.
    pub metadata: Metadata,
    /// What Quipu does in it on its own.
    pub policy: StorePolicy,
}

impl NewStore {
    /// Returns a new store with a name and defaults.
    pub fn named(name: Name) -> Self {
        Self {
            name,
            description: Description::default(),
            metadata: Metadata::default(),
            policy: StorePolicy::default(),
        }
    }
}

/// A change of a store; what is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct StoreUpdate {
    /// The new name.
    pub name: Option<Name>,
    /// The new description.
    pub description: Option<Description>,
    /// Labels to set or, with `None`, to remove.
    pub metadata: BTreeMap<String, Option<String>>,
    /// The new policy.
    pub policy: Option<StorePolicy>,
}

impl Engine {
    /// Returns the oldest workspace, and creates one if there is none yet.
    pub fn default_workspace(&self) -> Result<Workspace, Error> {
        let oldest = |reader: &dyn Reader| Ok(reader.workspaces()?.into_iter().next());
        if let Some(workspace) = self.read(oldest)? {
            return Ok(workspace);
        }
        self.write(|ledger| {
            if let Some(workspace) = oldest(ledger.reader())? {
                return Ok(workspace);
            }
            new_workspace(ledger, Name::new("default")?)
        })
    }

    /// Creates a workspace.
    pub fn create_workspace(&self, name: &Name) -> Result<Workspace, Error> {
        self.write(|ledger| new_workspace(ledger, name.clone()))
    }

    /// Returns all workspaces, the oldest first.
    pub fn workspaces(&self) -> Result<Vec<Workspace>, Error> {
        self.read(|reader| reader.workspaces())
    }

    /// Creates a store.
    pub fn create_store(&self, workspace: WorkspaceId, new: &NewStore) -> Result<Store, Error> {
        self.write(|ledger| self.new_store(ledger, workspace, new))
    }

    /// Returns the oldest store of this name that is not archived, and creates it if there is none.
    /// Concurrent callers get the same store.
    pub fn ensure_store(&self, workspace: WorkspaceId, new: &NewStore) -> Result<Store, Error> {
        self.write(|ledger| {
            let mut named = all_stores(ledger.reader(), workspace, Archived::Hide)?;
            named.retain(|store| store.name == new.name);
            match named.pop() {
                Some(oldest) => Ok(oldest),
                None => self.new_store(ledger, workspace, new),
            }
        })
    }

    pub(super) fn new_store(
        &self,
        ledger: &mut Ledger<'_>,
        workspace: WorkspaceId,
        new: &NewStore,
    ) -> Result<Store, Error> {
        let existing_count = all_stores(ledger.reader(), workspace, Archived::Show)?.len();
        let deleted_count = ledger.reader().deleted_stores(workspace)?.len();
        let stores_max = self.limits.stores_per_workspace_max;
        if u64::try_from(existing_count + deleted_count).unwrap_or(u64::MAX) >= stores_max {
            let message = format!("the workspace holds {stores_max} stores, which is its limit");
            let hint = if deleted_count == 0 {
                "erase a store that is no longer needed: `quipu store delete --now NAME`".to_owned()
            } else {
                format!(
                    "{deleted_count} of them are deleted but not erased; `quipu store list \
                     --deleted` shows them, `quipu store delete --now ID` erases one"
                )
            };
            return Err(Error::new(ErrorKind::LimitReached, message).with_hint(hint));
        }
        let stamp = ledger.stamp()?;
        let store = Store {
            id: StoreId::new(stamp.at, ledger.random()),
            workspace,
            name: new.name.clone(),
            description: new.description.clone(),
            metadata: new.metadata.clone(),
            policy: new.policy,
            created_at: stamp.at,
            updated_at: stamp.at,
            archived_at: None,
        };
        ledger.writer.put_store(&store)?;
        ledger.record(stamp, store.id, Event::StoreCreated)?;
        Ok(store)
    }

    /// Returns a store, archived or not.
    pub fn store(&self, id: StoreId) -> Result<Store, Error> {
        self.read(|reader| existing_store(reader, id))
    }

    /// Returns how full a store is.
    pub fn usage(&self, id: StoreId) -> Result<Usage, Error> {
        self.read(|reader| {
            existing_store(reader, id)?;
            reader.usage(id)
        })
    }

    /// Lists stores, the newest first.
    pub fn stores(&self, query: &StoreQuery) -> Result<Page<Store, StoreId>, Error> {
        self.read(|reader| {
            let more = StoreQuery { limit: query.limit.saturating_add(1), ..query.clone() };
            Ok(Page::cut(reader.stores(&more)?, query.limit, |store| store.id))
        })
    }

    /// Returns the store with this id or name.
    ///
    /// Among stores of one name, one that is not archived is preferred; two of those are
    /// ambiguous. If there is none, the error names similar ones.
    pub fn find_store(&self, workspace: WorkspaceId, wanted: &str) -> Result<Store, Error> {
        self.read(|reader| found_store(reader, workspace, wanted))
    }

    /// Returns the store with this id or name; a store with a new name is created.
    ///
    /// Concurrent callers that ask for the same new name get the same store.
    pub fn find_or_create_store(
        &self,
        workspace: WorkspaceId,
        wanted: &str,
    ) -> Result<Store, Error> {
        let is_new = |found: &Result<Store, Error>| {
            let is_missing = |error: &Error| *error.kind() == ErrorKind::NotFound;
            found.as_ref().is_err_and(is_missing) && wanted.parse::<StoreId>().is_err()
        };
        let found = self.find_store(workspace, wanted);
        if !is_new(&found) {
            return found;
        }
        let new = NewStore::named(Name::new(wanted)?);
        self.write(|ledger| {
            let found = found_store(ledger.reader(), workspace, wanted);
            if is_new(&found) { self.new_store(ledger, workspace, &new) } else { found }
        })
    }

    /// Changes a store. A no-op changes nothing.
    pub fn update_store(&self, id: StoreId, update: &StoreUpdate) -> Result<Store, Error> {
        self.write(|ledger| {
            let before = existing_store(ledger.reader(), id)?;
            if before.archived_at.is_some() {
                return Err(Error::new(
                    ErrorKind::StoreArchived,
                    format!("the store `{}` is archived and cannot be changed", before.name),
                )
                .with_hint("archiving cannot be undone; create another store"));
            }
            let mut after = Store {
                name: update.name.clone().unwrap_or_else(|| before.name.clone()),
                description: update
                    .description
                    .clone()
                    .unwrap_or_else(|| before.description.clone()),
                metadata: before.metadata.patched(&update.metadata)?,
                policy: update.policy.unwrap_or(before.policy),
                ..before.clone()
            };
            if after == before {
                return Ok(before);
            }
            let stamp = ledger.stamp()?;
            after.updated_at = stamp.at;
            ledger.writer.put_store(&after)?;
            ledger.record(stamp, id, Event::StoreUpdated)?;
            Ok(after)
        })
    }

    /// Archives a store permanently: it is read-only and hidden from lists.
    ///
    /// This is idempotent.
    pub fn archive_store(&self, id: StoreId) -> Result<Store, Error> {
        self.write(|ledger| {
            let before = existing_store(ledger.reader(), id)?;
            if before.archived_at.is_some() {
                return Ok(before);
            }
            let stamp = ledger.stamp()?;
            let after = Store { updated_at: stamp.at, archived_at: Some(stamp.at), ..before };
            ledger.writer.put_store(&after)?;
            ledger.record(stamp, id, Event::StoreArchived)?;
            Ok(after)
        })
    }

    /// Deletes a store: it is gone for everybody immediately, and can be restored until
    /// [`prune`](Self::prune) erases it.
    pub fn delete_store(&self, id: StoreId) -> Result<DeletedStore, Error> {
        // It frees no space, so it must not use up the space that is reserved for removals.
        let deleted = self.write(|ledger| {
            let store = existing_store(ledger.reader(), id)?;
            let memories_count = ledger.reader().usage(id)?.memories_count;
            let stamp = ledger.stamp()?;
            ledger.writer.delete_store(id, stamp.at)?;
            ledger.record(stamp, id, Event::StoreDeleted)?;
            Ok(DeletedStore { store, memories_count, deleted_at: stamp.at })
        });
        deleted.map_err(|error| {
            if *error.kind() != ErrorKind::StorageFull {
                return error;
            }
            error.with_hint(
                "a deleted store keeps its room until it is erased; `quipu store delete --now` \
                 erases it at once",
            )
        })
    }

    /// Returns the stores that are deleted but not erased, the last deleted first.
    pub fn deleted_stores(&self, workspace: WorkspaceId) -> Result<Vec<DeletedStore>, Error> {
        self.read(|reader| reader.deleted_stores(workspace))
    }

    /// Returns the deleted store with this id or name; among those of one name, the last deleted.
    pub fn find_deleted_store(
        &self,
        workspace: WorkspaceId,
        wanted: &str,
    ) -> Result<DeletedStore, Error> {
        self.read(|reader| found_deleted(reader, workspace, wanted))
    }

    /// Restores a deleted store as it was, under a new name if one is given.
    pub fn restore_store(
        &self,
        workspace: WorkspaceId,
        wanted: &str,
        rename: Option<&Name>,
    ) -> Result<Store, Error> {
        self.write(|ledger| {
            let mut store = found_deleted(ledger.reader(), workspace, wanted)?.store;
            if let Some(name) = rename {
                store.name = name.clone();
            }
            let others = all_stores(ledger.reader(), workspace, Archived::Hide)?;
            if others.iter().any(|other| other.name == store.name) {
                let message = format!("another store is named `{}` now", store.name);
                return Err(Error::new(ErrorKind::Ambiguous, message)
                    .with_hint("restore it under another name with `--rename NAME`"));
            }
            let stamp = ledger.stamp()?;
            ledger.writer.restore_store(store.id)?;
            if rename.is_some() {
                store.updated_at = stamp.at;
                ledger.writer.put_store(&store)?;
            }
            ledger.record(stamp, store.id, Event::StoreCreated)?;
            Ok(store)
        })
    }

    /// Erases a store, deleted or not, with its memories and versions. Their text is in no file
    /// afterwards.
    pub fn erase_store(&self, id: StoreId) -> Result<(), Error> {
        self.remove(|ledger| {
            if ledger.reader().store(id)?.is_some() {
                let stamp = ledger.stamp()?;
                ledger.record(stamp, id, Event::StoreDeleted)?;
            } else {
                deleted_store(ledger.reader(), id)?.ok_or_else(|| no_store(id))?;
            }
            ledger.writer.remove_store(id)
        })?;
        self.erase().map(drop)
    }

    /// Sets the store that commands use if none is named.
    pub fn set_default_store(
        &self,
        workspace: WorkspaceId,
        store: Option<StoreId>,
    ) -> Result<(), Error> {
        self.write(|ledger| {
            if let Some(id) = store {
                existing_store(ledger.reader(), id)?;
            }
            let workspaces = ledger.reader().workspaces()?;
            let found = workspaces.into_iter().find(|found| found.id == workspace);
            let found = found.ok_or_else(|| Error::not_found("the workspace does not exist"))?;
            ledger.writer.put_workspace(&Workspace { default_store: store, ..found })
        })
    }
}

impl<T, C> Page<T, C> {
    /// Makes a page of a list that was read with a limit of one more than wanted, to know whether there
    /// is a next page.
    pub fn cut(mut items: Vec<T>, limit: usize, cursor: impl Fn(&T) -> C) -> Self {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }
}

fn new_workspace(ledger: &mut Ledger<'_>, name: Name) -> Result<Workspace, Error> {
    let created_at = ledger.moment()?;
    let id = WorkspaceId::new(created_at, ledger.random());
    let workspace = Workspace { id, name, created_at, default_store: None };
    ledger.writer.put_workspace(&workspace)?;
    Ok(workspace)
}

pub(super) fn all_stores(
    reader: &dyn Reader,
    workspace: WorkspaceId,
    archived: Archived,
) -> Result<Vec<Store>, Error> {
    reader.stores(&StoreQuery {
        workspace,
        archived,
        created: Span::default(),
        before: None,
        limit: usize::MAX,
    })
}

fn found_store(reader: &dyn Reader, workspace: WorkspaceId, wanted: &str) -> Result<Store, Error> {
    if let Ok(id) = wanted.parse::<StoreId>() {
        let store = reader.store(id)?.filter(|store| store.workspace == workspace);
        return store.ok_or_else(|| no_store(id));
    }
    let all = all_stores(reader, workspace, Archived::Show)?;
    let named = |store: &&Store| store.name.as_str() == wanted;
    let (live, archived): (Vec<_>, Vec<_>) =
        all.iter().filter(named).partition(|store| store.archived_at.is_none());
    match (live.as_slice(), archived.as_slice()) {
        (&[store], _) | (&[], &[store, ..]) => Ok(store.clone()),
        (&[], &[]) => Err(no_store_named(wanted, &all)),
        (several, _) => Err(ambiguous_store(wanted, several)),
    }
}

fn deleted_store(reader: &dyn Reader, id: StoreId) -> Result<Option<DeletedStore>, Error> {
    for workspace in reader.workspaces()? {
        let deleted = reader.deleted_stores(workspace.id)?;
        if let Some(found) = deleted.into_iter().find(|deleted| deleted.store.id == id) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn found_deleted(
    reader: &dyn Reader,
    workspace: WorkspaceId,
    wanted: &str,
) -> Result<DeletedStore, Error> {
    let id = wanted.parse::<StoreId>().ok();
    let is_wanted = |deleted: &DeletedStore| match id {
        Some(id) => deleted.store.id == id,
        None => deleted.store.name.as_str() == wanted,
    };
    reader.deleted_stores(workspace)?.into_iter().find(is_wanted).ok_or_else(|| {
        Error::not_found(format!("no deleted store is called `{wanted}`"))
            .with_hint("`quipu store list --deleted` shows those that can be restored")
    })
}

fn no_store_named(wanted: &str, all: &[Store]) -> Error {
    let similar = similar_names(wanted, all);
    let hint = match (similar.as_slice(), all) {
        (_, []) => format!("there are no stores yet; `quipu store create {wanted}` makes one"),
        ([], _) => "`quipu store list` shows the stores that exist".to_owned(),
        (similar, _) => format!("did you mean {}?", similar.join(" or ")),
    };
    Error::not_found(format!("no store is named `{wanted}`")).with_hint(hint)
}

fn ambiguous_store(wanted: &str, several: &[&Store]) -> Error {
    let ids: Vec<_> = several.iter().map(|store| format!("`{}`", store.id)).collect();
    Error::new(ErrorKind::Ambiguous, format!("{} stores are named `{wanted}`", several.len()))
        .with_hint(format!("use an id instead of the name: {}", ids.join(" or ")))
}

/// A name is similar if at most one letter in this many differs.
const DIFFERENCE_MAX: usize = 3;
const SIMILAR_NAMES_MAX: usize = 3;

fn similar_names(wanted: &str, all: &[Store]) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut similar: Vec<_> = all
        .iter()
        .filter_map(|store| {
            let name = store.name.as_str().to_lowercase();
            let difference = if name.contains(&wanted) { 0 } else { distance(&wanted, &name) };
            (difference * DIFFERENCE_MAX <= wanted.chars().count().max(DIFFERENCE_MAX))
                .then(|| (difference, format!("`{}`", store.name)))
        })
        .collect();
    similar.sort();
    similar.dedup();
    similar.into_iter().map(|(_, name)| name).take(SIMILAR_NAMES_MAX).collect()
}

/// Returns the Levenshtein distance of two texts.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (row_number, letter) in from.chars().enumerate() {
        let mut diagonal = row_number;
        let mut left = row_number + 1;
        let mut next = vec![left];
        for (&other, &above) in to.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(letter != other);
            left = replaced.min(left + 1).min(above + 1);
            diagonal = above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn the_distance_counts_insertions_deletions_and_replacements() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("tea", "tea"), 0);
        assert_eq!(distance("tea", "teas"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("prefrences", "preferences"), 1);
    }
}
