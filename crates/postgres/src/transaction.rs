//! Transactions: when they begin, what they lock, and how they end.
//!
//! A read runs on one snapshot. A write runs at `READ COMMITTED` and locks before it reads, so that each of
//! its statements sees what the holders of the lock before it have committed:
//!
//! - A write that begins by announcing a store ([`Scope::Store`]) locks the row of that store. Writes to
//!   different stores overlap until they take the counter.
//! - Every other write ([`Scope::Administration`]) locks the one row of `administration`, and the row of
//!   each store that it touches.
//! - A write that looks at the rows of all stores, or that needs a store that somebody holds after it has
//!   taken the counter ([`Scope::Exclusive`]), locks the table of stores, so nobody can hold one.
//!
//! A transaction that finds out that its scope is too small is rolled back and run again with a larger one.
//! The tempting alternative, locking more as it goes, deadlocks: two transactions would take the same locks
//! in a different order.
//!
//! Before it uses the text of a store it locks the tables of the store's [partition], without
//! waiting: they may be in the middle of being rewritten.
//!
//! The lock must be a statement of its own. A query that locks a row and reads others reads those others as
//! they were before it waited for the lock.

mod locks;
mod members;
mod terms;

pub(crate) use terms::Terms;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use quipu_core::Error;
use quipu_core::backend::{Change, Commit, Sequence};
use quipu_core::model::{SessionId, StoreId, Timestamp};
use tokio_postgres::Row;

use crate::buffer::{self, Buffer, Mark};
use crate::error::{self, Consequence, Failure};
use crate::generation::{Seen, lacks};
use crate::outcome::Marker;
use crate::overlay::Overlay;
use crate::partition::{self, Partition, Rewriting, Use};
use crate::pool::Pooled;
use crate::values::{Bits, Columns as _, List, Param, number};
use members::Member;

/// What a write locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// One store, if it is announced first; else [`Administration`](Self::Administration).
    Store,
    /// What is not about one store, and each store that is touched.
    Administration,
    /// Everything.
    Exclusive,
}

/// What all transactions of a process share.
pub(crate) struct Shared {
    pub(crate) terms: Terms,
    pub(crate) seen: Arc<Seen>,
    pub(crate) rewriting: Arc<Rewriting>,
}

/// A transaction that begins with its first statement.
pub(crate) struct Transaction {
    client: Pooled,
    shared: Arc<Shared>,
    /// What had been seen when the transaction began. Others go on while it lasts.
    seen_before: Option<Counter>,
    lacks_changes: Cell<bool>,
    /// Whether the beginning has been sent.
    has_begun: Cell<bool>,
    /// `None` for a read.
    writing: Option<Writing>,
    buffer: RefCell<Buffer>,
    overlay: RefCell<Overlay>,
    /// The numbers of stores that were looked up; `None` for one that does not exist.
    numbers: RefCell<HashMap<StoreId, Option<i64>>>,
    /// The partitions that are locked, and those that will be with the next statement.
    partitions: RefCell<HashSet<Partition>>,
    entering: RefCell<Vec<Partition>>,
    failure: Cell<Option<Consequence>>,
    is_over: Cell<bool>,
}

/// What only a write has.
struct Writing {
    scope: Scope,
    /// The store that was announced, in [`Scope::Store`].
    announced: Cell<Option<StoreId>>,
    /// The session that was announced, in [`Scope::Store`].
    session: Cell<Option<SessionId>>,
    has_locked_administration: Cell<bool>,
    locked: RefCell<HashSet<StoreId>>,
    counter: Cell<Option<Counter>>,
    has_changed: Cell<bool>,
    /// Where the member of a group that runs now has begun; `None` if nobody else is in the transaction.
    member: Cell<Option<Member>>,
    larger_scope: Cell<Option<Scope>>,
    /// The tables that have lost text, and whether that has to be erased.
    lost: RefCell<BTreeSet<String>>,
    requires_erasure: Cell<bool>,
}

/// The row that orders all changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
    pub(crate) generation: u64,
    /// The first sequence of the generation.
    pub(crate) first: Sequence,
}

impl Counter {
    pub(crate) fn of(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            sequence: Sequence(row.count(0)?),
            at: row.moment(1)?,
            generation: row.count(2)?,
            first: Sequence(row.count(3)?),
        })
    }
}

impl Transaction {
    pub(crate) fn read(client: Pooled, shared: Arc<Shared>) -> Self {
        Self {
            client,
            seen_before: shared.seen.highest(),
            shared,
            lacks_changes: Cell::new(false),
            has_begun: Cell::new(false),
            writing: None,
            buffer: RefCell::default(),
            overlay: RefCell::default(),
            numbers: RefCell::default(),
            partitions: RefCell::default(),
            entering: RefCell::default(),
            failure: Cell::new(None),
            is_over: Cell::new(false),
        }
    }

    pub(crate) fn write(client: Pooled, shared: Arc<Shared>, scope: Scope) -> Self {
        let writing = Writing {
            scope,
            announced: Cell::new(None),
            session: Cell::new(None),
            has_locked_administration: Cell::new(false),
            locked: RefCell::default(),
            counter: Cell::new(None),
            has_changed: Cell::new(false),
            member: Cell::new(None),
            larger_scope: Cell::new(None),
            lost: RefCell::default(),
            requires_erasure: Cell::new(false),
        };
        let mut this = Self::read(client, shared);
        this.writing = Some(writing);
        this
    }

    /// Returns why the transaction cannot be committed, if a statement has failed.
    pub(crate) fn failure(&self) -> Option<Consequence> {
        self.failure.get()
    }

    /// Returns the scope to repeat the transaction with, if its own is too small.
    pub(crate) fn larger_scope(&self) -> Option<Scope> {
        self.writing.as_ref()?.larger_scope.get()
    }

    pub(crate) fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    pub(crate) fn has_changed(&self) -> bool {
        self.writing.as_ref().is_some_and(|writing| writing.has_changed.get())
    }

    /// Remembers the counter of a snapshot.
    pub(crate) fn note_counter(&self, counter: Counter) {
        if self.is_writing() {
            return;
        }
        if self.seen_before.is_some_and(|seen| lacks(counter, seen)) {
            self.lacks_changes.set(true);
        } else {
            self.shared.seen.note(counter);
        }
    }

    /// Returns whether the snapshot lacks changes that this process has seen before.
    pub(crate) fn lacks_changes(&self) -> bool {
        self.lacks_changes.get()
    }

    /// Returns the counter if this transaction holds it.
    pub(crate) fn counter(&self) -> Option<Counter> {
        self.writing.as_ref()?.counter.get()
    }

    /// Runs a statement and returns its rows.
    pub(crate) fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        self.enter()?;
        self.send_earlier()?;
        self.run(sql, params)
    }

    /// Runs a statement that changes rows.
    pub(crate) fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        if let Some(writing) = &self.writing {
            writing.has_changed.set(true);
        }
        self.enter()?;
        self.send_earlier()?;
        self.set_savepoint()?;
        // What else it changes is not known here.
        self.overlay.borrow_mut().forget_all();
        self.run(sql, params)
    }

    /// Returns the first row.
    pub(crate) fn query_one(&self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let before = self.before();
        let run = self.client.query(self.deadline(), before.as_deref(), sql, params);
        run.map_err(|failure| self.failed(failure))
    }

    /// Returns what is sent before the next statement: the beginning, and the locks of partitions.
    fn before(&self) -> Option<String> {
        let entering = self.entering.take();
        let purpose = if self.is_writing() { Use::Write } else { Use::Read };
        let begin = if self.is_writing() {
            &self.shared.terms.begin_write
        } else {
            &self.shared.terms.begin_read
        };
        let begin = (!self.has_begun.replace(true)).then(|| begin.clone());
        let parts: Vec<_> = begin.into_iter().chain(partition::lock(&entering, purpose)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.terms.answer_timeout
    }

    /// Sends the changes that were made and not sent yet, because the next statement must see them.
    fn send_earlier(&self) -> Result<(), Error> {
        let Some(writing) = &self.writing else { return Ok(()) };
        if self.buffer.borrow().is_empty() {
            return Ok(());
        }
        // Those of earlier members stay, whatever becomes of this one.
        if let Some(member) = writing.member.get() {
            let earlier = self.buffer.borrow_mut().take_until(member.mark);
            self.send_all(&earlier)?;
            writing.member.set(Some(Member { mark: Mark::default(), ..member }));
            if self.buffer.borrow().is_empty() {
                return Ok(());
            }
            self.set_savepoint()?;
        }
        let own = self.buffer.take();
        self.send_all(&own)
    }

    fn send_all(&self, buffer: &Buffer) -> Result<(), Error> {
        let statements = buffer.statements();
        let statements: Vec<_> =
            statements.iter().map(|(sql, values)| (&**sql, buffer::params(values))).collect();
        let before = self.before();
        let sent = self.client.pipeline(self.deadline(), before.as_deref(), &statements, None);
        sent.map(drop).map_err(|failure| self.failed(failure))
    }

    /// Adds the change of a memory.
    pub(crate) fn add_commit(&self, store: i64, commit: &Commit) -> Result<(), Error> {
        self.take_counter()?;
        self.overlay.borrow_mut().commit(commit);
        self.buffer.borrow_mut().add_commit(store, commit);
        self.added(commit.sequence, commit.version.created_at)
    }

    /// Adds a change to the feed.
    pub(crate) fn add_change(&self, change: &Change) -> Result<(), Error> {
        self.take_counter()?;
        self.buffer.borrow_mut().add_change(change);
        self.added(change.sequence, change.at)
    }

    fn added(&self, sequence: Sequence, at: Timestamp) -> Result<(), Error> {
        if let Some(writing) = &self.writing {
            writing.has_changed.set(true);
            let counter = writing.counter.get();
            writing.counter.set(counter.map(|counter| Counter { sequence, at, ..counter }));
        }
        let is_full = self.buffer.borrow().is_full();
        if is_full { self.send_earlier() } else { Ok(()) }
    }

    /// Runs a statement that adds a row to a table with text or replaces one, and returns whether it was
    /// replaced.
    pub(crate) fn execute_replacing(
        &self,
        table: &str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<(), Error> {
        let rows = self.execute(sql, params)?;
        let is_replaced = rows.first().map_or(Ok(false), |row| row.value(0))?;
        if is_replaced {
            self.lose(table);
        }
        Ok(())
    }

    /// Notes that rows with text are removed from a table that is not about one store, or are replaced.
    pub(crate) fn lose(&self, table: impl Into<String>) {
        if let Some(writing) = &self.writing {
            writing.lost.borrow_mut().insert(table.into());
        }
    }

    /// Notes that what is lost has to be erased, with everything of a store that is removed.
    pub(crate) fn require_erasure(&self, num: Option<i64>) {
        let Some(writing) = &self.writing else { return };
        writing.requires_erasure.set(true);
        let tables = num.map(|num| Partition::of_store(num).tables());
        writing.lost.borrow_mut().extend(tables.into_iter().flatten());
    }

    /// Returns the statement that notes which tables have to be rewritten.
    fn rewrites(&self) -> Option<buffer::Statement> {
        let writing = self.writing.as_ref().filter(|writing| writing.requires_erasure.get())?;
        let lost: Vec<_> = writing.lost.borrow().iter().cloned().collect();
        // In one order, so that two transactions do not wait for each other.
        let sql = "INSERT INTO rewrites
            SELECT name, (SELECT sequence FROM counter) + 1, pg_current_xact_id()::text::bigint
                FROM unnest($1::text[]) lost (name) ORDER BY name
            ON CONFLICT (name) DO UPDATE SET count = greatest(rewrites.count + 1, excluded.count),
                transaction = excluded.transaction";
        (!lost.is_empty()).then(|| (sql.to_owned(), vec![Box::new(List(lost)) as _]))
    }

    /// Looks something up in what the transaction knows already.
    pub(crate) fn known<T>(&self, look: impl FnOnce(&Overlay) -> Option<T>) -> Option<T> {
        look(&self.overlay.borrow())
    }

    fn failed(&self, failure: Failure) -> Error {
        if let Some(partition) = failure.partition() {
            self.shared.rewriting.note(partition);
            self.failure.set(Some(Consequence::Rewritten));
            return error::being_rewritten().with_source(failure.into_error());
        }
        let consequence = failure.consequence();
        if consequence == Consequence::Reconnect {
            self.client.discard();
        }
        self.failure.set(Some(consequence));
        failure.into_error()
    }

    /// Returns the id of the connection.
    pub(crate) fn connection(&self) -> Bits {
        self.client.id()
    }

    /// Commits under a marker by which the outcome can be found out if the connection breaks.
    pub(crate) fn commit(&self, marker: Marker) -> Result<(), Failure> {
        if !self.has_changed() {
            self.end();
            return Ok(());
        }
        let buffer = self.buffer.take();
        let mut statements = buffer.statements();
        statements.extend(self.rewrites());
        let (sql, values) = marker.note();
        statements.push((sql.to_owned(), values));
        if let Some(counter) = self.counter() {
            let sql = "UPDATE counter SET sequence = $1, at = $2, generation = $3, first = $4";
            statements.push((
                sql.to_owned(),
                vec![
                    Box::new(number(counter.sequence.0)),
                    Box::new(counter.at.as_micros()),
                    Box::new(number(counter.generation)),
                    Box::new(number(counter.first.0)),
                ],
            ));
        }
        let statements: Vec<_> =
            statements.iter().map(|(sql, values)| (&**sql, buffer::params(values))).collect();
        let (before, last) = (self.before(), Some(&*self.shared.terms.commit));
        self.client.heard().take();
        let committed = self.client.pipeline(self.deadline(), before.as_deref(), &statements, last);
        // Such as that somebody has cancelled the wait for a synchronous standby: it is committed here, and
        // a failover may lose it.
        let committed = match (committed, self.client.heard().take_warning()) {
            (Ok(_), Some(warning)) => Err(Failure::Warned(Box::new(warning))),
            (committed, _) => committed.map(drop),
        };
        if committed.is_err() {
            // What the connection still holds open is rolled back by closing it.
            self.client.discard();
        }
        self.is_over.set(true);
        committed
    }

    /// Ends a transaction that has changed nothing, without waiting for the answer.
    pub(crate) fn end(&self) {
        self.finish("COMMIT");
    }

    fn finish(&self, sql: &str) {
        // If nothing was sent yet, there is nothing to end.
        if !self.is_over.replace(true) && self.has_begun.get() {
            self.client.send(sql);
        }
    }
}

/// Rolls back what was neither committed nor ended, also when the work has panicked.
impl Drop for Transaction {
    fn drop(&mut self) {
        self.finish("ROLLBACK");
    }
}
