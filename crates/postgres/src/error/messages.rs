//! What callers are told.

use std::time::Duration;

use quipu_core::{Error, ErrorKind};

fn unavailable_because(message: &str) -> Error {
    Error::new(ErrorKind::StorageUnavailable, message)
}

pub(crate) fn password_required() -> Error {
    unavailable_because("the database requires a password").with_hint(
        "put the password into the file that PGPASSFILE names, or into the URL of the database",
    )
}

pub(crate) fn no_tls() -> Error {
    unavailable_because("no secure connection to the database could be made").with_hint(
        "check `sslmode` and `sslrootcert` in the URL of the database, and the name and the date of its \
         certificate",
    )
}

pub(crate) fn no_channel_binding() -> Error {
    unavailable_because("the database did not prove with the password that it is the one with this certificate")
        .with_hint(
            "a proxy that ends TLS makes that impossible: connect past it, or take `channel_binding=require` \
             out of the URL of the database and use `sslmode=verify-full`",
        )
}

pub(crate) fn unreachable_host() -> Error {
    unavailable_because("the database cannot be reached").with_hint(
        "check host and port in the URL of the database, that it runs, and that it accepts connections \
         from here (`pg_hba.conf`)",
    )
}

pub(crate) fn unknown_host() -> Error {
    unavailable_because("the host of the database has no address")
        .with_hint("check the name of the host in the URL of the database")
}

pub(crate) fn silent_host() -> Error {
    unavailable_because("the host of the database accepts connections and does not answer").with_hint(
        "look whether it is overloaded, stopped or a firewall is in between; with several hosts in the URL, \
         the next one is tried",
    )
}

pub(crate) fn starting() -> Error {
    unavailable_because("the database is starting or shutting down")
        .with_hint("try again in a moment")
}

pub(crate) fn wrong_password() -> Error {
    unavailable_because("authentication failed: wrong user or password").with_hint(
        "check the user in the URL of the database and the password in the URL or in the file that \
         PGPASSFILE names",
    )
}

pub(crate) fn no_database() -> Error {
    unavailable_because("there is no database of this name on the server")
        .with_hint("create it with `createdb`, or correct the URL of the database")
}

pub(crate) fn not_permitted() -> Error {
    unavailable_because("the database user lacks a privilege")
        .with_hint("grant it the privileges in `docs/postgres.md`")
}

pub(crate) fn read_only() -> Error {
    unavailable_because("the database is a read-only replica").with_hint(
        "name all hosts in the URL of the database and add `target_session_attrs=read-write`",
    )
}

/// Returns the error for a URL with several hosts of which none can be written.
pub(crate) fn no_primary() -> Error {
    unavailable_because("none of the hosts of the database accepts writes")
        .with_hint("promote a replica, or wait until the primary is back")
}

/// Returns the error for a snapshot that is older than one that was read before.
pub(crate) fn behind() -> Error {
    unavailable_because("the database is behind what was read from it before")
        .with_hint("the URL must lead to the primary only: a replica that lags shows old data")
}

pub(crate) fn full() -> Error {
    Error::new(ErrorKind::StorageFull, "the disk of the database is full, so nothing was written")
        .with_hint("free some space on the server of the database and try again")
}

pub(crate) fn too_many_connections() -> Error {
    Error::new(ErrorKind::StorageBusy, "the database accepts no more connections").with_hint(
        "raise `max_connections` of the database, lower the number of connections of each Quipu \
         server, or put pgbouncer in front of the database",
    )
}

pub(crate) fn busy() -> Error {
    Error::new(
        ErrorKind::StorageBusy,
        "nothing was written, because other writers held the same rows for too long",
    )
    .with_hint("try again; `pg_stat_activity` of the database shows who holds a lock")
}

/// Returns the error for a write to stores whose tables a redaction rewrites.
pub(crate) fn being_rewritten() -> Error {
    Error::new(
        ErrorKind::StorageBusy,
        "a redaction rewrites the tables that hold this store, and they cannot be used meanwhile",
    )
    .with_hint("try again when the redaction is complete")
}

pub(crate) fn pool_exhausted(connections_max: usize, waited: Duration) -> Error {
    let seconds = waited.as_secs_f64();
    Error::new(
        ErrorKind::StorageBusy,
        format!("all {connections_max} connections to the database were in use for {seconds:.1} s"),
    )
    .with_hint("try again, or let this server have more connections")
}

pub(crate) fn no_answer() -> Error {
    Error::new(ErrorKind::StorageBusy, "the database did not answer in time")
        .with_hint("try again; if that does not help, look at the load of the database")
}

/// Returns the error for readiness while a write is waited for.
pub(crate) fn unanswered(waited: Duration) -> Error {
    let seconds = waited.as_secs_f64();
    unavailable_because(&format!(
        "a write has not been answered by the database for {seconds:.1} s"
    ))
    .with_hint(
        "look whether it waits for a lock or for a synchronous standby that is gone \
             (`pg_stat_activity`, `pg_stat_replication`)",
    )
}

pub(crate) fn connection_lost() -> Error {
    unavailable_because("the connection to the database was lost")
        .with_hint("try again in a moment")
}

/// Returns the error for a write of which nobody can tell whether it was committed.
pub(crate) fn outcome_unknown() -> Error {
    unavailable_because(
        "the connection to the database was lost while the change was being committed, and whether it was \
         stored could not be determined in time",
    )
    .with_hint("read before you write again: the change is stored completely or not at all")
}

pub(crate) fn damaged() -> Error {
    Error::new(ErrorKind::StorageUnusable, "the database contains rows that Quipu cannot read")
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
    .with_hint("run `quipu migrate`; servers running the previous version keep working meanwhile")
}

/// Returns the error for a migration that would take something away from running servers.
pub(crate) fn older_servers(count: u64, known: i64) -> Error {
    let servers = if count == 1 { "1 server that knows" } else { "servers that know" };
    let servers = if count == 1 { servers.to_owned() } else { format!("{count} {servers}") };
    Error::new(
        ErrorKind::StorageBusy,
        format!("nothing was migrated: {servers} only schema {known} would stop working"),
    )
    .with_hint(
        "replace or stop them first, then run `quipu migrate` again; one that is gone is noticed after a \
         minute",
    )
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
    unavailable_because("the connection to the database is being closed")
        .with_hint("the process is shutting down")
}

/// Returns the error for an erasure while somebody still reads the old rows.
pub(crate) fn still_read() -> Error {
    Error::new(
        ErrorKind::StorageBusy,
        "an older snapshot is still open, so the database has to keep the removed rows",
    )
    .with_hint(
        "end long transactions and backups (`pg_stat_activity`, column `backend_xmin`), and look at \
         `pg_replication_slots` and `pg_prepared_xacts`",
    )
}

/// Returns the error for an erasure by a user who may not rewrite the tables.
pub(crate) fn not_owner() -> Error {
    unavailable_because(
        "only the owner of the tables may rewrite them, so the erasure is incomplete",
    )
    .with_hint("run `quipu prune` as the user who owns Quipu's schema")
}

/// Returns the error for an erasure through a pooler.
pub(crate) fn no_session() -> Error {
    unavailable_because(
        "erasing needs a session with settings of its own, which a pooler does not give",
    )
    .with_hint(
        "set `listen_url` to an address of the database past the pooler, then run `quipu prune`",
    )
}

pub(crate) fn no_backup() -> Error {
    Error::invalid("a PostgreSQL database is backed up with its own tools").with_hint(
        "use `pg_basebackup` or `pg_dump`, or `quipu move` to copy everything into a data directory",
    )
}

pub(crate) fn unexpected() -> Error {
    unavailable_because("the database returned an unexpected error")
        .with_hint("look at the log for the cause")
}
