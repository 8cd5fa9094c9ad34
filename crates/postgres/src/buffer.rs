//! Changes that a transaction has made and not sent yet.
//!
//! A memory's change is five rows: its version, the memory, the store's usage, the feed, the counter. Sent
//! one by one they would be five round trips, for each member of a group. So they are collected here and sent
//! with the commit, as one statement for each table whatever the number of changes.

use std::collections::{BTreeMap, HashMap};

use quipu_core::backend::{Change, Commit, Event};
use quipu_core::model::{Content, ContentHash, Memory, MemoryId, MemoryPath, Reason, VersionId};

use crate::partition::Partition;
use crate::values::{Bits, List, Param, Parameter, bits, number};

/// How much text is collected before it is sent early.
const SIZE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How many changes are collected before they are sent early.
const CHANGES_MAX: usize = 2_000;

/// Changes in the order in which they were made.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Each with the number of its store.
    commits: Vec<Numbered>,
    changes: Vec<Change>,
    size_bytes: usize,
}

/// A place in a buffer, to take back what was added since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    commits_count: usize,
    changes_count: usize,
}

/// A statement with its values.
pub(crate) type Statement = (String, Vec<Box<dyn Parameter + Send>>);

/// A change of a memory, with the number of its store.
type Numbered = (i64, Commit);

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.changes.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.size_bytes > SIZE_BYTES_MAX || self.changes.len() > CHANGES_MAX
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { commits_count: self.commits.len(), changes_count: self.changes.len() }
    }

    pub(crate) fn add_commit(&mut self, store: i64, commit: &Commit) {
        self.size_bytes += size_bytes(commit);
        self.commits.push((store, commit.clone()));
        self.changes.push(Change {
            sequence: commit.sequence,
            transaction: commit.transaction,
            at: commit.version.created_at,
            store: commit.version.store,
            event: Event::Version(commit.version.id),
        });
    }

    pub(crate) fn add_change(&mut self, change: &Change) {
        self.changes.push(change.clone());
    }

    /// Takes back what was added since a mark.
    pub(crate) fn truncate(&mut self, mark: Mark) {
        let gone = self.commits.drain(mark.commits_count.min(self.commits.len())..);
        self.size_bytes -= gone.map(|(_, commit)| size_bytes(&commit)).sum::<usize>();
        self.changes.truncate(mark.changes_count);
    }

    /// Takes out what was added before a mark.
    pub(crate) fn take_until(&mut self, mark: Mark) -> Self {
        let commits = self.commits.split_off(mark.commits_count.min(self.commits.len()));
        let changes = self.changes.split_off(mark.changes_count.min(self.changes.len()));
        let size_bytes = commits.iter().map(|(_, commit)| size_bytes(commit)).sum();
        self.size_bytes -= size_bytes;
        std::mem::replace(self, Self { commits, changes, size_bytes })
    }

    /// Returns the statements that make the changes, in the order in which they must run.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut parts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for numbered in &self.commits {
            parts.entry(Partition::of_store(numbered.0)).or_default().push(numbered);
        }
        for (part, commits) in parts {
            statements.push(versions(part.number(), &commits));
            statements.extend(memories(part.number(), &commits));
        }
        statements.extend(self.usages());
        if !self.changes.is_empty() {
            statements.push(self.feed());
        }
        statements
    }

    /// Returns the statement that updates the stores' usage by what the changes make of it.
    fn usages(&self) -> Option<Statement> {
        let mut usages: HashMap<i64, (i64, i64)> = HashMap::new();
        let commits: Vec<_> = self.commits.iter().collect();
        for (store, before, after) in outcomes(&commits) {
            let size = |memory: Option<&Memory>| memory.map_or(0, |it| number(it.size_bytes));
            let usage = usages.entry(store).or_default();
            usage.0 += i64::from(after.is_some()) - i64::from(before.is_some());
            usage.1 += size(after) - size(before);
        }
        usages.retain(|_, usage| *usage != (0, 0));
        if usages.is_empty() {
            return None;
        }
        let sql = "UPDATE stores s SET memories_count = s.memories_count + u.memories_count,
                size_bytes = s.size_bytes + u.size_bytes
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (num, memories_count, size_bytes)
            WHERE s.num = u.num"
            .to_owned();
        let column = |value: fn((&i64, &(i64, i64))) -> i64| -> Box<dyn Parameter + Send> {
            Box::new(List(usages.iter().map(value).collect()))
        };
        let values = vec![
            column(|(store, _)| *store),
            column(|(_, usage)| usage.0),
            column(|(_, usage)| usage.1),
        ];
        Some((sql, values))
    }

    fn feed(&self) -> Statement {
        let sql = "INSERT INTO changes (sequence, first, at, store, event, version)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::text[],
                $6::uuid[])"
            .to_owned();
        let numbers = |value: fn(&Change) -> i64| -> Box<dyn Parameter + Send> {
            Box::new(List(self.changes.iter().map(value).collect()))
        };
        let words = self.changes.iter().map(|change| words(change.event));
        let (events, versions): (Vec<_>, Vec<_>) =
            words.map(|(word, version)| (word, version.map(bits))).unzip();
        let stores: Vec<Bits> = self.changes.iter().map(|change| bits(change.store)).collect();
        let values: Vec<Box<dyn Parameter + Send>> = vec![
            numbers(|change| number(change.sequence.0)),
            numbers(|change| number(change.transaction.0)),
            numbers(|change| change.at.as_micros()),
            Box::new(List(stores)),
            Box::new(List(events)),
            Box::new(List(versions)),
        ];
        (sql, values)
    }
}

fn size_bytes(commit: &Commit) -> usize {
    commit.content().map_or(0, |content| content.as_str().len())
}

fn versions(part: u8, commits: &[&Numbered]) -> Statement {
    let sql = format!(
        "INSERT INTO versions_{part} (store, at, id, memory, operation, path, hash, size_bytes, actor,
                undone_to, reason, content)
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::uuid[], $5::text[],
                $6::text[], $7::bytea[], $8::bigint[], $9::text[], $10::uuid[], $11::text[],
                $12::text[])"
    );
    let all = |text: fn(&Commit) -> Option<&str>| -> Box<dyn Parameter + Send> {
        let texts = commits.iter().map(|(_, commit)| text(commit).map(str::to_owned));
        Box::new(List(texts.collect()))
    };
    let mut stores = Vec::new();
    let (mut moments, mut ids, mut memories) = (Vec::new(), Vec::new(), Vec::new());
    let (mut hashes, mut sizes, mut undone) = (Vec::new(), Vec::new(), Vec::new());
    let mut actors = Vec::new();
    for (store, Commit { version, .. }) in commits {
        stores.push(*store);
        moments.push(version.created_at.as_micros());
        ids.push(bits(version.id));
        memories.push(bits(version.memory));
        hashes.push(version.hash.as_ref().map(hash_bytes));
        sizes.push(version.size_bytes.map(number));
        actors.push(version.actor.to_string());
        undone.push(version.undone_to.map(bits));
    }
    let values: Vec<Box<dyn Parameter + Send>> = vec![
        Box::new(List(stores)),
        Box::new(List(moments)),
        Box::new(List(ids)),
        Box::new(List(memories)),
        all(|commit| Some(commit.version.operation.as_str())),
        all(|commit| commit.version.path.as_ref().map(MemoryPath::as_str)),
        Box::new(List(hashes)),
        Box::new(List(sizes)),
        Box::new(List(actors)),
        Box::new(List(undone)),
        all(|commit| commit.version.reason.as_ref().map(Reason::as_str)),
        all(|commit| commit.content().map(Content::as_str)),
    ];
    (sql, values)
}

/// Returns what each memory was before the first of its changes, and is after the last.
fn outcomes<'c>(commits: &[&'c Numbered]) -> Vec<(i64, Option<&'c Memory>, Option<&'c Memory>)> {
    let mut places: HashMap<(i64, MemoryId), usize> = HashMap::new();
    let mut outcomes = Vec::new();
    for (store, commit) in commits {
        let place = *places.entry((*store, commit.version.memory)).or_insert_with(|| {
            outcomes.push((*store, commit.before.as_ref(), None));
            outcomes.len() - 1
        });
        if let Some(outcome) = outcomes.get_mut(place) {
            outcome.2 = commit.after.as_ref();
        }
    }
    outcomes
}

fn memories(part: u8, commits: &[&Numbered]) -> Vec<Statement> {
    let (mut gone, mut changed, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for (store, before, after) in outcomes(commits) {
        match (before, after) {
            (Some(before), Some(after)) if before.path == after.path => {
                changed.push((store, after));
            }
            (before, after) => {
                gone.extend(before.map(|memory| (store, memory)));
                new.extend(after.map(|memory| (store, memory)));
            }
        }
    }
    // Removals come first: memories may have exchanged their paths.
    let mut statements = Vec::new();
    if !gone.is_empty() {
        let sql = format!(
            "DELETE FROM memories_{part} m USING unnest($1::bigint[], $2::text[]) d (store, path)
                WHERE m.store = d.store AND m.path = d.path"
        );
        statements.push((sql, memory_values(&gone, Columns::Place)));
    }
    if !changed.is_empty() {
        let sql = format!(
            "UPDATE memories_{part} m SET version = c.version, hash = c.hash,
                    size_bytes = c.size_bytes, updated_at = c.updated_at
                FROM unnest($1::bigint[], $2::text[], $3::uuid[], $4::bytea[], $5::bigint[],
                    $6::bigint[]) c (store, path, version, hash, size_bytes, updated_at)
                WHERE m.store = c.store AND m.path = c.path"
        );
        statements.push((sql, memory_values(&changed, Columns::Current)));
    }
    if !new.is_empty() {
        let sql = format!(
            "INSERT INTO memories_{part}
                    (store, path, version, hash, size_bytes, updated_at, id, created_at)
                SELECT * FROM unnest($1::bigint[], $2::text[], $3::uuid[], $4::bytea[],
                    $5::bigint[], $6::bigint[], $7::uuid[], $8::bigint[])"
        );
        statements.push((sql, memory_values(&new, Columns::All)));
    }
    statements
}

/// Returns the values of a statement as they are sent.
pub(crate) fn params(values: &[Box<dyn Parameter + Send>]) -> Vec<Param<'_>> {
    values.iter().map(|value| &**value as _).collect()
}

/// Which columns of memories a statement needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Columns {
    Place,
    Current,
    All,
}

fn memory_values(memories: &[(i64, &Memory)], columns: Columns) -> Vec<Box<dyn Parameter + Send>> {
    let numbers = |value: fn(&(i64, &Memory)) -> i64| -> Box<dyn Parameter + Send> {
        Box::new(List(memories.iter().map(value).collect()))
    };
    let ids = |value: fn(&Memory) -> Bits| -> Box<dyn Parameter + Send> {
        Box::new(List(memories.iter().map(|(_, memory)| value(memory)).collect()))
    };
    let paths = memories.iter().map(|(_, memory)| memory.path.as_str().to_owned()).collect();
    let mut values: Vec<Box<dyn Parameter + Send>> =
        vec![numbers(|(store, _)| *store), Box::new(List::<String>(paths))];
    if columns != Columns::Place {
        let hashes = memories.iter().map(|(_, memory)| hash_bytes(&memory.hash)).collect();
        values.extend([
            ids(|memory| bits(memory.version)),
            Box::new(List::<Vec<u8>>(hashes)),
            numbers(|(_, memory)| number(memory.size_bytes)),
            numbers(|(_, memory)| memory.updated_at.as_micros()),
        ]);
    }
    if columns == Columns::All {
        values.extend([
            ids(|memory| bits(memory.id)),
            numbers(|(_, memory)| memory.created_at.as_micros()),
        ]);
    }
    values
}

fn hash_bytes(hash: &ContentHash) -> Vec<u8> {
    hash.as_bytes().to_vec()
}

fn words(event: Event) -> (&'static str, Option<VersionId>) {
    match event {
        Event::Version(version) => ("version", Some(version)),
        Event::Redacted(version) => ("redacted", Some(version)),
        Event::StoreCreated => ("store_created", None),
        Event::StoreUpdated => ("store_updated", None),
        Event::StoreArchived => ("store_archived", None),
        Event::StoreDeleted => ("store_deleted", None),
        Event::Restarted => ("restarted", None),
    }
}
