//! Tombstones, copies that were made, and what has to be erased.

use quipu_core::Error;
use quipu_core::backend::PendingErasure;
use quipu_core::model::{CopyMade, Id as _, MemoryId, StoreId, Timestamp, Tombstone, WorkspaceId};

use tokio_postgres::Row;

use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, bits, misfit, number, params};

pub(super) fn tombstones(
    transaction: &Transaction,
    store: StoreId,
) -> Result<Vec<Tombstone>, Error> {
    if let Some(known) = transaction.known(|overlay| overlay.tombstones(store).map(<[_]>::to_vec)) {
        return Ok(known);
    }
    let Some(num) = transaction.number(store)? else { return Ok(Vec::new()) };
    let sql = "SELECT salt, size_bytes, filter, hash FROM tombstones WHERE store = $1";
    let rows = transaction.query(sql, params![num])?;
    rows.iter().map(tombstone).collect()
}

pub(crate) fn tombstone(row: &Row) -> Result<Tombstone, Error> {
    let filter: i64 = row.value(2)?;
    Ok(Tombstone {
        salt: row.value::<&[u8]>(0)?.try_into().map_err(misfit)?,
        size_bytes: usize::try_from(row.count(1)?).map_err(misfit)?,
        filter: filter.try_into().map_err(misfit)?,
        hash: row.value::<&[u8]>(3)?.try_into().map_err(misfit)?,
    })
}

pub(super) fn put_tombstone(
    transaction: &Transaction,
    store: StoreId,
    tombstone: &Tombstone,
) -> Result<(), Error> {
    let Some(num) = transaction.number(store)? else { return Ok(()) };
    let sql = "INSERT INTO tombstones (store, salt, size_bytes, filter, hash)
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
    let values = params![
        num,
        tombstone.salt.as_slice(),
        number(tombstone.size_bytes),
        i64::from(tombstone.filter),
        tombstone.hash.as_slice(),
    ];
    transaction.execute(sql, values).map(drop)
}

pub(super) fn copies_made(
    transaction: &Transaction,
    workspace: WorkspaceId,
    since: Timestamp,
) -> Result<Vec<CopyMade>, Error> {
    let sql = "SELECT at, kind, store, target FROM copies_made
        WHERE workspace = $1 AND at >= $2 ORDER BY at, num";
    let rows = transaction.query(sql, params![bits(workspace), since.as_micros()])?;
    let copies = rows.iter().map(|row| {
        Ok(CopyMade {
            workspace,
            at: row.moment(0)?,
            kind: row.word(1)?,
            store: row.optional_id(2)?,
            target: row.raw_text(3)?,
        })
    });
    copies.collect()
}

pub(super) fn put_copy_made(
    transaction: &Transaction,
    copy: &CopyMade,
    kept_count: usize,
) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = "INSERT INTO copies_made (workspace, at, kind, store, target)
        VALUES ($1, $2, $3, $4, $5)";
    let values = params![
        bits(copy.workspace),
        copy.at.as_micros(),
        copy.kind.as_str(),
        copy.store.map(bits),
        copy.target.as_bytes(),
    ];
    transaction.execute(sql, values)?;
    let sql = "DELETE FROM copies_made WHERE workspace = $1 AND num NOT IN
        (SELECT num FROM copies_made WHERE workspace = $1 ORDER BY at DESC, num DESC LIMIT $2)";
    transaction.execute(sql, params![bits(copy.workspace), number(kept_count)]).map(drop)
}

pub(super) fn remove_copy_made(transaction: &Transaction, copy: &CopyMade) -> Result<(), Error> {
    transaction.require_administration()?;
    let sql = "DELETE FROM copies_made WHERE workspace = $1 AND at = $2 AND kind = $3
        AND store IS NOT DISTINCT FROM $4 AND target = $5";
    transaction.lose("copies_made");
    let values = params![
        bits(copy.workspace),
        copy.at.as_micros(),
        copy.kind.as_str(),
        copy.store.map(bits),
        copy.target.as_bytes(),
    ];
    transaction.execute(sql, values).map(drop)
}

/// Returns what is not erased yet.
pub(super) fn pending(transaction: &Transaction) -> Result<Vec<PendingErasure>, Error> {
    let rows = transaction.query("SELECT store, memory, count FROM erasures", &[])?;
    let pending = rows.iter().map(|row| {
        let memory: Bits = row.value(1)?;
        Ok(PendingErasure {
            store: row.id(0)?,
            memory: (memory != Bits::MAX).then(|| MemoryId::from_bits(memory.0)),
            count: row.count(2)?,
        })
    });
    pending.collect()
}

/// Records, inside a transaction that removes text, that an erasure is pending. The text of definitions and
/// session events belongs to no store; its erasure is that of the store with the id 0.
///
/// Erasures that are complete are deleted. Starting from the sequence keeps the count growing across such
/// a deletion, so that a thread that still has the old count does not take this removal for erased.
const SET_PENDING: &str = "INSERT INTO erasures
    SELECT $1, memory, (SELECT sequence FROM counter) + 1
        FROM (SELECT DISTINCT unnest($2::uuid[]) AS memory) lost ORDER BY memory
    ON CONFLICT (store, memory) DO UPDATE SET count = greatest(erasures.count + 1, excluded.count)";

pub(super) fn set_pending(
    transaction: &Transaction,
    store: StoreId,
    memories: Vec<Bits>,
) -> Result<(), Error> {
    let number = transaction.number(store)?;
    if number.is_none() && store.bits() != 0 {
        return Ok(());
    }
    transaction.require_erasure(number);
    transaction.execute(SET_PENDING, params![bits(store), List(memories)]).map(drop)
}

/// The same for a store that is about to be removed.
pub(crate) fn set_store_pending(
    transaction: &Transaction,
    (store, number): (StoreId, Option<i64>),
) -> Result<(), Error> {
    transaction.require_erasure(number);
    transaction.execute(SET_PENDING, params![bits(store), List(vec![Bits::MAX])]).map(drop)
}
