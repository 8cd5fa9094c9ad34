//! The first page: all stores, and the newest changes.

use std::collections::HashMap;

use maud::{Markup, html};
use quipu_core::backend::{Archived, Event, Sequence, Usage, VersionFilter, VersionQuery};
use quipu_core::engine::NewStore;
use quipu_core::model::{Description, Name, Store, StoreId, Version, View};
use quipu_service::authors::AuthorNames;
use quipu_service::caller::Need;

use crate::layout::{self, Room};
use crate::paging::Paging;
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;
use crate::{Page, changes, shows};

/// The pages of this module.
pub(crate) static PAGES: [Page; 2] = [shows("/ui", start), changes("/ui/stores", create)];

/// How many stores a page lists: with 50, it stays below 60 kB and asks the engine about 100 things.
const STORES_PER_PAGE: usize = 50;
/// How many changes are listed.
const CHANGES_MAX: usize = 20;
/// How many entries of the change feed are looked at for them, from the newest backwards. A visitor
/// whose stores are quiet among busy ones sees fewer changes here, and all of them on the store's page.
const FEED_WINDOW: usize = 500;
const FEED_WINDOWS_MAX: usize = 4;

fn start(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    // Before anything is read: a change that is made meanwhile is announced, not lost.
    let seen = visit.engine.newest_sequence()?;
    let stores = visit.stores(Archived::Show)?;
    let authors = visit.authors();
    let paging = Paging::new(&visit.query, STORES_PER_PAGE);
    let mut rows = Vec::new();
    for store in paging.cut(&stores) {
        let usage = visit.engine.usage(store.id)?;
        let newest = newest_version(visit, store.id)?;
        rows.push(row(visit, &authors, (store, usage), newest.as_ref()));
    }
    let newest = newest_changes(visit, seen, &stores)?;
    let content = html! {
        h1 { "Stores" }
        p { (permissions(visit)) }
        @if rows.is_empty() {
            p { "There is no store yet. Agents make one when they first remember something." }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Stores" { table #stores {
                thead { tr {
                    th scope="col" { "Store" } th scope="col" { "Memories" } th scope="col" { "Size" }
                    th scope="col" { "Last change" } th scope="col" { "You may" }
                } }
                tbody { @for row in &rows { (row) } }
            } }
            (paging.links("/ui", &[], stores.len()))
        }
        @if visit.is_admin() { (create_form(visit)) }
        section #newest aria-labelledby="changes" data-live data-after=(seen.0) {
            h2 #changes { "Newest changes" }
            @if newest.is_empty() { p { "Nothing has changed yet." } }
            ol.changes {
                @for (store, version) in &newest { (change(visit, &authors, store, version)) }
            }
        }
    };
    Ok(Reply::Page(layout::page(visit, Room::Stores, "Stores", &content)))
}

/// Says what the visitor may do everywhere; the table says what it may do in each store.
fn permissions(visit: &Visit<'_>) -> Markup {
    let reach = if visit.caller.is_unlimited() { "all stores" } else { "the stores listed here" };
    let may = [
        (Need::Manage, "read, write and manage"),
        (Need::Write, "read and write"),
        (Need::Read, "read"),
    ];
    let may = may.into_iter().find(|(need, _)| visit.caller.may(*need)).map_or("", |(_, may)| may);
    html! { "With this key you may " (may) " " (reach) "." }
}

fn newest_version(visit: &Visit<'_>, store: StoreId) -> Result<Option<Version>, Trouble> {
    let query = VersionQuery {
        filter: VersionFilter::default(),
        before: None,
        limit: 1,
        view: View::Basic,
    };
    Ok(visit.engine.versions(store, &query)?.items.pop())
}

/// Returns the newest changes of memories in these stores, from the end of the change feed: asking each
/// of 1,000 stores would take a second.
fn newest_changes<'s>(
    visit: &Visit<'_>,
    newest: Sequence,
    stores: &'s [Store],
) -> Result<Vec<(&'s Store, Version)>, Trouble> {
    let readable: HashMap<StoreId, &Store> = stores.iter().map(|it| (it.id, it)).collect();
    let window = u64::try_from(FEED_WINDOW).unwrap_or(u64::MAX);
    let mut found = Vec::new();
    let mut end = newest.0;
    for _ in 0..FEED_WINDOWS_MAX {
        let start = end.saturating_sub(window);
        let limit = usize::try_from(end - start).unwrap_or(FEED_WINDOW);
        let changes = visit.engine.changes(Sequence(start), limit)?.items;
        for change in changes.into_iter().rev().filter(|change| change.sequence.0 <= end) {
            let Some(store) = readable.get(&change.store) else { continue };
            let Event::Version(version) = change.event else { continue };
            // Retention may have removed it.
            let Ok(version) = visit.engine.version(change.store, version, View::Basic) else {
                continue;
            };
            found.push((*store, version));
            if found.len() == CHANGES_MAX {
                return Ok(found);
            }
        }
        end = start;
        if end == 0 {
            break;
        }
    }
    Ok(found)
}

fn row(
    visit: &Visit<'_>,
    authors: &AuthorNames<'_>,
    (store, usage): (&Store, Usage),
    newest: Option<&Version>,
) -> Markup {
    let limits = visit.engine.limits();
    let rights = [(Need::Manage, "manage"), (Need::Write, "write"), (Need::Read, "read")];
    let right = rights.into_iter().find(|(need, _)| visit.caller.may_in(store.id, *need));
    html! {
        tr {
            th scope="row" {
                a href={ "/ui/stores/" (store.id) } { (visible::short(store.name.as_str())) }
                @if store.archived_at.is_some() { " " span.badge { "archived" } }
                @if !store.description.as_str().is_empty() { br; small { (visible::short(store.description.as_str())) } }
            }
            td { (text::grouped(usage.memories_count))
                (fullness("Memories, of the limit", usage.memories_count, limits.memories_per_store_max)) }
            td { (text::size(usage.size_bytes))
                (fullness("Size, of the limit", usage.size_bytes, limits.store_size_bytes_max)) }
            td { @match newest {
                Some(version) => {
                    (text::time(version.created_at, visit.engine.now())) " by " (visible::short(&authors.short(&version.actor)))
                }
                None => "–"
            } }
            td { (right.map_or("", |(_, word)| word)) }
        }
    }
}

/// Shows how much of a limit is used; the last tenth looks different.
fn fullness(name: &str, value: u64, limit: u64) -> Markup {
    html! {
        meter aria-label=(name) min="0" high=(limit - limit / 10) max=(limit) optimum="0" value=(value) {}
    }
}

fn change(
    visit: &Visit<'_>,
    authors: &AuthorNames<'_>,
    store: &Store,
    version: &Version,
) -> Markup {
    html! {
        li {
            (text::time(version.created_at, visit.engine.now())) " "
            a href={ "/ui/stores/" (store.id) "/memories/" (version.memory) } {
                @match &version.path { Some(path) => (path), None => "a redacted memory" }
            }
            " in " (visible::short(store.name.as_str())) ": " (version.operation.as_str()) " by " (visible::short(&authors.short(&version.actor)))
        }
    }
}

fn create_form(visit: &Visit<'_>) -> Markup {
    html! {
        details {
            summary { "New store" }
            form.narrow method="post" action="/ui/stores" {
                (visit.token_field())
                label { "Name" input name="name" required maxlength="255" autocomplete="off"; }
                label { "Description, which tells agents what belongs here (optional)"
                    input name="description" maxlength="1024" autocomplete="off";
                }
                button.primary { "Create store" }
            }
        }
    }
}

fn create(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    visit.caller.require_workspace(Need::Manage)?;
    let name = visit.form.get("name").unwrap_or_default();
    let name = Name::new(name).map_err(|error| Trouble::Invalid(format!("Name: {error}")))?;
    let description = Description::new(visit.form.text("description").unwrap_or_default())
        .map_err(|error| Trouble::Invalid(format!("Description: {error}")))?;
    let new = NewStore { description, ..NewStore::named(name) };
    let store = visit.engine.create_store(visit.caller.workspace, &new)?;
    Ok(Reply::SeeOther(format!("/ui/stores/{}", store.id)))
}
