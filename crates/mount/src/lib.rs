//! Memories as files.
//!
//! [`Tree`] is a store as a tree of files; it knows no kernel and is tested without one. [`Mounts`]
//! puts trees where programs find them. Both exist on Linux only. [`sync`] keeps a folder and a store
//! equal. All of them know by [`names`] which files are not meant to stay.

#[cfg(target_os = "linux")]
mod linux {
    pub use crate::error::TreeError;
    pub use crate::look::Sharing;
    pub use crate::mount::{MountError, Mounts, StoreMount};
    pub use crate::nodes::{Ino, Maker, ROOT};
    pub use crate::places::{clear_stale, mounted_below, unmount_below};
    pub use crate::tree::{
        Attributes, DirectoryEntry, Kind, NewFile, Notice, OpenMode, Opened, Overwrite, Position,
        Start, Tree, TreeSettings, Usage, Writing,
    };
}

#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod fuse;
#[cfg(target_os = "linux")]
mod look;
#[cfg(target_os = "linux")]
mod mount;
pub mod names;
#[cfg(target_os = "linux")]
mod nodes;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod points;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod root;
#[cfg(target_os = "linux")]
mod storers;
pub mod sync;
#[cfg(target_os = "linux")]
mod tree;

#[cfg(target_os = "linux")]
pub use linux::*;
pub use names::{Making, NameRules};
