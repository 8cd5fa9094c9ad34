//! Opens what has the data: a directory, or a database of a PostgreSQL server.
//!
//! This is the only module that names a concrete backend.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use quipu_core::transfer::Transfer;
use quipu_core::{Backend, Engine};
use quipu_knowledge::Knowledge;
use quipu_mount::sync::DataDirectory;
use quipu_postgres::{Listening, Migrated, PostgresBackend, PostgresSettings, PreparedStatements};
use quipu_sqlite::{DATABASE_FILE, OpenSettings, SqliteBackend};

use crate::context::Context;
use crate::failure::Failure;
use crate::settings::{DatabaseSettings, Settings, is_url, without_passwords};

pub(crate) use quipu_sqlite::{OpenMode, Restored, restore_backup};

/// Where data is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In an embedded database.
    Directory(PathBuf),
    /// In a database that servers share.
    Database(Box<DatabaseSettings>),
}

/// What has the data, open.
pub(crate) struct Opened {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) transfer: Arc<dyn Transfer>,
    pub(crate) index: Index,
}

/// The index of the data.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// Of every store, beside the data.
    Complete(PathBuf),
    /// Of the stores that were searched here, on this host.
    Bounded {
        /// Where it is.
        directory: PathBuf,
        /// How large it may grow.
        size_bytes_max: u64,
    },
}

impl Index {
    /// Adds knowledge to an engine.
    pub(crate) fn knowledge(&self, engine: Engine) -> Knowledge {
        match self {
            Self::Complete(directory) => Knowledge::new(engine, directory),
            Self::Bounded { directory, size_bytes_max } => {
                Knowledge::on_demand(engine, directory, *size_bytes_max)
            }
        }
    }
}

impl Place {
    /// Returns where the settings say that the data is.
    pub(crate) fn of(settings: &Settings) -> Self {
        match &settings.database {
            Some(database) => Self::Database(Box::new(database.clone())),
            None => Self::Directory(settings.data.clone()),
        }
    }

    /// Returns the place that somebody has typed: a URL or a directory.
    pub(crate) fn named(text: &str, settings: &Settings) -> Result<Self, Failure> {
        if is_url(text) {
            return Ok(Self::Database(Box::new(settings.databases.at(text))));
        }
        // A directory of that name would have the password in it.
        if text.contains("://") {
            return Err(Failure::usage("this is neither a directory nor the URL of a database")
                .with_hint("write a URL as `postgres://USER@HOST/DATABASE`"));
        }
        Ok(Self::Directory(PathBuf::from(text)))
    }

    /// Returns whether there is data, as far as that can be told without opening it.
    pub(crate) fn has_data(&self) -> bool {
        match self {
            Self::Directory(directory) => directory.join(DATABASE_FILE).exists(),
            Self::Database(_) => true,
        }
    }

    /// Opens it. `program` is the name of this process in the messages of others.
    pub(crate) fn open(
        &self,
        mode: OpenMode,
        program: &str,
        settings: &Settings,
    ) -> Result<Opened, Failure> {
        match self {
            Self::Directory(directory) => {
                let (program, lock_timeout) = (program.to_owned(), settings.lock_timeout);
                let settings = OpenSettings { mode, program, lock_timeout };
                let backend = Arc::new(SqliteBackend::open_with(directory, &settings)?);
                let transfer = Arc::clone(&backend) as _;
                Ok(Opened { backend, transfer, index: Index::Complete(directory.clone()) })
            }
            Self::Database(database) => {
                if mode == OpenMode::Create {
                    // For what is about this host: the first key, leases, models.
                    quipu_sqlite::private_directory(&settings.data)?;
                }
                let postgres = postgres(database);
                let index = index_directory(database)?;
                let backend = Arc::new(PostgresBackend::open(&postgres)?);
                let (transfer, size_bytes_max) =
                    (Arc::clone(&backend) as _, database.cache_size_bytes_max);
                let index = Index::Bounded { directory: index, size_bytes_max };
                Ok(Opened { backend, transfer, index })
            }
        }
    }

    /// Returns whether two places are the same, as far as their names tell.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(one), Self::Directory(other)) => {
                one == other || DataDirectory::new(one).is(other)
            }
            (Self::Database(one), Self::Database(other)) => {
                (&one.url, &one.schema) == (&other.url, &other.schema)
            }
            (Self::Directory(_), Self::Database(_)) | (Self::Database(_), Self::Directory(_)) => {
                false
            }
        }
    }

    /// Returns the option that chooses the place.
    pub(crate) fn option(&self) -> String {
        match self {
            Self::Directory(_) => format!("`--data {self}`"),
            Self::Database(_) => format!("`--database {self}`"),
        }
    }

    /// Creates the tables or brings them up to date.
    pub(crate) fn migrate(&self, context: &Context) -> Result<Schema, Failure> {
        match self {
            // Opening one brings it up to date.
            Self::Directory(_) => {
                self.open(OpenMode::Existing, context.program(), &context.settings)?;
                let schema = quipu_sqlite::schema_version();
                Ok(Schema { before: Some(schema), after: schema })
            }
            Self::Database(database) => {
                let Migrated { from, to } = quipu_postgres::migrate(&postgres(database))?;
                Ok(Schema { before: Some(from).filter(|from| *from > 0), after: to })
            }
        }
    }
}

/// Returns how to reach a database.
fn postgres(database: &DatabaseSettings) -> PostgresSettings {
    PostgresSettings {
        password_file: database.password_file.clone(),
        schema: database.schema.clone(),
        listen_url: database.listen_url.clone(),
        listening: if database.has_listener { Listening::On } else { Listening::Off },
        prepared_statements: if database.has_prepared_statements {
            PreparedStatements::On
        } else {
            PreparedStatements::Off
        },
        connections_max: database.connections_max,
        lock_timeout: database.lock_timeout,
        ..PostgresSettings::new(database.url.clone())
    }
}

/// Returns the directory of this host's index of a database, and makes it.
///
/// Its name says which database it is about. That only keeps databases from sharing the space: whether an
/// index is right is checked against the feed, since what is behind a name may be replaced.
fn index_directory(database: &DatabaseSettings) -> Result<PathBuf, Failure> {
    let place = quipu_postgres::without_password(&database.url);
    let name = format!("{place} {}", database.schema);
    let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let directory = database.cache_directory.join(name.trim_matches('-'));
    quipu_sqlite::private_directory(&directory)?;
    Ok(directory)
}

/// What a migration did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema {
    /// The version of the schema before; `None` if there was none.
    pub(crate) before: Option<i64>,
    /// The version now.
    pub(crate) after: i64,
}

/// Names the place for people, without a password.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => directory.display().fmt(f),
            Self::Database(database) => f.write_str(&without_passwords(&database.url)),
        }
    }
}
