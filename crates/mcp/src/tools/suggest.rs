//! `suggest_notes`: the notes relevant to a text.

use quipu_core::Error;
use quipu_core::model::{MemoryId, Store};
use quipu_knowledge::{
    BUDGET_TOKENS_DEFAULT, BUDGET_TOKENS_MAX, LIMIT_DEFAULT, LIMIT_MAX, SuggestRequest, Suggestion,
    Suggestions,
};
use quipu_service::suggestions::markdown;
use quipu_service::wire::{FreshnessBody, LeftOutBody, SimilarBody};
use serde_json::{Value, json};

use super::Call;
use super::search::{card, stores};
use super::shown::Actors;
use crate::answer::Answer;
use crate::arguments::Arguments;

const NONE: &str = "No relevant notes.";
const IS_BEHIND: &str = "\nThe search index cannot be updated: recent changes may be missing.";

pub(super) fn suggest_notes(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let stores = stores(call, arguments)?;
    let exclude = arguments.list("exclude")?;
    let exclude = exclude.iter().map(|id| {
        let wrong = || Error::invalid(format!("exclude: `{id}` is not the id of a note"));
        id.parse::<MemoryId>().ok().ok_or_else(wrong)
    });
    let request = SuggestRequest {
        stores: stores.iter().map(|store| store.id).collect(),
        text: arguments.required_text("text")?,
        budget_tokens: arguments.count("budget", BUDGET_TOKENS_DEFAULT, BUDGET_TOKENS_MAX)?,
        limit: arguments.count("limit", LIMIT_DEFAULT, LIMIT_MAX)?,
        exclude: exclude.collect::<Result<_, _>>()?,
        asked_by: call.client.identity.asker(),
    };
    call.catch_up(&request.stores)?;
    let suggestions = call.engine().suggest(&request)?;
    call.require_wanted()?;
    let actors = Actors::new(call.engine());
    let mut text = markdown(&suggestions, &stores, &|actor| actors.name(actor));
    if text.is_empty() {
        text.push_str(NONE);
    }
    if suggestions.is_behind {
        text.push_str(IS_BEHIND);
    }
    Ok(Answer::new(text, data(&suggestions, &stores, &actors)))
}

fn data(suggestions: &Suggestions, stores: &[Store], actors: &Actors<'_>) -> Value {
    let items = suggestions.items.iter().map(|item| suggestion(item, stores, actors));
    json!({
        "suggestions": items.collect::<Vec<_>>(),
        "tokens": suggestions.tokens,
        "left_out": suggestions.left_out.iter().map(LeftOutBody::from).collect::<Vec<_>>(),
        "is_text_cut": suggestions.is_text_cut,
        "is_behind": suggestions.is_behind,
    })
}

fn suggestion(item: &Suggestion, stores: &[Store], actors: &Actors<'_>) -> Value {
    let paths = |paths: &[quipu_core::model::MemoryPath]| -> Vec<String> {
        paths.iter().map(ToString::to_string).collect()
    };
    let mut result = card(&item.note, stores);
    let Value::Object(fields) = &mut result else { return result };
    fields.insert("version".to_owned(), json!(item.note.version.to_string()));
    fields.insert("score".to_owned(), json!(item.score));
    let reasons = json!({
        "words": item.words,
        "similar": item.similar.map(SimilarBody::from),
        "freshness": item.freshness.as_ref().map(FreshnessBody::from),
        "replaces": paths(&item.replaces),
        "links_to": paths(&item.links_to),
    });
    fields.insert("reasons".to_owned(), reasons);
    fields.insert("text".to_owned(), json!(item.text));
    fields.insert("is_whole".to_owned(), json!(item.is_whole));
    fields.insert("actor".to_owned(), actors.data(&item.actor));
    fields.insert("tokens".to_owned(), json!(item.tokens));
    result
}
