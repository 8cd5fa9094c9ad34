//! Keys that are derived from other keys: browsers that are signed in, one-time links, and the codes and
//! tokens of OAuth.
//!
//! A derived key is a row like every other key, so it survives restarts, is known to all servers on the
//! same data, and needs no rules of its own where requests are authorized. It has at most the rights of the
//! key that it comes from, its parent, and ends with it.
//!
//! One-time keys are redeemed in a write transaction, which no other one overlaps: of two that present the
//! same key, one gets it. What is issued for it is issued in the same transaction, so a crash in between
//! leaves the one-time key as it was.

use crate::Error;
use crate::backend::Reader;
use crate::model::{
    Forwarding, Id as _, KEY_PAYLOAD_SIZE_BYTES_MAX, Key, KeyId, KeyKind, KeySecret, Name,
    PERSON_NAME_SIZE_BYTES_MAX, PrincipalName, Role, SecretHash, StoreId, Timestamp, WorkspaceId,
};

use super::Engine;
use super::keys::require_stores;
use super::transaction::Ledger;

/// How many valid keys of each kind are derived from one key. When there are more, the ones that were not
/// used for longest are revoked.
pub const DERIVED_KEYS_MAX: usize = 64;

/// What a key is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Derivation {
    /// A key that was not derived, or that of a browser. In a browser people consent to clients that stay
    /// when they sign out, so what is derived from its key has the same parent and outlives it. Its rights
    /// are at most those of the browser.
    Key(KeyId),
    /// All rights of whoever owns the data directory, in this workspace.
    Owner(WorkspaceId),
}

/// The properties of a new derived key.
#[derive(Clone, Debug)]
pub struct NewDerivedKey {
    /// What it is for.
    pub kind: KeyKind,
    /// What people call it. For a browser, the name of the person who uses it: it must be a
    /// [`PrincipalName`] of at most [`PERSON_NAME_SIZE_BYTES_MAX`] bytes.
    pub name: Name,
    /// What its holder may do.
    pub role: Role,
    /// The only stores that it opens; `None` means all of the workspace.
    pub stores: Option<Vec<StoreId>>,
    /// When it stops working. If its parent expires earlier, it expires with it.
    pub expires_at: Timestamp,
    /// Data of the door that makes it, which the engine does not read.
    pub payload: Option<String>,
}

impl NewDerivedKey {
    /// Fails if no key can be like this, whatever it is derived from.
    fn require_valid(&self) -> Result<(), Error> {
        let payload_size_bytes = self.payload.as_ref().map_or(0, String::len);
        if payload_size_bytes > KEY_PAYLOAD_SIZE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the payload of a key has at most {KEY_PAYLOAD_SIZE_BYTES_MAX} bytes, not \
                 {payload_size_bytes}"
            )));
        }
        if self.kind != KeyKind::Browser {
            return Ok(());
        }
        let name = self.name.as_str();
        let has_valid_size = name.len() <= PERSON_NAME_SIZE_BYTES_MAX;
        // Without a parent, the name alone is the author; it must not pass for one with a parent.
        let is_ambiguous = name.rsplit('@').next().is_some_and(|end| end.parse::<KeyId>().is_ok());
        if !has_valid_size || is_ambiguous || PrincipalName::parse(name).is_err() {
            return Err(Error::invalid(format!(
                "the name of a person has 1 to {PERSON_NAME_SIZE_BYTES_MAX} ASCII letters, digits, \
                 `.`, `_`, `@` or `-`, and does not end in the id of a key"
            )));
        }
        Ok(())
    }
}

/// A one-time key and what it was exchanged for.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The one-time key, which is revoked now.
    pub redeemed: Key,
    /// What was issued for it, in the order that was asked for.
    pub issued: Vec<(Key, KeySecret)>,
}

impl Engine {
    /// Derives a key from another one, which must be valid. Its secret is returned here and never again.
    ///
    /// Fails if it would have more rights than the key that it comes from.
    pub fn derive_key(
        &self,
        from: Derivation,
        new: &NewDerivedKey,
    ) -> Result<(Key, KeySecret), Error> {
        self.write(|ledger| {
            let grantor = Grantor::new(ledger.reader(), from, self.clock.now())?;
            if grantor.rights.is_none() && new.kind == KeyKind::Key {
                return Err(Error::invalid("a key of the owner is not derived from anything")
                    .with_hint("create it like any other key"));
            }
            grantor.derive(ledger, new, self.clock.now())
        })
    }

    /// Redeems a one-time key: returns it and revokes it, so that it cannot be redeemed again. `None` if
    /// nothing valid of this kind was presented.
    pub fn redeem_key(&self, presented: &str, kind: KeyKind) -> Result<Option<Key>, Error> {
        let exchange = self.exchange_key(presented, kind, |_| Ok(Vec::new()))?;
        Ok(exchange.map(|exchange| exchange.redeemed))
    }

    /// Redeems a one-time key and derives what `issue` asks for from it, all or nothing. `None` if nothing
    /// valid of this kind was presented.
    ///
    /// What is issued has at most the rights of the redeemed key and the same parent, and belongs to its
    /// family. If `issue` fails, the one-time key stays valid; if it asks for nothing, it is used up.
    ///
    /// A code or a refresh token that is presented again was stolen, from whoever redeemed it first or from
    /// whoever did now. So its whole family is revoked. That is noticed as long as the redeemed one is
    /// kept, which is a day at least.
    pub fn exchange_key(
        &self,
        presented: &str,
        kind: KeyKind,
        issue: impl Fn(&Key) -> Result<Vec<NewDerivedKey>, Error>,
    ) -> Result<Option<Exchange>, Error> {
        if kind.opens() {
            return Err(Error::invalid(format!("a key of the kind `{kind}` cannot be redeemed")));
        }
        let presented = SecretHash::of(presented);
        let found = |reader: &dyn Reader| {
            Ok(reader.key_with_secret(&presented)?.filter(|key| key.kind == kind))
        };
        // Anybody can present anything, so only what exists is worth a turn among the writers.
        if self.read(found)?.is_none() {
            return Ok(None);
        }
        self.write(|ledger| {
            let now = self.clock.now();
            let Some(key) = found(ledger.reader())? else { return Ok(None) };
            if key.revoked_at.is_some() && kind != KeyKind::Link {
                revoke_family(ledger, &key, now)?;
                return Ok(None);
            }
            if !is_live(ledger.reader(), &key, now)? {
                return Ok(None);
            }
            let redeemed = Key { revoked_at: Some(now), used_at: Some(now), ..key };
            ledger.writer.put_key(&redeemed)?;
            let grantor = Grantor::redeemed(ledger.reader(), &redeemed)?;
            let mut issued = Vec::new();
            for new in issue(&redeemed)? {
                issued.push(grantor.derive(ledger, &new, now)?);
            }
            Ok(Some(Exchange { redeemed, issued }))
        })
    }

    /// Revokes everything that was exchanged for the same code or link as this key, and the key itself;
    /// returns how many were valid.
    pub fn revoke_family(&self, id: KeyId) -> Result<usize, Error> {
        self.write(|ledger| match ledger.reader().key(id)? {
            Some(key) => revoke_family(ledger, &key, self.clock.now()),
            None => Ok(0),
        })
    }

    /// Revokes what was presented and everything that was issued with it, if a code was exchanged for it.
    /// Anything else, such as a key that somebody created, stays as it is.
    pub fn revoke_presented(&self, presented: &str) -> Result<(), Error> {
        let presented = SecretHash::of(presented);
        let found = |reader: &dyn Reader| {
            Ok(reader.key_with_secret(&presented)?.filter(|key| key.family.is_some()))
        };
        match self.read(found)? {
            Some(key) => self.revoke_family(key.id).map(drop),
            None => Ok(()),
        }
    }

    /// Moves the expiry of a browser's key to a later moment, but not beyond that of its parent, and
    /// returns the key as it is then. Does nothing, and returns `None`, if the key has ended.
    pub fn extend_key(&self, id: KeyId, until: Timestamp) -> Result<Option<Key>, Error> {
        let extended = |reader: &dyn Reader| {
            let Some(key) = reader.key(id)?.filter(|key| key.kind == KeyKind::Browser) else {
                return Ok(None);
            };
            if !is_live(reader, &key, self.clock.now())? {
                return Ok(None);
            }
            let last = root(reader, &key)?.and_then(|root| root.expires_at);
            let until = key.expires_at.max(Some(last.map_or(until, |last| until.min(last))));
            Ok(Some((Key { expires_at: until, ..key.clone() }, key)))
        };
        match self.read(extended)? {
            Some((after, before)) if after != before => self.write(|ledger| {
                // Looked up again: it may have been revoked meanwhile.
                let Some((after, _)) = extended(ledger.reader())? else { return Ok(None) };
                ledger.writer.put_key(&after)?;
                Ok(Some(after))
            }),
            unchanged => Ok(unchanged.map(|(key, _)| key)),
        }
    }
}

/// What the rights of a derived key are limited by.
struct Grantor {
    workspace: WorkspaceId,
    /// The key that it ends with; `None` if the owner of the data makes it.
    root: Option<Key>,
    /// The key that limits its role and its stores; `None` if nothing does.
    rights: Option<Key>,
    /// The family that it belongs to.
    family: Option<KeyId>,
}

impl Grantor {
    fn new(reader: &dyn Reader, from: Derivation, now: Timestamp) -> Result<Self, Error> {
        let id = match from {
            Derivation::Owner(workspace) => {
                return Ok(Self { workspace, root: None, rights: None, family: None });
            }
            Derivation::Key(id) => id,
        };
        match reader.key(id)? {
            // Whoever has got hold of a token, for an hour perhaps, must not make something of it that lasts.
            Some(key) if key.is_derived() && key.kind != KeyKind::Browser => {
                Err(Error::invalid("nothing can be derived from a token or a one-time key")
                    .with_hint("sign in with a key that somebody created"))
            }
            Some(key) if is_live(reader, &key, now)? => {
                let root = root(reader, &key)?;
                Ok(Self { workspace: key.workspace, root, rights: Some(key), family: None })
            }
            Some(_) | None => Err(Error::not_found(format!("no valid key has the id `{id}`"))
                .with_hint("sign in again with a valid key")),
        }
    }

    /// Returns what limits that which is issued for a one-time key.
    fn redeemed(reader: &dyn Reader, key: &Key) -> Result<Self, Error> {
        Ok(Self {
            workspace: key.workspace,
            root: root(reader, key)?,
            family: Some(key.grant()),
            rights: Some(key.clone()),
        })
    }

    fn derive(
        &self,
        ledger: &mut Ledger<'_>,
        new: &NewDerivedKey,
        now: Timestamp,
    ) -> Result<(Key, KeySecret), Error> {
        new.require_valid()?;
        self.require_rights(ledger.reader(), new)?;
        let last = self.root.as_ref().and_then(|root| root.expires_at);
        let expires_at = last.map_or(new.expires_at, |last| new.expires_at.min(last));
        if expires_at <= now {
            return Err(Error::invalid("the key would have expired already"));
        }
        self.make_room(ledger, new.kind, now)?;
        let secret = KeySecret::from_random(ledger.random_bytes());
        let created_at = ledger.moment()?;
        let key = Key {
            id: KeyId::new(created_at, ledger.random()),
            workspace: self.workspace,
            kind: new.kind,
            parent: self.root.as_ref().map(|root| root.id),
            family: self.family,
            name: new.name.clone(),
            role: new.role,
            stores: new.stores.clone(),
            secret: secret.hash(),
            created_at,
            expires_at: Some(expires_at),
            revoked_at: None,
            used_at: None,
            payload: new.payload.clone(),
            forwarding: Forwarding::Denied,
        };
        ledger.writer.put_key(&key)?;
        Ok((key, secret))
    }

    fn require_rights(&self, reader: &dyn Reader, new: &NewDerivedKey) -> Result<(), Error> {
        let Some(rights) = &self.rights else {
            return require_stores(reader, self.workspace, new.stores.as_deref());
        };
        if new.role > rights.role {
            return Err(Error::invalid(format!(
                "a key with the role `{}` cannot be derived from one with the role `{}`",
                new.role, rights.role
            ))
            .with_hint("choose a role with fewer rights, or start from another key"));
        }
        match (&new.stores, &rights.stores) {
            (_, None) => require_stores(reader, self.workspace, new.stores.as_deref()),
            (None, Some(_)) => Err(Error::invalid(
                "a key for all stores cannot be derived from one that opens some stores only",
            )
            .with_hint("name the stores")),
            // They were checked when the other key was made; those that were deleted since stay deleted.
            (Some(wanted), Some(_)) => match wanted.iter().find(|store| !rights.opens(**store)) {
                None => Ok(()),
                Some(store) => Err(Error::invalid(format!(
                    "a key for the store `{store}` cannot be derived from one that does not open it"
                ))),
            },
        }
    }

    /// Revokes the least recently used keys of a kind, if there is no room for another one.
    fn make_room(
        &self,
        ledger: &mut Ledger<'_>,
        kind: KeyKind,
        now: Timestamp,
    ) -> Result<(), Error> {
        let parent = self.root.as_ref().map(|root| root.id);
        let mut valid = ledger.reader().derived_keys(self.workspace, parent)?;
        valid.retain(|key| key.kind == kind && key.is_valid(now));
        let excess_count = (valid.len() + 1).saturating_sub(DERIVED_KEYS_MAX);
        if excess_count == 0 {
            return Ok(());
        }
        valid.sort_by_key(|key| (key.used_at.max(Some(key.created_at)), key.id));
        valid.truncate(excess_count);
        revoke_all(ledger, valid, now)?;
        ledger.count_revocation()
    }
}

/// Returns whether a key is valid, and the one that it was derived from as well.
pub(super) fn is_live(reader: &dyn Reader, key: &Key, now: Timestamp) -> Result<bool, Error> {
    if !key.is_valid(now) {
        return Ok(false);
    }
    match key.parent {
        Some(parent) => Ok(reader.key(parent)?.is_some_and(|parent| parent.is_valid(now))),
        None => Ok(true),
    }
}

/// Revokes those of the keys that are valid, and returns how many there were.
pub(super) fn revoke_all(
    ledger: &mut Ledger<'_>,
    keys: Vec<Key>,
    now: Timestamp,
) -> Result<usize, Error> {
    let mut revoked_count = 0;
    for key in keys.into_iter().filter(|key| key.is_valid(now)) {
        ledger.writer.put_key(&Key { revoked_at: Some(now), ..key })?;
        revoked_count += 1;
    }
    Ok(revoked_count)
}

pub(super) fn revoke_family(
    ledger: &mut Ledger<'_>,
    key: &Key,
    now: Timestamp,
) -> Result<usize, Error> {
    let mut keys = ledger.reader().derived_keys(key.workspace, key.parent)?;
    keys.retain(|other| other.grant() == key.grant());
    let revoked_count = revoke_all(ledger, keys, now)?;
    if revoked_count > 0 {
        ledger.count_revocation()?;
    }
    Ok(revoked_count)
}

/// Returns the key that another one ends with: its parent, or itself if it was not derived; `None` if it
/// was derived from the rights of the owner.
fn root(reader: &dyn Reader, key: &Key) -> Result<Option<Key>, Error> {
    match key.parent {
        Some(parent) => reader.key(parent),
        None if key.is_derived() => Ok(None),
        None => Ok(Some(key.clone())),
    }
}
