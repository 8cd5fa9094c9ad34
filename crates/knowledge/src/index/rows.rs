//! The rows of the index.

use quipu_core::backend::Sequence;
use quipu_core::model::{Id as _, StoreId, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::bits::Bits;
use super::block::Block;
use super::codec::{Damaged, Input, put_varint};
use super::columns::{Columns, Facts, Fixed, Memories};
use super::error::IndexError;
use super::postings::Doc;
use super::segment::Totals;
use super::term::Space;

/// How many memories a row of `dead` is about.
const CHUNK: Doc = 2048;

/// A place in the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) sequence: Sequence,
    /// The moment of the change with this sequence.
    pub(crate) at: Timestamp,
}

impl Cursor {
    /// The place before all changes.
    pub(crate) const START: Self = Self { sequence: Sequence(0), at: Timestamp::MIN };
}

/// What the index knows of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreRow {
    pub(crate) num: i64,
    /// Every memory of the store is in the index as it was at this change.
    pub(crate) cursor: Cursor,
    /// Nothing that was read before this change may be added.
    pub(crate) purged: Sequence,
    pub(crate) totals: Totals,
}

impl StoreRow {
    /// Nobody has read so late a change.
    const REMOVED: Sequence = Sequence(i64::MAX as u64);

    /// Returns the row of a store to which nothing can be added any more.
    pub(crate) fn removed(&self) -> Self {
        Self { purged: Self::REMOVED, cursor: Cursor::START, ..*self }
    }

    /// Returns whether the store is being removed.
    pub(crate) fn is_removed(&self) -> bool {
        self.purged == Self::REMOVED
    }
}

/// What the index knows of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentRow {
    pub(crate) id: i64,
    pub(crate) state: SegmentState,
    /// How many documents of each space it has.
    pub(crate) counts: [usize; 3],
    /// Whether any of its memories, dead ones included, is in another language than English.
    pub(crate) is_foreign: bool,
    /// How many of its memories are dead.
    pub(crate) dead: usize,
}

impl SegmentRow {
    /// Returns the row of a new segment.
    pub(crate) fn new(id: i64, state: SegmentState, counts: [usize; 3]) -> Self {
        Self { id, state, counts, is_foreign: false, dead: 0 }
    }
}

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// It is being written, or was when a process died.
    Unfinished,
    /// It is searched.
    Live,
    /// It was merged into another one, and its rows are being removed.
    Merged,
}

impl SegmentState {
    fn number(self) -> i64 {
        match self {
            Self::Unfinished => 0,
            Self::Live => 1,
            Self::Merged => 2,
        }
    }

    fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Live,
            2 => Self::Merged,
            _ => Self::Unfinished,
        }
    }
}

pub(super) fn blob(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

fn count(row: &Row<'_>, column: usize) -> Result<usize, IndexError> {
    usize::try_from(row.get::<_, i64>(column)?).ok().ok_or(IndexError::Damaged)
}

fn sequence(row: &Row<'_>, column: usize) -> Result<Sequence, IndexError> {
    u64::try_from(row.get::<_, i64>(column)?).map(Sequence).ok().ok_or(IndexError::Damaged)
}

fn number(sequence: Sequence) -> i64 {
    i64::try_from(sequence.0).unwrap_or(i64::MAX)
}

pub(super) fn totals_to_bytes(totals: &Totals) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in totals.counts.iter().chain(&totals.lengths) {
        put_varint(&mut bytes, *number);
    }
    bytes
}

pub(super) fn totals_from_bytes(bytes: &[u8]) -> Result<Totals, Damaged> {
    let mut input = Input::new(bytes);
    let mut totals = Totals::default();
    for number in totals.counts.iter_mut().chain(&mut totals.lengths) {
        *number = input.varint()?;
    }
    Ok(totals)
}

/// Returns what the index knows of a store, if it knows it.
pub(crate) fn store(connection: &Connection, id: StoreId) -> Result<Option<StoreRow>, IndexError> {
    let sql = "SELECT num, sequence, at, purged, totals FROM stores WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([blob(id.bits())])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(StoreRow {
        num: row.get(0)?,
        cursor: Cursor { sequence: sequence(row, 1)?, at: Timestamp::from_micros(row.get(2)?) },
        purged: sequence(row, 3)?,
        totals: totals_from_bytes(row.get_ref(4)?.as_blob().ok().ok_or(IndexError::Damaged)?)?,
    }))
}

/// Adds a store that the index knows nothing of yet.
pub(crate) fn add_store(connection: &Connection, id: StoreId) -> Result<StoreRow, IndexError> {
    let empty = Totals::default();
    let sql = "INSERT INTO stores (id, sequence, at, purged, totals) VALUES (?1, 0, 0, 0, ?2)";
    connection.prepare_cached(sql)?.execute(params![blob(id.bits()), totals_to_bytes(&empty)])?;
    let num = connection.last_insert_rowid();
    Ok(StoreRow { num, cursor: Cursor::START, purged: Sequence(0), totals: empty })
}

/// Replaces what the index knows of a store.
pub(crate) fn put_store(connection: &Connection, row: &StoreRow) -> Result<(), IndexError> {
    let sql = "UPDATE stores SET sequence = ?2, at = ?3, purged = ?4, totals = ?5 WHERE num = ?1";
    connection.prepare_cached(sql)?.execute(params![
        row.num,
        number(row.cursor.sequence),
        row.cursor.at.as_micros(),
        number(row.purged),
        totals_to_bytes(&row.totals),
    ])?;
    Ok(())
}

/// Returns the change before which nothing may have been read that is added to a store.
pub(crate) fn purged(connection: &Connection, num: i64) -> Result<Sequence, IndexError> {
    let mut statement = connection.prepare_cached("SELECT purged FROM stores WHERE num = ?1")?;
    let mut rows = statement.query([num])?;
    match rows.next()? {
        Some(row) => sequence(row, 0),
        None => Err(IndexError::Outdated),
    }
}

/// Removes the row of a store; its segments and notes are removed apart.
pub(crate) fn remove_store(connection: &Connection, num: i64) -> Result<(), IndexError> {
    connection.prepare_cached("DELETE FROM stores WHERE num = ?1")?.execute([num])?;
    Ok(())
}

/// Returns all segments of a store, the oldest first.
pub(crate) fn segments(connection: &Connection, store: i64) -> Result<Vec<SegmentRow>, IndexError> {
    let sql = "SELECT id, state, memories, observations, relations, is_foreign, dead FROM segments
        WHERE store = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([store])?;
    let mut segments = Vec::new();
    while let Some(row) = rows.next()? {
        segments.push(SegmentRow {
            id: row.get(0)?,
            state: SegmentState::from_number(row.get(1)?),
            counts: [count(row, 2)?, count(row, 3)?, count(row, 4)?],
            is_foreign: row.get(5)?,
            dead: count(row, 6)?,
        });
    }
    Ok(segments)
}

/// Returns the number for a new segment.
pub(crate) fn next_segment(connection: &Connection) -> Result<i64, IndexError> {
    let sql = "UPDATE numbers SET segment = segment + 1 RETURNING segment";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Adds or replaces the row of a segment.
pub(crate) fn put_segment(
    connection: &Connection,
    store: i64,
    row: &SegmentRow,
) -> Result<(), IndexError> {
    let sql = "INSERT OR REPLACE INTO segments
        (store, id, state, memories, observations, relations, is_foreign, dead)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let [memories, observations, relations] = row.counts.map(number);
    connection.prepare_cached(sql)?.execute(params![
        store,
        row.id,
        row.state.number(),
        memories,
        observations,
        relations,
        row.is_foreign,
        number(row.dead),
    ])?;
    Ok(())
}

/// Removes some of the rows of a segment; returns whether there are more. The row of the segment
/// itself goes last, so that a process that dies in between leaves nothing that nobody knows of.
pub(crate) fn remove_segment(
    connection: &Connection,
    store: i64,
    segment: i64,
    limit: usize,
) -> Result<bool, IndexError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut removed = 0;
    for table in ["postings", "positions"] {
        let sql = format!(
            "DELETE FROM {table} WHERE segment = ?1 AND first IN
                (SELECT first FROM {table} WHERE segment = ?1 ORDER BY first LIMIT ?2)"
        );
        removed += connection.prepare_cached(&sql)?.execute([segment, limit])?;
    }
    if removed > 0 {
        return Ok(true);
    }
    connection.prepare_cached("DELETE FROM columns WHERE segment = ?1")?.execute([segment])?;
    connection.prepare_cached("DELETE FROM dead WHERE segment = ?1")?.execute([segment])?;
    let sql = "DELETE FROM segments WHERE store = ?1 AND id = ?2";
    connection.prepare_cached(sql)?.execute([store, segment])?;
    Ok(false)
}

/// Adds or replaces the columns of a segment.
pub(crate) fn put_columns(
    connection: &Connection,
    segment: i64,
    columns: &Columns,
) -> Result<(), IndexError> {
    let Columns { memories, observations, relations } = columns;
    let sql = "INSERT OR REPLACE INTO columns (segment, memory_lengths, observation_lengths,
            observation_rows, relation_lengths, relation_rows, memory_ids, memory_times,
            memory_paths)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.prepare_cached(sql)?.execute(params![
        segment,
        memories.lengths.as_bytes(),
        observations.lengths.as_bytes(),
        observations.rows.as_bytes(),
        relations.lengths.as_bytes(),
        relations.rows.as_bytes(),
        memories.ids.as_bytes(),
        memories.times.as_bytes(),
        memories.paths,
    ])?;
    Ok(())
}

/// Reads one column of a segment.
pub(crate) fn column(
    connection: &Connection,
    segment: i64,
    name: &str,
) -> Result<Vec<u8>, IndexError> {
    let sql = format!("SELECT {name} FROM columns WHERE segment = ?1");
    let found =
        connection.prepare_cached(&sql)?.query_row([segment], |row| row.get(0)).optional()?;
    found.ok_or(IndexError::Damaged)
}

/// Reads all columns of a segment.
pub(crate) fn columns(connection: &Connection, segment: i64) -> Result<Columns, IndexError> {
    let column = |name| column(connection, segment, name);
    let facts = |lengths, rows| -> Result<Facts, IndexError> {
        Ok(Facts {
            lengths: Fixed::from_bytes(column(lengths)?)?,
            rows: Fixed::from_bytes(column(rows)?)?,
        })
    };
    Ok(Columns {
        memories: Memories {
            lengths: Fixed::from_bytes(column("memory_lengths")?)?,
            ids: Fixed::from_bytes(column("memory_ids")?)?,
            times: Fixed::from_bytes(column("memory_times")?)?,
            paths: column("memory_paths")?,
        },
        observations: facts("observation_lengths", "observation_rows")?,
        relations: facts("relation_lengths", "relation_rows")?,
    })
}

/// Returns the names of the columns of lengths and rows of a space.
pub(crate) fn column_names(space: Space) -> (&'static str, &'static str) {
    match space {
        Space::Memories => ("memory_lengths", "memory_ids"),
        Space::Observations => ("observation_lengths", "observation_rows"),
        Space::Relations => ("relation_lengths", "relation_rows"),
    }
}

/// Returns the memories of a segment that are dead.
pub(crate) fn dead(
    connection: &Connection,
    segment: i64,
    count: usize,
) -> Result<Bits, IndexError> {
    let mut bits = Bits::none(count);
    let mut statement =
        connection.prepare_cached("SELECT chunk, bits FROM dead WHERE segment = ?1")?;
    let mut rows = statement.query([segment])?;
    while let Some(row) = rows.next()? {
        let chunk = Doc::try_from(row.get::<_, i64>(0)?).ok().ok_or(IndexError::Damaged)?;
        let start = chunk.checked_mul(CHUNK).ok_or(IndexError::Damaged)?;
        bits.insert_bytes(start, row.get_ref(1)?.as_blob().ok().ok_or(IndexError::Damaged)?)?;
    }
    Ok(bits)
}

/// Marks a memory of a segment as dead.
pub(crate) fn put_dead(
    connection: &Connection,
    store: i64,
    segment: i64,
    doc: Doc,
) -> Result<(), IndexError> {
    let (chunk, place) = (doc / CHUNK, doc % CHUNK);
    let sql = "SELECT bits FROM dead WHERE segment = ?1 AND chunk = ?2";
    let found: Option<Vec<u8>> = connection
        .prepare_cached(sql)?
        .query_row(params![segment, chunk], |row| row.get(0))
        .optional()?;
    let mut bits = Bits::none(usize::try_from(CHUNK).unwrap_or(usize::MAX));
    bits.insert_bytes(0, &found.unwrap_or_default())?;
    bits.insert(place)?;
    let sql = "INSERT OR REPLACE INTO dead (segment, chunk, bits) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![segment, chunk, bits.to_bytes()])?;
    let sql = "UPDATE segments SET dead = dead + 1 WHERE store = ?1 AND id = ?2";
    connection.prepare_cached(sql)?.execute([store, segment])?;
    Ok(())
}

/// Adds a block of a segment.
pub(crate) fn put_block(
    connection: &Connection,
    segment: i64,
    block: &Block,
) -> Result<(), IndexError> {
    let sql = "INSERT INTO postings (segment, first, data) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![segment, block.first, block.postings])?;
    let sql = "INSERT INTO positions (segment, first, data) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![segment, block.first, block.positions])?;
    Ok(())
}

/// Replaces a block of a segment, or removes it if nothing is left.
pub(crate) fn replace_block(
    connection: &Connection,
    segment: i64,
    first: &[u8],
    blocks: &[Block],
) -> Result<(), IndexError> {
    for table in ["postings", "positions"] {
        let sql = format!("DELETE FROM {table} WHERE segment = ?1 AND first = ?2");
        connection.prepare_cached(&sql)?.execute(params![segment, first])?;
    }
    blocks.iter().try_for_each(|block| put_block(connection, segment, block))
}

/// Calls `work` with the first term and the postings of the block that holds a term, if any does.
pub(crate) fn with_block<T>(
    connection: &Connection,
    segment: i64,
    term: &[u8],
    work: impl FnOnce(&[u8], &[u8]) -> Result<T, IndexError>,
) -> Result<Option<T>, IndexError> {
    let sql = "SELECT first, data FROM postings
        WHERE segment = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![segment, term])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let blob = |column| row.get_ref(column)?.as_blob().ok().ok_or(rusqlite::Error::InvalidQuery);
    work(blob(0)?, blob(1)?).map(Some)
}

/// Returns the positions of the block with this first term.
pub(crate) fn block_positions(
    connection: &Connection,
    segment: i64,
    first: &[u8],
) -> Result<Vec<u8>, IndexError> {
    let sql = "SELECT data FROM positions WHERE segment = ?1 AND first = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row(params![segment, first], |row| row.get(0)).optional()?;
    found.ok_or(IndexError::Damaged)
}

/// Calls `work` with the first term and the postings of each block from a place on, until it returns
/// `false`.
pub(crate) fn each_block(
    connection: &Connection,
    segment: i64,
    from: &[u8],
    mut work: impl FnMut(&[u8], &[u8]) -> Result<bool, IndexError>,
) -> Result<(), IndexError> {
    let sql = "SELECT first, data FROM postings WHERE segment = ?1 AND first >= ifnull(
            (SELECT max(first) FROM postings WHERE segment = ?1 AND first <= ?2), x'')
        ORDER BY first";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![segment, from])?;
    while let Some(row) = rows.next()? {
        let blob =
            |column| row.get_ref(column)?.as_blob().ok().ok_or(rusqlite::Error::InvalidQuery);
        if !work(blob(0)?, blob(1)?)? {
            break;
        }
    }
    Ok(())
}

/// Returns at most `limit` blocks of a segment after a first term, in their order.
pub(crate) fn blocks_after(
    connection: &Connection,
    segment: i64,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<Block>, IndexError> {
    let sql = "SELECT p.first, p.data, q.data FROM postings p JOIN positions q
            ON q.segment = p.segment AND q.first = p.first
        WHERE p.segment = ?1 AND (?2 IS NULL OR p.first > ?2) ORDER BY p.first LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let blocks = statement.query_map(params![segment, after, limit], |row| {
        Ok(Block { first: row.get(0)?, postings: row.get(1)?, positions: row.get(2)? })
    })?;
    Ok(blocks.collect::<Result<_, _>>()?)
}
