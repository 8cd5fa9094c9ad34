//! Receipts: what redactions did, and the proof.

use maud::{Markup, html};
use quipu_core::model::{Proof, Receipt, ReceiptId};
use quipu_service::caller::Need;
use quipu_service::wire::{Audience, ReceiptBody};

use crate::form::address;
use crate::layout::{Room, page, trail};
use crate::reply::{Reply, Trouble};
use crate::sessions::Authors;
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::require_manager;

/// How many receipts a page lists.
const RECEIPTS_MAX: usize = 50;

/// How many ids of a receipt are listed; the file has all.
const IDS_MAX: usize = 100;

/// Lists the receipts of the workspace.
pub(super) fn list(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    visit.caller.require_workspace(Need::Manage)?;
    let before = visit.query.get("before").and_then(|id| id.parse().ok());
    let list = visit.engine.receipts(visit.caller.workspace, before, RECEIPTS_MAX)?;
    let (authors, now) = (Authors::new(visit), visit.engine.now());
    let content = html! {
        h1 { "Receipts" }
        @if list.items.is_empty() { p { "Nothing was redacted." } } @else {
            div.wide tabindex="0" role="region" aria-label="Receipts" { table {
                thead { tr {
                    th scope="col" { "When" } th scope="col" { "By" } th scope="col" { "Selected" }
                    th.number scope="col" { "Versions" } th scope="col" { "Found afterwards" }
                } }
                tbody { @for receipt in &list.items {
                    tr {
                        th scope="row" { a href={ "/ui/receipts/" (receipt.id) } {
                            (text::time(receipt.at, now))
                        } }
                        td { (authors.link(&receipt.by)) }
                        td { (receipt.selection) }
                        td.number { (receipt.versions.len()) }
                        td { (hits(receipt.proof.as_ref())) }
                    }
                } }
            } }
        }
        @if let Some(next) = list.next {
            @let next = next.to_string();
            p { a rel="next" href=(address("/ui/receipts", &[("before", &next)])) { "Older receipts" } }
        }
    };
    Ok(Reply::Page(page(visit, Room::Redact, "Receipts", &content)))
}

/// Returns the receipt in the path, if the visitor may see it: who may list all of them, and who redacted
/// and may still manage the stores.
fn receipt(visit: &Visit<'_>) -> Result<Receipt, Trouble> {
    let id = visit.parameter("receipt");
    let missing = || Trouble::NotFound(format!("No receipt has the id `{id}`."));
    require_manager(visit)?;
    let parsed: ReceiptId = id.parse().map_err(|_malformed| missing())?;
    let receipt = visit.engine.receipt(parsed).map_err(|_missing| missing())?;
    let may_manage = || receipt.stores.iter().all(|it| visit.caller.may_in(*it, Need::Manage));
    let is_own = receipt.by == visit.caller.actor && may_manage();
    let is_shown = receipt.workspace == visit.caller.workspace && (visit.is_admin() || is_own);
    if is_shown { Ok(receipt) } else { Err(missing()) }
}

/// Shows one receipt.
pub(super) fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let receipt = receipt(visit)?;
    let now = visit.engine.now();
    let steps: &[(&str, String)] = &[("Receipts", "/ui/receipts".to_owned())];
    let steps = if visit.is_admin() { steps } else { &[] };
    let left = receipt.proof.as_ref().and_then(|proof| proof.hits_left).unwrap_or(0);
    let content = html! {
        (trail(steps, "receipt"))
        h1 { "Receipt of " (text::exact(receipt.at)) }
        @if left > 0 {
            p.message role="alert" {
                (text::count(left, "row still holds", "rows still hold")) " what was redacted: a name that you \
                 have to change, or somebody wrote it again meanwhile. Redact it again."
            }
        }
        (about(visit, &receipt))
        (done(&receipt))
        h2 { "Proof" }
        @match &receipt.proof {
            None => p { "None yet: the erasing is not complete. " code { "quipu prune" } " completes it." },
            Some(proof) => {
                p { "Erased completely " (text::time(proof.at, now)) ". "
                    "Found by the same selection afterwards: " strong #hits { (hits(Some(proof))) } "." }
                ul.entries { @for file in &proof.scanned {
                    li { "Scanned " code { (file.name) } " (" (text::size(file.size_bytes)) ")" }
                } }
            }
        }
        p { a.button href={ "/ui/receipts/" (receipt.id) "/receipt.json" } { "Download as JSON" } }
    };
    Ok(Reply::Page(page(visit, Room::Redact, "Receipt", &content)))
}

fn hits(proof: Option<&Proof>) -> String {
    match proof.map(|proof| proof.hits_left) {
        None => "erasing is not complete".to_owned(),
        Some(None) => "not counted, because the redaction was interrupted".to_owned(),
        Some(Some(count)) => count.to_string(),
    }
}

fn about(visit: &Visit<'_>, receipt: &Receipt) -> Markup {
    let authors = Authors::new(visit);
    html! {
        dl {
            dt { "Receipt" } dd { code { (receipt.id) } }
            dt { "By" } dd { (authors.link(&receipt.by)) }
            @if let Some(reason) = &receipt.reason { dt { "Reason" } dd { (reason) } }
            dt { "Selected" } dd { (receipt.selection) }
            dt { "Stores" }
            dd { @for (place, id) in receipt.stores.iter().enumerate() {
                @if place > 0 { ", " }
                @match visit.engine.store(*id) {
                    Ok(store) => a href={ "/ui/stores/" (id) } { (visible::short(store.name.as_str())) },
                    Err(_) => code { (id) },
                }
            } }
            dt { "Redacted" }
            dd { (text::count(receipt.versions.len() as u64, "version", "versions")) }
            @if receipt.tombstones_count > 0 {
                dt { "Watched" }
                dd { (text::count(receipt.tombstones_count, "text", "texts")) ", should it come back" }
            }
            @if receipt.events_count > 0 {
                dt { "Events of sessions" } dd { (receipt.events_count) " redacted" }
            }
            @if receipt.definitions_count > 0 {
                dt { "Agents and environments" }
                dd { (text::count(receipt.definitions_count, "version", "versions")) " changed" }
            }
            @if receipt.refusals_count > 0 {
                dt { "Refused texts" } dd { (receipt.refusals_count) " removed" }
            }
        }
    }
}

fn done(receipt: &Receipt) -> Markup {
    let is_more = receipt.versions.len().max(receipt.heads.len()) > IDS_MAX;
    html! {
        @if !receipt.heads.is_empty() || !receipt.sessions.is_empty() || !receipt.remarks.is_empty() {
            h2 { "What was done, and what is left to do" }
            ul.entries {
                @for head in receipt.heads.iter().take(IDS_MAX) {
                    li { "The memory " code { (head.memory) } " was " (head.change.as_str().replace('_', " ")) }
                }
                @for session in receipt.sessions.iter().take(IDS_MAX) {
                    li { "The session " a href={ "/ui/sessions/" (session) } { (session) } " was changed" }
                }
                @for remark in &receipt.remarks { li { "Left: " (remark) } }
                @if !receipt.unreachable.is_empty() {
                    li { "Left: " (text::count(receipt.unreachable.len() as u64, "copy", "copies"))
                        " out of reach, such as backups; " code { "quipu receipts" } " names them" }
                }
            }
        }
        details {
            summary { "Versions" }
            ul.entries.mono { @for version in receipt.versions.iter().take(IDS_MAX) { li { (version) } } }
        }
        @if is_more { p { "The file has all ids." } }
    }
}

/// Returns a receipt as a file.
pub(super) fn download(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let receipt = receipt(visit)?;
    let body = ReceiptBody::new(&receipt, Audience::Remote);
    let bytes = serde_json::to_vec_pretty(&body).expect("texts and numbers can be written as JSON");
    let name = format!("{}.json", receipt.id);
    Ok(Reply::Download { name, kind: "application/json", bytes })
}
