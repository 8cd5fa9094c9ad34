//! Stores as they were: `/quipu/stores/{store}/at/{moment}`, and copies of them.

use quipu_core::engine::NewStore;
use quipu_core::model::{MemoryPath, Name, Store, View};
use quipu_core::{Error, ErrorKind, Moment};
use quipu_service::caller::Need;
use quipu_service::past::Then;
use quipu_service::wire::{
    CopyBody, CopyStore, ListBody, ListingBody, PastListBody, PastMemoryBody, PastSearchBody,
    PastStoreBody, SEARCHED, SearchBody,
};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::cursor::{Cursors, Pinned};
use super::knowledge::search_request;
use super::memories::list_query;

/// How many redacted versions are named; all of them are counted.
const REDACTED_MAX: usize = 1_000;

/// Returns the store and the moment that the path names.
fn then(call: &Call<'_>) -> Result<Then, Failure> {
    let store = call.readable_store()?;
    Ok(Then::parse(call.engine, store.id, call.parameter("moment"))?)
}

/// Returns what a moment means, how much the store held, and what was redacted since.
pub(super) fn summary(call: &Call<'_>) -> Answer {
    let then = then(call)?;
    let usage = then.engine.usage(then.store())?;
    Ok(json(&PastStoreBody::new(&then, usage, &then.redacted()?, REDACTED_MAX)))
}

/// Lists the memories of a moment.
///
/// A cursor keeps the moment that the first page was read at: `1h ago` is another one for the second.
pub(super) fn list(call: &Call<'_>) -> Answer {
    let store = call.readable_store()?;
    let moment = call.parameter("moment");
    let cursors = Cursors::new(call, &format!("memories at {moment}"));
    let page: Option<Pinned<1>> = cursors.place(call.query())?;
    let then = match &page {
        Some(Pinned { moments: [at], .. }) => {
            Then::new(call.engine, store.id, &Moment::Resolved(*at))?
        }
        None => Then::parse(call.engine, store.id, moment)?,
    };
    let query = list_query(call.query(), page.map(|page| page.place))?;
    let page = then.engine.list(store.id, &query)?;
    let next = page.next.map(|place| cursors.encode(Pinned { moments: [then.past.at], place }));
    let data = page.items.iter().map(ListingBody::from).collect();
    Ok(json(&PastListBody { page: ListBody { data, next_page: next }, as_of: (&then).into() }))
}

/// Reads a memory by the path that it had.
pub(super) fn memory(call: &Call<'_>) -> Answer {
    let then = then(call)?;
    let view = call.query().view(View::Full)?;
    let path = required_path(call)?;
    let memory = then.engine.memory_at(then.store(), &path, view);
    let memory = memory.map_err(|error| then.explained(error))?;
    Ok(json(&PastMemoryBody { memory: (&memory).into(), as_of: (&then).into() }))
}

/// Returns the memory's path in the query.
pub(super) fn required_path(call: &Call<'_>) -> Result<MemoryPath, Failure> {
    let Some(path) = call.query().get("path")? else {
        return Err(Failure::invalid("path: say which memory, such as `/tea.md`"));
    };
    MemoryPath::parse(path).map_err(|error| Failure::invalid(format!("path: {error}")))
}

/// Searches a store as it was, by reading all of it.
pub(super) fn search(call: &Call<'_>) -> Answer {
    let then = then(call)?;
    let page = then.engine.search(&search_request(call, vec![then.store()])?)?;
    Ok(json(&PastSearchBody {
        found: SearchBody::from(&page),
        searched: SEARCHED,
        redacted_count: then.redacted()?.len(),
        as_of: (&then).into(),
    }))
}

/// Creates a store with the memories of another one, as it is or as it was.
pub(super) fn copy(call: &Call<'_>) -> Answer {
    let source = call.readable_store()?;
    call.caller.require_workspace(Need::Manage)?;
    let body: CopyStore = call.body()?;
    let name = Name::new(body.name).map_err(Error::from)?;
    require_free(call, &name)?;
    let then = match &body.at {
        Some(moment) => Then::parse(call.engine, source.id, moment)?,
        None => Then::now(call.engine, source.id)?,
    };
    let Store { description, metadata, policy, .. } = source;
    let new = NewStore { name, description, metadata, policy };
    let target = (call.caller.workspace, &new);
    let from = (then.engine.engine(), then.store());
    let copied = call.engine.copy_store(&call.caller.actor, from, target)?;
    Ok(json(&CopyBody::new(&copied, &then, then.redacted()?.len())))
}

/// Fails if a store has this name. Over `/v1` two stores may share one, but a copy that cannot be told
/// from its source by name is a trap.
fn require_free(call: &Call<'_>, name: &Name) -> Result<(), Failure> {
    match call.engine.find_store(call.caller.workspace, name.as_str()) {
        Err(error) if *error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if *error.kind() != ErrorKind::Ambiguous => Err(error.into()),
        Ok(_) | Err(_) => {
            Err(Failure::invalid(format!("name: there is already a store named `{name}`")))
        }
    }
}
