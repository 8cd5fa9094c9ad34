//! The arguments of `check`, `backup`, `completions` and `man`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::Shell;

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Compute derived rows again, whether or not they are wrong
    #[arg(long)]
    pub(crate) rebuild: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PruneArguments {
    /// Prune although nothing was written for more than a day, because the clock is right
    #[arg(long)]
    pub(crate) trust_clock: bool,
    /// Give the room of removed rows back to the disk; writers wait meanwhile
    #[arg(long)]
    pub(crate) compact: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BackupArguments {
    /// The backup; a new one must not exist yet
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// The directory for the manual pages of all commands
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
}
