//! PostgreSQL itself, doing what the backend has to do: the same rows in the same tables, grouped, in one order.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use quipu_core::model::{Id as _, MemoryId};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

use super::cluster::Database;
use crate::engine::text;

/// A parameter of a statement.
type Param<'p> = &'p (dyn ToSql + Sync);

/// How many writes share a transaction.
const GROUP_MAX: usize = 64;

/// How many connections read.
const READERS: usize = 8;

/// Connections without anything between.
pub(super) struct Bare {
    writes: Sender<(u64, SyncSender<()>)>,
    runtime: Runtime,
    readers: Mutex<Vec<(Client, Statement)>>,
}

const VERSIONS: &str = "INSERT INTO quipu.versions
        (store, at, id, memory, operation, path, hash, size_bytes, actor, content)
    SELECT 1, $1::bigint + n, md5(n::text)::uuid, md5('m' || n)::uuid, 'created',
        '/notes/' || n || '.md', decode(repeat('00', 32), 'hex'), 2048, 'user:bench', content
    FROM unnest($2::bigint[], $3::text[]) AS t (n, content)";
const MEMORIES: &str = "INSERT INTO quipu.memories
        (store, path, id, version, hash, size_bytes, created_at, updated_at)
    SELECT 1, '/notes/' || n || '.md', md5('m' || n)::uuid, md5(n::text)::uuid,
        decode(repeat('00', 32), 'hex'), 2048, $1::bigint + n, $1::bigint + n
    FROM unnest($2::bigint[]) AS t (n)";
const CHANGES: &str = "INSERT INTO quipu.changes (sequence, first, at, store, event, version)
    SELECT s.sequence + row_number() OVER (), s.sequence + row_number() OVER (), $1::bigint + n,
        md5('store')::uuid, 'version', md5(n::text)::uuid
    FROM unnest($2::bigint[]) AS t (n), quipu.counter s";
const USAGE: &str = "UPDATE quipu.stores SET memories_count = memories_count + $1::bigint,
    size_bytes = size_bytes + $1 * 2048 WHERE num = 1";
const COUNTER: &str = "UPDATE quipu.counter SET sequence = sequence + $1::bigint, at = at + $1";
const READ: &str = "SELECT m.path, m.id, m.version, m.hash, m.size_bytes, m.created_at,
        m.updated_at, v.content
    FROM quipu.memories m JOIN quipu.versions v ON v.store = m.store AND v.at = m.updated_at
    WHERE m.store = 1 AND m.id = $1::text::uuid";

impl Bare {
    pub(super) fn open(database: &Database) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let url = database.settings().url;
        let writer = runtime.block_on(connect(&url));
        let readers = (0..READERS).map(|_| {
            runtime.block_on(async {
                let client = connect(&url).await;
                let read = client.prepare(READ).await.expect("it is prepared");
                (client, read)
            })
        });
        let readers = Mutex::new(readers.collect());
        let (writes, waiting) = channel();
        let handle = runtime.handle().clone();
        thread::spawn(move || handle.block_on(write(&writer, &waiting)));
        Self { writes, runtime, readers }
    }

    /// Creates a memory and waits until it is durable.
    pub(super) fn create(&self, memory: u64) {
        let (done, waiting) = sync_channel(1);
        self.writes.send((memory, done)).expect("the writer runs");
        waiting.recv().expect("it is written");
    }

    pub(super) fn read(&self, id: MemoryId) {
        let lock = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, read) = loop {
            match lock().pop() {
                Some(reader) => break reader,
                None => thread::yield_now(),
            }
        };
        let hex = format!("{:032x}", id.bits());
        let rows = self.runtime.block_on(client.query(&read, &[&hex])).expect("it is read");
        assert_eq!(rows.len(), 1);
        lock().push((client, read));
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("it connects");
    tokio::spawn(connection);
    client
}

async fn write(client: &Client, waiting: &Receiver<(u64, SyncSender<()>)>) {
    let prepare = |sql| async move { client.prepare(sql).await.expect("it is prepared") };
    let (versions, memories, changes) =
        tokio::join!(prepare(VERSIONS), prepare(MEMORIES), prepare(CHANGES));
    let (usage, counter) = tokio::join!(prepare(USAGE), prepare(COUNTER));
    let base = 1_800_000_000_000_000_i64;
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && let Ok(next) = waiting.try_recv()
        {
            group.push(next);
        }
        let numbers: Vec<_> =
            group.iter().map(|(memory, _)| i64::try_from(*memory).expect("small")).collect();
        let texts: Vec<_> = group.iter().map(|(memory, _)| text(*memory)).collect();
        let count = i64::try_from(group.len()).expect("small");
        // Sent together, so a transaction is one round trip.
        let (of_count, of_versions): ([Param<'_>; 1], [Param<'_>; 3]) =
            ([&count], [&base, &numbers, &texts]);
        let of_rows: [Param<'_>; 2] = [&base, &numbers];
        let (begun, one, two, three, four, five, committed) = tokio::join!(
            client.batch_execute("BEGIN"),
            client.execute(&usage, &of_count),
            client.execute(&versions, &of_versions),
            client.execute(&memories, &of_rows),
            client.execute(&changes, &of_rows),
            client.execute(&counter, &of_count),
            client.batch_execute("COMMIT"),
        );
        begun.and(committed).expect("it commits");
        for done in [one, two, three, four, five] {
            done.expect("it is written");
        }
        for (_, done) in group {
            done.send(()).expect("somebody waits");
        }
    }
}
