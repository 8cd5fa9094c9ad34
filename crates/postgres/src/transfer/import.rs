//! Writing rows, many at a time.

use std::collections::{BTreeMap, HashMap};

use quipu_core::Error;
use quipu_core::model::{Id as _, SessionId};
use quipu_core::transfer::{Page, Row as Values, RowReader, RowWriter, Table, Value};

use super::export::Exporter;
use super::layout::{Array, Kind, Layout, OWNERS, has_other_text, key, layout};
use crate::error;
use crate::partition::{self, Partition};
use crate::values::{Bits, Columns as _, List, number, params};

/// Changes rows inside of a transaction.
pub(super) struct Importer<'t>(pub(super) Exporter<'t>);

/// Rows of one table of the database, with the number of their store if they have one.
type Part<'r> = Vec<(Option<i64>, &'r Values)>;

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
    fn put_rows(&mut self, table: &Table, rows: &[Values]) -> Result<(), Error> {
        let layout = layout(table)?;
        if layout.name == "stores" {
            return self.put_stores(rows);
        }
        for (name, part) in self.parts(layout, rows)? {
            let redacted: Part<'_> = part
                .iter()
                .filter(|(_, row)| row.0.last() == Some(&Value::Null))
                .copied()
                .collect();
            self.require_erasure(
                layout,
                (&name, if layout.has_texts() { &redacted } else { &part }),
            )?;
            self.put(layout, &name, &part)?;
        }
        Ok(())
    }

    fn remove_rows(&mut self, table: &Table, rows: &[Values]) -> Result<(), Error> {
        let layout = layout(table)?;
        if layout.name == "stores" {
            return self.remove_stores(rows);
        }
        for (name, part) in self.parts(layout, rows)? {
            self.require_erasure(layout, (&name, &part))?;
            let (select, columns, arrays) = keys(layout, &part)?;
            let sql = format!(
                "DELETE FROM {name} USING {select} WHERE ({}) = ({})",
                qualified(&name, &columns),
                qualified("gone", &columns)
            );
            self.0.transaction.execute(&sql, &params_of(&arrays))?;
        }
        Ok(())
    }

    fn put_mark(&mut self, name: &str, value: u64) -> Result<(), Error> {
        let sql = "INSERT INTO cursors (name, sequence) VALUES ($1, $2)
            ON CONFLICT (name) DO UPDATE SET sequence = excluded.sequence";
        self.0.transaction.execute(sql, params![name, number(value)]).map(drop)
    }

    fn derive_usage(&mut self, stores: &[Values]) -> Result<(), Error> {
        let ids: Vec<_> = stores.iter().filter_map(|row| row.0.first().cloned()).collect();
        let numbers = List(self.0.numbers(&ids)?.into_values().collect::<Vec<_>>());
        for table in ["stores", "restorable_stores"] {
            let sql = format!(
                "UPDATE {table} s SET memories_count = u.memories_count, size_bytes = u.size_bytes
                 FROM unnest($1::bigint[]) n (num)
                 CROSS JOIN LATERAL (SELECT count(*) AS memories_count,
                        coalesce(sum(m.size_bytes), 0)::bigint AS size_bytes
                    FROM memories m WHERE m.store = n.num AND m.store % 16 = n.num % 16) u
                 WHERE s.num = n.num"
            );
            self.0.transaction.execute(&sql, params![numbers])?;
        }
        Ok(())
    }

    fn derive(&mut self) -> Result<(), Error> {
        for sql in [
            "SELECT setval('refusal_numbers', (SELECT coalesce(max(num), 0) + 1 FROM refusals), false)",
            "SELECT setval(pg_get_serial_sequence('copies_made', 'num'),
                (SELECT coalesce(max(num), 0) + 1 FROM copies_made), false)",
            "UPDATE counter SET (sequence, at) = (n.sequence, n.at)
                FROM (SELECT sequence, at FROM changes ORDER BY sequence DESC LIMIT 1) n",
        ] {
            self.0.transaction.execute(sql, &[])?;
        }
        for row in self.0.transaction.query("SELECT id FROM workspaces", &[])? {
            let workspace: Bits = row.value(0)?;
            let sql = "UPDATE workspaces w SET events_size_bytes =
                (SELECT coalesce(sum(u.size_bytes), 0)::bigint
                    FROM sessions s JOIN event_usage u ON u.session = s.id WHERE s.workspace = w.id)
                WHERE w.id = $1";
            self.0.transaction.execute(sql, params![workspace])?;
        }
        Ok(())
    }
}

impl Importer<'_> {
    /// Returns rows by the table of the database that holds them.
    fn parts<'r>(
        &self,
        layout: &Layout,
        rows: &'r [Values],
    ) -> Result<BTreeMap<String, Part<'r>>, Error> {
        let mut parts: BTreeMap<_, Part<'r>> = BTreeMap::new();
        if partition::OF_SESSIONS.contains(&layout.table) {
            for row in rows {
                let Some(Value::Bytes(session)) = row.0.first() else {
                    return Err(error::damaged());
                };
                let bits = session.first_chunk().copied().ok_or_else(error::damaged)?;
                let session = SessionId::from_bits(u128::from_be_bytes(bits));
                let part = self.0.transaction.session_part(session)?;
                parts.entry(format!("{}_{part}", layout.table)).or_default().push((None, row));
            }
            return Ok(parts);
        }
        if !layout.is_owned {
            parts.insert(layout.table.to_owned(), rows.iter().map(|row| (None, row)).collect());
            return Ok(parts);
        }
        let ids: Vec<_> = rows.iter().filter_map(|row| row.0.first().cloned()).collect();
        let numbers = self.0.numbers(&ids)?;
        for row in rows {
            let Some(Value::Bytes(store)) = row.0.first() else { return Err(error::damaged()) };
            let number = *numbers.get(store).ok_or_else(error::damaged)?;
            if layout.is_partitioned() {
                self.0.transaction.enter_partition(Partition::of_store(number))?;
            }
            parts.entry(layout.table_of(number)).or_default().push((Some(number), row));
        }
        Ok(parts)
    }

    /// Adds or replaces rows of one table.
    fn put(&self, layout: &Layout, table: &str, rows: &Part<'_>) -> Result<(), Error> {
        let (mut names, mut arrays) = (Vec::new(), Vec::new());
        if layout.is_owned {
            names.push("store");
            arrays.push(Array::numbers(rows.iter().map(|(number, _)| *number)));
        }
        let offset = usize::from(layout.is_owned);
        for (column, (name, kind)) in layout.columns.iter().enumerate() {
            names.push(name);
            arrays.push(Array::new(*kind, rows.iter().map(|(_, row)| row.0.get(column + offset)))?);
        }
        let mut conflict = key(layout);
        if layout.is_owned {
            conflict.insert(0, "store");
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
            "INSERT INTO {table} ({}) SELECT * FROM {} ON CONFLICT ({}) DO {then}",
            names.join(", "),
            unnest(&arrays, 1),
            conflict.join(", "),
        );
        self.0.transaction.execute(&sql, &params_of(&arrays)).map(drop)
    }

    /// Records that the text of rows, where it is here, has to be erased.
    fn require_erasure(
        &self,
        layout: &Layout,
        (table, rows): (&str, &Part<'_>),
    ) -> Result<(), Error> {
        if rows.is_empty() || !(layout.has_texts() || has_other_text(layout.name)) {
            return Ok(());
        }
        let (select, columns, arrays) = keys(layout, rows)?;
        let (of, condition) = if layout.has_texts() {
            ("s.id, r.memory", "AND r.content IS NOT NULL")
        } else {
            (OF_NO_STORE, "")
        };
        let owners = if layout.is_owned {
            format!("JOIN ({OWNERS}) s ON s.num = r.store")
        } else {
            String::new()
        };
        let sql = format!(
            "INSERT INTO erasures
                SELECT DISTINCT {of}, (SELECT sequence FROM counter) + 1
                    FROM {table} r JOIN {select} ON ({}) = ({}) {condition} {owners}
             ON CONFLICT (store, memory)
                DO UPDATE SET count = greatest(erasures.count + 1, excluded.count)
             RETURNING 1",
            qualified("r", &columns),
            qualified("gone", &columns)
        );
        let pending = self.0.transaction.execute(&sql, &params_of(&arrays))?;
        if !pending.is_empty() {
            self.0.transaction.require_erasure(rows.first().and_then(|(number, _)| *number));
            self.0.transaction.lose(table);
        }
        Ok(())
    }

    /// Rows of a store are found by its number, so it keeps that when it is replaced.
    fn put_stores(&self, rows: &[Values]) -> Result<(), Error> {
        let transaction = self.0.transaction;
        let ids: Vec<_> = rows.iter().filter_map(|row| row.0.first().cloned()).collect();
        let mut numbers = self.0.numbers(&ids)?;
        let missing: Vec<_> = ids
            .iter()
            .filter_map(|id| {
                let Value::Bytes(bytes) = id else { return None };
                (!numbers.contains_key(bytes)).then(|| bytes.clone())
            })
            .collect();
        let sql = "SELECT nextval(pg_get_serial_sequence('stores', 'num'))
            FROM generate_series(1, $1::bigint)";
        let new = transaction.query(sql, params![number(missing.len())])?;
        for (id, row) in missing.into_iter().zip(&new) {
            numbers.insert(id, row.value(0)?);
        }
        let ids = Array::new(Kind::Id, ids.iter().map(Some))?;
        for table in ["stores", "restorable_stores"] {
            let sql = format!("DELETE FROM {table} WHERE id = ANY ($1)");
            transaction.execute(&sql, &[ids.param()])?;
        }
        let (mut live, mut deleted) = (Part::new(), Part::new());
        let mut texts: BTreeMap<_, Part<'_>> = BTreeMap::new();
        for row in rows {
            let (Some(Value::Bytes(id)), Some(deleted_at)) = (row.0.first(), row.0.last()) else {
                return Err(error::damaged());
            };
            let number = *numbers.get(id).ok_or_else(error::damaged)?;
            let part = if *deleted_at == Value::Null { &mut live } else { &mut deleted };
            part.push((Some(number), row));
            let partition = Partition::of_store(number);
            transaction.enter_partition(partition)?;
            texts.entry(partition.number()).or_default().push((Some(number), row));
        }
        self.put_rows_of_stores("stores", &live)?;
        self.put_rows_of_stores("restorable_stores", &deleted)?;
        for (part, rows) in texts {
            self.put_texts(part, &rows)?;
        }
        Ok(())
    }

    /// Adds the rows of stores but for their texts.
    fn put_rows_of_stores(&self, table: &str, rows: &Part<'_>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut names = vec!["num"];
        let mut arrays = vec![Array::numbers(rows.iter().map(|(number, _)| *number))];
        let layout = super::layout::stores();
        for (column, (name, kind)) in layout.columns.iter().enumerate() {
            let is_text = TEXTS.contains(name);
            if is_text || (*name == "deleted_at" && table == "stores") {
                continue;
            }
            names.push(name);
            arrays.push(Array::new(*kind, rows.iter().map(|(_, row)| row.0.get(column)))?);
        }
        let sql = format!(
            "INSERT INTO {table} ({}, memories_count, size_bytes) SELECT *, 0, 0 FROM {}",
            names.join(", "),
            unnest(&arrays, 1)
        );
        self.0.transaction.execute(&sql, &params_of(&arrays)).map(drop)
    }

    fn put_texts(&self, part: u8, rows: &Part<'_>) -> Result<(), Error> {
        let mut arrays = vec![Array::numbers(rows.iter().map(|(number, _)| *number))];
        let layout = super::layout::stores();
        for text in TEXTS {
            let place = layout.columns.iter().position(|(name, _)| *name == text);
            let column = place.ok_or_else(error::damaged)?;
            arrays.push(Array::new(Kind::Text, rows.iter().map(|(_, row)| row.0.get(column)))?);
        }
        let sql = format!(
            "INSERT INTO store_texts_{part} (store, {}) SELECT * FROM {}
             ON CONFLICT (store) DO UPDATE SET name = excluded.name,
                description = excluded.description, metadata = excluded.metadata",
            TEXTS.join(", "),
            unnest(&arrays, 1)
        );
        self.0.transaction.execute(&sql, &params_of(&arrays)).map(drop)
    }

    /// What belongs to them went before.
    fn remove_stores(&self, rows: &[Values]) -> Result<(), Error> {
        let transaction = self.0.transaction;
        let ids: Vec<_> = rows.iter().filter_map(|row| row.0.first().cloned()).collect();
        let numbers: HashMap<_, _> = self.0.numbers(&ids)?;
        let ids = Array::new(Kind::Id, ids.iter().map(Some))?;
        let sql = format!(
            "INSERT INTO erasures SELECT s.id, $2, (SELECT sequence FROM counter) + 1
                FROM ({OWNERS}) s WHERE s.id = ANY ($1)
             ON CONFLICT (store, memory)
                DO UPDATE SET count = greatest(erasures.count + 1, excluded.count)"
        );
        transaction.execute(&sql, &[ids.param(), &Bits::MAX])?;
        for number in numbers.into_values() {
            let (number, part) = transaction.place_of(number)?;
            transaction.require_erasure(Some(number));
            let sql = format!("DELETE FROM store_texts_{part} WHERE store = $1");
            transaction.execute(&sql, params![number])?;
        }
        for table in ["stores", "restorable_stores"] {
            let sql = format!("DELETE FROM {table} WHERE id = ANY ($1)");
            transaction.execute(&sql, &[ids.param()])?;
        }
        Ok(())
    }
}

/// The columns of a store that are in a table of their own.
const TEXTS: [&str; 3] = ["name", "description", "metadata"];

/// The store and the memory of text that belongs to no store.
const OF_NO_STORE: &str = "'00000000-0000-0000-0000-000000000000'::uuid,
    '00000000-0000-0000-0000-000000000000'::uuid";

/// Returns the keys of rows as a table `gone`, its columns, and their values.
fn keys(
    layout: &Layout,
    rows: &Part<'_>,
) -> Result<(String, Vec<&'static str>, Vec<Array>), Error> {
    let (mut names, mut arrays) = (key(layout), Vec::new());
    let offset = usize::from(layout.is_owned);
    for (column, (_, kind)) in layout.columns.iter().enumerate().take(layout.key_length) {
        arrays.push(Array::new(*kind, rows.iter().map(|(_, row)| row.0.get(column + offset)))?);
    }
    if layout.is_owned {
        names.insert(0, "store");
        arrays.insert(0, Array::numbers(rows.iter().map(|(number, _)| *number)));
    }
    let select = format!("{} gone ({})", unnest(&arrays, 1), names.join(", "));
    Ok((select, names, arrays))
}

fn unnest(arrays: &[Array], first: usize) -> String {
    let places = (first..).zip(arrays);
    let places = places.map(|(place, array)| format!("${place}::{}", array.sql_type()));
    format!("unnest({})", places.collect::<Vec<_>>().join(", "))
}

fn qualified(table: &str, columns: &[&str]) -> String {
    let columns = columns.iter().map(|column| format!("{table}.{column}"));
    columns.collect::<Vec<_>>().join(", ")
}

fn params_of(arrays: &[Array]) -> Vec<crate::values::Param<'_>> {
    arrays.iter().map(Array::param).collect()
}
