//! What a form asks to redact.

use std::time::Duration;

use quipu_core::backend::Span;
use quipu_core::engine::{Heads, Pattern, Principal, RedactionPlan, Scope, Selection, Terms};
use quipu_core::model::{
    Actor, MemoryId, MemoryPath, Reason, Receipt, StoreId, Timestamp, VersionId,
};
use quipu_service::caller::Need;
use quipu_service::pattern::RegexMatcher;

use crate::reply::Trouble;
use crate::sessions::{time, tree_path};
use crate::visit::Visit;

use super::require_manager;

/// The fields that say what to redact, where, and what becomes of live memories.
pub(super) const FIELDS: [&str; 10] =
    ["matching", "regex", "path", "memory", "actor", "since", "until", "store", "all", "and_heads"];

/// How long a regular expression may search, in all texts together.
const REGEX_TIME_MAX: Duration = Duration::from_secs(30);

/// How many authors a key may stand for. Each of them is named in the receipt.
const ACTORS_MAX: usize = 100;

/// What a form asks to redact, checked and authorized.
pub(super) struct Request {
    matching: Option<String>,
    regex: Option<RegexMatcher>,
    path: Option<MemoryPath>,
    memory: Option<MemoryId>,
    actors: Vec<Actor>,
    created: Span,
    scope: Scope,
    heads: Heads,
}

impl Request {
    /// Reads the submitted form. The visitor must have the right to manage every store that it names.
    pub(super) fn new(visit: &Visit<'_>) -> Result<Self, Trouble> {
        require_manager(visit)?;
        let form = &visit.form;
        let regex = form.get("regex").map(|regex| RegexMatcher::new(regex, REGEX_TIME_MAX));
        let memory = form.get("memory").map(|id| {
            id.trim().parse().map_err(|_malformed| {
                Trouble::Invalid(format!("`{id}` is not the id of a memory, such as `mem_…`"))
            })
        });
        let heads = if form.get("and_heads").is_some() { Heads::TakeOut } else { Heads::Refuse };
        Ok(Self {
            // Browsers send line breaks as CR LF, whatever was typed or pasted.
            matching: form.get("matching").map(|text| text.replace("\r\n", "\n")),
            regex: regex.transpose()?,
            path: form.get("path").map(tree_path).transpose()?.flatten(),
            memory: memory.transpose()?,
            actors: actors(visit)?,
            created: Span {
                first: time(visit, form, "since")?.unwrap_or(Timestamp::MIN),
                last: time(visit, form, "until")?.unwrap_or(Timestamp::MAX),
            },
            scope: scope(visit)?,
            heads,
        })
    }

    fn selection(&self) -> Result<Selection<'_>, Trouble> {
        let pattern = match (&self.matching, &self.regex) {
            (Some(_), Some(_)) => {
                return Err(Trouble::Invalid(
                    "give either a text or a regular expression, not both".to_owned(),
                ));
            }
            (Some(text), None) => Some(Pattern::text(text)?),
            (None, Some(regex)) => Some(Pattern::matcher(regex, "a regular expression")?),
            (None, None) => None,
        };
        Ok(Selection {
            pattern,
            path: self.path.clone(),
            memory: self.memory,
            actors: self.actors.clone(),
            versions: Vec::<VersionId>::new(),
            created: self.created,
        })
    }

    /// Returns what the redaction would do.
    pub(super) fn plan(&self, visit: &Visit<'_>) -> Result<RedactionPlan, Trouble> {
        Ok(visit.engine.plan_redaction(&self.scope, &self.selection()?, self.heads)?)
    }

    /// Redacts, if the plan is still the one whose digest is in the form.
    pub(super) fn redact(&self, visit: &Visit<'_>) -> Result<Receipt, Trouble> {
        let expect = visit.form.get("expect").map(str::to_owned);
        if expect.is_none() {
            return Err(Trouble::Invalid("look at the plan first".to_owned()));
        }
        let reason = visit.form.get("reason").map(Reason::new).transpose();
        let reason = reason.map_err(|error| Trouble::Invalid(error.to_string()))?;
        let terms = Terms { heads: self.heads, expect, reason };
        let actor = &visit.caller.actor;
        Ok(visit.engine.redact_selected(actor, &self.scope, &self.selection()?, &terms)?)
    }
}

/// Returns the authors that the form names. A key stands for its sessions too, as in a revert.
fn actors(visit: &Visit<'_>) -> Result<Vec<Actor>, Trouble> {
    let Some(id) = visit.form.get("actor") else { return Ok(Vec::new()) };
    let actors = match id.trim().parse() {
        Ok(Actor::ApiKey(key)) => visit.engine.actors_of_key(key)?,
        Ok(actor) => vec![actor],
        Err(error) => return Err(Trouble::Invalid(format!("`{id}`: {error}"))),
    };
    if actors.len() > ACTORS_MAX {
        return Err(Trouble::Invalid(format!(
            "the key has {} sessions, but one redaction names at most {ACTORS_MAX} authors; choose sessions",
            actors.len() - 1
        )));
    }
    Ok(actors)
}

/// Returns where to search: the chosen stores, or all of the workspace.
fn scope(visit: &Visit<'_>) -> Result<Scope, Trouble> {
    let viewer = match &visit.caller.principal {
        Principal::Key(key) => Some(key.clone()),
        Principal::Session(_) => None,
    };
    let all = Scope { viewer, ..Scope::all(visit.caller.workspace) };
    if visit.form.get("all").is_some() {
        visit.caller.require_workspace(Need::Manage)?;
        return Ok(all);
    }
    let stores = visit.form.all("store").map(|id| visit.store_with_id(id, Need::Manage));
    let stores: Vec<StoreId> =
        stores.map(|store| store.map(|store| store.id)).collect::<Result<_, _>>()?;
    if stores.is_empty() {
        return Err(Trouble::Invalid("choose the stores to search, or all of them".to_owned()));
    }
    Ok(Scope { stores: Some(stores), ..all })
}
