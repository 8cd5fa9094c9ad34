//! Credentials in memories: where they are, and never what they are.

use std::ops::Bound;

use maud::{Markup, html};
use quipu_core::backend::{Archived, MemoryQuery};
use quipu_core::model::{Directory, Memory, Store, View};
use quipu_screen::Finding;
use quipu_service::caller::Need;

use crate::form::address;
use crate::paging::Paging;
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::{Tab, page, require_admin};

const CREDENTIALS: &str = "/ui/admin/credentials";
const STORES_PER_PAGE: usize = 50;
/// How many memories one request reads, and how much text: screening 4 MB takes 20 ms.
const MEMORIES_MAX: usize = 250;
const SIZE_BYTES_MAX: u64 = 4 << 20;

/// Screens a part of a store; without a store, offers the stores.
pub(super) fn scan(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_admin(visit)?;
    let content = match visit.query.get("store") {
        Some(id) => screened(visit, &visit.store_with_id(id, Need::Manage)?)?,
        None => choice(visit)?,
    };
    page(visit, Tab::Credentials, "Credentials found", &content)
}

fn choice(visit: &Visit<'_>) -> Result<Markup, Trouble> {
    let stores = visit.stores(Archived::Show)?;
    let paging = Paging::new(&visit.query, STORES_PER_PAGE);
    Ok(html! {
        p { "What is written is screened by the policy of its store. Here you can screen what is there \
             already, one store at a time." }
        ul { @for store in paging.cut(&stores) {
            li {
                a href=(address(CREDENTIALS, &[("store", store.id.to_string())])) { "Screen " (visible::short(store.name.as_str())) }
                " " small { "on writing: " (store.policy.secrets) }
            }
        } }
        (paging.links(CREDENTIALS, &[], stores.len()))
    })
}

fn screened(visit: &Visit<'_>, store: &Store) -> Result<Markup, Trouble> {
    let after = visit.query.get("after");
    let query = MemoryQuery {
        directory: Directory::root(),
        start: after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.to_owned())),
        limit: MEMORIES_MAX,
        view: View::Full,
    };
    let memories = visit.engine.read(|reader| reader.memories(store.id, &query))?;
    let mut size_bytes = 0;
    let mut screened_count = 0_usize;
    let mut found = Vec::new();
    for memory in &memories {
        if screened_count > 0 && size_bytes + memory.size_bytes > SIZE_BYTES_MAX {
            break;
        }
        size_bytes += memory.size_bytes;
        screened_count += 1;
        let text = memory.content.as_ref().map_or("", |content| content.as_str());
        let findings = quipu_screen::findings(text);
        if !findings.is_empty() {
            found.push((memory, findings));
        }
    }
    let last = screened_count.checked_sub(1).and_then(|place| memories.get(place));
    let has_more = screened_count < memories.len() || memories.len() == MEMORIES_MAX;
    Ok(html! {
        p { (text::count(screened_count as u64, "memory", "memories")) " of "
            a href={ "/ui/stores/" (store.id) } { (visible::short(store.name.as_str())) } " screened (" (text::size(size_bytes)) ")"
            @if let Some(after) = after { ", after " span.mono { (after) } }
            "." }
        @if found.is_empty() { p { "No credentials found in them." } } @else { (table(visit, store, &found)) }
        @match last.filter(|_| has_more) {
            Some(last) => {
                @let next = [("store", store.id.to_string()), ("after", last.path.to_string())];
                p { a.button rel="next" href=(address(CREDENTIALS, &next)) { "Screen the next ones" } }
            }
            None => p { "The whole store is screened." }
        }
        p { a href=(CREDENTIALS) { "Another store" } }
    })
}

fn table(visit: &Visit<'_>, store: &Store, found: &[(&Memory, Vec<Finding>)]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Credentials found" { table #found {
            thead { tr {
                th scope="col" { "Memory" } th scope="col" { "What" } th scope="col" { "Changed" }
            } }
            tbody { @for (memory, findings) in found { tr {
                th scope="row" { a href={ "/ui/stores/" (store.id) "/memories/" (memory.id) } { (memory.path) } }
                td { @for (place, finding) in findings.iter().enumerate() {
                    @if place > 0 { ", " }
                    (finding.kind.as_str()) " in " (finding.place())
                } }
                td { (text::time(memory.updated_at, visit.engine.now())) }
            } } }
        } }
    }
}
