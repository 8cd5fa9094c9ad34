//! A store as it was at a moment: its memories then, what differs from now, and the way back.

mod compared;
mod restore;

use std::num::NonZero;

use maud::{Markup, html};
use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, Memory, MemoryId, Store, Timestamp, View};
use quipu_core::moment::Moment;
use quipu_service::caller::Need;
use quipu_service::past::Then;

use crate::difference::characters;
use crate::form::address;
use crate::layout::{Room, page, trail};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;
use crate::{Page, changes, shows};

/// The pages of this module.
pub(crate) static PAGES: [Page; 5] = [
    shows("/ui/stores/{store}/past", show),
    shows("/ui/stores/{store}/past/memories/{memory}", show_memory),
    shows("/ui/stores/{store}/past/changes", compared::show),
    shows("/ui/stores/{store}/past/restore", restore::planned),
    changes("/ui/stores/{store}/past/restore", restore::restore),
];

/// How many entries of a directory a page lists.
const ENTRIES_MAX: usize = 200;

/// A store at the moment that a visitor has named.
struct Visited {
    store: Store,
    then: Then,
    /// The time that the moment means. The time of `then` is that of the newest version by then that is
    /// still kept: before the horizon it is too early to tell what existed.
    time: Timestamp,
    /// The moment as an address keeps it: the same state, whenever it is used. `2h ago` is not.
    at: String,
}

impl Visited {
    /// Opens the store in the path at a moment; `None` if no moment is named.
    fn open(visit: &Visit<'_>, need: Need, at: Option<&str>) -> Result<Option<Self>, Trouble> {
        let store = visit.store(need)?;
        let Some(text) = at else { return Ok(None) };
        let moment = Then::moment(visit.engine, text)?;
        let at = match moment {
            Moment::Time(at) | Moment::Resolved(at) => at.to_string(),
            Moment::Sequence(_) | Moment::Version(_) => text.trim().to_owned(),
        };
        let then = Then::new(visit.engine, store.id, &moment)?;
        let time = visit.engine.time_of(store.id, &moment)?;
        Ok(Some(Self { store, then, time, at }))
    }

    /// Opens the store in the path at the moment in the address.
    fn required(visit: &Visit<'_>) -> Result<Self, Trouble> {
        let found = Self::open(visit, Need::Read, visit.query.get("at"))?;
        found.ok_or_else(|| {
            Trouble::Invalid("say which moment, such as `yesterday 14:00` or `2h ago`".to_owned())
        })
    }

    /// Returns an address about this moment.
    fn address(&self, page: &str, pairs: &[(&str, &str)]) -> String {
        let path = format!("/ui/stores/{}/past{page}", self.store.id);
        let mut all = vec![("at", self.at.as_str())];
        all.extend_from_slice(pairs);
        address(&path, &all)
    }

    /// Returns the address of the plan that restores a memory or a directory; `path` is empty for all.
    fn restore_address(&self, path: &str) -> String {
        self.address("/restore", &[("path", path)])
    }

    /// Returns whether the visitor may restore something.
    fn may_restore(&self, visit: &Visit<'_>) -> bool {
        visit.may_change(&self.store)
    }
}

/// Shows a directory of the store as it was.
fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let Some(visited) = Visited::open(visit, Need::Read, visit.query.get("at"))? else {
        let store = visit.store(Need::Read)?;
        let content = html! {
            (trail(&[(store.name.as_str(), format!("/ui/stores/{}", store.id))], "the past"))
            h1 { "The past of " (visible::short(store.name.as_str())) }
            (moment_form(&store, ""))
        };
        let title = format!("{} · the past", store.name);
        return Ok(Reply::Page(page(visit, Room::Stores, &title, &content)));
    };
    let directory = directory(visit.query.get("dir"))?;
    let after = visit.query.get("after").map(str::to_owned);
    let query = ListQuery {
        directory: directory.clone(),
        depth: Some(NonZero::<usize>::MIN),
        after,
        limit: ENTRIES_MAX,
        view: View::Basic,
    };
    let list = visited.then.engine.list(visited.store.id, &query)?;
    let next =
        list.next.map(|next| visited.address("", &[("dir", directory.as_str()), ("after", &next)]));
    let content = html! {
        (head(visit, &visited, "tree"))
        @if directory.is_root() { (redacted_since(&visited)?) }
        (way(&visited, &directory))
        @if list.items.is_empty() { p { "Nothing was here then." } }
        ul.entries { @for entry in &list.items { li { (listed(visit, &visited, &directory, entry)) } } }
        @if let Some(next) = next { p { a rel="next" href=(next) { "Next page" } } }
        @if visited.may_restore(visit) {
            @let path = directory.as_str().trim_end_matches('/');
            p.actions { a.button href=(visited.restore_address(path)) {
                @if directory.is_root() { "Plan to restore the whole store" }
                @else { "Plan to restore this directory" }
            } }
        }
    };
    let title = format!("{} · the past", visited.store.name);
    Ok(Reply::Page(page(visit, Room::Stores, &title, &content)))
}

/// Reads the directory of an address.
fn directory(text: Option<&str>) -> Result<Directory, Trouble> {
    let parsed = text.map_or_else(|| Ok(Directory::root()), Directory::parse);
    parsed.map_err(|error| Trouble::Invalid(format!("dir: {error}")))
}

/// Returns what all pages about a moment begin with.
fn head(visit: &Visit<'_>, visited: &Visited, here: &str) -> Markup {
    let Visited { store, then, .. } = visited;
    let now = visit.engine.now();
    let tab = |name: &str, page: &str, words: &str| {
        html! {
            a href=(visited.address(page, &[])) aria-current=[(name == here).then_some("page")] { (words) }
        }
    };
    html! {
        (trail(&[(store.name.as_str(), format!("/ui/stores/{}", store.id))], "the past"))
        h1 { (visible::short(store.name.as_str())) " as it was" }
        (moment_form(store, &visited.at))
        p { "This is the state after the change of " strong { (text::exact(then.past.at)) } " ("
            (text::time(then.past.at, now)) ")." }
        @if let Some(from) = then.complete_from() {
            p.message #horizon {
                "Incomplete: old versions were removed by retention. The history is complete from "
                (text::exact(from)) " on."
            }
        }
        nav.tabs aria-label="Views of the past" {
            (tab("tree", "", "Memories then"))
            (tab("changes", "/changes", "Compared with now"))
        }
    }
}

/// Says how many memories of the moment cannot be shown. All versions of that moment are read for this,
/// so only pages about the whole store say it.
fn redacted_since(visited: &Visited) -> Result<Markup, Trouble> {
    let count = visited.then.redacted()?.len() as u64;
    Ok(html! {
        @if count > 0 {
            p.message #redacted { (text::count(count, "memory", "memories"))
                " of that moment cannot be shown, because the text was redacted since." }
        }
    })
}

/// Returns the form that asks for a moment.
fn moment_form(store: &Store, at: &str) -> Markup {
    html! {
        form.row action={ "/ui/stores/" (store.id) "/past" } {
            label { "Moment" input name="at" value=(at) required size="28" aria-describedby="moments"
                placeholder="yesterday 14:00"; }
            button.primary { "Show" }
        }
        p #moments { small {
            "A time such as " code { "yesterday 14:00" } ", " code { "2h ago" } ", "
            code { "2026-11-01" } " or " code { "2026-11-01T14:00:00Z" } " (UTC unless it says otherwise), a place \
             in the change feed such as " code { "#12345" } ", or the id of a version."
        } }
    }
}

/// Returns the way from the root to a directory.
fn way(visited: &Visited, directory: &Directory) -> Markup {
    let names: Vec<_> = directory.as_str().split('/').filter(|name| !name.is_empty()).collect();
    let mut path = "/".to_owned();
    let steps: Vec<_> = names
        .iter()
        .map(|name| {
            path.push_str(name);
            path.push('/');
            (*name, visited.address("", &[("dir", &path)]))
        })
        .collect();
    html! {
        p.trail {
            a href=(visited.address("", &[])) { "All" }
            @for (name, to) in &steps { " / " a href=(to) { (name) } }
        }
    }
}

fn listed(visit: &Visit<'_>, visited: &Visited, within: &Directory, entry: &Listing) -> Markup {
    match entry {
        Listing::Directory(directory) => {
            let name = directory.as_str().strip_prefix(within.as_str());
            html! {
                a href=(visited.address("", &[("dir", directory.as_str())])) {
                    (name.unwrap_or(directory.as_str()))
                }
            }
        }
        Listing::Memory(memory) => html! {
            a href=(memory_address(visited, memory.id)) { (memory.path.file_name()) }
            " " small { (text::size(memory.size_bytes)) ", " (text::time(memory.updated_at, visit.engine.now())) }
        },
    }
}

fn memory_address(visited: &Visited, memory: MemoryId) -> String {
    visited.address(&format!("/memories/{memory}"), &[])
}

/// Shows the text that a memory had.
fn show_memory(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let visited = Visited::required(visit)?;
    let id = visit.memory()?;
    let memory = visited.then.engine.memory(visited.store.id, id, View::Full);
    let memory = memory.map_err(|error| visited.then.explained(error))?;
    let content = html! {
        (head(visit, &visited, "memory"))
        h2 { (memory.path) }
        (memory_actions(visit, &visited, &memory))
        @if let Some(content) = &memory.content {
            pre #text tabindex="0" { (characters(content.as_str())) }
        }
    };
    let name = memory.path.as_str().trim_start_matches('/');
    let title = format!("{name} · the past of {}", visited.store.name);
    Ok(Reply::Page(page(visit, Room::Stores, &title, &content)))
}

fn memory_actions(visit: &Visit<'_>, visited: &Visited, memory: &Memory) -> Markup {
    let base = format!("/ui/stores/{}/memories/{}", memory.store, memory.id);
    let version = memory.version.to_string();
    html! {
        p.actions {
            a.button href=(address(&format!("{base}/history"), &[("a", &version)])) { "Compare with now" } " "
            a.button href=(format!("{base}/versions/{version}")) { "Its version" } " "
            @if visited.may_restore(visit) {
                a.button href=(visited.restore_address(memory.path.as_str())) { "Plan to restore it" }
            }
        }
    }
}
