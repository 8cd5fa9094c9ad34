//! Administration: the state of the server, keys, webhooks, retention, and what keeps it healthy.
//!
//! Keys and stores belong to a workspace, and so does an administrator. Webhooks, backups, pruning and
//! checks concern the whole data directory, so only administrators of its first workspace see them.

mod credentials;
mod keys;
mod retention;
mod upkeep;
mod webhooks;

use maud::{Markup, html};
use quipu_core::backend::Condition;
use quipu_core::settings::Limits;
use quipu_service::caller::Need;

use crate::layout::{self, Room};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visit::Visit;
use crate::{Page, changes, shows};

/// The pages of this module.
pub(crate) static PAGES: [Page; 14] = [
    shows("/ui/admin", state),
    shows("/ui/admin/keys", keys::list),
    changes("/ui/admin/keys", keys::create),
    shows("/ui/admin/keys/{key}/revoke", keys::confirm),
    changes("/ui/admin/keys/{key}/revoke", keys::revoke),
    shows("/ui/admin/webhooks", webhooks::list),
    changes("/ui/admin/webhooks", webhooks::test),
    shows("/ui/admin/retention", retention::forecast),
    shows("/ui/admin/credentials", credentials::scan),
    shows("/ui/admin/upkeep", upkeep::offer),
    changes("/ui/admin/upkeep/check", upkeep::check),
    changes("/ui/admin/upkeep/prune", upkeep::prune),
    changes("/ui/admin/upkeep/backup", upkeep::back_up),
    changes("/ui/admin/upkeep/restore", upkeep::restore),
];

/// A part of the administration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    State,
    Keys,
    Webhooks,
    Retention,
    Credentials,
    Upkeep,
}

impl Tab {
    const ALL: [(Self, &str, &str); 6] = [
        (Self::State, "/ui/admin", "State"),
        (Self::Keys, "/ui/admin/keys", "Keys"),
        (Self::Webhooks, "/ui/admin/webhooks", "Webhooks"),
        (Self::Retention, "/ui/admin/retention", "Retention"),
        (Self::Credentials, "/ui/admin/credentials", "Credentials found"),
        (Self::Upkeep, "/ui/admin/upkeep", "Upkeep"),
    ];

    /// Returns whether it concerns more than one workspace.
    fn is_of_server(self) -> bool {
        match self {
            Self::Webhooks | Self::Upkeep => true,
            Self::State | Self::Keys | Self::Retention | Self::Credentials => false,
        }
    }
}

/// Fails unless the visitor administers the workspace.
fn require_admin(visit: &Visit<'_>) -> Result<(), Trouble> {
    Ok(visit.caller.require_workspace(Need::Manage)?)
}

/// Fails unless the visitor administers the server.
fn require_owner(visit: &Visit<'_>) -> Result<(), Trouble> {
    require_admin(visit)?;
    if is_owner(visit)? { Ok(()) } else { Err(visit.caller.denied(Need::Manage).into()) }
}

fn is_owner(visit: &Visit<'_>) -> Result<bool, Trouble> {
    let first = visit.engine.workspaces()?.into_iter().next();
    Ok(first.is_some_and(|first| first.id == visit.caller.workspace))
}

fn page(visit: &Visit<'_>, tab: Tab, title: &str, content: &Markup) -> Result<Reply, Trouble> {
    let is_owner = is_owner(visit)?;
    let tabs = Tab::ALL.into_iter().filter(|(tab, _, _)| is_owner || !tab.is_of_server());
    let content = html! {
        h1 { (title) }
        nav.tabs aria-label="Administration" {
            @for (to, path, name) in tabs {
                a href=(path) aria-current=[(to == tab).then_some("page")] { (name) }
            }
        }
        (content)
    };
    let title = format!("{title} · administration");
    Ok(Reply::Page(layout::page(visit, Room::Admin, &title, &content)))
}

fn state(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    require_admin(visit)?;
    let workspace = visit.caller.workspace;
    let sessions_count = visit.engine.read(|reader| reader.sessions_count(workspace))?;
    let keys = visit.engine.keys(workspace)?;
    let now = visit.engine.now();
    let valid_count = keys.iter().filter(|key| key.is_valid(now)).count();
    let content = html! {
        div.cards {
            section aria-labelledby="program" {
                h2 #program { "Program" }
                dl {
                    dt { "Version" } dd { "Quipu " (visit.settings.version) }
                    dt { "Build" } dd { (build()) }
                    dt { "Time" } dd { (text::exact(now)) }
                }
            }
            section aria-labelledby="access" {
                h2 #access { "Access" }
                dl {
                    dt { "Keys" } dd { a href="/ui/admin/keys" { (text::count(valid_count as u64, "valid key", "valid keys")) } }
                    dt { "Sessions" } dd {
                        a href="/ui/sessions" { (text::count(sessions_count, "session", "sessions")) }
                        " of at most " (text::grouped(visit.engine.limits().sessions_per_workspace_max))
                    }
                }
            }
            @if is_owner(visit)? { (storage(visit)?) }
            (limits(visit.engine.limits()))
        }
    };
    page(visit, Tab::State, "State", &content)
}

/// Says for which machine the program was built, and how.
fn build() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{profile}, {} {}", std::env::consts::OS, std::env::consts::ARCH)
}

fn storage(visit: &Visit<'_>) -> Result<Markup, Trouble> {
    let pending = visit.engine.read(|reader| Ok(reader.pending_erasures()?.len()))?;
    // A full disk is what one looks here for, so it must not hide the rest of the page.
    let condition = visit.engine.condition();
    Ok(html! {
        section aria-labelledby="storage" {
            h2 #storage { "Storage" }
            @match &condition {
                Ok(condition) => (amounts(condition, visit.engine.index_size_bytes())),
                Err(error) => p.message { "Nothing can be written now: " (error) "." }
            }
            @if pending > 0 { p { "Removed text may still be on disk; pruning finishes erasing it." } }
        }
    })
}

fn amounts(condition: &Condition, index_size_bytes: u64) -> Markup {
    let log = text::size(condition.log_size_bytes);
    html! {
        dl {
            dt { "Stores" } dd { (text::grouped(condition.stores_count)) }
            dt { "Memories" } dd { (text::grouped(condition.memories_count)) }
            dt { "Versions" } dd { (text::grouped(condition.versions_count)) }
            dt { "Database" } dd { (text::size(condition.database_size_bytes)) " and " (log) " of log" }
            dt { "Search index" } dd { (text::size(index_size_bytes)) }
            @if let Some(free) = condition.disk_free_bytes { dt { "Free on disk" } dd { (text::size(free)) } }
            @if let Some(lock) = &condition.lock { dt { "Write lock" } dd { "held by " (lock.holder) } }
        }
    }
}

fn limits(limits: &Limits) -> Markup {
    html! {
        section aria-labelledby="limits" {
            h2 #limits { "Limits" }
            dl {
                dt { "A memory" } dd { "at most " (text::size(limits.content_size_bytes_max)) }
                dt { "A store" } dd {
                    "at most " (text::grouped(limits.memories_per_store_max)) " memories and "
                    (text::size(limits.store_size_bytes_max))
                }
                dt { "A workspace" } dd { "at most " (text::grouped(limits.stores_per_workspace_max)) " stores" }
                dt { "A session" } dd { "at most " (limits.stores_per_session_max) " stores; its token is valid for " (days(limits.session_token_valid_for)) }
            }
            p { a href="/ui" { "How full each store is" } }
        }
    }
}

/// Returns a period as people say it.
fn days(period: std::time::Duration) -> String {
    let hours = period.as_secs() / 3_600;
    if hours.is_multiple_of(24) {
        return text::count(hours / 24, "day", "days");
    }
    text::count(hours, "hour", "hours")
}
