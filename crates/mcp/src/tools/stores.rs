//! Stores, which other servers call projects.

use quipu_core::engine::NewStore;
use quipu_core::model::{Access, Description, Name, Store, Writers};
use quipu_core::{Error, ErrorKind};
use serde_json::{Value, json};

use super::Call;
use super::shown::counted;
use crate::answer::Answer;
use crate::arguments::Arguments;

pub(super) fn list(call: &Call) -> Result<Answer, Error> {
    let client = &call.client;
    let default = client.default_store()?.map(|store| store.id);
    let mut lines = Vec::new();
    let mut projects = Vec::new();
    for store in client.stores()? {
        let usage = call.engine().usage(store.id)?;
        let access = client.identity.access(store.id).unwrap_or(Access::ReadOnly);
        let is_default = default == Some(store.id);
        let is_archived = store.archived_at.is_some();
        let access = if is_archived { Access::ReadOnly } else { access };
        lines.push(format!(
            "- {}{}{}: {}, {access}{}",
            store.name,
            if is_default { " (default)" } else { "" },
            if is_archived { " (archived)" } else { "" },
            counted(usage.memories_count, "note"),
            described(&store),
        ));
        projects.push(json!({
            "name": store.name.as_str(),
            "id": store.id.to_string(),
            "description": store.description.as_str(),
            "is_default": is_default,
            "is_archived": is_archived,
            "access": access.as_str(),
            "notes_count": usage.memories_count,
            "size_bytes": usage.size_bytes,
            "url": format!("memory://{}/", client.short_name(&store)),
        }));
    }
    let text = match (lines.is_empty(), client.identity.makes_first_store()) {
        (false, _) => lines.join("\n"),
        (true, true) => {
            "There are no stores yet; the first note that you write makes one.".to_owned()
        }
        (true, false) => "There are no stores that you can reach.".to_owned(),
    };
    Ok(Answer::new(text, json!({ "projects": projects })))
}

fn described(store: &Store) -> String {
    match store.description.as_str().trim() {
        "" => String::new(),
        text => format!(". {text}"),
    }
}

pub(super) fn create(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    call.client.require_management()?;
    let name = name(arguments)?;
    let new = NewStore {
        description: Description::new(arguments.word("description")?.unwrap_or_default())?,
        ..NewStore::named(Name::new(name.as_str())?)
    };
    let existing = call.client.stores()?;
    if let Some(store) = existing.iter().find(|store| store.name == new.name) {
        let data = shown(store, "unchanged");
        let is =
            if store.archived_at.is_some() { "exists and is archived" } else { "exists already" };
        return Ok(Answer::new(format!("The store `{name}` {is}."), data));
    }
    call.require_wanted()?;
    let store = call.engine().ensure_store(call.client.identity.workspace, &new)?;
    Ok(Answer::new(format!("Created the store `{name}`."), shown(&store, "created")))
}

pub(super) fn delete(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    call.client.require_management()?;
    let store = call.client.store_exactly(&name(arguments)?)?;
    // The engine asks who writes a memory; who deletes a whole store is asked here.
    if store.policy.writers == Writers::People {
        let message = format!("the store `{}` can only be deleted by people", store.name);
        return Err(Error::new(ErrorKind::AccessDenied, message));
    }
    call.require_wanted()?;
    let deleted = call.engine().delete_store(store.id)?;
    let notes = counted(deleted.memories_count, "note");
    let text = format!(
        "Deleted the store `{}` with {notes}. It is no longer visible, but until it is erased its \
         owner can restore it with `quipu store restore {}`.",
        store.name, store.id
    );
    Ok(Answer::new(text, shown(&store, "deleted")))
}

fn name(arguments: &Arguments) -> Result<String, Error> {
    match arguments.first_word(&["project_name", "name", "project"])? {
        Some(name) => Ok(name),
        None => arguments.required("project_name"),
    }
}

fn shown(store: &Store, action: &str) -> Value {
    json!({"name": store.name.as_str(), "id": store.id.to_string(), "action": action})
}
