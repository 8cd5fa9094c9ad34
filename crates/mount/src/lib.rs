//! Memories as files.
//!
//! [`Tree`] is a store as a tree of files; it knows no kernel and is tested without one. [`Mounts`]
//! puts trees where programs find them. Both exist on Linux only. [`sync`] keeps a folder and a store
//! equal. All of them know by [`names`] which files are not meant to stay.

#[cfg(target_os = "linux")]
mod linux {
    pub use crate::error::TreeError;
    pub use crate::mount::{MountError, Mounts, StoreMount};
    pub use crate::mount_table::{clear_stale, mounted_below, unmount_below};
    pub use crate::nodes::{Ino, ProcessId, ROOT};
    pub use crate::ownership::Sharing;
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
mod process;
#[cfg(target_os = "linux")]
mod root;
pub mod sync;
#[cfg(target_os = "linux")]
mod tree;

#[cfg(target_os = "linux")]
pub use linux::*;
pub use names::{Making, NameRules};
