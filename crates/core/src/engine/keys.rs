//! Keys, and authentication by a presented secret.

use crate::Error;
use crate::backend::Reader;
use crate::model::{
    Actor, Forwarding, Id as _, Key, KeyId, KeyKind, KeySecret, Name, Role, SecretHash, Session,
    Store, StoreId, Timestamp, WorkspaceId,
};

use super::derived_keys::{is_live, revoke_all, revoke_family};
use super::transaction::Ledger;
use super::{Engine, no_store};

/// The properties of a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// What people call it.
    pub name: Name,
    /// What its holder may do.
    pub role: Role,
    /// The only stores that it opens; `None` means all of the workspace.
    pub stores: Option<Vec<StoreId>>,
    /// When it stops working, if ever.
    pub expires_at: Option<Timestamp>,
    /// A secret that was chosen by its owner; `None` generates a random one.
    pub secret: Option<KeySecret>,
    /// Whether its holder may have requests forwarded to the upstream.
    pub forwarding: Forwarding,
}

impl Principal {
    /// Returns when the secret stops working, if ever. It may be revoked earlier.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Key(key) => key.expires_at,
            // It is never later than the expiry of the session's key.
            Self::Session(session) => session.token_expires_at,
        }
    }

    /// Returns the author of what is changed with the secret.
    pub fn actor(&self) -> Actor {
        match self {
            Self::Key(key) => key.actor(),
            Self::Session(session) => Actor::Session(session.id),
        }
    }
}

/// Whom a secret belongs to.
#[derive(Clone, Debug)]
pub enum Principal {
    /// A program with a key, or a person at a browser.
    Key(Key),
    /// An agent with the token of its session. If its key was derived, it is given here as the key that
    /// that one was derived from, which pays for it.
    Session(Session),
}

impl Engine {
    /// Creates a key. Its secret is returned here and never again.
    pub fn create_key(
        &self,
        workspace: WorkspaceId,
        new: &NewKey,
    ) -> Result<(Key, KeySecret), Error> {
        self.write(|ledger| added_key(ledger, workspace, new))
    }

    /// Creates a key with a chosen secret, unless a key has it already. Programs that start concurrently
    /// may all call this.
    pub fn ensure_key(&self, workspace: WorkspaceId, new: &NewKey) -> Result<(), Error> {
        self.write(|ledger| {
            let hash = new.secret.as_ref().map(KeySecret::hash);
            match hash.map(|hash| ledger.reader().key_with_secret(&hash)).transpose()?.flatten() {
                Some(_) => Ok(()),
                None => added_key(ledger, workspace, new).map(drop),
            }
        })
    }

    /// Creates the first key of a workspace; `None` if it has keys. Derived ones do not count: somebody may
    /// look around with a one-time link before there is a key.
    pub fn create_first_key(
        &self,
        workspace: WorkspaceId,
        new: &NewKey,
    ) -> Result<Option<(Key, KeySecret)>, Error> {
        self.write(|ledger| {
            if ledger.reader().keys(workspace)?.iter().all(Key::is_derived) {
                added_key(ledger, workspace, new).map(Some)
            } else {
                Ok(None)
            }
        })
    }

    /// Returns all keys of a workspace, derived ones among them, the oldest first.
    pub fn keys(&self, workspace: WorkspaceId) -> Result<Vec<Key>, Error> {
        self.read(|reader| reader.keys(workspace))
    }

    /// Revokes a key, everything that was derived from it, and everything that was issued with it: ending
    /// the access token of an OAuth host is useless if it can be refreshed. Permanent, effective
    /// immediately, and idempotent.
    pub fn revoke_key(&self, id: KeyId) -> Result<Key, Error> {
        let now = self.clock.now();
        self.write(|ledger| {
            let before = ledger.reader().key(id)?;
            let before = before.ok_or_else(|| {
                Error::not_found(format!("no key has the id `{id}`"))
                    .with_hint("list the keys to see which exist")
            })?;
            let after = Key { revoked_at: before.revoked_at.or(Some(now)), ..before.clone() };
            if after != before {
                ledger.writer.put_key(&after)?;
                // They have ended with their parent anyway; this is for those who list them.
                let derived = ledger.reader().derived_keys(before.workspace, Some(id))?;
                revoke_all(ledger, derived, now)?;
                if before.family.is_some() {
                    revoke_family(ledger, &before, now)?;
                }
                ledger.count_revocation()?;
            }
            Ok(after)
        })
    }

    /// Returns whom a secret belongs to, if it is valid now.
    pub fn principal(&self, presented: &str) -> Result<Option<Principal>, Error> {
        self.admit(presented, None).map(|(principal, _)| principal)
    }

    /// Returns whom a secret belongs to, if it is valid now, and a store, if it exists: everything that
    /// authorizing a request needs, from one snapshot.
    pub fn admit(
        &self,
        presented: &str,
        store: Option<StoreId>,
    ) -> Result<(Option<Principal>, Option<Store>), Error> {
        let presented = SecretHash::of(presented);
        let now = self.clock.now();
        let (principal, store) = self.read(|reader| {
            let store = store.map(|id| reader.store(id)).transpose()?.flatten();
            Ok((principal(reader, &presented, now)?, store))
        })?;
        if let Some(Principal::Key(key)) = &principal {
            self.note_admission(key, now);
        }
        Ok((principal, store))
    }
}

fn added_key(
    ledger: &mut Ledger<'_>,
    workspace: WorkspaceId,
    new: &NewKey,
) -> Result<(Key, KeySecret), Error> {
    require_stores(ledger.reader(), workspace, new.stores.as_deref())?;
    let secret = match &new.secret {
        Some(chosen) => chosen.clone(),
        None => KeySecret::from_random(ledger.random_bytes()),
    };
    if ledger.reader().key_with_secret(&secret.hash())?.is_some() {
        return Err(Error::invalid("another key has this secret")
            .with_hint("choose another secret, or let Quipu make one"));
    }
    let created_at = ledger.moment()?;
    let key = Key {
        id: KeyId::new(created_at, ledger.random()),
        workspace,
        kind: KeyKind::Key,
        parent: None,
        family: None,
        name: new.name.clone(),
        role: new.role,
        stores: new.stores.clone(),
        secret: secret.hash(),
        created_at,
        expires_at: new.expires_at,
        revoked_at: None,
        used_at: None,
        payload: None,
        forwarding: new.forwarding,
    };
    ledger.writer.put_key(&key)?;
    Ok((key, secret))
}

/// Fails unless all of the stores belong to the workspace.
pub(super) fn require_stores(
    reader: &dyn Reader,
    workspace: WorkspaceId,
    stores: Option<&[StoreId]>,
) -> Result<(), Error> {
    for &store in stores.into_iter().flatten() {
        let owner = reader.store(store)?.map(|store| store.workspace);
        if owner != Some(workspace) {
            return Err(no_store(store));
        }
    }
    Ok(())
}

fn principal(
    reader: &dyn Reader,
    presented: &SecretHash,
    now: Timestamp,
) -> Result<Option<Principal>, Error> {
    if let Some(key) = reader.key_with_secret(presented)? {
        let is_admitted = key.kind.opens() && is_live(reader, &key, now)?;
        return Ok(is_admitted.then_some(Principal::Key(key)));
    }
    let session = reader.session_with_token(presented)?;
    let session = session.filter(|session| {
        session.archived_at.is_none()
            && session.token_expires_at.is_none_or(|expires_at| now < expires_at)
    });
    let Some(session) = session else { return Ok(None) };
    let Some(key) = session.key else { return Ok(Some(Principal::Session(session))) };
    // A token never grants more than the key that issued it, so it ends with the key.
    match reader.key(key)? {
        Some(key) if is_live(reader, &key, now)? => {
            Ok(Some(Principal::Session(Session { key: Some(key.root()), ..session })))
        }
        Some(_) | None => Ok(None),
    }
}
