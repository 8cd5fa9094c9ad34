//! Maps failures of PostgreSQL and of the way to it to what the caller can do about them.

mod messages;

use std::error::Error as StdError;
use std::fmt;
use std::io;

use quipu_core::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::partition::Partition;

pub(crate) use messages::*;

/// Why a statement did not run.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server refused it, or the connection broke.
    Database(tokio_postgres::Error),
    /// No answer came in time. The connection has been given up.
    TimedOut,
    /// No answer came, and the host does not answer on another connection either.
    HostGone,
    /// No connection could be made or had.
    Unconnected(Box<Unconnected>),
    /// The server has committed, but says that something is wrong with it.
    Warned(Box<DbError>),
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct Unconnected {
    pub(crate) error: Error,
    pub(crate) consequence: Consequence,
    pub(crate) refuser: Refuser,
}

/// Who has refused a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refuser {
    /// Nobody was reached.
    Nobody,
    /// A server that cannot be written.
    Replica,
    /// A server.
    Server,
    /// This process.
    Us,
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
    /// A table that the transaction needs is being rewritten.
    Rewritten,
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
            Self::Database(error) => match error.as_db_error() {
                Some(answer) => consequence_of(answer),
                None if is_broken(error) => Consequence::Reconnect,
                None => Consequence::Fail,
            },
            Self::TimedOut => Consequence::Fail,
            Self::HostGone | Self::Warned(_) => Consequence::Reconnect,
            Self::Unconnected(unconnected) => unconnected.consequence,
        }
    }

    /// Returns the code that the server has answered with.
    pub(crate) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            Self::TimedOut | Self::HostGone | Self::Unconnected(_) | Self::Warned(_) => None,
        }
    }

    /// Returns the partition that could not be used because it is being rewritten.
    pub(crate) fn partition(&self) -> Option<Partition> {
        let Self::Database(error) = self else { return None };
        let answer = error.as_db_error()?;
        (*answer.code() == SqlState::LOCK_NOT_AVAILABLE)
            .then(|| Partition::named_in(answer.message()))
            .flatten()
    }

    /// Returns whether a commit that failed like this has certainly changed nothing: the server said so.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Database(error) => error.as_db_error().is_some_and(|answer| {
                // CockroachDB says so of a commit that it does not know about itself.
                !is_disconnect(answer)
                    && *answer.code() != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
            }),
            Self::TimedOut | Self::HostGone | Self::Warned(_) => false,
            Self::Unconnected(_) => true,
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Unconnected(unconnected) => unconnected.error,
            Self::TimedOut => no_answer(),
            Self::HostGone => connection_lost(),
            Self::Warned(warning) => connection_lost().with_source(*warning),
            Self::Database(error) => {
                let described = match error.as_db_error() {
                    Some(answer) => describe(answer),
                    None if is_broken(&error) => connection_lost(),
                    None => unexpected(),
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
            Self::HostGone => f.write_str("the host does not answer"),
            Self::Unconnected(unconnected) => fmt::Display::fmt(&unconnected.error, f),
            Self::Warned(warning) => fmt::Display::fmt(warning, f),
        }
    }
}

/// Returns whether the connection is gone.
fn is_broken(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || io_error(error).is_some()
}

/// Returns the failure of the system that caused an error.
fn io_error(error: &tokio_postgres::Error) -> Option<&io::Error> {
    let mut source = StdError::source(error);
    while let Some(cause) = source {
        if let Some(found) = cause.downcast_ref::<io::Error>() {
            return Some(found);
        }
        source = cause.source();
    }
    None
}

fn consequence_of(answer: &DbError) -> Consequence {
    let code = answer.code();
    let is_lost = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN,
    ];
    if is_lost.contains(code) {
        return Consequence::Repeat;
    }
    if *code == SqlState::LOCK_NOT_AVAILABLE {
        return Consequence::Locked;
    }
    if is_disconnect(answer) { Consequence::Reconnect } else { Consequence::Fail }
}

/// Returns whether the server ended the connection, or is about to.
fn is_disconnect(answer: &DbError) -> bool {
    let code = answer.code();
    // Only servers name it in a way that does not depend on their language.
    let is_fatal = match answer.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => ["FATAL", "PANIC"].contains(&answer.severity()),
    };
    let ends = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::IDLE_SESSION_TIMEOUT,
        // A pooled connection to a server that has become a replica meanwhile.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    is_fatal || ends.contains(code) || code.code().starts_with("08")
}

fn describe(answer: &DbError) -> Error {
    match answer.code().code() {
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
        _ if is_disconnect(answer) => connection_lost(),
        _ => unexpected(),
    }
}

impl Failure {
    /// Returns the failure of a connection that this process refuses.
    pub(crate) fn refused(error: Error) -> Self {
        Self::Unconnected(Box::new(Unconnected {
            error,
            consequence: Consequence::Fail,
            refuser: Refuser::Us,
        }))
    }

    /// Returns the failure of a connection to a host that accepts it and says nothing.
    pub(crate) fn silent() -> Self {
        Self::Unconnected(Box::new(Unconnected {
            error: silent_host(),
            consequence: Consequence::Fail,
            refuser: Refuser::Nobody,
        }))
    }

    /// Returns the failure of a connection that could not be made.
    pub(crate) fn connecting(error: tokio_postgres::Error) -> Self {
        let (described, consequence, refuser) = match error.as_db_error() {
            Some(answer) if *answer.code() == SqlState::CANNOT_CONNECT_NOW => {
                (starting(), Consequence::Reconnect, Refuser::Server)
            }
            Some(answer) => (describe(answer), Consequence::Fail, Refuser::Server),
            None => refused(&error),
        };
        let error = described.with_source(error);
        Self::Unconnected(Box::new(Unconnected { error, consequence, refuser }))
    }

    /// Returns who has refused a connection; `None` if there was one.
    pub(crate) fn refuser(&self) -> Option<Refuser> {
        match self {
            Self::Unconnected(unconnected) => Some(unconnected.refuser),
            Self::Database(_) | Self::TimedOut | Self::HostGone | Self::Warned(_) => None,
        }
    }

    /// Returns the failure that says most about why none of several hosts could be connected to.
    pub(crate) fn of_hosts(failures: Vec<Self>) -> Self {
        let hosts_count = failures.len();
        // The last of those that say most.
        let best = failures.into_iter().max_by_key(|failure| {
            // That one of them is a replica says what is missing.
            (failure.refuser() == Some(Refuser::Replica), failure.refuser())
        });
        match best {
            Some(failure) if hosts_count > 1 && failure.refuser() == Some(Refuser::Replica) => {
                Self::Unconnected(Box::new(Unconnected {
                    error: no_primary(),
                    consequence: Consequence::Fail,
                    refuser: Refuser::Replica,
                }))
            }
            Some(failure) => failure,
            None => Self::silent(),
        }
    }
}

/// Describes what the driver reports without a code of the server.
fn refused(error: &tokio_postgres::Error) -> (Error, Consequence, Refuser) {
    let by = |refuser, described| (described, Consequence::Fail, refuser);
    // The driver names its kinds of error in their texts only.
    let kind = error.to_string();
    if kind.starts_with("error performing TLS") {
        return by(Refuser::Server, no_tls());
    }
    let reason = StdError::source(error).map(ToString::to_string).unwrap_or_default();
    if kind.starts_with("authentication error") && reason.contains("channel binding") {
        return by(Refuser::Server, no_channel_binding());
    }
    if kind.starts_with("invalid configuration") && reason.contains("password") {
        return by(Refuser::Server, password_required());
    }
    // It was accepted, so there is a server, which ends or has just begun.
    if kind.starts_with("error communicating") || error.is_closed() {
        return (unreachable_host(), Consequence::Reconnect, Refuser::Nobody);
    }
    match io_error(error).map(io::Error::kind) {
        // The driver reports in this way that the server is not writable, as was asked for.
        Some(io::ErrorKind::PermissionDenied) if reason.contains("does not allow writes") => {
            by(Refuser::Replica, read_only())
        }
        Some(_) if reason.contains("failed to lookup address") => {
            by(Refuser::Nobody, unknown_host())
        }
        Some(_) | None => by(Refuser::Nobody, unreachable_host()),
    }
}
