//! `quipu import`: notes of other programs become memories.
//!
//! A source gives items: a path and a text for each. Writing them is the same for all sources, and
//! doing it again changes nothing.

mod archive;
mod chatgpt;
mod claude;
mod conversation;
mod folder;
mod graph;
mod source;
mod writing;

pub(super) use archive::FORMAT as ARCHIVE_FORMAT;

use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quipu_core::ErrorKind;
use quipu_core::engine::{NewAttachment, NewSession, TokenWish};
use quipu_core::model::{Access, Instructions, SessionId, Store};
use quipu_mount::sync::DataDirectory;
use serde::Serialize;

use crate::args::{ImportArguments, ImportKind};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{answer, count, note};

use source::Collected;
use writing::{Mode, Tally, Writer};

/// What a session that imports keeps as its details, so that a later import knows its work.
const SESSION_DETAILS: &str = "import";

/// How many lines about skipped things people want to see.
const SKIPPED_SHOWN_MAX: usize = 20;

pub(super) fn run(context: &Context, arguments: &ImportArguments) -> Result<(), Failure> {
    let own = DataDirectory::new(&context.settings.data);
    source::refuse_own_data(&arguments.source, &own)?;
    let kind = match arguments.from {
        Some(kind) => kind,
        None => source::detect(&arguments.source)?,
    };
    // A rehearsal leaves nothing behind, not even an empty data directory.
    let data = match arguments.dry_run {
        true if !context.settings.data.exists() => None,
        true => Some(context.open()?),
        false => Some(context.open_or_create()?),
    };
    let limits = data.as_ref().map_or(&context.settings.limits, |data| data.engine.limits());
    let size_max = limits.content_size_bytes_max;
    // A new data directory may be inside the source.
    let own = DataDirectory::new(&context.settings.data);
    let collected = source::collect(kind, &arguments.source, &own, size_max)?
        .into_directory(&arguments.into)?;
    let plan = Plan { kind, arguments, size_max };
    let name = collected.name.clone();
    let report = match (data, arguments.dry_run) {
        (Some(data), false) => plan.carry_out(&data, &meant_store(&data, &name)?, collected)?,
        (data, _) => plan.rehearse(data.as_ref(), &name, collected)?,
    };
    report.print(context)
}

/// Returns the store to import into; without any store there is one with the name of the source.
fn meant_store(data: &Data, name: &str) -> Result<Store, Failure> {
    if data.wanted_store()?.is_some() {
        return data.store_or_create(name);
    }
    if data.stores(quipu_core::backend::Archived::Hide)?.is_empty() {
        return data.find_or_create_store(name);
    }
    data.store()
}

/// What is to be done.
struct Plan<'a> {
    kind: ImportKind,
    arguments: &'a ImportArguments,
    size_max: u64,
}

impl Plan<'_> {
    fn carry_out(&self, data: &Data, store: &Store, from: Collected) -> Result<Report, Failure> {
        let session = if from.items.is_empty() { None } else { Some(self.session(data, store)?) };
        let mode = if self.arguments.overwrite { Mode::Overwrite } else { Mode::Careful };
        let writer = Writer {
            engine: &data.engine,
            store: store.id,
            session,
            mode,
            size_max: self.size_max,
        };
        let bar = bar(from.items.len());
        let tally = writer.write_all(from, &bar)?;
        bar.finish_and_clear();
        index(data, tally.created + tally.updated)?;
        Ok(self.report(store.name.as_str(), session, tally))
    }

    fn rehearse(
        &self,
        data: Option<&Data>,
        name: &str,
        from: Collected,
    ) -> Result<Report, Failure> {
        let store = match data.map(|data| existing_store(data, name)).transpose()? {
            Some(Some(store)) => Some(store),
            _ => None,
        };
        let (Some(data), Some(store)) = (data, store) else {
            let wanted = data.map(Data::wanted_store).transpose()?.flatten().unwrap_or(name);
            return Ok(self.report(wanted, None, writing::count_all(from, self.size_max)));
        };
        let mode = if self.arguments.overwrite { Mode::Overwrite } else { Mode::Careful };
        let writer = Writer {
            engine: &data.engine,
            store: store.id,
            session: None,
            mode,
            size_max: self.size_max,
        };
        let tally = writer.write_all(from, &ProgressBar::hidden())?;
        Ok(self.report(store.name.as_str(), None, tally))
    }

    /// Starts the session whose work the import is.
    fn session(&self, data: &Data, store: &Store) -> Result<SessionId, Failure> {
        let attachment = NewAttachment {
            store: store.id,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let title =
            format!("import of {} ({})", name_of(&self.arguments.source), self.kind.as_str());
        let new = NewSession {
            details: SESSION_DETAILS.to_owned(),
            ..NewSession::titled(&title, vec![attachment], TokenWish::None)
        };
        Ok(data.engine.create_session(data.workspace, &new)?.0.id)
    }

    fn report(&self, store: &str, session: Option<SessionId>, tally: Tally) -> Report {
        Report {
            kind: self.kind.as_str(),
            store: store.to_owned(),
            session: session.map(|id| id.to_string()),
            dry_run: self.arguments.dry_run,
            tally,
        }
    }
}

/// Returns the store that would be used, if it exists.
fn existing_store(data: &Data, name: &str) -> Result<Option<Store>, Failure> {
    let wanted = match data.wanted_store()? {
        Some(wanted) => wanted,
        None if data.stores(quipu_core::backend::Archived::Hide)?.is_empty() => name,
        None => return data.store().map(Some),
    };
    match data.engine.find_store(data.workspace, wanted) {
        Err(error) if *error.kind() == ErrorKind::NotFound => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// Returns the last part of a path, for people.
fn name_of(source: &Path) -> String {
    let full = std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
    full.file_name().map_or_else(|| "import".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Brings the index up to date, so that the first search need not.
fn index(data: &Data, changes_count: usize) -> Result<(), Failure> {
    let bar = bar(changes_count);
    loop {
        match data.engine.index_pending()? {
            0 => break,
            done => bar.inc(u64::try_from(done).unwrap_or(u64::MAX)),
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn bar(items_count: usize) -> ProgressBar {
    let length = u64::try_from(items_count).unwrap_or(u64::MAX);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}")
        .expect("the template is valid");
    // Nothing is drawn unless the errors go to a terminal.
    ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr()).with_style(style)
}

/// What was done, as JSON.
#[derive(Serialize)]
struct Report {
    kind: &'static str,
    store: String,
    session: Option<String>,
    dry_run: bool,
    #[serde(flatten)]
    tally: Tally,
}

impl Report {
    fn print(&self, context: &Context) -> Result<(), Failure> {
        for path in self.tally.credentials.iter().take(SKIPPED_SHOWN_MAX) {
            note(&format!(
                "`{path}` holds a credential; memories are read by many, so take it out"
            ));
        }
        answer(context.form, self, |out| {
            let Tally { created, updated, unchanged, skipped, .. } = &self.tally;
            let verb = if self.dry_run { "would be imported" } else { "imported" };
            let memories = count(created + updated + unchanged, "memory", "memories");
            writeln!(
                out,
                "{memories} {verb} into `{}`: {created} new, {updated} changed, {unchanged} as before",
                self.store
            )?;
            if skipped.is_empty() {
                return Ok(());
            }
            writeln!(out, "{} skipped:", skipped.len())?;
            for it in skipped.iter().take(SKIPPED_SHOWN_MAX) {
                writeln!(out, "  {}: {}", it.source, it.reason)?;
            }
            match skipped.len().saturating_sub(SKIPPED_SHOWN_MAX) {
                0 => Ok(()),
                more => writeln!(out, "  and {more} more; `--json` lists all"),
            }
        })
    }
}
