//! The arguments of `log`, `show`, `diff`, `restore`, `redact` and `receipts`.

use clap::Args;
use quipu_core::model::{MemoryId, Operation, ReceiptId, VersionId};

use super::{PastArguments, PlanArguments, WriterArguments};

#[derive(Args, Debug)]
pub(crate) struct LogArguments {
    /// Only this memory, by path or id, or this directory; it may be deleted
    #[arg(value_name = "PATH")]
    pub(crate) memory: Option<String>,
    /// Maximum number of versions [default: all; 50 on a terminal without a pager]
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// Print one line per version
    #[arg(long)]
    pub(crate) oneline: bool,
    /// Only this operation: created, modified or deleted
    #[arg(long, value_name = "KIND")]
    pub(crate) operation: Option<Operation>,
    /// Only changes by this author: an id, the name of a user or key, or part of a session's title
    #[arg(long, value_name = "ACTOR", group = "author")]
    pub(crate) actor: Option<String>,
    /// Only changes of this session: its id, or (part of) its title
    #[arg(long, value_name = "SESSION", group = "author")]
    pub(crate) session: Option<String>,
    /// Only changes made with this key, by its id or name; those of its sessions count
    #[arg(long, value_name = "KEY", group = "author")]
    pub(crate) key: Option<String>,
    /// Only changes by this user of the command line
    #[arg(long, value_name = "USER", group = "author")]
    pub(crate) user: Option<String>,
    /// Only changes through this MCP host or program, by (part of) its name
    #[arg(long, value_name = "HOST", group = "author")]
    pub(crate) host: Option<String>,
    /// Only changes since then: `7d`, `yesterday`, `2026-11-15`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only changes up to then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only versions whose text contains this, ignoring case; searches old versions too
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
    /// Show the changes of all stores
    #[arg(long)]
    pub(crate) all: bool,
    /// Show what a mount refused to store, or stored over a concurrent change, instead
    #[arg(long, conflicts_with_all = ["memory", "oneline", "operation", "author", "since", "until", "grep"])]
    pub(crate) refused: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// Version id
    pub(crate) version: VersionId,
    /// Print only the version's text
    #[arg(long)]
    pub(crate) text: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// Version to compare with its predecessor, a path for its last change, or a store as `NAME`,
    /// `NAME@MOMENT` or `@MOMENT`
    #[arg(required_unless_present = "at", value_name = "OLD")]
    pub(crate) old: Option<String>,
    /// Version or store to compare the first one with [default: the same store as it is now]
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<String>,
    /// Compare the memory at OLD, or the whole store, as it was then with how it is now
    #[arg(long, value_name = "MOMENT", conflicts_with = "new")]
    pub(crate) at: Option<String>,
    /// Only count the changed lines
    #[arg(long)]
    pub(crate) stat: bool,
    /// Lines of context around each change
    #[arg(long, short = 'U', value_name = "COUNT", default_value_t = 3)]
    pub(crate) unified: usize,
}

#[derive(Args, Debug)]
pub(crate) struct BlameArguments {
    /// Memory, by path or id
    #[arg(value_name = "PATH")]
    pub(crate) memory: String,
    #[command(flatten)]
    pub(crate) past: PastArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArguments {
    /// Version to restore, or the path of a memory whose last change to undo; with `--at`, the memory or
    /// directory to restore [default with `--at`: the whole store]
    #[arg(required_unless_present = "at", value_name = "PATH")]
    pub(crate) target: Option<String>,
    /// Move the restored memory to this path
    #[arg(long, value_name = "PATH", conflicts_with = "at")]
    pub(crate) to: Option<String>,
    /// Restore everything at PATH as it was then: `yesterday 14:00`, `2h ago`, `#12345` or a version
    #[arg(long, value_name = "MOMENT")]
    pub(crate) at: Option<String>,
    /// Leave as it is what retention has removed, instead of refusing
    #[arg(long, requires = "at")]
    pub(crate) incomplete: bool,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    #[command(flatten)]
    pub(crate) writer: WriterArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RedactArguments {
    /// Versions to erase; one that is still current must be overwritten or deleted first
    #[arg(value_name = "VERSION")]
    pub(crate) versions: Vec<VersionId>,
    #[command(flatten)]
    pub(crate) selection: RedactSelection,
    /// Replace the match in live memories too; without a text to match, delete them
    #[arg(long)]
    pub(crate) and_heads: bool,
    /// Print what would be erased and the digest of that plan, and change nothing
    #[arg(long, conflicts_with = "expect")]
    pub(crate) dry_run: bool,
    /// Refuse if the plan is not the one with this digest, of which 8 digits are enough
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect: Option<String>,
    /// Why, for the receipt; it must not repeat what is erased
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Skip the confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Conditions on versions; all that are given must hold.
#[derive(Args, Debug)]
pub(crate) struct RedactSelection {
    /// Versions that contain exactly this; `-` reads it from standard input
    #[arg(long, value_name = "TEXT", conflicts_with = "regex")]
    pub(crate) matching: Option<String>,
    /// Versions that match this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(crate) regex: Option<String>,
    /// Versions at this path or below it
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Versions of this memory, by id
    #[arg(long, value_name = "MEMORY")]
    pub(crate) memory: Option<MemoryId>,
    /// Versions by this session: its id, or part of its title
    #[arg(long, value_name = "SESSION", conflicts_with = "actor")]
    pub(crate) session: Option<String>,
    /// Versions by this author: an id, the name of a user or key, or part of a session's title
    #[arg(long, value_name = "ACTOR")]
    pub(crate) actor: Option<String>,
    /// Only versions made since then: `7d`, `yesterday`, `2026-11-15`
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only versions made up to then
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Search all stores and the sessions, not only the store of `--store` (repeatable)
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReceiptsArguments {
    /// Only this receipt, in full
    #[arg(value_name = "RECEIPT")]
    pub(crate) receipt: Option<ReceiptId>,
    /// Maximum number of receipts
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 50)]
    pub(crate) limit: usize,
}
