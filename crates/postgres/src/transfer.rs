//! Rows as they are, for a move to or from another backend; [`mod@layout`] lists them.

#[macro_use]
mod layout;

use std::sync::Arc;
use std::time::Duration;

use quipu_core::Error;
use quipu_core::model::View;
use quipu_core::transfer::{
    ExportWork, ImportWork, Page, Row as Values, RowReader, RowWriter, Table, Transfer, Value,
};
use tokio_postgres::Row;

use layout::{CONTENT, Kind, Layout, OWNERS, Stored, has_other_text, key, layout, read};

use crate::PostgresBackend;
use crate::error::{self, Failure};
use crate::transaction::{Scope, Terms, Transaction};
use crate::values::{Bits, Columns as _, number, params};

/// How long the snapshot of a move may be idle, while the other side is busy.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_hours(24);

impl Transfer for PostgresBackend {
    fn export(&self, work: &mut ExportWork<'_>) -> Result<(), Error> {
        let schema = self.settings.quoted_schema()?;
        let terms = Terms::new(&schema, (SNAPSHOT_TIMEOUT, self.settings.lock_timeout));
        let client = self.pool.get().map_err(Failure::into_error)?;
        let transaction = Transaction::read(client, Arc::new(terms), Arc::clone(&self.seen));
        let worked = work(&Exporter { transaction: &transaction });
        if transaction.failure().is_none() {
            transaction.end();
        }
        worked
    }

    fn import(&self, work: &mut ImportWork<'_>) -> Result<(), Error> {
        self.writing(Scope::Exclusive, &mut |transaction| {
            work(&mut Importer(Exporter { transaction }))
        })
    }
}

/// Reads the rows of one transaction.
struct Exporter<'t> {
    transaction: &'t Transaction,
}

/// A store that owns rows.
struct Owner {
    id: Value,
    number: Option<i64>,
}

impl Exporter<'_> {
    fn free_rows(&self, layout: &Layout, page: Page<'_>) -> Result<Vec<Values>, Error> {
        let key = key(layout).join(", ");
        let (after, condition) = after(layout, page.after, 1)?;
        let (select, from, limit) = (select(layout, page.view), layout.from, page.limit);
        let sql =
            format!("SELECT {select} FROM {from} WHERE {condition} ORDER BY {key} LIMIT {limit}");
        let params: Vec<_> = after.iter().map(Stored::param).collect();
        let rows = self.transaction.query(&sql, &params)?;
        rows.iter().map(|row| values(layout, row).map(Values)).collect()
    }

    /// Adds rows of one store to `rows`.
    fn owned_rows(
        &self,
        layout: &Layout,
        owner: &Owner,
        page: Page<'_>,
        rows: &mut Vec<Values>,
    ) -> Result<(), Error> {
        // A key of the store alone has no row after it.
        if page.after.is_some_and(<[Value]>::is_empty) {
            return Ok(());
        }
        let (after, condition) = after(layout, page.after, 2)?;
        let (select, table, limit) = (select(layout, page.view), layout.table, page.limit);
        let order = if layout.key_length == 0 { "1".to_owned() } else { key(layout).join(", ") };
        let sql = format!(
            "SELECT {select} FROM {table} WHERE store = $1 AND {condition}
             ORDER BY {order} LIMIT {limit}"
        );
        let number = Stored::Number(owner.number);
        let params: Vec<_> = [&number].into_iter().chain(&after).map(Stored::param).collect();
        for row in self.transaction.query(&sql, &params)? {
            let mut all = vec![owner.id.clone()];
            all.extend(values(layout, &row)?);
            rows.push(Values(all));
        }
        Ok(())
    }

    /// Returns the next store, deleted or not, that has a row in a table.
    fn next_owner(&self, layout: &Layout, after: Option<&Value>) -> Result<Option<Owner>, Error> {
        let table = layout.table;
        // The limit inside keeps the server from reading the whole table to answer for all stores at once.
        let sql = format!(
            "SELECT id, num FROM ({OWNERS}) s
             CROSS JOIN LATERAL (SELECT 1 FROM {table} r WHERE r.store = s.num LIMIT 1) found
             WHERE id > $1 ORDER BY id LIMIT 1"
        );
        let none = Value::Bytes(vec![0; 16]);
        let after = Stored::new(after.unwrap_or(&none), Kind::Id)?;
        let row = self.transaction.query_one(&sql, &[after.param()])?;
        row.map(|row| Ok(Owner { id: read(&row, 0, Kind::Id)?, number: row.value(1)? })).transpose()
    }

    /// Returns the number of a store; `None` if it is not here, which no row can refer to.
    fn number(&self, store: &Value) -> Result<Option<i64>, Error> {
        let sql = format!("SELECT num FROM ({OWNERS}) s WHERE id = $1");
        let store = Stored::new(store, Kind::Id)?;
        let row = self.transaction.query_one(&sql, &[store.param()])?;
        row.map(|row| row.value(0)).transpose()
    }
}

impl RowReader for Exporter<'_> {
    fn rows(&self, table: &Table, page: Page<'_>) -> Result<Vec<Values>, Error> {
        let layout = layout(table)?;
        if !layout.is_owned {
            return self.free_rows(layout, page);
        }
        let after = page.after.and_then(|key| key.split_first());
        let mut rows = Vec::new();
        if let Some((store, key)) = after {
            let owner = Owner { id: store.clone(), number: self.number(store)? };
            self.owned_rows(layout, &owner, Page { after: Some(key), ..page }, &mut rows)?;
        }
        let mut last = after.map(|(store, _)| store.clone());
        while rows.len() < page.limit {
            let Some(owner) = self.next_owner(layout, last.as_ref())? else { break };
            let limit = page.limit - rows.len();
            self.owned_rows(layout, &owner, Page { after: None, limit, ..page }, &mut rows)?;
            last = Some(owner.id);
        }
        Ok(rows)
    }

    fn count(&self, table: &Table) -> Result<u64, Error> {
        let layout = layout(table)?;
        let condition = if layout.is_owned {
            format!("WHERE store IN (SELECT num FROM ({OWNERS}) s)")
        } else {
            String::new()
        };
        let sql = format!("SELECT count(*) FROM {} {condition}", layout.from);
        self.transaction.query_one(&sql, &[])?.ok_or_else(error::damaged)?.count(0)
    }

    fn newest_sequence(&self) -> Result<u64, Error> {
        let row = self.transaction.query_one("SELECT sequence FROM counter", &[])?;
        row.ok_or_else(error::damaged)?.count(0)
    }

    fn mark(&self, name: &str) -> Result<Option<u64>, Error> {
        let sql = "SELECT sequence FROM cursors WHERE name = $1";
        self.transaction.query_one(sql, params![name])?.map(|row| row.count(0)).transpose()
    }
}

/// Changes rows inside of a transaction.
struct Importer<'t>(Exporter<'t>);

impl RowReader for Importer<'_> {
    fn rows(&self, table: &Table, page: Page<'_>) -> Result<Vec<Values>, Error> {
        self.0.rows(table, page)
    }

    fn count(&self, table: &Table) -> Result<u64, Error> {
        self.0.count(table)
    }

    fn newest_sequence(&self) -> Result<u64, Error> {
        self.0.newest_sequence()
    }

    fn mark(&self, name: &str) -> Result<Option<u64>, Error> {
        self.0.mark(name)
    }
}

impl RowWriter for Importer<'_> {
    fn put_row(&mut self, table: &Table, row: &Values) -> Result<(), Error> {
        let layout = layout(table)?;
        match layout.name {
            "stores" => self.put_store(layout, row),
            "versions" if row.0.last() == Some(&Value::Null) => {
                self.require_erasure(row.key(table))?;
                self.put(layout, row)
            }
            name if has_other_text(name) => {
                self.require_other_erasure(layout, row.key(table))?;
                self.put(layout, row)
            }
            _ => self.put(layout, row),
        }
    }

    fn remove_row(&mut self, table: &Table, key: &[Value]) -> Result<(), Error> {
        let layout = layout(table)?;
        match layout.name {
            "stores" => return self.remove_store(key),
            "versions" => self.require_erasure(key)?,
            name if has_other_text(name) => self.require_other_erasure(layout, key)?,
            _ => {}
        }
        let (stored, condition) = self.equal(layout, key)?;
        let sql = format!("DELETE FROM {} WHERE {condition}", layout.table);
        let params: Vec<_> = stored.iter().map(Stored::param).collect();
        self.0.transaction.execute(&sql, &params).map(drop)
    }

    fn put_mark(&mut self, name: &str, value: u64) -> Result<(), Error> {
        let sql = "INSERT INTO cursors (name, sequence) VALUES ($1, $2)
            ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence";
        self.0.transaction.execute(sql, params![name, number(value)]).map(drop)
    }

    fn derive(&mut self) -> Result<(), Error> {
        let usage = |stores: &str| {
            format!(
                "UPDATE {stores} SET
                    memories_count = (SELECT count(*) FROM memories m WHERE m.store = {stores}.num),
                    size_bytes = (SELECT coalesce(sum(m.size_bytes), 0)::bigint FROM memories m
                        WHERE m.store = {stores}.num)"
            )
        };
        let next = |table: &str| {
            format!(
                "SELECT setval(pg_get_serial_sequence('{table}', 'num'),
                    (SELECT coalesce(max(num), 0) + 1 FROM {table}), false)"
            )
        };
        for sql in [
            usage("stores"),
            usage("restorable_stores"),
            next("refusals"),
            next("copies_made"),
            "UPDATE workspaces w SET events_size_bytes =
                (SELECT coalesce(sum(u.size_bytes), 0)::bigint
                    FROM event_usage u JOIN sessions s ON s.id = u.session WHERE s.workspace = w.id)"
                .to_owned(),
            "UPDATE counter SET (sequence, at) = (n.sequence, n.at)
                FROM (SELECT sequence, at FROM changes ORDER BY sequence DESC LIMIT 1) n"
                .to_owned(),
        ] {
            self.0.transaction.execute(&sql, &[])?;
        }
        Ok(())
    }
}

impl Importer<'_> {
    /// Adds or replaces a row.
    fn put(&self, layout: &Layout, row: &Values) -> Result<(), Error> {
        let (mut names, mut stored) = (Vec::new(), Vec::new());
        let mut values = row.0.iter();
        let mut conflict = key(layout);
        if layout.is_owned {
            let store = values.next().ok_or_else(error::damaged)?;
            names.push("store");
            stored.push(Stored::Number(self.0.number(store)?));
            conflict.insert(0, "store");
        }
        for (value, (name, kind)) in values.zip(layout.columns) {
            names.push(name);
            stored.push(Stored::new(value, *kind)?);
        }
        let sets: Vec<_> = names
            .iter()
            .filter(|name| !conflict.contains(name))
            .map(|name| format!("{name} = excluded.{name}"))
            .collect();
        let then = if sets.is_empty() {
            "NOTHING".to_owned()
        } else {
            format!("UPDATE SET {}", sets.join(", "))
        };
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({}) ON CONFLICT ({}) DO {then}",
            layout.table,
            names.join(", "),
            places(1, stored.len()),
            conflict.join(", "),
        );
        let params: Vec<_> = stored.iter().map(Stored::param).collect();
        self.0.transaction.execute(&sql, &params).map(drop)
    }

    /// Returns the condition that a row has a key, and its parameters.
    fn equal(&self, layout: &Layout, key_values: &[Value]) -> Result<(Vec<Stored>, String), Error> {
        let (mut names, mut stored) = (key(layout), Vec::new());
        let mut values = key_values.iter();
        if layout.is_owned {
            let store = values.next().ok_or_else(error::damaged)?;
            names.insert(0, "store");
            stored.push(Stored::Number(self.0.number(store)?));
        }
        for (value, (_, kind)) in values.zip(layout.columns) {
            stored.push(Stored::new(value, *kind)?);
        }
        let condition = format!("({}) = ({})", names.join(", "), places(1, stored.len()));
        Ok((stored, condition))
    }

    /// Records that the text of a version, if it is here, has to be erased.
    fn require_erasure(&self, key: &[Value]) -> Result<(), Error> {
        let [store, Value::Integer(at), ..] = key else { return Ok(()) };
        let sql = format!(
            "INSERT INTO erasures SELECT s.id, v.memory, (SELECT sequence FROM counter) + 1, s.num
                FROM ({OWNERS}) s JOIN versions v ON v.store = s.num
                WHERE s.id = $1 AND v.at = $2 AND v.content IS NOT NULL
             ON CONFLICT (store, memory)
                DO UPDATE SET count = greatest(erasures.count + 1, excluded.count)"
        );
        let (store, at) = (Stored::new(store, Kind::Id)?, Stored::Number(Some(*at)));
        self.0.transaction.execute(&sql, &[store.param(), at.param()]).map(drop)
    }

    /// Records that text that belongs to no store has to be erased, if the row is here.
    fn require_other_erasure(&self, layout: &Layout, key: &[Value]) -> Result<(), Error> {
        let (stored, condition) = self.equal(layout, key)?;
        let sql = format!(
            "INSERT INTO erasures
                SELECT '00000000-0000-0000-0000-000000000000'::uuid,
                    '00000000-0000-0000-0000-000000000000'::uuid,
                    (SELECT sequence FROM counter) + 1, 0
                WHERE EXISTS (SELECT 1 FROM {} WHERE {condition})
             ON CONFLICT (store, memory)
                DO UPDATE SET count = greatest(erasures.count + 1, excluded.count)",
            layout.table
        );
        let params: Vec<_> = stored.iter().map(Stored::param).collect();
        self.0.transaction.execute(&sql, &params).map(drop)
    }

    /// Its rows are found by its number, so a store keeps that when it is replaced.
    fn put_store(&self, layout: &Layout, row: &Values) -> Result<(), Error> {
        let [id, ..] = row.0.as_slice() else { return Err(error::damaged()) };
        let (id_kept, known) = (Stored::new(id, Kind::Id)?, self.0.number(id)?);
        for table in ["stores", "restorable_stores"] {
            let sql = format!("DELETE FROM {table} WHERE id = $1");
            self.0.transaction.execute(&sql, &[id_kept.param()])?;
        }
        let columns_count = layout.columns.len() - 1;
        let mut stored = Vec::new();
        for (value, (_, kind)) in row.0.iter().zip(layout.columns).take(columns_count) {
            stored.push(Stored::new(value, *kind)?);
        }
        let (num, mut values) = ("num, ", places(1, columns_count));
        if known.is_some() {
            stored.push(Stored::Number(known));
            values = format!("${}, {values}", stored.len());
        }
        let num = if known.is_some() { num } else { "" };
        let sql = format!("INSERT INTO stores ({num}{}) VALUES ({values})", store_columns!());
        let params: Vec<_> = stored.iter().map(Stored::param).collect();
        self.0.transaction.execute(&sql, &params)?;
        let deleted_at = row.0.last().ok_or_else(error::damaged)?;
        if *deleted_at == Value::Null {
            return Ok(());
        }
        let sql = concat!(
            "INSERT INTO restorable_stores (num, memories_count, size_bytes, deleted_at, ",
            store_columns!(),
            ") SELECT num, 0, 0, $2, ",
            store_columns!(),
            " FROM stores WHERE id = $1"
        );
        let deleted_at = Stored::new(deleted_at, Kind::Number)?;
        self.0.transaction.execute(sql, &[id_kept.param(), deleted_at.param()])?;
        self.0.transaction.execute("DELETE FROM stores WHERE id = $1", &[id_kept.param()]).map(drop)
    }

    /// What belongs to it went before.
    fn remove_store(&self, key: &[Value]) -> Result<(), Error> {
        let [id, ..] = key else { return Ok(()) };
        let (id, whole) = (Stored::new(id, Kind::Id)?, Stored::Id(Some(Bits::MAX)));
        let sql = format!(
            "INSERT INTO erasures SELECT s.id, $2, (SELECT sequence FROM counter) + 1, s.num
                FROM ({OWNERS}) s WHERE s.id = $1
             ON CONFLICT (store, memory)
                DO UPDATE SET count = greatest(erasures.count + 1, excluded.count)"
        );
        self.0.transaction.execute(&sql, &[id.param(), whole.param()])?;
        for table in ["stores", "restorable_stores"] {
            let sql = format!("DELETE FROM {table} WHERE id = $1");
            self.0.transaction.execute(&sql, &[id.param()])?;
        }
        Ok(())
    }
}

fn select(layout: &Layout, view: View) -> String {
    let column = |(name, _): &(&'static str, Kind)| match (view, *name) {
        (View::Basic, CONTENT) => "NULL::text",
        (View::Basic | View::Full, name) => name,
    };
    layout.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

fn values(layout: &Layout, row: &Row) -> Result<Vec<Value>, Error> {
    let columns = layout.columns.iter().enumerate();
    columns.map(|(column, (_, kind))| read(row, column, *kind)).collect()
}

/// Returns the condition that a key is greater than another one, and its parameters, the first of which has
/// the number `first`.
fn after(
    layout: &Layout,
    after: Option<&[Value]>,
    first: usize,
) -> Result<(Vec<Stored>, String), Error> {
    let values = after.unwrap_or_default();
    if values.is_empty() {
        return Ok((Vec::new(), "true".to_owned()));
    }
    let mut stored = Vec::new();
    for (value, (_, kind)) in values.iter().zip(layout.columns) {
        stored.push(Stored::new(value, *kind)?);
    }
    let condition = format!("({}) > ({})", key(layout).join(", "), places(first, stored.len()));
    Ok((stored, condition))
}

/// Returns placeholders, the first of which has the number `first`.
fn places(first: usize, count: usize) -> String {
    (first..first + count).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")
}
