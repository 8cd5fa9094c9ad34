//! What is derived from memories and stored elsewhere.

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
