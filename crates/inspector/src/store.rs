//! A store: what is in it, and what can be done with it.

mod health;
mod listing;
mod manage;
mod selection;
mod tar;

use maud::{Markup, html};
use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use quipu_core::engine::Principal;
use quipu_core::model::{Directory, Session, Store};
use quipu_service::authors::AuthorNames;
use quipu_service::caller::Need;

use crate::form::address;
use crate::layout::{Room, page, trail};
use crate::memory::{directory_address, memory_address};
use crate::reply::{Reply, Trouble};
use crate::visible;
use crate::visit::Visit;
use crate::{Page, changes, shows, text};

use listing::{Layout, Row, Rows, Sort, Wanted};

/// The pages of this module.
pub(crate) static PAGES: [Page; 12] = [
    shows("/ui/stores/{store}", show),
    shows("/ui/stores/{store}/health", health::show),
    shows("/ui/stores/{store}/move", selection::ask_move),
    changes("/ui/stores/{store}/move", selection::move_all),
    shows("/ui/stores/{store}/delete", selection::ask_delete),
    changes("/ui/stores/{store}/delete", selection::delete_all),
    shows("/ui/stores/{store}/export", selection::ask_export),
    changes("/ui/stores/{store}/export", selection::export),
    shows("/ui/stores/{store}/settings", manage::show),
    changes("/ui/stores/{store}/settings", manage::update),
    changes("/ui/stores/{store}/archive", manage::archive),
    changes("/ui/stores/{store}/remove", manage::remove),
];

/// How many sessions are listed.
const SESSIONS_MAX: usize = 10;

/// The most stores, and the most memories in all of them, whose links are followed with the page of a
/// store, by those whose browsers run our script.
const LAZY_STORES_MAX: usize = 20;
const LAZY_MEMORIES_MAX: u64 = 2_000;

fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Read)?;
    let wanted = Wanted::read(visit)?;
    let rows = listing::read(visit, &store, &wanted)?;
    let own = format!("/ui/stores/{}", store.id);
    let content = html! {
        (directory_trail(&store, &wanted.directory))
        h1 { (visible::short(store.name.as_str())) @if store.archived_at.is_some() { " " span.badge { "archived" } } }
        @if !store.description.as_str().is_empty() { p { (visible::short(store.description.as_str())) } }
        (done_message(visit))
        (actions(visit, &store, &wanted, &own))
        div.columns {
            div {
                section #memories aria-label="Memories" data-live data-store=(store.id) {
                    (choices(&wanted, &own))
                    (table(visit, &store, &wanted, &rows))
                    (pages(&wanted, &rows, &own))
                }
            }
            aside aria-label="About this store" { (about(visit, &store, &own)?) }
        }
    };
    let place = if wanted.directory.is_root() {
        String::new()
    } else {
        format!("{} · ", wanted.directory)
    };
    Ok(Reply::Page(page(visit, Room::Stores, &format!("{place}{}", store.name), &content)))
}

/// Returns the way to a directory.
fn directory_trail(store: &Store, directory: &Directory) -> Markup {
    let mut steps = vec![("Stores", "/ui".to_owned())];
    if directory.is_root() {
        return trail(&steps, store.name.as_str());
    }
    steps.push((store.name.as_str(), directory_address(store, &Directory::root())));
    let inner = directory.as_str().trim_matches('/');
    let mut names: Vec<&str> = inner.split('/').collect();
    let here = names.pop().unwrap_or_default();
    let mut above = String::from("/");
    for name in names {
        above = format!("{above}{name}/");
        steps.push((name, address(&format!("/ui/stores/{}", store.id), &[("dir", &above)])));
    }
    trail(&steps, here)
}

/// Says what came of a change that led here.
fn done_message(visit: &Visit<'_>) -> Markup {
    let done = |name: &str| visit.query.get(name).and_then(|count| count.parse::<u64>().ok());
    let count = |count| text::count(count, "memory", "memories");
    html! {
        @if let Some(deleted) = done("deleted") {
            p.message role="status" { "Deleted: " (count(deleted)) ". Their versions are kept for a while; \
                the past of the store shows them, and restores them." }
        }
        @if let Some(moved) = done("moved") { p.message role="status" { "Moved: " (count(moved)) "." } }
        @if let Some(saved) = visit.query.get("saved") {
            p.message role="status" { @if saved == "0" { "Nothing changed." } @else { "Saved." } }
        }
    }
}

fn actions(visit: &Visit<'_>, store: &Store, wanted: &Wanted, own: &str) -> Markup {
    let new = address(&format!("{own}/new"), &[("path", wanted.directory.as_str())]);
    html! {
        p.actions {
            @if visit.may_change(store) { a.button.primary href=(new) data-key="n" { "New memory" } " " }
            a.button href=(address("/ui/search", &[("store", &store.id.to_string())])) { "Search" } " "
            a.button href={ (own) "/past" } { "The past" } " "
            a.button href={ (own) "/graph" } { "Graph" } " "
            a.button href={ (own) "/export" } { "Export" }
            @if visit.caller.may_in(store.id, Need::Manage) { " " a.button href={ (own) "/settings" } { "Settings" } }
        }
    }
}

/// The choice between tree and list.
fn choices(wanted: &Wanted, own: &str) -> Markup {
    let link = |layout: Layout, title: &str| {
        let to = Wanted { layout, page: 1, ..wanted.clone() }.address(own);
        html! { a href=(to) aria-current=[(wanted.layout == layout).then_some("page")] { (title) } }
    };
    html! {
        nav.tabs aria-label="Layout" { (link(Layout::Tree, "Tree")) (link(Layout::List, "List")) }
    }
}

fn table(visit: &Visit<'_>, store: &Store, wanted: &Wanted, rows: &Rows) -> Markup {
    let head = |sort: Sort, title: &str| {
        let to =
            Wanted { sort, page: 1, ..wanted.clone() }.address(&format!("/ui/stores/{}", store.id));
        let direction = if sort.is_ascending() { "ascending" } else { "descending" };
        html! {
            th scope="col" aria-sort=[(wanted.sort == sort).then_some(direction)] {
                a href=(to) title={ "Sort by " (title.to_lowercase()) } { (title) }
                @if wanted.sort == sort { span aria-hidden="true" { @if sort.is_ascending() { " ↑" } @else { " ↓" } } }
            }
        }
    };
    let authors = visit.authors();
    let may_write = visit.may_change(store);
    html! {
        @if rows.is_empty() {
            @if wanted.directory.is_root() { p { "There is no memory in this store yet." } }
            @else { p { "There is no memory in this folder. It exists only while something is in it." } }
        } @else {
            form #selection method="get" action={ "/ui/stores/" (store.id) "/export" } {
                input type="hidden" name="dir" value=(wanted.directory);
                div.wide role="group" tabindex="0" aria-label="Memories" {
                    table.memories {
                        thead { tr {
                            th scope="col" { "Select" }
                            (head(Sort::Path, "Path")) (head(Sort::Size, "Size"))
                            (head(Sort::Time, "Changed")) (head(Sort::Author, "Author"))
                        } }
                        tbody {
                            @for directory in &rows.directories { (directory_row(store, wanted, directory)) }
                            @for row in &rows.memories {
                                (memory_row(visit, store, wanted, &authors, row))
                            }
                        }
                    }
                }
                @if !rows.memories.is_empty() {
                    p.actions { "Selected: "
                        @if may_write {
                            button formaction={ "/ui/stores/" (store.id) "/move" } { "Move…" } " "
                            button.danger formaction={ "/ui/stores/" (store.id) "/delete" } { "Delete…" } " "
                        }
                        button { "Export…" }
                    }
                }
            }
        }
    }
}

fn directory_row(store: &Store, wanted: &Wanted, directory: &Directory) -> Markup {
    let to = Wanted { directory: directory.clone(), page: 1, ..wanted.clone() };
    let name =
        directory.as_str().strip_prefix(wanted.directory.as_str()).unwrap_or(directory.as_str());
    html! {
        tr {
            td {}
            th scope="row" { a href=(to.address(&format!("/ui/stores/{}", store.id))) { (name) } }
            td {} td {} td {}
        }
    }
}

fn memory_row(
    visit: &Visit<'_>,
    store: &Store,
    wanted: &Wanted,
    authors: &AuthorNames<'_>,
    row: &Row,
) -> Markup {
    let name = row.path.as_str().strip_prefix(wanted.directory.as_str());
    let name = name.unwrap_or(row.path.as_str());
    html! {
        tr {
            td { input type="checkbox" name="memory" value=(row.memory) aria-label={ "Select " (name) }; }
            th scope="row" {
                a href=(memory_address(store, row.memory)) { (name) }
                @if row.is_hiding == Some(true) {
                    " " span.badge.warning title="A model reads more than the rendered view shows" { "hidden text" }
                }
            }
            td.number { (text::size(row.size_bytes)) }
            td { (text::time(row.changed_at, visit.engine.now())) }
            td { @if let Some(actor) = &row.actor { a href={ "/ui/actors/" (actor) } { (visible::short(&authors.short(actor))) } } }
        }
    }
}

fn pages(wanted: &Wanted, rows: &Rows, own: &str) -> Markup {
    let to = |page: usize| Wanted { page, ..wanted.clone() }.address(own);
    html! {
        @if rows.page > 1 || rows.has_next {
            nav.pages aria-label="Pages" {
                @if rows.page > 1 { a href=(to(rows.page - 1)) rel="prev" { "Previous page" } }
                span { "Page " (rows.page) @if let Some(count) = rows.pages_count { " of " (count) } }
                @if rows.has_next { a href=(to(rows.page + 1)) rel="next" { "Next page" } }
            }
        }
    }
}

fn about(visit: &Visit<'_>, store: &Store, own: &str) -> Result<Markup, Trouble> {
    let usage = visit.engine.usage(store.id)?;
    let limits = visit.engine.limits();
    let now = visit.engine.now();
    let (sessions, has_more) = sessions(visit, store)?;
    Ok(html! {
        h2 { "About" }
        dl {
            dt { "Memories" } dd { (text::grouped(usage.memories_count)) " of " (text::grouped(limits.memories_per_store_max))
                meter aria-label="Memories, of the limit" min="0" max=(limits.memories_per_store_max) value=(usage.memories_count) {} }
            dt { "Size" } dd { (text::size(usage.size_bytes)) " of " (text::size(limits.store_size_bytes_max))
                meter aria-label="Size, of the limit" min="0" max=(limits.store_size_bytes_max) value=(usage.size_bytes) {} }
            dt { "Created" } dd { (text::time(store.created_at, now)) }
            @if let Some(at) = store.archived_at { dt { "Archived" } dd { (text::time(at, now)) ": read-only" } }
            dt { "Id" } dd.mono { (store.id) }
        }
        h2 { "Policy" }
        dl {
            (manage::policy_rows(store.policy))
        }
        @let lazy = is_health_cheap(visit)?.then(|| format!("{own}/health"));
        section #health data-lazy=[lazy] aria-labelledby="health-title" {
            h2 #health-title { "Health" }
            p { a href={ (own) "/health" } { "Look for broken links and unlinked memories" } }
        }
        h2 { "Sessions" }
        @if sessions.is_empty() { p { "No session that you may see is attached." } }
        ul.plain { @for session in &sessions {
            li { a href={ "/ui/sessions/" (session.id) } { @if session.title.is_empty() { (session.id) } @else { (visible::short(&session.title)) } }
                " " small { (text::time(session.created_at, now)) } }
        } }
        @if has_more {
            p { a href="/ui/sessions" { "All sessions" } }
        }
    })
}

/// Returns whether the health of a store can be looked up for everybody who comes by. Links come from
/// all stores, so all of them must be small.
fn is_health_cheap(visit: &Visit<'_>) -> Result<bool, Trouble> {
    let stores = visit.stores(Archived::Show)?;
    if stores.len() > LAZY_STORES_MAX {
        return Ok(false);
    }
    let mut memories_count = 0;
    for store in stores {
        memories_count += visit.engine.usage(store.id)?.memories_count;
    }
    Ok(memories_count <= LAZY_MEMORIES_MAX)
}

/// Returns the newest sessions that have the store attached and that the visitor may know of.
fn sessions(visit: &Visit<'_>, store: &Store) -> Result<(Vec<Session>, bool), Trouble> {
    let key = match &visit.caller.principal {
        Principal::Key(key) => key.clone(),
        Principal::Session(session) => return Ok((vec![session.clone()], false)),
    };
    let query = SessionQuery {
        workspace: visit.caller.workspace,
        store: Some(store.id),
        archived: Archived::Hide,
        created: Span::default(),
        viewer: Some(key),
        order: Order::NewestFirst,
        after: None,
        limit: SESSIONS_MAX,
    };
    let found = visit.engine.sessions(&query)?;
    Ok((found.items, found.next.is_some()))
}
