//! What differs between a moment and now.

use maud::{Markup, html};
use quipu_core::engine::{Difference, compare};
use quipu_core::model::{Memory, Store};
use quipu_service::wire::DifferenceBody;

use crate::form::address;
use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::visit::Visit;

use super::{Visited, directory, head, memory_address, redacted_since};

/// How many differences a page lists.
const DIFFERENCES_MAX: usize = 100;

/// Shows what differs.
pub(super) fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let visited = Visited::required(visit)?;
    let directory = directory(visit.query.get("dir"))?;
    let (store, then) = (&visited.store, &visited.then);
    let mut differences = compare(&then.engine.tree(store.id)?, &visit.engine.tree(store.id)?);
    // The trees are compared first: what left the directory or came into it has moved.
    let is_in = |memory: Option<&Memory>| memory.is_some_and(|it| directory.contains(&it.path));
    differences.retain(|it| is_in(it.before()) || is_in(it.after()));
    let skipped: usize = visit.query.get("skip").and_then(|it| it.parse().ok()).unwrap_or(0);
    let shown = differences.iter().skip(skipped).take(DIFFERENCES_MAX);
    let end = skipped.saturating_add(DIFFERENCES_MAX);
    let next = (end < differences.len()).then(|| {
        visited.address("/changes", &[("dir", directory.as_str()), ("skip", &end.to_string())])
    });
    let count = |kind: &str| {
        differences.iter().filter(|difference| DifferenceBody::kind(difference) == kind).count()
    };
    let content = html! {
        (head(visit, &visited, "changes"))
        (redacted_since(&visited)?)
        @if !directory.is_root() { p { "In " code { (directory) } "." } }
        p #counts {
            "Since then: " (count("added")) " added, " (count("removed")) " removed, "
            (count("changed")) " changed, " (count("moved")) " moved."
        }
        ul.entries { @for difference in shown { li { (listed(store, &visited, difference)) } } }
        @if let Some(next) = next { p { a rel="next" href=(next) { "Next page" } } }
        @if visited.may_restore(visit) && !differences.is_empty() {
            @let path = directory.as_str().trim_end_matches('/');
            p.actions { a.button href=(visited.restore_address(path)) { "Plan to restore" } }
        }
    };
    let title = format!("{} · changes since then", store.name);
    Ok(Reply::Page(page(visit, Room::Stores, &title, &content)))
}

fn listed(store: &Store, visited: &Visited, difference: &Difference) -> Markup {
    let history = |memory: &Memory, from: Option<&Memory>| {
        let base = format!("/ui/stores/{}/memories/{}/history", store.id, memory.id);
        // Without a version then, the page shows the newest change.
        let from = from.filter(|from| from.id == memory.id).map(|from| from.version.to_string());
        let to = from.as_ref().map(|_| memory.version.to_string());
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        address(&base, &[("a", &from), ("b", &to)])
    };
    let kind = html! { span.badge { (DifferenceBody::kind(difference)) } " " };
    match difference {
        Difference::Added(new) => html! { (kind) a href=(history(new, None)) { (new.path) } },
        Difference::Removed(old) => {
            html! { (kind) a href=(memory_address(visited, old.id)) { (old.path) } }
        }
        Difference::Changed { old, new } => {
            html! { (kind) a href=(history(new, Some(old))) { (new.path) } }
        }
        Difference::Moved { old, new } => html! {
            (kind) (old.path) " → " a href=(history(new, Some(old))) { (new.path) }
            @if old.hash != new.hash { " " small { "its text changed too" } }
        },
    }
}
