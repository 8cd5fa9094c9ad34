//! The options that every command takes.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Options that every command takes.
#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Data directory [default: the platform's data directory] [env: `QUIPU_DATA`]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
    /// Database of a PostgreSQL server that has the data instead: `postgres://USER@HOST/DATABASE`; the
    /// password belongs in a file [env: `QUIPU_DATABASE`]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Settings file [default: `quipu.toml` in the data directory] [env: `QUIPU_CONFIG`]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Store, by name or id [default: the one set by `quipu store default`, or the only one]
    /// [env: `QUIPU_STORE`]
    #[arg(long = "store", short, global = true, value_name = "STORE")]
    pub(crate) stores: Vec<String>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The URL of the database may have a password, so it is not shown.
impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global").field("data", &self.data).finish_non_exhaustive()
    }
}
