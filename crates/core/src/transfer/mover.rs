//! Compares two databases row by row, and makes one of them equal to the other.
//!
//! Both sides are read in order of their keys, as in a merge. A row that is missing is copied, one that only
//! the target has is deleted, so a second run copies what has changed since the first. Texts never change, they
//! only go, so they are read when a row is missing, and not to compare.

use std::collections::VecDeque;

use sha2::{Digest as _, Sha256};

use super::{
    COMPLETE, Page, Row, RowReader, RowWriter, STATE, TABLES, Table, Transfer, UNDER_WAY, VERSIONS,
    Value, incomplete,
};
use crate::error::{Error, ErrorKind};
use crate::model::View;

/// How many rows are read at a time.
const PAGE_ROWS: usize = 1000;

/// How many rows with texts are read at a time.
const PAGE_TEXTS: usize = 64;

/// How many rows, and how many bytes of them, one transaction changes.
const BATCH_ROWS_MAX: usize = 500;
const BATCH_BYTES_MAX: usize = 1024 * 1024;

const DIGEST: &str = "move.digest";
const SOURCE: &str = "move.source";

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveMode {
    /// Make the target equal to the source.
    Copy,
    /// Say what would be done.
    DryRun,
}

/// What a move did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Each table, in the order of [`TABLES`].
    pub tables: Vec<TableMoved>,
    /// The sequence of the newest change that was carried over.
    pub sequence: u64,
    /// The digest of all rows, equal on both sides; `None` if nothing was written.
    pub digest: Option<[u8; 32]>,
}

/// What a move did in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMoved {
    /// The name of the table.
    pub name: &'static str,
    /// How many rows the source has.
    pub rows_count: u64,
    /// How many rows were added or replaced.
    pub put_count: u64,
    /// How many rows were removed.
    pub removed_count: u64,
}

/// What a move is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Finding rows to delete.
    Comparing,
    /// Copying rows.
    Copying,
    /// Computing the digest of the source, then of the target.
    Verifying,
}

/// How far a move is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What it is doing.
    pub step: Step,
    /// With which table.
    pub table: &'static str,
    /// How many rows of all tables it has looked at, in this step.
    pub done_count: u64,
    /// How many rows there are.
    pub total_count: u64,
}

/// Receives progress reports; an error from it ends the move.
pub type Watcher<'a> = dyn FnMut(Progress) -> Result<(), Error> + 'a;

/// Makes the rows of `target` equal to those of `source`, as these are now, and verifies that they are.
///
/// The target must be empty, or have been written by a move from the same source and by nobody since.
/// Interrupted at any moment, it is continued by the next call.
pub fn move_all(
    source: &dyn Transfer,
    target: &dyn Transfer,
    mode: MoveMode,
    watch: &mut Watcher<'_>,
) -> Result<Moved, Error> {
    let mut moved = None;
    source.export(&mut |rows| {
        moved = Some(move_snapshot(rows, target, mode, watch)?);
        Ok(())
    })?;
    moved.ok_or_else(|| Error::new(ErrorKind::StorageUnavailable, "the source could not be read"))
}

fn move_snapshot(
    source: &dyn RowReader,
    target: &dyn Transfer,
    mode: MoveMode,
    watch: &mut Watcher<'_>,
) -> Result<Moved, Error> {
    if source.mark(STATE)? == Some(UNDER_WAY) {
        return Err(incomplete());
    }
    let origin = origin(source)?;
    require_target(source, target, origin)?;
    let mut run = Run { source, target, mode, watch, done_count: 0, total_count: total(source)? };
    if mode == MoveMode::Copy {
        run.mark(&[(STATE, UNDER_WAY), (SOURCE, origin)])?;
    }
    let mut tables = Vec::new();
    for table in TABLES.iter().rev() {
        tables.push(run.remove(table)?);
    }
    tables.reverse();
    run.done_count = 0;
    for (table, moved) in TABLES.iter().zip(&mut tables) {
        run.put(table, moved)?;
    }
    let sequence = source.newest_sequence()?;
    if mode == MoveMode::DryRun {
        return Ok(Moved { tables, sequence, digest: None });
    }
    run.derive()?;
    let digest = run.verify()?;
    run.mark(&[(DIGEST, short(digest)), (STATE, COMPLETE)])?;
    Ok(Moved { tables, sequence, digest: Some(digest) })
}

/// A move under way.
struct Run<'a, 'w> {
    source: &'a dyn RowReader,
    target: &'a dyn Transfer,
    mode: MoveMode,
    watch: &'a mut Watcher<'w>,
    done_count: u64,
    total_count: u64,
}

impl Run<'_, '_> {
    /// Removes the rows of a table that the source does not have, or has in another form where that is in
    /// the way.
    fn remove(&mut self, table: &'static Table) -> Result<TableMoved, Error> {
        let rows_count = self.source.count(table)?;
        let mut moved = TableMoved { name: table.name, rows_count, put_count: 0, removed_count: 0 };
        let source = self.source;
        let mut same = Cursor::new(|page| source.rows(table, page));
        let mut after = None::<Vec<Value>>;
        loop {
            let rows = read(self.target, table, page(after.as_deref()))?;
            let Some(last) = rows.last() else { return Ok(moved) };
            after = Some(last.key(table).to_vec());
            let mut removed = Vec::new();
            for row in rows {
                let same = same.seek(table, row.key(table))?;
                if same.is_none_or(|same| table.has_places && *same != row) {
                    removed.push(row);
                }
            }
            moved.removed_count += removed.len() as u64;
            for batch in removed.chunks(BATCH_ROWS_MAX) {
                self.write(batch, |target, rows| target.remove_rows(table, rows))?;
            }
            self.report(Step::Comparing, table, 0)?;
        }
    }

    /// Adds and replaces the rows of a table that differ from those of the source.
    fn put(&mut self, table: &'static Table, moved: &mut TableMoved) -> Result<(), Error> {
        let target = self.target;
        let mut known = Cursor::new(|page| read(target, table, page));
        let mut after = None::<Vec<Value>>;
        loop {
            let rows = self.source.rows(table, page(after.as_deref()))?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.key(table).to_vec());
            for batch in rows.chunks(BATCH_ROWS_MAX) {
                let missing = known.missing(table, batch)?;
                moved.put_count += missing.len() as u64;
                self.copy(table, &missing)?;
                self.report(Step::Copying, table, batch.len())?;
            }
        }
    }

    /// Copies rows, with their texts.
    fn copy(&self, table: &'static Table, rows: &[Row]) -> Result<(), Error> {
        if self.mode == MoveMode::DryRun || *table != VERSIONS {
            return self.write(rows, |target, rows| target.put_rows(table, rows));
        }
        let (mut batch, mut bytes_count) = (Vec::new(), 0);
        for rows in rows.chunks(PAGE_TEXTS) {
            for row in with_texts(self.source, rows)? {
                bytes_count += text_length(&row);
                batch.push(row);
                if bytes_count >= BATCH_BYTES_MAX {
                    self.write(&batch, |target, rows| target.put_rows(table, rows))?;
                    batch.clear();
                    bytes_count = 0;
                }
            }
        }
        self.write(&batch, |target, rows| target.put_rows(table, rows))
    }

    fn write(
        &self,
        batch: &[Row],
        work: impl Fn(&mut dyn RowWriter, &[Row]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if batch.is_empty() || self.mode == MoveMode::DryRun {
            return Ok(());
        }
        self.target.import(&mut |target| work(target, batch))
    }

    /// Recomputes what is derived from rows, a page of stores at a time.
    fn derive(&self) -> Result<(), Error> {
        let Some(stores) = TABLES.iter().find(|table| table.name == "stores") else {
            return Ok(());
        };
        let mut after = None::<Vec<Value>>;
        loop {
            let rows = read(self.target, stores, page(after.as_deref()))?;
            let Some(last) = rows.last() else { break };
            after = Some(last.key(stores).to_vec());
            for batch in rows.chunks(BATCH_ROWS_MAX) {
                self.write(batch, |target, rows| target.derive_usage(rows))?;
            }
        }
        self.target.import(&mut |target| target.derive())
    }

    fn mark(&self, marks: &[(&str, u64)]) -> Result<(), Error> {
        self.target.import(&mut |rows| {
            marks.iter().try_for_each(|(name, value)| rows.put_mark(name, *value))
        })
    }

    /// Fails unless both sides have the same rows; returns their digest.
    fn verify(&mut self) -> Result<[u8; 32], Error> {
        (self.done_count, self.total_count) = (0, self.total_count * 2);
        let expected = self.digests(self.source)?;
        let (mut found, target) = (Vec::new(), self.target);
        target.export(&mut |rows| {
            found = self.digests(rows)?;
            Ok(())
        })?;
        let differing = TABLES.iter().zip(expected.iter().zip(&found)).find(|(_, (a, b))| a != b);
        match differing {
            None => Ok(joined(&expected)),
            Some((table, _)) => Err(Error::new(
                ErrorKind::StorageUnusable,
                format!("verification failed: the {} of source and target differ", table.name),
            )
            .with_hint("nothing else may write to the target meanwhile; run it again")),
        }
    }

    fn digests(&mut self, rows: &dyn RowReader) -> Result<Vec<[u8; 32]>, Error> {
        let each = |table| {
            digest_table(rows, table, &mut |rows_count| {
                self.report(Step::Verifying, table, rows_count)
            })
        };
        TABLES.iter().map(each).collect()
    }

    fn report(&mut self, step: Step, table: &Table, rows_count: usize) -> Result<(), Error> {
        self.done_count += rows_count as u64;
        let (done_count, total_count) = (self.done_count, self.total_count);
        (self.watch)(Progress { step, table: table.name, done_count, total_count })
    }
}

/// Rows in order of their keys, to look up ascending keys in.
struct Cursor<F> {
    next_page: F,
    rows: VecDeque<Row>,
    after: Option<Vec<Value>>,
    is_at_end: bool,
}

impl<F: FnMut(Page<'_>) -> Result<Vec<Row>, Error>> Cursor<F> {
    fn new(next_page: F) -> Self {
        Self { next_page, rows: VecDeque::new(), after: None, is_at_end: false }
    }

    /// Returns those of some rows, in order of their keys, that are not here in the same form.
    fn missing(&mut self, table: &Table, rows: &[Row]) -> Result<Vec<Row>, Error> {
        let mut missing = Vec::new();
        for row in rows {
            if self.seek(table, row.key(table))? != Some(row) {
                missing.push(row.clone());
            }
        }
        Ok(missing)
    }

    /// Returns the row with this key, which must not be less than that of an earlier call.
    fn seek(&mut self, table: &Table, key: &[Value]) -> Result<Option<&Row>, Error> {
        loop {
            while self.rows.front().is_some_and(|row| row.key(table) < key) {
                self.rows.pop_front();
            }
            if !self.rows.is_empty() || self.is_at_end {
                return Ok(self.rows.front().filter(|row| row.key(table) == key));
            }
            let rows = (self.next_page)(page(self.after.as_deref()))?;
            self.is_at_end = rows.is_empty();
            self.after = rows.last().map(|row| row.key(table).to_vec());
            self.rows = rows.into();
        }
    }
}

/// Returns the digest of all rows.
pub fn digest(rows: &dyn RowReader) -> Result<[u8; 32], Error> {
    let each = |table| digest_table(rows, table, &mut |_| Ok(()));
    Ok(joined(&TABLES.iter().map(each).collect::<Result<Vec<_>, _>>()?))
}

fn digest_table(
    rows: &dyn RowReader,
    table: &Table,
    read: &mut dyn FnMut(usize) -> Result<(), Error>,
) -> Result<[u8; 32], Error> {
    let (mut hasher, mut after) = (Sha256::new(), None::<Vec<Value>>);
    loop {
        let limit = if *table == VERSIONS { PAGE_TEXTS } else { PAGE_ROWS };
        let page = rows.rows(table, Page { after: after.as_deref(), limit, view: View::Full })?;
        let Some(last) = page.last() else { return Ok(hasher.finalize().into()) };
        after = Some(last.key(table).to_vec());
        page.iter().flat_map(|row| &row.0).for_each(|value| hash(&mut hasher, value));
        read(page.len())?;
    }
}

/// Hashes a value in a way that no other sequence of values is hashed.
fn hash(hasher: &mut Sha256, value: &Value) {
    let (kind, bytes): (u8, &[u8]) = match value {
        Value::Null => (0, &[]),
        Value::Integer(number) => {
            hasher.update([1]);
            return hasher.update(number.to_be_bytes());
        }
        Value::Bytes(bytes) => (2, bytes),
        Value::Text(text) => (3, text.as_bytes()),
    };
    hasher.update([kind]);
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

fn joined(digests: &[[u8; 32]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for digest in digests {
        hasher.update(digest);
    }
    hasher.finalize().into()
}

/// Returns as much of a digest as a mark can hold.
fn short(digest: [u8; 32]) -> u64 {
    let first = digest.first_chunk().copied().unwrap_or_default();
    u64::from_be_bytes(first) >> 1
}

/// Returns what tells one source from another: its oldest workspace, whose id is random.
fn origin(source: &dyn RowReader) -> Result<u64, Error> {
    let [workspaces, ..] = &TABLES;
    let first = source.rows(workspaces, Page { limit: 1, ..page(None) })?;
    let mut hasher = Sha256::new();
    first.iter().flat_map(|row| row.key(workspaces)).for_each(|value| hash(&mut hasher, value));
    Ok(short(hasher.finalize().into()))
}

/// Fails unless the target is empty, or is what a move from this source has left.
fn require_target(source: &dyn RowReader, target: &dyn Transfer, origin: u64) -> Result<(), Error> {
    target.export(&mut |rows| match (rows.mark(STATE)?, rows.mark(SOURCE)?) {
        (None, _) if is_empty(rows)? => Ok(()),
        (Some(UNDER_WAY), Some(of)) if of == origin => Ok(()),
        (Some(COMPLETE), Some(of)) if of == origin => {
            if rows.mark(DIGEST)? != Some(short(digest(rows)?)) {
                return Err(other_data("something has written to the target since the last move"));
            }
            require_history(source, rows)
        }
        (None | Some(_), _) => Err(other_data("the target already holds other data")),
    })
}

/// Fails unless the newest change of the target is one of the source. Copies of one database have the same
/// origin, and an older one would take back what a newer one has brought.
fn require_history(source: &dyn RowReader, target: &dyn RowReader) -> Result<(), Error> {
    let newest = target.newest_sequence()?;
    let change = |rows: &dyn RowReader| -> Result<Option<Row>, Error> {
        let Some(changes) = TABLES.iter().find(|table| table.name == "changes") else {
            return Ok(None);
        };
        let Some(before) = newest.checked_sub(1) else { return Ok(None) };
        let after = [Value::Integer(i64::try_from(before).unwrap_or(i64::MAX))];
        Ok(rows.rows(changes, Page { limit: 1, ..page(Some(&after)) })?.into_iter().next())
    };
    let (here, there) = (change(source)?, change(target)?);
    // What the feed of the source reaches back to is all that can be compared.
    let is_older = source.newest_sequence()? < newest;
    let is_same_place = |one: &Row, other: &Row| one.0.first() == other.0.first();
    let is_another =
        here.zip(there).is_some_and(|(here, there)| is_same_place(&here, &there) && here != there);
    if is_older || is_another {
        return Err(other_data("the target has changes that the source does not have"));
    }
    Ok(())
}

fn other_data(message: &str) -> Error {
    Error::new(ErrorKind::PreconditionFailed, message)
        .with_hint("nothing was changed; move to an empty database or directory")
}

/// Returns whether there is nothing to lose. What only looks at a new database makes a workspace in it.
fn is_empty(rows: &dyn RowReader) -> Result<bool, Error> {
    let [_, others @ ..] = &TABLES;
    for table in others {
        if rows.count(table)? > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn total(rows: &dyn RowReader) -> Result<u64, Error> {
    TABLES.iter().map(|table| rows.count(table)).sum()
}

fn page(after: Option<&[Value]>) -> Page<'_> {
    Page { after, limit: PAGE_ROWS, view: View::Basic }
}

/// Reads a page of the target, on a snapshot of its own.
fn read(target: &dyn Transfer, table: &Table, page: Page<'_>) -> Result<Vec<Row>, Error> {
    let mut found = Vec::new();
    target.export(&mut |rows| {
        found = rows.rows(table, page)?;
        Ok(())
    })?;
    Ok(found)
}

/// Returns versions with their texts.
fn with_texts(source: &dyn RowReader, rows: &[Row]) -> Result<Vec<Row>, Error> {
    let (mut full, mut rest) = (Vec::new(), rows);
    // Usually all that is missing is in one piece.
    while let Some(first) = rest.first() {
        let after = before(first);
        let page = Page { after: Some(&after), limit: rest.len(), view: View::Full };
        for found in source.rows(&VERSIONS, page)? {
            match rest.split_first() {
                Some((row, others)) if row.key(&VERSIONS) == found.key(&VERSIONS) => {
                    full.push(found);
                    rest = others;
                }
                Some(_) | None => break,
            }
        }
    }
    Ok(full)
}

/// Returns the key before that of a version.
fn before(version: &Row) -> Vec<Value> {
    let mut key = version.key(&VERSIONS).to_vec();
    if let Some(Value::Integer(at)) = key.last_mut() {
        *at = at.saturating_sub(1);
    }
    key
}

fn text_length(row: &Row) -> usize {
    match row.0.last() {
        Some(Value::Text(text)) => text.len(),
        Some(Value::Null | Value::Integer(_) | Value::Bytes(_)) | None => 0,
    }
}
