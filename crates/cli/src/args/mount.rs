//! The arguments of `mount` and `unmount`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use quipu_core::model::SessionId;

use super::PastArguments;

#[derive(Args, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "mounts exist on Linux"))]
pub(crate) struct MountArguments {
    /// Mount the stores attached to this session instead of creating one
    #[arg(long, value_name = "ID", conflicts_with_all = ["stores", "at"])]
    pub(crate) session: Option<SessionId>,
    #[command(flatten)]
    pub(crate) past: PastArguments,
    /// Directory below which each store gets its own directory [default: /mnt/memory]
    /// [env: `QUIPU_MOUNT_ROOT`]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// Give all users of this host access to the mounts
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Move to the background once everything is mounted
    #[arg(long)]
    pub(crate) detach: bool,
    /// Title of the session in the history, such as the name of your agent
    #[arg(long, default_value = "mount", value_name = "TEXT", conflicts_with = "session")]
    pub(crate) title: String,
    /// Run as the process that `--detach` starts
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub(crate) detached: bool,
}

#[derive(Args, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "mounts exist on Linux"))]
pub(crate) struct UnmountArguments {
    /// Directory below which the stores are mounted [default: /mnt/memory]
    /// [env: `QUIPU_MOUNT_ROOT`]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
}
