//! The first page: all stores, and the newest changes.

use maud::{Markup, html};
use quipu_core::backend::{Archived, Usage, VersionFilter, VersionQuery};
use quipu_core::engine::NewStore;
use quipu_core::model::{Name, Store, Version, View};
use quipu_service::authors::AuthorNames;
use quipu_service::caller::Need;

use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visit::Visit;
use crate::{Page, changes, shows};

/// The pages of this module.
pub(crate) static PAGES: [Page; 2] = [shows("/ui", start), changes("/ui/stores", create)];

/// How many changes are listed.
const CHANGES_MAX: usize = 20;

fn start(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let stores = visit.stores(Archived::Show)?;
    let authors = visit.authors();
    let mut rows = Vec::with_capacity(stores.len());
    let mut newest = Vec::new();
    for store in &stores {
        let usage = visit.engine.usage(store.id)?;
        let query = VersionQuery {
            filter: VersionFilter::default(),
            before: None,
            limit: CHANGES_MAX,
            view: View::Basic,
        };
        let versions = visit.engine.versions(store.id, &query)?.items;
        rows.push(row(visit, &authors, (store, usage), versions.first()));
        newest.extend(versions.into_iter().map(|version| (store, version)));
    }
    newest.sort_by_key(|(_, version)| std::cmp::Reverse(version.created_at));
    newest.truncate(CHANGES_MAX);
    let content = html! {
        h1 { "Stores" }
        @if rows.is_empty() {
            p { "There is no store yet. Agents make one when they first remember something." }
        } @else {
            div.wide { table {
                thead { tr {
                    th scope="col" { "Store" } th scope="col" { "Memories" } th scope="col" { "Size" }
                    th scope="col" { "Last change" } th scope="col" { "You may" }
                } }
                tbody { @for row in &rows { (row) } }
            } }
        }
        @if visit.is_admin() { (create_form(visit)) }
        section #newest aria-labelledby="changes" data-live {
            h2 #changes { "Newest changes" }
            @if newest.is_empty() { p { "Nothing has changed yet." } }
            ol.changes {
                @for (store, version) in &newest { (change(visit, &authors, store, version)) }
            }
        }
    };
    Ok(Reply::Page(page(visit, Room::Stores, "Stores", &content)))
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
                a href={ "/ui/stores/" (store.id) } { (store.name) }
                @if store.archived_at.is_some() { " " span.badge { "archived" } }
                @if !store.description.as_str().is_empty() { br; small { (store.description) } }
            }
            td { (text::grouped(usage.memories_count))
                meter aria-label="Memories, of the limit" min="0" max=(limits.memories_per_store_max)
                    value=(usage.memories_count) {} }
            td { (text::size(usage.size_bytes))
                meter aria-label="Size, of the limit" min="0" max=(limits.store_size_bytes_max)
                    value=(usage.size_bytes) {} }
            td { @match newest {
                Some(version) => {
                    (text::time(version.created_at, visit.engine.now())) " by " (authors.short(&version.actor))
                }
                None => "–"
            } }
            td { (right.map_or("", |(_, word)| word)) }
        }
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
            " in " (store.name) ": " (version.operation.as_str()) " by " (authors.short(&version.actor))
        }
    }
}

fn create_form(visit: &Visit<'_>) -> Markup {
    html! {
        details {
            summary { "New store" }
            form.narrow method="post" action="/ui/stores" {
                (visit.token_field())
                label { "Name" input name="name" required maxlength="255"; }
                button.primary { "Create" }
            }
        }
    }
}

fn create(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    visit.caller.require_workspace(Need::Manage)?;
    let name = visit.form.get("name").unwrap_or_default();
    let name = Name::new(name).map_err(|error| Trouble::Invalid(format!("Name: {error}")))?;
    let store = visit.engine.create_store(visit.caller.workspace, &NewStore::named(name))?;
    Ok(Reply::SeeOther(format!("/ui/stores/{}", store.id)))
}
