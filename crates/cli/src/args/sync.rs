//! The command line of `quipu sync`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Debug)]
pub(crate) struct SyncArguments {
    /// The folder, which must exist
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Go on until interrupted: sync again whenever the folder or the store changes
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) watch: bool,
    /// Only tell what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on although most files are gone from one side, and delete them from the other
    #[arg(long)]
    pub(crate) allow_mass_deletion: bool,
}
