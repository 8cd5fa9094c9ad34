//! The arguments of `revert`, and what `restore --at` and `log` share with it.

use clap::Args;
use quipu_core::model::{ExpectedDigest, SessionId};

#[derive(Args, Debug)]
pub(crate) struct RevertArguments {
    #[command(flatten)]
    pub(crate) author: AuthorArguments,
    /// Only changes since then: `7d`, `yesterday`, `2026-11-15T14:00:00Z`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only changes up to then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only changes of this memory, or of memories in this directory
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Revert in all stores that are not archived
    #[arg(long, conflicts_with = "stores")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
}

/// Whose changes are meant.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct AuthorArguments {
    /// Changes of this session: its id, or (part of) its title
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Changes of this author: an id, or the name of a user, key or session
    #[arg(long, value_name = "ACTOR")]
    pub(crate) actor: Option<String>,
    /// Changes made with this key, by its id or name; those of its sessions count
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// How a plan is carried out.
#[derive(Args, Debug)]
pub(crate) struct PlanArguments {
    /// Show what would be done, and the digest of it, without doing it
    #[arg(long, conflicts_with_all = ["expect", "reason"])]
    pub(crate) dry_run: bool,
    /// Do it only if the plan still has this digest; 8 digits are enough
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect: Option<ExpectedDigest>,
    /// Why; kept with every version
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Who writes.
#[derive(Args, Debug, Default)]
pub(crate) struct WriterArguments {
    /// Write as this session, which must have the store attached [env: `QUIPU_SESSION`]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionId>,
}
