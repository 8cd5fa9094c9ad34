//! The index: notes, links and terms, all derived from memories.
//!
//! Terms are kept without the texts that they were made of. To take them out again, the entry is
//! made once more of the version that it was made of, which is why entries go before versions do.

mod expression;
mod search;
mod terms;
mod verify;

use std::mem;
use std::sync::Arc;

use quipu_core::index::{
    Entry, FactKind, INDEX_CURSOR, INDEX_CURSORS, LinkQuery, LinkRow, NoteName, NoteRow,
};
use quipu_core::model::{Memory, MemoryId, MemoryPath, StoreId, VersionId};
use quipu_core::note::Target;
use rusqlite::{Connection, OptionalExtension as _, Params, Result, Row, params};

use super::columns::{Columns as _, blob, limit};

pub(super) use search::{count, search};
pub(crate) use verify::verify;

use terms::{TermChanges, Terms};

/// How far the numbers of one store are from those of the next.
const STORE_SPAN: i64 = 1 << 32;
/// Where the numbers of a store's relations begin, behind those of its observations.
const RELATIONS_START: i64 = 1 << 31;

/// The number of a note that is in the index, and its store.
struct Indexed {
    num: i64,
    store: StoreId,
}

impl Indexed {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { num: row.get(0)?, store: row.id(1)? })
    }
}

pub(super) fn put_notes(connection: &Connection, entries: &[Arc<Entry>]) -> Result<()> {
    let mut changes = TermChanges::default();
    for entry in entries {
        put_note(connection, entry, &mut changes)?;
    }
    changes.apply(connection)
}

fn put_note<'e>(
    connection: &Connection,
    entry: &'e Entry,
    changes: &mut TermChanges<'e>,
) -> Result<()> {
    let row = &entry.row;
    let Some(store_num) = store_number(connection, row.store)? else { return Ok(()) };
    let num = match indexed(connection, row.memory)? {
        Some(old) => {
            take_out(connection, &old, changes)?;
            old.num
        }
        None => next_number(connection, "notes", store_num * STORE_SPAN, STORE_SPAN)?,
    };
    // Nobody asks for the source of a permalink any more; its column goes with the next migration.
    let sql = "INSERT INTO notes (num, store, memory, at, path, title, kind, permalink, created_at,
            permalink_source)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)";
    connection.prepare_cached(sql)?.execute(params![
        num,
        store_num,
        blob(row.memory),
        row.updated_at.as_micros(),
        row.path.as_str(),
        row.title,
        row.kind,
        row.permalink,
        row.created_at.as_micros(),
    ])?;
    changes.add(Terms::Notes, num, &entry.document);
    put_details(connection, store_num, num, entry)?;
    for fact in &entry.facts {
        let start = store_num * STORE_SPAN + facts_start(fact.kind);
        let fact_num = next_number(connection, "facts", start, RELATIONS_START)?;
        connection
            .prepare_cached("INSERT INTO facts (num, note, position) VALUES (?1, ?2, ?3)")?
            .execute(params![fact_num, num, fact.position])?;
        changes.add(Terms::Facts, fact_num, &fact.document);
    }
    Ok(())
}

fn put_details(connection: &Connection, store: i64, num: i64, entry: &Entry) -> Result<()> {
    let mut names = connection
        .prepare_cached("INSERT INTO note_names (store, key, note) VALUES (?1, ?2, ?3)")?;
    for key in &entry.names {
        names.execute(params![store, key, num])?;
    }
    let mut fields = connection.prepare_cached(
        "INSERT INTO note_fields (store, key, note, position, value) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (position, (key, value)) in entry.fields.iter().enumerate() {
        fields.execute(params![store, key, num, position, value])?;
    }
    let mut links = connection.prepare_cached(
        "INSERT INTO links (note, position, kind, target_store, target, section, alias, context,
            line)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let mut keys = connection.prepare_cached(
        "INSERT INTO link_keys (store, key, note, position) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for link in &entry.links {
        let LinkRow { position, kind, target, context, line, .. } = &link.row;
        links.execute(params![
            num,
            position,
            kind,
            target.store,
            target.name,
            target.section,
            target.alias,
            context,
            line
        ])?;
        for key in &link.keys {
            keys.execute(params![store, key, num, position])?;
        }
    }
    Ok(())
}

fn facts_start(kind: FactKind) -> i64 {
    match kind {
        FactKind::Observation => 0,
        FactKind::Relation => RELATIONS_START,
    }
}

/// Returns the number after the highest in a range.
fn next_number(connection: &Connection, table: &str, start: i64, length: i64) -> Result<i64> {
    let sql = format!("SELECT max(num) FROM {table} WHERE num >= ?1 AND num < ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let highest: Option<i64> = statement.query_row([start, start + length], |row| row.get(0))?;
    Ok(highest.map_or(start, |highest| highest + 1))
}

pub(super) fn remove_note(connection: &Connection, store: StoreId, memory: MemoryId) -> Result<()> {
    let old = indexed(connection, memory)?.filter(|old| old.store == store);
    take_all_out(connection, old.as_slice())
}

/// Removes the note that was made of the version of this moment, if there is one.
pub(super) fn remove_version(connection: &Connection, at: i64) -> Result<()> {
    let sql = "SELECT n.num, s.id FROM versions v JOIN notes n ON n.memory = v.memory
            JOIN stores s ON s.num = n.store
        WHERE v.at = ?1 AND n.at = v.at";
    let old = connection.prepare_cached(sql)?.query_row([at], Indexed::from_row).optional()?;
    take_out_or_clear(connection, old.as_slice())
}

pub(super) fn remove_store(connection: &Connection, store: StoreId) -> Result<()> {
    let Some(store_num) = store_number(connection, store)? else { return Ok(()) };
    let sql = "SELECT n.num, s.id FROM notes n JOIN stores s ON s.num = n.store
        WHERE n.store = ?1 ORDER BY n.num";
    let notes = connection
        .prepare_cached(sql)?
        .query_map([store_num], Indexed::from_row)?
        .collect::<Result<Vec<_>>>()?;
    take_out_or_clear(connection, &notes)
}

/// Removes notes from the index. The terms of one that another kind of program made cannot be told,
/// so nothing is left of such an index; it is built anew before the next search.
fn take_out_or_clear(connection: &Connection, notes: &[Indexed]) -> Result<()> {
    let sql = "SELECT EXISTS (SELECT 1 FROM cursors
        WHERE substr(name, 1, length(?1)) = ?1 AND substr(name, 1, length(?2)) <> ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    let is_foreign: bool = statement.query_row([INDEX_CURSORS, INDEX_CURSOR], |row| row.get(0))?;
    if is_foreign && !notes.is_empty() {
        clear(connection)
    } else {
        take_all_out(connection, notes)
    }
}

pub(super) fn clear(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "DELETE FROM facts; DELETE FROM link_keys; DELETE FROM links; DELETE FROM note_fields;
        DELETE FROM note_names; DELETE FROM notes;
        INSERT INTO note_terms (note_terms) VALUES ('delete-all');
        INSERT INTO fact_terms (fact_terms) VALUES ('delete-all');",
    )?;
    let sql = "DELETE FROM cursors WHERE substr(name, 1, length(?1)) = ?1";
    connection.execute(sql, [INDEX_CURSORS]).map(drop)
}

/// Writes all terms anew, so that removed ones are in no part of the file.
pub(crate) fn compact(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "INSERT INTO note_terms (note_terms) VALUES ('optimize');
        INSERT INTO fact_terms (fact_terms) VALUES ('optimize');",
    )
}

fn take_all_out(connection: &Connection, notes: &[Indexed]) -> Result<()> {
    let mut changes = TermChanges::default();
    for note in notes {
        take_out(connection, note, &mut changes)?;
    }
    changes.apply(connection)
}

/// Removes everything that the index has of a note; its terms go with the changes.
fn take_out(connection: &Connection, old: &Indexed, changes: &mut TermChanges<'_>) -> Result<()> {
    let num = old.num;
    // Without its version, which would be damage, the terms cannot be told; `quipu check` says so.
    if let Some(mut entry) = entry_again(connection, old)? {
        remove_details(connection, num / STORE_SPAN, num, &entry)?;
        changes.remove(Terms::Notes, num, mem::take(&mut entry.document));
        let facts = connection
            .prepare_cached("SELECT num, position FROM facts WHERE note = ?1 ORDER BY num")?
            .query_map([num], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<(i64, usize)>>>()?;
        for (fact_num, position) in facts {
            let is_relation = fact_num % STORE_SPAN >= RELATIONS_START;
            let kind = if is_relation { FactKind::Relation } else { FactKind::Observation };
            let mut facts = entry.facts.iter_mut();
            let fact = facts.find(|fact| fact.kind == kind && fact.position == position);
            if let Some(fact) = fact {
                changes.remove(Terms::Facts, fact_num, mem::take(&mut fact.document));
            }
        }
    }
    connection.prepare_cached("DELETE FROM facts WHERE note = ?1")?.execute([num])?;
    connection.prepare_cached("DELETE FROM links WHERE note = ?1")?.execute([num])?;
    connection.prepare_cached("DELETE FROM notes WHERE num = ?1")?.execute([num]).map(drop)
}

fn remove_details(connection: &Connection, store: i64, num: i64, entry: &Entry) -> Result<()> {
    let mut names = connection
        .prepare_cached("DELETE FROM note_names WHERE store = ?1 AND key = ?2 AND note = ?3")?;
    for key in &entry.names {
        names.execute(params![store, key, num])?;
    }
    let mut fields = connection
        .prepare_cached("DELETE FROM note_fields WHERE store = ?1 AND key = ?2 AND note = ?3")?;
    for (key, _) in &entry.fields {
        fields.execute(params![store, key, num])?;
    }
    let mut keys = connection
        .prepare_cached("DELETE FROM link_keys WHERE store = ?1 AND key = ?2 AND note = ?3")?;
    for key in entry.links.iter().flat_map(|link| &link.keys) {
        keys.execute(params![store, key, num])?;
    }
    Ok(())
}

fn store_number(connection: &Connection, store: StoreId) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT num FROM stores WHERE id = ?1")?;
    statement.query_row([blob(store)], |row| row.get(0)).optional()
}

fn indexed(connection: &Connection, memory: MemoryId) -> Result<Option<Indexed>> {
    let sql = "SELECT n.num, s.id FROM notes n JOIN stores s ON s.num = n.store
        WHERE n.memory = ?1";
    connection.prepare_cached(sql)?.query_row([blob(memory)], Indexed::from_row).optional()
}

/// Makes the entry of a note once more of the version that it was made of.
fn entry_again(connection: &Connection, old: &Indexed) -> Result<Option<Entry>> {
    let sql = "SELECT v.path, v.memory, v.id, v.hash, v.size_bytes, n.created_at, v.at, t.content
        FROM notes n JOIN versions v ON v.at = n.at JOIN texts t ON t.at = n.at
        WHERE n.num = ?1 AND v.path IS NOT NULL";
    let memory = |row: &Row<'_>| {
        Ok(Memory {
            path: row.path(0)?,
            id: row.id(1)?,
            store: old.store,
            version: row.id(2)?,
            hash: row.hash(3)?,
            size_bytes: row.count(4)?,
            created_at: row.moment(5)?,
            updated_at: row.moment(6)?,
            content: Some(row.content(7)?),
        })
    };
    let memory = connection.prepare_cached(sql)?.query_row([old.num], memory).optional()?;
    Ok(memory.as_ref().map(Entry::read))
}

macro_rules! select {
    () => {
        "SELECT n.memory, v.id, n.path, n.title, n.kind, n.permalink, n.created_at,
            n.at
         FROM notes n JOIN versions v ON v.at = n.at"
    };
}

pub(super) fn note(
    connection: &Connection,
    store: StoreId,
    memory: MemoryId,
) -> Result<Option<NoteRow>> {
    let sql = concat!(
        select!(),
        " WHERE n.memory = ?2 AND +n.store = (SELECT num FROM stores WHERE id = ?1)"
    );
    let found = rows(connection, store, sql, params![blob(store), blob(memory)])?;
    Ok(found.into_iter().next())
}

pub(super) fn notes(
    connection: &Connection,
    store: StoreId,
    after: Option<&MemoryPath>,
    at_most: usize,
) -> Result<Vec<NoteRow>> {
    let sql = concat!(
        select!(),
        " WHERE n.store = (SELECT num FROM stores WHERE id = ?1) AND n.path > ?2
         ORDER BY n.path LIMIT ?3"
    );
    let after = after.map_or("", MemoryPath::as_str);
    rows(connection, store, sql, params![blob(store), after, limit(at_most)])
}

pub(super) fn notes_named(
    connection: &Connection,
    store: StoreId,
    name: &NoteName,
) -> Result<Vec<NoteRow>> {
    let (sql, name) = match name {
        NoteName::Permalink(permalink) => (
            concat!(
                select!(),
                " WHERE n.store = (SELECT num FROM stores WHERE id = ?1) AND n.permalink = ?2
                 ORDER BY n.memory"
            ),
            permalink,
        ),
        NoteName::Title(title) => (
            concat!(
                select!(),
                " WHERE n.store = (SELECT num FROM stores WHERE id = ?1) AND n.title = ?2
                 ORDER BY n.memory"
            ),
            title,
        ),
        NoteName::Alias(key) => (
            concat!(
                select!(),
                " WHERE n.num IN (SELECT note FROM note_names
                    WHERE store = (SELECT num FROM stores WHERE id = ?1) AND key = ?2)
                 ORDER BY n.memory"
            ),
            key,
        ),
    };
    rows(connection, store, sql, params![blob(store), name])
}

fn rows(
    connection: &Connection,
    store: StoreId,
    sql: &str,
    parameters: impl Params,
) -> Result<Vec<NoteRow>> {
    let from_row = |row: &Row<'_>| {
        Ok(NoteRow {
            memory: row.id(0)?,
            store,
            version: row.id::<VersionId>(1)?,
            path: row.path(2)?,
            title: row.get(3)?,
            kind: row.get(4)?,
            permalink: row.get(5)?,
            created_at: row.moment(6)?,
            updated_at: row.moment(7)?,
        })
    };
    connection.prepare_cached(sql)?.query_map(parameters, from_row)?.collect()
}

pub(super) fn links(
    connection: &Connection,
    store: StoreId,
    query: &LinkQuery,
    at_most: usize,
) -> Result<Vec<LinkRow>> {
    const SELECT: &str = "SELECT n.memory, l.position, l.kind, l.target_store, l.target, l.section,
        l.alias, l.context, l.line FROM links l JOIN notes n ON n.num = l.note";
    match query {
        LinkQuery::From(memory) => {
            let sql = format!(
                "{SELECT} WHERE n.memory = ?2
                    AND +n.store = (SELECT num FROM stores WHERE id = ?1)
                 ORDER BY l.position LIMIT ?3"
            );
            link_rows(connection, &sql, params![blob(store), blob(*memory), limit(at_most)])
        }
        LinkQuery::Towards(keys) => {
            let keys = serde_json::to_string(keys).expect("texts can always be written as JSON");
            let sql = format!(
                "{SELECT} WHERE (l.note, l.position) IN (SELECT k.note, k.position
                    FROM json_each(?2) wanted CROSS JOIN link_keys k
                    WHERE k.store = (SELECT num FROM stores WHERE id = ?1) AND k.key = wanted.value)
                 ORDER BY n.memory, l.position LIMIT ?3"
            );
            link_rows(connection, &sql, params![blob(store), keys, limit(at_most)])
        }
    }
}

fn link_rows(connection: &Connection, sql: &str, parameters: impl Params) -> Result<Vec<LinkRow>> {
    let from_row = |row: &Row<'_>| {
        Ok(LinkRow {
            from: row.id(0)?,
            position: row.get(1)?,
            kind: row.get(2)?,
            target: Target {
                store: row.get(3)?,
                name: row.get(4)?,
                section: row.get(5)?,
                alias: row.get(6)?,
            },
            context: row.get(7)?,
            line: row.get(8)?,
        })
    };
    connection.prepare_cached(sql)?.query_map(parameters, from_row)?.collect()
}
