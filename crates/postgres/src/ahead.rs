//! Reading ahead for a group of writes, in one round trip.
//!
//! First the tables of the stores' partitions are locked, without waiting. The first statement locks the rows of
//! all stores of the group, in the order of their ids, so that two groups cannot wait for each other. The
//! others read what the members have announced. They are statements of
//! their own: each sees what was committed until it begins, and that is after the locks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use quipu_core::Error;
use quipu_core::backend::{Subject, Usage};
use quipu_core::model::{Id as _, MemoryId, MemoryPath, StoreId, VersionId, View};
use tokio_postgres::Row;

use crate::overlay::Overlay;
use crate::partition::Partition;
use crate::rows::{forgetting, memories, stores, versions};
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, Param, bits};

/// What a write has announced.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    pub(crate) store: StoreId,
    pub(crate) subject: OwnedSubject,
    /// The partition of the store, if its number is known.
    pub(crate) partition: Option<Partition>,
}

/// What becomes of a store that somebody else holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It is left out.
    Skip,
    /// It is waited for.
    Wait,
}

/// A [`Subject`] that can be handed to another thread.
#[derive(Clone, Debug)]
pub(crate) enum OwnedSubject {
    Store,
    At(MemoryPath, View),
    Memories(Vec<MemoryId>, View),
    Version(VersionId),
}

impl From<Subject<'_>> for OwnedSubject {
    fn from(subject: Subject<'_>) -> Self {
        match subject {
            Subject::Store => Self::Store,
            Subject::At(path, view) => Self::At(path.clone(), view),
            Subject::Memory(id, view) => Self::Memories(vec![id], view),
            Subject::Memories(ids) => Self::Memories(ids.to_vec(), View::Full),
            Subject::Version(id) => Self::Version(id),
        }
    }
}

/// The numbers of stores, which never change. They are kept for the whole process, so that a group can ask
/// for rows by number in the round trip that locks the stores.
#[derive(Default)]
pub(crate) struct Numbers(Mutex<HashMap<StoreId, i64>>);

/// How many numbers are kept. An entry takes 24 bytes.
const NUMBERS_MAX: usize = 100_000;

impl Numbers {
    /// Returns the partition of a store.
    pub(crate) fn partition(&self, store: StoreId) -> Option<Partition> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&store).copied().map(Partition::of_store)
    }

    fn of(&self, stores: &[StoreId]) -> HashMap<StoreId, i64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stores.iter().filter_map(|store| Some((*store, *known.get(store)?))).collect()
    }

    fn keep(&self, store: StoreId, number: Option<i64>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= NUMBERS_MAX {
            known.clear();
        }
        match number {
            Some(number) => known.insert(store, number),
            None => known.remove(&store),
        };
    }
}

/// What is asked for in one partition, as the columns of parameters; the first of each is the number of the
/// store.
#[derive(Default)]
struct Questions {
    stores: List<i64>,
    /// Paths, and whether their text is asked for.
    paths: (List<i64>, List<String>, List<bool>),
    /// Directories, as the first path and the one after the last.
    below: (List<i64>, List<String>, List<String>),
    memories: (List<i64>, List<Bits>, List<bool>),
    /// Versions by moment and id.
    versions: (List<i64>, List<i64>, List<Bits>),
}

macro_rules! lock {
    ($how:literal) => {
        concat!(
            "SELECT ",
            stores::columns!(),
            ", num, memories_count, size_bytes FROM stores WHERE id = ANY ($1) ORDER BY id FOR UPDATE",
            $how
        )
    };
}

impl Held {
    /// Returns the statement that locks stores.
    fn lock(self) -> &'static str {
        match self {
            Self::Skip => lock!(" SKIP LOCKED"),
            Self::Wait => lock!(""),
        }
    }
}

/// Returns the columns of memories of a partition.
fn memory_columns(part: u8) -> String {
    format!(
        "m.path, m.id, m.version, m.hash, m.size_bytes, m.created_at, m.updated_at,
            CASE WHEN q.is_full THEN (SELECT v.content FROM versions_{part} v
                WHERE v.store = q.store AND v.at = m.updated_at) END,
            q.store, q.is_full"
    )
}

/// The statements that read ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Lock,
    Tombstones,
    Texts,
    Paths,
    Below,
    Memories,
    Versions,
    VersionMemories,
}

/// A statement, with the part of the answer that it is for.
type Asked<'a> = (Part, (String, Vec<Param<'a>>));

impl Questions {
    /// Returns the questions in each partition.
    fn of(
        announcements: &[Announcement],
        numbers: &HashMap<StoreId, i64>,
    ) -> BTreeMap<Partition, Self> {
        let mut parts: BTreeMap<_, Self> = BTreeMap::new();
        for number in numbers.values() {
            let part = parts.entry(Partition::of_store(*number)).or_default();
            part.stores.0.push(*number);
        }
        for Announcement { store, subject, .. } in announcements {
            let Some(number) = numbers.get(store) else { continue };
            parts.entry(Partition::of_store(*number)).or_default().add(*number, subject);
        }
        parts
    }

    fn add(&mut self, store: i64, subject: &OwnedSubject) {
        match subject {
            OwnedSubject::Store => {}
            OwnedSubject::At(path, view) => {
                for above in path.ancestors() {
                    self.add_path(store, above, View::Basic);
                }
                self.add_path(store, path.as_str(), *view);
                let directory = path.as_directory();
                self.below.0.0.push(store);
                self.below.1.0.push(directory.as_str().to_owned());
                self.below.2.0.push(memories::end_of(&directory));
            }
            OwnedSubject::Memories(ids, view) => {
                for id in ids {
                    self.memories.0.0.push(store);
                    self.memories.1.0.push(bits(*id));
                    self.memories.2.0.push(*view == View::Full);
                }
            }
            OwnedSubject::Version(id) => {
                self.versions.0.0.push(store);
                self.versions.1.0.push(id.created_at().as_micros());
                self.versions.2.0.push(bits(*id));
            }
        }
    }

    fn add_path(&mut self, store: i64, path: &str, view: View) {
        self.paths.0.0.push(store);
        self.paths.1.0.push(path.to_owned());
        self.paths.2.0.push(view == View::Full);
    }

    /// Returns the statements that ask, in one partition.
    fn statements(&self, part: u8) -> Vec<Asked<'_>> {
        let columns = memory_columns(part);
        let mut all: Vec<Asked<'_>> = Vec::new();
        let sql = format!(
            "SELECT store, name, description, metadata FROM store_texts_{part} WHERE store = ANY ($1)"
        );
        all.push((Part::Texts, (sql, vec![&self.stores])));
        let (numbers, paths, texts) = &self.paths;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT m.* FROM unnest($1::bigint[], $2::text[], $3::boolean[]) q (store, path, is_full),
                    LATERAL (SELECT {columns} FROM memories_{part} m
                        WHERE m.store = q.store AND m.path = q.path OFFSET 0) m"
            );
            all.push((Part::Paths, (sql, vec![numbers, paths, texts])));
        }
        let (numbers, starts, ends) = &self.below;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT m.*, q.start FROM
                    (SELECT u.*, FALSE AS is_full FROM unnest($1::bigint[], $2::text[], $3::text[])
                        u (store, start, stop)) q,
                    LATERAL (SELECT {columns} FROM memories_{part} m
                        WHERE m.store = q.store AND m.path >= q.start AND m.path < q.stop
                        ORDER BY m.path LIMIT 2) m
                 ORDER BY m.path"
            );
            all.push((Part::Below, (sql, vec![numbers, starts, ends])));
        }
        let (numbers, memories, texts) = &self.memories;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT m.* FROM unnest($1::bigint[], $2::uuid[], $3::boolean[]) q (store, id, is_full),
                    LATERAL (SELECT {columns} FROM memories_{part} m
                        WHERE m.store = q.store AND m.id = q.id OFFSET 0) m"
            );
            all.push((Part::Memories, (sql, vec![numbers, memories, texts])));
        }
        let (numbers, moments, ids) = &self.versions;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT v.* FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) q (store, at, id),
                    LATERAL (SELECT {}, v.content, q.store FROM versions_{part} v
                        WHERE v.store = q.store AND v.at = q.at AND v.id = q.id OFFSET 0) v",
                versions::COLUMNS
            );
            all.push((Part::Versions, (sql, vec![numbers, moments, ids])));
            let sql = format!(
                "SELECT m.* FROM
                    (SELECT u.*, TRUE AS is_full FROM unnest($1::bigint[], $2::bigint[], $3::uuid[])
                        u (store, at, version)) q,
                    LATERAL (SELECT v.memory FROM versions_{part} v
                        WHERE v.store = q.store AND v.at = q.at AND v.id = q.version OFFSET 0) v,
                    LATERAL (SELECT {columns} FROM memories_{part} m
                        WHERE m.store = q.store AND m.id = v.memory OFFSET 0) m"
            );
            all.push((Part::VersionMemories, (sql, vec![numbers, moments, ids])));
        }
        all
    }
}

/// Begins a transaction for a group: locks its stores and reads what its members have announced. Returns the
/// stores that somebody else holds, if these are skipped.
pub(crate) fn begin(
    transaction: &Transaction,
    announcements: &[Announcement],
    numbers: &Numbers,
    held: Held,
) -> Result<HashSet<StoreId>, Error> {
    let stores: BTreeSet<_> = announcements.iter().map(|it| it.store).collect();
    let stores: Vec<_> = stores.into_iter().collect();
    let ids = List(stores.iter().map(|store| bits(*store)).collect::<Vec<_>>());
    let mut known = numbers.of(&stores);
    if known.len() < stores.len() {
        known.extend(look_up(transaction, &stores, &ids)?);
    }
    let questions = Questions::of(announcements, &known);
    let partitions: Vec<_> = questions.keys().copied().collect();
    let all = List(known.values().copied().collect::<Vec<_>>());
    let tombstones = "SELECT salt, size_bytes, filter, hash, store FROM tombstones
        WHERE store = ANY ($1)";
    let mut asked: Vec<Asked<'_>> = vec![
        (Part::Lock, (held.lock().to_owned(), vec![&ids])),
        (Part::Tombstones, (tombstones.to_owned(), vec![&all])),
    ];
    for (partition, questions) in &questions {
        asked.extend(questions.statements(partition.number()));
    }
    let (parts, statements): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
    let answers = transaction.begin_group(&stores, &partitions, &statements)?;
    let mut answers = parts.into_iter().zip(answers);
    let locked = answers.next().map(|(_, rows)| rows).unwrap_or_default();
    let mut found = HashMap::new();
    for row in &locked {
        found.insert(row.id(0)?, row.value(LOCKED_NUM)?);
    }
    let skipped = match held {
        Held::Skip if found.len() < stores.len() => {
            let present = look_up(transaction, &stores, &ids)?;
            present.into_keys().filter(|store| !found.contains_key(store)).collect()
        }
        Held::Skip | Held::Wait => HashSet::new(),
    };
    transaction.leave_out(&skipped);
    for store in stores.iter().filter(|store| !skipped.contains(store)) {
        let number = found.get(store).copied();
        transaction.note_number(*store, number);
        numbers.keep(*store, number);
    }
    let right = found.into_iter().filter(|(store, number)| known.get(store) == Some(number));
    let right = right.map(|(store, number)| (number, store)).collect();
    let mut entered = Ok(());
    transaction.learn(|overlay| {
        entered = enter_all(overlay, &right, &locked, answers, announcements);
    });
    entered.map(|()| skipped)
}

/// The columns that [`lock!`] adds to those of a store.
const LOCKED_NUM: usize = 9;
const LOCKED_COUNT: usize = 10;
const LOCKED_SIZE: usize = 11;

/// Returns the numbers of those stores that exist.
fn look_up(
    transaction: &Transaction,
    stores: &[StoreId],
    ids: &List<Bits>,
) -> Result<HashMap<StoreId, i64>, Error> {
    let sql = "SELECT id, num FROM stores WHERE id = ANY ($1)".to_owned();
    let answers = transaction.begin_group(stores, &[], &[(sql, vec![ids])])?;
    answers.iter().flatten().map(|row| Ok((row.id(0)?, row.value(1)?))).collect()
}

fn enter_all(
    overlay: &mut Overlay,
    stores: &HashMap<i64, StoreId>,
    locked: &[Row],
    answers: impl Iterator<Item = (Part, Vec<Row>)>,
    announcements: &[Announcement],
) -> Result<(), Error> {
    let mut tombstones: BTreeMap<StoreId, Vec<_>> =
        stores.values().map(|store| (*store, Vec::new())).collect();
    for (part, rows) in answers {
        for row in &rows {
            let column = match part {
                Part::Lock | Part::Texts => 0,
                Part::Tombstones => 4,
                Part::Paths | Part::Below | Part::Memories | Part::VersionMemories => 8,
                Part::Versions => 13,
            };
            let number: i64 = row.value(column)?;
            let Some(&store) = stores.get(&number) else { continue };
            match part {
                Part::Lock => {}
                Part::Texts => {
                    let is_it = |row: &&Row| row.value::<i64>(LOCKED_NUM).ok() == Some(number);
                    let Some(of_store) = locked.iter().find(is_it) else { continue };
                    let usage = Usage {
                        memories_count: of_store.count(LOCKED_COUNT)?,
                        size_bytes: of_store.count(LOCKED_SIZE)?,
                    };
                    let texts = stores::texts(row, 1)?;
                    overlay.put_store(stores::from_parts(of_store, texts)?, usage);
                }
                Part::Paths | Part::Memories | Part::VersionMemories => {
                    let view = if row.value(9)? { View::Full } else { View::Basic };
                    overlay.put_memory(memories::from_row(row, store)?, view);
                }
                Part::Below => {
                    let directory: String = row.value(10)?;
                    overlay.put_below(store, &directory, Some(memories::from_row(row, store)?));
                }
                Part::Versions => overlay.put_version(versions::from_row(row, store)?),
                Part::Tombstones => {
                    tombstones.entry(store).or_default().push(forgetting::tombstone(row)?);
                }
            }
        }
    }
    for (store, tombstones) in tombstones {
        overlay.put_tombstones(store, tombstones);
    }
    enter_absent(overlay, stores, announcements);
    Ok(())
}

/// Enters that nothing was found where nothing was found.
fn enter_absent(
    overlay: &mut Overlay,
    stores: &HashMap<i64, StoreId>,
    announcements: &[Announcement],
) {
    let stores: HashSet<_> = stores.values().copied().collect();
    for Announcement { store, subject, .. } in
        announcements.iter().filter(|it| stores.contains(&it.store))
    {
        match subject {
            OwnedSubject::At(path, _) => {
                for above in path.ancestors() {
                    overlay.put_empty_path(*store, above);
                }
                overlay.put_empty_path(*store, path.as_str());
                overlay.put_below(*store, path.as_directory().as_str(), None);
            }
            OwnedSubject::Memories(ids, _) => {
                for id in ids {
                    overlay.put_no_memory(*store, *id);
                }
            }
            OwnedSubject::Store | OwnedSubject::Version(_) => {}
        }
    }
}
