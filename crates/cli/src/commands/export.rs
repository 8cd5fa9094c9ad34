//! `quipu export`: a store as a folder, as an archive or as a git repository.

mod archive;
mod folder;
mod git;
mod names;

use std::path::Path;

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::model::{Store, Version, VersionId, View};
use serde::Serialize;

use crate::args::{ExportArguments, ExportForm};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{answer, note};

/// How many versions are listed at once.
const PAGE: usize = 1000;

pub(super) fn run(context: &Context, arguments: &ExportArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    let is_jsonl = arguments.target.extension().is_some_and(|it| it.eq_ignore_ascii_case("jsonl"));
    let default = if is_jsonl { ExportForm::Archive } else { ExportForm::Folder };
    let source = Source { data: &data, store: &store, place: &context.settings.data };
    let report = match arguments.form.unwrap_or(default) {
        ExportForm::Folder => folder::write(&source, arguments)?,
        ExportForm::Archive => archive::write(&source, &arguments.target)?,
        ExportForm::Git => git::write(&source, &arguments.target)?,
    };
    for it in &report.skipped {
        note(&format!("`{}` was left out: {}", it.path, it.reason));
    }
    answer(context.form, &report, |out| {
        writeln!(out, "{} {} of `{}` exported", report.count, report.what, store.name)
    })
}

/// Makes a folder, if it is not there.
fn make(folder: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::other(format!("{} cannot be made: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)
}

/// What was exported, as JSON.
#[derive(Serialize)]
struct Report {
    form: &'static str,
    /// What was counted.
    #[serde(skip)]
    what: &'static str,
    count: usize,
    skipped: Vec<LeftOut>,
}

/// Something that could not be exported.
#[derive(Serialize)]
struct LeftOut {
    path: String,
    reason: String,
}

/// The store that is exported.
struct Source<'a> {
    data: &'a Data,
    store: &'a Store,
    /// The data directory.
    place: &'a Path,
}

impl Source<'_> {
    /// Returns the ids of all versions that are kept, the oldest first.
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
