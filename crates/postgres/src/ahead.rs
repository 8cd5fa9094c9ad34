//! Reading ahead for a group of writes, in one round trip.
//!
//! The first statement locks the rows of all stores of the group, in the order of their ids, so that two
//! groups cannot wait for each other. The others read what the members have announced. They are statements of
//! their own: each sees what was committed until it begins, and that is after the locks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use quipu_core::Error;
use quipu_core::backend::{Subject, Usage};
use quipu_core::model::{Id as _, MemoryId, MemoryPath, StoreId, VersionId, View};
use tokio_postgres::Row;

use crate::overlay::Overlay;
use crate::rows::{forgetting, memories, stores, versions};
use crate::transaction::Transaction;
use crate::values::{Bits, Columns as _, List, Param, bits, params};

/// What a write has announced.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    pub(crate) store: StoreId,
    pub(crate) subject: OwnedSubject,
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

/// What is asked for, as the columns of parameters; the first of each is the number of the store.
#[derive(Default)]
struct Questions {
    /// Paths, and whether their text is asked for.
    paths: (List<i64>, List<String>, List<bool>),
    /// Directories, as the first path and the one after the last.
    below: (List<i64>, List<String>, List<String>),
    memories: (List<i64>, List<Bits>, List<bool>),
    /// Versions by moment and id.
    versions: (List<i64>, List<i64>, List<Bits>),
    stores: List<i64>,
}

const LOCK: &str = concat!(
    "SELECT ",
    stores::columns!(),
    ", num, memories_count, size_bytes FROM stores WHERE id = ANY ($1) ORDER BY id FOR UPDATE"
);

const MEMORY_COLUMNS: &str = "m.path, m.id, m.version, m.hash, m.size_bytes, m.created_at,
    m.updated_at, CASE WHEN q.is_full THEN
        (SELECT v.content FROM versions v WHERE v.store = q.store AND v.at = m.updated_at) END,
    q.store, q.is_full";

impl Questions {
    fn new(announcements: &[Announcement], numbers: &HashMap<StoreId, i64>) -> Self {
        let mut questions =
            Self { stores: List(numbers.values().copied().collect()), ..Self::default() };
        for Announcement { store, subject } in announcements {
            let Some(number) = numbers.get(store) else { continue };
            questions.add(*number, subject);
        }
        questions
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
}

/// The statements that read ahead, with the part of the answer that each is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Lock,
    Paths,
    Below,
    Memories,
    Versions,
    VersionMemories,
    Tombstones,
}

/// Begins a transaction for a group: locks its stores and reads what its members have announced.
pub(crate) fn begin(
    transaction: &Transaction,
    announcements: &[Announcement],
    numbers: &Numbers,
) -> Result<(), Error> {
    let stores: HashSet<_> = announcements.iter().map(|it| it.store).collect();
    let stores: Vec<_> = stores.into_iter().collect();
    let ids = List(stores.iter().map(|store| bits(*store)).collect::<Vec<_>>());
    let mut known = numbers.of(&stores);
    if known.len() < stores.len() {
        for row in transaction
            .begin_group(
                &stores,
                &[("SELECT id, num FROM stores WHERE id = ANY ($1)", params![ids].to_vec())],
            )?
            .concat()
        {
            known.insert(row.id(0)?, row.value(1)?);
        }
    }
    let questions = Questions::new(announcements, &known);
    let asked = questions.statements(&ids);
    let statements: Vec<_> =
        asked.iter().map(|(_, sql, params)| (&**sql, params.clone())).collect();
    let answers = transaction.begin_group(&stores, &statements)?;
    let mut answers = asked.iter().map(|(part, ..)| *part).zip(answers);
    let locked = answers.next().map(|(_, rows)| rows).unwrap_or_default();
    let mut right: HashMap<i64, StoreId> = HashMap::new();
    let mut found = HashMap::new();
    for row in &locked {
        let (store, number): (StoreId, i64) = (row.id(0)?, row.value(12)?);
        found.insert(store, number);
        if known.get(&store) == Some(&number) {
            right.insert(number, store);
        }
    }
    for store in &stores {
        let number = found.get(store).copied();
        transaction.note_number(*store, number);
        numbers.keep(*store, number);
    }
    let mut entered = Ok(());
    transaction.learn(|overlay| {
        entered = enter_all(overlay, &right, &locked, answers, announcements);
    });
    entered
}

fn enter_all(
    overlay: &mut Overlay,
    stores: &HashMap<i64, StoreId>,
    locked: &[Row],
    answers: impl Iterator<Item = (Part, Vec<Row>)>,
    announcements: &[Announcement],
) -> Result<(), Error> {
    for row in locked {
        let usage = Usage { memories_count: row.count(13)?, size_bytes: row.count(14)? };
        overlay.put_store(stores::from_row(row)?, usage);
    }
    let mut tombstones: BTreeMap<StoreId, Vec<_>> =
        stores.values().map(|store| (*store, Vec::new())).collect();
    for (part, rows) in answers {
        for row in &rows {
            let column = match part {
                Part::Lock => continue,
                Part::Paths | Part::Below | Part::Memories | Part::VersionMemories => 8,
                Part::Versions => 13,
                Part::Tombstones => 4,
            };
            let number: i64 = row.value(column)?;
            let Some(&store) = stores.get(&number) else { continue };
            match part {
                Part::Lock => {}
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
    for Announcement { store, subject } in
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

impl Questions {
    fn statements<'a>(&'a self, stores: &'a List<Bits>) -> Vec<(Part, String, Vec<Param<'a>>)> {
        let mut all = vec![(Part::Lock, LOCK.to_owned(), vec![stores as Param<'a>])];
        let (numbers, paths, texts) = &self.paths;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT m.* FROM unnest($1::bigint[], $2::text[], $3::boolean[]) q (store, path, is_full),
                    LATERAL (SELECT {MEMORY_COLUMNS} FROM memories m
                        WHERE m.store = q.store AND m.path = q.path OFFSET 0) m"
            );
            all.push((Part::Paths, sql, vec![numbers, paths, texts]));
        }
        let (numbers, starts, ends) = &self.below;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT m.*, q.start FROM
                    (SELECT u.*, FALSE AS is_full FROM unnest($1::bigint[], $2::text[], $3::text[])
                        u (store, start, stop)) q,
                    LATERAL (SELECT {MEMORY_COLUMNS} FROM memories m
                        WHERE m.store = q.store AND m.path >= q.start AND m.path < q.stop
                        ORDER BY m.path LIMIT 2) m
                 ORDER BY m.path"
            );
            all.push((Part::Below, sql, vec![numbers, starts, ends]));
        }
        let (numbers, memories, texts) = &self.memories;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT m.* FROM unnest($1::bigint[], $2::uuid[], $3::boolean[]) q (store, id, is_full),
                    LATERAL (SELECT {MEMORY_COLUMNS} FROM memories m
                        WHERE m.store = q.store AND m.id = q.id OFFSET 0) m"
            );
            all.push((Part::Memories, sql, vec![numbers, memories, texts]));
        }
        let (numbers, moments, ids) = &self.versions;
        if !numbers.0.is_empty() {
            let sql = format!(
                "SELECT v.* FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) q (store, at, id),
                    LATERAL (SELECT {}, v.content, q.store FROM versions v
                        WHERE v.store = q.store AND v.at = q.at AND v.id = q.id OFFSET 0) v",
                versions::COLUMNS
            );
            all.push((Part::Versions, sql, vec![numbers, moments, ids]));
            let sql = format!(
                "SELECT m.* FROM
                    (SELECT u.*, TRUE AS is_full FROM unnest($1::bigint[], $2::bigint[], $3::uuid[])
                        u (store, at, version)) q,
                    LATERAL (SELECT v.memory FROM versions v
                        WHERE v.store = q.store AND v.at = q.at AND v.id = q.version OFFSET 0) v,
                    LATERAL (SELECT {MEMORY_COLUMNS} FROM memories m
                        WHERE m.store = q.store AND m.id = v.memory OFFSET 0) m"
            );
            all.push((Part::VersionMemories, sql, vec![numbers, moments, ids]));
        }
        let sql = "SELECT salt, size_bytes, filter, hash, store FROM tombstones
            WHERE store = ANY ($1)";
        all.push((Part::Tombstones, sql.to_owned(), vec![&self.stores]));
        all
    }
}
