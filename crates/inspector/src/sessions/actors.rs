//! All authors: keys, people, services and sessions that changed something.

use std::collections::HashMap;

use maud::{Markup, html};
use quipu_core::backend::{Archived, VersionFilter, VersionQuery};
use quipu_core::engine::ChangeSelection;
use quipu_core::model::{Actor, Store, Timestamp, View};
use quipu_service::caller::Need;

use crate::form::address;
use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::changes::{Activity, Review};
use super::{Authors, Wanted, tabs};

/// How many of the newest changes are looked at to list authors, in all stores together. Versions are not
/// indexed by author.
const VERSIONS_MAX: usize = 4_000;

/// How many authors are listed.
const ACTORS_MAX: usize = 200;

/// Who made the newest changes.
#[derive(Debug, Default)]
pub(super) struct Recent {
    authors: HashMap<Actor, (Timestamp, u64)>,
    /// Whether older changes were left out.
    is_partial: bool,
}

impl Recent {
    /// Looks at the newest changes of all stores that the visitor may read.
    pub(super) fn new(visit: &Visit<'_>) -> Result<Self, Trouble> {
        let stores = visit.stores(Archived::Show)?;
        let limit = VERSIONS_MAX / stores.len().max(1);
        let mut recent = Self::default();
        for store in &stores {
            let filter = VersionFilter::default();
            let query = VersionQuery { filter, before: None, limit, view: View::Basic };
            let versions = visit.engine.versions(store.id, &query)?;
            recent.is_partial |= versions.next.is_some();
            for version in versions.items {
                let seen = recent.authors.entry(version.actor).or_insert((version.created_at, 0));
                seen.0 = seen.0.max(version.created_at);
                seen.1 += 1;
            }
        }
        Ok(recent)
    }

    /// Returns when an author made its last change, if that is among the newest ones.
    pub(super) fn last_change(&self, actor: &Actor) -> Option<Timestamp> {
        self.authors.get(actor).map(|(at, _)| *at)
    }
}

/// Lists the authors of the newest changes.
pub(super) fn list(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let recent = Recent::new(visit)?;
    let authors = Authors::new(visit);
    let mut listed: Vec<_> = recent.authors.iter().collect();
    listed.sort_by_key(|(_, (at, _))| std::cmp::Reverse(*at));
    let more_count = listed.len().saturating_sub(ACTORS_MAX);
    let now = visit.engine.now();
    let content = html! {
        h1 { "Authors" }
        (tabs("actors"))
        @if recent.is_partial {
            p { "Authors of the newest changes; an author that has made none of them has its page under its \
                 id, such as " code { "/ui/actors/user_ada" } "." }
        }
        @if listed.is_empty() { p { "Nobody has changed anything yet." } } @else {
            div.wide tabindex="0" role="region" aria-label="Authors" { table {
                thead { tr {
                    th scope="col" { "Author" } th scope="col" { "Kind" } th scope="col" { "Last change" }
                    th.number scope="col" { "Changes" }
                } }
                tbody { @for (actor, (at, count)) in listed.iter().take(ACTORS_MAX) {
                    tr {
                        th scope="row" { (authors.link(actor)) }
                        td { (kind(actor)) }
                        td { (text::time(*at, now)) }
                        td.number { (text::grouped(*count)) }
                    }
                } }
            } }
        }
        @if more_count > 0 { p { (text::count(more_count as u64, "author", "authors")) " more." } }
    };
    Ok(Reply::Page(page(visit, Room::Sessions, "Authors", &content)))
}

fn kind(actor: &Actor) -> &'static str {
    match actor {
        Actor::Session(_) => "session",
        Actor::ApiKey(_) => "key",
        Actor::User(_) => "person",
        Actor::ServiceAccount(_) => "service",
    }
}

/// Shows an author and what it changed in the stores that the visitor may read.
pub(super) fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let id = visit.parameter("actor");
    let actor: Actor = id.parse().map_err(|_malformed| no_author(id))?;
    let authors = Authors::new(visit);
    let home = authors.address(&actor);
    if home.starts_with("/ui/sessions/") {
        let pairs: Vec<_> = visit.query.pairs().collect();
        return Ok(Reply::SeeOther(address(&home, &pairs)));
    }
    let stores = visit.stores(Archived::Show)?;
    let wanted = Wanted::new(visit, actor, &visit.query)?;
    require_known(visit, &stores, &wanted)?;
    let name = authors.name(&wanted.actor);
    let sessions_count = wanted.selection.actors.iter().filter(|it| is_seen(visit, it)).count();
    let content = html! {
        h1 { (visible::short(&name)) }
        dl {
            dt { "Author" } dd { code { (wanted.actor) } }
            dt { "Kind" } dd { (kind(&wanted.actor)) }
            @if sessions_count > 0 {
                dt { "Sessions" }
                dd { (text::count(sessions_count as u64, "session", "sessions"))
                    " of this key, whose changes are listed here too" }
            }
        }
        @if let (Actor::ApiKey(key), true) = (&wanted.actor, visit.is_admin()) {
            p.actions { a.button href={ "/ui/admin/keys/" (key) "/revoke" } { "Revoke this key…" } }
        }
        (change_section(visit, &wanted, &stores, &home)?)
    };
    Ok(Reply::Page(page(visit, Room::Sessions, &format!("{name} · author"), &content)))
}

fn no_author(id: &str) -> Trouble {
    Trouble::NotFound(format!("No author has the id `{id}`. The list shows who wrote."))
}

/// Fails for a visitor that is limited to some stores if the author has changed none of these, at any time.
/// The visitor knows of the authors of its stores alone: a page about any other would tell the name of a key.
pub(crate) fn require_known(
    visit: &Visit<'_>,
    stores: &[Store],
    wanted: &Wanted,
) -> Result<(), Trouble> {
    let is_own = wanted.actor == visit.caller.actor;
    if visit.caller.is_unlimited() || is_own || is_seen(visit, &wanted.actor) {
        return Ok(());
    }
    let ever =
        ChangeSelection { actors: wanted.selection.actors.clone(), ..ChangeSelection::default() };
    let ever = Wanted { actor: wanted.actor.clone(), selection: ever };
    for store in stores {
        if Activity::of(visit, store, &ever)?.is_some() {
            return Ok(());
        }
    }
    Err(no_author(&wanted.actor.to_string()))
}

/// Returns whether an author is a session that the visitor may know of.
fn is_seen(visit: &Visit<'_>, actor: &Actor) -> bool {
    match actor {
        Actor::Session(id) => {
            visit.engine.session(*id).is_ok_and(|session| visit.caller.sees(&session))
        }
        Actor::ApiKey(_) | Actor::User(_) | Actor::ServiceAccount(_) => false,
    }
}

/// Returns what an author changed: a table of stores, then one of them as differences.
pub(super) fn change_section(
    visit: &Visit<'_>,
    wanted: &Wanted,
    stores: &[Store],
    here: &str,
) -> Result<Markup, Trouble> {
    let mut active = Vec::new();
    for store in stores {
        active.extend(Activity::of(visit, store, wanted)?.map(|activity| (store, activity)));
    }
    active.sort_by_key(|(_, activity)| std::cmp::Reverse(activity.last));
    let chosen = visit.query.get("store");
    let shown = active.iter().find(|(store, _)| Some(store.id.to_string().as_str()) == chosen);
    let shown = shown.or_else(|| active.first().filter(|_| chosen.is_none()));
    let now = visit.engine.now();
    Ok(html! {
        h2 { "What it changed" }
        @if visit.query.get("done").is_some() {
            p.message role="status" { "Done. This is what changed; it can be taken back below." }
        }
        (conditions(visit, here))
        @if active.is_empty() {
            p { "It has changed nothing that you may read, with these conditions." }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Changes by store" { table {
                thead { tr {
                    th scope="col" { "Store" } th scope="col" { "First change" }
                    th scope="col" { "Last change" } th.number scope="col" { "Changes" }
                } }
                tbody { @for (store, activity) in &active {
                    tr {
                        th scope="row" { a href=(wanted.address(here, store)) { (visible::short(store.name.as_str())) } }
                        (activity.cells(now))
                    }
                } }
            } }
        }
        @if let Some((store, _)) = shown { (reviewed(visit, wanted, store, here)?) }
    })
}

/// Returns the form that selects among the changes.
fn conditions(visit: &Visit<'_>, here: &str) -> Markup {
    let value = |name: &str| visit.query.get(name).map(str::to_owned);
    html! {
        form.row action=(here) {
            @if let Some(store) = value("store") { input type="hidden" name="store" value=(store); }
            label { "Since" input name="since" value=[value("since")] placeholder="2h"; }
            label { "Until" input name="until" value=[value("until")] placeholder="2026-11-15"; }
            label { "Path" input name="path" value=[value("path")] placeholder="/projects"; }
            button { "Select" }
        }
    }
}

fn reviewed(
    visit: &Visit<'_>,
    wanted: &Wanted,
    store: &Store,
    here: &str,
) -> Result<Markup, Trouble> {
    let before = visit.query.get("before").and_then(|id| id.parse().ok());
    let review = Review::new(visit, store, wanted, before)?;
    let may_change = visit.may_change(store);
    let may_redact = visit.caller.may_in(store.id, Need::Manage);
    Ok(html! {
        section #changes aria-labelledby="changes-title" {
            h2 #changes-title { "Changes in " (visible::short(store.name.as_str())) }
            @if may_change || may_redact {
                p.actions {
                    @if may_change {
                        a.button href=(wanted.address("/ui/revert", store)) { "Plan a revert" } " "
                    }
                    @if may_redact {
                        a.button href=(wanted.address("/ui/redact", store)) { "Redact what it wrote" }
                    }
                }
            }
            (review.listed(store, &wanted.address(here, store)))
        }
    })
}
