//! Bare SQLite: the same rows with the same durability and grouping, without the engine.
//!
//! Writers share one connection. As in Quipu, a writer leaves the transaction open when another one
//! waits or is expected back, and one of them commits for the group.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ToSql, params};

/// Which rows a write inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// One row with the text, the least that a store of texts can do.
    TextOnly,
    /// The rows and index entries that Quipu writes for a new version of a memory.
    SameAsQuipu,
}

/// One connection, shared by all writers.
pub(crate) struct Bare {
    state: Mutex<State>,
    waiting_count: AtomicUsize,
    committed_number: Mutex<u64>,
    committed: Condvar,
    rows: Rows,
}

struct State {
    connection: Connection,
    at: i64,
    batch_number: u64,
    members_count: usize,
    expected_count: usize,
    has_lingerer: bool,
}

const LINGER: Duration = Duration::from_micros(200);

const SCHEMA: &str = "
    CREATE TABLE stores (num INTEGER PRIMARY KEY, id BLOB UNIQUE, name TEXT,
        memories_count INTEGER, size_bytes INTEGER);
    INSERT INTO stores VALUES (1, x'00', 'bench', 0, 0);
    CREATE TABLE memories (store INTEGER, path TEXT, id BLOB, version BLOB, hash BLOB,
        size_bytes INTEGER, created_at INTEGER, updated_at INTEGER,
        PRIMARY KEY (store, path)) WITHOUT ROWID;
    CREATE UNIQUE INDEX memories_by_id ON memories (id);
    CREATE TABLE versions (at INTEGER PRIMARY KEY, id BLOB, store INTEGER, memory BLOB,
        operation TEXT, path TEXT, hash BLOB, size_bytes INTEGER, actor TEXT);
    CREATE INDEX versions_by_store ON versions (store);
    CREATE INDEX versions_by_memory ON versions (memory);
    CREATE INDEX versions_by_path ON versions (store, path);
    CREATE TABLE texts (at INTEGER PRIMARY KEY, content TEXT);
    CREATE TABLE changes (sequence INTEGER PRIMARY KEY, at INTEGER, store BLOB, event TEXT,
        version BLOB);
    CREATE TABLE documents (path TEXT PRIMARY KEY, content TEXT);";

impl Bare {
    pub(crate) fn open(directory: &Path, rows: Rows) -> Self {
        let connection = Connection::open(directory.join("bare.db")).expect("the file can be made");
        configure(&connection).expect("SQLite knows its settings");
        connection.execute_batch(SCHEMA).expect("the schema is valid");
        let state = State {
            connection,
            at: 0,
            batch_number: 0,
            members_count: 0,
            expected_count: 1,
            has_lingerer: false,
        };
        Self {
            state: Mutex::new(state),
            waiting_count: AtomicUsize::new(0),
            committed_number: Mutex::new(0),
            committed: Condvar::new(),
            rows,
        }
    }

    /// Adds a version of the memory with this number and returns once it is durable.
    pub(crate) fn write(&self, memory: u64, content: &str) {
        self.waiting_count.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        self.waiting_count.fetch_sub(1, Ordering::SeqCst);
        if state.members_count == 0 {
            state.run("BEGIN IMMEDIATE", &[]);
            state.has_lingerer = false;
        }
        state.insert(memory, content, self.rows);
        state.members_count += 1;
        let number = state.batch_number;
        if self.waiting_count.load(Ordering::SeqCst) == 0 {
            self.commit_or_linger(state);
        } else {
            drop(state);
        }
        let committed = self.committed_number.lock().expect("no writer panics");
        let is_open = |committed: &mut u64| *committed <= number;
        drop(self.committed.wait_while(committed, is_open).expect("no writer panics"));
    }

    fn commit_or_linger<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        if state.members_count < state.expected_count {
            if state.has_lingerer {
                return;
            }
            state.has_lingerer = true;
            let number = state.batch_number;
            drop(state);
            thread::sleep(LINGER);
            state = self.lock();
            if state.batch_number != number {
                return;
            }
        }
        state.run("COMMIT", &[]);
        state.expected_count = state.members_count;
        state.members_count = 0;
        state.batch_number += 1;
        *self.committed_number.lock().expect("no writer panics") = state.batch_number;
        self.committed.notify_all();
    }

    /// Fills a plain table of texts by path.
    pub(crate) fn fill_documents(&self, documents: impl Iterator<Item = (String, String)>) {
        let state = self.lock();
        state.run("BEGIN", &[]);
        for (path, content) in documents {
            state.run("INSERT INTO documents VALUES (?1, ?2)", params![path, content]);
        }
        state.run("COMMIT", &[]);
    }

    /// Reads a text by path with a prepared statement.
    pub(crate) fn read(&self, path: &str) -> String {
        let state = self.lock();
        let sql = "SELECT content FROM documents WHERE path = ?1";
        let mut statement = state.connection.prepare_cached(sql).expect("valid SQL");
        statement.query_row([path], |row| row.get(0)).expect("the row is there")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no writer panics")
    }
}

impl State {
    fn run(&self, sql: &str, parameters: &[&dyn ToSql]) {
        let mut statement = self.connection.prepare_cached(sql).expect("valid SQL");
        statement.execute(parameters).expect("it can be executed");
    }

    fn insert(&mut self, memory: u64, content: &str, rows: Rows) {
        self.at += 1;
        self.run("INSERT INTO texts VALUES (?1, ?2)", params![self.at, content]);
        if rows == Rows::TextOnly {
            return;
        }
        let memory_id = u128::from(memory).to_be_bytes();
        let version_id = self.at.to_be_bytes().repeat(2);
        let path = format!("/notes/{memory:06}.md");
        let hash = [7_u8; 32];
        let size_bytes = i64::try_from(content.len()).expect("a length fits");
        self.run(
            "INSERT INTO versions VALUES (?1, ?2, 1, ?3, 'modified', ?4, ?5, ?6, 'user_bench')",
            params![self.at, version_id, memory_id, path, hash, size_bytes],
        );
        self.run(
            "INSERT INTO memories VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?6)
                ON CONFLICT DO UPDATE SET version = excluded.version, hash = excluded.hash,
                size_bytes = excluded.size_bytes, updated_at = excluded.updated_at",
            params![path, memory_id, version_id, hash, size_bytes, self.at],
        );
        self.run("UPDATE stores SET size_bytes = size_bytes + 1 WHERE id = x'00'", &[]);
        self.run(
            "INSERT INTO changes VALUES (?1, ?1, x'00', 'version', ?2)",
            params![self.at, version_id],
        );
    }
}

/// Configures the durability and the query planner like Quipu.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}
