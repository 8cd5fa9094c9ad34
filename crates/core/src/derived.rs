//! What is stored beside the rows, in files of other parts of the program.

use std::fmt;

use crate::Error;
use crate::backend::{Erasure, PendingErasure};

/// Something that was computed from texts, such as a search index, in files of its own.
///
/// The engine does not know what it is. It only makes sure that redacted text does not stay in it.
pub trait Derived: fmt::Debug + Send + Sync {
    /// Removes from every file what was computed from texts of these memories and stores that no longer
    /// exist, and reports what it scanned.
    ///
    /// When this returns `Ok`, nothing that was computed from an earlier state can come back, whatever
    /// other processes are doing.
    fn erase(&self, pending: &[PendingErasure]) -> Result<Erasure, Error>;
}

/// What a part of the program writes down in files of its own, such as a log of what happens around the
/// rows. An entry is one thing that happened.
///
/// Entries belong to no store and have no author, so only a redaction by content can be about them.
pub trait Traces: fmt::Debug + Send + Sync {
    /// Keeps all processes from moving entries from one place to another, into rows among others, until the
    /// guard is dropped. So what is not found in one place is not on its way to another.
    fn hold(&self) -> Result<Box<dyn HeldTraces>, Error>;

    /// Removes every copy of what is in rows, with its bytes.
    ///
    /// When this returns `Ok`, no copy of an earlier state can come back, whatever other processes are doing.
    fn erase_copies(&self) -> Result<(), Error>;
}

/// Traces that do not move.
pub trait HeldTraces {
    /// Returns how many entries hold a text that `is_match` accepts.
    fn count(&self, is_match: &dyn Fn(&str) -> bool) -> Result<usize, Error>;

    /// Removes the entries that hold a text that `is_match` accepts, and their bytes, from every file, and
    /// reports the files that it scanned.
    fn forget(&self, is_match: &dyn Fn(&str) -> bool) -> Result<Erasure, Error>;
}
