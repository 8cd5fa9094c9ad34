//! Waiting for a write lock that somebody does not give back.
//!
//! A process can be stopped while it holds the write lock, and every write then waits until its
//! deadline. Waits in parallel are bounded, but the kernel serializes removals, creations and renames
//! in one directory: ten of them, each waiting until its own deadline, took ten timeouts. So the
//! first wait that ends without the lock notes which turn of the lock it waited for, and while that
//! turn lasts, further writes fail at once. The lock's count distinguishes one long turn from many
//! short ones, so a storage that is merely busy is not mistaken for a stuck one, and the first write
//! after the turn ends is accepted. Failing for a fixed time after a timeout is the tempting way; it
//! would refuse writes that could succeed.

use std::sync::{Mutex, PoisonError};

use quipu_core::backend::Purpose;
use quipu_core::model::Access;
use quipu_core::{Error, ErrorKind};

use super::Tree;

/// The turn of the write lock that a write has waited for in vain, and the error that it got.
#[derive(Debug, Default)]
pub(super) struct StuckTurn(Mutex<Option<(u64, Error)>>);

impl Tree {
    /// Runs a durable write, unless an earlier one has waited in vain for the turn that still lasts.
    pub(super) fn write_unless_stuck<T>(
        &self,
        write: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(error) = self.stuck() {
            return Err(error);
        }
        let written = write(self);
        if let Err(error) = &written
            && *error.kind() == ErrorKind::StorageBusy
        {
            let turn = self.turn_held();
            *self.stuck.0.lock().unwrap_or_else(PoisonError::into_inner) =
                turn.map(|turn| (turn, error.clone()));
        }
        written
    }

    /// Waits until the storage accepts writes, or is known not to. Must be called without the tree's
    /// lock.
    ///
    /// Calls that write with the tree's lock held wait here first. Otherwise they would wait for the
    /// write lock of another process with the tree locked, and every read with them.
    pub(super) fn wait_for_storage(&self) {
        if self.settings.access == Access::ReadWrite {
            let nothing =
                |tree: &Self| tree.engine.backend().write(Purpose::Change, &mut |_| Ok(()));
            // The write that follows meets the same failure, at once, and reports it.
            self.write_unless_stuck(nothing).unwrap_or_default();
        }
    }

    /// Like [`Tree::wait_for_storage`], for calls that write with the lock held only if a memory is
    /// parked.
    pub(crate) fn wait_for_storage_if_parked(&self) {
        if self.has_parked() {
            self.wait_for_storage();
        }
    }

    /// Returns the error for writes while the turn lasts that was waited for in vain.
    fn stuck(&self) -> Option<Error> {
        let mut stuck = self.stuck.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (turn, error) = stuck.clone()?;
        if self.turn_held() == Some(turn) {
            return Some(error);
        }
        *stuck = None;
        None
    }

    /// Returns which turn of the write lock lasts, if any does.
    fn turn_held(&self) -> Option<u64> {
        // A storage that cannot tell is asked for the lock itself.
        Some(self.engine.condition().ok()?.lock?.turn)
    }
}
