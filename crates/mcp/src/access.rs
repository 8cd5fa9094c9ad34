//! Authorization: the stores that a client can reach, its permissions there, and the store that a
//! name refers to.

use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::engine::{NewStore, Principal};
use quipu_core::model::{
    Access, Actor, Description, Key, Name, Role, Session, Store, StoreId, WorkspaceId, slug,
};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use quipu_service::tool::MEMORY_STORE;

use super::McpSettings;

/// The store that is created for the first note.
const NOTES_STORE: &str = "notes";

/// The client of one request, with an engine to answer it.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) engine: Knowledge,
    pub(super) identity: Identity,
}

/// The identity of a client and its permissions.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) workspace: WorkspaceId,
    pub(super) grant: Grant,
    pub(super) settings: McpSettings,
}

/// What a client may do.
#[derive(Clone, Debug)]
pub(super) enum Grant {
    /// Everything in the workspace: the owner of the data started this process.
    Everything,
    /// What a key opens.
    Key(Box<Key>),
    /// What is attached to a session.
    Session(Box<Session>),
}

impl From<Principal> for Grant {
    fn from(principal: Principal) -> Self {
        match principal {
            Principal::Key(key) => Self::Key(Box::new(key)),
            Principal::Session(session) => Self::Session(Box::new(session)),
        }
    }
}

impl Grant {
    fn access(&self, store: StoreId) -> Option<Access> {
        match self {
            Self::Everything => Some(Access::ReadWrite),
            Self::Key(key) => key.opens(store).then_some(match key.role {
                Role::ReadOnly => Access::ReadOnly,
                Role::ReadWrite | Role::Admin => Access::ReadWrite,
            }),
            Self::Session(session) => session.attachment(store).map(|attachment| attachment.access),
        }
    }

    /// Returns the instructions for an attached store; empty if there are none.
    pub(super) fn instructions(&self, store: StoreId) -> &str {
        match self {
            Self::Session(session) => {
                session.attachment(store).map_or("", |attachment| attachment.instructions.as_str())
            }
            Self::Everything | Self::Key(_) => "",
        }
    }

    fn manages_stores(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Key(key) => key.role == Role::Admin && key.stores.is_none(),
            Self::Session(_) => false,
        }
    }

    /// Returns whether the client may create the store for its first note or memory.
    fn makes_first_store(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Key(key) => key.role != Role::ReadOnly && key.stores.is_none(),
            Self::Session(_) => false,
        }
    }

    /// Returns whether the client may write to any store.
    fn writes(&self) -> bool {
        match self {
            Self::Everything => true,
            Self::Key(key) => key.role != Role::ReadOnly,
            Self::Session(session) => {
                session.attachments.iter().any(|attached| attached.access == Access::ReadWrite)
            }
        }
    }
}

impl Identity {
    /// Returns who asks; `None` for the owner of the data.
    pub(super) fn asker(&self) -> Option<Actor> {
        match &self.grant {
            Grant::Everything => None,
            Grant::Key(key) => Some(key.actor()),
            Grant::Session(session) => Some(Actor::Session(session.id)),
        }
    }

    /// Returns whether the client may write to any store under the server's settings.
    pub(super) fn writes(&self) -> bool {
        self.settings.access == Access::ReadWrite && self.grant.writes()
    }

    /// Returns the access to a store; `None` if it cannot be reached.
    pub(super) fn access(&self, store: StoreId) -> Option<Access> {
        let granted = self.grant.access(store)?;
        let is_limited = self.settings.access == Access::ReadOnly;
        Some(if is_limited { Access::ReadOnly } else { granted })
    }

    /// Returns whether the client may create and delete stores.
    pub(super) fn manages(&self) -> bool {
        self.settings.access == Access::ReadWrite && self.grant.manages_stores()
    }

    /// Returns whether the client's first note creates a store for it.
    pub(super) fn makes_first_store(&self) -> bool {
        self.settings.access == Access::ReadWrite && self.grant.makes_first_store()
    }
}

impl Client {
    /// Fails unless the client may create and delete stores.
    pub(super) fn require_management(&self) -> Result<(), Error> {
        if self.identity.manages() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::AccessDenied, "you may not create or delete stores here")
            .with_hint("use the stores that list_memory_projects shows"))
    }

    /// Fails unless the client may write to the store.
    pub(super) fn require_writing(&self, store: &Store) -> Result<(), Error> {
        require_open(store)?;
        match self.identity.access(store.id) {
            Some(Access::ReadWrite) => Ok(()),
            Some(Access::ReadOnly) | None => Err(Error::new(
                ErrorKind::AccessDenied,
                format!("the store `{}` is read only here", store.name),
            )
            .with_hint("nothing was written; do not retry in this store")),
        }
    }

    /// Returns the stores that can be reached: attached ones in their order, others by age, those
    /// that are archived last.
    pub(super) fn stores(&self) -> Result<Vec<Store>, Error> {
        if let Grant::Session(session) = &self.identity.grant {
            let attached = session.attachments.iter().map(|attached| attached.store);
            return Ok(attached.filter_map(|id| self.engine.store(id).ok()).collect());
        }
        let query = StoreQuery {
            workspace: self.identity.workspace,
            archived: Archived::Show,
            created: Span::default(),
            before: None,
            limit: usize::MAX,
        };
        let mut stores = self.engine.stores(&query)?.items;
        stores.retain(|store| self.identity.access(store.id).is_some());
        stores.reverse();
        stores.sort_by_key(is_archived);
        Ok(stores)
    }

    /// Returns the stores that can be reached and are not archived.
    pub(super) fn open_stores(&self) -> Result<Vec<Store>, Error> {
        let mut stores = self.stores()?;
        stores.retain(|store| !is_archived(store));
        Ok(stores)
    }

    /// Returns the store with this id, name or slug.
    pub(super) fn store(&self, wanted: &str) -> Result<Store, Error> {
        self.store_that(
            wanted,
            &[
                &|store| store.id.to_string() == wanted,
                &|store| store.name.as_str() == wanted,
                &|store| store.name.as_str().eq_ignore_ascii_case(wanted),
                &|store| slug(&store.name) == wanted,
            ],
        )
    }

    /// Returns the store with exactly this id or name.
    pub(super) fn store_exactly(&self, wanted: &str) -> Result<Store, Error> {
        self.store_that(
            wanted,
            &[&|store| store.id.to_string() == wanted, &|store| store.name.as_str() == wanted],
        )
    }

    /// Returns the only store that passes the first test that any store passes. Archived stores
    /// count only if no other one passes it.
    fn store_that(&self, wanted: &str, tests: &[&dyn Fn(&Store) -> bool]) -> Result<Store, Error> {
        let stores = self.stores()?;
        for fits in tests {
            let mut found: Vec<_> = stores.iter().filter(|store| fits(store)).collect();
            if found.iter().any(|store| !is_archived(store)) {
                found.retain(|store| !is_archived(store));
            }
            match found.as_slice() {
                [] => {}
                [store] => return Ok((*store).clone()),
                several => return Err(ambiguous(wanted, several)),
            }
        }
        Err(Error::not_found(format!("no store is named `{wanted}`"))
            .with_hint(format!("the stores are: {}", names(&stores))))
    }

    /// Returns the default store; `None` if no rule selects one.
    pub(super) fn default_store(&self) -> Result<Option<Store>, Error> {
        if let Grant::Session(_) = self.identity.grant {
            return Ok(self.stores()?.into_iter().next());
        }
        let mut stores = self.open_stores()?;
        if let Some(wanted) = &self.identity.settings.store {
            return match self.store(wanted) {
                Err(error) if *error.kind() == ErrorKind::NotFound => Ok(None),
                found => found.map(Some),
            };
        }
        if let Some(notes) = stores.iter().find(|store| store.name.as_str() == NOTES_STORE) {
            return Ok(Some(notes.clone()));
        }
        stores.retain(|store| store.name.as_str() != MEMORY_STORE);
        Ok(if stores.len() == 1 { stores.pop() } else { None })
    }

    /// Returns the named store, or the default one; `None` if there is no store for notes yet.
    pub(super) fn chosen(&self, wanted: Option<&str>) -> Result<Option<Store>, Error> {
        if let Some(wanted) = wanted {
            return self.store(wanted).map(Some);
        }
        if let Some(store) = self.default_store()? {
            return Ok(Some(store));
        }
        let others = self.open_stores()?;
        let is_choice = others.iter().any(|store| store.name.as_str() != MEMORY_STORE);
        if is_choice && self.identity.settings.store.is_none() {
            return Err(Error::new(ErrorKind::Ambiguous, "there is no default store")
                .with_hint(format!("name one as `project`: {}", names(&others))));
        }
        Ok(None)
    }

    /// Returns the store to write notes to: the named one, or the default one, which is created if
    /// there is no store for notes at all.
    pub(super) fn store_for_notes(&self, wanted: Option<&str>) -> Result<Store, Error> {
        match (self.chosen(wanted)?, &self.identity.settings.store) {
            (Some(store), _) => Ok(store),
            (None, Some(wanted)) => self.created(wanted, ""),
            (None, None) => self.created(NOTES_STORE, "Notes."),
        }
    }

    /// Returns the stores to read: the named one, or the default one and that of the memory tool, or
    /// all if there is no default. Archived stores must be named, unless there are no others.
    pub(super) fn stores_to_read(&self, wanted: Option<&str>) -> Result<Vec<Store>, Error> {
        if let Some(wanted) = wanted {
            return Ok(vec![self.store(wanted)?]);
        }
        let mut all = self.stores()?;
        if all.iter().any(|store| !is_archived(store)) {
            all.retain(|store| !is_archived(store));
        }
        if let Some(default) = self.default_store()? {
            all.retain(|store| store.name.as_str() == MEMORY_STORE && store.id != default.id);
            all.insert(0, default);
        }
        Ok(all)
    }

    /// Returns the store of the memory tool, which is created at its first use.
    pub(super) fn memory_store(&self) -> Result<Store, Error> {
        let stores = self.stores()?;
        let is_own = |store: &&Store| store.name.as_str() == MEMORY_STORE;
        let own = stores.iter().find(is_own);
        match (own.or_else(|| self.first_attached(&stores)), &self.identity.grant) {
            (Some(store), _) => Ok(store.clone()),
            (None, Grant::Session(_)) => Err(Error::not_found("no store is attached")),
            (None, Grant::Everything | Grant::Key(_)) => {
                self.created(MEMORY_STORE, "What agents remember through the memory tool.")
            }
        }
    }

    fn first_attached<'s>(&self, stores: &'s [Store]) -> Option<&'s Store> {
        match self.identity.grant {
            Grant::Session(_) => stores.first(),
            Grant::Everything | Grant::Key(_) => None,
        }
    }

    fn created(&self, name: &str, description: &str) -> Result<Store, Error> {
        // Another client may have created it in the meantime.
        if let Some(store) = self.stores()?.into_iter().find(|store| store.name.as_str() == name) {
            return require_open(&store).map(|()| store);
        }
        if !self.identity.makes_first_store() {
            let is_limited =
                matches!(&self.identity.grant, Grant::Key(key) if key.stores.is_some());
            let message = if is_limited { "you cannot reach a store" } else { "there is no store" };
            return Err(Error::not_found(format!("{message} `{name}`")).with_hint(
                "name another one as `project`, or ask somebody who may create stores for this one",
            ));
        }
        let description = Description::new(description)?;
        let new = NewStore { description, ..NewStore::named(Name::new(name)?) };
        self.engine.ensure_store(self.identity.workspace, &new)
    }

    /// Returns the shortest name that [`Client::store`] resolves to this store.
    pub(super) fn short_name(&self, store: &Store) -> String {
        let short = slug(&store.name);
        match self.store(&short) {
            Ok(found) if found.id == store.id => short,
            Ok(_) | Err(_) => store.id.to_string(),
        }
    }
}

/// Fails if a store is archived.
pub(super) fn require_open(store: &Store) -> Result<(), Error> {
    if is_archived(store) {
        let message = format!("the store `{}` is archived; nothing was changed", store.name);
        return Err(Error::new(ErrorKind::StoreArchived, message)
            .with_hint("it can be read; name another one as `project` to write"));
    }
    Ok(())
}

fn is_archived(store: &Store) -> bool {
    store.archived_at.is_some()
}

fn names(stores: &[Store]) -> String {
    if stores.is_empty() {
        return "none yet".to_owned();
    }
    stores.iter().map(|store| format!("`{}`", store.name)).collect::<Vec<_>>().join(", ")
}

fn ambiguous(wanted: &str, several: &[&Store]) -> Error {
    let ids: Vec<_> = several.iter().map(|store| format!("`{}`", store.id)).collect();
    Error::new(ErrorKind::Ambiguous, format!("{} stores are named `{wanted}`", several.len()))
        .with_hint(format!("use an id instead: {}", ids.join(" or ")))
}
