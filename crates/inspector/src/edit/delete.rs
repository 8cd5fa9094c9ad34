//! Deleting a memory.

use maud::{Markup, html};
use quipu_core::ErrorKind;
use quipu_core::engine::Precondition;
use quipu_core::model::{Content, Memory, Store, View};

use crate::layout::{Room, page};
use crate::memory::{directory_address, found, memory_address, trail_to};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visit::Visit;

use super::{Seen, seen_fields, shown_difference, writable_store};

/// Asks whether to delete.
pub(super) fn ask(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    match found(visit, &store)? {
        Ok(memory) => Ok(Reply::Page(form(visit, &store, &memory, &html! {})?)),
        Err(_) => Ok(Reply::SeeOther(memory_address(&store, visit.memory()?))),
    }
}

/// Deletes the memory, unless it has changed since its visitor was asked.
pub(super) fn delete(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let seen = Seen::read(visit, &store)?;
    let id = visit.memory()?;
    let precondition = Precondition::ContentIs(seen.hash);
    let error = match visit.engine.delete(&visit.caller.actor, store.id, id, precondition) {
        Ok(version) => {
            let parent = version.path.map(|path| path.parent());
            let parent = parent.unwrap_or_else(quipu_core::model::Directory::root);
            return Ok(Reply::SeeOther(directory_address(&store, &parent)));
        }
        Err(error) => error,
    };
    if *error.kind() == ErrorKind::NotFound {
        // Somebody else deleted it: what was asked for is done, and the page says by whom.
        return Ok(Reply::SeeOther(memory_address(&store, id)));
    }
    if *error.kind() != ErrorKind::PreconditionFailed {
        return Err(error.into());
    }
    let Ok(memory) = found(visit, &store)? else {
        return Ok(Reply::SeeOther(memory_address(&store, id)));
    };
    let now = memory.content.as_ref().map_or("", Content::as_str);
    let notes = html! {
        p.message #conflict role="alert" {
            "Nothing is deleted: the memory has changed since you were asked. This is what changed:"
        }
        (shown_difference(seen.text().unwrap_or_default(), now, "What was changed"))
    };
    Ok(Reply::Conflict(form(visit, &store, &memory, &notes)?))
}

fn form(
    visit: &Visit<'_>,
    store: &Store,
    memory: &Memory,
    notes: &Markup,
) -> Result<Markup, Trouble> {
    let own = memory_address(store, memory.id);
    let version = visit.engine.version(store.id, memory.version, View::Basic)?;
    let days = visit.engine.limits().versions_kept_for.as_secs() / (24 * 60 * 60);
    let content = html! {
        (trail_to(store, &memory.path, memory.path.file_name()))
        h1 { "Delete " (memory.path) "?" }
        (notes)
        p { (text::size(memory.size_bytes)) ", last changed "
            (text::time(memory.updated_at, visit.engine.now())) " by "
            (visit.authors().short(&version.actor)) "." }
        p { "Agents no longer see it. Its versions are kept for " (text::count(days, "day", "days"))
            ", and it can be restored from its history until then. To remove a text permanently, redact it." }
        form method="post" action={ (own) "/delete" } {
            (visit.token_field())
            (seen_fields(memory))
            p { button.danger { "Delete" } " " a href=(own) { "Keep it" } }
        }
    };
    let title = format!("{} · delete · {}", memory.path, store.name);
    Ok(page(visit, Room::Stores, &title, &content))
}
