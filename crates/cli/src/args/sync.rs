//! The arguments of `sync`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Debug)]
pub(crate) struct SyncArguments {
    /// Folder, which must exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Keep running: sync again whenever the folder or the store changes
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) watch: bool,
    /// Print what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Proceed even if most files are missing on one side, and delete them on the other
    #[arg(long)]
    pub(crate) allow_mass_deletion: bool,
}
