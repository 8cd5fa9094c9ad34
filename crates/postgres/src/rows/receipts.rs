//! Receipts of redactions.

use std::str::FromStr;

use quipu_core::Error;
use quipu_core::model::{
    Proof, Reason, Receipt, ReceiptHead, ReceiptId, ScannedFile, Timestamp, WorkspaceId,
};
use serde_json::{Value, json};
use tokio_postgres::Row;

use crate::error::damaged;
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, bits, number, params};

pub(super) fn receipt(transaction: &Transaction, id: ReceiptId) -> Result<Option<Receipt>, Error> {
    let sql = "SELECT id, workspace, body FROM receipts WHERE id = $1";
    let row = transaction.query_one(sql, params![bits(id)])?;
    row.map(|row| receipt_of(&row)).transpose()
}

pub(super) fn receipts(
    transaction: &Transaction,
    workspace: WorkspaceId,
    before: Option<ReceiptId>,
    limit: usize,
) -> Result<Vec<Receipt>, Error> {
    let sql = "SELECT id, workspace, body FROM receipts
        WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    let before = before.map_or(Bits::MAX, bits);
    let rows = transaction.query(sql, params![bits(workspace), before, number(limit)])?;
    rows.iter().map(receipt_of).collect()
}

pub(super) fn unproven_receipts(transaction: &Transaction) -> Result<Vec<Receipt>, Error> {
    let sql = "SELECT id, workspace, body FROM receipts WHERE NOT is_proven";
    transaction.query(sql, &[])?.iter().map(receipt_of).collect()
}

pub(super) fn put_receipt(transaction: &Transaction, receipt: &Receipt) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = "INSERT INTO receipts (id, workspace, body, is_proven) VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE SET body = excluded.body, is_proven = excluded.is_proven
        RETURNING xmax <> 0";
    let values = params![
        bits(receipt.id),
        bits(receipt.workspace),
        body(receipt).to_string().into_bytes(),
        receipt.proof.is_some(),
    ];
    transaction.execute_replacing("receipts", sql, values)
}

fn receipt_of(row: &Row) -> Result<Receipt, Error> {
    let body: &[u8] = row.value(2)?;
    let body = serde_json::from_slice(body).map_err(crate::values::misfit)?;
    read_body(&body, row.id(0)?, row.id(1)?).ok_or_else(damaged)
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
        events_count: body.get("events_count")?.as_u64()?,
        definitions_count: body.get("definitions_count")?.as_u64()?,
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
