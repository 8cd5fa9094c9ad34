//! The arguments of `check`, `prune`, `backup`, `completions` and `man`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::Shell;

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Rebuild derived data first, even if it is correct
    #[arg(long)]
    pub(crate) rebuild: bool,
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
