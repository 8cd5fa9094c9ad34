//! Rows as they are, for a move to or from another backend.
//!
//! Here a store has a small number, and the rows of a deleted one are in another table; elsewhere they are
//! not. So this translates between the tables of this file and those of [`quipu_core::transfer`]; [`mod@layout`]
//! lists them.

#[macro_use]
mod layout;

use quipu_core::Error;
use quipu_core::model::{Id as _, MemoryId, StoreId, View};
use quipu_core::transfer::{
    ExportWork, ImportWork, Page, Row, RowReader, RowWriter, Table, Transfer, Value,
};
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{
    Connection, OptionalExtension as _, Result as Sql, ToSql, params, params_from_iter,
};

use layout::{LAYOUTS, Layout, has_other_text, layout, own_key};

use crate::error::StorageResult as _;
use crate::{SqliteBackend, erase, rows};

impl Transfer for SqliteBackend {
    fn export(&self, work: &mut ExportWork<'_>) -> Result<(), Error> {
        self.readers.with_new(|connection| {
            let snapshot = connection.unchecked_transaction().or_storage_error()?;
            work(&Exporter { connection: &snapshot })
        })
    }

    fn import(&self, work: &mut ImportWork<'_>) -> Result<(), Error> {
        self.writer()?.run(self.deadline(), &mut |writer| {
            work(&mut Importer(Exporter { connection: writer.connection()? }))
        })
    }
}

/// Reads the rows of one transaction.
struct Exporter<'c> {
    connection: &'c Connection,
}

impl RowReader for Exporter<'_> {
    fn rows(&self, table: &Table, page: Page<'_>) -> Result<Vec<Row>, Error> {
        let layout = layout(table)?;
        if !layout.is_owned {
            return self.free_rows(layout, table, page).or_storage_error();
        }
        let after = page.after.and_then(|key| key.split_first());
        let mut rows = Vec::new();
        if let Some((store, key)) = after {
            let owner = Owner { id: store.clone(), number: self.number(store).or_storage_error()? };
            self.owned_rows(layout, &owner, Page { after: Some(key), ..page }, &mut rows)
                .or_storage_error()?;
        }
        let mut last = after.map(|(store, _)| store.clone());
        while rows.len() < page.limit {
            let Some(owner) = self.next_owner(layout, last.as_ref()).or_storage_error()? else {
                break;
            };
            let limit = page.limit - rows.len();
            self.owned_rows(layout, &owner, Page { after: None, limit, ..page }, &mut rows)
                .or_storage_error()?;
            last = Some(owner.id);
        }
        Ok(rows)
    }

    fn count(&self, table: &Table) -> Result<u64, Error> {
        let layout = layout(table)?;
        let condition = if layout.is_owned {
            "WHERE store IN (SELECT num FROM stores UNION SELECT num FROM restorable_stores)"
        } else {
            ""
        };
        let sql = format!("SELECT count(*) FROM {} {condition}", layout.from);
        self.connection.query_row(&sql, [], |row| row.get(0)).or_storage_error()
    }

    fn newest_sequence(&self) -> Result<u64, Error> {
        rows::newest_sequence(self.connection).map(|newest| newest.0).or_storage_error()
    }

    fn mark(&self, name: &str) -> Result<Option<u64>, Error> {
        let sql = "SELECT sequence FROM cursors WHERE name = ?1";
        let found = self.connection.query_row(sql, [name], |row| row.get(0));
        found.optional().or_storage_error()
    }
}

/// A store that owns rows.
struct Owner {
    id: Value,
    number: SqlValue,
}

impl Exporter<'_> {
    fn free_rows(&self, layout: &Layout, table: &Table, page: Page<'_>) -> Sql<Vec<Row>> {
        let key = table.columns.get(..table.key_length).unwrap_or_default().join(", ");
        let after = page.after.unwrap_or_default();
        let condition = greater(&key, after.len());
        let (select, from, limit) = (layout.select, layout.from, page.limit);
        let sql =
            format!("SELECT {select} FROM {from} WHERE {condition} ORDER BY {key} LIMIT {limit}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(params_from_iter(after.iter().map(Stored)))?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push(Row(values(row)?));
        }
        Ok(rows)
    }

    /// Adds rows of one store to `rows`.
    fn owned_rows(
        &self,
        layout: &Layout,
        owner: &Owner,
        page: Page<'_>,
        rows: &mut Vec<Row>,
    ) -> Sql<()> {
        let (after, text) = (page.after.unwrap_or_default(), text_column(page.view));
        let key = own_key(layout).join(", ");
        let condition = greater(&key, after.len());
        let (select, table, limit) =
            (layout.select.replace("{text}", text), layout.table, page.limit);
        let order = if key.is_empty() { "1" } else { &key };
        let sql = format!(
            "SELECT {select} FROM {table} r WHERE store = ? AND {condition}
             ORDER BY {order} LIMIT {limit}"
        );
        // A key of the store alone has no row after it.
        if page.after.is_some() && after.is_empty() {
            return Ok(());
        }
        let parameters = [owner.number.clone()].into_iter().chain(after.iter().map(to_sql));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(params_from_iter(parameters))?;
        while let Some(row) = found.next()? {
            let mut all = vec![owner.id.clone()];
            all.extend(values(row)?);
            rows.push(Row(all));
        }
        Ok(())
    }

    /// Returns the next store, deleted or not, that has a row in a table.
    fn next_owner(&self, layout: &Layout, after: Option<&Value>) -> Sql<Option<Owner>> {
        let table = layout.table;
        let sql = format!(
            "SELECT id, num FROM
                (SELECT id, num FROM stores UNION ALL SELECT id, num FROM restorable_stores) s
             WHERE id > ?1 AND EXISTS (SELECT 1 FROM {table} r WHERE r.store = s.num)
             ORDER BY id LIMIT 1"
        );
        let after = after.cloned().unwrap_or(Value::Bytes(Vec::new()));
        let owner =
            |row: &rusqlite::Row<'_>| Ok(Owner { id: from_sql(row.get(0)?), number: row.get(1)? });
        self.connection.prepare_cached(&sql)?.query_row([Stored(&after)], owner).optional()
    }

    /// Returns the number of a store; nothing if it is not here, which no row can refer to.
    fn number(&self, store: &Value) -> Sql<SqlValue> {
        let sql = "SELECT num FROM stores WHERE id = ?1
            UNION ALL SELECT num FROM restorable_stores WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row([Stored(store)], |row| row.get(0)).optional()?;
        Ok(found.map_or(SqlValue::Null, SqlValue::Integer))
    }
}

fn text_column(view: View) -> &'static str {
    match view {
        View::Basic => "NULL",
        View::Full => "(SELECT content FROM texts t WHERE t.at = r.at)",
    }
}

/// Returns the condition that a key is greater than as many parameters.
fn greater(key: &str, parameters_count: usize) -> String {
    match parameters_count {
        0 => "true".to_owned(),
        count => format!("({key}) > ({})", parameters(count)),
    }
}

fn values(row: &rusqlite::Row<'_>) -> Sql<Vec<Value>> {
    (0..row.as_ref().column_count()).map(|column| row.get(column).map(from_sql)).collect()
}

/// Changes rows inside of a transaction.
struct Importer<'c>(Exporter<'c>);

impl RowReader for Importer<'_> {
    fn rows(&self, table: &Table, page: Page<'_>) -> Result<Vec<Row>, Error> {
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
    fn put_rows(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        rows.iter().try_for_each(|row| self.put_row(table, row)).or_storage_error()
    }

    fn remove_rows(&mut self, table: &Table, rows: &[Row]) -> Result<(), Error> {
        rows.iter().try_for_each(|row| self.remove_row(table, row.key(table))).or_storage_error()
    }

    fn put_mark(&mut self, name: &str, value: u64) -> Result<(), Error> {
        let sql = "INSERT OR REPLACE INTO cursors (name, sequence) VALUES (?1, ?2)";
        self.0.connection.execute(sql, params![name, value]).map(drop).or_storage_error()
    }

    /// All of them are recomputed at the end, by one statement.
    fn derive_usage(&mut self, _: &[Row]) -> Result<(), Error> {
        Ok(())
    }

    fn derive(&mut self) -> Result<(), Error> {
        rows::rebuild(self.0.connection).or_storage_error()?;
        let sql = "UPDATE restorable_stores SET
            memories_count =
                (SELECT count(*) FROM memories m WHERE m.store = restorable_stores.num),
            size_bytes = (SELECT ifnull(sum(m.size_bytes), 0) FROM memories m
                WHERE m.store = restorable_stores.num)";
        self.0.connection.execute(sql, []).or_storage_error()?;
        let sql = "UPDATE workspaces SET events_size_bytes = (SELECT ifnull(sum(u.size_bytes), 0)
            FROM event_usage u JOIN sessions s ON s.id = u.session
            WHERE s.workspace = workspaces.id)";
        self.0.connection.execute(sql, []).map(drop).or_storage_error()
    }
}

impl Importer<'_> {
    fn put_row(&self, table: &Table, row: &Row) -> Sql<()> {
        match table.name {
            "stores" => self.put_store(row),
            "versions" => self.put_version(table, row),
            name if has_other_text(name) => self
                .require_erasure(table, row.key(table))
                .and_then(|()| self.replace(table, table.columns, row)),
            _ => self.replace(table, table.columns, row),
        }
    }

    fn remove_row(&self, table: &Table, key: &[Value]) -> Sql<()> {
        match table.name {
            "stores" => self.remove_store(key),
            "versions" => self.remove_version(key),
            name if has_other_text(name) => {
                self.require_erasure(table, key).and_then(|()| self.remove(table, key))
            }
            _ => self.remove(table, key),
        }
    }
}

impl Importer<'_> {
    /// Returns the values of a row as they are stored here.
    fn stored(&self, layout: &Layout, values: &[Value]) -> Sql<Vec<SqlValue>> {
        let stored = |(column, value): (usize, &Value)| {
            if layout.is_owned && column == 0 { self.0.number(value) } else { Ok(to_sql(value)) }
        };
        values.iter().enumerate().map(stored).collect()
    }

    fn replace(&self, table: &Table, columns: &[&str], row: &Row) -> Sql<()> {
        let Some(layout) = LAYOUTS.iter().find(|layout| layout.name == table.name) else {
            return Ok(());
        };
        let (name, columns_count) = (layout.table, columns.len());
        let (columns, places) = (columns.join(", "), parameters(columns_count));
        let sql = format!("INSERT OR REPLACE INTO {name} ({columns}) VALUES ({places})");
        let values = self.stored(layout, row.0.get(..columns_count).unwrap_or(&row.0))?;
        self.0.connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map(drop)
    }

    fn remove(&self, table: &Table, key: &[Value]) -> Sql<()> {
        let Some(layout) = LAYOUTS.iter().find(|layout| layout.name == table.name) else {
            return Ok(());
        };
        let columns = table.columns.get(..key.len()).unwrap_or_default().join(", ");
        let (name, places) = (layout.table, parameters(key.len()));
        let sql = format!("DELETE FROM {name} WHERE ({columns}) = ({places})");
        let values = self.stored(layout, key)?;
        self.0.connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map(drop)
    }

    /// Its rows are found by its number, so a store keeps that when it is replaced.
    fn put_store(&self, row: &Row) -> Sql<()> {
        let Some(([id, ..], deleted_at)) = row.0.split_last().map(|(last, rest)| (rest, last))
        else {
            return Ok(());
        };
        let connection = self.0.connection;
        let number = self.0.number(id)?;
        for table in ["stores", "restorable_stores"] {
            connection.execute(&format!("DELETE FROM {table} WHERE id = ?1"), [Stored(id)])?;
        }
        let values = row.0.iter().take(row.0.len() - 1).map(to_sql);
        let sql = concat!(
            "INSERT INTO stores (num, ",
            store_columns!(),
            ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        );
        connection.execute(sql, params_from_iter([number].into_iter().chain(values)))?;
        if *deleted_at == Value::Null {
            return Ok(());
        }
        let sql = concat!(
            "INSERT INTO restorable_stores (num, memories_count, size_bytes, deleted_at, ",
            store_columns!(),
            ") SELECT num, 0, 0, ?2, ",
            store_columns!(),
            " FROM stores WHERE id = ?1"
        );
        connection.execute(sql, params![Stored(id), Stored(deleted_at)])?;
        connection.execute("DELETE FROM stores WHERE id = ?1", [Stored(id)]).map(drop)
    }

    fn put_version(&self, table: &Table, row: &Row) -> Sql<()> {
        let Some((text, rest)) = row.0.split_last() else { return Ok(()) };
        if *text == Value::Null {
            self.remove_text(rest)?;
        }
        let columns = table.columns.get(..rest.len()).unwrap_or_default();
        self.replace(table, columns, row)?;
        let (Some(at), false) = (rest.get(1), *text == Value::Null) else { return Ok(()) };
        let sql = "INSERT OR REPLACE INTO texts (at, content) VALUES (?1, ?2)";
        let mut statement = self.0.connection.prepare_cached(sql)?;
        statement.execute(params![Stored(at), Stored(text)]).map(drop)
    }

    fn remove_version(&self, key: &[Value]) -> Sql<()> {
        self.remove_text(key)?;
        let [_, at, ..] = key else { return Ok(()) };
        let sql = "DELETE FROM versions WHERE at = ?1";
        self.0.connection.prepare_cached(sql)?.execute([Stored(at)]).map(drop)
    }

    /// Makes an erasure pending for text that belongs to no store, if the row is here.
    fn require_erasure(&self, table: &Table, key: &[Value]) -> Sql<()> {
        let Some(layout) = LAYOUTS.iter().find(|layout| layout.name == table.name) else {
            return Ok(());
        };
        let columns = table.columns.get(..key.len()).unwrap_or_default().join(", ");
        let (name, places) = (layout.table, parameters(key.len()));
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {name} WHERE ({columns}) = ({places}))");
        let mut statement = self.0.connection.prepare_cached(&sql)?;
        let is_here = statement
            .query_row(params_from_iter(key.iter().map(Stored)), |row| row.get::<_, bool>(0))?;
        if !is_here {
            return Ok(());
        }
        let memory = MemoryId::from_bits(0);
        erase::set_pending(self.0.connection, StoreId::from_bits(0), Some(memory))
    }

    fn remove_text(&self, row: &[Value]) -> Sql<()> {
        let [Value::Bytes(store), at, ..] = row else { return Ok(()) };
        let connection = self.0.connection;
        let sql = "DELETE FROM texts WHERE at = ?1";
        if connection.prepare_cached(sql)?.execute([Stored(at)])? == 0 {
            return Ok(());
        }
        let sql = "SELECT memory FROM versions WHERE at = ?1";
        let memory = connection.query_row(sql, [Stored(at)], |row| row.get(0)).optional()?;
        let memory = memory.map(|bytes| MemoryId::from_bits(u128::from_be_bytes(bytes)));
        let store = store.first_chunk().copied().map(u128::from_be_bytes).unwrap_or_default();
        erase::set_pending(connection, StoreId::from_bits(store), memory)
    }

    /// What belongs to it went before.
    fn remove_store(&self, key: &[Value]) -> Sql<()> {
        let [id @ Value::Bytes(bytes)] = key else { return Ok(()) };
        for table in ["stores", "restorable_stores"] {
            let sql = format!("DELETE FROM {table} WHERE id = ?1");
            self.0.connection.execute(&sql, [Stored(id)])?;
        }
        let bits = bytes.first_chunk().copied().map(u128::from_be_bytes).unwrap_or_default();
        erase::set_pending(self.0.connection, StoreId::from_bits(bits), None)
    }
}

/// Returns as many placeholders.
fn parameters(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// A value as a parameter.
struct Stored<'v>(&'v Value);

impl ToSql for Stored<'_> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

fn to_sql(value: &Value) -> SqlValue {
    match value {
        Value::Null => SqlValue::Null,
        Value::Integer(number) => SqlValue::Integer(*number),
        Value::Bytes(bytes) => SqlValue::Blob(bytes.clone()),
        Value::Text(text) => SqlValue::Text(text.clone()),
    }
}

fn from_sql(value: SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => Value::Integer(number),
        // No table has one.
        SqlValue::Real(number) => Value::Text(number.to_string()),
        SqlValue::Blob(bytes) => Value::Bytes(bytes),
        SqlValue::Text(text) => Value::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::transfer::TABLES;

    use super::*;
    use crate::OpenMode;

    /// Tables whose rows a move does not carry: they are about this file, or are carried under the name of
    /// another one.
    const OTHERS: [&str; 5] =
        ["texts", "restorable_stores", "removed_stores", "erasures", "sqlite_sequence"];

    #[test]
    fn a_move_forgets_no_table_and_no_column() {
        let directory = tempfile::tempdir().unwrap();
        let backend = SqliteBackend::open(directory.path(), OpenMode::Create).unwrap();
        let mut tables: Vec<String> = backend
            .readers
            .with_new(|connection| {
                let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
                let mut statement = connection.prepare(sql).or_storage_error()?;
                let names = statement.query_map([], |row| row.get(0)).or_storage_error()?;
                names.collect::<Sql<_>>().or_storage_error()
            })
            .unwrap();
        tables.retain(|table| !OTHERS.contains(&table.as_str()));
        for table in tables {
            let layout = LAYOUTS.iter().find(|layout| layout.table == table);
            let layout = layout.unwrap_or_else(|| panic!("no move carries `{table}`"));
            let listed = TABLES.iter().find(|listed| listed.name == layout.name).unwrap();
            let mut listed: Vec<_> = listed.columns.to_vec();
            // The text of a version is in a table of its own, and a store that is gone is too.
            listed.retain(|column| !["content", "deleted_at"].contains(column));
            let columns: Vec<String> = backend
                .readers
                .with_new(|connection| {
                    let sql = "SELECT name FROM pragma_table_info(?1)";
                    let mut statement = connection.prepare(sql).or_storage_error()?;
                    let names =
                        statement.query_map([&table], |row| row.get(0)).or_storage_error()?;
                    names.collect::<Sql<_>>().or_storage_error()
                })
                .unwrap();
            for column in columns {
                let is_own = match table.as_str() {
                    "stores" => ["num", "memories_count", "size_bytes"].contains(&column.as_str()),
                    "workspaces" => column == "events_size_bytes",
                    "session_events" => column == "num",
                    _ => false,
                };
                assert!(is_own || listed.contains(&column.as_str()), "{table}.{column}");
            }
        }
    }
}
