//! Memories as files.
//!
//! [`Tree`] is the file system of a store as an ordinary type: it does not know the kernel and is
//! tested without one. [`Mounts`] mounts trees with FUSE. Both exist on Linux only. [`sync`] keeps a
//! folder and a store in step. [`names`] has the rules for scratch and backup files that all share.

#[cfg(target_os = "linux")]
mod linux {
    pub use crate::error::TreeError;
    pub use crate::mount::{MountError, Mounts, StoreMount};
    pub use crate::mount_table::{clear_stale, mounted_below, unmount_below};
    pub use crate::nodes::{Ino, ProcessId, ROOT};
    pub use crate::ownership::Sharing;
    pub use crate::pasts::{PASTS_MAX, Pasts};
    pub use crate::tree::{
        Attributes, DirectoryEntry, Invalidation, Kind, NewFile, OpenMode, Opened, Overwrite,
        Position, Start, Tree, TreeSettings, Usage, Writing,
    };
}

#[cfg(target_os = "linux")]
mod blocking;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod fuse;
#[cfg(target_os = "linux")]
mod mount;
#[cfg(target_os = "linux")]
mod mount_points;
#[cfg(target_os = "linux")]
mod mount_table;
pub mod names;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
mod ownership;
#[cfg(target_os = "linux")]
mod pasts;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod root;
pub mod sync;
#[cfg(target_os = "linux")]
mod tree;

#[cfg(target_os = "linux")]
pub use linux::*;
pub use names::{Making, NameRules};
