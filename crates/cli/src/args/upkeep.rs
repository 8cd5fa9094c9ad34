//! The arguments of `check`, `prune`, `backup`, `move`, `completions` and `man`.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::Shell;
use quipu_core::model::ReceiptId;

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Rebuild derived data first, even if it is correct
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Say instead whether a redaction is complete, also in what the database keeps beside its rows
    #[arg(long, value_name = "RECEIPT", conflicts_with = "rebuild")]
    pub(crate) erased: Option<ReceiptId>,
}

#[derive(Args, Debug)]
pub(crate) struct PruneArguments {
    /// Trust the clock even if nothing was written for more than a day
    #[arg(long)]
    pub(crate) trust_clock: bool,
    /// Return freed space to the file system; writers wait meanwhile
    #[arg(long)]
    pub(crate) compact: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BackupArguments {
    /// Backup file; `backup` never overwrites one
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

#[derive(Args)]
pub(crate) struct MoveArguments {
    /// Where the data is: a directory or a URL [default: `--database` or `--data`]
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) from: Option<String>,
    /// Where it goes: a directory or a URL, which must be empty or hold what an earlier run has moved
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) to: String,
    /// Show what would be moved; nothing is changed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// URLs may have passwords, so they are not shown.
impl fmt::Debug for MoveArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MoveArguments").field("dry_run", &self.dry_run).finish_non_exhaustive()
    }
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// Shell
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// Directory for the manual pages of all commands
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
}
