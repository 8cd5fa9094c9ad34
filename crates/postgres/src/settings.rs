//! How to reach the database.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use quipu_core::Error;

use crate::endpoint::Endpoint;
use crate::password_file::PasswordFile;

/// The schema that Quipu's tables are in, unless another one is chosen.
pub const DEFAULT_SCHEMA: &str = "quipu";

/// The longest name that PostgreSQL does not cut off.
const SCHEMA_SIZE_BYTES_MAX: usize = 63;

/// When the system asks a silent host whether it is still there, unless the URL says so: the driver's default.
const KEEPALIVES_IDLE_DEFAULT: Duration = Duration::from_hours(2);

/// How often it asks again, and after how many questions without an answer the connection is broken.
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVES_COUNT: u32 = 3;

/// How to reach and use a database.
///
/// Nothing is read from the environment. The debug output has no password.
#[derive(Clone)]
pub struct PostgresSettings {
    /// A URL as libpq takes it: `postgres://user@host,host2/database?sslmode=verify-full`.
    pub url: String,
    /// A file in the format of `.pgpass` that has the password, if the URL has none.
    pub password_file: Option<PathBuf>,
    /// The schema of Quipu's tables.
    pub schema: String,
    /// Another URL for the connections that listen and that rewrite tables, past a pooler that gives each
    /// transaction another connection.
    pub listen_url: Option<String>,
    /// Whether changes of other servers are announced; without it they are polled for while somebody waits.
    pub listening: Listening,
    /// Whether statements are prepared once for each connection.
    pub prepared_statements: PreparedStatements,
    /// How many connections to have at most, beside the one that listens.
    pub connections_max: usize,
    /// How long connecting to one host may take, unless the URL says so.
    pub connect_timeout: Duration,
    /// How long to wait for a free connection.
    pub pool_timeout: Duration,
    /// How long a statement may run.
    pub statement_timeout: Duration,
    /// How long a write waits for writes of others.
    pub lock_timeout: Duration,
}

/// Whether statements are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparedStatements {
    /// Each connection prepares a statement once and then only runs it.
    On,
    /// Every run sends the statement's text: for poolers that give each transaction another connection.
    Off,
}

/// Whether the backend listens for announcements of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// One connection listens.
    On,
    /// Changes are polled for while somebody waits.
    Off,
}

impl PostgresSettings {
    /// Returns the settings for a URL, with defaults for everything else.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password_file: None,
            schema: DEFAULT_SCHEMA.to_owned(),
            listen_url: None,
            listening: Listening::On,
            prepared_statements: PreparedStatements::On,
            connections_max: 16,
            connect_timeout: Duration::from_secs(5),
            pool_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
        }
    }

    /// Returns the name of the schema as it is written in SQL.
    pub(crate) fn quoted_schema(&self) -> Result<String, Error> {
        let is_plain = !self.schema.is_empty()
            && self.schema.len() <= SCHEMA_SIZE_BYTES_MAX
            && !self.schema.starts_with("pg_")
            && !self.schema.chars().any(char::is_control);
        if !is_plain {
            let message = "the name of the schema must have 1 to 63 bytes, must not begin with `pg_` \
                and must not have control characters";
            return Err(Error::invalid(message));
        }
        Ok(format!("\"{}\"", self.schema.replace('"', "\"\"")))
    }

    pub(crate) fn endpoint(&self) -> Result<Endpoint, Error> {
        self.endpoint_of(&self.url)
    }

    /// Returns a direct way to the server, past a pooler.
    pub(crate) fn direct_endpoint(&self) -> Result<Endpoint, Error> {
        self.endpoint_of(self.listen_url.as_ref().unwrap_or(&self.url))
    }

    fn endpoint_of(&self, url: &str) -> Result<Endpoint, Error> {
        let mut endpoint = Endpoint::parse(url)?;
        endpoint.each(|config| {
            let timeout = config.get_connect_timeout().copied().unwrap_or(self.connect_timeout);
            config.connect_timeout(timeout);
            // The system repeats what is not acknowledged, and asks a silent host whether it is still there.
            // So a host that is gone is noticed long before a statement runs into its timeout.
            if config.get_tcp_user_timeout().is_none() {
                config.tcp_user_timeout(timeout.saturating_mul(2));
            }
            if config.get_keepalives_idle() == KEEPALIVES_IDLE_DEFAULT {
                // Systems count it in whole seconds.
                config.keepalives_idle(timeout.max(Duration::from_secs(1)));
            }
            if config.get_keepalives_interval().is_none() {
                config.keepalives_interval(KEEPALIVES_INTERVAL);
            }
            if config.get_keepalives_retries().is_none() {
                config.keepalives_retries(KEEPALIVES_COUNT);
            }
            if config.get_application_name().is_none() {
                config.application_name("quipu");
            }
        });
        let file = endpoint.password_file.as_ref().or(self.password_file.as_ref());
        if let Some(file) = file {
            let file = PasswordFile::read(file)?;
            endpoint.add_passwords(&file);
        }
        Ok(endpoint)
    }
}

impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSettings")
            .field("url", &without_password(&self.url))
            .field("password_file", &self.password_file)
            .field("schema", &self.schema)
            .field("listen_url", &self.listen_url.as_deref().map(without_password))
            .field("listening", &self.listening)
            .field("prepared_statements", &self.prepared_statements)
            .field("connections_max", &self.connections_max)
            .field("connect_timeout", &self.connect_timeout)
            .field("pool_timeout", &self.pool_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("lock_timeout", &self.lock_timeout)
            .finish()
    }
}

/// Returns hosts and database of a URL, for messages: no user, no password, no parameters.
pub fn without_password(url: &str) -> String {
    let url = url.split('?').next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return "(not a URL)".to_owned() };
    // A password may hold an at sign that is not escaped; a host cannot.
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{place}")
}

#[cfg(test)]
mod tests;
