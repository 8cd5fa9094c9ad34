//! `quipu log`, `show`, `diff`, `restore` and `redact`.

use clap::Args;
use quipu_core::model::{Operation, VersionId};

#[derive(Args, Debug)]
pub(crate) struct LogArguments {
    /// Only this memory, by path or id; a deleted one's path works too
    #[arg(value_name = "PATH")]
    pub(crate) memory: Option<String>,
    /// How many versions at most [default: all; 50 on a terminal that has no pager]
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// One line for each version
    #[arg(long)]
    pub(crate) oneline: bool,
    /// Only this kind of change: created, modified or deleted
    #[arg(long, value_name = "KIND")]
    pub(crate) operation: Option<Operation>,
    /// Only changes by this author: an id, the name of a user or a key, or words of a session's title
    #[arg(long, value_name = "ACTOR")]
    pub(crate) actor: Option<String>,
    /// Only changes since then: `7d`, `yesterday`, `2026-11-15`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only changes until then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only versions whose text holds this, old ones too; upper and lower case are the same
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    /// The changes of all stores
    #[arg(long)]
    pub(crate) all: bool,
    /// Show texts that a mount did not store, or stored in the place of another text, instead
    #[arg(long, conflicts_with_all = ["memory", "oneline", "operation", "actor", "since", "until", "grep"])]
    pub(crate) refused: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// The version
    pub(crate) version: VersionId,
    /// Print only the version's text
    #[arg(long)]
    pub(crate) text: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// A version to compare with the one before it, or a path for its last change
    pub(crate) old: String,
    /// A second version, to compare the two
    pub(crate) new: Option<VersionId>,
    /// Only count changed lines
    #[arg(long)]
    pub(crate) stat: bool,
    /// How many unchanged lines to show around each change
    #[arg(long, short = 'U', value_name = "COUNT", default_value_t = 3)]
    pub(crate) unified: usize,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArguments {
    /// A version to write again, or the path of a memory to undo its last change
    pub(crate) target: String,
    /// Restore to this path
    #[arg(long, value_name = "PATH")]
    pub(crate) to: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RedactArguments {
    /// The versions; what a memory holds now must be overwritten or deleted first
    #[arg(required = true, value_name = "VERSION")]
    pub(crate) versions: Vec<VersionId>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}
