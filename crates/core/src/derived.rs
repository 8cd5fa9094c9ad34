//! What is derived from memories and kept elsewhere.

use std::fmt;

use crate::Error;
use crate::backend::{Erasure, PendingErasure};

/// Keeps something that was made of texts, such as a search index, in files of its own.
///
/// The engine does not know what it is. It only sees to it that redacted text does not stay in it.
pub trait Derived: fmt::Debug + Send + Sync {
    /// Takes everything out of every file that was made of texts which are not there any more, of these
    /// memories and stores, and says what it looked at.
    ///
    /// When this returns `Ok`, nothing that was made of an earlier state can come back, whatever other
    /// processes are doing.
    fn erase(&self, pending: &[PendingErasure]) -> Result<Erasure, Error>;
}
