//! The arguments of `session`, `prompt`, `key` and `ui`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use quipu_core::model::{Access, EventType, Role, SessionId};

use super::examples;

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Create a session with the stores of `--store NAME[:ro]` (repeatable); its token is shown once
    #[command(after_help = examples::SESSION_CREATE)]
    Create(SessionCreateArguments),
    /// List sessions, newest first
    List(SessionListArguments),
    /// Show a session and everything that it changed
    #[command(after_help = examples::SESSION_SHOW)]
    Show(SessionShowArguments),
    /// Archive a session, which revokes its token
    Archive(SessionIdArguments),
    /// Delete a session; the versions it wrote are kept
    Delete(SessionIdArguments),
}

#[derive(Args, Debug)]
pub(crate) struct SessionCreateArguments {
    /// Title of the session in the history
    #[arg(long, default_value = "")]
    pub(crate) title: String,
    /// Instructions to the agent about the attached stores
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) instructions: String,
}

#[derive(Args, Debug)]
pub(crate) struct SessionListArguments {
    /// Include archived sessions
    #[arg(long, short)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SessionIdArguments {
    /// Session id
    pub(crate) session: SessionId,
}

#[derive(Args, Debug)]
pub(crate) struct SessionShowArguments {
    /// Session id
    pub(crate) session: SessionId,
    /// Only count the changed lines
    #[arg(long)]
    pub(crate) stat: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EventsArguments {
    /// Session id
    pub(crate) session: SessionId,
    /// Only events with a text that holds these characters, in whatever case
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    /// Only events of this type (repeatable)
    #[arg(long = "type", value_name = "TYPE", value_parser = EventType::new)]
    pub(crate) kinds: Vec<EventType>,
    /// Only events after the one with this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
    /// Keep printing events as they are recorded, until the session ends
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PromptArguments {
    /// Describe the stores attached to this session, as mounted
    #[arg(long, value_name = "ID", conflicts_with = "access")]
    pub(crate) session: Option<SessionId>,
    /// Directory below which the stores are mounted [default: /mnt/memory]
    /// [env: `QUIPU_MOUNT_ROOT`]
    #[arg(long, value_name = "DIR", requires = "session", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// Access of the agent: `read_write` or `read_only`
    #[arg(long, default_value = "read_write")]
    pub(crate) access: Access,
    /// Restrict what is remembered to this topic
    #[arg(long, value_name = "TEXT")]
    pub(crate) topic: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key for all stores, or for those of `--store` (repeatable); it is shown once
    #[command(after_help = examples::KEY_CREATE)]
    Create(KeyCreateArguments),
    /// List keys: what each is for, what it was derived from, and when it was last used
    List,
    /// Revoke a key, and everything that was derived from it, immediately
    Revoke(KeyRevokeArguments),
}

#[derive(Args, Debug)]
pub(crate) struct KeyCreateArguments {
    /// Name of the key
    #[arg(long, default_value = "key")]
    pub(crate) name: String,
    /// Role of the key: `admin`, `read_write` or `read_only`
    #[arg(long)]
    pub(crate) role: Role,
    /// When the key expires: `30d` or `2027-01-31` [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
    /// Let its holder have requests forwarded to the upstream of `[upstream]`
    #[arg(long)]
    pub(crate) forward: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KeyRevokeArguments {
    /// Key, by id or name
    pub(crate) key: String,
}

#[derive(Args, Debug)]
pub(crate) struct UiArguments {
    /// URL of the server [default: where the settings have `quipu serve` listen]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// What may be done with the link: `admin`, `read_write` or `read_only`
    #[arg(long, default_value = "admin")]
    pub(crate) role: Role,
    /// Print the link instead of opening it [default: if there is no terminal or no browser]
    #[arg(long)]
    pub(crate) print: bool,
}
