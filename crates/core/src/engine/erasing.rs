//! Erasing: what was removed from the rows leaves every file, and the receipts get their proof.

use std::thread::{self, ScopedJoinHandle};

use crate::backend::{Erasure, PendingErasure, Reader};
use crate::model::{Proof, Receipt};
use crate::{Error, ErrorKind};

use super::Engine;

impl Engine {
    /// Erases removed text from every file.
    pub(super) fn erase(&self) -> Result<Erasure, Error> {
        self.try_to_erase().map_err(incomplete)
    }

    fn try_to_erase(&self) -> Result<Erasure, Error> {
        // On one snapshot: a redaction that is committed later has its own removals, which this erasure
        // may miss, so its receipt must not be taken for proven.
        let (pending, unproven) = self.read(pending)?;
        if pending.is_empty() {
            return Ok(Erasure::default());
        }
        // Both scan every page of a file, so they run in parallel.
        let (erased, derived) = thread::scope(|scope| {
            let derived = self.derived.as_ref();
            let derived = derived.map(|derived| scope.spawn(|| derived.erase(&pending)));
            (self.backend.erase(), derived.map(ScopedJoinHandle::join))
        });
        let mut erasure = erased?;
        if let Some(traces) = &self.traces {
            traces.erase_copies()?;
        }
        if let Some(derived) = derived {
            let derived = derived.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            erasure.extend(derived);
        }
        self.prove(&unproven, &erasure)?;
        // Only now, when both have succeeded: after a crash before this, everything is still pending.
        // Noting each part on its own would need a state per part; scanning twice is simpler.
        self.backend.note_erased(&pending)?;
        Ok(erasure)
    }

    /// Adds the proof to receipts of redactions that are now erased.
    fn prove(&self, unproven: &[Receipt], erasure: &Erasure) -> Result<(), Error> {
        if unproven.is_empty() {
            return Ok(());
        }
        self.remove(|ledger| {
            let at = ledger.moment()?;
            let open = ledger.reader().unproven_receipts()?;
            let is_covered = |receipt: &&Receipt| unproven.iter().any(|it| it.id == receipt.id);
            for receipt in open.iter().filter(is_covered) {
                let proof = Proof { at, scanned: erasure.scanned.clone(), hits_left: None };
                let mut receipt = Receipt { proof: Some(proof), ..receipt.clone() };
                receipt.unreachable.extend(erasure.unreachable.iter().cloned());
                ledger.writer.put_receipt(&receipt)?;
            }
            Ok(())
        })
    }
}

/// Returns the error for a redaction that is in the rows and maybe not yet in every file.
pub(super) fn incomplete(error: Error) -> Error {
    Error::new(
        ErrorKind::EraseIncomplete,
        format!("the text is removed, but remains of it may be on disk: {error}"),
    )
    .with_hint("run `quipu prune` to finish the erasing")
    .with_source(error)
}

fn pending(reader: &dyn Reader) -> Result<(Vec<PendingErasure>, Vec<Receipt>), Error> {
    Ok((reader.pending_erasures()?, reader.unproven_receipts()?))
}
