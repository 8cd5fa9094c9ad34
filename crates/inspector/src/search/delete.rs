//! Deletes selected hits: a page that shows what will be deleted, then the deletion, which leaves out
//! what somebody has changed since that page was shown.

use maud::{Markup, html};
use quipu_core::ErrorKind;
use quipu_core::engine::Precondition;
use quipu_core::model::{Memory, MemoryId, Store, View};
use quipu_service::caller::Need;

use crate::layout::{self, Room};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::SEARCH;

/// How many memories are deleted at once: more than a page of hits has.
const SELECTED_MAX: usize = 100;

/// Shows what will be deleted.
pub(super) fn confirm(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let mut memories = Vec::new();
    for id in visit.query.all("memory").take(SELECTED_MAX) {
        let place =
            visit.query.all("place").find_map(|place| place.strip_prefix(id)?.strip_prefix('/'));
        let Some(place) = place else { continue };
        let store = visit.store_with_id(place, Need::Write)?;
        memories.extend(seen(visit, store, id)?);
    }
    if memories.is_empty() {
        return Err(Trouble::Invalid(
            "Nothing is selected, or it is deleted already. Go back and check the boxes of the \
             memories to delete."
                .to_owned(),
        ));
    }
    let count = text::count(memories.len() as u64, "memory", "memories");
    let back = back(visit.query.get("back"));
    let content = html! {
        h1 { "Delete " (count) "?" }
        p { "The history keeps deleted memories, so each of them can be restored from it." }
        (table(visit, &memories))
        form method="post" action="/ui/search/delete" {
            (visit.token_field())
            input type="hidden" name="back" value=(back);
            @for (store, memory) in &memories {
                input type="hidden" name="seen" value={ (store.id) "/" (memory.id) "/" (memory.hash) };
            }
            p {
                button.danger { "Delete " (count) } " "
                a.button href=(back) { "Cancel" }
            }
        }
    };
    Ok(Reply::Page(layout::page(visit, Room::Search, &format!("Delete {count}"), &content)))
}

fn table(visit: &Visit<'_>, memories: &[(Store, Memory)]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="What will be deleted" { table {
            thead { tr {
                th scope="col" { "Path" } th scope="col" { "Store" } th scope="col" { "Size" }
                th scope="col" { "Last change" }
            } }
            tbody { @for (store, memory) in memories { tr {
                th scope="row" {
                    a href={ "/ui/stores/" (store.id) "/memories/" (memory.id) } { (memory.path) }
                }
                td { (visible::short(store.name.as_str())) }
                td { (text::size(memory.size_bytes)) }
                td { (text::time(memory.updated_at, visit.engine.now())) }
            } } }
        } }
    }
}

/// Returns a memory that still exists.
fn seen(visit: &Visit<'_>, store: Store, id: &str) -> Result<Option<(Store, Memory)>, Trouble> {
    let Ok(id) = id.parse::<MemoryId>() else { return Ok(None) };
    match visit.engine.memory(store.id, id, View::Basic) {
        Ok(memory) => Ok(Some((store, memory))),
        Err(error) if *error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Deletes what the visitor has seen.
pub(super) fn delete(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let mut left = Vec::new();
    let mut deleted_count = 0_u64;
    for seen in visit.form.all("seen").take(SELECTED_MAX) {
        let mut parts = seen.splitn(3, '/');
        let (store, id, hash) = (parts.next(), parts.next(), parts.next());
        let parsed = id.and_then(|id| id.parse::<MemoryId>().ok());
        let hash = hash.and_then(|hash| hash.parse().ok());
        let (Some(store), Some(id), Some(hash)) = (store, parsed, hash) else {
            let message = "The form is damaged. Search again and select what to delete.";
            return Err(Trouble::Invalid(message.to_owned()));
        };
        let store = visit.store_with_id(store, Need::Write)?;
        let precondition = Precondition::ContentIs(hash);
        match visit.engine.delete(&visit.caller.actor, store.id, id, precondition) {
            Ok(_) => deleted_count += 1,
            // Somebody else has deleted it, which is what was asked for.
            Err(error) if *error.kind() == ErrorKind::NotFound => {}
            Err(error) => left.push((store, id, error.to_string())),
        }
    }
    let back = back(visit.form.get("back"));
    if left.is_empty() {
        return Ok(Reply::SeeOther(back.to_owned()));
    }
    let content = html! {
        h1 { "Not everything was deleted" }
        p { (text::count(deleted_count, "memory was", "memories were")) " deleted. These were not:" }
        ul { @for (store, id, reason) in &left {
            li { a href={ "/ui/stores/" (store.id) "/memories/" (id) } { (id) } " in " (visible::short(store.name.as_str())) ": " (reason) }
        } }
        p { "Look at what they say now, then select them again." }
        p { a href=(back) { "Back to the search" } }
    };
    Ok(Reply::Conflict(layout::page(visit, Room::Search, "Not everything was deleted", &content)))
}

/// Returns where to go afterwards: to a search, and nowhere else.
fn back(address: Option<&str>) -> &str {
    address.filter(|it| it.starts_with("/ui/search?")).unwrap_or(SEARCH)
}
