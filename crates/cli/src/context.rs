//! What commands work with: the engine, the selected store, the user.
//!
//! [`crate::storage`] opens what has the data.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::clock::SystemClock;
use quipu_core::model::{
    Access, Actor, CopyKind, CopyMade, MemoryPath, SessionId, Store, StoreId, Version, VersionId,
    View, WorkspaceId,
};
use quipu_core::transfer::require_complete;
use quipu_core::{Engine, Error, ErrorKind, Moment};
use quipu_knowledge::Knowledge;

use crate::args::{Global, PastArguments, WriterArguments};
use crate::authors::Authors;
use crate::encoder::open_encoder;
use crate::failure::Failure;
use crate::granted::require_attached;
use crate::hook_files::HookFiles;
use crate::print::{Form, count, local, note};
use crate::settings::{Flags, Settings, has_password};
use crate::storage::{self, OpenMode, Opened, Place, Restored};
use crate::uses;

/// The settings and the output format, before anything is opened.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) form: Form,
    named: Vec<String>,
    /// The name of this process in the messages of others, such as `quipu serve`.
    program: String,
    /// The open data directory, to be closed at the end.
    opened: OnceCell<Knowledge>,
}

/// An open data directory.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) engine: Knowledge,
    /// The same engine, unless that reads the past.
    present: Knowledge,
    pub(crate) workspace: WorkspaceId,
    pub(crate) actor: Actor,
    /// The session that a variable names as the author.
    pub(crate) session: Option<SessionId>,
    /// The stores that the command line names.
    pub(crate) named: Vec<String>,
    /// The store that the settings name.
    configured_store: Option<String>,
}

impl Context {
    /// Reads the settings for a command.
    pub(crate) fn new(global: Global, command: &str) -> Result<Self, Failure> {
        let form = if global.json { Form::Json } else { Form::Text };
        if global.database.as_deref().is_some_and(has_password) {
            note(
                "others on this host can see the command line and the password in it; put it into a \
                 file, see docs/postgres.md",
            );
        }
        let flags = Flags { data: global.data, config: global.config, database: global.database };
        let settings = Settings::read(flags)?;
        let program = format!("quipu {command}");
        Ok(Self { settings, form, named: global.stores, program, opened: OnceCell::new() })
    }

    /// Returns the stores that the command line names.
    pub(crate) fn named(&self) -> &[String] {
        &self.named
    }

    /// Returns whether the data directory holds data. Creates nothing, unlike opening it.
    pub(crate) fn has_data(&self) -> bool {
        self.place().has_data()
    }

    /// Returns where the data is.
    pub(crate) fn place(&self) -> Place {
        Place::of(&self.settings)
    }

    /// Returns the data directory, for a command that works on the files of an embedded database.
    pub(crate) fn directory(&self) -> Result<&Path, Failure> {
        match &self.settings.database {
            None => Ok(&self.settings.data),
            Some(_) => {
                Err(Failure::usage("this is for an embedded database; PostgreSQL has its own way")
                    .with_hint("docs/postgres.md says how to back up, restore and upgrade"))
            }
        }
    }

    /// Returns the name of this process in the messages of others.
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Opens the data directory, which must exist.
    pub(crate) fn open(&self) -> Result<Data, Failure> {
        self.open_as(OpenMode::Existing)
    }

    /// Opens the data directory, creating it if it does not exist.
    pub(crate) fn open_or_create(&self) -> Result<Data, Failure> {
        self.open_as(OpenMode::Create)
    }

    /// Flushes and closes the data directory, if it was opened. The last process to close it leaves a
    /// database file that is complete without its write-ahead log.
    pub(crate) fn end(&self) {
        let Some(engine) = self.opened.get() else { return };
        uses::flush_on_exit(engine);
        if let Err(error) = engine.close() {
            tracing::debug!(%error, "the data directory was not closed cleanly");
        }
    }

    fn open_as(&self, mode: OpenMode) -> Result<Data, Failure> {
        let Opened { backend, index, .. } =
            self.place().open(mode, &self.program, &self.settings)?;
        let engine = Engine::new(backend, Arc::new(SystemClock), self.settings.limits.clone())
            .with_traces(Arc::new(HookFiles::of(&self.settings.data)));
        engine.read(|reader| require_complete(reader))?;
        let engine = index.knowledge(engine);
        self.opened.get_or_init(|| engine.clone());
        let workspace = engine.default_workspace()?.id;
        let actor = Actor::User(self.settings.user.clone());
        let (named, configured_store) = (self.named.clone(), self.settings.store.clone());
        let session = self.settings.session;
        let present = engine.clone();
        Ok(Data { engine, present, workspace, actor, session, named, configured_store })
    }
}

impl Context {
    /// Replaces the data with a backup, and returns where the old files are now.
    pub(crate) fn restore_backup(&self, file: &Path) -> Result<Option<PathBuf>, Failure> {
        if !file.exists() {
            return Err(Failure::usage(format!("there is no backup at {}", file.display()))
                .with_hint("`quipu backup FILE` writes one"));
        }
        let Restored { old_files } = storage::restore_backup(file, self.directory()?)?;
        // The index was built from the old data, and its sequence numbers may match by chance.
        self.open()?.engine.discard_index()?;
        Ok(old_files)
    }
}

impl Context {
    /// Opens the data directory for reading the selected store, as it is or as it was.
    ///
    /// With a moment, the engine that is returned reads that store alone.
    pub(crate) fn open_at(&self, arguments: &PastArguments) -> Result<Data, Failure> {
        let data = self.open()?;
        match data.wanted_moment(arguments)? {
            Some((store, moment)) => data.at(&store, &moment),
            None => Ok(data),
        }
    }
}

impl Data {
    /// Returns the same data with an engine that also searches by meaning, if the settings name an encoder. Says
    /// why if it cannot be used, so this is for commands that would use it.
    pub(crate) fn with_vectors(self, context: &Context) -> Self {
        let encoder = open_encoder(&context.settings);
        Self { engine: self.engine.with_encoder(encoder), ..self }
    }

    /// Returns the selected store and the moment that the command line names for it, if it names one.
    fn wanted_moment(&self, arguments: &PastArguments) -> Result<Option<(Store, String)>, Failure> {
        let named = match self.named.as_slice() {
            [only] => self.store_and_moment(only)?,
            several => {
                let moments = several.iter().map(|name| self.store_and_moment(name));
                if moments.collect::<Result<Vec<_>, _>>()?.iter().any(Option::is_some) {
                    return Err(Failure::usage("the past is read in one store at a time"));
                }
                None
            }
        };
        match (named, &arguments.at) {
            (Some(_), Some(_)) => Err(Failure::usage("give the moment once: `--at`, or after `@`")),
            (Some((store, moment)), None) => Ok(Some((store, moment))),
            (None, Some(moment)) => Ok(Some((self.store()?, moment.clone()))),
            (None, None) => Ok(None),
        }
    }

    /// Returns what `NAME@MOMENT` names; `None` if it has no `@`, or is the name of a store as it is.
    pub(crate) fn store_and_moment(&self, text: &str) -> Result<Option<(Store, String)>, Failure> {
        let (name, Some(moment)) = quipu_core::moment::split(text) else { return Ok(None) };
        match self.engine.find_store(self.workspace, text) {
            Err(error) if *error.kind() == ErrorKind::NotFound => {}
            found => return found.map(|_| None).map_err(Failure::from),
        }
        Ok(Some((self.engine.find_store(self.workspace, name)?, moment.to_owned())))
    }

    /// Returns the same data with an engine that reads a store as it was at a moment.
    pub(crate) fn at(self, store: &Store, moment: &str) -> Result<Self, Failure> {
        let moment = Moment::parse(moment, self.engine.now())?;
        let past = self.engine.moment(store.id, &moment)?;
        if let Some(horizon) = past.horizon.filter(|_| !past.is_complete()) {
            note(&format!(
                "incomplete: old versions were removed by retention; the history is complete from \
                 {} on",
                local(horizon)
            ));
        }
        let redacted_count = self.engine.redacted_at(&past)?.len();
        if redacted_count > 0 {
            let memories = count(redacted_count, "memory", "memories");
            note(&format!(
                "{memories} of that moment cannot be shown, because it was redacted since"
            ));
        }
        let engine = self.engine.at(&past)?.judged_by(&moment);
        Ok(Self { engine, named: vec![store.id.to_string()], ..self })
    }

    /// Returns whether the engine reads the past.
    pub(crate) fn is_past(&self) -> bool {
        !Arc::ptr_eq(self.engine.backend(), self.present.backend())
    }

    /// Records that a copy of texts was written, so that a redaction can name it. The copy is there
    /// already, so a failure is only noted.
    pub(crate) fn note_copy(&self, kind: CopyKind, store: Option<StoreId>, target: &Path) {
        let target = std::path::absolute(target).unwrap_or_else(|_| target.to_owned());
        let copy = CopyMade {
            workspace: self.workspace,
            at: self.engine.now(),
            kind,
            store,
            target: target.display().to_string(),
        };
        // Of the past, a copy is made now.
        if let Err(error) = self.present.note_copy(&copy) {
            note(&format!("the {kind} is written, but redactions will not name it: {error}"));
        }
    }

    /// Returns the selected store: the one named, the default one, or the only one.
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
                .with_hint("create one with `quipu store create NAME`")),
            (Some(last), _) => {
                stores.push(last);
                let names = handles(&stores);
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

    /// Returns the store that `quipu store default` has set, if any. Fails if that store was deleted: to
    /// go on with another one would write where nobody looks.
    pub(crate) fn default_store(&self) -> Result<Option<Store>, Failure> {
        let workspaces = self.engine.workspaces()?;
        let workspace = workspaces.iter().find(|workspace| workspace.id == self.workspace);
        let Some(id) = workspace.and_then(|workspace| workspace.default_store) else {
            return Ok(None);
        };
        match self.engine.store(id) {
            Err(error) if *error.kind() == ErrorKind::NotFound => Err(self.no_default_store(id)?),
            store => Ok(Some(store?)),
        }
    }

    /// Returns the failure for a default store that does not exist.
    fn no_default_store(&self, id: StoreId) -> Result<Failure, Failure> {
        let others = "choose another one with `quipu store default NAME` or `--store NAME`";
        let deleted = self.engine.deleted_stores(self.workspace)?;
        let Some(deleted) = deleted.into_iter().find(|deleted| deleted.store.id == id) else {
            let error = Error::not_found("the default store does not exist anymore");
            return Ok(Failure::from(error).with_hint(others));
        };
        let name = deleted.store.name;
        let error = Error::not_found(format!("the default store `{name}` was deleted"));
        let hint = format!("restore it with `quipu store restore {name}`, or {others}");
        Ok(Failure::from(error).with_hint(hint))
    }

    /// Returns the store that the command line or the settings name, if any.
    pub(crate) fn wanted_store(&self) -> Result<Option<&str>, Failure> {
        match self.named.as_slice() {
            [] => Ok(self.configured_store.as_deref()),
            [only] => Ok(Some(only)),
            _ => Err(Failure::usage("this command takes one store, but several are given")),
        }
    }

    /// Returns the named store, or `default`, creating it if it does not exist.
    pub(crate) fn store_or_create(&self, default: &str) -> Result<Store, Failure> {
        self.find_or_create_store(self.wanted_store()?.unwrap_or(default))
    }

    /// Returns the store with this name or id, creating one if the name is new. A session creates none.
    pub(crate) fn find_or_create_store(&self, wanted: &str) -> Result<Store, Failure> {
        if self.session.is_some() {
            return self.find_store(wanted);
        }
        Ok(self.engine.find_or_create_store(self.workspace, wanted)?)
    }

    /// Returns the store with this name or id.
    pub(crate) fn find_store(&self, wanted: &str) -> Result<Store, Failure> {
        match self.engine.find_store(self.workspace, wanted) {
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                let Ok(Some((store, _))) = self.store_and_moment(wanted) else {
                    return Err(error.into());
                };
                let message = format!("`{wanted}` is the past, which this command cannot use");
                let hint = format!("use `{}`, or a command with `--at`", store.name);
                Err(Failure::from(Error::invalid(message)).with_hint(hint))
            }
            found => Ok(found?),
        }
    }

    /// Returns who writes to a store: the session that is named, or else the user.
    pub(crate) fn author(
        &self,
        store: &Store,
        arguments: &WriterArguments,
    ) -> Result<Actor, Failure> {
        let Some(id) = arguments.session.or(self.session) else { return Ok(self.actor.clone()) };
        require_attached(&self.open_session(id)?, store, Access::ReadWrite)?;
        Ok(Actor::Session(id))
    }

    /// Returns the stores that the command line names, or the selected one, each once and in the order of
    /// their creation.
    pub(crate) fn stores_named(&self) -> Result<Vec<Store>, Failure> {
        if self.named.len() < 2 {
            return Ok(vec![self.store()?]);
        }
        let stores = self.named.iter().map(|name| self.find_store(name));
        let mut stores = stores.collect::<Result<Vec<_>, _>>()?;
        stores.sort_by_key(|store| store.id);
        stores.dedup_by_key(|store| store.id);
        Ok(stores)
    }

    /// Returns the names of the authors of versions.
    pub(crate) fn authors(&self) -> Authors<'_> {
        Authors::new(&self.engine, self.workspace)
    }

    /// Returns the stores of the workspace, newest first.
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

    /// Returns a version of the named store, or of any store if none is named.
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
            .with_hint("`quipu log` lists the versions"))
    }
}

/// Returns what to call each store on the command line: its name, or its id if others have the same.
fn handles(stores: &[Store]) -> Vec<String> {
    let handle =
        |store: &Store| match stores.iter().filter(|other| other.name == store.name).count() {
            1 => format!("`{}`", store.name),
            _ => format!("`{}`", store.id),
        };
    stores.iter().map(handle).collect()
}

/// Parses a path as people type it: without a leading slash, one is added.
pub(crate) fn path(text: &str) -> Result<MemoryPath, Failure> {
    let text = if text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
    let parsed = MemoryPath::parse(&text);
    parsed.map_err(|error| Failure::from(Error::from(error)))
}
