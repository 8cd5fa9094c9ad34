//! Creating and upgrading the schema.
//!
//! Each step runs in a transaction of its own, which locks the row with the version, so that several servers that
//! start at the same moment do not run one twice. A step either only adds (expand), and then says that programs of
//! the version before go on working, or removes what no program uses any more (contract), and then waits until
//! no server of a version before is there.

use std::borrow::Cow;
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::Error;
use tokio_postgres::error::SqlState;

use crate::client::Client;
use crate::error::{self, Consequence, Failure};
use crate::presence::PRESENT_FOR_SECONDS;
use crate::retry::Backoff;
use crate::settings::PostgresSettings;
use crate::values::{Columns as _, params};

/// A step of the schema.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub sql: Cow<'static, str>,
    /// The oldest version whose programs work with the schema after this step.
    pub compatible_from: i64,
}

/// The steps from nothing to today's schema, the first being version 1.
const STEPS: [Step; 1] =
    [Step { sql: Cow::Borrowed(include_str!("../migrations/0001.sql")), compatible_from: 1 }];

/// How long a step may take. Rewriting a large table takes minutes.
const STEP_TIMEOUT: Duration = Duration::from_hours(1);

/// The longest pause before a step is tried again.
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(200);

/// From which version to which a schema was migrated; 0 if there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before.
    pub from: i64,
    /// The version now.
    pub to: i64,
}

/// What is in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing, or no schema.
    Nothing { has_schema: bool },
    /// Tables of another program.
    Foreign,
    /// Quipu's tables.
    Version { version: i64, compatible_from: i64 },
}

pub(crate) fn known() -> i64 {
    count(&STEPS)
}

/// Brings the schema up to date.
pub(crate) fn migrate(client: &Client, settings: &PostgresSettings) -> Result<Migrated, Error> {
    migrate_by(client, settings, &STEPS)
}

/// The same as a program would that knows more steps.
pub(crate) fn migrate_further(
    client: &Client,
    settings: &PostgresSettings,
    further: &[Step],
) -> Result<Migrated, Error> {
    migrate_by(client, settings, &[&STEPS, further].concat())
}

fn migrate_by(
    client: &Client,
    settings: &PostgresSettings,
    steps: &[Step],
) -> Result<Migrated, Error> {
    let mut from = None;
    loop {
        let version = step(client, settings, steps)?;
        let from = *from.get_or_insert(version);
        if version >= count(steps) {
            return Ok(Migrated { from, to: version });
        }
    }
}

fn count(steps: &[Step]) -> i64 {
    i64::try_from(steps.len()).expect("there are few migrations")
}

/// Returns the version of the schema; 0 if there is none.
pub(crate) fn version(client: &Client, settings: &PostgresSettings) -> Result<i64, Error> {
    let deadline = Instant::now() + settings.statement_timeout;
    match look(client, settings, deadline)? {
        Found::Nothing { .. } => Ok(0),
        Found::Foreign => Err(error::foreign()),
        Found::Version { version, .. } => Ok(version),
    }
}

/// Fails unless this program can work with the schema. An empty one is filled, as an empty data directory is.
pub(crate) fn require_current(client: &Client, settings: &PostgresSettings) -> Result<(), Error> {
    let deadline = Instant::now() + settings.statement_timeout;
    match look(client, settings, deadline)? {
        Found::Nothing { .. } => migrate(client, settings).map(drop),
        Found::Foreign => Err(error::foreign()),
        Found::Version { version, .. } if version < known() => {
            Err(error::too_old(version, known()))
        }
        Found::Version { version, compatible_from } if compatible_from > known() => {
            Err(error::too_new(version, known()))
        }
        Found::Version { .. } => Ok(()),
    }
}

/// Runs the next step, if there is one; returns the version before it.
fn step(client: &Client, settings: &PostgresSettings, steps: &[Step]) -> Result<i64, Error> {
    let deadline = Instant::now() + settings.lock_timeout;
    let mut backoff = Backoff::new(RETRY_PAUSE_MAX);
    loop {
        let tried = try_step(client, settings, steps);
        if tried.is_err() {
            client.send("ROLLBACK");
        }
        match tried {
            Ok(version) => return Ok(version),
            Err(Refusal::Lost(_)) if Instant::now() < deadline => thread::sleep(backoff.pause()),
            Err(Refusal::Lost(error) | Refusal::Final(error)) => return Err(error),
        }
    }
}

/// Why a step was not made.
enum Refusal {
    /// Somebody else was faster, so it is looked at again.
    Lost(Error),
    Final(Error),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        // Two who create the same schema or table: one of them is told that it is there.
        let taken = [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DUPLICATE_SCHEMA,
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_OBJECT,
        ];
        let is_taken = failure.code().is_some_and(|code| taken.contains(code));
        if is_taken || failure.consequence() == Consequence::Repeat {
            Self::Lost(failure.into_error())
        } else {
            Self::Final(failure.into_error())
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

fn try_step(client: &Client, settings: &PostgresSettings, steps: &[Step]) -> Result<i64, Refusal> {
    let deadline = Instant::now() + STEP_TIMEOUT;
    let schema = settings.quoted_schema()?;
    let lock_ms = settings.lock_timeout.as_millis().max(1);
    // A role may have a limit for statements that is too short for a step.
    let begin =
        format!("BEGIN; SET LOCAL lock_timeout = {lock_ms}; SET LOCAL statement_timeout = 0");
    client.batch(deadline, &begin)?;
    let version = match look(client, settings, deadline)? {
        Found::Foreign => return Err(error::foreign().into()),
        Found::Nothing { has_schema } => {
            if !has_schema {
                client.batch(deadline, &format!("CREATE SCHEMA {schema}"))?;
            }
            let sql = format!(
                "CREATE TABLE {schema}.quipu_schema (
                    id smallint PRIMARY KEY CHECK (id = 1),
                    version bigint NOT NULL,
                    compatible_from bigint NOT NULL,
                    migrated_at timestamptz NOT NULL DEFAULT now()
                 );
                 INSERT INTO {schema}.quipu_schema VALUES (1, 0, 0)"
            );
            client.batch(deadline, &sql)?;
            0
        }
        Found::Version { .. } => {
            let sql = format!("SELECT version FROM {schema}.quipu_schema FOR UPDATE");
            let rows = client.query(deadline, None, &sql, &[])?;
            rows.first().ok_or_else(error::foreign)?.value(0)?
        }
    };
    let known = count(steps);
    if version > known
        && let Found::Version { compatible_from, .. } = look(client, settings, deadline)?
        && compatible_from > known
    {
        return Err(error::too_new(version, known).into());
    }
    let index = usize::try_from(version).unwrap_or(usize::MAX);
    if let Some(Step { sql, compatible_from }) = steps.get(index) {
        if version > 0 {
            require_no_older(client, (&schema, *compatible_from), deadline)?;
        }
        client.batch(deadline, &format!("SET LOCAL search_path = {schema}; {sql}"))?;
        let next = version + 1;
        let sql = format!(
            "UPDATE quipu_schema SET version = {next}, compatible_from = {compatible_from},
                migrated_at = now()"
        );
        client.batch(deadline, &sql)?;
    }
    client.batch(deadline, "COMMIT")?;
    Ok(version)
}

/// Fails if a server is running that does not work with the schema after a step.
fn require_no_older(
    client: &Client,
    (schema, compatible_from): (&str, i64),
    deadline: Instant,
) -> Result<(), Refusal> {
    let sql = format!(
        "SELECT count(*), coalesce(min(schema), 0) FROM {schema}.servers
         WHERE schema < $1 AND at > now() - {PRESENT_FOR_SECONDS} * interval '1 second'"
    );
    let rows = client.query(deadline, None, &sql, params![compatible_from])?;
    let row = rows.first().ok_or_else(error::damaged)?;
    match row.count(0)? {
        0 => Ok(()),
        servers_count => Err(error::older_servers(servers_count, row.value(1)?).into()),
    }
}

fn look(client: &Client, settings: &PostgresSettings, deadline: Instant) -> Result<Found, Error> {
    let schema = settings.quoted_schema()?;
    let sql = "SELECT pg_encoding_to_char(encoding),
            (SELECT count(*) FROM pg_namespace WHERE nspname = $1),
            (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = $1),
            (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = $1 AND c.relname = 'quipu_schema')
        FROM pg_database WHERE datname = current_database()";
    let rows = client
        .query(deadline, None, sql, params![settings.schema.as_str()])
        .map_err(Failure::into_error)?;
    let row = rows.first().ok_or_else(error::damaged)?;
    if row.value::<&str>(0)? != "UTF8" {
        return Err(error::not_utf8());
    }
    let (schemas_count, tables_count, own_count) = (row.count(1)?, row.count(2)?, row.count(3)?);
    if own_count == 0 {
        let nothing = Found::Nothing { has_schema: schemas_count > 0 };
        return Ok(if tables_count == 0 { nothing } else { Found::Foreign });
    }
    let sql = format!("SELECT version, compatible_from FROM {schema}.quipu_schema");
    let rows = client.query(deadline, None, &sql, &[]).map_err(Failure::into_error)?;
    let row = rows.first().ok_or_else(error::foreign)?;
    Ok(Found::Version { version: row.value(0)?, compatible_from: row.value(1)? })
}
