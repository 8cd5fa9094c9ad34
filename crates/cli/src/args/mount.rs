//! What `quipu mount` and `quipu unmount` take.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use quipu_core::model::SessionId;

#[derive(Args, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "mounts exist on Linux"))]
pub(crate) struct MountArguments {
    /// Mount the stores of this session instead of starting one
    #[arg(long, value_name = "ID", conflicts_with = "stores")]
    pub(crate) session: Option<SessionId>,
    /// The directory below which each store gets its own [default: /mnt/memory; also
    /// `QUIPU_MOUNT_ROOT`]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// Let every user of this host use the mounts, not only you
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Go on in the background once everything is mounted
    #[arg(long)]
    pub(crate) detach: bool,
    /// What to call the session in the history, such as the name of your agent
    #[arg(long, default_value = "mount", value_name = "TEXT", conflicts_with = "session")]
    pub(crate) title: String,
    /// Run as the process that `--detach` starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
}

#[derive(Args, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "mounts exist on Linux"))]
pub(crate) struct UnmountArguments {
    /// The directory below which the stores are mounted [default: /mnt/memory; also
    /// `QUIPU_MOUNT_ROOT`]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
}
