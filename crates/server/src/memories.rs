//! `/v1/memory_stores/{store}/memories`.

use std::num::NonZero;

use axum::http::HeaderValue;
use axum::response::Response;
use quipu_core::Error;
use quipu_core::engine::{ListQuery, MemoryUpdate, Precondition, Written};
use quipu_core::model::{Content, ContentHash, Directory, Memory, MemoryId, MemoryPath, View};
use quipu_service::caller::Need;
use quipu_service::wire::{
    CreateMemory, DeletedBody, ListBody, ListingBody, MemoryBody, Object, PreconditionBody,
    UpdateMemory,
};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::parse_id;
use super::cursor::Cursors;
use super::query::Query;

const LIST: &str = "memories";

/// How many credentials the header names.
const FINDINGS_NAMED_MAX: usize = 20;

pub(super) fn create(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Write)?;
    let view = call.query().view(View::Basic)?;
    let body: CreateMemory = call.body()?;
    let path = MemoryPath::parse(&body.path).map_err(|error| invalid("path", error))?;
    let content = Content::new(body.content).map_err(|error| invalid("content", error))?;
    let created = call.engine.create(&call.caller.actor, store.id, &path, &content)?;
    Ok(with_findings(json(&viewed(&created.memory, view)), &created))
}

pub(super) fn list(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Read)?;
    let cursors = Cursors::new(call, LIST);
    let query = list_query(call.query(), cursors.place(call.query())?)?;
    let page = call.engine.list(store.id, &query)?;
    Ok(json(&ListBody {
        data: page.items.iter().map(ListingBody::from).collect(),
        next_page: page.next.map(|place| cursors.encode(place)),
    }))
}

/// Parses what a listing selects.
pub(super) fn list_query(query: &Query, after: Option<String>) -> Result<ListQuery, Failure> {
    let view = query.view(View::Basic)?;
    let directory = match query.get("path_prefix")? {
        None => Directory::root(),
        Some(prefix) => Directory::parse(prefix).map_err(|error| invalid("path_prefix", error))?,
    };
    let depth = match query.get("depth")? {
        None | Some("0") => None,
        Some("1") => NonZero::new(1),
        Some(_) => return Err(Failure::invalid("depth: must be 0 or 1")),
    };
    Ok(ListQuery { directory, depth, after, limit: query.limit(view)?, view })
}

pub(super) fn retrieve(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Read)?;
    let view = call.query().view(View::Full)?;
    let id: MemoryId = parse_id(call.parameter("memory"), "memory")?;
    Ok(json(&MemoryBody::from(&call.engine.memory(store.id, id, view)?)))
}

pub(super) fn update(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Write)?;
    let view = call.query().view(View::Basic)?;
    let body: UpdateMemory = call.body()?;
    if body.content.is_none() && body.path.is_none() {
        return Err(Failure::invalid("request body: at least one of content and path is required"));
    }
    let path = body.path.as_deref().map(MemoryPath::parse).transpose();
    let update = MemoryUpdate {
        content: body
            .content
            .map(Content::new)
            .transpose()
            .map_err(|error| invalid("content", error))?,
        path: path.map_err(|error| invalid("path", error))?,
        precondition: precondition(body.precondition)?,
    };
    let id: MemoryId = match parse_id(call.parameter("memory"), "memory") {
        Ok(id) => id,
        // In the contract's order of checks, an archived store comes first.
        Err(failure) if store.archived_at.is_none() => return Err(failure),
        Err(_) => quipu_core::model::Id::from_bits(0),
    };
    let updated = call.engine.update(&call.caller.actor, store.id, id, &update)?;
    Ok(with_findings(json(&viewed(&updated.memory, view)), &updated))
}

pub(super) fn delete(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Write)?;
    let precondition = match call.query().get("expected_content_sha256")? {
        None => Precondition::None,
        Some(hash) => Precondition::ContentIs(parse_hash("expected_content_sha256", hash)?),
    };
    let id: MemoryId = parse_id(call.parameter("memory"), "memory")?;
    call.engine.delete(&call.caller.actor, store.id, id, precondition)?;
    Ok(json(&DeletedBody::memory(id)))
}

/// Reports the credentials that were found in the text, in a header: the body belongs to the
/// contract.
pub(super) fn with_findings(mut response: Response, written: &Written) -> Response {
    let named = written.findings.iter().take(FINDINGS_NAMED_MAX);
    let found: Vec<_> =
        named.map(|finding| format!("{};line={}", finding.kind.as_str(), finding.line)).collect();
    if let Ok(value) = HeaderValue::from_str(&found.join(", "))
        && !found.is_empty()
    {
        response.headers_mut().insert("quipu-credentials-found", value);
    }
    response
}

fn precondition(body: Option<Object<PreconditionBody>>) -> Result<Precondition, Failure> {
    match body {
        None => Ok(Precondition::None),
        Some(Object(PreconditionBody::ContentSha256 { content_sha256 })) => {
            let hash = content_sha256
                .ok_or_else(|| Failure::invalid("precondition.content_sha256: must be given"))?;
            parse_hash("precondition.content_sha256", &hash).map(Precondition::ContentIs)
        }
    }
}

fn parse_hash(field: &str, text: &str) -> Result<ContentHash, Failure> {
    text.parse().map_err(|error| invalid(field, error))
}

fn invalid(field: &str, error: impl std::fmt::Display) -> Failure {
    Error::invalid(format!("{field}: {error}")).into()
}

fn viewed(memory: &Memory, view: View) -> MemoryBody {
    let body = MemoryBody::from(memory);
    match view {
        View::Basic => MemoryBody { content: None, ..body },
        View::Full => body,
    }
}
