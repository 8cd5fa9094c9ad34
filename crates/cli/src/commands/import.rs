//! `quipu import`: turns notes of other programs into memories.
//!
//! Each source yields items, a path and a text each. Writing them is the same for all sources, and
//! idempotent: importing again changes nothing.

mod archive;
mod chatgpt;
mod claude;
mod conversation;
mod dates;
mod detection;
mod dry_run;
mod folder;
mod graph;
mod json;
mod matching;
mod previous;
mod reading;
mod source;
mod writing;

pub(super) use archive::{FORMAT as ARCHIVE_FORMAT, VERSION as ARCHIVE_VERSION};

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quipu_core::ErrorKind;
use quipu_core::engine::{NewAttachment, NewSession, SessionToken};
use quipu_core::model::{Access, Instructions, SecretPolicy, SessionId, Store, StoreId};
use quipu_core::settings::Limits;
use quipu_mount::sync::DataDirectory;
use serde::Serialize;

use crate::args::{DatesWhen, ImportArguments, ImportKind};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{answer, count, note};

use dates::FileDates;
use dry_run::DryRun;
use folder::FileSelection;
use matching::Matcher;
use previous::PreviousImports;
use source::{Collected, Request, Skipped, SkippedKind};
use writing::{Action, Mode, Tally, Writer};

/// The prefix of the details of an importing session. What follows identifies the source, so that a
/// later import of the same source recognizes its own versions.
const DETAILS_PREFIX: &str = "import ";

/// The details of importing sessions before they identified the source.
const DETAILS_WITHOUT_SOURCE: &str = "import";

/// How many memories with credentials are named.
const CREDENTIALS_SHOWN_MAX: usize = 20;

pub(super) fn run(context: &Context, arguments: &ImportArguments) -> Result<(), Failure> {
    let own = DataDirectory::new(&context.settings.data);
    source::refuse_own_data(&arguments.source, &own)?;
    let kind = match arguments.from {
        Some(kind) => kind,
        None => detection::detect(&arguments.source)?,
    };
    // A dry run leaves nothing behind, not even an empty data directory.
    let data = match arguments.dry_run {
        true if !context.has_data() => None,
        true => Some(context.open()?),
        false => Some(context.open_or_create()?),
    };
    let limits = &context.settings.limits;
    // Again, since the data directory may have just been created inside the source.
    let own = DataDirectory::new(&context.settings.data);
    let request = Request {
        kind,
        source: &arguments.source,
        directory: &arguments.into,
        data: &own,
        size_max: limits.content_size_bytes_max,
        texts: if arguments.all_texts { FileSelection::Texts } else { FileSelection::Notes },
        dates: file_dates(arguments),
    };
    let collected = source::collect(&request)?;
    let plan = Plan { kind, arguments, limits };
    let name = collected.name.clone();
    let report = match (data, arguments.dry_run) {
        (Some(data), false) => {
            let store = target_store(&data, &name)?;
            data.require_granted(&store, Access::ReadWrite)?;
            plan.carry_out(&data, &store, collected)?
        }
        (data, _) => plan.simulate(data.as_ref(), &name, collected)?,
    };
    report.print(context)
}

/// Returns whether the dates of files are added.
///
/// Whoever keeps a vault sorts and searches notes by the dates of their files. In other folders, those
/// are often the dates of a checkout or a copy. A folder that is synced has equal texts on both sides, which
/// added dates would end.
fn file_dates(arguments: &ImportArguments) -> FileDates {
    let source = &arguments.source;
    match arguments.file_dates {
        DatesWhen::Always => FileDates::Added,
        DatesWhen::Auto if detection::is_vault(source) && !detection::is_synced(source) => {
            FileDates::Added
        }
        DatesWhen::Auto | DatesWhen::Never => FileDates::Ignored,
    }
}

/// Returns the store to import into. If there is none at all, one is created with the name of the
/// source.
fn target_store(data: &Data, name: &str) -> Result<Store, Failure> {
    if data.wanted_store()?.is_some() {
        return data.store_or_create(name);
    }
    if data.stores(quipu_core::backend::Archived::Hide)?.is_empty() {
        return data.find_or_create_store(name);
    }
    data.store()
}

/// What to import, and how.
struct Plan<'a> {
    kind: ImportKind,
    arguments: &'a ImportArguments,
    limits: &'a Limits,
}

impl Plan<'_> {
    fn carry_out(&self, data: &Data, store: &Store, from: Collected) -> Result<Report, Failure> {
        if from.items.is_empty() {
            let mut tally = Tally { skipped: from.skipped, ..Tally::default() };
            tally.skipped.sort();
            return Ok(self.report((store.name.as_str(), store.policy.secrets), None, tally));
        }
        let details = format!("{DETAILS_PREFIX}{}", from.origin);
        let previous = PreviousImports::find(data, store.id, &details)?;
        let session = self.session(data, store, &details)?;
        let writer = self.writer(data, store, (&details, previous), Action::Write(session));
        let bar = bar(from.items.len());
        let tally = writer.write_all(from, &bar)?;
        bar.finish_and_clear();
        index(data, store.id, tally.created + tally.updated)?;
        Ok(self.report((store.name.as_str(), store.policy.secrets), Some(session), tally))
    }

    fn simulate(
        &self,
        data: Option<&Data>,
        name: &str,
        from: Collected,
    ) -> Result<Report, Failure> {
        let store = data.map(|data| existing_store(data, name)).transpose()?.flatten();
        let (Some(data), Some(store)) = (data, store) else {
            let wanted = data.map(Data::wanted_store).transpose()?.flatten().unwrap_or(name);
            let dry_run = DryRun::of_new_store(self.limits);
            let tally = writing::count_all(from, self.limits.content_size_bytes_max, &dry_run);
            return Ok(self.report((wanted, SecretPolicy::default()), None, tally));
        };
        let details = format!("{DETAILS_PREFIX}{}", from.origin);
        let previous = PreviousImports::find(data, store.id, &details)?;
        let action = Action::Simulate(Box::new(DryRun::of(&data.engine, &store)?));
        let writer = self.writer(data, &store, (&details, previous), action);
        let tally = writer.write_all(from, &ProgressBar::hidden())?;
        Ok(self.report((store.name.as_str(), store.policy.secrets), None, tally))
    }

    fn writer<'a>(
        &self,
        data: &'a Data,
        store: &'a Store,
        (details, previous): (&'a str, PreviousImports),
        action: Action,
    ) -> Writer<'a> {
        let mode = if self.arguments.overwrite { Mode::Overwrite } else { Mode::Careful };
        let size_max = self.limits.content_size_bytes_max;
        let matcher = Matcher::new(&data.engine, store, previous, mode);
        Writer { engine: &data.engine, store, details, matcher, action, mode, size_max }
    }

    /// Creates the session that the import writes as.
    fn session(&self, data: &Data, store: &Store, details: &str) -> Result<SessionId, Failure> {
        let attachment = NewAttachment {
            store: store.id,
            access: Access::ReadWrite,
            instructions: Instructions::default(),
        };
        let title =
            format!("import of {} ({})", name_of(&self.arguments.source), self.kind.as_str());
        let new = NewSession {
            details: details.to_owned(),
            ..NewSession::titled(&title, vec![attachment], SessionToken::None)
        };
        Ok(data.engine.create_session(data.workspace, &new)?.0.id)
    }

    fn report(
        &self,
        (store, secrets): (&str, SecretPolicy),
        session: Option<SessionId>,
        tally: Tally,
    ) -> Report {
        Report {
            kind: self.kind.as_str(),
            secrets,
            store: store.to_owned(),
            session: session.map(|id| id.to_string()),
            dry_run: self.arguments.dry_run,
            tally,
        }
    }
}

/// Returns whether a session with these details may have imported the same source.
fn is_same_source(details: &str, wanted: &str) -> bool {
    details == wanted || details == DETAILS_WITHOUT_SOURCE
}

/// Returns the store that an import would use, if it exists.
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

/// Returns the last component of a path, for display.
fn name_of(source: &Path) -> String {
    let full = std::path::absolute(source).unwrap_or_else(|_| source.to_owned());
    full.file_name().map_or_else(|| "import".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Brings the index up to date, so that the first search does not have to.
fn index(data: &Data, store: StoreId, changes_count: usize) -> Result<(), Failure> {
    let bar = bar(changes_count);
    let length = bar.length().unwrap_or_default();
    data.engine.catch_up(&[store], &|done| {
        bar.set_position(share_of(length, done));
        Ok(())
    })?;
    data.engine.tidy_index(store)?;
    bar.finish_and_clear();
    Ok(())
}

/// Returns a share, between 0 and 1, of a whole.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a progress bar is not exact"
)]
fn share_of(whole: u64, share: f64) -> u64 {
    (whole as f64 * share.clamp(0.0, 1.0)) as u64
}

fn bar(items_count: usize) -> ProgressBar {
    let length = u64::try_from(items_count).unwrap_or(u64::MAX);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}")
        .expect("the template is valid");
    // Nothing is drawn unless standard error is a terminal.
    ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr()).with_style(style)
}

/// The summary of an import.
#[derive(Serialize)]
struct Report {
    kind: &'static str,
    /// The store's policy for credentials.
    #[serde(skip)]
    secrets: SecretPolicy,
    store: String,
    session: Option<String>,
    dry_run: bool,
    #[serde(flatten)]
    tally: Tally,
}

impl Report {
    fn print(&self, context: &Context) -> Result<(), Failure> {
        for path in self.tally.credentials.iter().take(CREDENTIALS_SHOWN_MAX) {
            note(&match (self.secrets, self.dry_run) {
                (SecretPolicy::Redact, false) => {
                    format!("`{path}` held a credential, which was not stored")
                }
                (SecretPolicy::Redact, true) => {
                    format!("`{path}` holds a credential, which would not be stored")
                }
                (SecretPolicy::Off | SecretPolicy::Warn | SecretPolicy::Reject, _) => {
                    format!("`{path}` holds a credential; memories have many readers, so remove it")
                }
            });
        }
        for path in self.tally.forgotten.iter().take(CREDENTIALS_SHOWN_MAX) {
            note(&format!(
                "`{path}` brings back text that was redacted from this store; take it out again"
            ));
        }
        answer(context.form, self, |out| self.write_text(out))?;
        let missed_count = self.missed().count();
        let verb = match missed_count {
            0 => return Ok(()),
            _ if self.dry_run => "would not be",
            1 => "was not",
            _ => "were not",
        };
        let missed = count(missed_count, "note", "notes");
        Err(Failure::other(format!("{missed} {verb} imported"))
            .with_hint("the reasons are listed above; the rest is not affected"))
    }

    /// Returns the notes that were not imported.
    fn missed(&self) -> impl Iterator<Item = &Skipped> {
        self.tally.skipped.iter().filter(|it| it.kind == SkippedKind::Note)
    }

    fn write_text(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let Tally { created, updated, unchanged, skipped, binaries, .. } = &self.tally;
        if self.missed().next().is_some() {
            writeln!(out, "not imported:")?;
        }
        for it in self.missed() {
            writeln!(out, "  {}: {}", it.source, it.reason)?;
        }
        let mut left_alone: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for it in skipped.iter().filter(|it| it.kind == SkippedKind::File) {
            left_alone.entry(&it.reason).or_default().push(&it.source);
        }
        for (reason, sources) in left_alone {
            match sources.as_slice() {
                [only] => writeln!(out, "left alone: {only}: {reason}")?,
                [first, ..] => {
                    let more = sources.len() - 1;
                    writeln!(out, "left alone: {first} and {more} more: {reason}")?;
                }
                [] => {}
            }
        }
        if *binaries > 0 {
            writeln!(out, "left alone: {}", count(*binaries, "binary file", "binary files"))?;
        }
        let verb = if self.dry_run { "would be imported" } else { "imported" };
        let memories = count(created + updated + unchanged, "memory", "memories");
        writeln!(
            out,
            "{memories} {verb} into `{}`: {created} new, {updated} changed, {unchanged} unchanged",
            self.store
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_of_unknown_origin_counts_as_one_of_the_same_source() {
        assert!(is_same_source("import folder 1234abcd", "import folder 1234abcd"));
        assert!(is_same_source("import", "import folder 1234abcd"));
        assert!(!is_same_source("import folder 1234abce", "import folder 1234abcd"));
        assert!(!is_same_source("", "import folder 1234abcd"));
    }
}
