//! What a transaction locks, and when it has to begin again with a larger scope.

use quipu_core::backend::{Change, Event, Stamp};
use quipu_core::model::{Id as _, SessionId, StoreId, Timestamp};
use quipu_core::{Error, ErrorKind};

use super::{Counter, Scope, Transaction};
use crate::error::{self, Consequence, damaged};
use crate::partition::{self, Partition};
use crate::values::{Columns as _, List, bits, params};

impl Transaction {
    /// Locks what a write that has not announced a store needs at least.
    pub(super) fn enter(&self) -> Result<(), Error> {
        let Some(writing) = &self.writing else { return Ok(()) };
        let has_announced = writing.announced.get().is_some() || writing.session.get().is_some();
        if has_announced || writing.has_locked_administration.get() {
            return Ok(());
        }
        writing.has_locked_administration.set(true);
        self.run("SELECT id FROM administration FOR UPDATE", &[])?;
        if writing.scope == Scope::Exclusive {
            self.run("LOCK TABLE stores IN EXCLUSIVE MODE", &[])?;
        }
        Ok(())
    }

    /// Locks the store that the transaction is about.
    pub(crate) fn announce(&self, store: StoreId) -> Result<(), Error> {
        let Some(writing) = &self.writing else { return Ok(()) };
        if writing.scope == Scope::Store && !writing.has_locked_administration.get() {
            writing.announced.set(writing.announced.get().or(Some(store)));
        }
        self.number(store).map(drop)
    }

    /// Locks several stores, in the order in which everybody does.
    pub(crate) fn lock_stores(&self, stores: &[StoreId]) -> Result<(), Error> {
        self.require_administration()?;
        self.enter()?;
        let Some(writing) = self.writing.as_ref().filter(|it| it.scope != Scope::Exclusive) else {
            return Ok(());
        };
        let ids = List(stores.iter().map(|store| bits(*store)).collect::<Vec<_>>());
        let sql = "SELECT id, num FROM stores WHERE id = ANY ($1) ORDER BY id FOR UPDATE";
        let rows = self.run(sql, params![ids])?;
        self.numbers.borrow_mut().extend(stores.iter().map(|store| (*store, None)));
        for row in &rows {
            self.numbers.borrow_mut().insert(row.id(0)?, Some(row.value(1)?));
        }
        writing.locked.borrow_mut().extend(stores);
        Ok(())
    }

    /// Returns the number of a store for its rows, and of the tables with its text; a write locks the store
    /// first.
    pub(crate) fn place(&self, store: StoreId) -> Result<Option<(i64, u8)>, Error> {
        let Some(num) = self.number(store)? else { return Ok(None) };
        self.place_of(num).map(Some)
    }

    /// Returns the same for the number of a store, which a write has locked.
    pub(crate) fn place_of(&self, num: i64) -> Result<(i64, u8), Error> {
        let partition = Partition::of_store(num);
        self.enter_partition(partition)?;
        Ok((num, partition.number()))
    }

    /// Locks the tables of a partition, with the next statement.
    pub(crate) fn enter_partition(&self, partition: Partition) -> Result<(), Error> {
        if self.partitions.borrow().contains(&partition) {
            return Ok(());
        }
        if self.shared.rewriting.has(partition) {
            self.failure.set(Some(Consequence::Rewritten));
            return Err(error::being_rewritten());
        }
        self.partitions.borrow_mut().insert(partition);
        self.entering.borrow_mut().push(partition);
        Ok(())
    }

    /// Returns the number of a store for its rows; a write locks the store first.
    pub(crate) fn number(&self, store: StoreId) -> Result<Option<i64>, Error> {
        let Some(writing) = &self.writing else { return self.number_unlocked(store) };
        if writing.locked.borrow().contains(&store) {
            return self.number_unlocked(store);
        }
        let has_announced_another =
            writing.announced.get().is_some_and(|announced| announced != store);
        if has_announced_another || writing.session.get().is_some() {
            return Err(self.enlarge(Scope::Administration));
        }
        self.enter()?;
        let sql = match (writing.scope, writing.counter.get()) {
            (Scope::Exclusive, _) => "SELECT num FROM stores WHERE id = $1",
            // Whoever holds the store may be waiting for the counter.
            (_, Some(_)) => "SELECT num FROM stores WHERE id = $1 FOR UPDATE NOWAIT",
            (_, None) => "SELECT num FROM stores WHERE id = $1 FOR UPDATE",
        };
        let locked = self.run(sql, params![bits(store)]);
        let rows = match locked {
            Err(_)
                if self.failure.get() == Some(Consequence::Locked)
                    && writing.counter.get().is_some() =>
            {
                return Err(self.enlarge(Scope::Exclusive));
            }
            locked => locked?,
        };
        let number = rows.first().map(|row| row.value(0)).transpose()?;
        writing.locked.borrow_mut().insert(store);
        self.numbers.borrow_mut().insert(store, number);
        Ok(number)
    }

    fn number_unlocked(&self, store: StoreId) -> Result<Option<i64>, Error> {
        if let Some(known) = self.numbers.borrow().get(&store) {
            return Ok(*known);
        }
        let row = self.query_one("SELECT num FROM stores WHERE id = $1", params![bits(store)])?;
        let number = row.map(|row| row.value(0)).transpose()?;
        self.numbers.borrow_mut().insert(store, number);
        Ok(number)
    }

    /// Remembers the number of a store that was read along with it.
    pub(crate) fn note_number(&self, store: StoreId, number: Option<i64>) {
        self.numbers.borrow_mut().insert(store, number);
    }

    /// Forgets the number of a store whose row comes or goes.
    pub(crate) fn forget_number(&self, store: StoreId) {
        self.numbers.borrow_mut().remove(&store);
    }

    /// Fails unless the transaction may change what is not about one store.
    pub(crate) fn require_administration(&self) -> Result<(), Error> {
        match &self.writing {
            Some(writing)
                if writing.announced.get().is_some() || writing.session.get().is_some() =>
            {
                Err(self.enlarge(Scope::Administration))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Locks the session that the transaction is about, if it has not locked anything else.
    pub(crate) fn announce_session(&self, session: SessionId) -> Result<(), Error> {
        let Some(writing) = &self.writing else { return Ok(()) };
        let has_begun = writing.announced.get().is_some()
            || writing.session.get().is_some()
            || writing.has_locked_administration.get();
        if has_begun || writing.scope != Scope::Store {
            return Ok(());
        }
        writing.session.set(Some(session));
        let sql = "SELECT id FROM sessions WHERE id = $1 FOR UPDATE";
        self.run(sql, params![bits(session)]).map(drop)
    }

    /// Returns the number of the table with the events of a session.
    pub(crate) fn session_part(&self, session: SessionId) -> Result<u8, Error> {
        let partition = Partition::of_session(session);
        self.enter_partition(partition)?;
        Ok(partition.number())
    }

    /// Locks the tables with the events of all sessions.
    pub(crate) fn enter_all_sessions(&self) -> Result<(), Error> {
        (0..partition::COUNT).try_for_each(|part| self.enter_partition(Partition::Sessions(part)))
    }

    /// Fails unless the transaction may change the events of a session.
    pub(crate) fn require_session(&self, session: SessionId) -> Result<(), Error> {
        match &self.writing {
            Some(writing) if writing.session.get() == Some(session) => Ok(()),
            Some(_) | None => {
                self.require_administration()?;
                let sql = "SELECT id FROM sessions WHERE id = $1 FOR UPDATE";
                self.query(sql, params![bits(session)]).map(drop)
            }
        }
    }

    /// Fails unless the transaction may look at the rows of all stores.
    pub(crate) fn require_exclusive(&self) -> Result<(), Error> {
        match &self.writing {
            Some(writing) if writing.scope != Scope::Exclusive => {
                Err(self.enlarge(Scope::Exclusive))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Fails the run, which is then repeated with a larger scope. That is recorded apart from the error,
    /// because the work may swallow the error and go on.
    fn enlarge(&self, scope: Scope) -> Error {
        if let Some(writing) = &self.writing {
            writing.larger_scope.set(writing.larger_scope.get().max(Some(scope)));
        }
        Error::new(ErrorKind::StorageBusy, "the transaction has to be repeated")
    }

    /// Takes the counter until the end of the transaction.
    pub(crate) fn take_counter(&self) -> Result<Counter, Error> {
        let Some(writing) = &self.writing else { return Err(damaged()) };
        if let Some(counter) = writing.counter.get() {
            return Ok(counter);
        }
        let sql = "SELECT sequence, at, generation, first FROM counter FOR UPDATE";
        self.enter()?;
        let rows = self.run(sql, &[])?;
        let counter = Counter::of(rows.first().ok_or_else(damaged)?)?;
        let counter = match self.shared.seen.next_generation(counter) {
            Some(next) => {
                writing.has_changed.set(true);
                self.buffer.borrow_mut().add_change(&Change {
                    sequence: next.sequence,
                    transaction: next.sequence,
                    at: next.at,
                    store: StoreId::from_bits(0),
                    event: Event::Restarted,
                });
                next
            }
            None => counter,
        };
        writing.counter.set(Some(counter));
        Ok(counter)
    }

    pub(crate) fn next_stamp(&self, now: Timestamp) -> Result<Stamp, Error> {
        let Counter { sequence, at, .. } = self.take_counter()?;
        Ok(Stamp::after((sequence.0 > 0).then_some((sequence, at)), now))
    }
}
