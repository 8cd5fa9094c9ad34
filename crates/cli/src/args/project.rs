//! The arguments of `init-project`.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct InitProjectArguments {
    /// Store for the project, created if missing [default: the one of `--store`, or `memories`]
    #[arg(value_name = "STORE")]
    pub(crate) name: Option<String>,
    /// Feature for the checklist (repeatable)
    #[arg(long = "feature", value_name = "TEXT")]
    pub(crate) features: Vec<String>,
    /// Script that starts the project's environment
    #[arg(long, default_value = "./init.sh", value_name = "PATH")]
    pub(crate) script: String,
    /// Copy the memories of this store instead of the built-in ones
    #[arg(long, value_name = "STORE", conflicts_with_all = ["features", "script"])]
    pub(crate) template: Option<String>,
}
