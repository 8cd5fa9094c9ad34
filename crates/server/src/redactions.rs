//! `/quipu/stores/{store}/redactions` and `/quipu/receipts`.

use std::time::Duration;

use quipu_core::Error;
use quipu_core::backend::Span;
use quipu_core::engine::{Heads, Pattern, Principal, Scope, Selection, Terms};
use quipu_core::model::{Actor, MemoryPath, Reason, SessionId, Timestamp, View};
use quipu_service::caller::Need;
use quipu_service::pattern::RegexMatcher;
use quipu_service::wire::{Audience, ListBody, ReceiptBody, RedactSelection, RedactionPlanBody};

use super::answer::{Answer, Failure, json};
use super::call::{Call, Kind};
use super::caller::parse_id;
use super::cursor::Cursors;
use super::plans::moment;

/// The maximum number of versions that one request redacts by their ids.
pub(super) const REDACTED_MAX: usize = 1_000;

/// How long a regular expression may search, in all texts together.
const REGEX_TIME_MAX: Duration = Duration::from_secs(30);

/// Returns whether a request only reads: a dry run must not wait for writers.
pub(super) fn kind(body: &[u8]) -> Kind {
    match serde_json::from_slice(body) {
        Ok(RedactSelection { dry_run: Some(true), .. }) => Kind::Read,
        Ok(_) | Err(_) => Kind::Write,
    }
}

/// Redacts what a selection finds in a store, or returns the plan of that.
pub(super) fn redact(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Manage)?;
    let body: RedactSelection = call.body()?;
    let viewer = match &call.caller.principal {
        Principal::Key(key) => Some(key.clone()),
        Principal::Session(_) => None,
    };
    let scope = Scope { viewer, ..Scope::store(&store) };
    let heads = if body.and_heads == Some(true) { Heads::TakeOut } else { Heads::Refuse };
    let regex = body.regex.as_deref().map(|regex| RegexMatcher::new(regex, REGEX_TIME_MAX));
    let regex = regex.transpose()?;
    let selection = selection(call, &body, regex.as_ref())?;
    if body.dry_run == Some(true) {
        let plan = call.engine.plan_redaction(&scope, &selection, heads)?;
        return Ok(json(&RedactionPlanBody::new(&plan, Audience::Remote)));
    }
    let reason = body.reason.clone().map(Reason::new).transpose().map_err(Error::from)?;
    let terms = Terms { heads, expect: body.expect.clone(), reason };
    let receipt = call.engine.redact_selected(&call.caller.actor, &scope, &selection, &terms)?;
    Ok(json(&ReceiptBody::new(&receipt, Audience::Remote)))
}

/// Reads the conditions of a request.
fn selection<'a>(
    call: &Call<'_>,
    body: &'a RedactSelection,
    regex: Option<&'a RegexMatcher>,
) -> Result<Selection<'a>, Failure> {
    let pattern = match (&body.matching, regex) {
        (Some(_), Some(_)) => {
            return Err(Failure::invalid("give either `matching` or `regex`, not both"));
        }
        (Some(text), None) => Some(Pattern::text(text)?),
        (None, Some(regex)) => Some(Pattern::matcher(regex, "a regular expression")?),
        (None, None) => None,
    };
    let mut actors = Vec::new();
    if let Some(session) = &body.session_id {
        actors.push(Actor::Session(parse_id::<SessionId>(session, "session")?));
    }
    if let Some(actor) = &body.actor_id {
        let actor: Actor =
            actor.parse().map_err(|error| Failure::invalid(format!("actor_id: {error}")))?;
        if actors.iter().any(|session| *session != actor) {
            return Err(Failure::invalid("a version has one author: give one of the two"));
        }
        actors = vec![actor];
    }
    let ids = body.memory_version_ids.as_deref().unwrap_or_default();
    if body.memory_version_ids.as_ref().is_some_and(Vec::is_empty) || ids.len() > REDACTED_MAX {
        let message = format!("`memory_version_ids` names 1 to {REDACTED_MAX} versions");
        return Err(Failure::invalid(message));
    }
    let versions = ids.iter().map(|id| parse_id(id, "memory version"));
    Ok(Selection {
        pattern,
        path: body.path.as_deref().map(MemoryPath::parse).transpose().map_err(Error::from)?,
        memory: body.memory_id.as_deref().map(|id| parse_id(id, "memory")).transpose()?,
        actors,
        versions: versions.collect::<Result<_, _>>()?,
        created: Span {
            first: moment(call, "since", body.since.as_deref())?.unwrap_or(Timestamp::MIN),
            last: moment(call, "until", body.until.as_deref())?.unwrap_or(Timestamp::MAX),
        },
    })
}

/// Lists the receipts of the workspace.
pub(super) fn receipts(call: &Call<'_>) -> Answer {
    call.caller.require_workspace(Need::Manage)?;
    let cursors = Cursors::new(call, "receipts");
    let (before, limit) = (cursors.place(call.query())?, call.query().limit(View::Basic)?);
    let page = call.engine.receipts(call.caller.workspace, before, limit)?;
    let body = |receipt: &_| ReceiptBody::new(receipt, Audience::Remote);
    Ok(json(&ListBody {
        data: page.items.iter().map(body).collect(),
        next_page: page.next.map(|id| cursors.encode(id)),
    }))
}
