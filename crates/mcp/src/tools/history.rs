//! `note_history` and `restore_note`: who changed what, and how to undo it.

use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::model::{
    Content, MemoryId, MemoryPath, Operation, Store, Version, VersionId, View,
};
use quipu_core::{Error, ErrorKind};
use quipu_notes::{Identifier, Reference, path_candidates};
use serde_json::{Value, json};

use super::Call;
use super::found::{self, Hit};
use super::shown::{self, Actors};
use crate::answer::Answer;
use crate::arguments::Arguments;

pub(super) fn note_history(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let subject = subject(call, arguments)?;
    if let Some(version) = arguments.word("version")? {
        return one_version(call, &subject, &version);
    }
    let paging = arguments.paging(10, 100)?;
    let with_diffs = arguments.flag("include_diffs")?.unwrap_or(true);
    let query = VersionQuery {
        filter: VersionFilter { memory: Some(subject.memory), ..VersionFilter::default() },
        before: None,
        limit: paging.offset().saturating_add(paging.page_size),
        view: View::Basic,
    };
    let page = call.engine().versions(subject.store.id, &query)?;
    let has_more = page.next.is_some();
    let actors = Actors::new(call.engine());
    let mut texts = Vec::new();
    let mut versions = Vec::new();
    for version in page.items.iter().skip(paging.offset()) {
        call.require_wanted()?;
        let diff = if with_diffs { change(call, version)? } else { None };
        texts.push(line(version, &actors) + &diff.as_deref().map_or_else(String::new, indented));
        versions.push(shape(version, &actors, diff.as_deref()));
    }
    if versions.is_empty() {
        texts.push(format!("There is no page {}.", paging.page));
    }
    if has_more {
        texts.push(format!("more with page={}", paging.page + 1));
    }
    let data = json!({
        "project": subject.store.name.as_str(),
        "id": subject.memory.to_string(),
        "versions": versions,
        "page": paging.page,
        "has_more": has_more,
    });
    Ok(Answer::new(texts.join("\n"), data))
}

fn one_version(call: &Call, subject: &Hit<()>, id: &str) -> Result<Answer, Error> {
    let version = call.engine().version(subject.store.id, version_id(id)?, View::Full)?;
    if version.memory != subject.memory {
        return Err(Error::not_found(format!("`{id}` is a version of another note")));
    }
    let actors = Actors::new(call.engine());
    let content = version.content.as_ref().map(Content::as_str);
    let mut data = shape(&version, &actors, None);
    if let Value::Object(fields) = &mut data {
        fields.insert("content".to_owned(), json!(content));
    }
    let text = format!("{}\n\n{}", line(&version, &actors), content.unwrap_or("(no text)"));
    Ok(Answer::new(text, data))
}

fn indented(diff: &str) -> String {
    let lines: Vec<_> = diff.lines().map(|line| format!("\n    {line}")).collect();
    lines.concat()
}

fn line(version: &Version, actors: &Actors<'_>) -> String {
    let path = version.path.as_ref().map_or("(redacted)", |path| path.as_str());
    format!(
        "{} {} {} {path} by {}",
        version.id,
        version.created_at,
        version.operation,
        actors.name(&version.actor)
    )
}

fn shape(version: &Version, actors: &Actors<'_>, diff: Option<&str>) -> Value {
    json!({
        "version_id": version.id.to_string(),
        "operation": version.operation.as_str(),
        "file_path": version.path.as_ref().map(MemoryPath::as_str),
        "created_at": version.created_at.to_string(),
        "actor": actors.data(&version.actor),
        "checksum": version.hash.map(|hash| hash.to_string()),
        "size_bytes": version.size_bytes,
        "is_redacted": version.redaction.is_some(),
        "diff": diff,
    })
}

/// Returns the diff of a version; `None` if a text that it needs was redacted or pruned.
fn change(call: &Call, version: &Version) -> Result<Option<String>, Error> {
    let before = call.engine().previous_version(version, View::Full)?;
    let now = call.engine().version(version.store, version.id, View::Full)?;
    let is_known =
        |version: &Version| version.content.is_some() || version.operation == Operation::Deleted;
    let has_base = match &before {
        Some(before) => is_known(before),
        None => version.operation == Operation::Created,
    };
    if !has_base || !is_known(&now) || now.redaction.is_some() {
        return Ok(None);
    }
    let text = |version: Option<&Version>| {
        version
            .and_then(|version| version.content.clone())
            .map(|content| content.as_str().to_owned())
    };
    let (old, new) = (text(before.as_ref()), text(Some(&now)));
    Ok(Some(shown::diff(&old.unwrap_or_default(), &new.unwrap_or_default())))
}

pub(super) fn restore_note(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let subject = subject(call, arguments)?;
    let actor = call.writer(&subject.store)?;
    let (engine, store) = (call.engine(), subject.store.id);
    let (version, written) = match arguments.word("version")? {
        Some(id) => {
            let version = engine.version(store, version_id(&id)?, View::Basic)?;
            if version.memory != subject.memory {
                return Err(Error::not_found(format!("`{id}` is a version of another note")));
            }
            let written = engine.restore(&actor, store, version.id, None)?;
            (version, written)
        }
        None => engine.undo(&actor, store, subject.memory, None)?,
    };
    let memory = &written.memory;
    let is_changed = written.effect.has_changed();
    let data = json!({
        "action": if is_changed { "restored" } else { "unchanged" },
        "project": subject.store.name.as_str(),
        "file_path": memory.path.as_str(),
        "id": memory.id.to_string(),
        "restored_version_id": version.id.to_string(),
        "version_id": memory.version.to_string(),
        "checksum": memory.hash.to_string(),
        "findings": shown::findings_data(&written),
    });
    let held = format!("what it held in {} ({})", version.id, version.created_at);
    let text = if is_changed {
        let path = &memory.path;
        format!(
            "`{path}` in `{}` holds again {held}; the version before stays in its history.",
            subject.store.name
        )
    } else {
        format!("`{}` holds {held} already; nothing was changed.", memory.path)
    };
    Ok(Answer::new(text + &shown::findings(&written, &subject.store), data))
}

/// Resolves an identifier to a note or, by path, to a deleted one; store by store.
fn subject(call: &Call, arguments: &Arguments) -> Result<Hit<()>, Error> {
    let identifier = arguments.required("identifier")?;
    found::refuse_pattern(&identifier)?;
    let scopes = found::scopes(call, arguments)?;
    found::one(call, arguments, (&identifier, &scopes), |scope| {
        let missing = match found::living(call, scope, &identifier) {
            Ok(hit) => return Ok(Hit::new(hit.store, hit.memory, Some(hit.what.path), ())),
            Err(error) if *error.kind() == ErrorKind::NotFound => error,
            Err(error) => return Err(error),
        };
        let store = call.engine().store(scope.home)?;
        let (store, reference) = named(call, store, &identifier);
        match deleted(call, &store, &reference)? {
            Some((memory, path)) => Ok(Hit::new(store, memory, path, ())),
            None => Err(missing),
        }
    })
}

/// Splits an identifier into its store, or `home` if it names none, and the reference inside it.
fn named(call: &Call, home: Store, identifier: &str) -> (Store, Reference) {
    let identifier = Identifier::parse(identifier);
    if let Some((name, rest)) = identifier.split_store()
        && let Ok(store) = call.client.store(name)
    {
        return (store, rest);
    }
    let store = identifier.store.as_deref().and_then(|name| call.client.store(name).ok());
    (store.unwrap_or(home), identifier.reference)
}

fn deleted(
    call: &Call,
    store: &Store,
    reference: &Reference,
) -> Result<Option<(MemoryId, Option<MemoryPath>)>, Error> {
    match reference {
        Reference::Id(id) => {
            let Ok(id) = id.parse() else { return Ok(None) };
            let filter = VersionFilter { memory: Some(id), ..VersionFilter::default() };
            let query = VersionQuery { filter, before: None, limit: 1, view: View::Basic };
            let is_kept = !call.engine().versions(store.id, &query)?.items.is_empty();
            Ok(is_kept.then_some((id, None)))
        }
        Reference::Name(name) => {
            let candidates = path_candidates(name, None);
            for path in candidates.iter().filter_map(|path| MemoryPath::parse(path).ok()) {
                match call.engine().history(store.id, &path, 1) {
                    Ok(versions) => {
                        return Ok(versions.first().map(|version| (version.memory, Some(path))));
                    }
                    Err(error) if *error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        }
        Reference::Glob(_) => Ok(None),
    }
}

fn version_id(text: &str) -> Result<VersionId, Error> {
    match text.parse() {
        Ok(id) => Ok(id),
        Err(_) => Err(Error::invalid(format!("`{text}` is not the id of a version"))
            .with_hint("note_history lists them")),
    }
}
