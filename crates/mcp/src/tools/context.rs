//! `build_context`: a note and its neighborhood in the graph of links.

use quipu_core::model::Store;
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::{Context, ContextItem, ContextRequest, Direction, Related};
use serde_json::{Value, json};

use super::search::{card, store_name};
use super::{Call, found, past, shown};
use crate::answer::Answer;
use crate::arguments::{Arguments, Paging};

const DEPTH_MAX: usize = 5;
const RELATED_MAX: usize = 100;

/// What an answer about the past says, since the past has one store.
const OTHER_STORES: &str = "links to other stores are not followed";

pub(super) fn build_context(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let url = match arguments.first_word(&["url", "identifier"])? {
        Some(url) => url,
        None => arguments.required("url")?,
    };
    let paging = arguments.paging(10, 100)?;
    let request = ContextRequest {
        depth: arguments.number("depth")?.unwrap_or(1).min(DEPTH_MAX),
        kinds: arguments.list("types")?,
        changed_after: arguments.since("timeframe", call.engine().now())?,
        related_max: arguments.number("max_related")?.unwrap_or(10).min(RELATED_MAX),
        offset: paging.offset(),
        limit: paging.page_size,
    };
    let moment = past::moment(arguments)?;
    let scopes = match &moment {
        Some(_) => past::scopes(call, arguments, &url)?,
        None => found::scopes(call, arguments)?,
    };
    let mut missing = None;
    for scope in &scopes {
        call.require_wanted()?;
        let look = |call: &Call| call.engine().context(scope, &url, &request);
        let found = match &moment {
            Some(moment) => past::within(call, (scope, moment), look)
                .map(|(context, then)| (context, Some(then))),
            None => look(call).map(|context| (context, None)),
        };
        match found {
            Ok((context, then)) => {
                let answer = answer(&url, &context, &call.client.stores()?, paging);
                return match then {
                    Some(then) => past::said_of_all(answer, &[then], &[OTHER_STORES]),
                    None => Ok(answer),
                };
            }
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                missing.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(missing.unwrap_or_else(found::nothing_yet))
}

fn answer(url: &str, context: &Context, stores: &[Store], paging: Paging) -> Answer {
    let results: Vec<_> = context.items.iter().map(|item| result(item, stores)).collect();
    let related_count: usize = context.items.iter().map(|item| item.related.len()).sum();
    let mut parts: Vec<_> = context.items.iter().map(|item| part(item, stores)).collect();
    if parts.is_empty() {
        parts.push(format!("There is no page {}.", paging.page));
    }
    if context.has_more {
        parts.push(format!("more with page={}", paging.page + 1));
    }
    let data = json!({
        "results": results,
        "metadata": {
            "url": url,
            "primary_count": context.items.len(),
            "related_count": related_count,
            "total": context.total_count,
        },
        "page": paging.page,
        "page_size": paging.page_size,
        "has_more": context.has_more,
    });
    Answer::new(parts.join("\n\n"), data)
}

fn part(item: &ContextItem, stores: &[Store]) -> String {
    let note = &item.note;
    let place = format!("{}, {}", note.path, store_name(stores, note.store));
    let mut lines = vec![format!("# {} ({place}, {})", note.title, note.updated_at)];
    lines.extend(item.observations.iter().map(|observation| format!("- {observation}")));
    if !item.related.is_empty() {
        lines.push("Connected:".to_owned());
    }
    lines.extend(item.related.iter().map(|related| connection(item, related, stores)));
    if item.is_cut {
        lines.push("… more with a larger max_related".to_owned());
    }
    lines.join("\n")
}

fn connection(item: &ContextItem, related: &Related, stores: &[Store]) -> String {
    let name = match &related.note {
        Some(note) if note.store != item.note.store => {
            format!("{} ({}, {})", note.title, note.path, store_name(stores, note.store))
        }
        Some(note) => format!("{} ({})", note.title, note.path),
        None => format!("{} (not written yet)", related.link.target.name),
    };
    let arrow = match related.direction {
        Direction::Outgoing => format!("-{}->", related.link.kind),
        Direction::Incoming => format!("<-{}-", related.link.kind),
    };
    let depth =
        if related.depth > 1 { format!(", {} steps away", related.depth) } else { String::new() };
    format!("- {arrow} {name}{depth}")
}

fn result(item: &ContextItem, stores: &[Store]) -> Value {
    let observations: Vec<_> = item.observations.iter().map(shown::observation).collect();
    let related: Vec<_> = item.related.iter().map(|related| connected(related, stores)).collect();
    json!({
        "primary_result": card(&item.note, stores),
        "observations": observations,
        "related_results": related,
        "is_cut": item.is_cut,
    })
}

fn connected(related: &Related, stores: &[Store]) -> Value {
    let mut data = match &related.note {
        Some(note) => card(note, stores),
        None => json!({"title": related.link.target.name, "is_unresolved": true}),
    };
    if let Value::Object(fields) = &mut data {
        let direction = match related.direction {
            Direction::Outgoing => "outgoing",
            Direction::Incoming => "incoming",
        };
        fields.insert("relation_type".to_owned(), json!(related.link.kind));
        fields.insert("direction".to_owned(), json!(direction));
        fields.insert("context".to_owned(), json!(related.link.context));
        fields.insert("section".to_owned(), json!(related.link.target.section));
        fields.insert("alias".to_owned(), json!(related.link.target.alias));
        fields.insert("depth".to_owned(), json!(related.depth));
        fields.insert("via".to_owned(), json!(related.via.to_string()));
    }
    data
}
