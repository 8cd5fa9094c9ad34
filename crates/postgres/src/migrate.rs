//! Creating and upgrading the schema.
//!
//! Each step runs in a transaction of its own, under an advisory lock, so that several servers that start
//! at the same moment do not run one twice. A step either only adds (expand), and then says that programs of
//! the version before go on working, or removes what no program uses any more (contract).

use std::time::{Duration, Instant};

use quipu_core::Error;

use crate::client::Client;
use crate::error::{self, Failure};
use crate::settings::PostgresSettings;
use crate::values::{Columns as _, params};

/// A step of the schema.
struct Step {
    sql: &'static str,
    /// The oldest version whose programs work with the schema after this step.
    compatible_from: i64,
}

/// The steps from nothing to today's schema, the first being version 1.
const STEPS: [Step; 1] = [Step { sql: include_str!("../migrations/0001.sql"), compatible_from: 1 }];

/// The advisory lock that migrations hold; the letters `Quipu` and a number.
const LOCK: i64 = 0x5175_6970_7500;

/// How long a step may take. Rewriting a large table takes minutes.
const STEP_TIMEOUT: Duration = Duration::from_hours(1);

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
    i64::try_from(STEPS.len()).expect("there are few migrations")
}

/// Brings the schema up to date.
pub(crate) fn migrate(client: &Client, settings: &PostgresSettings) -> Result<Migrated, Error> {
    let mut from = None;
    loop {
        let version = step(client, settings)?;
        let from = *from.get_or_insert(version);
        if version >= known() {
            return Ok(Migrated { from, to: version });
        }
    }
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
fn step(client: &Client, settings: &PostgresSettings) -> Result<i64, Error> {
    let deadline = Instant::now() + STEP_TIMEOUT;
    let worked = locked_step(client, settings, deadline);
    if worked.is_err() {
        client.send("ROLLBACK");
    }
    worked
}

fn locked_step(
    client: &Client,
    settings: &PostgresSettings,
    deadline: Instant,
) -> Result<i64, Error> {
    let schema = settings.quoted_schema()?;
    let lock_ms = settings.lock_timeout.as_millis().max(1);
    run(client, deadline, &format!("BEGIN; SET LOCAL lock_timeout = {lock_ms}"))?;
    let lock = client.query(deadline, None, "SELECT pg_advisory_xact_lock($1)", params![LOCK]);
    lock.map_err(Failure::into_error)?;
    let version = match look(client, settings, deadline)? {
        Found::Foreign => return Err(error::foreign()),
        Found::Version { version, compatible_from } if version > known() => {
            return if compatible_from > known() {
                Err(error::too_new(version, known()))
            } else {
                run(client, deadline, "COMMIT").map(|()| version)
            };
        }
        Found::Version { version, .. } => version,
        Found::Nothing { has_schema } => {
            if !has_schema {
                run(client, deadline, &format!("CREATE SCHEMA {schema}"))?;
            }
            let sql = format!(
                "SET LOCAL search_path = {schema};
                 CREATE TABLE quipu_schema (
                    id smallint PRIMARY KEY CHECK (id = 1),
                    version bigint NOT NULL,
                    compatible_from bigint NOT NULL,
                    migrated_at timestamptz NOT NULL DEFAULT now()
                 );
                 INSERT INTO quipu_schema VALUES (1, 0, 0)"
            );
            run(client, deadline, &sql)?;
            0
        }
    };
    let index = usize::try_from(version).unwrap_or(usize::MAX);
    if let Some(Step { sql, compatible_from }) = STEPS.get(index) {
        run(client, deadline, &format!("SET LOCAL search_path = {schema}; {sql}"))?;
        let next = version + 1;
        let sql = format!(
            "UPDATE quipu_schema SET version = {next}, compatible_from = {compatible_from},
                migrated_at = now()"
        );
        run(client, deadline, &sql)?;
    }
    run(client, deadline, "COMMIT").map(|()| version)
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

fn run(client: &Client, deadline: Instant, sql: &str) -> Result<(), Error> {
    client.batch(deadline, sql).map_err(Failure::into_error)
}
