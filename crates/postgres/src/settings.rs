//! How to reach the database.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use quipu_core::Error;
use tokio_postgres::config::{Host, SslMode};

/// The schema that Quipu's tables are in, unless another one is chosen.
pub const DEFAULT_SCHEMA: &str = "quipu";

/// The longest name that PostgreSQL does not cut off.
const SCHEMA_SIZE_BYTES_MAX: usize = 63;

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
    /// Another URL for the one connection that listens, past a pooler that does not support LISTEN.
    pub listen_url: Option<String>,
    /// Whether changes of other servers are announced; without it they are polled for while somebody waits.
    pub listening: Listening,
    /// Whether statements are prepared once for each connection.
    pub prepared_statements: PreparedStatements,
    /// How many connections to have at most, beside the one that listens.
    pub connections_max: usize,
    /// How long connecting to one host may take.
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

    pub(crate) fn listen_endpoint(&self) -> Result<Endpoint, Error> {
        self.endpoint_of(self.listen_url.as_ref().unwrap_or(&self.url))
    }

    fn endpoint_of(&self, url: &str) -> Result<Endpoint, Error> {
        let mut endpoint = Endpoint::parse(url)?;
        let config = &mut endpoint.config;
        config.connect_timeout(self.connect_timeout);
        config.tcp_user_timeout(self.statement_timeout + self.connect_timeout);
        config.keepalives_idle(self.connect_timeout);
        if config.get_application_name().is_none() {
            config.application_name("quipu");
        }
        if config.get_password().is_none() {
            let file = endpoint.password_file.as_ref().or(self.password_file.as_ref());
            if let Some(password) =
                file.map(|file| password_of(&endpoint.config, file)).transpose()?
            {
                password.map(|password| endpoint.config.password(password));
            }
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

/// Where to connect, and how secure.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) security: Security,
    pub(crate) root_certificates: Option<PathBuf>,
    password_file: Option<PathBuf>,
}

/// What a connection must prove, as libpq's `sslmode` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Security {
    fn parse(word: &str) -> Result<Self, Error> {
        match word {
            "disable" => Ok(Self::Disable),
            // Nobody would notice that a connection is not encrypted in either case.
            "allow" | "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err(Error::invalid(
                "`sslmode` must be `disable`, `prefer`, `require`, `verify-ca` or `verify-full`",
            )),
        }
    }
}

impl Endpoint {
    fn parse(url: &str) -> Result<Self, Error> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(Error::invalid("the URL of a database begins with `postgres://`"));
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut security, mut root_certificates, mut password_file) = (None, None, None);
        let mut rest = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            match name {
                "sslmode" => security = Some(Security::parse(&value)?),
                "sslrootcert" => root_certificates = Some(PathBuf::from(&*value)),
                "passfile" => password_file = Some(PathBuf::from(&*value)),
                _ => rest.push(pair),
            }
        }
        let url =
            if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        // The driver's message could quote a part of the URL, such as the password.
        let parsed = tokio_postgres::Config::from_str(&url);
        let Ok(mut config) = parsed else {
            return Err(Error::invalid("the URL of the database is malformed").with_hint(
                "write `postgres://USER@HOST:PORT/DATABASE`, with special characters as `%` and two hex \
                 digits",
            ));
        };
        // As in libpq, `require` with a certificate to check against checks.
        let security = match security.unwrap_or(Security::Prefer) {
            Security::Require if root_certificates.is_some() => Security::VerifyCa,
            given @ (Security::Disable
            | Security::Prefer
            | Security::Require
            | Security::VerifyCa
            | Security::VerifyFull) => given,
        };
        config.ssl_mode(match security {
            Security::Disable => SslMode::Disable,
            Security::Prefer => SslMode::Prefer,
            Security::Require | Security::VerifyCa | Security::VerifyFull => SslMode::Require,
        });
        let root_certificates = root_certificates.filter(|file| file != Path::new("system"));
        Ok(Self { config, security, root_certificates, password_file })
    }
}

/// Returns the password for a connection from a file in the format of `.pgpass`.
fn password_of(config: &tokio_postgres::Config, file: &Path) -> Result<Option<String>, Error> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Error::invalid("the password file cannot be read").with_source(error));
        }
    };
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(_)) | None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let wanted = [&*host, &*port, config.get_dbname().unwrap_or(user), user];
    Ok(text.lines().find_map(|line| password_in(line, &wanted)))
}

/// Returns the password of a line if its other fields fit.
fn password_in(line: &str, wanted: &[&str]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let field = fields.last_mut()?;
        match character {
            '\\' => field.extend(characters.next()),
            ':' => fields.push(String::new()),
            other => field.push(other),
        }
    }
    let (password, fields) = fields.split_last()?;
    let fits = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
    let is_match = fields.len() == wanted.len() && fields.iter().zip(wanted).all(fits);
    is_match.then(|| password.clone())
}

#[cfg(test)]
mod tests;
