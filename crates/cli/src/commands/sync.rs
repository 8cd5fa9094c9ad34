//! `quipu sync`: two-way sync between a folder and a store.

use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use quipu_core::model::Access;
use quipu_mount::sync::{
    Action, ActionKind, DataDirectory, FolderSync, LeftOut, MassDeletion, Progress, Report, Side,
    Start, Watch,
};
use serde::Serialize;

use crate::args::SyncArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{Form, answer, count};

use super::serve::stopped;

/// How many changes are listed one by one. Of more, only those that need attention are.
const LINES_MAX: usize = 50;

pub(super) fn run(context: &Context, arguments: &SyncArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let store = data.store()?;
    data.require_granted(&store, Access::ReadWrite)?;
    let mass_deletion =
        if arguments.allow_mass_deletion { MassDeletion::Allow } else { MassDeletion::Refuse };
    let sync =
        FolderSync::new(data.engine.engine().clone(), store.id, &arguments.folder, mass_deletion)?
            .without(DataDirectory::new(&context.settings.data))?
            .with_names(context.settings.names.clone());
    if arguments.dry_run {
        return show(context, &sync.preview()?, "would be ");
    }
    if arguments.watch {
        let place = arguments.folder.display();
        let ready = format!("watching {place} and the store `{}`", store.name);
        return watch(context, &sync, &ready);
    }
    let report = sync.lock()?.run(&Bar::default())?;
    show(context, &report, "")?;
    match report.failed.len() {
        0 => Ok(()),
        failed_count => {
            let files = count(failed_count, "file", "files");
            Err(Failure::other(format!("{files} could not be synced")).with_hint(hint(&report)))
        }
    }
}

fn hint(report: &Report) -> &'static str {
    let has_news = report.failed.iter().any(|failed| !report.repeated.contains(failed));
    if has_news {
        "the reasons are listed above; the rest is in sync"
    } else {
        "the reasons were reported before, and `--dry-run` or `--json` shows them again; the rest \
         is in sync"
    }
}

fn watch(context: &Context, sync: &FolderSync, ready: &str) -> Result<(), Failure> {
    let locked = sync.lock()?;
    let watch = Watch::default();
    let stopper = watch.stopper();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stopped = {
        let _entered = runtime.enter();
        stopped()?
    };
    std::thread::spawn(move || {
        runtime.block_on(stopped);
        stopper.stop();
    });
    let stopper = watch.stopper();
    let (mut printed, mut is_first) = (Ok(()), true);
    watch.run(&locked, &Bar::default(), |report| {
        printed = print_report(context.form, report, is_first.then_some(ready));
        is_first = false;
        if printed.is_err() {
            stopper.stop();
        }
    })?;
    printed
}

/// Prints the report of one sync of a watch; the first one also says that the watch has begun.
fn print_report(form: Form, report: &Report, ready: Option<&str>) -> Result<(), Failure> {
    let is_news = !report.actions.is_empty()
        || report.left_out.iter().chain(&report.failed).any(|it| !report.repeated.contains(it));
    if !is_news && ready.is_none() {
        return Ok(());
    }
    let mut out = anstream::stdout().lock();
    match form {
        Form::Json => {
            serde_json::to_writer(&mut out, &ReportBody::from(report))?;
            writeln!(out)?;
        }
        Form::Text => {
            write_text(&mut out, report, "")?;
            if let Some(ready) = ready {
                writeln!(out, "{ready}")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn show(context: &Context, report: &Report, auxiliary: &str) -> Result<(), Failure> {
    answer(context.form, &ReportBody::from(report), |out| write_text(out, report, auxiliary))
}

fn write_text(out: &mut dyn Write, report: &Report, auxiliary: &str) -> io::Result<()> {
    match report.start {
        Start::Known => {}
        Start::First => {
            writeln!(out, "first sync of this folder and store: nothing is deleted")?;
        }
        Start::StoreWentBack => {
            writeln!(out, "the store is older than at the last sync: nothing is deleted")?;
        }
    }
    let is_significant = |action: &&Action| {
        matches!(action.kind, ActionKind::Conflict { .. } | ActionKind::Revived(_))
    };
    let shown: Vec<_> = if report.actions.len() > LINES_MAX {
        report.actions.iter().filter(is_significant).collect()
    } else {
        report.actions.iter().collect()
    };
    for action in shown {
        writeln!(out, "{action}")?;
    }
    for (word, list) in [("left out", &report.left_out), ("failed  ", &report.failed)] {
        let news = || list.iter().filter(|it| !report.repeated.contains(it));
        for it in news().take(LINES_MAX) {
            writeln!(out, "{word}  {it}")?;
        }
        if let more @ 1.. = news().count().saturating_sub(LINES_MAX) {
            writeln!(out, "{word}  and {more} more; `--json` lists all")?;
        }
    }
    writeln!(out, "{}", summary(report, auxiliary))
}

fn summary(report: &Report, auxiliary: &str) -> String {
    let number = |wanted: fn(&ActionKind) -> bool| {
        report.actions.iter().filter(|action| wanted(&action.kind)).count()
    };
    let to_store = number(|kind| kind.side() == Some(Side::Store));
    let to_folder = number(|kind| kind.side() == Some(Side::Folder));
    let merged = number(|kind| *kind == ActionKind::Merged);
    let conflicts = number(|kind| matches!(kind, ActionKind::Conflict { .. }));
    let mut parts = vec![count(report.in_sync_count, "file", "files") + " in sync"];
    for (number, what) in [
        (to_store, "changed in the store"),
        (to_folder, "changed in the folder"),
        (merged, "merged"),
        (conflicts, "resolved in favor of the folder"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {auxiliary}{what}"));
        }
    }
    for (list, what) in [(&report.left_out, "left out"), (&report.failed, "failed")] {
        let repeated = list.iter().filter(|it| report.repeated.contains(it)).count();
        match list.len() {
            0 => {}
            number if number == repeated => parts.push(format!("{number} still {what}")),
            number => parts.push(format!("{number} {what}")),
        }
    }
    parts.join(", ")
}

/// A progress bar on standard error, if that is a terminal.
#[derive(Default)]
struct Bar(OnceLock<ProgressBar>);

/// Fewer steps than this are done before anybody could read a bar.
const BAR_COUNT_MIN: usize = 200;

impl Progress for Bar {
    fn begin(&self, count: usize) {
        if count < BAR_COUNT_MIN || !io::stderr().is_terminal() {
            return;
        }
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len}, {eta} left")
            .expect("the template is valid");
        let bar = self.0.get_or_init(|| ProgressBar::new(0).with_style(style));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar.set_length(u64::try_from(count).unwrap_or(u64::MAX));
        bar.set_position(0);
    }

    fn advance(&self) {
        let Some(bar) = self.0.get() else { return };
        bar.inc(1);
        if bar.length().is_some_and(|length| bar.position() >= length) {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }
}

#[derive(Serialize)]
struct ReportBody<'a> {
    start: &'static str,
    in_sync: usize,
    changes: Vec<ActionBody<'a>>,
    left_out: Vec<LeftOutBody<'a>>,
    failed: Vec<LeftOutBody<'a>>,
}

#[derive(Serialize)]
struct ActionBody<'a> {
    path: &'a str,
    kind: &'static str,
    side: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store_version: Option<String>,
}

#[derive(Serialize)]
struct LeftOutBody<'a> {
    path: &'a str,
    reason: &'a str,
    /// Whether an earlier sync has reported it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
}

impl<'a> From<&'a Report> for ReportBody<'a> {
    fn from(report: &'a Report) -> Self {
        let left_out = |list: &'a [LeftOut]| {
            let body = |it: &'a LeftOut| {
                let (LeftOut { path, reason }, repeated) = (it, report.repeated.contains(it));
                LeftOutBody { path, reason, repeated }
            };
            list.iter().map(body).collect()
        };
        Self {
            start: match report.start {
                Start::Known => "known",
                Start::First => "first",
                Start::StoreWentBack => "store_went_back",
            },
            in_sync: report.in_sync_count,
            changes: report.actions.iter().map(ActionBody::from).collect(),
            left_out: left_out(&report.left_out),
            failed: left_out(&report.failed),
        }
    }
}

impl<'a> From<&'a Action> for ActionBody<'a> {
    fn from(action: &'a Action) -> Self {
        let (from, store_version) = match &action.kind {
            ActionKind::Moved { from, .. } => (Some(from.as_str()), None),
            ActionKind::Conflict { version } => (None, Some(version.to_string())),
            ActionKind::Created(_)
            | ActionKind::Changed(_)
            | ActionKind::Deleted(_)
            | ActionKind::Revived(_)
            | ActionKind::Merged => (None, None),
        };
        Self {
            path: action.path.as_str(),
            kind: action.kind.as_str(),
            side: action.kind.side().map_or("both", Side::as_str),
            from,
            store_version,
        }
    }
}
