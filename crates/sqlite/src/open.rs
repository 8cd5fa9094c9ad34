//! Opening a data directory and its connections.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use quipu_core::{Error, ErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{self, StorageResult as _};
use crate::files::Files;
use crate::gate::Gate;
use crate::pool::Pool;
use crate::sync::{Arc, Instant};

/// The name of the database inside the data directory.
pub const DATABASE_FILE: &str = "quipu.db";
pub(crate) const LOG_FILE: &str = "quipu.db-wal";
pub(crate) const GATE_FILES: [&str; 2] = ["quipu.lock", "quipu.queue"];
pub(crate) const LOG_INDEX_FILE: &str = "quipu.db-shm";

/// How long to wait before trying again to switch a new database to WAL mode.
const ENABLE_WAL_PAUSE: Duration = Duration::from_millis(2);

/// Marks the file as Quipu's: the letters `Qipu`.
const APPLICATION_ID: i64 = 0x5169_7075;

/// The steps from an empty file to today's schema, the first being step 1.
const MIGRATIONS: [&str; 9] = [
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
    include_str!("../migrations/0005.sql"),
    include_str!("../migrations/0006.sql"),
    include_str!("../migrations/0007.sql"),
    include_str!("../migrations/0008.sql"),
    include_str!("../migrations/0009.sql"),
];

/// How long SQLite itself waits for other connections. Writers queue at the gate, so this covers
/// only short moments, such as the first connection setting up the log or the last one removing it.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A log that is reset keeps at most this much of its file for the next transactions.
const LOG_SIZE_BYTES_KEPT: i64 = 16 * 1024 * 1024;

/// How many prepared statements each connection caches.
const STATEMENTS_MAX: usize = 128;

/// What to do if the data directory holds no database yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Make one.
    Create,
    /// Fail.
    Existing,
}

/// How to open a data directory.
#[derive(Clone, Debug)]
pub struct OpenSettings {
    /// What to do if there is none.
    pub mode: OpenMode,
    /// The name of this process in the error messages of others that wait for it.
    pub program: String,
    /// How long a write waits for writes of other processes.
    pub lock_timeout: Duration,
}

impl OpenSettings {
    /// Returns the settings of an unnamed program, with the default timeout.
    pub fn new(mode: OpenMode) -> Self {
        Self { mode, program: "quipu".to_owned(), lock_timeout: Duration::from_secs(10) }
    }
}

/// An open data directory.
pub(crate) struct Opened {
    pub(crate) files: Arc<Files>,
    /// `None` if this process cannot write.
    pub(crate) writing: Option<Writing>,
    pub(crate) mutability: Mutability,
}

pub(crate) struct Writing {
    pub(crate) connection: Connection,
    pub(crate) gate: Arc<Gate>,
}

pub(crate) fn open(directory: &Path, settings: &OpenSettings) -> Result<Opened, Error> {
    let database = directory.join(DATABASE_FILE);
    match settings.mode {
        OpenMode::Create => create_directory(directory)?,
        OpenMode::Existing => match database.try_exists() {
            Ok(true) => {}
            Ok(false) => return Err(error::missing()),
            // This does not mean that there is no database.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error::not_readable(directory).with_source(error));
            }
            Err(error) => return Err(error).or_storage_error(),
        },
    }
    let gate_files = GATE_FILES.map(|name| directory.join(name));
    let gate = match Gate::open(gate_files, &settings.program, settings.lock_timeout) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem && database.exists() => {
            return open_read_only(&database);
        }
        // With `Create` this is an error: a server that may not write should not even start.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && settings.mode == OpenMode::Existing =>
        {
            return open_protected(&database);
        }
        gate => Arc::new(gate.or_storage_error()?),
    };
    create_file(&database)?;
    let connection = connect(&database)?;
    let is_current = application(&connection)? == (APPLICATION_ID, schema_known());
    if !is_current || !is_wal(&connection)? {
        let deadline = gate.deadline();
        let guard = gate.enter(deadline)?;
        migrate(&connection)?;
        enable_wal(&connection, deadline)?;
        drop(guard);
    }
    // The log and its index exist only from the first read on, and their identities are recorded next.
    application(&connection)?;
    let names = [DATABASE_FILE, LOG_FILE, LOG_INDEX_FILE].map(|name| directory.join(name));
    let files = Files::new(names.into_iter().chain([gate.path().to_owned()]))?;
    let writing = Some(Writing { connection, gate });
    Ok(Opened { files: Arc::new(files), writing, mutability: Mutability::Mutable })
}

/// Opens a database that nobody can change.
fn open_read_only(database: &Path) -> Result<Opened, Error> {
    let log = database.with_file_name(LOG_FILE);
    if log.metadata().is_ok_and(|log| log.len() > 0) {
        return Err(error::log_on_read_only());
    }
    let connection = reader(database, Mutability::Immutable)?;
    if application(&connection)? != (APPLICATION_ID, schema_known()) {
        return Err(error::read_only());
    }
    let files = Arc::new(Files::new([])?);
    Ok(Opened { files, writing: None, mutability: Mutability::Immutable })
}

/// Opens a database that this user may only read.
fn open_protected(database: &Path) -> Result<Opened, Error> {
    for name in [DATABASE_FILE, LOG_FILE, LOG_INDEX_FILE] {
        let file = database.with_file_name(name);
        match fs::File::open(&file) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error::not_readable(&file).with_source(error));
            }
            Ok(_) | Err(_) => {}
        }
    }
    let files = Arc::new(Files::new([])?);
    let pool = Pool::new(database.to_owned(), Mutability::Protected, Arc::clone(&files));
    if pool.with(application)? != (APPLICATION_ID, schema_known()) {
        return Err(error::not_permitted());
    }
    Ok(Opened { files, writing: None, mutability: Mutability::Protected })
}

/// Fails unless a file is a database of Quipu that this program can open.
pub(crate) fn require_own(connection: &Connection) -> Result<(), Error> {
    let (id, schema) = application(connection)?;
    if id != APPLICATION_ID {
        return Err(error::foreign());
    }
    if schema > schema_known() {
        return Err(error::too_new(schema, schema_known()));
    }
    Ok(())
}

/// Fails unless the database has the schema that this program knows.
pub(crate) fn require_schema(connection: &Connection) -> Result<(), Error> {
    let mut statement = connection.prepare_cached("PRAGMA user_version").or_storage_error()?;
    let found: i64 = statement.query_row([], |row| row.get(0)).or_storage_error()?;
    if found == schema_known() { Ok(()) } else { Err(error::migrated(found, schema_known())) }
}

/// Runs a checkpoint and truncates the log; returns `false` if a reader was in the way.
pub(crate) fn truncate_log(connection: &Connection) -> Result<bool, Error> {
    let is_blocked: bool = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .or_storage_error()?;
    Ok(!is_blocked)
}

/// Whether a file can change while it is read, and who can change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutability {
    /// Other connections may write.
    Mutable,
    /// The file system is read-only, so SQLite needs no locks and no shared memory.
    Immutable,
    /// Others may write, but this process may not.
    Protected,
}

impl Mutability {
    /// Returns the error for a write that is not possible.
    pub(crate) fn refusal(self) -> Error {
        match self {
            Self::Protected => error::not_permitted(),
            Self::Mutable | Self::Immutable => error::read_only(),
        }
    }
}

/// Opens a connection that only reads.
pub(crate) fn reader(database: &Path, mutability: Mutability) -> Result<Connection, Error> {
    let connection = match mutability {
        Mutability::Mutable => connect(database)?,
        Mutability::Immutable => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            let name = uri_path(database)?;
            let uri = format!("file:{name}?immutable=1");
            let connection = Connection::open_with_flags(uri, flags).or_storage_error()?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
            connection
        }
        Mutability::Protected => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(database, flags).or_storage_error()?;
            connection.busy_timeout(BUSY_TIMEOUT).or_storage_error()?;
            connection
        }
    };
    connection.pragma_update(None, "query_only", true).or_storage_error()?;
    Ok(connection)
}

/// Makes a new file readable for its owner only, on systems with owners.
pub(crate) fn owner_only(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _: &mut OpenOptions = options;
}

pub(crate) fn create_directory(directory: &Path) -> Result<(), Error> {
    private_directory(directory).or_storage_error()
}

/// Makes a directory that only its owner can read, unless it exists.
pub fn private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
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

pub(crate) fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Without this, SQLite plans a statement again whenever its parameters change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A commit returns when it is on the disk.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "journal_size_limit", LOG_SIZE_BYTES_KEPT)?;
    // Erasing does not reach temporary files, so text must not get into one.
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "foreign_keys", false)
}

/// Escapes a path for SQLite's URI syntax.
fn uri_path(path: &Path) -> Result<String, Error> {
    let text = path.to_str().ok_or_else(error::not_utf8)?;
    Ok(text.replace('%', "%25").replace('?', "%3f").replace('#', "%23"))
}

/// Returns the version of the schema that every open database has.
pub fn schema_version() -> i64 {
    schema_known()
}

fn schema_known() -> i64 {
    i64::try_from(MIGRATIONS.len()).expect("there are few migrations")
}

/// Returns the application id and the schema version of a database.
fn application(connection: &Connection) -> Result<(i64, i64), Error> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
    let id = pragma("application_id").or_storage_error()?;
    let schema = pragma("user_version").or_storage_error()?;
    Ok((id, schema))
}

/// Returns whether the database is in WAL mode.
fn is_wal(connection: &Connection) -> Result<bool, Error> {
    let mode: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).or_storage_error()?;
    Ok(mode == "wal")
}

/// Switches a new database to WAL mode.
///
/// That needs an exclusive lock, for which SQLite ignores `busy_timeout`: another process that starts at
/// the same moment and only reads the header is enough to make it fail.
fn enable_wal(connection: &Connection, deadline: Instant) -> Result<(), Error> {
    loop {
        match connection.pragma_update(None, "journal_mode", "wal").or_storage_error() {
            Err(error) if *error.kind() == ErrorKind::StorageBusy && Instant::now() < deadline => {
                std::thread::sleep(ENABLE_WAL_PAUSE);
            }
            begun => return begun,
        }
    }
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
