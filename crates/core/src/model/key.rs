//! Workspaces and the keys that open them.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::words::words;
use super::{Access, Actor, KeyId, Name, PrincipalName, Session, StoreId, Timestamp, WorkspaceId};

/// The isolation boundary: stores, keys and sessions belong to exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: Name,
    /// When it was created.
    pub created_at: Timestamp,
    /// The store that commands use if none is named. It may have been deleted since.
    pub default_store: Option<StoreId>,
}

/// A credential of a workspace. Only the hash of its secret is known.
///
/// Some keys are derived from others: a browser that somebody signed in with a key, a one-time link, the
/// codes and tokens of OAuth. They have at most the rights of the key that they come from, and end with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id, which is not a secret.
    pub id: KeyId,
    /// The workspace that it opens.
    pub workspace: WorkspaceId,
    /// What it is for.
    pub kind: KeyKind,
    /// The key that it was derived from, directly or through others. That one was not derived. A derived
    /// key without a parent was made by the owner of the data.
    pub parent: Option<KeyId>,
    /// The one-time key that was exchanged for it, or for the first of those that were exchanged for one
    /// another until this one. All of a family can be revoked together.
    pub family: Option<KeyId>,
    /// What people call it. For a browser, the name of the person who uses it.
    pub name: Name,
    /// What its holder may do.
    pub role: Role,
    /// The only stores that it opens; `None` means all of the workspace.
    pub stores: Option<Vec<StoreId>>,
    /// The hash of its secret.
    pub secret: SecretHash,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it stops working, if ever.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was. A one-time key is revoked by its use.
    pub revoked_at: Option<Timestamp>,
    /// About when it was last used, if it was.
    pub used_at: Option<Timestamp>,
    /// Data of the door that made it, which the engine does not read.
    pub payload: Option<String>,
    /// Whether its holder may have requests forwarded to the upstream.
    pub forwarding: Forwarding,
}

/// How long the [payload](Key::payload) of a key may be.
pub const KEY_PAYLOAD_SIZE_BYTES_MAX: usize = 4096;

/// How long the name of a person at a browser may be: with an `@` and the id of a key it is a
/// [`PrincipalName`].
pub const PERSON_NAME_SIZE_BYTES_MAX: usize = 32;

impl Key {
    /// Returns whether the key was derived from another one, or from the rights of the owner of the data.
    pub fn is_derived(&self) -> bool {
        // An access token that the owner has consented to has no parent, but a family.
        self.kind != KeyKind::Key || self.parent.is_some() || self.family.is_some()
    }

    /// Returns the key that this one was derived from, or itself.
    pub fn root(&self) -> KeyId {
        self.parent.unwrap_or(self.id)
    }

    /// Returns the id that all keys of its family have in common: a client that has renewed its token is
    /// still the same client.
    pub fn grant(&self) -> KeyId {
        self.family.unwrap_or(self.id)
    }

    /// Returns the author of what is changed with the key.
    ///
    /// At a browser that is a person: `ada@apikey_…` with the key that she signed in with, so that nobody
    /// can pass for her by typing her name with another key, or `ada` if she owns the data. However often
    /// she signs in, she is the same author. An owner who gives up rights for a sign-in acts with the key
    /// of that sign-in, so that what it may do is known from the author alone.
    pub fn actor(&self) -> Actor {
        let person = match (self.kind, self.parent) {
            (KeyKind::Browser, None) if self.role == Role::Admin => self.name.to_string(),
            (KeyKind::Browser, _) => format!("{}@{}", self.name, self.root()),
            (KeyKind::Key | KeyKind::Link | KeyKind::Code | KeyKind::Refresh, _) => {
                return Actor::ApiKey(self.id);
            }
        };
        // Names are checked when keys are made. Cutting one that does not fit could make two people one.
        PrincipalName::parse(&person).map_or(Actor::ApiKey(self.id), Actor::User)
    }

    /// Returns whether the key opens anything at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Returns whether the key opens this store of its workspace.
    pub fn opens(&self, store: StoreId) -> bool {
        self.stores.as_ref().is_none_or(|stores| stores.contains(&store))
    }

    /// Returns whether the key may know of a session of its workspace.
    ///
    /// A session grants access to its stores, so a key sees the sessions that reach no further than
    /// itself, and those that it created. A session without stores is hidden from keys that are limited to
    /// some stores, except admins: it may belong to somebody who uses other stores. It is not hidden from
    /// the keys that were derived from the one that created it.
    pub fn sees(&self, session: &Session) -> bool {
        if session.workspace != self.workspace {
            return false;
        }
        if session.key == Some(self.id) {
            return true;
        }
        if session.attachments.is_empty() {
            let is_of_parent = session.key.is_some() && session.key == self.parent;
            return self.stores.is_none() || self.role == Role::Admin || is_of_parent;
        }
        session
            .attachments
            .iter()
            .all(|attachment| self.opens(attachment.store) && self.role.covers(attachment.access))
    }
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// It is presented with every request. Access tokens of OAuth are keys of this kind, with a family.
    Key,
    /// It is the cookie of a browser that somebody has signed in.
    Browser,
    /// It signs in a browser, once.
    Link,
    /// It is exchanged for the first tokens of an OAuth client, once.
    Code,
    /// It is exchanged for the next tokens of an OAuth client, once.
    Refresh,
}

impl KeyKind {
    /// Returns whether such a key opens anything by itself; the others can only be exchanged, once.
    pub fn opens(self) -> bool {
        match self {
            Self::Key | Self::Browser => true,
            Self::Link | Self::Code | Self::Refresh => false,
        }
    }
}

words!(KeyKind {
    Key = "key",
    Browser = "browser",
    Link = "link",
    Code = "code",
    Refresh = "refresh",
});

/// What the holder of a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read.
    ReadOnly,
    /// Read and write memories.
    ReadWrite,
    /// Everything, including stores and keys.
    Admin,
}

impl Role {
    /// Returns whether a holder may do in a store what this access allows.
    pub fn covers(self, access: Access) -> bool {
        match access {
            Access::ReadOnly => true,
            Access::ReadWrite => self >= Self::ReadWrite,
        }
    }
}

/// Whether the holder of a key may have requests forwarded to the upstream, which costs its owner money.
/// No role includes it, and no derived key has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// It may not.
    #[default]
    Denied,
    /// It may.
    Allowed,
}

words!(Forwarding { Denied = "denied", Allowed = "allowed" });

words!(Role { ReadOnly = "read_only", ReadWrite = "read_write", Admin = "admin" });

/// The secret of a key or a session, shown once and never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(String);

/// A secret that was chosen by its owner must be at least this long.
const SECRET_SIZE_BYTES_MIN: usize = 16;

impl KeySecret {
    /// Creates a secret of 256 random bits.
    pub fn from_random(random: [u8; 32]) -> Self {
        let digits = random.iter().map(|byte| format!("{byte:02x}"));
        Self("sk-quipu-".to_owned() + &digits.collect::<String>())
    }

    /// Accepts a secret that was chosen by its owner, if it is long enough.
    pub fn chosen(text: &str) -> Option<Self> {
        (text.len() >= SECRET_SIZE_BYTES_MIN).then(|| Self(text.to_owned()))
    }

    /// Returns the secret itself, to show it once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns what is stored of it.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// The SHA-256 of a secret. The secrets have 256 random bits, so a slow hash would add nothing.
#[derive(Clone, Copy)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// Returns the hash of what somebody presents as a secret.
    pub fn of(presented: &str) -> Self {
        Self(Sha256::digest(presented.as_bytes()).into())
    }

    /// Returns the hash with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, for a backend to store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for SecretHash {
    /// Compares in constant time, so that timing does not reveal how much of a guess was right.
    fn eq(&self, other: &Self) -> bool {
        let difference =
            self.0.iter().zip(&other.0).fold(0, |sum, (left, right)| sum | (left ^ right));
        std::hint::black_box(difference) == 0
    }
}

impl Eq for SecretHash {}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Id as _;
    use super::*;

    #[test]
    fn a_secret_and_its_hash_stay_out_of_debug_output() {
        let secret = KeySecret::from_random([0xab; 32]);
        let shown = format!("{secret:?} {:?}", secret.hash());
        assert!(!shown.contains("ab"), "{shown}");
    }

    #[test]
    fn only_the_same_secret_has_the_same_hash() {
        let secret = KeySecret::from_random([1; 32]);
        assert_eq!(SecretHash::of(secret.reveal()), secret.hash());
        assert_ne!(SecretHash::of("sk-quipu-"), secret.hash());
    }

    #[test]
    fn short_secrets_are_refused() {
        assert!(KeySecret::chosen(&"x".repeat(15)).is_none());
        assert!(KeySecret::chosen(&"x".repeat(16)).is_some());
    }

    #[test]
    fn a_role_covers_what_it_may_do_itself() {
        for role in Role::ALL {
            assert!(role.covers(Access::ReadOnly));
            assert_eq!(role.covers(Access::ReadWrite), *role != Role::ReadOnly);
        }
    }

    fn key() -> Key {
        let at = Timestamp::from_micros;
        Key {
            id: KeyId::from_bits(1),
            workspace: WorkspaceId::from_bits(1),
            kind: KeyKind::Key,
            parent: None,
            family: None,
            name: Name::new("ci").unwrap(),
            role: Role::ReadOnly,
            stores: None,
            secret: SecretHash::of("x"),
            created_at: at(0),
            expires_at: Some(at(10)),
            revoked_at: None,
            used_at: None,
            payload: None,
            forwarding: Forwarding::Denied,
        }
    }

    #[test]
    fn only_a_browser_is_a_person() {
        let parent = KeyId::from_bits(u128::MAX);
        for kind in KeyKind::ALL {
            for parent in [None, Some(parent)] {
                let key = Key { kind: *kind, parent, ..key() };
                let is_person = matches!(key.actor(), Actor::User(_));
                assert_eq!(is_person, *kind == KeyKind::Browser, "{key:?}");
            }
        }
    }

    #[test]
    fn a_person_is_named_by_the_key_that_she_signed_in_with() {
        let parent = KeyId::from_bits(u128::MAX);
        let longest = "a".repeat(PERSON_NAME_SIZE_BYTES_MAX);
        let browser = |name: &str, parent| Key {
            kind: KeyKind::Browser,
            name: Name::new(name).unwrap(),
            parent,
            role: Role::Admin,
            ..key()
        };
        assert_eq!(browser("ada", None).actor().to_string(), "user_ada");
        let limited = Key { role: Role::ReadWrite, ..browser("ada", None) };
        assert_eq!(limited.actor().signed_in(), Some(("ada", limited.id)));
        let ada = browser("ada", Some(parent)).actor();
        assert_eq!(ada.to_string(), format!("user_ada@{parent}"));
        assert_eq!(ada.signed_in(), Some(("ada", parent)));
        let long = browser(&longest, Some(parent)).actor();
        assert_eq!(long.signed_in(), Some((longest.as_str(), parent)));
        let forged = browser(&format!("ada@{parent}"), Some(KeyId::from_bits(2)));
        assert_eq!(forged.actor(), Actor::ApiKey(forged.id), "it does not fit");
    }

    #[test]
    fn a_key_is_valid_until_it_expires_or_is_revoked() {
        let at = Timestamp::from_micros;
        let key = key();
        assert!(key.is_valid(at(9)));
        assert!(!key.is_valid(at(10)));
        assert!(!Key { revoked_at: Some(at(1)), ..key }.is_valid(at(2)));
    }
}
