//! `quipu move`: everything from one place to another.

use std::io::Write;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use quipu_core::Engine;
use quipu_core::clock::SystemClock;
use quipu_core::transfer::{MoveMode, Moved, Progress, Step, TableMoved, move_all};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::args::MoveArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{answer, count, note};
use crate::storage::{OpenMode, Opened, Place};

pub(super) fn run(context: &Context, arguments: &MoveArguments) -> Result<(), Failure> {
    let settings = &context.settings;
    let from = match &arguments.from {
        Some(from) => Place::named(from, settings)?,
        None => context.place(),
    };
    let to = Place::named(&arguments.to, settings)?;
    if from.is(&to) {
        return Err(Failure::usage(format!("{from} is where the data is already")));
    }
    let source = from.open(OpenMode::Existing, context.program(), settings)?;
    let (target, _kept) = open_target(context, arguments, &to)?;
    let mode = if arguments.dry_run { MoveMode::DryRun } else { MoveMode::Copy };
    let bar = ProgressBar::new(0).with_style(style());
    let moved = move_all(&*source.transfer, &*target.transfer, mode, &mut |progress| {
        show(&bar, progress);
        Ok(())
    });
    bar.finish_and_clear();
    let moved = moved.map_err(|error| Failure::from(error).after(&format!("moving to {to}")))?;
    if !pending(&engine(context, &source))?.is_empty() {
        note(&format!(
            "removed text may still be in a file of {from}; `quipu prune` there finishes erasing it"
        ));
    }
    let target_engine = engine(context, &target);
    if mode == MoveMode::Copy && !pending(&target_engine)?.is_empty() {
        for sentence in target_engine.finish_erasing()?.unreachable {
            note(&sentence);
        }
    }
    for opened in [source, target] {
        opened.backend.close()?;
    }
    answer(context.form, &body(&from, &to, &moved), |out| print(out, (&from, &to), &moved))
}

/// Opens where everything goes. A dry run does not even make a directory.
fn open_target(
    context: &Context,
    arguments: &MoveArguments,
    to: &Place,
) -> Result<(Opened, Option<TempDir>), Failure> {
    let settings = &context.settings;
    if arguments.dry_run && !to.has_data() {
        let directory = tempfile::tempdir()?;
        let empty = Place::Directory(directory.path().to_owned());
        return Ok((empty.open(OpenMode::Create, context.program(), settings)?, Some(directory)));
    }
    Ok((to.open(OpenMode::Create, context.program(), settings)?, None))
}

fn engine(context: &Context, opened: &Opened) -> Engine {
    let limits = context.settings.limits.clone();
    Engine::new(Arc::clone(&opened.backend), Arc::new(SystemClock), limits)
}

fn pending(engine: &Engine) -> Result<Vec<quipu_core::backend::PendingErasure>, Failure> {
    Ok(engine.read(|reader| reader.pending_erasures())?)
}

fn style() -> ProgressStyle {
    let template = "{msg} {bar:30} {human_pos}/{human_len} rows, {eta} left";
    ProgressStyle::with_template(template).expect("the template is a constant")
}

fn show(bar: &ProgressBar, progress: Progress) {
    let doing = match progress.step {
        Step::Comparing => "comparing",
        Step::Copying => "copying",
        Step::Verifying => "verifying",
    };
    bar.set_message(format!("{doing} {}", progress.table));
    bar.set_length(progress.total_count);
    bar.set_position(progress.done_count);
}

fn body(from: &Place, to: &Place, moved: &Moved) -> Value {
    let table = |table: &TableMoved| {
        json!({
            "name": table.name,
            "rows": table.rows_count,
            "put": table.put_count,
            "removed": table.removed_count,
        })
    };
    json!({
        "from": from.to_string(),
        "to": to.to_string(),
        "sequence": moved.sequence,
        "digest": moved.digest.map(hex),
        "tables": moved.tables.iter().map(table).collect::<Vec<_>>(),
    })
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().fold(String::new(), |shown, byte| shown + &format!("{byte:02x}"))
}

fn print(out: &mut dyn Write, (from, to): (&Place, &Place), moved: &Moved) -> std::io::Result<()> {
    let put_count = moved.tables.iter().map(|table| table.put_count).sum();
    let removed_count = moved.tables.iter().map(|table| table.removed_count).sum();
    for table in moved.tables.iter().filter(|table| table.put_count + table.removed_count > 0) {
        let TableMoved { name, rows_count, put_count, removed_count } = table;
        writeln!(
            out,
            "{name:18} {rows_count:>9} rows, {put_count:>9} put, {removed_count:>7} removed"
        )?;
    }
    let rows = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX), "row", "rows");
    let Some(digest) = moved.digest else {
        return writeln!(out, "would put {} and remove {}", rows(put_count), rows(removed_count));
    };
    let (put, removed) = (rows(put_count), rows(removed_count));
    writeln!(out, "put {put} and removed {removed}, up to change {}", moved.sequence)?;
    writeln!(out, "both sides have the digest {}", hex(digest))?;
    writeln!(out, "next: stop everything that writes to {from}, run this once more,")?;
    writeln!(out, "      and start it again with {}", to.option())
}
