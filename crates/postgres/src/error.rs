//! Maps failures of PostgreSQL and of the way to it to what the caller can do about them.

use std::fmt;
use std::time::Duration;

use quipu_core::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

/// Why a statement did not run.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server refused it, or the connection broke.
    Database(tokio_postgres::Error),
    /// No answer came in time. The connection has been given up.
    TimedOut,
    /// No connection could be made or had.
    Unconnected(Error),
}

/// What a failure means for the transaction that it happened in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// The transaction lost against another one, and succeeds when it is repeated.
    Repeat,
    /// The connection is gone, and another one may work.
    Reconnect,
    /// A lock was not free.
    Locked,
    /// Repeating would fail again.
    Fail,
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    pub(crate) fn consequence(&self) -> Consequence {
        match self {
            Self::Database(error) => match error.code() {
                Some(code) => consequence_of(code),
                None if error.is_closed() || is_io(error) => Consequence::Reconnect,
                None => Consequence::Fail,
            },
            Self::TimedOut | Self::Unconnected(_) => Consequence::Fail,
        }
    }

    /// Returns whether a commit that failed like this has certainly changed nothing: the server said so.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Database(error) => error.code().is_some_and(|code| !is_disconnect(code)),
            Self::TimedOut => false,
            Self::Unconnected(_) => true,
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Unconnected(error) => error,
            Self::TimedOut => no_answer(),
            Self::Database(error) => {
                let described = match error.code() {
                    Some(code) => describe(code),
                    None if error.is_closed() || is_io(&error) => connection_lost(),
                    None => unavailable(),
                };
                described.with_source(error)
            }
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => fmt::Display::fmt(error, f),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Unconnected(error) => fmt::Display::fmt(error, f),
        }
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

fn consequence_of(code: &SqlState) -> Consequence {
    if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        return Consequence::Repeat;
    }
    if *code == SqlState::LOCK_NOT_AVAILABLE {
        return Consequence::Locked;
    }
    if is_disconnect(code) { Consequence::Reconnect } else { Consequence::Fail }
}

/// Returns whether the server ended the connection, or is about to.
fn is_disconnect(code: &SqlState) -> bool {
    let ends = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        // A pooled connection to a server that has become a replica meanwhile.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    ends.contains(code) || code.code().starts_with("08")
}

fn describe(code: &SqlState) -> Error {
    match code.code() {
        "28P01" | "28000" => wrong_password(),
        "3D000" => no_database(),
        "42501" => not_permitted(),
        "25006" => read_only(),
        "53100" => full(),
        "53300" => too_many_connections(),
        "55P03" | "40001" | "40P01" => busy(),
        "57014" => no_answer(),
        "42P01" | "3F000" | "42703" => unmigrated(),
        "XX001" | "XX002" => damaged(),
        "22021" | "22P05" => Error::invalid("the text has a character that cannot be stored"),
        _ if is_disconnect(code) => connection_lost(),
        _ => unavailable(),
    }
}

/// Returns the error for a connection that could not be made.
pub(crate) fn unconnected(error: tokio_postgres::Error) -> Error {
    let described = match error.code() {
        Some(code) if *code == SqlState::CANNOT_CONNECT_NOW => starting(),
        Some(code) => describe(code),
        None => refused(&error),
    };
    described.with_source(error)
}

/// Describes what the driver reports without a code of the server.
fn refused(error: &tokio_postgres::Error) -> Error {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    if text.contains("password") {
        return Error::new(ErrorKind::StorageUnavailable, "the database asks for a password")
            .with_hint(
                "put the password into the file that PGPASSFILE names, or into the URL of the database",
            );
    }
    if text.contains("TLS") || text.contains("tls") {
        return no_tls();
    }
    if text.contains("session") || text.contains("host") {
        return read_only();
    }
    unreachable_host()
}

pub(crate) fn no_tls() -> Error {
    Error::new(
        ErrorKind::StorageUnavailable,
        "no secure connection to the database could be made",
    )
    .with_hint(
        "check `sslmode` and `sslrootcert` in the URL of the database, and the name and the date of its \
         certificate",
    )
}

pub(crate) fn unreachable_host() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the database cannot be reached").with_hint(
        "check host and port in the URL of the database, that it runs, and that it accepts connections \
         from here (`pg_hba.conf`)",
    )
}

fn starting() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the database is starting or shutting down")
        .with_hint("try again in a moment")
}

fn wrong_password() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the database refuses this user or password")
        .with_hint(
            "check the user in the URL of the database and the password in the URL or in the file that \
             PGPASSFILE names",
        )
}

fn no_database() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "there is no database of this name on the server")
        .with_hint("create it with `createdb`, or correct the URL of the database")
}

fn not_permitted() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the user may not do this in the database").with_hint(
        "grant the user the rights on the database and on Quipu's schema that the documentation of \
         PostgreSQL as a backend lists",
    )
}

pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the database is a read-only replica").with_hint(
        "name all hosts in the URL of the database and add `target_session_attrs=read-write`",
    )
}

fn full() -> Error {
    Error::new(ErrorKind::StorageFull, "the disk of the database is full, so nothing was written")
        .with_hint("free some space on the server of the database and try again")
}

fn too_many_connections() -> Error {
    Error::new(ErrorKind::StorageBusy, "the database accepts no more connections").with_hint(
        "raise `max_connections` of the database, lower the number of connections of each Quipu \
         server, or put pgbouncer in between",
    )
}

pub(crate) fn busy() -> Error {
    Error::new(
        ErrorKind::StorageBusy,
        "nothing was written, because other writers held the same rows for too long",
    )
    .with_hint("try again; `pg_stat_activity` of the database shows who holds a lock")
}

/// Returns the error for a caller that waited in vain for a connection of the pool.
pub(crate) fn pool_exhausted(connections_max: usize, waited: Duration) -> Error {
    let seconds = waited.as_secs_f64();
    Error::new(
        ErrorKind::StorageBusy,
        format!("all {connections_max} connections to the database were in use for {seconds:.1} s"),
    )
    .with_hint("try again, or let this server have more connections")
}

fn no_answer() -> Error {
    Error::new(ErrorKind::StorageBusy, "the database did not answer in time")
        .with_hint("try again; if that does not help, look at the load of the database")
}

pub(crate) fn connection_lost() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the connection to the database was lost")
        .with_hint("try again in a moment")
}

/// Returns the error for a write of which nobody can tell whether it was committed.
pub(crate) fn outcome_unknown() -> Error {
    Error::new(
        ErrorKind::StorageUnavailable,
        "the connection to the database was lost while the change was being committed, and it could \
         not be found out in time whether it is stored",
    )
    .with_hint("read before you write again: the change is stored completely or not at all")
}

pub(crate) fn damaged() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the database has rows that Quipu did not write")
        .with_hint("run `quipu check`, and restore the database from a backup if it is damaged")
}

pub(crate) fn foreign() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the schema in the database belongs to another program")
        .with_hint("choose another schema for Quipu")
}

pub(crate) fn too_new(found: i64, known: i64) -> Error {
    Error::new(
        ErrorKind::StorageUnusable,
        format!("the database has schema {found}, but this Quipu knows only up to {known}"),
    )
    .with_hint("use the newer Quipu that migrated it")
}

pub(crate) fn too_old(found: i64, known: i64) -> Error {
    Error::new(
        ErrorKind::StorageUnusable,
        format!("the database has schema {found}, but this Quipu needs {known}"),
    )
    .with_hint("run `quipu migrate`; servers of the version before go on meanwhile")
}

pub(crate) fn unmigrated() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the schema in the database is missing or incomplete")
        .with_hint("run `quipu migrate`")
}

pub(crate) fn not_utf8() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the database does not store texts as UTF-8")
        .with_hint("create it with `createdb --encoding UTF8 --template template0`")
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the connection to the database is being closed")
        .with_hint("this program is about to end")
}

/// Returns the error for an erasure while somebody still reads the old rows.
pub(crate) fn still_read() -> Error {
    Error::new(
        ErrorKind::StorageBusy,
        "somebody still reads rows from before the removal, so the database keeps them",
    )
    .with_hint(
        "end long transactions and backups (`pg_stat_activity`, column `backend_xmin`), and look at \
         `pg_replication_slots` and `pg_prepared_xacts`",
    )
}

/// Returns the error for an erasure by a user who may not rewrite the tables.
pub(crate) fn not_owner() -> Error {
    Error::new(
        ErrorKind::StorageUnavailable,
        "only the owner of the tables may rewrite them, and without that erasing is not complete",
    )
    .with_hint("run `quipu prune` as the user who owns Quipu's schema")
}

pub(crate) fn no_backup() -> Error {
    Error::invalid("a PostgreSQL database is backed up with its own tools").with_hint(
        "use `pg_basebackup` or `pg_dump`, or `quipu move` to copy everything into a data directory",
    )
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StorageUnavailable, "the database does not work right now")
        .with_hint("look at the log for the cause")
}
