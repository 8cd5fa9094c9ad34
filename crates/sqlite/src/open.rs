//! Opening a data directory and its connections.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::Duration;

use quipu_core::Error;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{self, StorageResult as _};
use crate::gate::Gate;

/// The name of the database inside the data directory.
pub const DATABASE_FILE: &str = "quipu.db";
pub(crate) const LOG_FILE: &str = "quipu.db-wal";
const GATE_FILE: &str = "quipu.lock";

/// Marks the file as Quipu's: the letters `Qipu`.
const APPLICATION_ID: i64 = 0x5169_7075;

/// The steps from an empty file to today's schema, the first being step 1.
const MIGRATIONS: [&str; 2] =
    [include_str!("../migrations/0001.sql"), include_str!("../migrations/0002.sql")];

/// How long SQLite itself waits for other connections. Writers queue at the gate, so this covers
/// only short moments, such as the first or last connection setting up or tidying the log.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_mins(1);

/// Statements that are kept prepared for each connection.
const STATEMENTS_MAX: usize = 128;

/// What to do if the data directory holds no database yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Make one.
    Create,
    /// Fail.
    Existing,
}

/// What a data directory needs for writing.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) gate: Gate,
}

pub(crate) fn open(directory: &Path, mode: OpenMode) -> Result<Opened, Error> {
    let database = directory.join(DATABASE_FILE);
    match mode {
        OpenMode::Create => create_directory(directory)?,
        OpenMode::Existing if !database.exists() => return Err(error::missing()),
        OpenMode::Existing => {}
    }
    let gate = Gate::open(&directory.join(GATE_FILE)).or_storage_error()?;
    create_file(&database)?;
    let connection = connect(&database)?;
    if application(&connection)? != (APPLICATION_ID, schema_known()) {
        gate.enter().or_storage_error()?;
        let migrated = migrate(&connection);
        gate.leave();
        migrated?;
    }
    connection.pragma_update(None, "journal_mode", "wal").or_storage_error()?;
    Ok(Opened { connection, gate })
}

/// Opens a connection that only reads.
pub(crate) fn reader(database: &Path) -> Result<Connection, Error> {
    let connection = connect(database)?;
    connection.pragma_update(None, "query_only", true).or_storage_error()?;
    Ok(connection)
}

/// Makes a new file readable for its owner only, where the system knows owners.
pub(crate) fn owner_only(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _: &mut OpenOptions = options;
}

fn create_directory(directory: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory).or_storage_error()
}

/// Makes the database file before SQLite does, so that its owner alone can read it.
fn create_file(database: &Path) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    owner_only(&mut options);
    options.open(database).or_storage_error().map(drop)
}

/// Opens a connection with Quipu's settings.
pub(crate) fn connect(database: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).or_storage_error()?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    configure(&connection).or_storage_error()?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Without this, SQLite plans a statement again whenever its parameters change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A commit returns when the disk has it.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    // Half-done text must not reach a temporary file.
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "foreign_keys", false)
}

fn schema_known() -> i64 {
    i64::try_from(MIGRATIONS.len()).expect("there are few migrations")
}

/// Returns whose database it is and which schema it has.
fn application(connection: &Connection) -> Result<(i64, i64), Error> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
    let id = pragma("application_id").or_storage_error()?;
    let schema = pragma("user_version").or_storage_error()?;
    Ok((id, schema))
}

/// Brings the schema up to date, inside one transaction.
fn migrate(connection: &Connection) -> Result<(), Error> {
    let (id, schema) = application(connection)?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables_count: i64 =
        connection.query_row(tables, [], |row| row.get(0)).or_storage_error()?;
    if id != APPLICATION_ID && (id != 0 || schema != 0 || tables_count != 0) {
        return Err(error::foreign());
    }
    if schema > schema_known() {
        return Err(error::too_new(schema, schema_known()));
    }
    let done = usize::try_from(schema).unwrap_or_default();
    let steps = MIGRATIONS.get(done..).unwrap_or_default();
    let transaction = connection.unchecked_transaction().or_storage_error()?;
    for step in steps {
        transaction.execute_batch(step).or_storage_error()?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).or_storage_error()?;
    transaction.pragma_update(None, "user_version", schema_known()).or_storage_error()?;
    transaction.commit().or_storage_error()
}
