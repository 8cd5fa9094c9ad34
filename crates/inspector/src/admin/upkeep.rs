//! Check, prune, back up, and restore deleted stores.

use maud::{Markup, html};
use quipu_core::engine::Remedy;
use quipu_core::model::{DeletedStore, Name};

use crate::form::address;
use crate::host::Backup;
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::{Tab, days, page, require_owner};

const UPKEEP: &str = "/ui/admin/upkeep";
/// How many problems of a check are listed.
const PROBLEMS_MAX: usize = 200;
const DELETED_MAX: usize = 100;

/// Offers what can be done.
pub(super) fn offer(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_owner(visit)?;
    let deleted = visit.engine.deleted_stores(visit.caller.workspace)?;
    // The list of backups is read from the disk.
    visit.engine.require_blocking()?;
    let action = |path: &str, words: &str, text: &str| {
        html! {
            form method="post" action={ (UPKEEP) "/" (path) } {
                (visit.token_field())
                p { button { (words) } " " (text) }
            }
        }
    };
    let content = html! {
        @if let Some(done) = done(visit) { p.message role="status" { (done) } }
        section aria-labelledby="actions" {
            h2 #actions { "Actions" }
            (action("check", "Check", "reads everything and verifies it; changes nothing."))
            (action("prune", "Prune now", "removes what is past its retention, as the server does from time to time."))
            @match visit.host.backups()? {
                Some(backups) => {
                    (action("backup", "Back up", "writes a copy of everything to the directory `backups` of the data directory."))
                    (list(&backups))
                }
                None => {}
            }
        }
        (deleted_list(visit, &deleted))
    };
    page(visit, Tab::Upkeep, "Upkeep", &content)
}

/// Says what the action before this page did.
fn done(visit: &Visit<'_>) -> Option<String> {
    let number = |name: &str| {
        visit.query.get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
    };
    match visit.query.get("done")? {
        "backup" => Some("The backup is written.".to_owned()),
        "restore" => Some("The store is restored.".to_owned()),
        "prune" => Some(format!(
            "Pruned: {}, {}, {}, {}.",
            text::count(number("versions"), "version", "versions"),
            text::count(number("memories"), "expired memory", "expired memories"),
            text::count(number("sessions"), "session", "sessions"),
            text::count(number("stores"), "store", "stores"),
        )),
        _ => None,
    }
}

fn list(backups: &[Backup]) -> Markup {
    html! {
        @if !backups.is_empty() {
            h3 { "Backups" }
            p { small { "Redactions do not reach into backups; delete those that you no longer need. "
                code { "quipu restore-backup FILE" } " restores one." } }
            ul #backups { @for backup in backups { li { span.mono { (visible::short(backup.name.as_str())) } " " small { (text::size(backup.size_bytes)) } } } }
        }
    }
}

fn deleted_list(visit: &Visit<'_>, deleted: &[DeletedStore]) -> Markup {
    let kept_for = visit.engine.limits().deleted_stores_kept_for;
    let now = visit.engine.now();
    html! {
        section aria-labelledby="deleted" {
            h2 #deleted { "Deleted stores" }
            p { "They can be restored for " (days(kept_for)) "." }
            @if deleted.is_empty() { p { "There are none." } }
            ul { @for DeletedStore { store, memories_count, deleted_at } in deleted.iter().take(DELETED_MAX) { li {
                strong { (visible::short(store.name.as_str())) } ", " (text::count(*memories_count, "memory", "memories"))
                ", deleted " (text::time(*deleted_at, now)) ", until " (text::exact(deleted_at.plus(kept_for)))
                form.row method="post" action={ (UPKEEP) "/restore" } {
                    (visit.token_field())
                    input type="hidden" name="store" value=(store.id);
                    label { "Under another name (optional)" input name="name" maxlength="255" autocomplete="off"; }
                    button aria-label={ "Restore " (visible::plain(store.name.as_str())) } { "Restore" }
                }
            } } }
        }
    }
}

/// Checks everything. This answers with a page, as it changes nothing that a reload could repeat.
pub(super) fn check(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_owner(visit)?;
    let report = visit.engine.check()?;
    let content = html! {
        @if report.problems.is_empty() {
            p role="status" { "Everything is in order." }
        } @else {
            p.message role="alert" { (text::count(report.problems.len() as u64, "problem", "problems")) " found." }
            ul #problems { @for problem in report.problems.iter().take(PROBLEMS_MAX) { li {
                (problem.message) ". "
                @match problem.remedy {
                    Remedy::Rebuild => { code { "quipu check" } " on the server repairs it." }
                    Remedy::None => { "Only a backup helps: stop everything that uses the data, then run " code { "quipu restore-backup FILE" } "." }
                }
            } } }
        }
        dl {
            dt { "Stores" } dd { (text::grouped(report.stores_count as u64)) }
            dt { "Memories" } dd { (text::grouped(report.memories_count as u64)) }
            dt { "Versions" } dd { (text::grouped(report.versions_count as u64)) }
            dt { "Changes" } dd { (text::grouped(report.changes_count as u64)) }
        }
        @if report.is_erasing_pending { p { "Removed text may still be on disk; pruning finishes erasing it." } }
        p { a href=(UPKEEP) { "Back" } }
    };
    page(visit, Tab::Upkeep, "Check", &content)
}

/// Prunes now, unless the clock looks wrong: then what is not old would be removed.
pub(super) fn prune(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_owner(visit)?;
    if let Some(gap) = visit.engine.clock_gap()? {
        visit.engine.finish_erasing()?;
        return Err(Trouble::Invalid(format!(
            "Nothing was pruned: according to the clock, nothing was written for {}. If the clock is \
             right, run `quipu prune --trust-clock` on the server.",
            text::count(gap.as_secs() / (24 * 60 * 60), "day", "days")
        )));
    }
    let pruned = visit.engine.prune()?;
    let numbers = [
        ("done", "prune".to_owned()),
        ("versions", pruned.versions_count.to_string()),
        ("memories", pruned.memories_count.to_string()),
        ("sessions", pruned.sessions_count.to_string()),
        ("stores", pruned.stores_count.to_string()),
    ];
    Ok(Reply::SeeOther(address(UPKEEP, &numbers)))
}

/// Writes a backup.
pub(super) fn back_up(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_owner(visit)?;
    visit.host.back_up(visit.engine.engine(), visit.caller.workspace)?;
    Ok(Reply::SeeOther(address(UPKEEP, &[("done", "backup")])))
}

/// Restores a deleted store.
pub(super) fn restore(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_owner(visit)?;
    let id = visit.form.get("store").unwrap_or_default();
    let name = visit.form.get("name").map(Name::new).transpose();
    let name = name.map_err(|error| Trouble::Invalid(format!("Name: {error}")))?;
    visit.engine.restore_store(visit.caller.workspace, id, name.as_ref())?;
    Ok(Reply::SeeOther(address(UPKEEP, &[("done", "restore")])))
}
