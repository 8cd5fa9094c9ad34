//! Where the data is, if it is in PostgreSQL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::platform::{cache_home, home};
use crate::failure::Failure;

/// How large the index cache grows, unless it is set.
const CACHE_SIZE_BYTES_MAX: u64 = 10 * 1024 * 1024 * 1024;

/// The schema of the tables, unless it is set.
const SCHEMA: &str = "quipu";

/// How many connections a process has at most, unless it is set.
const CONNECTIONS_MAX: usize = 16;

/// `[database]` of the settings file; `database = "URL"` is short for its `url`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DatabaseTable {
    url: Option<String>,
    password_file: Option<PathBuf>,
    schema: Option<String>,
    listen_url: Option<String>,
    listen: Option<bool>,
    connections_max: Option<usize>,
    prepared_statements: Option<bool>,
    cache_directory: Option<PathBuf>,
    cache_size_bytes_max: Option<u64>,
}

/// URLs may have passwords, so nothing of it is shown.
impl fmt::Debug for DatabaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseTable").finish_non_exhaustive()
    }
}

/// How to reach the database server that has the data.
#[derive(Clone)]
pub(crate) struct DatabaseSettings {
    pub(crate) url: String,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) schema: String,
    pub(crate) listen_url: Option<String>,
    pub(crate) has_listener: bool,
    pub(crate) connections_max: usize,
    pub(crate) has_prepared_statements: bool,
    pub(crate) lock_timeout: Duration,
    /// Where the indexes of databases are, which each server makes for itself.
    pub(crate) cache_directory: PathBuf,
    pub(crate) cache_size_bytes_max: u64,
}

impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings")
            .field("url", &without_passwords(&self.url))
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl DatabaseTable {
    /// Returns the settings, with an empty URL if the data is in the data directory.
    pub(super) fn settings<'v>(
        self,
        data: &Path,
        chosen_data: Option<&Path>,
        lock_timeout: Duration,
        variable: &impl Fn(&str) -> Option<&'v String>,
    ) -> DatabaseSettings {
        let cache_directory = self.cache_directory.clone().unwrap_or_else(|| {
            let platform = cache_home(variable).filter(|_| chosen_data.is_none());
            platform.map_or_else(|| data.join("cache"), |cache| cache.join("quipu"))
        });
        DatabaseSettings {
            url: self.url.unwrap_or_default(),
            password_file: self.password_file.or_else(|| default_password_file(variable)),
            schema: self.schema.unwrap_or_else(|| SCHEMA.to_owned()),
            listen_url: self.listen_url,
            has_listener: self.listen.unwrap_or(true),
            connections_max: self.connections_max.unwrap_or(CONNECTIONS_MAX).max(1),
            has_prepared_statements: self.prepared_statements.unwrap_or(true),
            lock_timeout,
            cache_directory,
            cache_size_bytes_max: self.cache_size_bytes_max.unwrap_or(CACHE_SIZE_BYTES_MAX),
        }
    }
}

impl DatabaseSettings {
    /// Returns the same settings for a database that may be another one.
    pub(crate) fn at(&self, url: &str) -> Self {
        if self.url == url {
            return self.clone();
        }
        // Where to listen is said about one database.
        Self { url: url.to_owned(), listen_url: None, ..self.clone() }
    }
}

/// Returns what libpq would use: the file that a variable names, or the one in the home directory.
fn default_password_file<'v>(variable: &impl Fn(&str) -> Option<&'v String>) -> Option<PathBuf> {
    let of_home = || {
        let file = home(variable)?.join(".pgpass");
        file.exists().then_some(file)
    };
    variable("PGPASSFILE").map(PathBuf::from).or_else(of_home)
}

/// Makes `database = "URL"` a table, and lets a variable and a flag override its URL.
pub(super) fn override_url(
    table: &mut toml::Table,
    variable: Option<&String>,
    flag: Option<String>,
) -> Result<(), Failure> {
    if let Some(toml::Value::String(url)) = table.get("database").cloned() {
        let of_url = toml::Table::from_iter([("url".to_owned(), toml::Value::String(url))]);
        table.insert("database".to_owned(), of_url.into());
    }
    let Some(url) = flag.or_else(|| variable.cloned()) else { return Ok(()) };
    if !is_url(&url) {
        // It may have a password anywhere, so it is not shown.
        return Err(Failure::usage("this is not the URL of a database".to_owned()).with_hint(
            "write it as `postgres://USER@HOST/DATABASE`; a directory is `--data DIR`",
        ));
    }
    let database = table.entry("database").or_insert_with(|| toml::Table::new().into());
    if let Some(database) = database.as_table_mut() {
        database.insert("url".to_owned(), toml::Value::String(url));
    }
    Ok(())
}

/// Returns whether a text is the URL of a database rather than a directory.
pub(crate) fn is_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["postgres://", "postgresql://"].iter().any(|scheme| lower.starts_with(scheme))
}

/// Returns whether a URL has a password.
pub(crate) fn has_password(url: &str) -> bool {
    without_passwords(url) != url
}

/// Returns a text in which no URL has a password.
pub(crate) fn without_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
        let url_length = after.find(is_end).unwrap_or(after.len());
        let (url, others) = after.split_at(url_length);
        shown.push_str(&without_password(url));
        rest = others;
    }
    shown.push_str(rest);
    shown
}

/// Returns a URL, without its scheme, without the password of its user and of its parameters.
fn without_password(url: &str) -> String {
    let (place, parameters) = url.split_once('?').map_or((url, None), |(a, b)| (a, Some(b)));
    // A password may hold an at sign that is not escaped; a host cannot.
    let place = match place.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{user}@{host}")
        }
        None => place.to_owned(),
    };
    let Some(parameters) = parameters else { return place };
    let is_shown = |parameter: &&str| !parameter.to_lowercase().starts_with("password=");
    let shown: Vec<_> = parameters.split('&').filter(is_shown).collect();
    if shown.is_empty() { place } else { format!("{place}?{}", shown.join("&")) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Flags, Settings};
    use super::*;

    fn read(flags: Flags, variables: &[(&str, &str)]) -> Result<Settings, Failure> {
        let mut all = BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]);
        all.extend(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        Settings::from_sources(flags, &all)
    }

    fn with_file(text: &str) -> (tempfile::TempDir, Flags) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("quipu.toml"), text).unwrap();
        let flags = Flags { data: Some(directory.path().to_owned()), ..Flags::default() };
        (directory, flags)
    }

    fn url(settings: Settings) -> Option<String> {
        settings.database.map(|database| database.url)
    }

    #[test]
    fn the_flag_goes_before_the_variable_and_that_before_the_file() {
        for text in ["database = 'postgres://file'", "[database]\nurl = 'postgres://file'"] {
            let (_kept, flags) = with_file(text);
            assert_eq!(url(read(flags, &[]).unwrap()).as_deref(), Some("postgres://file"));
            let variables = [("QUIPU_DATABASE", "postgres://variable")];
            let (_kept, flags) = with_file(text);
            assert_eq!(
                url(read(flags, &variables).unwrap()).as_deref(),
                Some("postgres://variable")
            );
            let (_kept, flags) = with_file(text);
            let flags = Flags { database: Some("postgres://flag".into()), ..flags };
            assert_eq!(url(read(flags, &variables).unwrap()).as_deref(), Some("postgres://flag"));
        }
        assert_eq!(url(read(Flags::default(), &[]).unwrap()), None);
    }

    #[test]
    fn a_setting_of_the_table_keeps_its_place_when_the_url_comes_from_elsewhere() {
        let (_kept, flags) = with_file("[database]\nschema = 'memories'\nconnections_max = 3");
        assert!(read(flags, &[]).unwrap().database.is_none());
        let (_kept, flags) = with_file("[database]\nschema = 'memories'\nconnections_max = 3");
        let settings = read(flags, &[("QUIPU_DATABASE", "postgres://variable")]).unwrap();
        let database = settings.database.unwrap();
        assert_eq!((database.schema.as_str(), database.connections_max), ("memories", 3));
    }

    #[test]
    fn the_index_cache_is_in_the_data_directory_if_that_was_chosen() {
        let variables = [("QUIPU_DATABASE", "postgres://db"), ("XDG_CACHE_HOME", "/caches")];
        let cache = |flags| read(flags, &variables).unwrap().database.unwrap().cache_directory;
        if cfg!(target_os = "linux") {
            assert_eq!(cache(Flags::default()), Path::new("/caches/quipu"));
        }
        let chosen = Flags { data: Some("/srv/quipu".into()), ..Flags::default() };
        assert_eq!(cache(chosen), Path::new("/srv/quipu/cache"));
    }

    #[test]
    fn a_directory_is_no_url() {
        let flags = Flags { database: Some("/var/lib/quipu".into()), ..Flags::default() };
        assert!(read(flags, &[]).is_err());
    }

    #[test]
    fn passwords_are_shown_nowhere() {
        let secrets = [
            "postgres://ada:sesame@db.example.org/memories",
            "postgresql://ada:se%40same@one,two:5433/memories?sslmode=require",
            "postgres://ada:se@same@host/x?connect_timeout=3&password=sesame",
            "in quipu.toml: | url = 'postgres://ada:sesame@h/d' | ^ expected",
        ];
        for secret in secrets {
            let shown = without_passwords(secret);
            assert!(!shown.contains("same"), "{shown}");
            assert!(shown.contains("://ada@"), "{shown}");
            assert!(has_password(secret));
        }
        for plain in ["postgres://ada@db/x?sslmode=require", "postgres:///x?host=/run", "no URL"] {
            assert_eq!(without_passwords(plain), plain);
        }
        let flags = Flags { database: Some(secrets[0].into()), ..Flags::default() };
        assert!(!format!("{:?}", read(flags, &[]).unwrap()).contains("sesame"));
        for text in [
            "[database]\nurl = 'postgres://a:sesame@h'\nport = 'x'",
            "database = 'postgres://a:sesame@h",
        ] {
            let (_kept, flags) = with_file(text);
            assert!(!format!("{:?}", read(flags, &[]).err()).contains("sesame"));
        }
    }
}
