//! Bare SQLite: the same rows with the same durability and grouping, without the engine.
//!
//! Writers share one connection. Like Quipu's, a writer leaves the transaction open when another
//! one waits, and the last one commits for all.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use rusqlite::{Connection, params};

/// Which rows a write makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// One row with the text, which is the least that a store of texts can do.
    TextOnly,
    /// The rows and index entries that Quipu makes for a new version of a memory.
    SameAsQuipu,
}

pub(crate) struct Bare {
    state: Mutex<State>,
    waiting: AtomicUsize,
    done: Mutex<u64>,
    committed: Condvar,
    rows: Rows,
}

struct State {
    connection: Connection,
    batch_number: u64,
    is_open: bool,
    members_count: usize,
    expected_count: usize,
    has_lingerer: bool,
    at: i64,
}

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
    CREATE TABLE texts (at INTEGER PRIMARY KEY, content TEXT);
    CREATE TABLE changes (sequence INTEGER PRIMARY KEY, at INTEGER, store BLOB, event TEXT,
        version BLOB);";

impl Bare {
    pub(crate) fn open(directory: &Path, rows: Rows) -> Self {
        let connection = connect(directory);
        connection.pragma_update(None, "journal_mode", "wal").expect("WAL can be set");
        connection.execute_batch(SCHEMA).expect("the schema is valid");
        let state = State {
            connection,
            batch_number: 0,
            is_open: false,
            members_count: 0,
            expected_count: 1,
            has_lingerer: false,
            at: 0,
        };
        Self {
            state: Mutex::new(state),
            waiting: AtomicUsize::new(0),
            done: Mutex::new(0),
            committed: Condvar::new(),
            rows,
        }
    }

    /// Adds a version of the memory with this number and returns when it is durable.
    pub(crate) fn write(&self, memory: u64, content: &str) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state.lock().expect("no writer panics");
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        if !state.is_open {
            state.execute("BEGIN IMMEDIATE");
            state.is_open = true;
            state.members_count = 0;
            state.has_lingerer = false;
        }
        state.insert(memory, content, self.rows);
        state.members_count += 1;
        let number = state.batch_number;
        if self.waiting.load(Ordering::SeqCst) == 0 {
            let is_small = state.members_count < state.expected_count;
            if !is_small {
                self.commit(&mut state);
            } else if !state.has_lingerer {
                state.has_lingerer = true;
                drop(state);
                std::thread::sleep(std::time::Duration::from_micros(100));
                state = self.state.lock().expect("no writer panics");
                if state.batch_number == number {
                    self.commit(&mut state);
                }
            }
        }
        drop(state);
        let mut done = self.done.lock().expect("no writer panics");
        while *done <= number {
            done = self.committed.wait(done).expect("no writer panics");
        }
    }

    fn commit(&self, state: &mut State) {
        state.execute("COMMIT");
        state.is_open = false;
        state.expected_count = state.members_count;
        state.batch_number += 1;
        *self.done.lock().expect("no writer panics") = state.batch_number;
        self.committed.notify_all();
    }
}

impl State {
    fn execute(&self, sql: &str) {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .expect("the statement is valid");
    }

    fn insert(&mut self, memory: u64, content: &str, rows: Rows) {
        self.at += 1;
        let run = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| {
            let mut statement = self.connection.prepare_cached(sql).expect("valid SQL");
            statement.execute(parameters).expect("the row fits");
        };
        run("INSERT INTO texts VALUES (?1, ?2)", params![self.at, content]);
        if rows == Rows::TextOnly {
            return;
        }
        let memory_id = u128::from(memory).to_be_bytes();
        let version_id = self.at.to_be_bytes().repeat(2);
        let path = format!("/notes/{memory:06}.md");
        let hash = [7_u8; 32];
        let size_bytes = i64::try_from(content.len()).expect("a length fits");
        run(
            "INSERT INTO versions VALUES (?1, ?2, 1, ?3, 'modified', ?4, ?5, ?6, 'user_bench')",
            params![self.at, version_id, memory_id, path, hash, size_bytes],
        );
        run(
            "INSERT INTO memories VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?6)
                ON CONFLICT DO UPDATE SET version = excluded.version, hash = excluded.hash,
                size_bytes = excluded.size_bytes, updated_at = excluded.updated_at",
            params![path, memory_id, version_id, hash, size_bytes, self.at],
        );
        run("UPDATE stores SET size_bytes = size_bytes + 1 WHERE id = x'00'", params![]);
        run(
            "INSERT INTO changes VALUES (?1, ?1, x'00', 'version', ?2)",
            params![self.at, version_id],
        );
    }
}

/// Opens a connection with the durability that Quipu promises.
pub(crate) fn connect(directory: &Path) -> Connection {
    let connection = Connection::open(directory.join("bare.db")).expect("the file can be made");
    connection.pragma_update(None, "synchronous", "full").expect("the mode is known");
    connection.pragma_update(None, "secure_delete", true).expect("the mode is known");
    connection
        .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .expect("the option is known");
    connection
}
