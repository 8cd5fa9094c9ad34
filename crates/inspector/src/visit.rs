//! One request of somebody who has signed in.

use http::Uri;
use maud::{Markup, html};
use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::engine::Principal;
use quipu_core::model::{MemoryId, Role, Store, StoreId};
use quipu_knowledge::Knowledge;
use quipu_service::authors::AuthorNames;
use quipu_service::caller::{Caller, Need};
use sha2::{Digest as _, Sha256};

use crate::assets::hex;
use crate::form::Form;
use crate::host::Host;
use crate::reply::Trouble;

/// What the pages know of the server that shows them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory of mounts, for the commands that pages suggest.
    pub mount_root: String,
    /// The version of the program.
    pub version: &'static str,
}

/// One request of somebody who has signed in, with an engine to answer it.
#[derive(Debug)]
pub struct Visit<'a> {
    /// The engine.
    pub engine: &'a Knowledge,
    /// Who asks.
    pub caller: &'a Caller,
    /// What pages know of the server.
    pub settings: &'a Settings,
    /// The server, for administrators.
    pub host: &'a dyn Host,
    /// The address of the page.
    pub uri: &'a Uri,
    /// The address of the server, without a path.
    pub base: &'a str,
    /// The variable parts of the path.
    pub parameters: &'a [(String, String)],
    /// The query of the address.
    pub query: Form,
    /// The fields of the submitted form.
    pub form: Form,
    /// What proves that a form is ours, see [`form_token`].
    pub form_token: String,
}

/// The most stores that a page lists.
const STORES_MAX: usize = 1_000;

impl<'a> Visit<'a> {
    /// Returns a variable part of the path.
    pub(crate) fn parameter(&self, name: &str) -> &'a str {
        let named = self.parameters.iter().find(|(known, _)| known == name);
        named.map_or("", |(_, value)| value.as_str())
    }

    /// Returns whether the visitor may change memories of a store, and the store takes changes.
    pub(crate) fn may_change(&self, store: &Store) -> bool {
        store.archived_at.is_none()
            && self.caller.may_in(store.id, Need::Write)
            && self.engine.may_change(store, &self.caller.principal.actor()).unwrap_or_default()
    }

    /// Returns the store in the path, if the visitor has this permission on it.
    pub(crate) fn store(&self, need: Need) -> Result<Store, Trouble> {
        self.store_with_id(self.parameter("store"), need)
    }

    /// Returns the store with this id, if the visitor has this permission on it.
    ///
    /// A store that does not exist looks like one of another workspace.
    pub(crate) fn store_with_id(&self, id: &str, need: Need) -> Result<Store, Trouble> {
        let no_such = || {
            Trouble::NotFound(format!(
                "No store has the id `{id}`. It may have been deleted; the first page lists all."
            ))
        };
        let id: StoreId = id.parse().map_err(|_malformed| no_such())?;
        let store = self.engine.store(id)?;
        if store.workspace != self.caller.workspace {
            return Err(no_such());
        }
        if self.caller.may_in(store.id, need) {
            Ok(store)
        } else {
            Err(self.caller.denied(need).into())
        }
    }

    /// Returns the store with this name or id, if the visitor has this permission on it.
    ///
    /// One that the visitor may not use is as unknown as one that does not exist.
    pub(crate) fn store_named(&self, name: &str, need: Need) -> Result<Store, Trouble> {
        let may = |store: &Store| self.caller.may_in(store.id, need);
        // First among those of the visitor: others may have the same name.
        let mut own = self.stores(Archived::Show)?;
        own.retain(|store| store.name.as_str() == name && may(store));
        if let [only] = own.as_slice() {
            return Ok(only.clone());
        }
        let found = self.engine.find_store(self.caller.workspace, name).ok();
        found.filter(may).ok_or_else(|| no_store_named(name))
    }

    /// Returns whether this is the id of a store that was deleted, and that the visitor could use before.
    pub(crate) fn has_lost_store(&self, id: &str, need: Need) -> Result<bool, Trouble> {
        let Ok(id) = id.parse::<StoreId>() else { return Ok(false) };
        let deleted = self.engine.deleted_stores(self.caller.workspace)?;
        let is_deleted = deleted.iter().any(|deleted| deleted.store.id == id);
        Ok(is_deleted && self.caller.may_in(id, need))
    }

    /// Returns the id of the memory in the path.
    pub(crate) fn memory(&self) -> Result<MemoryId, Trouble> {
        let id = self.parameter("memory");
        id.parse().map_err(|_malformed| {
            Trouble::NotFound(format!(
                "No memory has the id `{id}`. Search for words of its text to find it."
            ))
        })
    }

    /// Returns the stores that the visitor may read, by name.
    pub(crate) fn stores(&self, archived: Archived) -> Result<Vec<Store>, Trouble> {
        let query = StoreQuery {
            workspace: self.caller.workspace,
            archived,
            created: Span::default(),
            before: None,
            limit: STORES_MAX,
        };
        let mut stores = self.engine.stores(&query)?.items;
        stores.retain(|store| self.caller.may_in(store.id, Need::Read));
        stores.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
        Ok(stores)
    }

    /// Returns the names of authors.
    pub(crate) fn authors(&self) -> AuthorNames<'a> {
        AuthorNames::new(self.engine.engine(), self.caller.workspace).for_viewer(self.caller)
    }

    /// Returns whether the visitor may manage the whole workspace.
    pub(crate) fn is_admin(&self) -> bool {
        self.caller.require_workspace(Need::Manage).is_ok()
    }

    /// Returns who has signed in, in words.
    pub(crate) fn who(&self) -> (String, &'static str) {
        match &self.caller.principal {
            Principal::Key(key) => {
                let role = match key.role {
                    Role::ReadOnly => "may read",
                    Role::ReadWrite => "may read and write",
                    Role::Admin => "administrator",
                };
                (key.name.to_string(), role)
            }
            Principal::Session(session) => (session.title.clone(), "session"),
        }
    }

    /// Returns the field that every form with `method="post"` must contain.
    pub(crate) fn token_field(&self) -> Markup {
        html! { input type="hidden" name="token" value=(self.form_token); }
    }
}

fn no_store_named(name: &str) -> Trouble {
    Trouble::Invalid(format!(
        "No store that you may use here, or more than one, has the name `{name}`. Its page shows its id, \
         which can be written instead"
    ))
}

/// Returns the token that a form must carry, for the secret in the visitor's cookie.
///
/// It is derived from the secret, so that nothing has to be stored; other sites can neither read the
/// cookie nor our pages, so they cannot know it.
pub fn form_token(secret: &str) -> String {
    let hash = Sha256::new().chain_update("quipu form token\0").chain_update(secret).finalize();
    hex(hash.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_token_belongs_to_one_secret_and_does_not_reveal_it() {
        let token = form_token("sk-quipu-1");
        assert_ne!(token, form_token("sk-quipu-2"));
        assert_eq!(token.len(), 64);
        assert!(!token.contains("sk-quipu"));
    }
}
