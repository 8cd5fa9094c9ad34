//! `move_note` and `delete_note`.

use quipu_core::engine::Precondition;
use quipu_core::model::{ContentHash, MemoryPath, Store};
use quipu_core::{Error, ErrorKind};
use serde_json::json;

use super::Call;
use super::found::{self, Found};
use crate::answer::Answer;
use crate::arguments::Arguments;
use crate::place;

/// The subject of a move or a deletion.
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
    let to = target(call, &destination, &subject)?;
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
        1 => format!("Moved `{from}` to `{to}` in `{}`; its id and history stay.", store.name),
        count => format!(
            "Moved {count} notes from `{from}` to `{to}` in `{}`; ids and histories stay.",
            store.name
        ),
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
fn target(call: &Call, destination: &str, subject: &Subject) -> Result<MemoryPath, Error> {
    let (Subject::Note(Found { store, .. }) | Subject::Directory(store, _)) = subject;
    let (named, destination) = place::split(&call.client, destination)?;
    if named.is_some_and(|named| named.id != store.id) {
        return Err(Error::invalid("a note cannot move to another store; nothing was moved")
            .with_hint("write it there with write_note, then delete it here"));
    }
    let Subject::Note(Found { memory, .. }) = subject else { return place::path(&destination) };
    let name = memory.path.file_name();
    if destination.ends_with('/') {
        return place::path(&format!("{destination}{name}"));
    }
    let to = place::path(&destination)?;
    match (extension(name), extension(to.file_name())) {
        (Some(extension), None) => place::path(&format!("{to}.{extension}")),
        (Some(_) | None, _) => Ok(to),
    }
}

/// Returns the extension of a file's name; `v1.5` has none.
fn extension(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty() && extension.starts_with(char::is_alphabetic)).then_some(extension)
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
        1 => format!("Deleted `{path}` in `{}`; restore_note brings it back.", store.name),
        count => format!(
            "Deleted {count} notes below `{path}` in `{}`; restore_note brings each back.",
            store.name
        ),
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

/// Returns the subject of a call: a note, or a directory if the arguments say so.
fn subject(call: &Call, arguments: &Arguments) -> Result<Subject, Error> {
    if let Some(name) = arguments.first_word(&["directory", "dir_name"])? {
        return directory(call, arguments, &name);
    }
    let identifier = arguments.required("identifier")?;
    if arguments.flag("is_directory")? == Some(true) || identifier.ends_with('/') {
        return directory(call, arguments, &identifier);
    }
    Ok(Subject::Note(found::to_change(call, &identifier, arguments)?))
}

fn directory(call: &Call, arguments: &Arguments, name: &str) -> Result<Subject, Error> {
    let (named, name) = place::split(&call.client, name)?;
    if name.trim_matches('/').is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the whole store cannot be moved or deleted",
        )
        .with_hint("name a directory in it"));
    }
    let project = arguments.word("project")?;
    let store = match named {
        Some(store) => Some(store),
        None => call.client.chosen(project.as_deref())?,
    };
    let store = store.ok_or_else(found::nothing_yet)?;
    Ok(Subject::Directory(store, place::path(&name)?))
}
