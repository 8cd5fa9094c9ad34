//! `read_note` and `write_note`.

use quipu_core::engine::{Effect, Precondition, Written};
use quipu_core::model::{Content, Memory, MemoryPath, Store, View};
use quipu_core::{Error, ErrorKind};
use quipu_notes::edit::set_metadata;
use quipu_notes::{Note, Value as Field, path_candidates};
use serde_json::{Map, Value, json};

use super::found::{self, Found};
use super::shown::{self, Actors};
use super::{Call, past};
use crate::answer::Answer;
use crate::arguments::Arguments;

const PAGE_LINES: usize = 1000;

pub(super) fn read_note(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let identifier = arguments.required("identifier")?;
    let (found, then) = found::exact_as_of(call, &identifier, arguments)?;
    let Found { store, memory } = found;
    let content = memory.content.as_ref().expect("the note was found with its text");
    let note = Note::parse(memory.path.as_str(), content.as_str());
    let lines: Vec<&str> = content.as_str().split_inclusive('\n').collect();
    let skipped = match arguments.flag("include_frontmatter")? {
        Some(false) => lines_before_body(content.as_str(), &note),
        Some(true) | None => 0,
    };
    let (first, last) = range(arguments, skipped, lines.len())?;
    let part = lines.get(first - 1..last).unwrap_or_default().concat();
    let has_more = last < lines.len();
    let permalink = match &then {
        // That of another note may have been the same, but finding out takes an index of the moment.
        Some(_) => wanted_permalink(&memory, &note),
        None => permalink(call, &memory, &note),
    };
    let version = call.engine().version(store.id, memory.version, View::Basic)?;
    let data = json!({
        "title": note.title,
        "permalink": permalink,
        "project": store.name.as_str(),
        "file_path": memory.path.as_str(),
        "id": memory.id.to_string(),
        "content": part,
        "checksum": memory.hash.to_string(),
        "version_id": memory.version.to_string(),
        "created_at": memory.created_at.to_string(),
        "updated_at": memory.updated_at.to_string(),
        "actor": Actors::new(call.engine()).data(&version.actor),
        "start_line": first,
        "end_line": last,
        "total_lines": lines.len(),
        "has_more": has_more,
    });
    let mut text = part;
    if has_more {
        text.push_str(&format!(
            "\n[lines {first} to {last} of {}; continue with start_line={}]",
            lines.len(),
            last + 1
        ));
    }
    let answer = Answer::new(text, data);
    Ok(match &then {
        Some(then) => past::said(answer, then),
        None => answer,
    })
}

/// Returns the number of lines before the first line of text.
fn lines_before_body(text: &str, note: &Note) -> usize {
    let frontmatter = text.get(..note.body.start).unwrap_or_default().matches('\n').count();
    let body = text.get(note.body.clone()).unwrap_or_default();
    frontmatter + body.lines().take_while(|line| line.trim().is_empty()).count()
}

/// Returns the first and the last line to show, from 1, of those after some that are left out. Lines have the
/// same numbers as in hits, whatever is left out.
fn range(
    arguments: &Arguments,
    skipped: usize,
    lines_count: usize,
) -> Result<(usize, usize), Error> {
    let start = arguments.number("start_line")?;
    let end = arguments.number("end_line")?;
    let is_paged = arguments.number("page")?.is_some() || arguments.number("page_size")?.is_some();
    let (first, last) = if start.is_some() || end.is_some() {
        (start.unwrap_or(1).max(skipped + 1), end.unwrap_or(usize::MAX))
    } else if is_paged {
        let paging = arguments.paging(PAGE_LINES, usize::MAX)?;
        let before = paging.offset().saturating_add(skipped);
        (before.saturating_add(1), before.saturating_add(paging.page_size))
    } else {
        (skipped + 1, usize::MAX)
    };
    if first > lines_count.max(skipped + 1) {
        return Err(Error::invalid(format!("the note has only {lines_count} lines")));
    }
    if last < start.unwrap_or(1) {
        return Err(Error::invalid("end_line must not be before start_line"));
    }
    Ok((first, last.min(lines_count)))
}

pub(super) fn write_note(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let title = arguments.required("title")?;
    let text = arguments.required_text("content")?;
    let directory = arguments.first_word(&["directory", "folder", "dir", "path"])?;
    let path = path(directory.as_deref().unwrap_or_default(), &title)?;
    let text = with_fields(&text, &path, &fields(arguments, &title)?)?;
    let content = Content::new(text)?;
    let expected = found::expected_checksum(arguments)?;
    let overwrite = arguments.flag("overwrite")?.unwrap_or(false) || expected.is_some();
    let project = arguments.word("project")?;
    let store = call.client.store_for_notes(project.as_deref())?;
    let actor = call.writer(&store)?;
    let engine = call.engine();
    let (written, action) = if overwrite {
        let precondition = expected.map_or(Precondition::None, Precondition::ContentIs);
        let written = engine.put(&actor, store.id, (&path, &content), precondition)?;
        let action = match written.effect {
            Effect::Unchanged => "unchanged",
            Effect::Changed => "updated",
            Effect::Created => "created",
        };
        (written, action)
    } else {
        let created = engine.create(&actor, store.id, &path, &content);
        (created.map_err(|error| taken(error, &path))?, "created")
    };
    Ok(card(call, &store, &written, action))
}

/// Explains what to do about a note that already exists.
fn taken(error: Error, wanted: &MemoryPath) -> Error {
    let ErrorKind::PathConflict { path, .. } = error.kind() else { return error };
    if path != wanted {
        return error;
    }
    let message = format!("the note `{path}` exists already; nothing was written");
    Error::new(error.kind().clone(), message).with_hint(
        "change it with edit_note (append, find_replace, replace_section), or replace it with \
         overwrite=true; its versions are kept",
    )
}

/// Returns the path for a title: characters that no file name has become dashes.
fn path(directory: &str, title: &str) -> Result<MemoryPath, Error> {
    let name: String = title
        .chars()
        .map(|character| match character {
            '/' | '\\' => '-',
            other if other.is_control() => '-',
            other => other,
        })
        .collect();
    let name = name.trim().trim_start_matches('.');
    if name.is_empty() {
        return Err(Error::invalid(format!("title: `{title}` leaves no name for a file")));
    }
    let name = format!("{}.md", name.strip_suffix(".md").unwrap_or(name));
    let directory = directory.trim().trim_matches('/');
    let whole = format!("/{directory}/{name}");
    if directory.split('/').any(|segment| segment == "..") {
        return Err(Error::invalid(format!("directory: `{directory}` leads out of the store")));
    }
    let candidates = path_candidates(&whole, None);
    match candidates.iter().find_map(|path| MemoryPath::parse(path).ok()) {
        Some(path) => Ok(path),
        None => Ok(MemoryPath::parse(&whole)?),
    }
}

/// Returns the frontmatter fields that the arguments ask for.
fn fields(arguments: &Arguments, title: &str) -> Result<Vec<(String, Option<Field>)>, Error> {
    let mut fields = vec![("title".to_owned(), Some(Field::Text(title.to_owned())))];
    if let Some(kind) = arguments.first_word(&["note_type", "entity_type", "type"])? {
        fields.push(("type".to_owned(), Some(Field::Text(kind))));
    }
    let tags = arguments.list("tags")?;
    if !tags.is_empty() {
        let tags = tags.iter().map(|tag| Field::Text(tag.trim_start_matches('#').to_owned()));
        fields.push(("tags".to_owned(), Some(Field::List(tags.collect()))));
    }
    for (key, value) in metadata(arguments)? {
        // An argument of its own takes precedence over `metadata`.
        if fields.iter().all(|(known, _)| *known != key) {
            fields.push((key, value));
        }
    }
    Ok(fields)
}

/// Returns the argument `metadata` as frontmatter fields; `null` removes a field.
pub(super) fn metadata(arguments: &Arguments) -> Result<Vec<(String, Option<Field>)>, Error> {
    let object = arguments.object("metadata")?;
    Ok(object.iter().map(|(key, value)| (key.clone(), field(value))).collect())
}

fn field(value: &Value) -> Option<Field> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Field::Text(text.clone())),
        Value::Number(_) | Value::Bool(_) => Some(Field::Text(value.to_string())),
        Value::Array(items) => {
            Some(Field::List(items.iter().map(|item| field(item).unwrap_or(Field::Null)).collect()))
        }
        Value::Object(entries) => Some(Field::Map(pairs(entries))),
    }
}

fn pairs(entries: &Map<String, Value>) -> Vec<(String, Field)> {
    let pair = |(key, value): (&String, &Value)| (key.clone(), field(value).unwrap_or(Field::Null));
    entries.iter().map(pair).collect()
}

/// Sets the fields that the text does not already have. A text that has them all is not touched.
fn with_fields(
    text: &str,
    path: &MemoryPath,
    wanted: &[(String, Option<Field>)],
) -> Result<String, Error> {
    let note = Note::parse(path.as_str(), text);
    let is_new = |field: &&(String, Option<Field>)| {
        let (key, value) = field;
        let value = value.as_ref().and_then(Field::as_text);
        match key.as_str() {
            "title" => value != Some(note.title.as_str()),
            "type" => value != Some(note.kind.as_str()),
            _ => true,
        }
    };
    let changes: Vec<_> = wanted.iter().filter(is_new).cloned().collect();
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    set_metadata(text, &changes).map_err(|error| Error::invalid(error.to_string()))
}

/// Returns the permalink of a note.
///
/// If the index cannot be read, this is the permalink that the note asks for: a write that succeeded
/// must not be reported as an error.
fn permalink(call: &Call, memory: &Memory, note: &Note) -> String {
    match call.engine().card(memory.store, memory.id) {
        Ok(card) => card.permalink,
        Err(error) => {
            tracing::debug!(%error, "the index has no entry for a note");
            wanted_permalink(memory, note)
        }
    }
}

/// Returns the permalink that a note asks for, which it has unless another note asks for the same.
fn wanted_permalink(memory: &Memory, note: &Note) -> String {
    note.permalink.clone().unwrap_or_else(|| quipu_notes::permalink(memory.path.as_str()))
}

/// Describes a note that was written.
pub(super) fn card(call: &Call, store: &Store, written: &Written, action: &str) -> Answer {
    let memory = &written.memory;
    let text = memory.content.as_ref().map_or("", Content::as_str);
    let note = Note::parse(memory.path.as_str(), text);
    let permalink = permalink(call, memory, &note);
    let remarks: Vec<_> = note
        .remarks
        .iter()
        .map(|remark| format!("line {}: {}", remark.line, remark.text))
        .collect();
    let links_count = note.edges().count();
    let data = json!({
        "title": note.title,
        "permalink": permalink,
        "project": store.name.as_str(),
        "file_path": memory.path.as_str(),
        "id": memory.id.to_string(),
        "checksum": memory.hash.to_string(),
        "version_id": memory.version.to_string(),
        "action": action,
        "observations_count": note.observations.len(),
        "relations_count": links_count,
        "remarks": remarks,
        "findings": shown::findings_data(written),
    });
    let mut lines = vec![
        format!("{action} `{}` in `{}`", note.title, store.name),
        format!("file_path: {}", memory.path),
        format!("permalink: {permalink}"),
        format!("checksum: {}", memory.hash),
        format!("version: {}", memory.version),
        format!("observations: {}, relations: {links_count}", note.observations.len()),
    ];
    lines.extend(remarks.iter().map(|remark| format!("remark: {remark}")));
    Answer::new(lines.join("\n") + &shown::findings(written, store), data)
}
