//! The rows of vectors.
//!
//! Vectors are made long after the text was indexed, by a process that held no lock meanwhile. So
//! [`put_vectors`] checks everything that may have changed since: the store may be gone, the memory may
//! have another version, the text may have been redacted, and another process may use another encoder.
//!
//! A memory that is indexed again loses its vectors in the same transaction. So the vectors in the file
//! are those of the indexed versions, and a store is embedded completely if as many memories have
//! vectors, or were rejected by the encoder, as it has memories.

use quipu_core::backend::Sequence;
use quipu_core::model::{Id as _, MemoryId, StoreId, Timestamp, VersionId};
use quipu_vectors::quantized::{DIMENSIONS_MAX, Quantized};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::codec::{Damaged, Input, put_varint};
use super::error::IndexError;
use super::note_rows;
use super::rows::blob;
use super::seal::Seal;
use super::store_rows::{self, StoreRow};
use super::term::Space;

/// An encoder whose vectors are in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncoderRow {
    pub(crate) num: i64,
    pub(crate) dimensions: usize,
    pub(crate) identity: String,
}

/// What a store has of the vectors of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Embeddings {
    pub(crate) encoder: i64,
    /// The stamp of the newest vectors.
    pub(crate) stamp: i64,
    /// How many memories have vectors.
    pub(crate) memories: u64,
    /// How many memories the encoder has rejected.
    pub(crate) rejected: u64,
    /// How many vectors these memories have.
    pub(crate) passages: u64,
}

impl Embeddings {
    /// Returns the number that counts a memory with this many passages.
    fn counted(&mut self, passages: u64) -> &mut u64 {
        if passages > 0 { &mut self.memories } else { &mut self.rejected }
    }
}

/// The vectors of a version of a memory; without passages if the encoder has rejected its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MemoryVectors {
    pub(crate) memory: MemoryId,
    pub(crate) version: VersionId,
    /// When that version was made. The segments have this of every memory, but not the version.
    pub(crate) updated_at: Timestamp,
    pub(crate) passages: Vec<PassageVector>,
}

/// The vector of a passage, or of a whole memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PassageVector {
    pub(crate) lines: Lines,
    pub(crate) vector: Quantized,
}

/// The first and the last line of a passage, 1-based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Lines {
    /// Those of a whole memory that has several passages. Its vector comes after theirs.
    pub(crate) const WHOLE: Self = Self { first: 0, last: 0 };
}

/// The vectors of a memory as they are stored.
pub(crate) struct StoredVectors<'r> {
    pub(crate) memory: MemoryId,
    pub(crate) version: VersionId,
    pub(crate) updated_at: Timestamp,
    pub(crate) passages: StoredPassages<'r>,
}

/// The vector of a passage as it is stored.
pub(crate) struct StoredPassage<'r> {
    pub(crate) lines: Lines,
    pub(crate) scale: f32,
    /// The values of the vector, each of which is an `i8`.
    pub(crate) values: &'r [u8],
}

/// The passages of stored vectors.
pub(crate) struct StoredPassages<'r> {
    input: Input<'r>,
    left: usize,
    dimensions: usize,
}

impl<'r> StoredPassages<'r> {
    /// Returns how many passages are left.
    pub(crate) fn len(&self) -> usize {
        self.left
    }

    /// Returns the next passage.
    pub(crate) fn next(&mut self) -> Result<Option<StoredPassage<'r>>, Damaged> {
        let Some(left) = self.left.checked_sub(1) else {
            return if self.input.is_empty() { Ok(None) } else { Err(Damaged) };
        };
        self.left = left;
        let lines = Lines { first: self.input.varint_u32()?, last: self.input.varint_u32()? };
        let scale = f32::from_le_bytes(self.input.array()?);
        if !scale.is_finite() {
            return Err(Damaged);
        }
        Ok(Some(StoredPassage { lines, scale, values: self.input.take(self.dimensions)? }))
    }
}

/// The size of a sealed row without passages: a version, a moment, their number, and the seal.
const WITHOUT_PASSAGES_SIZE_BYTES: usize = 16 + 8 + 1 + Seal::SIZE_BYTES;

fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn encoder_seal(num: i64, dimensions: i64) -> Seal {
    Seal::new("encoders").with_number(num).with_number(dimensions)
}

/// Returns the encoder in use, if there is one.
pub(crate) fn encoder(connection: &Connection) -> Result<Option<EncoderRow>, IndexError> {
    let sql = "SELECT num, dimensions, identity FROM encoders ORDER BY num DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (num, dimensions): (i64, i64) = (row.get(0)?, row.get(1)?);
    let sealed = row.get_ref(2)?.as_blob().ok().ok_or(IndexError::Damaged)?;
    let identity = encoder_seal(num, dimensions).verify(sealed)?;
    let identity = str::from_utf8(identity).ok().ok_or(IndexError::Damaged)?.to_owned();
    let dimensions = usize::try_from(dimensions).ok().filter(|it| *it <= DIMENSIONS_MAX);
    Ok(Some(EncoderRow { num, dimensions: dimensions.ok_or(IndexError::Damaged)?, identity }))
}

/// Puts another encoder into use, with a number that is a moment.
pub(crate) fn add_encoder(
    connection: &Connection,
    (identity, dimensions): (&str, usize),
    now: Timestamp,
) -> Result<EncoderRow, IndexError> {
    let known = encoder(connection)?.map_or(0, |row| row.num);
    let num = now.as_micros().max(known.saturating_add(1));
    let sql = "INSERT INTO encoders (num, dimensions, identity) VALUES (?1, ?2, ?3)";
    let stored = i64::try_from(dimensions).unwrap_or(i64::MAX);
    let sealed = encoder_seal(num, stored).append_to(identity.as_bytes());
    connection.prepare_cached(sql)?.execute(params![num, stored, sealed])?;
    Ok(EncoderRow { num, dimensions, identity: identity.to_owned() })
}

/// Removes at most `limit` rows of encoders that are no longer in use; returns whether there may be more.
pub(crate) fn remove_outdated(connection: &Connection, limit: usize) -> Result<bool, IndexError> {
    let sql = "SELECT min(num) FROM encoders HAVING count(*) > 1";
    let old: Option<i64> =
        connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
    let Some(old) = old else { return Ok(false) };
    let sql = "DELETE FROM vectors WHERE (store, stamp) IN
        (SELECT store, stamp FROM vectors WHERE encoder = ?1 LIMIT ?2)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    if connection.prepare_cached(sql)?.execute([old, limit])? == 0 {
        connection.prepare_cached("DELETE FROM encoders WHERE num = ?1")?.execute([old])?;
    }
    Ok(true)
}

fn embeddings_seal(store: i64, row: &Embeddings) -> i64 {
    let Embeddings { encoder, stamp, memories, rejected, passages } = *row;
    let seal = Seal::new("embeddings").with_number(store).with_number(encoder).with_number(stamp);
    let counts = [memories, rejected, passages].map(integer);
    counts.into_iter().fold(seal, Seal::with_number).number()
}

/// Returns what a store has of vectors; `None` if it has none.
pub(crate) fn embeddings(
    connection: &Connection,
    store: i64,
) -> Result<Option<Embeddings>, IndexError> {
    let sql = "SELECT encoder, stamp, memories, rejected, passages, seal FROM embeddings
        WHERE store = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([store])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let count = |column| -> Result<u64, IndexError> {
        u64::try_from(row.get::<_, i64>(column)?).ok().ok_or(IndexError::Damaged)
    };
    let found = Embeddings {
        encoder: row.get(0)?,
        stamp: row.get(1)?,
        memories: count(2)?,
        rejected: count(3)?,
        passages: count(4)?,
    };
    let is_sealed = row.get::<_, i64>(5)? == embeddings_seal(store, &found);
    if is_sealed { Ok(Some(found)) } else { Err(IndexError::Damaged) }
}

fn put_embeddings(connection: &Connection, store: i64, row: &Embeddings) -> Result<(), IndexError> {
    let sql = "INSERT OR REPLACE INTO embeddings
        (store, encoder, stamp, memories, rejected, passages, seal)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.prepare_cached(sql)?.execute(params![
        store,
        row.encoder,
        row.stamp,
        integer(row.memories),
        integer(row.rejected),
        integer(row.passages),
        embeddings_seal(store, row),
    ])?;
    Ok(())
}

/// Returns the stores of which an encoder has neither encoded nor rejected some memories.
pub(crate) fn incomplete_stores(
    connection: &Connection,
    encoder: &EncoderRow,
) -> Result<Vec<StoreId>, IndexError> {
    let mut incomplete = Vec::new();
    for id in store_rows::ids(connection)? {
        let Some(row) = store_rows::store(connection, id)?.filter(|row| !row.is_removed()) else {
            continue;
        };
        let known = embeddings(connection, row.num)?.filter(|it| it.encoder == encoder.num);
        let done = known.map_or(0, |it| it.memories.saturating_add(it.rejected));
        if done < row.totals.count(Space::Memories) {
            incomplete.push(id);
        }
    }
    Ok(incomplete)
}

/// Returns at most `limit` memories of a store before the given one that an encoder has neither encoded nor
/// rejected, with their cards; the newest first.
///
/// One new memory among many is found at once that way, and the search for more of them ends when all that
/// are missing are found.
pub(crate) fn notes_without_vectors(
    connection: &Connection,
    (store, encoder): (&StoreRow, &EncoderRow),
    before: Option<MemoryId>,
    limit: usize,
) -> Result<Vec<(MemoryId, Vec<u8>)>, IndexError> {
    let known = embeddings(connection, store.num)?.filter(|it| it.encoder == encoder.num);
    let done = known.map_or(0, |it| it.memories.saturating_add(it.rejected));
    let missing = store.totals.count(Space::Memories).saturating_sub(done);
    let limit = usize::try_from(missing).unwrap_or(usize::MAX).min(limit);
    let sql = "SELECT memory, totals, card FROM notes AS note
        WHERE store = ?1 AND memory < ?2 AND NOT EXISTS (SELECT 1 FROM vectors
            WHERE store = ?1 AND memory = note.memory AND encoder = ?3)
        ORDER BY memory DESC LIMIT ?4";
    let mut statement = connection.prepare_cached(sql)?;
    // No id has as many bytes.
    let before = before.map_or(vec![u8::MAX; 17], |memory| blob(memory.bits()).to_vec());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![store.num, before, encoder.num, limit])?;
    let mut notes = Vec::new();
    while let Some(row) = rows.next()? {
        let (memory, card) = note_rows::of_row(store.num, row)?;
        notes.push((memory, card.to_vec()));
    }
    Ok(notes)
}

/// The outcome of adding vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutVectors {
    /// This many memories have vectors now, and this many were rejected; others have changed since they
    /// were read.
    Put { embedded: usize, rejected: usize },
    /// The store is gone, or something was redacted from it since the memories were read.
    Outdated,
    /// Another encoder is in use.
    Superseded,
}

/// Adds the vectors of memories that were read at `read_at`, except of those that have changed:
/// `is_current` says whether a card is that of the version.
pub(crate) fn put_vectors(
    connection: &Connection,
    store: StoreId,
    (encoder, read_at): (&EncoderRow, Sequence),
    made: &[MemoryVectors],
    is_current: impl Fn(&MemoryVectors, &[u8]) -> bool,
) -> Result<PutVectors, IndexError> {
    if self::encoder(connection)?.as_ref() != Some(encoder) {
        return Ok(PutVectors::Superseded);
    }
    let Some(row) = store_rows::store(connection, store)? else { return Ok(PutVectors::Outdated) };
    if row.is_removed() || read_at < row.purged {
        return Ok(PutVectors::Outdated);
    }
    let (mut embedded, mut rejected) = (0, 0);
    for vectors in made {
        let note = note_rows::note(connection, row.num, vectors.memory)?;
        if note.is_some_and(|note| is_current(vectors, &note.card)) {
            put_row(connection, row.num, encoder, vectors)?;
            *(if vectors.passages.is_empty() { &mut rejected } else { &mut embedded }) += 1;
        }
    }
    Ok(PutVectors::Put { embedded, rejected })
}

fn row_seal(store: i64, stamp: i64, memory: &[u8; 16], encoder: i64) -> Seal {
    let seal = Seal::new("vectors").with_number(store).with_number(stamp);
    seal.with(memory).with_number(encoder)
}

fn put_row(
    connection: &Connection,
    store: i64,
    encoder: &EncoderRow,
    vectors: &MemoryVectors,
) -> Result<(), IndexError> {
    remove_vectors(connection, store, std::iter::once(vectors.memory))?;
    let before = embeddings(connection, store)?;
    let stamp = before.map_or(0, |it| it.stamp) + 1;
    let known = before.filter(|it| it.encoder == encoder.num);
    let none = Embeddings { encoder: encoder.num, stamp, memories: 0, rejected: 0, passages: 0 };
    let mut now = Embeddings { stamp, ..known.unwrap_or(none) };
    let passages = u64::try_from(vectors.passages.len()).unwrap_or(u64::MAX);
    now.passages += passages;
    *now.counted(passages) += 1;
    put_embeddings(connection, store, &now)?;
    let memory = blob(vectors.memory.bits());
    let sealed = row_seal(store, stamp, &memory, encoder.num).append_to(&to_bytes(vectors));
    let sql = "INSERT INTO vectors (store, stamp, memory, encoder, data)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.prepare_cached(sql)?.execute(params![store, stamp, memory, encoder.num, sealed])?;
    Ok(())
}

fn to_bytes(vectors: &MemoryVectors) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&blob(vectors.version.bits()));
    bytes.extend_from_slice(&vectors.updated_at.as_micros().to_le_bytes());
    put_varint(&mut bytes, u64::try_from(vectors.passages.len()).unwrap_or(u64::MAX));
    for PassageVector { lines, vector } in &vectors.passages {
        put_varint(&mut bytes, u64::from(lines.first));
        put_varint(&mut bytes, u64::from(lines.last));
        bytes.extend_from_slice(&vector.scale.to_le_bytes());
        bytes.extend(vector.values.iter().map(|value| value.cast_unsigned()));
    }
    bytes
}

/// Decodes the blob of a row, without its seal.
pub(super) fn from_bytes(
    bytes: &[u8],
    memory: MemoryId,
    dimensions: usize,
) -> Result<StoredVectors<'_>, Damaged> {
    let mut input = Input::new(bytes);
    let version = VersionId::from_bits(u128::from_be_bytes(input.array()?));
    let updated_at = Timestamp::from_micros(i64::from_le_bytes(input.array()?));
    let left = input.varint_usize()?;
    let passages = StoredPassages { input, left, dimensions };
    Ok(StoredVectors { memory, version, updated_at, passages })
}

/// Calls `work` with the vectors of an encoder after a stamp, in order.
pub(crate) fn each_vectors_after(
    connection: &Connection,
    (store, encoder): (i64, &EncoderRow),
    stamp: i64,
    mut work: impl FnMut(StoredVectors<'_>) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let sql = "SELECT stamp, memory, encoder, data FROM vectors
        WHERE store = ?1 AND stamp > ?2 ORDER BY stamp";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([store, stamp])?;
    while let Some(row) = rows.next()? {
        let of: i64 = row.get(2)?;
        if of == encoder.num {
            let (memory, bytes) = unsealed(store, of, row)?;
            work(from_bytes(bytes, memory, encoder.dimensions)?)?;
        }
    }
    Ok(())
}

fn unsealed<'r>(
    store: i64,
    encoder: i64,
    row: &'r Row<'_>,
) -> Result<(MemoryId, &'r [u8]), IndexError> {
    let (stamp, memory): (i64, [u8; 16]) = (row.get(0)?, row.get(1)?);
    let sealed = row.get_ref(3)?.as_blob().ok().ok_or(IndexError::Damaged)?;
    let bytes = row_seal(store, stamp, &memory, encoder).verify(sealed)?;
    Ok((MemoryId::from_bits(u128::from_be_bytes(memory)), bytes))
}

/// Removes the vectors of memories of a store.
pub(crate) fn remove_vectors(
    connection: &Connection,
    store: i64,
    memories: impl Iterator<Item = MemoryId>,
) -> Result<(), IndexError> {
    // Most indexes have no vectors, and then nothing is paid for each memory.
    let Some(mut left) = embeddings(connection, store)? else { return Ok(()) };
    let before = left;
    let sql = "DELETE FROM vectors WHERE store = ?1 AND memory = ?2
        RETURNING stamp, memory, encoder, data";
    for memory in memories {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![store, blob(memory.bits())])?;
        let Some(row) = rows.next()? else { continue };
        let encoder: i64 = row.get(2)?;
        if encoder == left.encoder {
            let (memory, bytes) = unsealed(store, encoder, row)?;
            let count = from_bytes(bytes, memory, 0)?.passages.left;
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            let counted = left.counted(count);
            *counted = counted.checked_sub(1).ok_or(IndexError::Damaged)?;
            left.passages = left.passages.checked_sub(count).ok_or(IndexError::Damaged)?;
        }
    }
    if left == before { Ok(()) } else { put_embeddings(connection, store, &left) }
}

/// Forgets which memories an encoder has rejected.
pub(crate) fn forget_rejected(
    connection: &Connection,
    store: i64,
    encoder: &EncoderRow,
) -> Result<(), IndexError> {
    let known = embeddings(connection, store)?;
    let Some(known) = known.filter(|it| it.encoder == encoder.num && it.rejected > 0) else {
        return Ok(());
    };
    let sql = "SELECT stamp, memory, encoder, data FROM vectors
        WHERE store = ?1 AND encoder = ?2 AND length(data) = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![store, encoder.num, WITHOUT_PASSAGES_SIZE_BYTES])?;
    let mut rejected = Vec::new();
    while let Some(row) = rows.next()? {
        rejected.push(unsealed(store, encoder.num, row)?.0);
    }
    if u64::try_from(rejected.len()).ok() != Some(known.rejected) {
        return Err(IndexError::Damaged);
    }
    remove_vectors(connection, store, rejected.into_iter())
}

/// Removes at most `limit` rows of a store; returns whether any were removed.
pub(crate) fn remove_vectors_of(
    connection: &Connection,
    store: i64,
    limit: usize,
) -> Result<bool, IndexError> {
    let sql = "DELETE FROM vectors WHERE store = ?1 AND stamp IN
        (SELECT stamp FROM vectors WHERE store = ?1 LIMIT ?2)";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let removed = connection.prepare_cached(sql)?.execute([store, limit])?;
    connection.prepare_cached("DELETE FROM embeddings WHERE store = ?1")?.execute([store])?;
    Ok(removed > 0)
}
