//! Tombstones, receipts, and copies that were made.

use std::str::FromStr;

use quipu_core::model::{
    CopyMade, Proof, Reason, Receipt, ReceiptHead, ReceiptId, ScannedFile, StoreId, Timestamp,
    Tombstone, WorkspaceId,
};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};
use serde_json::{Value, json};

use super::columns::{Columns as _, blob, limit};
use super::versions::STORE_NUMBER;

pub(super) fn tombstones(connection: &Connection, store: StoreId) -> Result<Vec<Tombstone>> {
    let sql = format!(
        "SELECT salt, size_bytes, filter, hash FROM tombstones WHERE store = {STORE_NUMBER}"
    );
    let tombstone = |row: &Row<'_>| {
        Ok(Tombstone {
            salt: row.get(0)?,
            size_bytes: row.get(1)?,
            filter: row.get(2)?,
            hash: row.get(3)?,
        })
    };
    connection.prepare_cached(&sql)?.query_map([blob(store)], tombstone)?.collect()
}

pub(super) fn put_tombstone(
    connection: &Connection,
    store: StoreId,
    tombstone: &Tombstone,
) -> Result<()> {
    let sql = "INSERT OR IGNORE INTO tombstones (store, salt, size_bytes, filter, hash)
        SELECT num, ?2, ?3, ?4, ?5 FROM stores WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(store),
            tombstone.salt,
            tombstone.size_bytes,
            tombstone.filter,
            tombstone.hash
        ])
        .map(drop)
}

pub(super) fn receipt(connection: &Connection, id: ReceiptId) -> Result<Option<Receipt>> {
    let sql = "SELECT id, workspace, body FROM receipts WHERE id = ?1";
    connection.prepare_cached(sql)?.query_row([blob(id)], receipt_of).optional()
}

pub(super) fn receipts(
    connection: &Connection,
    workspace: WorkspaceId,
    before: Option<ReceiptId>,
    limit_count: usize,
) -> Result<Vec<Receipt>> {
    let sql = "SELECT id, workspace, body FROM receipts
        WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
    let before = before.map_or([u8::MAX; 16], blob);
    connection
        .prepare_cached(sql)?
        .query_map(params![blob(workspace), before, limit(limit_count)], receipt_of)?
        .collect()
}

pub(super) fn unproven_receipts(connection: &Connection) -> Result<Vec<Receipt>> {
    let sql = "SELECT id, workspace, body FROM receipts WHERE NOT is_proven";
    connection.prepare_cached(sql)?.query_map([], receipt_of)?.collect()
}

pub(super) fn put_receipt(connection: &Connection, receipt: &Receipt) -> Result<()> {
    let sql = "INSERT INTO receipts (id, workspace, body, is_proven) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (id) DO UPDATE SET body = excluded.body, is_proven = excluded.is_proven";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(receipt.id),
            blob(receipt.workspace),
            body(receipt).to_string(),
            receipt.proof.is_some(),
        ])
        .map(drop)
}

pub(super) fn copies_made(
    connection: &Connection,
    workspace: WorkspaceId,
    since: Timestamp,
) -> Result<Vec<CopyMade>> {
    let sql = "SELECT at, kind, store, target FROM copies_made
        WHERE workspace = ?1 AND at >= ?2 ORDER BY at, num";
    let copy = |row: &Row<'_>| {
        Ok(CopyMade {
            workspace,
            at: row.moment(0)?,
            kind: row.word(1)?,
            store: row.optional_id(2)?,
            target: row.get(3)?,
        })
    };
    connection
        .prepare_cached(sql)?
        .query_map(params![blob(workspace), since.as_micros()], copy)?
        .collect()
}

pub(super) fn put_copy_made(
    connection: &Connection,
    copy: &CopyMade,
    kept_count: usize,
) -> Result<()> {
    let sql =
        "INSERT INTO copies_made (workspace, at, kind, store, target) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.prepare_cached(sql)?.execute(params![
        blob(copy.workspace),
        copy.at.as_micros(),
        copy.kind.as_str(),
        copy.store.map(blob),
        copy.target,
    ])?;
    let sql = "DELETE FROM copies_made WHERE workspace = ?1 AND num NOT IN
        (SELECT num FROM copies_made WHERE workspace = ?1 ORDER BY at DESC, num DESC LIMIT ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute(params![blob(copy.workspace), limit(kept_count)]).map(drop)
}

pub(super) fn remove_copy_made(connection: &Connection, copy: &CopyMade) -> Result<()> {
    let sql = "DELETE FROM copies_made
        WHERE workspace = ?1 AND at = ?2 AND kind = ?3 AND store IS ?4 AND target = ?5";
    connection
        .prepare_cached(sql)?
        .execute(params![
            blob(copy.workspace),
            copy.at.as_micros(),
            copy.kind.as_str(),
            copy.store.map(blob),
            copy.target,
        ])
        .map(drop)
}

/// Returns a receipt as it is stored.
fn body(receipt: &Receipt) -> Value {
    fn texts<T: ToString>(all: &[T]) -> Value {
        all.iter().map(T::to_string).collect()
    }
    let head = |head: &ReceiptHead| {
        json!([head.memory.to_string(), head.change.as_str(), head.version.to_string()])
    };
    let proof = |proof: &Proof| {
        let scanned: Value =
            proof.scanned.iter().map(|file| json!([file.name, file.size_bytes])).collect();
        json!({"at": proof.at.as_micros(), "scanned": scanned, "hits_left": proof.hits_left})
    };
    json!({
        "at": receipt.at.as_micros(),
        "by": receipt.by.to_string(),
        "reason": receipt.reason.as_ref().map(Reason::as_str),
        "selection": receipt.selection,
        "stores": texts(&receipt.stores),
        "versions": texts(&receipt.versions),
        "heads": receipt.heads.iter().map(head).collect::<Value>(),
        "sessions": texts(&receipt.sessions),
        "described_stores": texts(&receipt.described_stores),
        "events_count": receipt.events_count,
        "definitions_count": receipt.definitions_count,
        "refusals_count": receipt.refusals_count,
        "tombstones_count": receipt.tombstones_count,
        "remarks": receipt.remarks,
        "unreachable": receipt.unreachable,
        "proof": receipt.proof.as_ref().map(proof),
    })
}

fn receipt_of(row: &Row<'_>) -> Result<Receipt> {
    const BODY: usize = 2;
    let body = row.get_ref(BODY)?.as_str().ok().and_then(|text| serde_json::from_str(text).ok());
    let receipt = body.and_then(|body| read_body(&body, row.id(0).ok()?, row.id(1).ok()?));
    receipt.ok_or_else(|| rusqlite::Error::InvalidColumnType(BODY, "body".to_owned(), Type::Text))
}

/// Reads what [`body`] writes; `None` if Quipu would not have written it.
fn read_body(body: &Value, id: ReceiptId, workspace: WorkspaceId) -> Option<Receipt> {
    let proof = body.get("proof").filter(|proof| !proof.is_null());
    Some(Receipt {
        id,
        workspace,
        at: Timestamp::from_micros(body.get("at")?.as_i64()?),
        by: word(body.get("by")?)?,
        reason: match body.get("reason")?.as_str() {
            Some(reason) => Some(Reason::new(reason).ok()?),
            None => None,
        },
        selection: body.get("selection")?.as_str()?.to_owned(),
        stores: list(body, "stores", word)?,
        versions: list(body, "versions", word)?,
        heads: list(body, "heads", |head| {
            let (memory, change) = (word(head.get(0)?)?, word(head.get(1)?)?);
            Some(ReceiptHead { memory, change, version: word(head.get(2)?)? })
        })?,
        sessions: list(body, "sessions", word)?,
        described_stores: list(body, "described_stores", word)?,
        // Receipts of earlier programs have neither.
        events_count: body.get("events_count").map_or(Some(0), Value::as_u64)?,
        definitions_count: body.get("definitions_count").map_or(Some(0), Value::as_u64)?,
        refusals_count: body.get("refusals_count")?.as_u64()?,
        tombstones_count: body.get("tombstones_count")?.as_u64()?,
        remarks: list(body, "remarks", sentence)?,
        unreachable: list(body, "unreachable", sentence)?,
        proof: match proof {
            Some(proof) => Some(read_proof(proof)?),
            None => None,
        },
    })
}

fn read_proof(proof: &Value) -> Option<Proof> {
    Some(Proof {
        at: Timestamp::from_micros(proof.get("at")?.as_i64()?),
        scanned: list(proof, "scanned", |file| {
            let name = file.get(0)?.as_str()?.to_owned();
            Some(ScannedFile { name, size_bytes: file.get(1)?.as_u64()? })
        })?,
        hits_left: proof.get("hits_left")?.as_u64(),
    })
}

fn list<T>(body: &Value, field: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    body.get(field)?.as_array()?.iter().map(read).collect()
}

fn sentence(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn word<T: FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}
