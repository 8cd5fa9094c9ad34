//! Verifies the invariants of stored data.
//!
//! Problems of canonical rows (memories, versions) are only reported. Derived rows can be recomputed
//! with [`Engine::rebuild`].

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use crate::Error;
use crate::backend::{
    Archived, Change, Event, MemoryQuery, Order, Reader, Sequence, SessionEventQuery, SessionQuery,
    Span, Usage, VersionFilter, VersionQuery,
};
use crate::model::{
    Content, Directory, EventUsage, Memory, MemoryId, MemoryPath, Operation, SessionId, Store,
    Timestamp, Version, VersionId, View, WorkspaceId,
};

use super::Engine;
use super::stores::all_stores;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// Whether [`Engine::rebuild`] repairs it.
    pub remedy: Remedy,
}

/// What can be done about a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A derived row is wrong; recomputing it repairs it.
    Rebuild,
    /// A canonical row is wrong; only a backup helps.
    None,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// How many stores there are.
    pub stores_count: usize,
    /// How many memories there are.
    pub memories_count: usize,
    /// How many versions there are.
    pub versions_count: usize,
    /// How many changes the feed holds.
    pub changes_count: usize,
    /// Whether removed text may still be in a file; pruning finishes that.
    pub is_erasing_pending: bool,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

const PAGE: usize = 256;

impl Engine {
    /// Verifies every invariant of the data and reports what is broken.
    pub fn check(&self) -> Result<CheckReport, Error> {
        self.check_with(&|_| ())
    }

    /// Like [`check`](Self::check), and calls `progress` with the report so far.
    pub fn check_with(&self, progress: &dyn Fn(&CheckReport)) -> Result<CheckReport, Error> {
        let mut report = self.read(|reader| {
            let is_erasing_pending = !reader.pending_erasures()?.is_empty();
            let mut report = CheckReport { is_erasing_pending, ..CheckReport::default() };
            let feed = check_feed(reader, progress, &mut report)?;
            for workspace in reader.workspaces()? {
                // Deleted stores do not exist for a reader, so only the backend can verify them.
                for store in all_stores(reader, workspace.id, Archived::Show)? {
                    check_store(reader, &store, &feed, &mut report)?;
                }
                check_keys(reader, workspace.id, &mut report)?;
                check_sessions(reader, workspace.id, &mut report)?;
            }
            Ok(report)
        })?;
        for message in self.backend.verify()? {
            report.add(message, Remedy::None);
        }
        Ok(report)
    }

    /// Recomputes every derived row of the backend.
    pub fn rebuild(&self) -> Result<(), Error> {
        self.backend.rebuild()
    }
}

impl CheckReport {
    /// Adds something that is wrong.
    pub fn add(&mut self, message: String, remedy: Remedy) {
        self.problems.push(Problem { message, remedy });
    }
}

/// The versions that the feed names.
struct Feed<'p> {
    progress: &'p dyn Fn(&CheckReport),
    first_at: Option<Timestamp>,
    versions: HashSet<VersionId>,
}

fn check_keys(
    reader: &dyn Reader,
    workspace: WorkspaceId,
    report: &mut CheckReport,
) -> Result<(), Error> {
    for key in reader.keys(workspace)? {
        let Some(id) = key.parent else { continue };
        let parent = reader.key(id)?.filter(|it| it.workspace == workspace && !it.is_derived());
        if parent.is_none() {
            let message = format!("the parent `{id}` of the key `{}` is not a key", key.id);
            report.add(message, Remedy::None);
        }
    }
    Ok(())
}

/// Checks the events of every session, and what is noted about their sizes.
fn check_sessions(
    reader: &dyn Reader,
    workspace: WorkspaceId,
    report: &mut CheckReport,
) -> Result<(), Error> {
    let mut after = None;
    let mut size_bytes = 0;
    loop {
        let sessions = reader.sessions(&SessionQuery {
            workspace,
            store: None,
            archived: Archived::Show,
            created: Span::default(),
            viewer: None,
            order: Order::OldestFirst,
            after,
            limit: PAGE,
        })?;
        let Some(last) = sessions.last() else { break };
        after = Some(last.id);
        for session in &sessions {
            size_bytes += check_events(reader, session.id, report)?;
        }
    }
    let noted = reader.events_size_bytes(workspace)?;
    if noted != size_bytes {
        let message = format!(
            "the events of `{workspace}` have {size_bytes} bytes, but {noted} are noted for them"
        );
        report.add(message, Remedy::Rebuild);
    }
    Ok(())
}

/// Checks the events of a session and returns their size.
fn check_events(
    reader: &dyn Reader,
    session: SessionId,
    report: &mut CheckReport,
) -> Result<u64, Error> {
    let noted = reader.event_usage(session)?;
    let mut usage = EventUsage { events_count: 0, size_bytes: 0, ..noted };
    let mut last: Option<(u64, Timestamp)> = None;
    loop {
        let after = last.map_or(0, |(number, _)| number);
        let events = reader.session_events(session, &SessionEventQuery::after(after, PAGE))?;
        if events.is_empty() {
            break;
        }
        for event in events {
            let at = format!("event {} of `{session}`", event.number);
            let size_bytes = event.body.as_ref().map(Content::size_bytes);
            let fits = size_bytes.unwrap_or_default() == event.size_bytes
                && size_bytes.is_none() == event.redaction.is_some();
            if !fits {
                report.add(format!("the body of {at} does not fit its row"), Remedy::None);
            }
            let is_next = |(number, moment)| event.number == number + 1 && event.at > moment;
            if !last.is_none_or(is_next) {
                report.add(format!("{at} does not follow the one before"), Remedy::None);
            }
            usage.events_count += 1;
            usage.size_bytes += event.size_bytes;
            last = Some((event.number, event.at));
        }
    }
    if last.is_some_and(|(number, _)| number != noted.newest) {
        let message = format!("the newest event of `{session}` is not {}", noted.newest);
        report.add(message, Remedy::None);
    }
    if noted != usage {
        let message = format!("the events of `{session}` are {usage:?}, not {noted:?}");
        report.add(message, Remedy::Rebuild);
    }
    Ok(usage.size_bytes)
}

fn check_store(
    reader: &dyn Reader,
    store: &Store,
    feed: &Feed<'_>,
    report: &mut CheckReport,
) -> Result<(), Error> {
    report.stores_count += 1;
    let newest = check_versions(reader, store, feed, report)?;
    let mut paths = HashSet::new();
    let mut alive = HashSet::new();
    let mut usage = Usage::default();
    let mut start = Bound::Unbounded;
    loop {
        let query =
            MemoryQuery { directory: Directory::root(), start, limit: PAGE, view: View::Full };
        let memories = reader.memories(store.id, &query)?;
        let Some(last) = memories.last() else { break };
        start = Bound::Excluded(last.path.as_str().to_owned());
        for memory in memories {
            usage.memories_count += 1;
            usage.size_bytes += memory.size_bytes;
            check_memory(&memory, newest.get(&memory.id), report);
            alive.insert(memory.id);
            paths.insert(memory.path);
        }
    }
    report.memories_count += paths.len();
    for path in &paths {
        for ancestor in path.ancestors().filter(|ancestor| contains(&paths, ancestor)) {
            report.add(format!("`{path}` lies below the memory `{ancestor}`"), Remedy::None);
        }
    }
    for (memory, newest) in newest {
        if newest.operation != Operation::Deleted && !alive.contains(&memory) {
            report.add(format!("the memory `{memory}` is gone without a deletion"), Remedy::None);
        }
    }
    let noted = reader.usage(store.id)?;
    if noted != usage {
        let message = format!("the usage of `{}` is {noted:?}, but should be {usage:?}", store.id);
        report.add(message, Remedy::Rebuild);
    }
    Ok(())
}

fn contains(paths: &HashSet<MemoryPath>, text: &str) -> bool {
    MemoryPath::parse(text).is_ok_and(|path| paths.contains(&path))
}

/// Checks every version of a store and returns the newest of each memory.
fn check_versions(
    reader: &dyn Reader,
    store: &Store,
    feed: &Feed<'_>,
    report: &mut CheckReport,
) -> Result<HashMap<MemoryId, Version>, Error> {
    let mut newest = HashMap::new();
    let mut before = None;
    loop {
        let filter = VersionFilter::default();
        let query = VersionQuery { filter, before, limit: PAGE, view: View::Full };
        let versions = reader.versions(store.id, &query)?;
        let Some(last) = versions.last() else { return Ok(newest) };
        before = Some(last.id);
        report.versions_count += versions.len();
        (feed.progress)(report);
        for mut version in versions {
            check_version(&version, report);
            let is_in_span = feed.first_at.is_some_and(|first_at| version.created_at >= first_at);
            if is_in_span && !feed.versions.contains(&version.id) {
                report.add(format!("`{}` is not in the change feed", version.id), Remedy::None);
            }
            version.content = None;
            newest.entry(version.memory).or_insert(version);
        }
    }
}

fn check_version(version: &Version, report: &mut CheckReport) {
    let id = version.id;
    let has_text = version.operation != Operation::Deleted && version.redaction.is_none();
    match &version.content {
        None if has_text => report.add(format!("the text of `{id}` is missing"), Remedy::None),
        Some(_) if !has_text => {
            report.add(format!("`{id}` has a text, but should have none"), Remedy::None);
        }
        Some(content) if version.hash != Some(content.hash()) => {
            report.add(format!("the text of `{id}` does not have its hash"), Remedy::None);
        }
        Some(content) if version.size_bytes != Some(content.size_bytes()) => {
            report.add(format!("the text of `{id}` does not have its size"), Remedy::None);
        }
        Some(_) | None => {}
    }
    if version.path.is_none() != version.redaction.is_some() {
        report.add(format!("the path of `{id}` does not fit its redaction"), Remedy::None);
    }
}

fn check_memory(memory: &Memory, newest: Option<&Version>, report: &mut CheckReport) {
    let at = format!("the memory `{}` at `{}`", memory.id, memory.path);
    let Some(newest) = newest else {
        report.add(format!("{at} has no version"), Remedy::None);
        return;
    };
    if newest.id != memory.version || newest.operation == Operation::Deleted {
        report.add(format!("{at} is not at its newest version `{}`", newest.id), Remedy::None);
        return;
    }
    let agrees = newest.path.as_ref() == Some(&memory.path)
        && newest.hash == Some(memory.hash)
        && newest.size_bytes == Some(memory.size_bytes)
        && memory.content.is_some();
    if !agrees {
        report.add(format!("{at} differs from its newest version `{}`", newest.id), Remedy::None);
    }
}

/// Checks that the feed has no gap and that its moments grow.
fn check_feed<'p>(
    reader: &dyn Reader,
    progress: &'p dyn Fn(&CheckReport),
    report: &mut CheckReport,
) -> Result<Feed<'p>, Error> {
    let mut feed = Feed { progress, first_at: None, versions: HashSet::new() };
    let (newest, _) = reader.newest_change()?;
    let mut last: Option<(Sequence, Timestamp)> = None;
    loop {
        let after = last.map_or(Sequence(0), |(sequence, _)| sequence);
        let changes = reader.changes(after, PAGE)?;
        if changes.is_empty() {
            break;
        }
        report.changes_count += changes.len();
        progress(report);
        for change in changes {
            check_change(&change, last, report);
            feed.first_at.get_or_insert(change.at);
            if let Event::Version(version) = change.event {
                feed.versions.insert(version);
            }
            last = Some((change.sequence, change.at));
        }
    }
    let reached = last.map_or(Sequence(0), |(sequence, _)| sequence);
    if reached != newest {
        report.add(format!("the feed ends at {}, not at {}", reached.0, newest.0), Remedy::None);
    }
    Ok(feed)
}

fn check_change(
    change: &Change,
    previous: Option<(Sequence, Timestamp)>,
    report: &mut CheckReport,
) {
    let Some((Sequence(previous), at)) = previous else { return };
    let Sequence(number) = change.sequence;
    if number != previous + 1 && change.event != Event::Restarted {
        report.add(format!("the feed jumps from {previous} to {number}"), Remedy::None);
    }
    if change.at <= at {
        report.add(format!("change {number} is not later than the one before"), Remedy::None);
    }
}
