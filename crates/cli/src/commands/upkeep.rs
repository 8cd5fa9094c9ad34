//! `quipu check`, `prune`, `backup`, `completions` and `man`.

use std::io::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use quipu_core::engine::Remedy;
use quipu_server::wire::{CheckBody, PrunedBody};

use crate::args::{Arguments, BackupArguments, CheckArguments, CompletionsArguments, ManArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{answer, count, note, size};

pub(super) fn check(context: &Context, arguments: &CheckArguments) -> Result<(), Failure> {
    let data = context.open()?;
    if arguments.rebuild {
        data.engine.rebuild()?;
    }
    let mut report = data.engine.check()?;
    if report.problems.iter().any(|problem| problem.remedy == Remedy::Rebuild) {
        data.engine.rebuild()?;
        note("derived rows were wrong and have been computed again");
        report = data.engine.check()?;
    }
    answer(context.form, &CheckBody::from(&report), |out| {
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
            .with_hint("keep a copy of the data directory, then restore a backup")),
    }
}

pub(super) fn prune(context: &Context) -> Result<(), Failure> {
    let pruned = context.open()?.engine.prune()?;
    answer(context.form, &PrunedBody::from(pruned), |out| {
        let versions = count(pruned.versions_count, "version", "versions");
        let memories = count(pruned.memories_count, "memory", "memories");
        writeln!(out, "gave up {versions}, deleted {memories} that had expired")
    })
}

pub(super) fn backup(context: &Context, arguments: &BackupArguments) -> Result<(), Failure> {
    let data = context.open()?;
    data.backend.backup(&arguments.file)?;
    let size_bytes = std::fs::metadata(&arguments.file)?.len();
    let file = arguments.file.display().to_string();
    let body = serde_json::json!({"file": file, "size_bytes": size_bytes});
    answer(context.form, &body, |out| {
        writeln!(out, "wrote {file} ({})", size(size_bytes))?;
        writeln!(out, "to restore it, put it into an empty data directory as `quipu.db`")
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
