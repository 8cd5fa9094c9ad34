//! `quipu init-project`: sets up a project that spans many agent sessions.

use quipu_core::engine::ListQuery;
use quipu_core::model::{Content, Directory, Listing, MemoryPath, Store, View};
use quipu_core::{Error, ErrorKind};
use quipu_service::wire::{ListBody, MemoryBody};

use super::tool::DEFAULT_STORE;
use crate::args::{InitProjectArguments, WriterArguments};
use crate::context::{Context, Data, path};
use crate::failure::Failure;
use crate::print::{answer, note};

pub(super) fn init(context: &Context, arguments: &InitProjectArguments) -> Result<(), Failure> {
    let data = context.open_or_create()?;
    let memories = match &arguments.template {
        Some(template) => copied(&data, &data.find_store(template)?)?,
        None => built_in(arguments)?,
    };
    let store = match &arguments.name {
        Some(name) => data.find_or_create_store(name)?,
        None => data.store_or_create(DEFAULT_STORE)?,
    };
    let author = data.author(&store, &WriterArguments::default())?;
    let mut created = Vec::new();
    for (path, content) in &memories {
        match data.engine.create(&author, store.id, path, content) {
            Ok(written) => created.push(written),
            Err(error) if matches!(error.kind(), ErrorKind::PathConflict { .. }) => {
                note(&format!("`{path}` was left unchanged: {}", error.message()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    debug_assert!(created.iter().all(|written| written.effect.has_changed()));
    let body = created.iter().map(|written| MemoryBody::from(&written.memory)).collect();
    answer(context.form, &ListBody::complete(body), |out| {
        for written in &created {
            writeln!(out, "{}  {}", written.memory.version, written.memory.path)?;
        }
        writeln!(
            out,
            "store `{}` is ready; `quipu prompt -s {}` prints the instructions for the agent",
            store.name, store.name
        )
    })
}

/// Returns the memories of a template store.
fn copied(data: &Data, template: &Store) -> Result<Vec<(MemoryPath, Content)>, Failure> {
    let query = ListQuery {
        directory: Directory::root(),
        depth: None,
        after: None,
        limit: usize::MAX,
        view: View::Full,
    };
    let listed = data.engine.list(template.id, &query)?.items;
    let memory = |listing| match listing {
        Listing::Memory(memory) => memory.content.map(|content| (memory.path, content)),
        Listing::Directory(_) => None,
    };
    Ok(listed.into_iter().filter_map(memory).collect())
}

fn built_in(arguments: &InitProjectArguments) -> Result<Vec<(MemoryPath, Content)>, Failure> {
    let features = if arguments.features.is_empty() {
        "- [ ] (replace this line with one line per feature)".to_owned()
    } else {
        let lines: Vec<_> =
            arguments.features.iter().map(|feature| format!("- [ ] {feature}")).collect();
        lines.join("\n")
    };
    let texts = [
        ("/progress.md", PROGRESS.to_owned()),
        ("/features.md", FEATURES.replace("{features}", &features)),
        ("/start.md", START.replace("{script}", &arguments.script)),
    ];
    let memory =
        |(at, text): (&str, String)| Ok((path(at)?, Content::new(text).map_err(Error::from)?));
    texts.into_iter().map(memory).collect()
}

const PROGRESS: &str = "\
# Progress

The log of all sessions, newest entry first. Add an entry after every step that works, and one \
before you stop: the next session knows only what is written here.

Each entry: what was done, what was learned, what is broken, what comes next.

## Project set up

- Done: progress log, feature checklist and start-up notes are in place.
- Next: read features.md and start.md, get the environment running, take the first open feature.
";

const FEATURES: &str = "\
# Features

One line per feature. Work on one at a time, from the top. Check it off only after you have seen it \
work end to end. Do not remove or reword a feature to make it pass; note problems in progress.md.

{features}
";

const START: &str = "\
# Start

Run `{script}` first in every session: it must bring the project to a state in which it builds, runs and \
can be tested. If it does not exist yet, write it before anything else. Keep it quick and repeatable.

Then, in this order:

1. Read progress.md to see where the last session stopped.
2. Verify that the features checked off in features.md still work.
3. Take the first open feature.
";
