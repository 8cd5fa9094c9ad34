//! A transaction that a group of writes shares: its members take turns, and one that fails is taken back.

use std::collections::HashSet;

use quipu_core::Error;
use quipu_core::model::StoreId;
use tokio_postgres::Row;

use super::{Counter, Transaction};
use crate::buffer::Mark;
use crate::overlay::Overlay;
use crate::partition::Partition;
use crate::values::Param;

/// What is restored when a member of a group fails.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) mark: Mark,
    pub(super) counter: Option<Counter>,
    pub(super) has_savepoint: bool,
}

impl Transaction {
    /// Begins a transaction for a group: runs statements that lock its stores and read ahead, in one round
    /// trip.
    pub(crate) fn begin_group(
        &self,
        stores: &[StoreId],
        partitions: &[Partition],
        statements: &[(String, Vec<Param<'_>>)],
    ) -> Result<Vec<Vec<Row>>, Error> {
        if let Some(writing) = &self.writing {
            writing.announced.set(stores.first().copied());
            writing.locked.borrow_mut().extend(stores);
        }
        for partition in partitions {
            self.enter_partition(*partition)?;
        }
        let before = self.before();
        let statements: Vec<_> =
            statements.iter().map(|(sql, params)| (sql.as_str(), params.clone())).collect();
        let read = self.client.pipeline(self.deadline(), before.as_deref(), &statements, None);
        read.map_err(|failure| self.failed(failure))
    }

    /// Notes that some stores of the group are not locked.
    pub(crate) fn leave_out(&self, stores: &HashSet<StoreId>) {
        if let Some(writing) = &self.writing {
            writing.locked.borrow_mut().retain(|store| !stores.contains(store));
        }
    }

    /// Enters what was read ahead.
    pub(crate) fn learn(&self, enter: impl FnOnce(&mut Overlay)) {
        enter(&mut self.overlay.borrow_mut());
    }

    /// Begins the work of the next member of a group.
    pub(crate) fn begin_member(&self) {
        if let Some(writing) = &self.writing {
            let mark = self.buffer.borrow().mark();
            let counter = writing.counter.get();
            writing.member.set(Some(Member { mark, counter, has_savepoint: false }));
            writing.larger_scope.set(None);
        }
    }

    /// Takes back what the member has changed.
    pub(crate) fn take_back_member(&self) -> Result<(), Error> {
        let Some(writing) = &self.writing else { return Ok(()) };
        let Some(member) = writing.member.take() else { return Ok(()) };
        let has_changed = self.buffer.borrow().mark() != member.mark;
        self.buffer.borrow_mut().truncate(member.mark);
        if has_changed || member.has_savepoint {
            self.overlay.borrow_mut().forget_all();
        }
        if member.has_savepoint {
            let taken = self.client.batch(self.deadline(), "ROLLBACK TO SAVEPOINT member");
            taken.map_err(|failure| self.failed(failure))?;
        }
        // A counter that was taken after the savepoint is free again, and one that was taken before it has
        // the value of then.
        writing.counter.set(member.counter);
        Ok(())
    }

    /// Returns whether earlier members of the group have changed something.
    pub(crate) fn has_uncommitted(&self) -> bool {
        self.has_changed() || !self.buffer.borrow().is_empty()
    }

    /// Makes it possible to take back what a member of a group has sent.
    pub(super) fn set_savepoint(&self) -> Result<(), Error> {
        let Some(writing) = &self.writing else { return Ok(()) };
        match writing.member.get() {
            Some(member) if !member.has_savepoint => {
                writing.member.set(Some(Member { has_savepoint: true, ..member }));
                let set = self.client.batch(self.deadline(), "SAVEPOINT member");
                set.map_err(|failure| self.failed(failure))
            }
            Some(_) | None => Ok(()),
        }
    }
}
