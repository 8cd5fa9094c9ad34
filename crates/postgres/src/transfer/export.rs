//! Reading rows in the order of their keys.

use std::cell::Cell;
use std::collections::HashMap;

use quipu_core::Error;
use quipu_core::model::View;
use quipu_core::transfer::{Page, Row as Values, RowReader, Table, Value};
use tokio_postgres::Row;

use super::layout::{CONTENT, Kind, Layout, OWNERS, Stored, key, layout, read};
use crate::error;
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, number, params};

/// Of how many stores rows are read at a time, at most.
const OWNERS_MAX: usize = 64;

/// Reads the rows of one transaction.
pub(super) struct Exporter<'t> {
    pub(super) transaction: &'t Transaction,
    /// Of how many stores rows are read next. Small stores are read together; one with more rows than a page is
    /// read alone.
    owners_count: Cell<usize>,
}

/// A store that owns rows.
#[derive(Clone, Copy)]
struct Owner {
    id: Bits,
    number: i64,
}

impl<'t> Exporter<'t> {
    pub(super) fn new(transaction: &'t Transaction) -> Self {
        Self { transaction, owners_count: Cell::new(1) }
    }

    fn free_rows(&self, layout: &Layout, page: Page<'_>) -> Result<Vec<Values>, Error> {
        let key = key(layout).join(", ");
        let (after, condition) = after(layout, page.after, 1)?;
        let (select, from, limit) = (select(layout, page.view), layout.from, page.limit);
        let sql =
            format!("SELECT {select} FROM {from} WHERE {condition} ORDER BY {key} LIMIT {limit}");
        let params: Vec<_> = after.iter().map(Stored::param).collect();
        let rows = self.transaction.query(&sql, &params)?;
        rows.iter().map(|row| values(layout, (row, 0)).map(Values)).collect()
    }

    /// Adds the rest of the rows of one store to `rows`.
    fn add_rest(
        &self,
        layout: &Layout,
        (store, key_values): (&Value, &[Value]),
        page: Page<'_>,
        rows: &mut Vec<Values>,
    ) -> Result<(), Error> {
        let ids = [store.clone()];
        let found = self.numbers(&ids)?;
        // A key of the store alone has no row after it, and of a store that is gone there is none.
        let (Some(number), false) = (found.into_values().next(), key_values.is_empty()) else {
            return Ok(());
        };
        let (after, condition) = after(layout, Some(key_values), 2)?;
        let (select, table) = (select(layout, page.view), layout.table_of(number));
        let sql = format!(
            "SELECT {select} FROM {table} WHERE store = $1 AND {condition}
             ORDER BY {} LIMIT {}",
            key(layout).join(", "),
            page.limit
        );
        let number = Stored::Number(Some(number));
        let params: Vec<_> = [&number].into_iter().chain(&after).map(Stored::param).collect();
        for row in self.transaction.query(&sql, &params)? {
            let mut all = vec![store.clone()];
            all.extend(values(layout, (&row, 0))?);
            rows.push(Values(all));
        }
        Ok(())
    }

    /// Adds rows of stores to `rows`, until the page is full or their rows are complete.
    fn add_owned(
        &self,
        layout: &Layout,
        owners: &[Owner],
        page: Page<'_>,
        rows: &mut Vec<Values>,
    ) -> Result<(), Error> {
        let (select, limit) = (select(layout, page.view), number(page.limit - rows.len()));
        let mut order = vec!["o.place".to_owned()];
        order.extend(key(layout).iter().map(|column| format!("r.{column}")));
        let within = if layout.key_length == 0 { "1".to_owned() } else { key(layout).join(", ") };
        // The limit inside keeps the server from sorting all rows of a large store for one page.
        let sql = format!(
            "SELECT o.id, r.* FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY o (id, num, place)
             CROSS JOIN LATERAL (SELECT {select} FROM {} WHERE store = o.num {}
                ORDER BY {within} LIMIT $3) r
             ORDER BY {} LIMIT $3",
            layout.table,
            layout.same_partition("store", "o.num"),
            order.join(", "),
        );
        let ids = List(owners.iter().map(|owner| owner.id).collect::<Vec<_>>());
        let numbers = List(owners.iter().map(|owner| owner.number).collect::<Vec<_>>());
        for row in self.transaction.query(&sql, params![ids, numbers, limit])? {
            let mut all = vec![read(&row, 0, Kind::Id)?];
            all.extend(values(layout, (&row, 1))?);
            rows.push(Values(all));
        }
        Ok(())
    }

    /// Returns the next stores, deleted or not, that have a row in a table.
    fn next_owners(&self, layout: &Layout, after: Option<Bits>) -> Result<Vec<Owner>, Error> {
        let table = layout.table;
        // The limit inside keeps the server from reading the whole table to answer for all stores at once.
        let sql = format!(
            "SELECT id, num FROM ({OWNERS}) s
             CROSS JOIN LATERAL
                (SELECT 1 FROM {table} WHERE store = s.num {} LIMIT 1) found
             WHERE id > $1 ORDER BY id LIMIT $2",
            layout.same_partition("store", "s.num")
        );
        let count = number(self.owners_count.get());
        let rows = self.transaction.query(&sql, params![after.unwrap_or_default(), count])?;
        rows.iter().map(|row| Ok(Owner { id: row.value(0)?, number: row.value(1)? })).collect()
    }

    /// Returns the numbers of stores; one that is not here is left out.
    pub(super) fn numbers(&self, stores: &[Value]) -> Result<HashMap<Vec<u8>, i64>, Error> {
        let ids = stores.iter().filter_map(|store| match store {
            Value::Bytes(bytes) => bytes.first_chunk().map(|bits| Bits(u128::from_be_bytes(*bits))),
            Value::Null | Value::Integer(_) | Value::Text(_) => None,
        });
        let ids = List(ids.collect::<Vec<_>>());
        let sql = format!("SELECT id, num FROM ({OWNERS}) s WHERE id = ANY ($1)");
        let rows = self.transaction.query(&sql, params![ids])?;
        let numbers = rows.iter().map(|row| {
            let id: Bits = row.value(0)?;
            Ok((id.0.to_be_bytes().to_vec(), row.value(1)?))
        });
        numbers.collect()
    }
}

impl RowReader for Exporter<'_> {
    fn rows(&self, table: &Table, page: Page<'_>) -> Result<Vec<Values>, Error> {
        let layout = layout(table)?;
        if !layout.is_owned {
            return self.free_rows(layout, page);
        }
        let mut rows = Vec::new();
        let mut last = None;
        if let Some((store, key)) = page.after.and_then(|key| key.split_first()) {
            self.add_rest(layout, (store, key), page, &mut rows)?;
            let Value::Bytes(bytes) = store else { return Err(error::damaged()) };
            let bits = bytes.first_chunk().copied().ok_or_else(error::damaged)?;
            last = Some(Bits(u128::from_be_bytes(bits)));
        }
        while rows.len() < page.limit {
            let owners = self.next_owners(layout, last)?;
            let Some(newest) = owners.last() else { break };
            last = Some(newest.id);
            self.add_owned(layout, &owners, page, &mut rows)?;
            let is_full = rows.len() >= page.limit;
            let count = self.owners_count.get();
            self.owners_count.set(if is_full { 1 } else { (count * 2).min(OWNERS_MAX) });
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

fn select(layout: &Layout, view: View) -> String {
    let column = |(name, _): &(&'static str, Kind)| match (view, *name) {
        (View::Basic, CONTENT) => "NULL::text",
        (View::Basic | View::Full, name) => name,
    };
    layout.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Returns the values of a row, which begin at a column.
fn values(layout: &Layout, (row, first): (&Row, usize)) -> Result<Vec<Value>, Error> {
    let columns = layout.columns.iter().enumerate();
    columns.map(|(column, (_, kind))| read(row, first + column, *kind)).collect()
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
    let places: Vec<_> = (first..first + stored.len()).map(|place| format!("${place}")).collect();
    let condition = format!("({}) > ({})", key(layout).join(", "), places.join(", "));
    Ok((stored, condition))
}
