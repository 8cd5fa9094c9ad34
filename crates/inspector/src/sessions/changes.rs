//! What somebody changed, as one difference per memory, page by page.

use std::collections::HashSet;

use maud::{Markup, html};
use quipu_core::backend::{Span, VersionFilter, VersionQuery};
use quipu_core::engine::{ChangeSelection, Changed, Known};
use quipu_core::model::{Actor, MemoryPath, Store, Timestamp, Version, VersionId, View};
use quipu_core::timeframe;
use quipu_service::wire::changed_diff;

use crate::difference::{Arrangement, Room, difference, line_counts};
use crate::form::{Form, address};
use crate::reply::Trouble;
use crate::text;
use crate::visit::Visit;

/// How many memories a page shows.
const MEMORIES_MAX: usize = 20;

/// How many versions are looked at for one page. Somebody else's may be among them.
const SCANNED_MAX: usize = 5_000;

/// How many versions are read at a time.
const CHUNK: usize = 250;

/// How many changes of an author are counted.
const COUNTED_MAX: usize = 2_000;

/// Whose changes are meant, and which of them.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The author.
    pub(crate) actor: Actor,
    /// The changes. A key stands for its sessions too, as in a revert.
    pub(crate) selection: ChangeSelection,
}

impl Wanted {
    /// Reads the conditions `since`, `until` and `path`.
    pub(crate) fn new(visit: &Visit<'_>, actor: Actor, form: &Form) -> Result<Self, Trouble> {
        let actors = match &actor {
            Actor::ApiKey(key) => visit.engine.actors_of_key(*key)?,
            Actor::Session(_) | Actor::User(_) | Actor::ServiceAccount(_) => vec![actor.clone()],
        };
        let all = Span::default();
        let created = Span {
            first: time(visit, form, "since")?.unwrap_or(all.first),
            last: time(visit, form, "until")?.unwrap_or(all.last),
        };
        let path = form.get("path").map(tree_path).transpose()?.flatten();
        Ok(Self { actor, selection: ChangeSelection { actors, created, path } })
    }

    /// Returns what an address needs to select the same changes again, whenever it is used: `2h` is
    /// a time by now.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let Span { first, last } = self.selection.created;
        let mut pairs = vec![("actor", self.actor.to_string())];
        if first > Timestamp::MIN {
            pairs.push(("since", first.to_string()));
        }
        if last < Timestamp::MAX {
            pairs.push(("until", last.to_string()));
        }
        pairs.extend(self.selection.path.as_ref().map(|path| ("path", path.to_string())));
        pairs
    }

    /// Returns the address of a page about these changes in a store.
    pub(crate) fn address(&self, page: &str, store: &Store) -> String {
        let mut pairs = self.pairs();
        pairs.push(("store", store.id.to_string()));
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        address(page, &pairs)
    }

    /// Returns versions of these authors, the newest first, and where to go on.
    fn versions(
        &self,
        visit: &Visit<'_>,
        store: &Store,
        before: Option<VersionId>,
    ) -> Result<(Vec<Version>, Option<VersionId>), Trouble> {
        let actors = match self.selection.actors.as_slice() {
            [only] => vec![only.clone()],
            // A key may have thousands of sessions: looking at each version once is quicker than
            // looking for each of them.
            _ => Vec::new(),
        };
        let filter =
            VersionFilter { actors, created: self.selection.created, ..VersionFilter::default() };
        let query = VersionQuery { filter, before, limit: CHUNK, view: View::Basic };
        let page = visit.engine.versions(store.id, &query)?;
        Ok((page.items, page.next))
    }

    fn is_by(&self, version: &Version) -> bool {
        self.selection.actors.contains(&version.actor)
    }

    /// Returns whether one of these authors has changed the memory of a version later than this.
    fn has_newer(&self, visit: &Visit<'_>, version: &Version) -> Result<bool, Trouble> {
        let filter = VersionFilter {
            memory: Some(version.memory),
            created: Span { first: version.created_at, ..self.selection.created },
            ..VersionFilter::default()
        };
        let query = VersionQuery { filter, before: None, limit: SCANNED_MAX, view: View::Basic };
        let versions = visit.engine.versions(version.store, &query)?.items;
        Ok(versions.iter().any(|it| it.id != version.id && self.is_by(it)))
    }
}

/// Reads a time such as `2h` or RFC 3339.
pub(crate) fn time(
    visit: &Visit<'_>,
    form: &Form,
    field: &str,
) -> Result<Option<Timestamp>, Trouble> {
    let Some(text) = form.get(field) else { return Ok(None) };
    timeframe::since(text, visit.engine.now()).map(Some).ok_or_else(|| {
        Trouble::Invalid(format!(
            "{field}: `{text}` is not a time; write `2h`, `yesterday` or `2026-11-15T12:00:00Z`"
        ))
    })
}

/// Reads the path of a memory or of a directory; `None` is the whole store.
pub(crate) fn tree_path(text: &str) -> Result<Option<MemoryPath>, Trouble> {
    match text.trim().strip_suffix('/').unwrap_or(text.trim()) {
        "" => Ok(None),
        path => MemoryPath::parse(path)
            .map(Some)
            .map_err(|error| Trouble::Invalid(format!("path: {error}"))),
    }
}

/// When somebody changed a store.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// The newest change.
    pub(crate) last: Timestamp,
    /// The oldest one that was counted.
    pub(crate) first: Timestamp,
    count: usize,
    is_complete: bool,
}

impl Activity {
    /// Returns when the selected changes of a store were made; `None` if there are none.
    pub(crate) fn of(
        visit: &Visit<'_>,
        store: &Store,
        wanted: &Wanted,
    ) -> Result<Option<Self>, Trouble> {
        let mut found: Option<Self> = None;
        let (mut before, mut scanned_count) = (None, 0);
        loop {
            let (versions, next) = wanted.versions(visit, store, before)?;
            scanned_count += versions.len();
            for version in versions.iter().filter(|version| wanted.is_by(version)) {
                let at = version.created_at;
                let activity =
                    found.get_or_insert(Self { last: at, first: at, count: 0, is_complete: true });
                activity.first = at;
                activity.count += 1;
            }
            let is_over = scanned_count >= COUNTED_MAX;
            if let (Some(activity), true, Some(_)) = (&mut found, is_over, next) {
                activity.is_complete = false;
            }
            before = next;
            if next.is_none() || is_over {
                return Ok(found);
            }
        }
    }

    /// Returns the times and the number of changes as cells of a table.
    pub(crate) fn cells(&self, now: Timestamp) -> Markup {
        html! {
            td { @if !self.is_complete { "before " } (text::time(self.first, now)) }
            td { (text::time(self.last, now)) }
            td.number { (text::grouped(self.count as u64)) @if !self.is_complete { " or more" } }
        }
    }
}

/// One page of what somebody changed in a store.
#[derive(Debug)]
pub(crate) struct Review {
    changed: Vec<Changed>,
    next: Option<VersionId>,
}

impl Review {
    /// Returns the memories whose newest selected change comes before a version, the newest first.
    pub(crate) fn new(
        visit: &Visit<'_>,
        store: &Store,
        wanted: &Wanted,
        first: Option<VersionId>,
    ) -> Result<Self, Trouble> {
        let (mut changed, mut met) = (Vec::new(), HashSet::new());
        let (mut before, mut scanned_count) = (first, 0);
        loop {
            let (versions, next) = wanted.versions(visit, store, before)?;
            for version in &versions {
                if changed.len() == MEMORIES_MAX || scanned_count == SCANNED_MAX {
                    return Ok(Self { changed, next: before });
                }
                scanned_count += 1;
                before = Some(version.id);
                if !wanted.is_by(version) || !met.insert(version.memory) {
                    continue;
                }
                // A memory belongs to the page of its newest change.
                if first.is_some() && wanted.has_newer(visit, version)? {
                    continue;
                }
                let selection = &wanted.selection;
                changed.extend(visit.engine.changed_memory(store.id, version.memory, selection)?);
            }
            if next.is_none() {
                return Ok(Self { changed, next: None });
            }
        }
    }

    /// Returns the page. `address` is where it is, without a place in the list.
    pub(crate) fn listed(&self, store: &Store, address: &str) -> Markup {
        let mut room = Room::for_many();
        html! {
            @if self.changed.is_empty() { p { "No such change is on this page." } }
            @for changed in &self.changed { (listed(store, changed, &mut room)) }
            @if let Some(next) = self.next {
                @let sign = if address.contains('?') { "&" } else { "?" };
                p { a rel="next" href={ (address) (sign) "before=" (next) "#changes" } { "Older changes" } }
            }
        }
    }
}

fn listed(store: &Store, changed: &Changed, room: &mut Room) -> Markup {
    let path = |known: &Known| match known {
        Known::Absent => None,
        Known::State(state) => Some(state.path.to_string()),
        // Retention may have removed it as well, which is no redaction.
        Known::Lost(why) if why.contains("redacted") => Some("(redacted)".to_owned()),
        Known::Lost(_) => Some("(no longer kept)".to_owned()),
    };
    let (word, name) = match (path(&changed.before), path(&changed.after)) {
        (None, None) => ("created and deleted", "a memory".to_owned()),
        (None, Some(path)) => ("created", path),
        (Some(path), None) => ("deleted", path),
        (Some(old), Some(new)) if old == new => ("changed", new),
        (Some(old), Some(new)) => ("changed", format!("{old} → {new}")),
    };
    let count = text::count(changed.versions_count as u64, "version", "versions");
    html! {
        section.change {
            h3 {
                span.badge { (word) } " "
                a href={ "/ui/stores/" (store.id) "/memories/" (changed.memory) "/history" } { (name) }
            }
            @match changed_diff(changed) {
                Err(why) => p { (count) "; " (why) "." },
                Ok(diff) => {
                    p { (count) @if !diff.is_empty() { ", " (line_counts(&diff)) } }
                    @if !diff.is_empty() {
                        @let title = format!("What changed in {name}");
                        (difference(&diff, &title, Arrangement::Inline, room))
                    }
                }
            }
        }
    }
}
