//! Workspaces and the keys that open them.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::words::words;
use super::{Access, KeyId, Name, Session, StoreId, Timestamp, WorkspaceId};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its id, which is not a secret.
    pub id: KeyId,
    /// The workspace that it opens.
    pub workspace: WorkspaceId,
    /// What people call it.
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
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

impl Key {
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
    /// some stores, except admins: it may belong to somebody who uses other stores.
    pub fn sees(&self, session: &Session) -> bool {
        if session.workspace != self.workspace {
            return false;
        }
        if session.key == Some(self.id) {
            return true;
        }
        if session.attachments.is_empty() {
            return self.stores.is_none() || self.role == Role::Admin;
        }
        session
            .attachments
            .iter()
            .all(|attachment| self.opens(attachment.store) && self.role.covers(attachment.access))
    }
}

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

    #[test]
    fn a_key_is_valid_until_it_expires_or_is_revoked() {
        let at = Timestamp::from_micros;
        let key = Key {
            id: KeyId::from_bits(1),
            workspace: WorkspaceId::from_bits(1),
            name: Name::new("ci").unwrap(),
            role: Role::ReadOnly,
            stores: None,
            secret: SecretHash::of("x"),
            created_at: at(0),
            expires_at: Some(at(10)),
            revoked_at: None,
        };
        assert!(key.is_valid(at(9)));
        assert!(!key.is_valid(at(10)));
        assert!(!Key { revoked_at: Some(at(1)), ..key }.is_valid(at(2)));
    }
}
