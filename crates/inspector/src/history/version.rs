//! One version: its text, and what can be done with it.

use maud::{Markup, html};
use quipu_core::ErrorKind;
use quipu_core::model::{MemoryPath, Operation, Store, Version, VersionId, View};
use quipu_service::caller::Need;

use crate::difference::characters;
use crate::form;
use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::sessions::Authors;
use crate::text;
use crate::visit::Visit;

use super::{name, no_history, versions, way};

/// Returns the address of a version.
pub(super) fn address(version: &Version) -> String {
    format!("/ui/stores/{}/memories/{}/versions/{}", version.store, version.memory, version.id)
}

/// A version and the newest one of its memory.
struct Shown {
    store: Store,
    version: Version,
    newest: Version,
    name: String,
}

impl Shown {
    fn read(visit: &Visit<'_>, need: Need) -> Result<Self, Trouble> {
        let store = visit.store(need)?;
        let memory = visit.memory()?;
        let id = visit.parameter("version");
        let missing = || {
            Trouble::NotFound(format!(
                "The memory has no version `{id}`. It may have been removed by retention; its history \
                 lists those that are kept."
            ))
        };
        let id: VersionId = id.parse().map_err(|_malformed| missing())?;
        let version = visit.engine.version(store.id, id, View::Full)?;
        if version.memory != memory {
            return Err(missing());
        }
        let newest = versions(visit, &store, (memory, None), 1)?.items.into_iter().next();
        let newest = newest.ok_or_else(|| no_history(memory))?;
        let name = name(visit, &store, &newest)?;
        Ok(Self { store, version, newest, name })
    }

    fn is_head(&self) -> bool {
        self.version.id == self.newest.id
    }
}

/// Shows one version.
pub(super) fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let shown = Shown::read(visit, Need::Read)?;
    let page = version_page(visit, &shown, &html! {})?;
    Ok(Reply::Page(page))
}

fn version_page(visit: &Visit<'_>, shown: &Shown, message: &Markup) -> Result<Markup, Trouble> {
    let Shown { store, version, name, .. } = shown;
    let when = text::exact(version.created_at);
    let previous = visit.engine.previous_version(version, View::Basic)?;
    let content = html! {
        (way(store, version.memory, name, &format!("version of {when}")))
        h1 { (name) ", version of " (when) }
        (message)
        (about(visit, version))
        p.actions {
            @let history = format!("/ui/stores/{}/memories/{}/history", store.id, version.memory);
            @let id = version.id.to_string();
            a.button href=(form::address(&history, &[("b", &id)])) { "History" } " "
            @if let Some(previous) = &previous {
                @let older = previous.id.to_string();
                a.button href=(form::address(&history, &[("a", &older), ("b", &id)])) {
                    "Compare with the version before"
                } " "
            }
            @if !shown.is_head() {
                @let newest = shown.newest.id.to_string();
                a.button href=(form::address(&history, &[("a", &id), ("b", &newest)])) {
                    "Compare with the newest"
                }
            }
        }
        (restore_form(visit, shown))
        (redact_form(visit, shown))
        h2 { "Text" }
        @match (&version.content, &version.redaction) {
            (Some(content), _) => pre #text tabindex="0" { (characters(content.as_str())) },
            (None, Some(_)) => p { "The text was redacted. It cannot be brought back." },
            (None, None) => p { "The memory was deleted, so there is no text." },
        }
    };
    let title = format!("{} · version of {when}", name.trim_start_matches('/'));
    Ok(page(visit, Room::Stores, &title, &content))
}

fn about(visit: &Visit<'_>, version: &Version) -> Markup {
    let (authors, now) = (Authors::new(visit), visit.engine.now());
    html! {
        dl {
            dt { "Version" } dd { code { (version.id) } }
            dt { "What" } dd { (version.operation.as_str())
                @if version.undone_to.is_some() { ", an undo" } }
            @if let Some(path) = &version.path { dt { "Path" } dd { (path) } }
            dt { "Author" } dd { (authors.link(&version.actor)) }
            dt { "When" } dd { (text::time(version.created_at, now)) }
            @if let Some(size) = version.size_bytes { dt { "Size" } dd { (text::size(size)) } }
            @if let Some(reason) = &version.reason { dt { "Reason" } dd { (reason) } }
            @if let Some(redaction) = &version.redaction {
                dt { "Redacted" }
                dd { (text::time(redaction.at, now)) " by " (authors.link(&redaction.by)) }
            }
        }
    }
}

fn restore_form(visit: &Visit<'_>, shown: &Shown) -> Markup {
    let Shown { store, version, newest, .. } = shown;
    if !visit.may_change(store) || version.content.is_none() || shown.is_head() {
        return html! {};
    }
    let is_deleted = newest.operation == Operation::Deleted;
    html! {
        details #restore {
            summary { "Restore this version" }
            form.narrow method="post" action={ (address(version)) "/restore" } {
                (visit.token_field())
                input type="hidden" name="seen" value=(newest.id);
                @if is_deleted {
                    p { "The memory is deleted. It comes back with this text." }
                    label { "Path" input name="path" required value=[version.path.as_ref()]; }
                } @else {
                    p { "The memory gets this text again, as a new version; it stays where it is. If somebody \
                         changes it before, nothing happens." }
                }
                button.primary { "Restore" }
            }
        }
    }
}

/// Writes the text of the version again, unless the memory has changed since the visitor saw it.
pub(super) fn restore(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let shown = Shown::read(visit, Need::Write)?;
    let seen: VersionId =
        visit.form.get("seen").and_then(|id| id.parse().ok()).ok_or_else(|| {
            Trouble::Invalid("the form does not say what you have seen; reload the page".to_owned())
        })?;
    let to = visit.form.get("path").map(MemoryPath::parse).transpose();
    let to = to.map_err(|error| Trouble::Invalid(format!("path: {error}")))?;
    let (store, id) = (shown.store.id, shown.version.id);
    let restored = visit.engine.restore_seen(&visit.caller.actor, store, (id, seen), to.as_ref());
    match restored {
        Ok(written) => {
            Ok(Reply::SeeOther(format!("/ui/stores/{store}/memories/{}", written.memory.id)))
        }
        Err(error) if *error.kind() == ErrorKind::PreconditionFailed => {
            // What was read above may be older than the change that was in the way.
            let shown = Shown::read(visit, Need::Write)?;
            Ok(Reply::Conflict(version_page(visit, &shown, &overtaken(visit, &shown))?))
        }
        Err(error) => Err(error.into()),
    }
}

fn overtaken(visit: &Visit<'_>, shown: &Shown) -> Markup {
    let (newest, authors) = (&shown.newest, Authors::new(visit));
    html! {
        p.message role="alert" {
            "Nothing was restored: the memory was " (newest.operation.as_str()) " by "
            (authors.link(&newest.actor)) " since you saw it. Look at "
            a href=(address(newest)) { "its newest version" } ", then restore this one if you still want to."
        }
    }
}

fn redact_form(visit: &Visit<'_>, shown: &Shown) -> Markup {
    let Shown { store, version, .. } = shown;
    if !visit.caller.may_in(store.id, Need::Manage) || version.redaction.is_some() {
        return html! {};
    }
    let memory = version.memory.to_string();
    let id = store.id.to_string();
    let elsewhere = form::address("/ui/redact", &[("store", &id), ("memory", &memory)]);
    html! {
        details #redact {
            summary { "Redact this version" }
            @if shown.is_head() && version.operation != Operation::Deleted {
                p { "This is what the memory holds now, so it cannot be redacted alone. Write a new version or \
                     delete the memory first; or " a href=(elsewhere) { "redact by content" }
                    ", which takes the text out of live memories as well." }
            } @else {
                form.narrow method="post" action={ (address(version)) "/redact" } {
                    (visit.token_field())
                    p { "Text, path and reason of this version are erased from all files. This cannot be \
                         undone. To redact a text wherever it is, "
                        a href=(elsewhere) { "redact by content" } "." }
                    label.inline {
                        input type="checkbox" name="sure" value="yes" required;
                        "Erase this version for good"
                    }
                    button.danger { "Redact" }
                }
            }
        }
    }
}

/// Erases the text of the version.
pub(super) fn redact(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let shown = Shown::read(visit, Need::Manage)?;
    if visit.form.get("sure").is_none() {
        return Err(Trouble::Invalid(
            "nothing was redacted: tick the box that says that you are sure".to_owned(),
        ));
    }
    match visit.engine.redact(&visit.caller.actor, shown.store.id, &[shown.version.id]) {
        Ok(_) => Ok(Reply::SeeOther(address(&shown.version))),
        Err(error) if *error.kind() == ErrorKind::HeadNotRedactable => {
            let shown = Shown::read(visit, Need::Manage)?;
            let message = html! {
                p.message role="alert" {
                    "Nothing was redacted: this version is what the memory holds now. Write a new version or \
                     delete the memory first."
                }
            };
            Ok(Reply::Conflict(version_page(visit, &shown, &message)?))
        }
        Err(error) => Err(error.into()),
    }
}
