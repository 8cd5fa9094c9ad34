//! What the next pruning removes, and which rules it follows.

use maud::{Markup, html};
use quipu_core::backend::{Archived, Span, VersionFilter, VersionQuery};
use quipu_core::model::{Store, Timestamp, View};

use crate::paging::Paging;
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::{Tab, days, page, require_admin};

const STORES_PER_PAGE: usize = 20;
/// How many versions and memories of a store are counted.
const COUNTED_MAX: usize = 1_000;

/// What pruning may remove from a store.
struct Due {
    versions_count: usize,
    versions_size_bytes: u64,
    unused_count: usize,
    horizon: Option<Timestamp>,
}

/// Shows the rules, and what is due in each store.
pub(super) fn forecast(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_admin(visit)?;
    let limits = visit.engine.limits();
    let stores = visit.stores(Archived::Show)?;
    let paging = Paging::new(&visit.query, STORES_PER_PAGE);
    let mut rows = Vec::new();
    for store in paging.cut(&stores) {
        rows.push(row(visit, store, &due(visit, store)?));
    }
    let content = html! {
        ul {
            li { "Every version is kept for " (days(limits.versions_kept_for)) ", and the newest "
                (limits.versions_kept_min) " of a memory that exists for as long as it does." }
            li { "A deleted store can be restored for " (days(limits.deleted_stores_kept_for)) "." }
            li { "A session that has ended is kept for " (days(limits.sessions_kept_for))
                ", and longer if a version names it." }
        }
        p { "The server prunes by itself. The counts are upper bounds: the versions that are old enough, \
             of which the newest of each living memory stay." }
        div.wide tabindex="0" role="region" aria-label="What is due" { table #due {
            thead { tr {
                th scope="col" { "Store" } th scope="col" { "Old versions" } th scope="col" { "Their size" }
                th scope="col" { "Memories that expire" } th scope="col" { "History is complete since" }
            } }
            tbody { @for row in &rows { (row) } }
        } }
        (paging.links("/ui/admin/retention", &[], stores.len()))
        p { a href="/ui/admin/upkeep" { "Prune now" } }
    };
    page(visit, Tab::Retention, "Retention", &content)
}

fn due(visit: &Visit<'_>, store: &Store) -> Result<Due, Trouble> {
    let now = visit.engine.now();
    let last = now.minus(visit.engine.limits().versions_kept_for);
    let filter =
        VersionFilter { created: Span { last, ..Span::default() }, ..VersionFilter::default() };
    let query = VersionQuery { filter, before: None, limit: COUNTED_MAX, view: View::Basic };
    let versions = visit.engine.versions(store.id, &query)?.items;
    let (unused_count, horizon) = visit.engine.read(|reader| {
        let unused_count = match store.policy.expire_after() {
            Some(period) => reader.unused_memories(store.id, now.minus(period), COUNTED_MAX)?.len(),
            None => 0,
        };
        Ok((unused_count, reader.horizon(store.id)?))
    })?;
    Ok(Due {
        versions_count: versions.len(),
        versions_size_bytes: versions.iter().filter_map(|version| version.size_bytes).sum(),
        unused_count,
        horizon,
    })
}

fn row(visit: &Visit<'_>, store: &Store, due: &Due) -> Markup {
    let counted = |count: usize| match count {
        COUNTED_MAX => format!("{} or more", text::grouped(count as u64)),
        count => text::grouped(count as u64),
    };
    html! { tr {
        th scope="row" { a href={ "/ui/stores/" (store.id) } { (visible::short(store.name.as_str())) } }
        td { (counted(due.versions_count)) }
        td { (text::size(due.versions_size_bytes)) @if due.versions_count == COUNTED_MAX { " or more" } }
        td { @match store.policy.expire_after_days {
            Some(days) => { (counted(due.unused_count)) " (unused for " (text::count(days, "day", "days")) ")" }
            None => "never"
        } }
        td { @match due.horizon {
            Some(at) => (text::time(at, visit.engine.now())),
            None => "the beginning"
        } }
    } }
}
