//! What a redaction would do, as tables.

use maud::{Markup, html};
use quipu_core::engine::{Heads, PlannedHead, RedactionPlan, StorePlan};

use crate::text;
use crate::visible;
use crate::visit::Visit;

/// How many versions of a store are listed before the rest is only counted.
const LISTED_MAX: usize = 100;

/// Returns a plan: counts, then what is found in each store, then what is out of reach.
pub(super) fn listed(visit: &Visit<'_>, plan: &RedactionPlan) -> Markup {
    let count = |count: usize, one: &str, many: &str| text::count(count as u64, one, many);
    html! {
        p #counts {
            "Selected: " (plan.selection) ". "
            strong {
                (count(plan.versions_count(), "version", "versions")) ", "
                (count(plan.heads_count(), "live memory", "live memories")) ", "
                (count(plan.sessions.len(), "session", "sessions"))
            }
        }
        @if plan.hits_count() == 0 {
            p { "Nothing holds it. Redacting a text that is nowhere gives you a receipt that says so." }
        }
        @for store in plan.stores.iter().filter(|store| is_hit(store)) {
            (listed_store(visit, plan, store))
        }
        (elsewhere(plan))
        (out_of_reach(visit, plan))
    }
}

fn is_hit(store: &StorePlan) -> bool {
    !store.versions.is_empty() || !store.refusals.is_empty() || !store.fields.is_empty()
}

fn listed_store(visit: &Visit<'_>, plan: &RedactionPlan, store: &StorePlan) -> Markup {
    let now = visit.engine.now();
    let more_count = store.versions.len().saturating_sub(LISTED_MAX);
    let base = format!("/ui/stores/{}/memories", store.store);
    let label = format!("Versions in {}", visible::plain(store.name.as_str()));
    html! {
        h2 { "In " (visible::short(store.name.as_str())) }
        @if !store.versions.is_empty() {
            div.wide tabindex="0" role="region" aria-label=(label) { table {
                thead { tr {
                    th scope="col" { "Version" } th scope="col" { "Memory" } th scope="col" { "Found in" }
                } }
                tbody { @for version in store.versions.iter().take(LISTED_MAX) {
                    tr {
                        td { a href={ (base) "/" (version.memory) "/versions/" (version.id) } {
                            (text::time(version.created_at, now))
                        } }
                        td { a href={ (base) "/" (version.memory) "/history" } {
                            @match &version.path {
                                Some(path) => (path),
                                None => (version.memory),
                            }
                        } }
                        td { @for (place, carrier) in version.carriers.iter().enumerate() {
                            @if place > 0 { ", " } (carrier.as_str())
                        } }
                    }
                } }
            } }
        }
        @if more_count > 0 { p { (text::count(more_count as u64, "more version", "more versions")) "." } }
        @if !store.heads.is_empty() {
            h3 { "Live memories" }
            ul.entries { @for head in store.heads.iter().take(LISTED_MAX) {
                li { a href={ (base) "/" (head.memory) } { (head.path) } " " (becomes(plan, head)) }
            } }
        }
        @if !store.refusals.is_empty() {
            p { (text::count(store.refusals.len() as u64, "refused text", "refused texts"))
                " would be removed from the log of refusals." }
        }
        @if !store.fields.is_empty() {
            p { "It would be taken out of the store's " (store.fields.join(" and ")) "." }
        }
    }
}

fn becomes(plan: &RedactionPlan, head: &PlannedHead) -> Markup {
    let word = match plan.heads {
        Heads::TakeOut => head.change.as_str().replace('_', " "),
        Heads::Refuse => "in the way".to_owned(),
    };
    html! { span.badge { (word) } }
}

/// Returns what is found outside of the versions.
fn elsewhere(plan: &RedactionPlan) -> Markup {
    html! {
        @if !plan.sessions.is_empty()
            || !plan.definitions.is_empty()
            || !plan.receipts.is_empty()
            || !plan.names.is_empty()
            || plan.traces_count > 0
        {
            h2 { "Elsewhere" }
            ul.entries {
                @for hit in &plan.sessions {
                    @if !hit.fields.is_empty() {
                        li { "Taken out of the " (hit.fields.join(" and ")) " of the session "
                            a href={ "/ui/sessions/" (hit.session) } { (hit.session) } }
                    }
                    @if !hit.events.is_empty() {
                        li { (text::count(hit.events.len() as u64, "event", "events")) " redacted of the session "
                            a href={ "/ui/sessions/" (hit.session) } { (hit.session) } }
                    }
                }
                @for hit in &plan.definitions {
                    li { "Taken out of version " (hit.version) " of " code { (hit.definition) } }
                }
                @for receipt in &plan.receipts {
                    li { "Taken out of the receipt " a href={ "/ui/receipts/" (receipt) } { (receipt) } }
                }
                @if plan.traces_count > 0 {
                    li { (text::count(plan.traces_count as u64, "entry", "entries")) " of hooks removed" }
                }
                @for name in &plan.names {
                    li { strong { "Not changed: " } (name) " holds it; change it yourself" }
                }
            }
        }
    }
}

/// Returns what the redaction does not touch. Files of the host are counted, not named.
fn out_of_reach(visit: &Visit<'_>, plan: &RedactionPlan) -> Markup {
    let now = visit.engine.now();
    let is_all_reached = plan.others.is_empty()
        && plan.copies_made.is_empty()
        && plan.deleted_stores.is_empty()
        && plan.unreachable.is_empty();
    html! {
        @if !is_all_reached {
            h2 { "Out of reach" }
            ul.entries {
                @for other in &plan.others {
                    li {
                        (text::count(other.versions_count as u64, "version", "versions")) " of the store "
                        a href={ "/ui/stores/" (other.store) } { (visible::short(other.name.as_str())) } ", which is not selected"
                        @if let Some(origin) = &other.copied_from { ", copied from " code { (origin) } }
                    }
                }
                @for copy in plan.copies_made.iter().take(LISTED_MAX) {
                    li { "The " (copy.kind.as_str()) " of " (text::time(copy.at, now)) }
                }
                @if plan.copies_made.len() > LISTED_MAX {
                    li { (plan.copies_made.len() - LISTED_MAX) " more backups and exports" }
                }
                @for store in &plan.deleted_stores {
                    li { "The deleted store " code { (store) } ", which is not searched" }
                }
                @if !plan.unreachable.is_empty() {
                    li { (text::count(plan.unreachable.len() as u64, "other file", "other files"))
                        " of the server; " code { "quipu redact --dry-run" } " names them" }
                }
            }
        }
    }
}
