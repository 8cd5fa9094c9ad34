//! What is wrong with the links of a store.
//!
//! It looks at all links of the store, so it has an address of its own: the page of the store does not
//! wait for it.

use maud::{Markup, html};
use quipu_core::model::Store;
use quipu_knowledge::{NoteLink, Orphans};
use quipu_service::caller::Need;

use crate::layout::{Room, page};
use crate::memory::{as_written, scope, trail_in};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

/// How many links and memories are listed.
const LISTED_MAX: usize = 200;

/// Lists the broken links and the memories without links.
pub(super) fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Read)?;
    let scope = scope(visit, &store)?;
    let unresolved = visit.engine.unresolved(&scope, LISTED_MAX + 1)?;
    let orphans = visit.engine.orphans(&scope, LISTED_MAX)?;
    let content = html! {
        (trail_in(&store, "health"))
        h1 { "Health of " (visible::short(store.name.as_str())) }
        (summary(&store, &unresolved, &orphans))
        h2 #unresolved { "Links to notes that do not exist" }
        (links(&unresolved))
        h2 #orphans { "Memories without any link" }
        @if orphans.notes.is_empty() { p { "None." } }
        ul.plain { @for note in &orphans.notes {
            li { a href={ "/ui/stores/" (note.store) "/memories/" (note.memory) } { (note.path) } }
        } }
        @if orphans.total_count > orphans.notes.len() {
            p { small { "Only the first " (LISTED_MAX) " are listed." } }
        }
    };
    Ok(Reply::Page(page(visit, Room::Stores, &format!("Health · {}", store.name), &content)))
}

/// The counts, which the page of the store shows as well.
fn summary(store: &Store, unresolved: &[NoteLink], orphans: &Orphans) -> Markup {
    let own = format!("/ui/stores/{}/health", store.id);
    let broken = if unresolved.len() > LISTED_MAX {
        format!("more than {LISTED_MAX} broken links")
    } else {
        text::count(
            u64::try_from(unresolved.len()).unwrap_or(u64::MAX),
            "broken link",
            "broken links",
        )
    };
    let alone = u64::try_from(orphans.total_count).unwrap_or(u64::MAX);
    let alone = text::count(alone, "memory without links", "memories without links");
    html! {
        section #health aria-labelledby="health-title" {
            h2 #health-title { "Health" }
            ul.plain {
                li { a href={ (own) "#unresolved" } { (broken) } }
                li { a href={ (own) "#orphans" } { (alone) } }
            }
        }
    }
}

fn links(unresolved: &[NoteLink]) -> Markup {
    html! {
        @if unresolved.is_empty() { p { "None." } } @else {
            div.wide role="group" tabindex="0" aria-label="Broken links" { table {
                thead { tr { th scope="col" { "In" } th scope="col" { "Line" } th scope="col" { "Link" } } }
                tbody { @for link in unresolved.iter().take(LISTED_MAX) {
                    tr {
                        th scope="row" { a href={ "/ui/stores/" (link.from.store) "/memories/" (link.from.memory) } { (link.from.path) } }
                        td.number { (link.link.line) }
                        td { (as_written(&link.link.target)) }
                    }
                } }
            } }
            @if unresolved.len() > LISTED_MAX { p { small { "Only the first " (LISTED_MAX) " are listed." } } }
        }
    }
}
