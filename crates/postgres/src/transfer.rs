//! Rows as they are, for a move to or from another backend; [`mod@layout`] lists them.

mod export;
mod import;
#[macro_use]
mod layout;

use std::sync::Arc;
use std::time::Duration;

use quipu_core::Error;
use quipu_core::transfer::{ExportWork, ImportWork, Transfer};

use export::Exporter;
use import::Importer;

use crate::PostgresBackend;
use crate::error::Failure;
use crate::transaction::{Scope, Shared, Terms, Transaction};

/// How long the snapshot of a move may be idle while the other side is busy, which may be for as long as it
/// takes to read all of it.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_hours(24);

impl Transfer for PostgresBackend {
    fn export(&self, work: &mut ExportWork<'_>) -> Result<(), Error> {
        let schema = self.settings.quoted_schema()?;
        let times = (self.settings.statement_timeout, self.settings.lock_timeout);
        let terms = Terms::new(&schema, times).with_idle_reads(SNAPSHOT_TIMEOUT);
        let (seen, rewriting) = (Arc::clone(&self.shared.seen), Arc::clone(&self.shared.rewriting));
        let shared = Arc::new(Shared { terms, seen, rewriting });
        let client = self.pool.get().map_err(Failure::into_error)?;
        let transaction = Transaction::read(client, shared);
        let worked = work(&Exporter::new(&transaction));
        if transaction.failure().is_none() {
            transaction.end();
        }
        worked
    }

    fn import(&self, work: &mut ImportWork<'_>) -> Result<(), Error> {
        self.writing(Scope::Exclusive, &mut |transaction| {
            work(&mut Importer(Exporter::new(transaction)))
        })
    }
}
