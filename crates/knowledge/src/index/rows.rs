//! The rows of segments.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::bits::Bits;
use super::block::Block;
use super::columns::{Columns, Facts, Fixed, Memories};
use super::error::IndexError;
use super::places::Places;
use super::postings::Doc;
use super::seal::Seal;
use super::term::{self, Space};

/// How many memories a row of `dead` covers.
const CHUNK: Doc = 2048;

/// The row of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentRow {
    pub(crate) id: i64,
    pub(crate) state: SegmentState,
    /// The number of documents in each space.
    pub(crate) counts: [usize; 3],
    /// Whether any of its memories, dead ones included, is in a language other than English.
    pub(crate) is_foreign: bool,
    /// The number of its memories with a tombstone.
    pub(crate) dead: usize,
}

impl SegmentRow {
    /// Returns the row of a new segment.
    pub(crate) fn new(id: i64, state: SegmentState, counts: [usize; 3]) -> Self {
        Self { id, state, counts, is_foreign: false, dead: 0 }
    }
}

/// The life cycle of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentState {
    /// It is being written, or was abandoned by a process that died.
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

/// The maximum number of documents in a segment. A set of this many takes 32 MB, so a hostile count
/// cannot exhaust the memory.
const DOCS_MAX: i64 = 1 << 28;

fn count(row: &Row<'_>, column: usize) -> Result<usize, IndexError> {
    let count: i64 = row.get(column)?;
    let count = usize::try_from(count).ok().filter(|_| count <= DOCS_MAX);
    count.ok_or(IndexError::Damaged)
}

fn integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn segment_seal(store: i64, row: &SegmentRow) -> i64 {
    let [memories, observations, relations] = row.counts.map(integer);
    let numbers = [row.id, row.state.number(), memories, observations, relations];
    let seal = Seal::new("segments").with_number(store).with_number(i64::from(row.is_foreign));
    numbers.into_iter().fold(seal, Seal::with_number).with_number(integer(row.dead)).number()
}

fn segment_row(store: i64, row: &Row<'_>) -> Result<SegmentRow, IndexError> {
    let found = SegmentRow {
        id: row.get(0)?,
        state: SegmentState::from_number(row.get(1)?),
        counts: [count(row, 2)?, count(row, 3)?, count(row, 4)?],
        is_foreign: row.get(5)?,
        dead: count(row, 6)?,
    };
    let is_sealed = row.get::<_, i64>(7)? == segment_seal(store, &found);
    if is_sealed { Ok(found) } else { Err(IndexError::Damaged) }
}

/// Returns all segments of a store, oldest first.
pub(crate) fn segments(connection: &Connection, store: i64) -> Result<Vec<SegmentRow>, IndexError> {
    let sql = "SELECT id, state, memories, observations, relations, is_foreign, dead, seal
        FROM segments WHERE store = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([store])?;
    let mut segments = Vec::new();
    while let Some(row) = rows.next()? {
        segments.push(segment_row(store, row)?);
    }
    Ok(segments)
}

/// Returns a segment of a store, if it exists.
pub(crate) fn segment(
    connection: &Connection,
    store: i64,
    id: i64,
) -> Result<Option<SegmentRow>, IndexError> {
    let sql = "SELECT id, state, memories, observations, relations, is_foreign, dead, seal
        FROM segments WHERE store = ?1 AND id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([store, id])?;
    rows.next()?.map(|row| segment_row(store, row)).transpose()
}

/// Returns the id for a new segment.
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
        (store, id, state, memories, observations, relations, is_foreign, dead, seal)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let [memories, observations, relations] = row.counts.map(integer);
    connection.prepare_cached(sql)?.execute(params![
        store,
        row.id,
        row.state.number(),
        memories,
        observations,
        relations,
        row.is_foreign,
        integer(row.dead),
        segment_seal(store, row),
    ])?;
    Ok(())
}

/// Removes at most `limit` blocks of a segment; returns whether there may be more. The row of the
/// segment itself is removed last, so a process that dies in between leaves no orphaned rows.
pub(crate) fn remove_segment(
    connection: &Connection,
    store: i64,
    segment: i64,
    limit: usize,
) -> Result<bool, IndexError> {
    let limit = integer(limit);
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

fn column_seal(segment: i64, name: &str) -> Seal {
    Seal::new("columns").with(name.as_bytes()).with_number(segment)
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
            memory_paths, memory_order, memory_directories)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let sealed = |name, column: &[u8]| column_seal(segment, name).append_to(column);
    connection.prepare_cached(sql)?.execute(params![
        segment,
        sealed("memory_lengths", memories.lengths.as_bytes()),
        sealed("observation_lengths", observations.lengths.as_bytes()),
        sealed("observation_rows", observations.rows.as_bytes()),
        sealed("relation_lengths", relations.lengths.as_bytes()),
        sealed("relation_rows", relations.rows.as_bytes()),
        sealed("memory_ids", memories.ids.as_bytes()),
        sealed("memory_times", memories.times.as_bytes()),
        sealed("memory_paths", &memories.paths),
        sealed("memory_order", memories.places.order.as_bytes()),
        sealed("memory_directories", memories.places.directories.as_bytes()),
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
    let found: Option<Vec<u8>> =
        connection.prepare_cached(&sql)?.query_row([segment], |row| row.get(0)).optional()?;
    unsealed(column_seal(segment, name), found.ok_or(IndexError::Damaged)?)
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
            places: Places {
                order: Fixed::from_bytes(column("memory_order")?)?,
                directories: Fixed::from_bytes(column("memory_directories")?)?,
            },
        },
        observations: facts("observation_lengths", "observation_rows")?,
        relations: facts("relation_lengths", "relation_rows")?,
    })
}

/// Returns the names of the length and row columns of a space.
pub(crate) fn column_names(space: Space) -> (&'static str, &'static str) {
    match space {
        Space::Memories => ("memory_lengths", "memory_ids"),
        Space::Observations => ("observation_lengths", "observation_rows"),
        Space::Relations => ("relation_lengths", "relation_rows"),
    }
}

fn dead_seal(segment: i64, chunk: Doc) -> Seal {
    Seal::new("dead").with_number(segment).with_number(i64::from(chunk))
}

/// Returns the tombstones of a segment.
pub(crate) fn dead(connection: &Connection, row: &SegmentRow) -> Result<Bits, IndexError> {
    let SegmentRow { id: segment, counts: [count, ..], dead, .. } = *row;
    let mut bits = Bits::none(count);
    let mut statement =
        connection.prepare_cached("SELECT chunk, bits FROM dead WHERE segment = ?1")?;
    let mut rows = statement.query([segment])?;
    while let Some(row) = rows.next()? {
        let chunk = Doc::try_from(row.get::<_, i64>(0)?).ok().ok_or(IndexError::Damaged)?;
        let start = chunk.checked_mul(CHUNK).ok_or(IndexError::Damaged)?;
        let sealed = row.get_ref(1)?.as_blob().ok().ok_or(IndexError::Damaged)?;
        bits.insert_bytes(start, dead_seal(segment, chunk).verify(sealed)?)?;
    }
    if bits.count() == dead { Ok(bits) } else { Err(IndexError::Damaged) }
}

/// Adds a tombstone for a memory of a segment.
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
    let seal = dead_seal(segment, chunk);
    if let Some(sealed) = &found {
        bits.insert_bytes(0, seal.verify(sealed)?)?;
    }
    bits.insert(place)?;
    let sql = "INSERT OR REPLACE INTO dead (segment, chunk, bits) VALUES (?1, ?2, ?3)";
    let sealed = seal.append_to(&bits.to_bytes());
    connection.prepare_cached(sql)?.execute(params![segment, chunk, sealed])?;
    let row = self::segment(connection, store, segment)?.ok_or(IndexError::Damaged)?;
    put_segment(connection, store, &SegmentRow { dead: row.dead + 1, ..row })
}

fn postings_seal(segment: i64, first: &[u8], next: &[u8]) -> Seal {
    Seal::new("postings").with_number(segment).with(first).with(next)
}

fn positions_seal(segment: i64, first: &[u8]) -> Seal {
    Seal::new("positions").with_number(segment).with(first)
}

/// Adds a block of a segment.
pub(crate) fn put_block(
    connection: &Connection,
    segment: i64,
    block: &Block,
) -> Result<(), IndexError> {
    let Block { first, next, postings, positions } = block;
    let sql = "INSERT INTO postings (segment, first, next, data) VALUES (?1, ?2, ?3, ?4)";
    let sealed = postings_seal(segment, first, next).append_to(postings);
    connection.prepare_cached(sql)?.execute(params![segment, first, next, sealed])?;
    let sql = "INSERT INTO positions (segment, first, data) VALUES (?1, ?2, ?3)";
    let sealed = positions_seal(segment, first).append_to(positions);
    connection.prepare_cached(sql)?.execute(params![segment, first, sealed])?;
    Ok(())
}

/// Removes a block of a segment.
pub(crate) fn remove_block(
    connection: &Connection,
    segment: i64,
    first: &[u8],
) -> Result<(), IndexError> {
    for table in ["postings", "positions"] {
        let sql = format!("DELETE FROM {table} WHERE segment = ?1 AND first = ?2");
        connection.prepare_cached(&sql)?.execute(params![segment, first])?;
    }
    Ok(())
}

/// Calls `work` with the first term and the postings of the block that may hold a term, if there is
/// one.
pub(crate) fn with_block<T>(
    connection: &Connection,
    segment: i64,
    term: &[u8],
    work: impl FnOnce(&[u8], &[u8]) -> Result<T, IndexError>,
) -> Result<Option<T>, IndexError> {
    let sql = "SELECT first, next, data FROM postings
        WHERE segment = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![segment, term])?;
    let Some(row) = rows.next()? else {
        let sql = "SELECT min(first) FROM postings WHERE segment = ?1";
        let first: Option<Vec<u8>> =
            connection.prepare_cached(sql)?.query_row([segment], |row| row.get(0))?;
        // A B-tree that is searched by a wrong count does not find what it has.
        let is_before =
            first.is_some_and(|first| first.as_slice() > term && begins_segment(&first));
        return if is_before { Ok(None) } else { Err(IndexError::Damaged) };
    };
    let StoredPostings { first, next, postings } = postings_of(segment, row)?;
    if first > term || (!next.is_empty() && next <= term) {
        return Err(IndexError::Damaged);
    }
    work(first, postings).map(Some)
}

/// Returns whether a segment can begin with this term.
///
/// A segment has memories, and no term is smaller than that of a memory. So there is a block before
/// every other term, and a lookup that finds none has lost it: the number of rows in a page is not
/// part of any row, and a flipped bit in it would make every search of a small store come back empty.
fn begins_segment(first: &[u8]) -> bool {
    term::is_memory(first)
}

/// The part of a block that ranking needs.
struct StoredPostings<'r> {
    first: &'r [u8],
    next: &'r [u8],
    postings: &'r [u8],
}

fn postings_of<'r>(segment: i64, row: &'r Row<'_>) -> Result<StoredPostings<'r>, IndexError> {
    let blob = |column| row.get_ref(column)?.as_blob().ok().ok_or(rusqlite::Error::InvalidQuery);
    let (first, next) = (blob(0)?, blob(1)?);
    let postings = postings_seal(segment, first, next).verify(blob(2)?)?;
    Ok(StoredPostings { first, next, postings })
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
    unsealed(positions_seal(segment, first), found.ok_or(IndexError::Damaged)?)
}

fn unsealed(seal: Seal, mut sealed: Vec<u8>) -> Result<Vec<u8>, IndexError> {
    let size = seal.verify(&sealed)?.len();
    sealed.truncate(size);
    Ok(sealed)
}

/// Calls `work` with the first term and the postings of each block, beginning at a term, until it
/// returns `false`.
pub(crate) fn each_block(
    connection: &Connection,
    segment: i64,
    from: &[u8],
    mut work: impl FnMut(&[u8], &[u8]) -> Result<bool, IndexError>,
) -> Result<(), IndexError> {
    let sql = "SELECT first, next, data FROM postings WHERE segment = ?1 AND first >= ifnull(
            (SELECT max(first) FROM postings WHERE segment = ?1 AND first <= ?2), x'')
        ORDER BY first";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![segment, from])?;
    let mut expected: Option<Vec<u8>> = None;
    while let Some(row) = rows.next()? {
        let StoredPostings { first, next, postings } = postings_of(segment, row)?;
        let is_next = match &expected {
            Some(expected) => expected == first,
            None => first <= from || begins_segment(first),
        };
        if !is_next {
            return Err(IndexError::Damaged);
        }
        expected = Some(next.to_vec());
        if !work(first, postings)? {
            return Ok(());
        }
    }
    // The last block has no successor.
    if expected.is_some_and(|expected| expected.is_empty()) {
        Ok(())
    } else {
        Err(IndexError::Damaged)
    }
}

/// Returns at most `limit` blocks of a segment after the given one, in order; none after the last.
pub(crate) fn blocks_after(
    connection: &Connection,
    segment: i64,
    after: Option<&Block>,
    limit: usize,
) -> Result<Vec<Block>, IndexError> {
    // A block without positions is damage, which an inner join would silently drop from every
    // merge.
    let sql = "SELECT p.first, p.next, p.data, q.data FROM postings p LEFT JOIN positions q
            ON q.segment = p.segment AND q.first = p.first
        WHERE p.segment = ?1 AND (?2 IS NULL OR p.first > ?2) ORDER BY p.first LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let start = after.map(|block| block.first.as_slice());
    let mut rows = statement.query(params![segment, start, integer(limit)])?;
    let mut blocks: Vec<Block> = Vec::new();
    while let Some(row) = rows.next()? {
        let (first, next): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let postings = unsealed(postings_seal(segment, &first, &next), row.get(2)?)?;
        let positions = unsealed(positions_seal(segment, &first), row.get(3)?)?;
        let is_next = match blocks.last().or(after) {
            Some(before) => before.next == first,
            None => begins_segment(&first),
        };
        if !is_next {
            return Err(IndexError::Damaged);
        }
        blocks.push(Block { first, next, postings, positions });
    }
    let is_end = blocks.len() < limit;
    let last = blocks.last().or(after);
    if is_end && last.is_none_or(|last| !last.next.is_empty()) {
        return Err(IndexError::Damaged);
    }
    Ok(blocks)
}
