//! `list_directory`: the notes and directories below a path.

use std::collections::BTreeMap;
use std::num::NonZero;

use quipu_core::Error;
use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, Memory, Store, View};
use quipu_knowledge::Scope;
use quipu_notes::Glob;
use serde_json::{Value, json};

use super::shown::counted;
use super::{Call, past};
use crate::answer::Answer;
use crate::arguments::{Arguments, Paging};
use crate::place;

const DEPTH_MAX: usize = 10;

/// What is in a directory, down to some depth.
#[derive(Debug, Default)]
struct Contents {
    files: Vec<Memory>,
    /// Each with the number of memories in it.
    directories: BTreeMap<String, u64>,
}

pub(super) fn list(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let name = arguments.first_word(&["dir_name", "directory", "path"])?;
    let directory = directory(name.as_deref().unwrap_or("/"))?;
    let depth = arguments.count("depth", 1, DEPTH_MAX)?;
    let glob = arguments.word("file_name_glob")?.map(|pattern| Glob::new(&pattern));
    let sort = arguments.choice("sort", &["name", "updated", "size"])?.unwrap_or("name");
    let paging = arguments.paging(100, 500)?;
    let project = arguments.word("project")?;
    let store = match call.client.chosen(project.as_deref())? {
        Some(store) => Some(store),
        None => call.client.stores()?.into_iter().next(),
    };
    let Some(store) = store else {
        return Ok(Answer::new(
            "There are no stores yet.",
            json!({"directories": [], "files": []}),
        ));
    };

    let look = |call: &Call| existing_contents(call, &store, &directory, depth);
    let (mut found, then) = match past::moment(arguments)? {
        None => (look(call)?, None),
        Some(moment) => {
            let (found, then) = past::within(call, (&Scope::only(store.id), &moment), look)?;
            (found, Some(then))
        }
    };
    if let Some(glob) = &glob {
        found.files.retain(|memory| glob.matches(memory.path.file_name()));
        found.directories.clear();
    }
    match sort {
        "updated" => found.files.sort_by_key(|memory| std::cmp::Reverse(memory.updated_at)),
        "size" => found.files.sort_by_key(|memory| std::cmp::Reverse(memory.size_bytes)),
        _ => {}
    }
    let answer = shown(&store, &directory, &found, paging);
    match then {
        Some(then) => past::said_of_all(answer, &[then], &[]),
        None => Ok(answer),
    }
}

fn directory(name: &str) -> Result<Directory, Error> {
    match name.trim().trim_matches('/') {
        "" | "." => Ok(Directory::root()),
        inner => Ok(place::path(inner)?.as_directory()),
    }
}

/// Returns what is in a directory, which must exist.
fn existing_contents(
    call: &Call,
    store: &Store,
    directory: &Directory,
    depth: usize,
) -> Result<Contents, Error> {
    let found = contents(call, store, directory, depth)?;
    let is_there = !(found.files.is_empty() && found.directories.is_empty());
    if !is_there && *directory != Directory::root() {
        return Err(Error::not_found(format!("no directory `{directory}` is in `{}`", store.name))
            .with_hint("list / to see what there is"));
    }
    Ok(found)
}

fn contents(
    call: &Call,
    store: &Store,
    directory: &Directory,
    depth: usize,
) -> Result<Contents, Error> {
    let everything = ListQuery {
        directory: directory.clone(),
        depth: None,
        after: None,
        limit: usize::MAX,
        view: View::Basic,
    };
    let mut contents = Contents::default();
    for item in call.engine().list(store.id, &everything)?.items {
        let Listing::Memory(memory) = item else { continue };
        let levels = (1..=depth).filter_map(NonZero::new);
        let above: Vec<_> =
            levels.filter_map(|level| directory.towards(&memory.path, level)).collect();
        let is_deeper = above.len() == depth;
        for directory in above {
            *contents.directories.entry(directory.as_str().to_owned()).or_default() += 1;
        }
        if !is_deeper {
            contents.files.push(memory);
        }
    }
    Ok(contents)
}

fn shown(store: &Store, directory: &Directory, found: &Contents, paging: Paging) -> Answer {
    // Directories come first, then files; a page holds some of both.
    let total = found.directories.len() + found.files.len();
    let (start, size) = (paging.offset(), paging.page_size);
    let directories = found.directories.iter().skip(start).take(size);
    let left = size - directories.clone().count();
    let files = found.files.iter().skip(start.saturating_sub(found.directories.len()));
    let shown: Vec<_> = files.take(left).collect();
    let has_more = start.saturating_add(size) < total;
    let data = json!({
        "project": store.name.as_str(),
        "directory": directory.as_str(),
        "directories": directories.clone().map(|(path, count)| {
            json!({"path": path, "notes_count": count})
        }).collect::<Vec<_>>(),
        "files": shown.iter().map(|memory| file(memory)).collect::<Vec<_>>(),
        "total": total,
        "page": paging.page,
        "has_more": has_more,
    });
    let mut lines = vec![format!("{directory} of `{}`:", store.name)];
    lines.extend(directories.map(|(path, count)| format!("{path}  ({})", counted(*count, "note"))));
    lines.extend(shown.iter().map(|memory| {
        format!("{}  {} bytes, {}", memory.path, memory.size_bytes, memory.updated_at)
    }));
    lines.push(format!("{total} in all"));
    if has_more {
        lines.push(format!("more with page={}", paging.page + 1));
    }
    Answer::new(lines.join("\n"), data)
}

fn file(memory: &Memory) -> Value {
    json!({
        "file_path": memory.path.as_str(),
        "id": memory.id.to_string(),
        "size_bytes": memory.size_bytes,
        "updated_at": memory.updated_at.to_string(),
    })
}
