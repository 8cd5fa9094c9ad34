//! `recent_activity`: what changed, newest first.

use quipu_core::model::{MemoryPath, Operation, Store};
use quipu_core::{Error, timeframe};
use quipu_knowledge::{RecentChange, RecentRequest};
use serde_json::{Value, json};

use super::Call;
use super::search::store_name;
use super::shown::Actors;
use crate::answer::Answer;
use crate::arguments::Arguments;

const TIMEFRAME: &str = "7d";

pub(super) fn recent_activity(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let now = call.engine().now();
    let since = match arguments.since("timeframe", now)? {
        Some(since) => since,
        None => timeframe::since(TIMEFRAME, now).unwrap_or(now),
    };
    let paging = arguments.paging(10, 100)?;
    let stores = match arguments.word("project")? {
        Some(project) => vec![call.client.store(&project)?],
        None => call.client.open_stores()?,
    };
    let (operations, kinds) = wanted(arguments)?;
    let is_narrowed = !(operations.is_empty() && kinds.is_empty());
    let request = RecentRequest {
        stores: stores.iter().map(|store| store.id).collect(),
        since,
        operations,
        kinds,
        before: None,
        limit: paging.offset().saturating_add(paging.page_size),
    };
    call.require_wanted()?;
    let page = call.engine().recent(&request)?;
    let has_more = page.next.is_some();
    let changes: Vec<_> = page.items.into_iter().skip(paging.offset()).collect();

    let actors = Actors::new(call.engine());
    let mut lines: Vec<_> = changes.iter().map(|change| line(change, &stores, &actors)).collect();
    if lines.is_empty() {
        lines.push(match (paging.page, is_narrowed) {
            (1, false) => format!("Nothing has changed since {since}."),
            (1, true) => format!("Nothing of this type has changed since {since}."),
            (page, _) => format!("There is no page {page}."),
        });
    }
    if has_more {
        lines.push(format!("more with page={}", paging.page + 1));
    }
    let data = json!({
        "results": changes.iter().map(|it| result(it, &stores, &actors)).collect::<Vec<_>>(),
        "since": since.to_string(),
        "page": paging.page,
        "page_size": paging.page_size,
        "has_more": has_more,
    });
    Ok(Answer::new(lines.join("\n"), data))
}

/// Reads `type`: kinds of changes, types of notes, or `entity` for all.
fn wanted(arguments: &Arguments) -> Result<(Vec<Operation>, Vec<String>), Error> {
    let mut operations = Vec::new();
    let mut kinds = Vec::new();
    for word in arguments.list("type")?.iter().map(|word| word.to_lowercase()) {
        match word.parse() {
            Ok(operation) => operations.push(operation),
            Err(_) if matches!(word.as_str(), "entity" | "observation" | "relation") => {}
            Err(_) => kinds.push(word),
        }
    }
    Ok((operations, kinds))
}

fn line(change: &RecentChange, stores: &[Store], actors: &Actors<'_>) -> String {
    let version = &change.version;
    let path = version.path.as_ref().map_or("(redacted)", |path| path.as_str());
    let times = match change.changes_count {
        1 => String::new(),
        count => format!(", {count} changes"),
    };
    format!(
        "- {} {} {} ({path}, {}) by {}{times}",
        version.created_at,
        version.operation,
        change.title,
        store_name(stores, version.store),
        actors.name(&version.actor)
    )
}

fn result(change: &RecentChange, stores: &[Store], actors: &Actors<'_>) -> Value {
    let version = &change.version;
    json!({
        "title": change.title,
        "type": "entity",
        "note_type": change.kind,
        "operation": version.operation.as_str(),
        "project": store_name(stores, version.store),
        "file_path": version.path.as_ref().map(MemoryPath::as_str),
        "id": version.memory.to_string(),
        "version_id": version.id.to_string(),
        "actor": actors.data(&version.actor),
        "updated_at": version.created_at.to_string(),
        "changes_count": change.changes_count,
    })
}
