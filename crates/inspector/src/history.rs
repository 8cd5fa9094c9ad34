//! The history of a memory: its versions, what is between any two of them, and each of them.

mod version;

use maud::{Markup, html};
use quipu_core::Error;
use quipu_core::backend::{VersionFilter, VersionQuery};
use quipu_core::diff::Diff;
use quipu_core::engine::Page as List;
use quipu_core::model::{Id as _, MemoryId, Operation, Store, Timestamp, Version, VersionId, View};
use quipu_core::moment::Moment;
use quipu_service::caller::Need;

use crate::difference::{Arrangement, Room as Space, difference, line_counts};
use crate::form::address;
use crate::layout::{Room, page, trail};
use crate::reply::{Reply, Trouble};
use crate::sessions::Authors;
use crate::text;
use crate::visit::Visit;
use crate::{Page, changes, shows};

/// The pages of this module.
pub(crate) static PAGES: [Page; 4] = [
    shows("/ui/stores/{store}/memories/{memory}/history", show),
    shows("/ui/stores/{store}/memories/{memory}/versions/{version}", version::show),
    changes("/ui/stores/{store}/memories/{memory}/versions/{version}/restore", version::restore),
    changes("/ui/stores/{store}/memories/{memory}/versions/{version}/redact", version::redact),
];

/// How many versions a page lists.
const VERSIONS_MAX: usize = 50;

/// A memory with one page of its versions.
struct History<'a> {
    visit: &'a Visit<'a>,
    store: Store,
    memory: MemoryId,
    /// What the memory is called: its path now, or the last one that is known.
    name: String,
    /// The newest version of all.
    newest: Version,
    list: List<Version, VersionId>,
}

impl<'a> History<'a> {
    /// Reads the versions before the one that the address names.
    fn read(visit: &'a Visit<'a>) -> Result<Self, Trouble> {
        let store = visit.store(Need::Read)?;
        let memory = visit.memory()?;
        let before = visit.query.get("before").and_then(|id| id.parse().ok());
        let list = versions(visit, &store, (memory, before), VERSIONS_MAX)?;
        let newest = match before {
            None => list.items.first().cloned(),
            Some(_) => versions(visit, &store, (memory, None), 1)?.items.into_iter().next(),
        };
        let newest = newest.ok_or_else(|| no_history(memory))?;
        let name = name(visit, &store, &newest)?;
        Ok(Self { visit, store, memory, name, newest, list })
    }

    /// Returns the address of this page.
    fn address(&self) -> String {
        format!("/ui/stores/{}/memories/{}/history", self.store.id, self.memory)
    }
}

/// Returns versions of a memory, the newest first.
fn versions(
    visit: &Visit<'_>,
    store: &Store,
    (memory, before): (MemoryId, Option<VersionId>),
    limit: usize,
) -> Result<List<Version, VersionId>, Error> {
    let filter = VersionFilter { memory: Some(memory), ..VersionFilter::default() };
    visit.engine.versions(store.id, &VersionQuery { filter, before, limit, view: View::Basic })
}

fn no_history(memory: MemoryId) -> Trouble {
    Trouble::NotFound(format!(
        "No version of this store belongs to a memory `{memory}`. Its versions may have been removed by \
         retention; the page of the store lists what is there."
    ))
}

/// Returns what a memory is called: the newest path that was not redacted, or its id.
fn name(visit: &Visit<'_>, store: &Store, newest: &Version) -> Result<String, Error> {
    if let Some(path) = &newest.path {
        return Ok(path.to_string());
    }
    let older = versions(visit, store, (newest.memory, Some(newest.id)), VERSIONS_MAX)?.items;
    let path = older.into_iter().find_map(|version| version.path);
    Ok(path.map_or_else(|| newest.memory.to_string(), |path| path.to_string()))
}

/// Returns the way from the stores to a memory.
fn way(store: &Store, memory: MemoryId, name: &str, here: &str) -> Markup {
    let base = format!("/ui/stores/{}", store.id);
    let steps = [
        (store.name.as_str(), base.clone()),
        (name.trim_start_matches('/'), format!("{base}/memories/{memory}")),
    ];
    trail(&steps, here)
}

/// Shows the history, with the difference of two versions above it.
fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let history = History::read(visit)?;
    let authors = Authors::new(visit);
    let (old, new) = compared(&history)?;
    let arrangement = Arrangement::of(visit.query.get("view"));
    let name = &history.name;
    let content = html! {
        (way(&history.store, history.memory, name, "history"))
        h1 { "History of " (name) }
        @if history.newest.operation == Operation::Deleted {
            p.message { "This memory is deleted. Any version with a text can be restored." }
        }
        (comparison(&history, (&old, &new), arrangement))
        (timeline(&history, &authors, (&old, &new), arrangement)?)
    };
    let title = format!("{} · history", name.trim_start_matches('/'));
    Ok(Reply::Page(page(visit, Room::Stores, &title, &content)))
}

/// Returns the two versions to compare: those in the address, or the newest and the one before it.
fn compared(history: &History<'_>) -> Result<(Option<Version>, Version), Trouble> {
    let visit = history.visit;
    let chosen = |field: &str| -> Result<Option<Version>, Trouble> {
        let Some(id) = visit.query.get(field) else { return Ok(None) };
        let id: VersionId = id.parse().map_err(|_malformed| {
            Trouble::Invalid(format!("`{id}` is not the id of a version; choose one in the list"))
        })?;
        let version = visit.engine.version(history.store.id, id, View::Full)?;
        if version.memory == history.memory {
            return Ok(Some(version));
        }
        Err(Trouble::NotFound(format!("The version `{id}` belongs to another memory.")))
    };
    let new = match chosen("b")? {
        Some(new) => new,
        None => visit.engine.version(history.store.id, history.newest.id, View::Full)?,
    };
    let old = match chosen("a")? {
        Some(old) => Some(old),
        None => visit.engine.previous_version(&new, View::Full)?,
    };
    Ok((old, new))
}

fn comparison(
    history: &History<'_>,
    (old, new): (&Option<Version>, &Version),
    arrangement: Arrangement,
) -> Markup {
    let now = history.visit.engine.now();
    let label = |version: &Version| {
        html! { a href=(version::address(version)) { "the version of " (text::time(version.created_at, now)) } }
    };
    let other = match arrangement {
        Arrangement::Inline => (Arrangement::Side, "Show side by side"),
        Arrangement::Side => (Arrangement::Inline, "Show inline"),
    };
    html! {
        section #difference aria-labelledby="difference-title" {
            h2 #difference-title { "What changed" }
            @match old {
                Some(old) => p { "From " (label(old)) " to " (label(new)) ". "
                    a href=(compare_address(history, (Some(old), new), other.0)) { (other.1) } },
                None => p { "In " (label(new)) "; no version before it is kept. " },
            }
            @if let (Some(was), Some(is)) = (old.as_ref().and_then(|it| it.path.as_ref()), &new.path)
                && was != is {
                p { "Moved from " code { (was) } " to " code { (is) } "." }
            }
            @match (old.as_ref().map_or(Ok(""), content), content(new)) {
                (Ok(old), Ok(new)) => {
                    @let diff = Diff::new(old, new);
                    @if !diff.is_empty() { p { (line_counts(&diff)) } }
                    (difference(&diff, "The chosen versions", arrangement, &mut Space::for_one()))
                }
                (Err(why), _) | (_, Err(why)) => p.message { (why) },
            }
        }
    }
}

/// Returns the text of a version to compare, or why there is none. A deletion counts as empty.
fn content(version: &Version) -> Result<&str, &'static str> {
    match (&version.content, version.operation) {
        (Some(content), _) => Ok(content.as_str()),
        (None, Operation::Deleted) if version.redaction.is_none() => Ok(""),
        (None, Operation::Created | Operation::Modified | Operation::Deleted) => {
            Err("One of the two was redacted: its text is gone, and cannot be compared.")
        }
    }
}

fn compare_address(
    history: &History<'_>,
    (old, new): (Option<&Version>, &Version),
    arrangement: Arrangement,
) -> String {
    let (a, b) = (old.map(|old| old.id.to_string()).unwrap_or_default(), new.id.to_string());
    let before = history.visit.query.get("before").unwrap_or_default();
    address(
        &history.address(),
        &[("a", a.as_str()), ("b", b.as_str()), ("view", arrangement.as_str()), ("before", before)],
    )
}

/// Returns the list of versions, as a form that compares two of them.
fn timeline(
    history: &History<'_>,
    authors: &Authors<'_>,
    (old, new): (&Option<Version>, &Version),
    arrangement: Arrangement,
) -> Result<Markup, Trouble> {
    let listed = |version: &Version| history.list.items.iter().any(|it| it.id == version.id);
    // Versions of other pages stay selectable, so that any two of a long history can be compared.
    let elsewhere = [Some(new), old.as_ref()].into_iter().flatten().filter(|it| !listed(it));
    let chosen = (old.as_ref().map(|old| old.id), new.id);
    let before = history.visit.query.get("before");
    Ok(html! {
        section aria-labelledby="versions-title" {
            h2 #versions-title { "Versions" }
            form action=(history.address()) {
                @if let Some(before) = before { input type="hidden" name="before" value=(before); }
                (compare_fields(arrangement))
                div.wide tabindex="0" role="region" aria-label="All versions" { table.versions {
                    thead { tr {
                        th scope="col" { "Old" } th scope="col" { "New" } th scope="col" { "When" }
                        th scope="col" { "What" } th scope="col" { "Author" }
                        th.number scope="col" { "Size" } th scope="col" { "Reason" }
                    } }
                    tbody {
                        @for version in elsewhere { (row(history, authors, version, chosen)) }
                        @for version in &history.list.items { (row(history, authors, version, chosen)) }
                    }
                } }
            }
            @match history.list.next {
                Some(next) => {
                    @let (a, b) = (history.visit.query.get("a"), history.visit.query.get("b"));
                    @let next = next.to_string();
                    @let pairs = [("a", a.unwrap_or_default()), ("b", b.unwrap_or_default()),
                        ("view", arrangement.as_str()), ("before", next.as_str())];
                    p { a rel="next" href=(address(&history.address(), &pairs)) { "Older versions" } }
                }
                None => (beginning(history)?),
            }
        }
    })
}

fn compare_fields(arrangement: Arrangement) -> Markup {
    let choice = |it: Arrangement, words: &str| {
        html! {
            label.inline {
                input type="radio" name="view" value=(it.as_str()) checked[it == arrangement];
                (words)
            }
        }
    };
    html! {
        p.actions {
            button { "Compare the chosen versions" } " "
            (choice(Arrangement::Inline, "inline")) (choice(Arrangement::Side, "side by side"))
        }
    }
}

/// Says what is known of the time before the oldest version.
fn beginning(history: &History<'_>) -> Result<Markup, Trouble> {
    let oldest = history.list.items.last().unwrap_or(&history.newest);
    // The id of a memory holds the moment of its creation.
    if oldest.created_at <= history.memory.created_at() {
        return Ok(html! {});
    }
    let visit = history.visit;
    let moment = Moment::Resolved(visit.engine.now());
    let horizon: Option<Timestamp> = visit.engine.moment(history.store.id, &moment)?.horizon;
    Ok(html! {
        p.message #horizon {
            "Older versions were removed by retention: the memory was created "
            (text::exact(history.memory.created_at())) "."
            @if let Some(horizon) = horizon {
                " The history of this store is complete from " (text::exact(horizon)) " on."
            }
        }
    })
}

fn row(
    history: &History<'_>,
    authors: &Authors<'_>,
    version: &Version,
    (old, new): (Option<VersionId>, VersionId),
) -> Markup {
    let now = history.visit.engine.now();
    let when = text::exact(version.created_at);
    html! {
        tr {
            td { input type="radio" name="a" value=(version.id) checked[Some(version.id) == old]
                aria-label={ "Old: version of " (when) }; }
            td { input type="radio" name="b" value=(version.id) checked[version.id == new]
                aria-label={ "New: version of " (when) }; }
            td { a href=(version::address(version)) { (text::time(version.created_at, now)) } }
            td {
                (version.operation.as_str())
                @if let Some(older) = version.undone_to {
                    " " a.badge href={ "/ui/stores/" (version.store) "/memories/" (version.memory)
                        "/versions/" (older) } { "undo, back to " (text::exact(older.created_at())) }
                }
                @if version.id == history.newest.id { " " span.badge { "newest" } }
                @if let Some(redaction) = &version.redaction {
                    " " span.badge { "redacted" } " "
                    small { "by " (authors.link(&redaction.by)) ", " (text::time(redaction.at, now)) }
                } @else if let Some(path) = &version.path {
                    @if path.as_str() != history.name { " " small { "at " (path) } }
                }
            }
            td { (authors.link(&version.actor)) }
            td.number { @if let Some(size) = version.size_bytes { (text::size(size)) } @else { "–" } }
            td { @if let Some(reason) = &version.reason { (reason) } }
        }
    }
}
