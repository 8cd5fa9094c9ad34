//! What commands work with: the engine, the store that is meant, the user.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::clock::SystemClock;
use quipu_core::model::{Actor, MemoryPath, Store, Version, VersionId, View, WorkspaceId};
use quipu_core::{Engine, Error, ErrorKind};
use quipu_knowledge::Knowledge;
use quipu_sqlite::{OpenMode, OpenSettings, Restored, SqliteBackend};

use crate::args::Global;
use crate::authors::Authors;
use crate::failure::Failure;
use crate::print::Form;
use crate::settings::{Flags, Settings};
use crate::uses;

/// The settings and the form of the answer, before anything is opened.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) form: Form,
    named: Vec<String>,
    /// What this process is called in messages of others, such as `quipu serve`.
    program: String,
    /// What was opened, to be closed at the end.
    opened: OnceCell<Knowledge>,
}

/// An open data directory.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) engine: Knowledge,
    pub(crate) workspace: WorkspaceId,
    pub(crate) actor: Actor,
    /// The stores that the command line names.
    pub(crate) named: Vec<String>,
    /// What the settings call the store.
    set_store: Option<String>,
}

impl Context {
    /// Reads the settings for a command.
    pub(crate) fn new(global: Global, command: &str) -> Result<Self, Failure> {
        let form = if global.json { Form::Json } else { Form::Text };
        let flags = Flags { data: global.data, config: global.config };
        let settings = Settings::read(flags)?;
        let program = format!("quipu {command}");
        Ok(Self { settings, form, named: global.stores, program, opened: OnceCell::new() })
    }

    /// Returns the stores that the command line names.
    pub(crate) fn named(&self) -> &[String] {
        &self.named
    }

    /// Opens the data directory, which must exist.
    pub(crate) fn open(&self) -> Result<Data, Failure> {
        self.open_as(OpenMode::Existing)
    }

    /// Opens the data directory and makes it if it does not exist.
    pub(crate) fn open_or_create(&self) -> Result<Data, Failure> {
        self.open_as(OpenMode::Create)
    }

    /// Runs what is due when the command has ended. Closing leaves a database file that is complete
    /// without its log, unless another process uses it; then closing it is theirs.
    pub(crate) fn end(&self) {
        let Some(engine) = self.opened.get() else { return };
        uses::write_on_exit(engine);
        if let Err(error) = engine.close() {
            tracing::debug!(%error, "the data directory was not closed cleanly");
        }
    }

    fn open_as(&self, mode: OpenMode) -> Result<Data, Failure> {
        let settings = OpenSettings {
            mode,
            program: self.program.clone(),
            lock_timeout: self.settings.lock_timeout,
        };
        let backend = Arc::new(SqliteBackend::open_with(&self.settings.data, &settings)?);
        let engine = Engine::new(backend, Arc::new(SystemClock), self.settings.limits.clone());
        let engine = Knowledge::new(engine, &self.settings.data);
        self.opened.get_or_init(|| engine.clone());
        let workspace = engine.default_workspace()?.id;
        let actor = Actor::User(self.settings.user.clone());
        let (named, set_store) = (self.named.clone(), self.settings.store.clone());
        Ok(Data { engine, workspace, actor, named, set_store })
    }
}

impl Context {
    /// Puts a backup in the place of the data, and returns where the old files are now.
    pub(crate) fn restore_backup(&self, file: &Path) -> Result<Option<PathBuf>, Failure> {
        let Restored { old_files } = quipu_sqlite::restore_backup(file, &self.settings.data)?;
        // What was made of the old data says nothing about this.
        self.open()?.engine.discard_index()?;
        Ok(old_files)
    }
}

impl Data {
    /// Returns the store that is meant: the one named, the default one, or the only one there is.
    pub(crate) fn store(&self) -> Result<Store, Failure> {
        if let Some(wanted) = self.wanted_store()? {
            return self.find_store(wanted);
        }
        if let Some(store) = self.default_store()? {
            return Ok(store);
        }
        let mut stores = self.stores(Archived::Hide)?;
        match (stores.pop(), stores.len()) {
            (Some(only), 0) => Ok(only),
            (None, _) => Err(Failure::from(Error::not_found("there are no stores yet"))
                .with_hint("`quipu store create NAME` makes one")),
            (Some(last), _) => {
                stores.push(last);
                let names: Vec<_> =
                    stores.iter().map(|store| format!("`{}`", store.name)).collect();
                let message = format!("there are {} stores", names.len());
                let error = Error::new(ErrorKind::Ambiguous, message);
                Err(Failure::from(error).with_hint(format!(
                    "choose one with `--store NAME`, or for all commands with `quipu store \
                         default NAME`: {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// Returns the store that `quipu store default` has chosen, if it still exists.
    pub(crate) fn default_store(&self) -> Result<Option<Store>, Failure> {
        let workspaces = self.engine.workspaces()?;
        let workspace = workspaces.iter().find(|workspace| workspace.id == self.workspace);
        let Some(id) = workspace.and_then(|workspace| workspace.default_store) else {
            return Ok(None);
        };
        match self.engine.store(id) {
            Err(error) if *error.kind() == ErrorKind::NotFound => Ok(None),
            store => Ok(Some(store?)),
        }
    }

    /// Returns what the command line or the settings call the store, if they do.
    pub(crate) fn wanted_store(&self) -> Result<Option<&str>, Failure> {
        match self.named.as_slice() {
            [] => Ok(self.set_store.as_deref()),
            [only] => Ok(Some(only)),
            _ => Err(Failure::usage("this command works on one store, but several are named")),
        }
    }

    /// Returns the store that is meant, or `default`; one that does not exist is made.
    pub(crate) fn store_or_create(&self, default: &str) -> Result<Store, Failure> {
        self.find_or_create_store(self.wanted_store()?.unwrap_or(default))
    }

    /// Returns the store with this name or id; one with a new name is made.
    pub(crate) fn find_or_create_store(&self, wanted: &str) -> Result<Store, Failure> {
        Ok(self.engine.find_or_create_store(self.workspace, wanted)?)
    }

    /// Returns the store with this name or id.
    pub(crate) fn find_store(&self, wanted: &str) -> Result<Store, Failure> {
        Ok(self.engine.find_store(self.workspace, wanted)?)
    }

    /// Returns what people call the authors of versions.
    pub(crate) fn authors(&self) -> Authors<'_> {
        Authors::new(&self.engine, self.workspace)
    }

    /// Returns the stores of the workspace, the newest first.
    pub(crate) fn stores(&self, archived: Archived) -> Result<Vec<Store>, Failure> {
        let query = StoreQuery {
            workspace: self.workspace,
            archived,
            created: Span::default(),
            before: None,
            limit: usize::MAX,
        };
        Ok(self.engine.stores(&query)?.items)
    }

    /// Returns a version, in whichever store it is.
    pub(crate) fn version(&self, id: VersionId) -> Result<Version, Failure> {
        if !self.named.is_empty() {
            return Ok(self.engine.version(self.store()?.id, id, View::Full)?);
        }
        for store in self.stores(Archived::Show)? {
            match self.engine.version(store.id, id, View::Full) {
                Err(error) if *error.kind() == ErrorKind::NotFound => {}
                found => return Ok(found?),
            }
        }
        Err(Failure::from(Error::not_found(format!("no version has the id `{id}`")))
            .with_hint("`quipu log` lists the versions that are kept"))
    }
}

/// Reads a path as people type it: a missing slash at its beginning is added.
pub(crate) fn path(text: &str) -> Result<MemoryPath, Failure> {
    let text = if text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
    let parsed = MemoryPath::parse(&text);
    parsed.map_err(|error| Failure::from(Error::from(error)))
}
