//! Stores: named containers of memories.

use std::collections::BTreeMap;
use std::time::Duration;

use super::text::check_length;
use super::words::words;
use super::{Description, Name, StoreId, TextError, Timestamp, WorkspaceId};

/// A named container of memories; the unit that is attached, mounted, searched and archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Its id.
    pub id: StoreId,
    /// The workspace that it belongs to.
    pub workspace: WorkspaceId,
    /// Its name; not unique.
    pub name: Name,
    /// What it is for; empty if unspecified.
    pub description: Description,
    /// The owner's own labels, invisible to agents.
    pub metadata: Metadata,
    /// What Quipu does with writes and unused memories.
    pub policy: StorePolicy,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name, description, metadata or policy changed or it was archived.
    pub updated_at: Timestamp,
    /// When it was archived, if it was.
    pub archived_at: Option<Timestamp>,
}

/// A store that was deleted and can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedStore {
    /// The store as it was.
    pub store: Store,
    /// How many memories it holds.
    pub memories_count: u64,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

/// Labels of a store: at most 16 pairs, keys of 1 to 64 and values of at most 512 characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(BTreeMap<String, String>);

const PAIRS_MAX: usize = 16;
const KEY_CHARS_MAX: usize = 64;
const VALUE_CHARS_MAX: usize = 512;

impl Metadata {
    /// Checks the limits and returns the pairs as metadata.
    pub fn new(pairs: BTreeMap<String, String>) -> Result<Self, TextError> {
        if pairs.len() > PAIRS_MAX {
            return Err(TextError::TooManyPairs { pairs_max: PAIRS_MAX });
        }
        for (key, value) in &pairs {
            if key.is_empty() {
                return Err(TextError::Empty { what: "metadata key" });
            }
            check_length("metadata key", key, KEY_CHARS_MAX)?;
            check_length("metadata value", value, VALUE_CHARS_MAX)?;
        }
        Ok(Self(pairs))
    }

    /// Returns the pairs.
    pub fn pairs(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Returns the metadata after a patch: a text sets its key, `None` removes it.
    pub fn patched(&self, patch: &BTreeMap<String, Option<String>>) -> Result<Self, TextError> {
        let mut pairs = self.0.clone();
        for (key, value) in patch {
            match value {
                Some(value) => pairs.insert(key.clone(), value.clone()),
                None => pairs.remove(key),
            };
        }
        Self::new(pairs)
    }
}

/// What Quipu does by itself in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorePolicy {
    /// What happens to a write that holds a credential.
    pub secrets: SecretPolicy,
    /// After how many days a memory that nobody read or wrote is deleted, if ever.
    pub expire_after_days: Option<u32>,
    /// What happens to a write that brings back text that was redacted by its content.
    pub forgotten: ForgottenPolicy,
    /// Who may change its memories, of those who may write at all.
    pub writers: Writers,
}

impl StorePolicy {
    /// Returns how long a memory may go unused, if that is limited.
    pub fn expire_after(self) -> Option<Duration> {
        self.expire_after_days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60))
    }
}

/// What happens to a write that holds a credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretPolicy {
    /// Texts are not screened.
    Off,
    /// The text is stored, and its writer is warned.
    #[default]
    Warn,
    /// The credential is replaced before the text is stored, and the writer is warned.
    Redact,
    /// The write is refused.
    Reject,
}

/// What happens to a write that brings back text that was redacted by its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForgottenPolicy {
    /// The text is stored, and its writer is warned.
    #[default]
    Warn,
    /// The write is refused.
    Refuse,
}

/// Who may change the memories of a store, of those who may write at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writers {
    /// Everyone.
    #[default]
    Everyone,
    /// People and what they administer with: never a session, and of keys only those of administrators.
    People,
}

words!(Writers { Everyone = "everyone", People = "people" });

words!(ForgottenPolicy { Warn = "warn", Refuse = "refuse" });

words!(SecretPolicy { Off = "off", Warn = "warn", Redact = "redact", Reject = "reject" });

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(count: usize) -> BTreeMap<String, String> {
        (0..count).map(|number| (format!("k{number}"), String::new())).collect()
    }

    fn pair(key: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn both_sides_of_every_limit() {
        assert!(Metadata::new(pairs(16)).is_ok());
        assert_eq!(Metadata::new(pairs(17)), Err(TextError::TooManyPairs { pairs_max: 16 }));
        assert!(Metadata::new(pair(&"ü".repeat(64), &"ü".repeat(512))).is_ok());
        assert!(Metadata::new(pair(&"ü".repeat(65), "")).is_err());
        assert!(Metadata::new(pair("k", &"ü".repeat(513))).is_err());
        assert!(Metadata::new(pair("", "")).is_err());
    }

    #[test]
    fn a_patch_sets_removes_and_keeps() {
        let before = Metadata::new(pair("keep", "1")).unwrap();
        let patch = [("new", Some("2")), ("gone", None)]
            .map(|(key, value)| (key.to_owned(), value.map(str::to_owned)));
        let after = before.patched(&BTreeMap::from(patch)).unwrap();
        let expected = [("keep", "1"), ("new", "2")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(after.pairs(), &BTreeMap::from(expected));
    }

    #[test]
    fn the_limit_of_pairs_applies_to_the_result_of_a_patch() {
        let full = Metadata::new(pairs(16)).unwrap();
        let mut patch = BTreeMap::from([("more".to_owned(), Some(String::new()))]);
        assert!(full.patched(&patch).is_err());
        patch.insert("k0".to_owned(), None);
        assert!(full.patched(&patch).is_ok());
    }
}
