//! `quipu check`, `prune`, `backup`, `completions` and `man`.

mod erased;

use std::io::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use indicatif::{ProgressBar, ProgressStyle};
use quipu_core::engine::{CheckReport, Remedy};
use quipu_core::model::CopyKind;
use quipu_service::wire::{CheckBody, PrunedBody};

use crate::args::{
    Arguments, BackupArguments, CheckArguments, CompletionsArguments, ManArguments, PruneArguments,
};
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{answer, answer_reached, count, note, size};

pub(super) fn check(context: &Context, arguments: &CheckArguments) -> Result<(), Failure> {
    if let Some(receipt) = arguments.erased {
        return erased::check(context, receipt);
    }
    let data = context.open()?;
    if arguments.rebuild {
        data.engine.rebuild()?;
    }
    let style = ProgressStyle::with_template("{spinner} checking {msg}");
    let style = style.expect("the template is a constant");
    let bar = ProgressBar::new_spinner().with_style(style);
    let checked = |report: &CheckReport| {
        bar.set_message(format!(
            "{}, {}",
            count(report.changes_count, "change", "changes"),
            count(report.versions_count, "version", "versions")
        ));
        bar.tick();
    };
    let mut report = data.engine.check_with(&checked)?;
    if report.problems.iter().any(|problem| problem.remedy == Remedy::Rebuild) {
        data.engine.rebuild()?;
        note("derived data was wrong and has been rebuilt");
        report = data.engine.check_with(&checked)?;
    }
    bar.finish_and_clear();
    if report.is_erasing_pending {
        note("removed text may still be on disk; `quipu prune` finishes erasing it");
    }
    if let Some(skew) = data.engine.clock_skew()? {
        note(&format!("{skew}; nothing is pruned from here until it is set"));
    }
    let unreachable = data.engine.backend().unreachable()?;
    answer_reached(context.form, &unreachable, &CheckBody::from(&report), |out| {
        for problem in &report.problems {
            writeln!(out, "{}", problem.message)?;
        }
        writeln!(
            out,
            "checked {}, {}, {}, {}",
            count(report.stores_count, "store", "stores"),
            count(report.memories_count, "memory", "memories"),
            count(report.versions_count, "version", "versions"),
            count(report.changes_count, "change", "changes"),
        )
    })?;
    match report.problems.len() {
        0 => Ok(()),
        problems_count => Err(Failure::unsound(problems_count)
            .with_hint("stop everything that uses the data, then run `quipu restore-backup FILE`")),
    }
}

pub(super) fn prune(context: &Context, arguments: &PruneArguments) -> Result<(), Failure> {
    let data = context.open()?;
    if !arguments.trust_clock
        && let Some(skew) = data.engine.clock_skew()?
    {
        return Err(Failure::other(format!("nothing was pruned: {skew}")).with_hint(
            "set the clock, or pass `--trust-clock` if it is the other one that is wrong",
        ));
    }
    if !arguments.trust_clock
        && let Some(gap) = data.engine.clock_gap()?
    {
        // Erasing does not depend on the clock.
        for sentence in data.engine.finish_erasing()?.unreachable {
            note(&sentence);
        }
        let days = gap.as_secs() / (24 * 60 * 60);
        let days = count(usize::try_from(days).unwrap_or(usize::MAX), "day", "days");
        return Err(Failure::other(format!(
            "nothing was pruned: according to the clock, nothing was written for {days}"
        ))
        .with_hint("if the clock is right, pass `--trust-clock`"));
    }
    let pruned = data.engine.prune()?;
    let size_bytes = || -> Result<u64, Failure> {
        let condition = data.engine.condition()?;
        let database = condition.database_size_bytes + condition.log_size_bytes;
        Ok(database + data.engine.index_size_bytes())
    };
    let before_bytes = size_bytes()?;
    if arguments.compact {
        data.engine.backend().compact()?;
        data.engine.compact_index()?;
    }
    let freed_bytes = before_bytes.saturating_sub(size_bytes()?);
    let unreachable = data.engine.backend().unreachable()?;
    answer_reached(context.form, &unreachable, &PrunedBody::from(pruned), |out| {
        let versions = count(pruned.versions_count, "version", "versions");
        let memories = count(pruned.memories_count, "memory", "memories");
        let sessions = count(pruned.sessions_count, "session", "sessions");
        writeln!(out, "removed {versions} and {sessions}, deleted {memories} (expired)")?;
        if pruned.events_count > 0 {
            writeln!(out, "removed {} of sessions", count(pruned.events_count, "event", "events"))?;
        }
        if arguments.compact {
            writeln!(out, "returned {} to the file system", size(freed_bytes))?;
        }
        Ok(())
    })
}

pub(super) fn backup(context: &Context, arguments: &BackupArguments) -> Result<(), Failure> {
    let data = context.open()?;
    data.engine.backend().backup(&arguments.file)?;
    data.note_copy(CopyKind::Backup, None, &arguments.file);
    let size_bytes = std::fs::metadata(&arguments.file)?.len();
    let file = arguments.file.display().to_string();
    let body = serde_json::json!({"file": file, "size_bytes": size_bytes});
    answer(context.form, &body, |out| {
        writeln!(out, "wrote {file} ({})", size(size_bytes))?;
        writeln!(out, "`quipu restore-backup` restores it")
    })
}

pub(super) fn restore_backup(
    context: &Context,
    arguments: &BackupArguments,
) -> Result<(), Failure> {
    let old_files = context.restore_backup(&arguments.file)?;
    let data = context.open()?;
    let report = data.engine.check()?;
    let old_files = old_files.map(|directory| directory.display().to_string());
    let body = serde_json::json!({
        "file": arguments.file.display().to_string(),
        "old_files": old_files,
        "check": CheckBody::from(&report),
    });
    answer(context.form, &body, |out| {
        let memories = count(report.memories_count, "memory", "memories");
        writeln!(out, "restored {}: {memories}", arguments.file.display())?;
        match &old_files {
            Some(old) => writeln!(
                out,
                "the old files are in {old}; erasing does not reach them, so delete them when they \
                 are no longer needed"
            ),
            None => Ok(()),
        }
    })
}

pub(super) fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "quipu", &mut text);
    std::io::stdout().lock().write_all(&text)?;
    Ok(())
}

pub(super) fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let command = Arguments::command();
    match &arguments.directory {
        Some(directory) => write_pages(command, directory),
        None => {
            let mut text = Vec::new();
            clap_mangen::Man::new(command).render(&mut text)?;
            std::io::stdout().lock().write_all(&text)?;
            Ok(())
        }
    }
}

fn write_pages(command: clap::Command, directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)?;
    Ok(())
}
