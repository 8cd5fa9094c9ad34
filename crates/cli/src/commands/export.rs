//! `quipu export`: writes a store as a folder, an archive or a git repository.

mod archive;
mod folder;
mod git;
mod names;

use std::path::Path;

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::model::{CopyKind, Store, Version, VersionId, View};
use serde::Serialize;

use crate::args::{ExportArguments, ExportFormat};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{answer, note};

/// How many versions or memories are read at a time.
const PAGE: usize = 1000;

pub(super) fn run(context: &Context, arguments: &ExportArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let store = data.store()?;
    let is_jsonl = arguments.target.extension().is_some_and(|it| it.eq_ignore_ascii_case("jsonl"));
    let default = if is_jsonl { ExportFormat::Archive } else { ExportFormat::Folder };
    let source = Source { data: &data, store: &store, directory: &context.settings.data };
    let report = match arguments.format.unwrap_or(default) {
        ExportFormat::Folder => folder::write(&source, arguments)?,
        ExportFormat::Archive => archive::write(&source, &arguments.target)?,
        ExportFormat::Git => git::write(&source, &arguments.target)?,
    };
    data.note_copy(CopyKind::Export, Some(store.id), &arguments.target);
    for it in &report.skipped {
        note(&format!("skipped `{}`: {}", it.path, it.reason));
    }
    answer(context.form, &report, |out| {
        writeln!(out, "exported {} {} of `{}`", report.count, report.what, store.name)
    })
}

/// Creates a folder, if it does not exist.
fn create(folder: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::other(format!("cannot create {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)
}

/// The result of an export, as JSON.
#[derive(Serialize)]
struct Report {
    form: &'static str,
    /// The unit of `count`.
    #[serde(skip)]
    what: &'static str,
    count: usize,
    skipped: Vec<Skipped>,
}

/// A memory that could not be exported.
#[derive(Serialize)]
struct Skipped {
    path: String,
    reason: String,
}

/// The store that is exported.
struct Source<'a> {
    data: &'a Data,
    store: &'a Store,
    /// The data directory.
    directory: &'a Path,
}

impl Source<'_> {
    /// Returns the ids of all retained versions, oldest first.
    fn versions(&self) -> Result<Vec<VersionId>, Failure> {
        let mut ids = Vec::new();
        let mut before = None;
        loop {
            let filter = VersionFilter::default();
            let query = VersionQuery { filter, before, limit: PAGE, view: View::Basic };
            let page = self.data.engine.versions(self.store.id, &query)?;
            ids.extend(page.items.iter().map(|version| version.id));
            before = page.next;
            if before.is_none() {
                ids.reverse();
                return Ok(ids);
            }
        }
    }

    fn version(&self, id: VersionId) -> Result<Version, Failure> {
        Ok(self.data.engine.version(self.store.id, id, View::Full)?)
    }
}
