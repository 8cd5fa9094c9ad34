//! `quipu diff`: compares two versions of a memory, or two stores, each as it is or as it was.

use std::io::{self, Write};

use anstyle::Style;
use quipu_core::diff::Diff;
use quipu_core::engine::{Difference, compare};
use quipu_core::model::{Memory, MemoryPath, Store, StoreId, VersionId, View};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use quipu_service::wire::{DiffBody, DifferenceBody, ListBody};
use serde::Serialize;

use super::history::unified;
use crate::args::DiffArguments;
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::print::{answer, count};

pub(super) fn run(context: &Context, arguments: &DiffArguments) -> Result<(), Failure> {
    let data = context.open()?;
    match targets(&data, arguments)? {
        Targets::Versions { store, old, new } => {
            versions(context, &data, arguments, (store, old, new))
        }
        Targets::Memory { store, path, moment } => {
            let old = Tree::at(&data, &store, &moment)?;
            let new = Tree { engine: data.engine.clone(), store };
            memory(context, arguments, (&old, &new), &path)
        }
        Targets::Trees(old, new) => {
            let tree = |(store, moment): (Store, Option<String>)| match moment {
                Some(moment) => Tree::at(&data, &store, &moment),
                None => Ok(Tree { engine: data.engine.clone(), store }),
            };
            trees(context, arguments, (&tree(old)?, &tree(new)?))
        }
    }
}

/// What the arguments ask to compare.
enum Targets {
    /// Two versions of one memory; the first is `None` for the first version of a memory.
    Versions { store: StoreId, old: Option<VersionId>, new: VersionId },
    /// One memory, as it was and as it is.
    Memory { store: Store, path: MemoryPath, moment: String },
    /// Two stores, as they are or as they were.
    Trees((Store, Option<String>), (Store, Option<String>)),
}

fn targets(data: &Data, arguments: &DiffArguments) -> Result<Targets, Failure> {
    let Some(old) = arguments.old.as_deref() else {
        let store = data.store()?;
        return Ok(Targets::Trees((store.clone(), arguments.at.clone()), (store, None)));
    };
    if let Some(moment) = &arguments.at {
        let (store, path, moment) = (data.store()?, path(old)?, moment.clone());
        return Ok(Targets::Memory { store, path, moment });
    }
    if let Ok(first) = old.parse::<VersionId>() {
        let first = data.version(first)?;
        let (old, new) = match &arguments.new {
            Some(second) => {
                let second = second.parse().map_err(|error| {
                    Failure::usage(format!("`{second}` is not a version to compare with: {error}"))
                })?;
                (Some(first.id), second)
            }
            None => {
                let before = data.engine.previous_version(&first, View::Basic)?;
                (before.map(|before| before.id), first.id)
            }
        };
        return Ok(Targets::Versions { store: first.store, old, new });
    }
    if let Some(new) = &arguments.new {
        return Ok(Targets::Trees(tree_name(data, old)?, tree_name(data, new)?));
    }
    if old.starts_with('@') || data.store_and_moment(old).is_ok_and(|named| named.is_some()) {
        let old = tree_name(data, old)?;
        let new = (old.0.clone(), None);
        return Ok(Targets::Trees(old, new));
    }
    let store = data.store()?;
    let newest = data.engine.history(store.id, &path(old)?, 2)?;
    let mut ids = newest.iter().map(|version| version.id);
    let new = ids.next().ok_or_else(|| Failure::other("the memory has no versions"))?;
    Ok(Targets::Versions { store: store.id, old: ids.next(), new })
}

/// Reads `STORE`, `STORE@MOMENT`, or `@MOMENT` for the selected store.
fn tree_name(data: &Data, text: &str) -> Result<(Store, Option<String>), Failure> {
    if let Some(moment) = text.strip_prefix('@') {
        return Ok((data.store()?, Some(moment.to_owned())));
    }
    match data.store_and_moment(text)? {
        Some((store, moment)) => Ok((store, Some(moment))),
        None => Ok((data.find_store(text)?, None)),
    }
}

fn versions(
    context: &Context,
    data: &Data,
    arguments: &DiffArguments,
    (store, old, new): (StoreId, Option<VersionId>, VersionId),
) -> Result<(), Failure> {
    let diff = data.engine.diff(store, old, new)?;
    let old = old.map_or_else(|| "/dev/null".to_owned(), |id| id.to_string());
    one(context, arguments, &diff, (&old, &new.to_string()))
}

/// Compares one memory, which is found by its path then, and by its id now.
fn memory(
    context: &Context,
    arguments: &DiffArguments,
    (old, new): (&Tree, &Tree),
    path: &MemoryPath,
) -> Result<(), Failure> {
    let was = old.engine.memory_at(old.store.id, path, View::Full).map(Some).or_else(absent)?;
    let is = match &was {
        Some(was) => new.engine.memory(new.store.id, was.id, View::Full),
        None => new.engine.memory_at(new.store.id, path, View::Full),
    };
    let is = is.map(Some).or_else(absent)?;
    if was.is_none() && is.is_none() {
        let message = format!("no memory lives at `{path}`, neither then nor now");
        return Err(Failure::from(Error::not_found(message)));
    }
    let name = |memory: &Option<Memory>| {
        memory.as_ref().map_or_else(|| "/dev/null".to_owned(), |it| it.path.to_string())
    };
    let diff = Diff::new(text(was.as_ref()), text(is.as_ref()));
    one(context, arguments, &diff, (&name(&was), &name(&is)))
}

fn absent(error: Error) -> Result<Option<Memory>, Error> {
    if *error.kind() == ErrorKind::NotFound { Ok(None) } else { Err(error) }
}

fn text(memory: Option<&Memory>) -> &str {
    memory.and_then(|memory| memory.content.as_ref()).map_or("", |content| content.as_str())
}

/// Prints the difference between two texts.
fn one(
    context: &Context,
    arguments: &DiffArguments,
    diff: &Diff,
    (old, new): (&str, &str),
) -> Result<(), Failure> {
    answer(context.form, &DiffBody::new(diff, arguments.unified), |out| {
        if arguments.stat {
            return writeln!(out, "{}", counted_lines(diff));
        }
        if diff.is_empty() {
            return Ok(());
        }
        header(out, old, new)?;
        unified(out, diff, arguments.unified)
    })
}

fn counted_lines(diff: &Diff) -> String {
    let added = count(diff.added_count(), "line added", "lines added");
    let removed = count(diff.removed_count(), "line removed", "lines removed");
    format!("{added}, {removed}")
}

fn header(out: &mut dyn Write, old: &str, new: &str) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(out, "{bold}--- {old}{bold:#}\n{bold}+++ {new}{bold:#}")
}

/// A store as it is, or as the engine shows that it was.
struct Tree {
    engine: Knowledge,
    store: Store,
}

impl Tree {
    fn at(data: &Data, store: &Store, moment: &str) -> Result<Self, Failure> {
        let engine = data.clone().at(store, moment)?.engine;
        Ok(Self { engine, store: store.clone() })
    }

    fn memories(&self) -> Result<Vec<Memory>, Error> {
        self.engine.tree(self.store.id)
    }

    /// Returns a memory with its text. It may have been changed or redacted since it was listed; then its
    /// version still has the text, or it counts as empty.
    fn text(&self, memory: Option<&Memory>) -> Result<String, Error> {
        let Some(memory) = memory else { return Ok(String::new()) };
        let version = self.engine.version(self.store.id, memory.version, View::Full)?;
        Ok(version.content.map_or_else(String::new, |content| content.as_str().to_owned()))
    }
}

/// The differences between two trees, as JSON.
#[derive(Serialize)]
struct TreesBody {
    added_count: usize,
    removed_count: usize,
    changed_count: usize,
    moved_count: usize,
    #[serde(flatten)]
    differences: ListBody<DifferenceBody>,
}

fn trees(
    context: &Context,
    arguments: &DiffArguments,
    (old, new): (&Tree, &Tree),
) -> Result<(), Failure> {
    let differences = compare(&old.memories()?, &new.memories()?);
    let mut diffs = Vec::new();
    for difference in &differences {
        let (before, after) = (old.text(difference.before())?, new.text(difference.after())?);
        diffs.push(Diff::new(&before, &after));
    }
    let body = body(&differences, &diffs, arguments.unified);
    answer(context.form, &body, |out| {
        for (difference, diff) in differences.iter().zip(&diffs) {
            if arguments.stat {
                writeln!(out, "{}  {}", title(difference), counted_lines(diff))?;
            } else {
                writeln!(out, "{}", title(difference))?;
                header(out, &name(difference.before()), &name(difference.after()))?;
                unified(out, diff, arguments.unified)?;
            }
        }
        if !arguments.stat && !differences.is_empty() {
            return Ok(());
        }
        let TreesBody { added_count, removed_count, changed_count, moved_count, .. } = &body;
        writeln!(
            out,
            "{added_count} added, {removed_count} removed, {changed_count} changed, {moved_count} moved"
        )
    })
}

fn body(differences: &[Difference], diffs: &[Diff], context: usize) -> TreesBody {
    let counted =
        |wanted: &str| differences.iter().filter(|it| DifferenceBody::kind(it) == wanted).count();
    let each = differences.iter().zip(diffs);
    let each = each.map(|(difference, diff)| DifferenceBody::new(difference, Some(diff), context));
    TreesBody {
        added_count: counted("added"),
        removed_count: counted("removed"),
        changed_count: counted("changed"),
        moved_count: counted("moved"),
        differences: ListBody::complete(each.collect()),
    }
}

fn name(memory: Option<&Memory>) -> String {
    memory.map_or_else(|| "/dev/null".to_owned(), |memory| memory.path.to_string())
}

fn title(difference: &Difference) -> String {
    match difference {
        Difference::Moved { old, new } => format!("moved {} to {}", old.path, new.path),
        Difference::Added(memory)
        | Difference::Removed(memory)
        | Difference::Changed { new: memory, .. } => {
            format!("{} {}", DifferenceBody::kind(difference), memory.path)
        }
    }
}
