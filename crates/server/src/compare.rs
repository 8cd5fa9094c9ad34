//! What changed between two moments of a store, and who wrote each line of a memory.

use std::ops::RangeInclusive;

use quipu_core::Moment;
use quipu_core::diff::Diff;
use quipu_core::engine::{Difference, compare};
use quipu_core::model::{Memory, MemoryId, StoreId, Timestamp, View};
use quipu_service::past::Then;
use quipu_service::wire::{
    BlameBody, BlamedLineBody, ComparisonBody, DifferenceBody, ListBody, SideBody,
};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::parse_id;
use super::cursor::{Cursors, Pinned};
use super::knowledge::directory;
use super::past::required_path;

const DIFFERENCES: &str = "differences";
const LINES: &str = "blamed lines";

/// How many unchanged lines are shown around a change.
const CONTEXT_DEFAULT: usize = 3;
const CONTEXT_MAX: usize = 100;

/// The default and the maximum number of blamed lines on a page.
const LINES_MAX: usize = 1_000;

/// Compares a store at two moments. Texts are read for the differences of one page only.
pub(super) fn diff(call: &Call<'_>) -> Answer {
    let store = call.readable_store()?.id;
    let query = call.query();
    let view = query.view(View::Full)?;
    let limit = query.limit(view)?;
    let context = number(call, "context", 0..=CONTEXT_MAX)?.unwrap_or(CONTEXT_DEFAULT);
    let cursors = Cursors::new(call, DIFFERENCES);
    let page: Option<Pinned<2>> = cursors.place(query)?;
    let (from, to) = sides(call, store, page.as_ref().map(|page| page.moments))?;
    let differences = differences(call, store, (&from, &to))?;

    let after = page.map(|page| page.place);
    let is_due = |difference: &&Difference| after.as_ref().is_none_or(|it| place(difference) > *it);
    let mut due = differences.iter().filter(is_due);
    let shown: Vec<_> = due.by_ref().take(limit).collect();
    let next = shown.last().filter(|_| due.next().is_some());
    let moments = [from.past.at, to.past.at];
    let next_page = next.map(|last| cursors.encode(Pinned { moments, place: place(last) }));
    let mut data = Vec::with_capacity(shown.len());
    for difference in shown {
        let lines = match view {
            View::Basic => None,
            View::Full => lines(difference, (&from, &to))?,
        };
        data.push(DifferenceBody::new(difference, lines.as_ref(), context));
    }
    let count = |kind: &str| {
        differences.iter().filter(|difference| DifferenceBody::kind(difference) == kind).count()
    };
    Ok(json(&ComparisonBody {
        from: side(&from)?,
        to: side(&to)?,
        added_count: count("added"),
        removed_count: count("removed"),
        changed_count: count("changed"),
        moved_count: count("moved"),
        page: ListBody { data, next_page },
    }))
}

/// Returns the two moments: those of the first page, or those that the query names.
fn sides(
    call: &Call<'_>,
    store: StoreId,
    pinned: Option<[Timestamp; 2]>,
) -> Result<(Then, Then), Failure> {
    if let Some([from, to]) = pinned {
        let at = |at| Then::new(call.engine, store, &Moment::Resolved(at));
        return Ok((at(from)?, at(to)?));
    }
    let Some(from) = call.query().get("from")? else {
        return Err(Failure::invalid("from: say which moment, such as `yesterday` or `#12345`"));
    };
    let to = match call.query().get("to")? {
        Some(to) => Then::parse(call.engine, store, to)?,
        None => Then::now(call.engine, store)?,
    };
    Ok((Then::parse(call.engine, store, from)?, to))
}

/// Returns all differences that the query selects, in the order of their places.
fn differences(
    call: &Call<'_>,
    store: StoreId,
    (from, to): (&Then, &Then),
) -> Result<Vec<Difference>, Failure> {
    let selected = call.query().get("path_prefix")?.map(directory).transpose()?;
    let mut differences = compare(&from.engine.tree(store)?, &to.engine.tree(store)?);
    if let Some(directory) = selected {
        // The trees are compared first: what left the directory or came into it has moved.
        let is_in = |memory: Option<&Memory>| memory.is_some_and(|it| directory.contains(&it.path));
        differences.retain(|it| is_in(it.before()) || is_in(it.after()));
    }
    differences.sort_by_cached_key(place);
    Ok(differences)
}

/// Returns the place of a difference in the list, which no other one has.
///
/// A path is not enough: a memory that is gone and another one that took its path are two differences.
/// A number would not do either, since redactions between two pages shorten the list.
fn place(difference: &Difference) -> String {
    match (difference.before(), difference.after()) {
        (_, Some(new)) => format!("{}\0+", new.path),
        (Some(old), None) => format!("{}\0-", old.path),
        (None, None) => String::new(),
    }
}

/// Returns how the texts differ; `None` if one of them was redacted since the trees were read.
fn lines(difference: &Difference, (from, to): (&Then, &Then)) -> Result<Option<Diff>, Failure> {
    let text = |then: &Then, memory: Option<&Memory>| -> Result<Option<String>, Failure> {
        let Some(memory) = memory else { return Ok(Some(String::new())) };
        let version = then.engine.version(memory.store, memory.version, View::Full)?;
        Ok(version.content.map(|content| content.as_str().to_owned()))
    };
    let (old, new) = (text(from, difference.before())?, text(to, difference.after())?);
    Ok(old.zip(new).map(|(old, new)| Diff::new(&old, &new)))
}

fn side(then: &Then) -> Result<SideBody, Failure> {
    Ok(SideBody { as_of: then.into(), redacted_count: then.redacted()?.len() })
}

/// Returns the lines of a memory with the versions that they came with.
pub(super) fn blame(call: &Call<'_>) -> Answer {
    let store = call.readable_store()?.id;
    let limit = number(call, "limit", 1..=LINES_MAX)?.unwrap_or(LINES_MAX);
    let cursors = Cursors::new(call, LINES);
    let page: Option<Pinned<1>> = cursors.place(call.query())?;
    let then = match (&page, call.query().get("at")?) {
        (Some(Pinned { moments: [at], .. }), _) => {
            Then::new(call.engine, store, &Moment::Resolved(*at))?
        }
        (None, Some(moment)) => Then::parse(call.engine, store, moment)?,
        (None, None) => Then::now(call.engine, store)?,
    };
    let memory = blamed(call, &then)?;
    let lines = then.engine.blame(store, memory.id)?;
    let skipped = page.and_then(|page| page.place.parse().ok()).unwrap_or(0);
    let end = lines.len().min(skipped + limit);
    let place = (end < lines.len()).then(|| end.to_string());
    let shown = lines.iter().enumerate().take(end).skip(skipped);
    Ok(json(&BlameBody {
        memory_id: memory.id.to_string(),
        path: memory.path.to_string(),
        memory_version_id: memory.version.to_string(),
        as_of: (&then).into(),
        page: ListBody {
            data: shown.map(|(index, line)| BlamedLineBody::new(index + 1, line)).collect(),
            next_page: place.map(|place| cursors.encode(Pinned { moments: [then.past.at], place })),
        },
    }))
}

/// Returns the memory that the query names by its id or by the path that it had.
fn blamed(call: &Call<'_>, then: &Then) -> Result<Memory, Failure> {
    let memory = match (call.query().get("memory_id")?, call.query().get("path")?) {
        (Some(id), None) => {
            let id: MemoryId = parse_id(id, "memory")?;
            then.engine.memory(then.store(), id, View::Basic)
        }
        (None, Some(_)) => then.engine.memory_at(then.store(), &required_path(call)?, View::Basic),
        (Some(_), Some(_)) | (None, None) => {
            return Err(Failure::invalid("path: say which memory, by `path` or by `memory_id`"));
        }
    };
    Ok(memory.map_err(|error| then.explained(error))?)
}

/// Parses a number of the query that must be in a range.
fn number(
    call: &Call<'_>,
    name: &str,
    range: RangeInclusive<usize>,
) -> Result<Option<usize>, Failure> {
    let Some(text) = call.query().get(name)? else { return Ok(None) };
    match text.parse().ok().filter(|number| range.contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(Failure::invalid(format!(
            "{name}: must be a number from {} to {}",
            range.start(),
            range.end()
        ))),
    }
}
