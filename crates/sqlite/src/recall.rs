//! A cache of rows that is never stale.
//!
//! The [`gate`](crate::gate) counts the turns of all writers of all processes. While the count
//! stands still, a row that was read from the database is still the row. So a read first runs on
//! cached rows alone. On a miss it runs again on a snapshot, and the rows that it reads are cached for
//! the next one. All cached rows belong to one count, so together they are as consistent as a
//! snapshot.
//!
//! Two tempting designs are wrong. A cache that is invalidated by this process's own writes misses
//! those of other processes: a key that was revoked by the command line would stay valid in a server.
//! And mixing cached rows with rows from the database in one run would mix two states; that is why a
//! miss starts over rather than filling the gap.
//!
//! A hit costs one `pread` instead of a transaction. Only point lookups are cached: a list depends on
//! more rows than it returns, and is seldom asked for twice between two writes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use quipu_core::backend::{ReadWork, Sequence};
use quipu_core::model::{
    Key, KeyId, Memory, MemoryId, MemoryPath, Session, Store, StoreId, Timestamp, View,
};
use quipu_core::{Error, ErrorKind};
use rusqlite::Connection;

use crate::error::StorageResult as _;
use crate::files::Files;
use crate::gate::TurnCount;
use crate::rows::Rows;
use crate::seqlock::SeqlockCache;

/// When the cache takes more memory than this, it is emptied. Every write empties it too, so an eviction
/// order would seldom matter.
const SIZE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// About how much memory an entry takes beside its text.
const ENTRY_SIZE_BYTES: usize = 256;

/// The rows that are valid as long as the count of turns stands still.
pub(crate) struct Recall {
    /// `None` if this process cannot write: then it does not see the count, and nothing is cached.
    turns: Option<TurnCount>,
    files: Arc<Files>,
    cache: SeqlockCache<Entries>,
}

#[derive(Default)]
struct Entries {
    rows: HashMap<Lookup, CachedRow>,
    size_bytes: usize,
}

/// A point lookup whose result is cached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lookup {
    Key(KeyId),
    KeyWithSecret([u8; 32]),
    SessionWithToken([u8; 32]),
    Store(StoreId),
    Memory(StoreId, MemoryId, View),
    MemoryAt(StoreId, MemoryPath, View),
    LastUse(StoreId, MemoryId),
    NewestChange,
    ChangedAt(StoreId),
}

/// The result of a [`Lookup`], which may be that there is no such row.
#[derive(Clone, Debug)]
pub(crate) enum CachedRow {
    Key(Option<Key>),
    Session(Option<Session>),
    Store(Option<Store>),
    Memory(Option<Memory>),
    Moment(Option<Timestamp>),
    Newest(Sequence, Timestamp),
}

/// Conversion to and from the cache.
pub(crate) trait Cacheable: Clone {
    fn to_cached(&self) -> CachedRow;
    fn from_cached(row: &CachedRow) -> Option<Self>;
}

macro_rules! cacheable {
    ($($noun:ty => $variant:ident,)*) => {$(
        impl Cacheable for Option<$noun> {
            fn to_cached(&self) -> CachedRow {
                CachedRow::$variant(self.clone())
            }

            fn from_cached(row: &CachedRow) -> Option<Self> {
                if let CachedRow::$variant(thing) = row { Some(thing.clone()) } else { None }
            }
        }
    )*};
}

cacheable! {
    Key => Key,
    Session => Session,
    Store => Store,
    Memory => Memory,
    Timestamp => Moment,
}

impl Cacheable for (Sequence, Timestamp) {
    fn to_cached(&self) -> CachedRow {
        CachedRow::Newest(self.0, self.1)
    }

    fn from_cached(row: &CachedRow) -> Option<Self> {
        if let CachedRow::Newest(sequence, at) = row { Some((*sequence, *at)) } else { None }
    }
}

/// Where a read gets its rows from.
pub(crate) enum Source<'a> {
    /// The database, inside a transaction that also writes. Its own changes must not reach the cache.
    Database(&'a Connection),
    /// A snapshot of the database; lookups are recorded for the cache.
    Snapshot(&'a Connection, &'a RefCell<Vec<(Lookup, CachedRow)>>),
    /// The cache alone.
    Cache(&'a CacheReader<'a>),
}

/// Reads the cached rows of one count of turns.
pub(crate) struct CacheReader<'a> {
    entries: &'a Entries,
    has_missed: Cell<bool>,
}

impl CacheReader<'_> {
    /// Fails the run, which is then repeated on a snapshot. The miss is recorded apart from the error,
    /// because the work may swallow the error and go on.
    pub(crate) fn miss(&self) -> Error {
        self.has_missed.set(true);
        Error::new(ErrorKind::StorageUnavailable, "the row is not cached")
    }

    pub(crate) fn get<T: Cacheable>(&self, lookup: &Lookup) -> Result<T, Error> {
        let cached = self.entries.rows.get(lookup).and_then(T::from_cached);
        cached.ok_or_else(|| self.miss())
    }
}

impl Recall {
    pub(crate) fn new(turns: Option<TurnCount>, files: Arc<Files>) -> Self {
        Self { turns, files, cache: SeqlockCache::default() }
    }

    /// Returns the count of turns, if it can be relied on.
    fn count(&self) -> Option<u64> {
        // The count in a lock file that was removed stands still forever, while others write.
        self.files.require_unchanged_throttled().ok()?;
        self.turns.as_ref()?.get()
    }

    /// Runs `work` on the cache; `None` if a row is missing.
    pub(crate) fn try_without_database(
        &self,
        work: &mut ReadWork<'_>,
    ) -> Option<Result<(), Error>> {
        let worked = self.cache.with(
            || self.count(),
            |entries| {
                let reader = CacheReader { entries, has_missed: Cell::new(false) };
                let worked = work(&Rows::new(Source::Cache(&reader)));
                (!reader.has_missed.get()).then_some(worked)
            },
        );
        worked.flatten()
    }

    /// Runs `work` on a snapshot and caches the rows that it looked up.
    pub(crate) fn run_on(
        &self,
        connection: &Connection,
        work: &mut ReadWork<'_>,
    ) -> Result<(), Error> {
        let lookups = RefCell::default();
        let turn = self.count();
        // Statements that are prepared once cost a quarter of a `Transaction`.
        let run = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
        run("BEGIN").or_storage_error()?;
        let worked = work(&Rows::new(Source::Snapshot(connection, &lookups)));
        let ended = run("COMMIT").or_storage_error();
        // The same even count before and after: nobody wrote in between, so the snapshot is that of
        // this count. Looking only before or only after would cache rows under the wrong count.
        if let Some(turn) = turn.filter(|_| turn == self.count()) {
            self.store(turn, lookups.into_inner());
        }
        worked.and(ended)
    }

    fn store(&self, turn: u64, lookups: Vec<(Lookup, CachedRow)>) {
        let lookups = cacheable(lookups);
        if lookups.is_empty() {
            return;
        }
        self.cache.add(turn, |entries| {
            if entries.size_bytes > SIZE_BYTES_MAX {
                *entries = Entries::default();
            }
            for (lookup, row) in lookups {
                entries.size_bytes += size_bytes(&row);
                entries.rows.insert(lookup, row);
            }
        });
    }
}

/// Drops negative results for keys, sessions and stores: anybody can look up any number of these
/// without a credential, and they would crowd out the entries of legitimate callers.
fn cacheable(mut lookups: Vec<(Lookup, CachedRow)>) -> Vec<(Lookup, CachedRow)> {
    // A token is looked up among the keys first, so this one negative result is needed to answer for
    // its session from the cache.
    let tokens: Vec<_> = lookups
        .iter()
        .filter_map(|(lookup, row)| match (lookup, row) {
            (Lookup::SessionWithToken(hash), CachedRow::Session(Some(_))) => Some(*hash),
            _ => None,
        })
        .collect();
    lookups.retain(|(lookup, row)| match (lookup, row) {
        (Lookup::KeyWithSecret(hash), CachedRow::Key(None)) => tokens.contains(hash),
        (_, CachedRow::Session(None) | CachedRow::Store(None)) => false,
        _ => true,
    });
    lookups
}

fn size_bytes(row: &CachedRow) -> usize {
    let text = match row {
        CachedRow::Memory(Some(memory)) => {
            memory.content.as_ref().map_or(0, |text| text.as_str().len())
        }
        CachedRow::Key(Some(key)) => key.payload.as_ref().map_or(0, String::len),
        CachedRow::Memory(None)
        | CachedRow::Key(None)
        | CachedRow::Session(_)
        | CachedRow::Store(_)
        | CachedRow::Moment(_)
        | CachedRow::Newest(..) => 0,
    };
    text + ENTRY_SIZE_BYTES
}
