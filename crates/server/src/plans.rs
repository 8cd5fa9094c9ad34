//! `/quipu`: reverting what somebody did, restoring a tree, and what a session changed.

use quipu_core::backend::{Archived, Span, StoreQuery};
use quipu_core::engine::{Approval, ChangeSelection, Completeness, Goal, Restoration};
use quipu_core::model::{Actor, ExpectedDigest, MemoryPath, Reason, Store, Timestamp, VersionId};
use quipu_core::moment::Moment;
use quipu_core::{Error, timeframe};
use quipu_service::caller::Need;
use quipu_service::wire::{
    ChangedBody, Diffs, ListBody, MemoryBody, PlanBody, Restore, RevertChanges,
};
use serde::Deserialize;

use super::answer::{Answer, Failure, json};
use super::call::{Call, Kind};
use super::caller::parse_id;
use super::memories::with_findings;
use super::sessions::session;

/// The maximum number of authors in one request.
const ACTORS_MAX: usize = 100;

/// Returns whether a plan is only shown or carried out too.
pub(super) fn plan_kind(body: &[u8]) -> Kind {
    #[derive(Deserialize)]
    struct Input {
        #[serde(default)]
        dry_run: bool,
    }
    match serde_json::from_slice(body) {
        Ok(Input { dry_run: false }) => Kind::Write,
        // A malformed request is rejected without a write.
        Ok(Input { dry_run: true }) | Err(_) => Kind::Read,
    }
}

/// Reverts the changes of some authors in a store.
pub(super) fn revert(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Write)?;
    let body: RevertChanges = call.body()?;
    if body.actors.is_empty() || body.actors.len() > ACTORS_MAX {
        return Err(Failure::invalid(format!("`actors` names 1 to {ACTORS_MAX} authors")));
    }
    let actors = actors(call, &body.actors)?;
    let all = Span::default();
    let created = Span {
        first: moment(call, "since", body.since.as_deref())?.unwrap_or(all.first),
        last: moment(call, "until", body.until.as_deref())?.unwrap_or(all.last),
    };
    let path = body.path.as_deref().map(tree_path).transpose()?.flatten();
    let names = body.actors.join(", ");
    // A reason that is too long is refused in a dry run as well.
    let reason = body.reason.unwrap_or_else(|| shortened(format!("revert of {names}")));
    let reason = Reason::new(reason).map_err(Error::from)?;
    let goal = Goal::Revert(ChangeSelection { actors, created, path });
    if body.dry_run {
        return planned(call, &store, &goal, body.expect.as_deref());
    }
    carried_out(call, &store, &goal, (body.expect.as_deref(), reason))
}

/// Restores an old version as a new one, or a tree as it was at a moment.
pub(super) fn restore(call: &Call<'_>) -> Answer {
    let store = call.named_store(Need::Write)?;
    let body: Restore = call.body()?;
    let at = match (&body.memory_version_id, &body.at) {
        (Some(id), None) => return restore_version(call, &store, &body, id),
        (None, Some(at)) => Moment::parse(at, call.engine.now())?,
        (Some(_), Some(_)) | (None, None) => {
            return Err(Failure::invalid("give either `memory_version_id` or `at`"));
        }
    };
    let past = call.engine.moment(store.id, &at)?;
    let path = body.path.as_deref().map(tree_path).transpose()?.flatten();
    let completeness = if body.incomplete { Completeness::Partial } else { Completeness::Required };
    let at = call.engine.time_of(store.id, &at)?;
    let goal = Goal::Restore(Restoration { at, path, completeness });
    let reason = body.reason.unwrap_or_else(|| format!("restore as of {}", past.at));
    let reason = Reason::new(reason).map_err(Error::from)?;
    if body.dry_run {
        return planned(call, &store, &goal, body.expect.as_deref());
    }
    carried_out(call, &store, &goal, (body.expect.as_deref(), reason))
}

fn restore_version(call: &Call<'_>, store: &Store, body: &Restore, id: &str) -> Answer {
    let is_plain =
        !body.incomplete && !body.dry_run && body.expect.is_none() && body.reason.is_none();
    if !is_plain {
        return Err(Failure::invalid(
            "`incomplete`, `dry_run`, `expect` and `reason` are for a tree; give `at`",
        ));
    }
    let version: VersionId = parse_id(id, "memory version")?;
    let to = body.path.as_deref().map(MemoryPath::parse).transpose().map_err(Error::from)?;
    let restored = call.engine.restore(&call.caller.actor, store.id, version, to.as_ref())?;
    Ok(with_findings(json(&MemoryBody::from(&restored.memory)), &restored))
}

/// Returns what a session changed, as one difference per memory. Stores that the caller may not read are
/// left out.
pub(super) fn changes(call: &Call<'_>) -> Answer {
    let session = session(call, Need::Read)?;
    let query = StoreQuery {
        workspace: call.caller.workspace,
        archived: Archived::Show,
        created: Span::default(),
        before: None,
        limit: usize::MAX,
    };
    let stores = call.engine.stores(&query)?.items;
    let selection =
        ChangeSelection { actors: vec![Actor::Session(session.id)], ..ChangeSelection::default() };
    let (mut bodies, mut diffs) = (Vec::new(), Diffs::default());
    for store in stores.iter().filter(|store| call.caller.may_in(store.id, Need::Read)) {
        let changed = call.engine.changed(store.id, &selection)?;
        bodies.extend(changed.iter().map(|it| ChangedBody::new(store.id, it, &mut diffs)));
    }
    Ok(json(&ListBody::complete(bodies)))
}

fn planned(call: &Call<'_>, store: &Store, goal: &Goal, expect: Option<&str>) -> Answer {
    if expect.is_some() {
        return Err(Failure::invalid(
            "`expect` is for a plan that is carried out, not for a dry run",
        ));
    }
    Ok(json(&PlanBody::from(&call.engine.plan(store.id, goal)?)))
}

fn carried_out(
    call: &Call<'_>,
    store: &Store,
    goal: &Goal,
    (expect, reason): (Option<&str>, Reason),
) -> Answer {
    let expect: Option<ExpectedDigest> = expect
        .map(str::parse)
        .transpose()
        .map_err(|error| Failure::invalid(format!("expect: {error}")))?;
    let approval = Approval { expect, reason };
    let done = call.engine.carry_out(&call.caller.actor, store.id, goal, &approval)?;
    Ok(json(&PlanBody::from(&done)))
}

/// Returns the authors with these ids. A key stands for its sessions too.
fn actors(call: &Call<'_>, ids: &[String]) -> Result<Vec<Actor>, Failure> {
    let mut actors = Vec::new();
    for id in ids {
        match id.parse() {
            Ok(Actor::ApiKey(key)) => {
                actors.extend(call.engine.actors_of_key(key)?);
            }
            Ok(actor) => actors.push(actor),
            Err(error) => return Err(Failure::invalid(format!("actors: `{id}`: {error}"))),
        }
    }
    Ok(actors)
}

/// Reads a field with a time such as `2h` or RFC 3339.
pub(super) fn moment(
    call: &Call<'_>,
    field: &str,
    text: Option<&str>,
) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let at = timeframe::since(text, call.engine.now());
    at.map(Some).ok_or_else(|| {
        Failure::invalid(format!("{field}: `{text}` is not a time such as `2026-11-15T12:00:00Z`"))
    })
}

/// Reads the path of a memory or of a directory; `None` is the whole store.
fn tree_path(text: &str) -> Result<Option<MemoryPath>, Failure> {
    match text.strip_suffix('/').unwrap_or(text) {
        "" => Ok(None),
        path => Ok(Some(MemoryPath::parse(path).map_err(Error::from)?)),
    }
}

/// The maximum length of a reason.
const REASON_CHARS_MAX: usize = 500;

fn shortened(reason: String) -> String {
    match reason.char_indices().nth(REASON_CHARS_MAX - 1) {
        Some((end, _)) => format!("{}…", reason.get(..end).unwrap_or_default()),
        None => reason,
    }
}
