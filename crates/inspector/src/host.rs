//! What the server does for administrators and the engine cannot.

use std::fmt;

use quipu_core::model::{Timestamp, WorkspaceId};
use quipu_core::{Engine, Error};

/// The server that shows the pages, as far as they depend on it.
pub trait Host: fmt::Debug + Send + Sync {
    /// Returns the webhooks in the order of the settings, with what was delivered to them since the
    /// server started.
    fn webhooks(&self, engine: &Engine) -> Result<Vec<Webhook>, Error>;

    /// Sends a test delivery to the webhook at this place of [`webhooks`](Self::webhooks), and waits for
    /// the answer. The outcome is in [`Webhook::tested`] afterwards. Does nothing if there is none.
    fn test_webhook(&self, engine: &Engine, place: usize);

    /// Returns the backups that [`back_up`](Self::back_up) has written and that are still there, the
    /// newest first; `None` if the server cannot write any.
    fn backups(&self) -> Result<Option<Vec<Backup>>, Error>;

    /// Writes a backup of everything to a new file, whose name the server chooses, and records it as a
    /// copy, so that redactions name it.
    fn back_up(&self, engine: &Engine, workspace: WorkspaceId) -> Result<(), Error>;
}

/// A receiver of webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Its address, without user name, password and query, which may be secret.
    pub url: String,
    /// How many deliveries it has accepted.
    pub accepted_count: u64,
    /// How many deliveries were abandoned.
    pub failed_count: u64,
    /// How many events wait to be delivered.
    pub waiting_count: u64,
    /// When the last failure was, and what it was.
    pub last_error: Option<(Timestamp, String)>,
    /// When it was last tested, and what failed, if anything did.
    pub tested: Option<(Timestamp, Result<(), String>)>,
}

/// A backup that the server has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The name of its file.
    pub name: String,
    /// The size of its file.
    pub size_bytes: u64,
}
