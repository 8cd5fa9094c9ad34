//! Memories as files.

pub mod sync;
