//! `quipu session` and `quipu key`, as they are typed.

use clap::{Args, Subcommand};
use quipu_core::model::{KeyId, Role, SessionId};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Start a session with the stores of `--store NAME[:ro]`, which may be repeated; its token is
    /// shown only once
    Create(SessionCreateArguments),
    /// List sessions, the newest first
    List(SessionListArguments),
    /// Show a session
    Show(SessionIdArguments),
    /// Archive a session: its token stops to work
    Archive(SessionIdArguments),
    /// Delete a session; the versions that it made stay
    Delete(SessionIdArguments),
}

#[derive(Args, Debug)]
pub(crate) struct SessionCreateArguments {
    /// What to call it
    #[arg(long, default_value = "")]
    pub(crate) title: String,
    /// What the agent should do with the attached stores
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) instructions: String,
}

#[derive(Args, Debug)]
pub(crate) struct SessionListArguments {
    /// Show archived sessions too
    #[arg(long, short)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SessionIdArguments {
    /// The session
    pub(crate) session: SessionId,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key for all stores, or for those of `--store`, which may be repeated; it is shown only
    /// once
    Create(KeyCreateArguments),
    /// List keys
    List,
    /// Revoke a key at once
    Revoke(KeyRevokeArguments),
}

#[derive(Args, Debug)]
pub(crate) struct KeyCreateArguments {
    /// What to call it
    #[arg(long, default_value = "key")]
    pub(crate) name: String,
    /// What its holder may do: `admin`, `read_write` or `read_only`
    #[arg(long)]
    pub(crate) role: Role,
    /// When it stops to work: `30d` or `2027-01-31` [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct KeyRevokeArguments {
    /// The key
    pub(crate) key: KeyId,
}
