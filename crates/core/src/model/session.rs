//! Sessions: an agent's run and the stores attached to it.

use super::words::words;
use super::{
    Description, Instructions, KeyId, Metadata, Name, SecretHash, SessionId, StoreId, Timestamp,
    WorkspaceId,
};

/// An agent's run, with the stores that it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// The workspace that it belongs to.
    pub workspace: WorkspaceId,
    /// What people call it, such as the agent's or the program's name.
    pub title: String,
    /// The owner's own labels.
    pub metadata: Metadata,
    /// Data of the door that created it; nothing else reads this.
    pub details: String,
    /// The stores that it may use, in the order in which they were attached.
    pub attachments: Vec<Attachment>,
    /// The hash of its token, which lets its holder act as this session; a session that runs
    /// inside Quipu's own process needs none.
    pub token: Option<SecretHash>,
    /// When the token stops working; `None` for tokens that were issued before tokens expired.
    pub token_expires_at: Option<Timestamp>,
    /// The key that created the session or renewed its token. The token is valid only as long as this
    /// key is. `None` if the session was created on the owner's own machine.
    pub key: Option<KeyId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its title or state changed.
    pub updated_at: Timestamp,
    /// When it was archived, if it was.
    pub archived_at: Option<Timestamp>,
}

impl Session {
    /// Returns the attachment of a store, if it is attached.
    pub fn attachment(&self, store: StoreId) -> Option<&Attachment> {
        self.attachments.iter().find(|attachment| attachment.store == store)
    }
}

/// A store attached to a session. Name, description and slug are as of that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The store.
    pub store: StoreId,
    /// What the session may do in it.
    pub access: Access,
    /// What the agent should do with it; empty if unspecified.
    pub instructions: Instructions,
    /// The store's name when it was attached.
    pub name: Name,
    /// The store's description when it was attached.
    pub description: Description,
    /// The name of its directory in a mount, unique in the session.
    pub slug: String,
}

impl Attachment {
    /// Returns where the store is mounted below `root`, a directory without a final slash.
    pub fn mount_path(&self, root: &str) -> String {
        format!("{root}/{}", self.slug)
    }
}

/// What may be done in an attached store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing.
    #[default]
    ReadWrite,
    /// Reading only.
    ReadOnly,
}

words!(Access { ReadWrite = "read_write", ReadOnly = "read_only" });

/// Returns the directory name for a store's name.
///
/// Letters become lower case, each run of anything but ASCII letters and digits becomes one `-`,
/// none stands at either end; a name of nothing else becomes `store`.
pub fn slug(name: &Name) -> String {
    let lower = name.as_str().to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    if slug.is_empty() { "store".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slug_of(name: &str) -> String {
        slug(&Name::new(name).unwrap())
    }

    #[test]
    fn a_slug_is_lower_case_words_with_hyphens() {
        assert_eq!(slug_of("Shopper Preferences"), "shopper-preferences");
        assert_eq!(slug_of("a__b//c"), "a-b-c");
        assert_eq!(slug_of("Q3 2026"), "q3-2026");
    }

    #[test]
    fn a_slug_has_no_hyphen_at_its_ends_and_is_never_empty() {
        assert_eq!(slug_of("--x--"), "x");
        assert_eq!(slug_of("日本"), "store");
        assert_eq!(slug_of("Café"), "caf");
    }
}
