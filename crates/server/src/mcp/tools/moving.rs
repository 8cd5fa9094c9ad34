//! `move_note` and `delete_note`.

use quipu_core::engine::Precondition;
use quipu_core::model::{ContentHash, MemoryPath, Store};
use quipu_core::{Error, ErrorKind};
use serde_json::json;

use super::Call;
use super::found::{self, Found};
use crate::mcp::answer::Answer;
use crate::mcp::arguments::Arguments;
use crate::mcp::place;

/// What is to be moved or deleted.
enum Subject {
    Note(Found),
    Directory(Store, MemoryPath),
}

pub(super) fn move_note(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let destination = arguments.first_word(&["destination", "destination_path", "new_path"])?;
    let destination = match destination {
        Some(destination) => destination,
        None => arguments.required("destination")?,
    };
    let subject = subject(call, arguments)?;
    let (store, from) = match &subject {
        Subject::Note(found) => (&found.store, &found.memory.path),
        Subject::Directory(store, path) => (store, path),
    };
    let to = target(from, &destination, &subject)?;
    let actor = call.writer(store)?;
    let moved = call.engine().rename(&actor, store.id, from, &to)?;
    let notes: Vec<_> = moved
        .iter()
        .map(|written| {
            json!({
                "id": written.memory.id.to_string(),
                "file_path": written.memory.path.as_str(),
                "version_id": written.memory.version.to_string(),
            })
        })
        .collect();
    let text = match notes.len() {
        1 => format!("Moved `{from}` to `{to}`; its id and history stay."),
        count => format!("Moved {count} notes from `{from}` to `{to}`; ids and histories stay."),
    };
    let data = json!({
        "action": "moved",
        "project": store.name.as_str(),
        "from": from.as_str(),
        "to": to.as_str(),
        "notes": notes,
    });
    Ok(Answer::new(text, data))
}

/// Returns the new path. A note keeps its name in a directory, and its extension.
fn target(from: &MemoryPath, destination: &str, subject: &Subject) -> Result<MemoryPath, Error> {
    match subject {
        Subject::Note(_) if destination.ends_with('/') => {
            place::path(&format!("{destination}{}", from.file_name()))
        }
        Subject::Note(_) => {
            let to = place::path(destination)?;
            let extension = from.file_name().rsplit_once('.').map(|(_, extension)| extension);
            match extension {
                Some(extension) if !to.file_name().contains('.') => {
                    place::path(&format!("{to}.{extension}"))
                }
                Some(_) | None => Ok(to),
            }
        }
        Subject::Directory(..) => place::path(destination),
    }
}

pub(super) fn delete_note(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let expected = found::expected_checksum(arguments)?;
    let (store, path, versions) = match subject(call, arguments)? {
        Subject::Note(found) => {
            let actor = call.writer(&found.store)?;
            let precondition = expected.map_or(Precondition::None, Precondition::ContentIs);
            let engine = call.engine();
            let version = engine.delete(&actor, found.store.id, found.memory.id, precondition)?;
            (found.store, found.memory.path, vec![version])
        }
        Subject::Directory(store, path) => {
            refuse_checksum(expected)?;
            let actor = call.writer(&store)?;
            let removed = call.engine().delete_at(&actor, store.id, &path)?;
            (store, path, removed.versions)
        }
    };
    let paths: Vec<_> = versions
        .iter()
        .filter_map(|version| version.path.as_ref())
        .map(MemoryPath::as_str)
        .collect();
    let text = match versions.len() {
        1 => format!("Deleted `{path}`; restore_note brings it back."),
        count => format!("Deleted {count} notes in `{path}`; restore_note brings each back."),
    };
    let data = json!({
        "action": "deleted",
        "deleted": true,
        "project": store.name.as_str(),
        "file_path": path.as_str(),
        "notes": paths,
    });
    Ok(Answer::new(text, data))
}

fn refuse_checksum(expected: Option<ContentHash>) -> Result<(), Error> {
    match expected {
        Some(_) => Err(Error::invalid("a directory has no checksum")),
        None => Ok(()),
    }
}

/// Finds what is meant: a note or, if so said or if nothing else fits, a directory.
fn subject(call: &Call, arguments: &Arguments) -> Result<Subject, Error> {
    if let Some(name) = arguments.first_word(&["directory", "dir_name"])? {
        return directory(call, arguments, &name);
    }
    let identifier = arguments.required("identifier")?;
    if arguments.flag("is_directory")? == Some(true) || identifier.ends_with('/') {
        return directory(call, arguments, &identifier);
    }
    Ok(Subject::Note(found::exact(call, &identifier, arguments)?))
}

fn directory(call: &Call, arguments: &Arguments, name: &str) -> Result<Subject, Error> {
    if name.trim_matches('/').is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the whole store cannot be moved or deleted",
        )
        .with_hint("name a directory in it"));
    }
    let project = arguments.word("project")?;
    let store = call.client.store_for_notes(project.as_deref())?;
    Ok(Subject::Directory(store, place::path(name)?))
}
