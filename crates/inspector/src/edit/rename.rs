//! Giving a memory another path.

use maud::{Markup, html};
use quipu_core::Error;
use quipu_core::engine::{MemoryUpdate, Precondition, Written};
use quipu_core::model::{Memory, MemoryPath, Store};

use crate::layout::{Room, page};
use crate::memory::{found, memory_address, trail_to};
use crate::reply::{Reply, Trouble};
use crate::visit::Visit;

use super::{after_saving, alert, explained, writable_store};

/// Asks for the new path.
pub(super) fn ask(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    match found(visit, &store)? {
        Ok(memory) => {
            let path = memory.path.as_str();
            Ok(Reply::Page(form(visit, &store, &memory, path, None)))
        }
        Err(_) => Ok(Reply::SeeOther(memory_address(&store, visit.memory()?))),
    }
}

/// Moves the memory. A change of its text in between is kept; a move in between is shown first.
pub(super) fn rename(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let Ok(memory) = found(visit, &store)? else {
        return Ok(Reply::SeeOther(memory_address(&store, visit.memory()?)));
    };
    let typed = visit.form.get("path").unwrap_or_default().trim();
    if visit.form.get("old") != Some(memory.path.as_str()) {
        let trouble = "Not moved: others have moved this memory since you opened it. It is now where \
                       the title says; send the form again to move it from there.";
        return Ok(Reply::Conflict(form(visit, &store, &memory, typed, Some(trouble))));
    }
    match moved(visit, &store, &memory, typed) {
        Ok(written) => Ok(Reply::SeeOther(after_saving(&store, &written))),
        Err(error) => {
            let trouble = explained(&error);
            Ok(Reply::Page(form(visit, &store, &memory, typed, Some(&trouble))))
        }
    }
}

fn moved(visit: &Visit<'_>, store: &Store, memory: &Memory, path: &str) -> Result<Written, Error> {
    let path = Some(MemoryPath::parse(path)?);
    let update = MemoryUpdate { content: None, path, precondition: Precondition::None };
    visit.engine.update(&visit.caller.actor, store.id, memory.id, &update)
}

fn form(
    visit: &Visit<'_>,
    store: &Store,
    memory: &Memory,
    typed: &str,
    trouble: Option<&str>,
) -> Markup {
    let own = memory_address(store, memory.id);
    let content = html! {
        (trail_to(store, &memory.path, memory.path.file_name()))
        h1 { "Rename " (memory.path) }
        (alert(trouble))
        form method="post" action={ (own) "/rename" } data-unsaved {
            (visit.token_field())
            input type="hidden" name="old" value=(memory.path);
            label { "New path"
                input name="path" required maxlength="1024" value=(typed) spellcheck="false"
                    autocomplete="off" aria-describedby="rename-why";
            }
            p #rename-why { small { "The memory keeps its id and its history. Links to its title go on \
                                     to work, links to its old path do not." } }
            p { button.primary { "Rename" } " " a href=(own) { "Cancel" } }
        }
    };
    page(visit, Room::Stores, &format!("{} · rename · {}", memory.path, store.name), &content)
}
