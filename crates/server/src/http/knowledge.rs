//! Quipu's own routes for search, context, recent activity and links.

use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::engine::{
    ContextRequest, NoteLink, Principal, RecentRequest, Scope, SearchFilter, SearchMode,
    SearchRequest,
};
use quipu_core::index::What;
use quipu_core::model::{Directory, MemoryId, StoreId, Timestamp, VersionId, View};
use quipu_core::{Engine, Error, timeframe};
use serde_json::Value;

use super::answer::{Answer, Failure, json};
use super::caller::{Call, Need, Path};
use super::cursor;
use crate::wire::{
    ContextBody, ListBody, NoteLinkBody, OrphansBody, RecentBody, SearchBody, field_filters,
};

const RECENT: &str = "recent";
const LINKS_MAX: usize = 1000;

/// Searches the stores that are named, or all that the caller may read.
pub(super) async fn search(call: Call) -> Answer {
    let request = search_request(&call)?;
    let page = call.blocking(move |call| call.engine().search(&request)).await?;
    Ok(json(&SearchBody::from(&page)))
}

fn search_request(call: &Call) -> Result<SearchRequest, Failure> {
    let query = &call.query;
    let owned = |name: &str| query.all(name).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let what = query.all("type").into_iter().map(|text| match text {
        "memory" | "entity" => Ok(What::Memories),
        "observation" => Ok(What::Observations),
        "relation" => Ok(What::Relations),
        _ => Err(Failure::invalid("type: must be one of: memory, observation, relation")),
    });
    let mode = match query.get("search_type") {
        None | Some("text") => SearchMode::Text,
        Some("title") => SearchMode::Title,
        Some("permalink") => SearchMode::Permalink,
        Some(_) => {
            return Err(Failure::invalid("search_type: must be one of: text, title, permalink"));
        }
    };
    let directory = query.get("path_prefix").map(directory).transpose()?;
    let fields = match query.get("metadata_filters") {
        None => Vec::new(),
        Some(text) => {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| Failure::invalid(format!("metadata_filters: {error}")))?;
            field_filters(&value).map_err(Failure::invalid)?
        }
    };
    Ok(SearchRequest {
        stores: stores(call, &query.all("store"))?,
        text: query.get("query").or(query.get("q")).unwrap_or_default().to_owned(),
        mode,
        what: what.collect::<Result<_, _>>()?,
        filter: SearchFilter {
            directory,
            kinds: owned("note_type"),
            tags: owned("tag"),
            categories: owned("category"),
            fields,
            changed_after: moment(call, "after")?,
        },
        offset: query.parse("offset")?.unwrap_or(0),
        limit: query.limit(View::Basic)?,
    })
}

/// Returns a directory as people write it: `docs`, `/docs`, `/docs/`.
fn directory(text: &str) -> Result<Directory, Failure> {
    let text = text.trim_matches('/');
    let text = if text.is_empty() { "/".to_owned() } else { format!("/{text}/") };
    Ok(Directory::parse(&text).map_err(Error::from)?)
}

fn moment(call: &Call, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = call.query.get(name) else { return Ok(None) };
    let moment = timeframe::since(text, call.engine().now());
    moment.map(Some).ok_or_else(|| {
        Failure::invalid(format!("{name}: must be a time such as `7d` or `2026-11-15`"))
    })
}

/// Returns the stores with these names, slugs or ids; without any, all that the caller may read.
fn stores(call: &Call, names: &[&str]) -> Result<Vec<StoreId>, Failure> {
    let readable = readable(call)?;
    if names.is_empty() {
        return Ok(readable);
    }
    let mut found = Vec::new();
    for name in names {
        let store = call.engine().find_store(call.caller.workspace, name)?;
        if !readable.contains(&store.id) {
            return Err(call.caller.denied(Need::Read));
        }
        found.push(store.id);
    }
    Ok(found)
}

/// Returns every store that the caller may read.
fn readable(call: &Call) -> Result<Vec<StoreId>, Failure> {
    if let Principal::Session(session) = &call.caller.principal {
        let mut stores = Vec::new();
        for attachment in &session.attachments {
            // An attachment outlives its store.
            if call.engine().store(attachment.store).is_ok() {
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
    let stores = call.engine().stores(&query)?.items.into_iter().map(|store| store.id);
    Ok(stores.filter(|store| call.caller.may_in(*store, Need::Read)).collect())
}

/// Returns the scope of a store from which the others that the caller may read can be reached.
fn scope(call: &Call, store: &str) -> Result<Scope, Failure> {
    let store = call.store(store, Need::Read)?;
    Ok(Scope::new(store.id, readable(call)?))
}

/// Returns memories with their observations and what is linked with them.
pub(super) async fn context(Path(store): Path<String>, call: Call) -> Answer {
    let scope = scope(&call, &store)?;
    let query = &call.query;
    let Some(identifier) = query.get("url").map(str::to_owned) else {
        return Err(Failure::invalid("url: say which memory, such as `memory://notes/tea`"));
    };
    let default = ContextRequest::default();
    let request = ContextRequest {
        depth: query.parse("depth")?.unwrap_or(default.depth),
        kinds: query.all("relation_type").into_iter().map(str::to_owned).collect(),
        changed_after: moment(&call, "timeframe")?,
        related_max: query.parse("max_related")?.unwrap_or(default.related_max),
        offset: query.parse("offset")?.unwrap_or(0),
        limit: query.limit(View::Basic)?,
    };
    let context =
        call.blocking(move |call| call.engine().context(&scope, &identifier, &request)).await?;
    Ok(json(&ContextBody::from(&context)))
}

/// Returns the last change of each memory, the newest first.
pub(super) async fn recent(Path(store): Path<String>, call: Call) -> Answer {
    let store = call.store(&store, Need::Read)?;
    let before: Option<VersionId> = cursor::decode(RECENT, call.query.get("page"))?;
    let request = RecentRequest {
        stores: vec![store.id],
        since: moment(&call, "timeframe")?.unwrap_or(Timestamp::MIN),
        operations: Vec::new(),
        kinds: call.query.all("note_type").into_iter().map(str::to_owned).collect(),
        before,
        limit: call.query.limit(View::Basic)?,
    };
    let page = call.blocking(move |call| call.engine().recent(&request)).await?;
    Ok(json(&ListBody {
        data: page.items.iter().map(RecentBody::from).collect(),
        next_page: page.next.map(|id| cursor::encode(RECENT, id)),
    }))
}

/// Returns the links of a memory, those that mean it, those that mean nothing, or the memories
/// without any.
pub(super) async fn links(Path(store): Path<String>, call: Call) -> Answer {
    let scope = scope(&call, &store)?;
    let memory = call.query.get("memory").map(str::to_owned);
    let list = |links: Vec<NoteLink>| {
        json(&ListBody::complete(links.iter().map(NoteLinkBody::from).collect()))
    };
    match (call.query.get("direction"), memory) {
        (None | Some("outgoing"), Some(memory)) => {
            let links = call.blocking(move |call| {
                let (engine, memory) = resolved(call, &scope, &memory)?;
                engine.links(&scope, memory, LINKS_MAX)
            });
            Ok(list(links.await?))
        }
        (Some("incoming"), Some(memory)) => {
            let links = call.blocking(move |call| {
                let (engine, memory) = resolved(call, &scope, &memory)?;
                engine.backlinks(&scope, memory, LINKS_MAX)
            });
            Ok(list(links.await?))
        }
        (Some("unresolved"), None) => {
            let links = call.blocking(move |call| call.engine().unresolved(&scope, LINKS_MAX));
            Ok(list(links.await?))
        }
        (Some("none"), None) => {
            let orphans = call.blocking(move |call| call.engine().orphans(&scope, LINKS_MAX));
            Ok(json(&OrphansBody::from(&orphans.await?)))
        }
        _ => Err(Failure::invalid(
            "direction: must be `outgoing` or `incoming` with `memory`, or `unresolved` or `none` \
             without it",
        )),
    }
}

fn resolved<'a>(
    call: &'a Call,
    scope: &Scope,
    memory: &str,
) -> Result<(&'a Engine, MemoryId), Error> {
    let home = Scope { home: scope.home, stores: vec![scope.home] };
    Ok((call.engine(), call.engine().resolve(&home, memory, View::Basic)?.id))
}
