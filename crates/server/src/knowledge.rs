//! Quipu's own routes for search, context, recent activity and links.

use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::engine::Principal;
use quipu_service::caller::Need;
use quipu_service::wire::{
    ContextBody, ListBody, NoteLinkBody, OrphansBody, RecentBody, SearchBody, field_filters,
};

use quipu_core::model::{Directory, MemoryId, StoreId, Timestamp, VersionId, View};
use quipu_core::{Error, timeframe};
use quipu_knowledge::{
    ContextRequest, Knowledge, NoteLink, RecentRequest, Scope, SearchFilter, SearchMode,
    SearchRequest, SearchTarget,
};
use serde_json::Value;

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::cursor::Cursors;
use super::query::Query;

const RECENT: &str = "recent";
const LINKS_MAX: usize = 1000;

/// Searches the stores that are named, or all that the caller may read.
pub(super) fn search(call: &Call<'_>) -> Answer {
    let stores = stores(call, &call.query().all("store")?)?;
    let page = call.engine.search(&search_request(call, stores)?)?;
    Ok(json(&SearchBody::from(&page)))
}

/// Parses what a search in some stores looks for.
pub(super) fn search_request(
    call: &Call<'_>,
    stores: Vec<StoreId>,
) -> Result<SearchRequest, Failure> {
    let query = call.query();
    let what = query.all("type")?.into_iter().map(|text| match text {
        "memory" | "entity" => Ok(SearchTarget::Memories),
        "observation" => Ok(SearchTarget::Observations),
        "relation" => Ok(SearchTarget::Relations),
        _ => Err(Failure::invalid("type: must be one of: memory, observation, relation")),
    });
    let mode = match query.get("search_type")? {
        None => SearchMode::default(),
        Some(name) => SearchMode::parse(name).ok_or_else(|| {
            Failure::invalid(format!("search_type: must be one of: {}", SearchMode::NAMES))
        })?,
    };
    let directory = query.get("path_prefix")?.map(directory).transpose()?;
    let fields = match query.get("metadata_filters")? {
        None => Vec::new(),
        Some(text) => {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| Failure::invalid(format!("metadata_filters: {error}")))?;
            field_filters(&value).map_err(Failure::invalid)?
        }
    };
    Ok(SearchRequest {
        stores,
        // An empty query selects by the filters alone, so it is allowed here.
        text: query
            .get_or_empty("query")
            .or(query.get_or_empty("q"))
            .unwrap_or_default()
            .to_owned(),
        mode,
        targets: what.collect::<Result<_, _>>()?,
        filter: SearchFilter {
            directory,
            kinds: owned(query, "note_type")?,
            tags: owned(query, "tag")?,
            categories: owned(query, "category")?,
            fields,
            changed_after: moment(call, "after")?,
        },
        offset: query.parse("offset")?.unwrap_or(0),
        limit: query.limit(View::Basic)?,
        explain: query.parse("explain")?.unwrap_or(false),
        asked_by: Some(call.caller.actor.clone()),
    })
}

/// Returns all values of a name.
fn owned(query: &Query, name: &str) -> Result<Vec<String>, Failure> {
    Ok(query.all(name)?.into_iter().map(str::to_owned).collect())
}

/// Parses a directory as people write it: `docs`, `/docs`, `/docs/`.
pub(super) fn directory(text: &str) -> Result<Directory, Failure> {
    let text = text.trim_matches('/');
    let text = if text.is_empty() { "/".to_owned() } else { format!("/{text}/") };
    Ok(Directory::parse(&text).map_err(Error::from)?)
}

fn moment(call: &Call<'_>, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = call.query().get(name)? else { return Ok(None) };
    let moment = timeframe::since(text, call.engine.now());
    moment.map(Some).ok_or_else(|| {
        Failure::invalid(format!("{name}: must be a time such as `7d` or `2026-11-15`"))
    })
}

/// Returns the stores with these names, slugs or ids; without any, all that the caller may read.
fn stores(call: &Call<'_>, names: &[&str]) -> Result<Vec<StoreId>, Failure> {
    let readable = readable(call)?;
    if names.is_empty() {
        return Ok(readable);
    }
    let mut found = Vec::new();
    for name in names {
        let store = call.find_store(name)?;
        if !readable.contains(&store.id) {
            return Err(call.caller.denied(Need::Read).into());
        }
        found.push(store.id);
    }
    Ok(found)
}

/// Returns every store that the caller may read.
fn readable(call: &Call<'_>) -> Result<Vec<StoreId>, Failure> {
    if let Principal::Session(session) = &call.caller.principal {
        let mut stores = Vec::new();
        for attachment in &session.attachments {
            // An attachment outlives its store.
            if call.engine.store(attachment.store).is_ok() {
                stores.push(attachment.store);
            }
        }
        return Ok(stores);
    }
    let query = StoreQuery {
        workspace: call.caller.workspace,
        archived: Archived::Show,
        created: Span::default(),
        before: None,
        limit: usize::MAX,
    };
    let stores = call.engine.stores(&query)?.items.into_iter().map(|store| store.id);
    Ok(stores.filter(|store| call.caller.may_in(*store, Need::Read)).collect())
}

/// Returns the scope of the store that the path names, from which the others that the caller may read can be reached.
fn scope(call: &Call<'_>) -> Result<Scope, Failure> {
    let store = call.named_store(Need::Read)?;
    Ok(Scope::new(store.id, readable(call)?))
}

/// Returns memories with their observations and what is linked with them.
pub(super) fn context(call: &Call<'_>) -> Answer {
    let scope = scope(call)?;
    let query = call.query();
    let Some(identifier) = query.get("url")? else {
        return Err(Failure::invalid("url: say which memory, such as `memory://notes/tea`"));
    };
    let default = ContextRequest::default();
    let request = ContextRequest {
        depth: query.parse("depth")?.unwrap_or(default.depth),
        kinds: owned(query, "relation_type")?,
        changed_after: moment(call, "timeframe")?,
        related_max: query.parse("max_related")?.unwrap_or(default.related_max),
        offset: query.parse("offset")?.unwrap_or(0),
        limit: query.limit(View::Basic)?,
    };
    Ok(json(&ContextBody::from(&call.engine.context(&scope, identifier, &request)?)))
}

/// Returns the last change of each memory, the newest first.
pub(super) fn recent(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Read)?;
    let cursors = Cursors::new(call, RECENT);
    let before: Option<VersionId> = cursors.place(call.query())?;
    let request = RecentRequest {
        stores: vec![store.id],
        since: moment(call, "timeframe")?.unwrap_or(Timestamp::MIN),
        operations: Vec::new(),
        kinds: owned(call.query(), "note_type")?,
        before,
        limit: call.query().limit(View::Basic)?,
    };
    let page = call.engine.recent(&request)?;
    Ok(json(&ListBody {
        data: page.items.iter().map(RecentBody::from).collect(),
        next_page: page.next.map(|id| cursors.encode(id)),
    }))
}

/// Returns the links of a memory, its backlinks, the broken links, or the memories without links.
pub(super) fn links(call: &Call<'_>) -> Answer {
    let scope = scope(call)?;
    let list = |links: Vec<NoteLink>| {
        json(&ListBody::complete(links.iter().map(NoteLinkBody::from).collect()))
    };
    let engine = call.engine;
    match (call.query().get("direction")?, call.query().get("memory")?) {
        (None | Some("outgoing"), Some(memory)) => {
            Ok(list(engine.links(&scope, resolved(engine, &scope, memory)?, LINKS_MAX)?))
        }
        (Some("incoming"), Some(memory)) => {
            Ok(list(engine.backlinks(&scope, resolved(engine, &scope, memory)?, LINKS_MAX)?))
        }
        (Some("unresolved"), None) => Ok(list(engine.unresolved(&scope, LINKS_MAX)?)),
        (Some("none"), None) => Ok(json(&OrphansBody::from(&engine.orphans(&scope, LINKS_MAX)?))),
        _ => Err(Failure::invalid(
            "direction: must be `outgoing` or `incoming` with `memory`, or `unresolved` or `none` \
             without it",
        )),
    }
}

fn resolved(engine: &Knowledge, scope: &Scope, memory: &str) -> Result<MemoryId, Error> {
    let home = Scope { home: scope.home, stores: vec![scope.home] };
    Ok(engine.resolve(&home, memory, View::Basic)?.id)
}
