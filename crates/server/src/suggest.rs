//! `/quipu/stores/{store}/suggest`: the memories relevant to a text.

use quipu_core::model::MemoryId;
use quipu_knowledge::{BUDGET_TOKENS_MAX, LIMIT_MAX, SuggestRequest};
use quipu_service::authors::AuthorNames;
use quipu_service::caller::Need;
use quipu_service::suggestions::markdown;
use quipu_service::wire::{SuggestBody, SuggestionsBody};

use super::answer::{Answer, Failure, json};
use super::call::Call;
use super::caller::parse_id;

/// The maximum number of memories that are known already.
const EXCLUDED_MAX: usize = 1000;

/// Suggests memories for a text in the query string.
pub(super) fn for_query(call: &Call<'_>) -> Answer {
    // Who may not read the store is told so, whatever else is wrong.
    call.named_store(Need::Read)?;
    let query = call.query();
    let exclude = query.all("exclude")?.into_iter().map(str::to_owned).collect();
    let (budget, limit) = (query.parse("budget")?, query.parse("limit")?);
    let text = query.get_or_empty("text").ok_or_else(|| {
        Failure::invalid("text: give the prompt or the task; send a long text by POST")
    })?;
    suggested(call, SuggestBody { text: text.to_owned(), budget, limit, exclude: Some(exclude) })
}

/// Suggests memories for a text in the body.
pub(super) fn for_body(call: &Call<'_>) -> Answer {
    call.named_store(Need::Read)?;
    suggested(call, call.body()?)
}

fn suggested(call: &Call<'_>, body: SuggestBody) -> Answer {
    let store = call.named_store(Need::Read)?;
    let exclude = body.exclude.unwrap_or_default();
    if exclude.len() > EXCLUDED_MAX {
        return Err(Failure::invalid(format!("exclude: must have at most {EXCLUDED_MAX} ids")));
    }
    let exclude: Result<Vec<MemoryId>, _> =
        exclude.iter().map(|id| parse_id(id, "memory")).collect();
    let new = SuggestRequest::new(vec![store.id], body.text);
    let request = SuggestRequest {
        budget_tokens: within("budget", body.budget, BUDGET_TOKENS_MAX)?
            .unwrap_or(new.budget_tokens),
        limit: within("limit", body.limit, LIMIT_MAX)?.unwrap_or(new.limit),
        exclude: exclude?,
        asked_by: Some(call.caller.actor.clone()),
        ..new
    };
    let suggestions = call.engine.suggest(&request)?;
    let authors = AuthorNames::new(call.engine, call.caller.workspace).for_viewer(call.caller);
    let text = markdown(&suggestions, &[store], &|actor| authors.short(actor));
    Ok(json(&SuggestionsBody::new(&suggestions, text)))
}

fn within(name: &str, value: Option<usize>, max: usize) -> Result<Option<usize>, Failure> {
    match value {
        Some(value) if !(1..=max).contains(&value) => {
            Err(Failure::invalid(format!("{name}: must be a number from 1 to {max}")))
        }
        value => Ok(value),
    }
}
