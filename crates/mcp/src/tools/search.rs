//! `search_notes`: ranked search by words and by meaning.

use quipu_core::Error;
use quipu_service::wire::{
    CoverageBody, FreshnessBody, PassageBody, SimilarBody, field_filters, score_parts, value,
};

use quipu_core::model::{Store, StoreId};
use quipu_knowledge::{
    Coverage, Found, NoteCard, SearchFilter, SearchHit, SearchMode, SearchPage, SearchRequest,
    SearchTarget,
};
use quipu_notes::{Comparison, FieldFilter, Passage, Predicate};
use serde_json::{Map, Value, json};

use super::shown::{self, Actors};
use super::{Call, past};
use crate::answer::Answer;
use crate::arguments::{Arguments, Paging};

pub(super) fn search_notes(call: &Call, arguments: &Arguments) -> Result<Answer, Error> {
    let paging = arguments.paging(10, 100)?;
    let stores = stores(call, arguments)?;
    let types = ["text", "title", "permalink", "vector", "semantic", "hybrid"];
    let mode = arguments.choice("search_type", &types)?.and_then(SearchMode::parse);
    let request = SearchRequest {
        stores: stores.iter().map(|store| store.id).collect(),
        text: arguments.text("query")?.unwrap_or_default(),
        mode: mode.unwrap_or_default(),
        targets: what(&arguments.list("entity_types")?)?,
        filter: filter(call, arguments)?,
        offset: paging.offset(),
        limit: paging.page_size,
        explain: arguments.flag("explain")? == Some(true),
        asked_by: call.client.identity.asker(),
    };
    let detail = match arguments.flag("compact")? {
        Some(true) => Detail::Compact,
        Some(false) | None => Detail::Full,
    };
    if let Some(moment) = past::moment(arguments)? {
        call.asked.progress.step(1.0, 2.0, "searching");
        let (page, thens) = past::search(call, (&stores, &moment), &request)?;
        call.require_wanted()?;
        call.asked.progress.step(2.0, 2.0, "done");
        return past::said_of_search(answer(call, &stores, &page, paging, detail), &page, &thens);
    }
    call.catch_up(&request.stores)?;
    call.asked.progress.step(1.0, 2.0, "searching");
    let page = call.engine().search(&request)?;
    call.require_wanted()?;
    call.asked.progress.step(2.0, 2.0, "done");
    let mut answer = answer(call, &stores, &page, paging, detail);
    if page.is_behind {
        answer
            .text
            .push_str("\nThe search index cannot be updated: recent changes may be missing.");
    }
    Ok(answer)
}

/// How much of each hit is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Full,
    Compact,
}

/// Returns the stores that are named, or those that are searched without a name.
pub(super) fn stores(call: &Call, arguments: &Arguments) -> Result<Vec<Store>, Error> {
    let names = arguments.list("projects")?;
    let is_all = arguments.flag("search_all_projects")?.or(arguments.flag("all")?);
    if is_all == Some(true) {
        return call.client.open_stores();
    }
    if names.is_empty() {
        return call.client.stores_to_read(arguments.word("project")?.as_deref());
    }
    let mut stores: Vec<Store> = Vec::new();
    for name in &names {
        let store = call.client.store(name)?;
        if stores.iter().all(|known| known.id != store.id) {
            stores.push(store);
        }
    }
    Ok(stores)
}

fn what(words: &[String]) -> Result<Vec<SearchTarget>, Error> {
    let read = |word: &String| match word.to_lowercase().as_str() {
        "entity" | "note" | "memory" => Ok(SearchTarget::Memories),
        "observation" => Ok(SearchTarget::Observations),
        "relation" => Ok(SearchTarget::Relations),
        _ => Err(Error::invalid(format!("entity_types: `{word}` is not possible"))
            .with_hint("it is one of entity, observation, relation")),
    };
    words.iter().map(read).collect()
}

fn filter(call: &Call, arguments: &Arguments) -> Result<SearchFilter, Error> {
    let filters = Value::Object(arguments.object("metadata_filters")?);
    let mut fields = field_filters(&filters).map_err(Error::invalid)?;
    if let Some(status) = arguments.word("status")? {
        let predicate = Predicate::Is(Comparison::Equal, status);
        fields.push(FieldFilter { key: "status".to_owned(), predicate });
    }
    let mut kinds = arguments.list("note_types")?;
    kinds.extend(arguments.list("types")?);
    Ok(SearchFilter {
        directory: None,
        kinds,
        tags: arguments
            .list("tags")?
            .iter()
            .map(|tag| tag.trim_start_matches('#').to_owned())
            .collect(),
        categories: arguments.list("categories")?,
        fields,
        changed_after: arguments.since("after_date", call.engine().now())?,
    })
}

fn answer(
    call: &Call,
    stores: &[Store],
    page: &SearchPage,
    paging: Paging,
    detail: Detail,
) -> Answer {
    let actors = Actors::new(call.engine());
    let results: Vec<_> =
        page.hits.iter().map(|hit| result(hit, stores, &actors, detail)).collect();
    let about = if page.total.is_lower_bound { "at least " } else { "" };
    let mut lines: Vec<_> = page
        .hits
        .iter()
        .zip(paging.offset().saturating_add(1)..)
        .map(|(hit, number)| format!("{number}. {}", line(hit, stores, &actors, detail)))
        .collect();
    if lines.is_empty() && paging.page > 1 {
        lines.push(format!("There is no page {}.", paging.page));
    } else if lines.is_empty() {
        lines.push(
            "Nothing was found. Try fewer or other words, or search_all_projects.".to_owned(),
        );
    } else {
        lines.push(format!("page {}, {about}{} found", paging.page, page.total.count));
    }
    if page.has_more {
        lines.push(format!("more with page={}", paging.page + 1));
    }
    lines.extend(page.notice.as_ref().map(|notice| format!("note: {notice}")));
    if let Some(Coverage { embedded, memories }) = page.coverage.filter(|it| !it.is_complete()) {
        lines.push(format!("note: {embedded} of {memories} notes have vectors so far"));
    }
    let data = json!({
        "results": results,
        "page": paging.page,
        "page_size": paging.page_size,
        "total": page.total.count,
        "total_is_lower_bound": page.total.is_lower_bound,
        "has_more": page.has_more,
        "is_behind": page.is_behind,
        "search_type": page.ranked_by.name(),
        "vectors": page.coverage.map(CoverageBody::from),
        "notice": page.notice,
    });
    Answer::new(lines.join("\n"), data)
}

fn line(hit: &SearchHit, stores: &[Store], actors: &Actors<'_>, detail: Detail) -> String {
    let note = &hit.note;
    let head = format!("{} ({}, {})", note.title, note.path, store_name(stores, note.store));
    if detail == Detail::Compact {
        return match &hit.freshness {
            Some(freshness) => format!("{head}, {freshness}"),
            None => head,
        };
    }
    let found = match &hit.found {
        Found::Memory => hit.snippet.text.clone(),
        Found::Observation(observation) => observation.to_string(),
        Found::Relation(link) => format!("{} [[{}]]", link.kind, link.target.name),
    };
    let mut line = format!("{head}\n   {found}");
    if let Some(passage) = &hit.passage {
        // As the arguments of read_note are called, so that a model can pass them on.
        let Passage { headings, first_line, last_line } = passage;
        line.push_str(&format!("\n   start_line={first_line} end_line={last_line}"));
        if !headings.is_empty() {
            line.push_str(&format!(", below {}", headings.join(" > ")));
        }
    }
    line.push_str(&format!("\n   {} by {}", note.updated_at, actors.name(&hit.actor)));
    if let Some(freshness) = &hit.freshness {
        line.push_str(&format!(", {freshness}"));
    }
    for part in hit.explanation.iter().flat_map(|it| &it.parts) {
        line.push_str(&format!("\n   {part}"));
    }
    line
}

fn result(hit: &SearchHit, stores: &[Store], actors: &Actors<'_>, detail: Detail) -> Value {
    let mut result = card(&hit.note, stores);
    let (kind, found) = match &hit.found {
        Found::Memory => ("entity", Value::Null),
        Found::Observation(observation) => ("observation", shown::observation(observation)),
        Found::Relation(link) => (
            "relation",
            json!({
                "relation_type": link.kind,
                "to": link.target.name,
                "section": link.target.section,
                "alias": link.target.alias,
                "context": link.context,
                "line": link.line,
            }),
        ),
    };
    let Value::Object(fields) = &mut result else { return result };
    fields.insert("type".to_owned(), json!(kind));
    fields.insert("score".to_owned(), json!(hit.score));
    if let Some(explanation) = &hit.explanation {
        fields.insert("explanation".to_owned(), json!(score_parts(explanation)));
    }
    if let Some(similar) = hit.similar {
        fields.insert("similar".to_owned(), json!(SimilarBody::from(similar)));
    }
    if let Some(freshness) = &hit.freshness {
        fields.insert("freshness".to_owned(), json!(FreshnessBody::from(freshness)));
    }
    fields.insert("actor".to_owned(), actors.data(&hit.actor));
    if kind != "entity" {
        fields.insert(kind.to_owned(), found);
    }
    if detail == Detail::Full {
        fields.insert("snippet".to_owned(), json!(hit.snippet.text));
        if let Some(passage) = &hit.passage {
            fields.insert("passage".to_owned(), json!(PassageBody::from(passage)));
        }
        fields.insert("tags".to_owned(), json!(hit.tags));
        let metadata = hit.metadata.iter().map(|(key, field)| (key.clone(), value(field)));
        fields.insert("metadata".to_owned(), metadata.collect::<Map<_, _>>().into());
    }
    result
}

/// Returns the names of a note as data.
pub(super) fn card(note: &NoteCard, stores: &[Store]) -> Value {
    json!({
        "title": note.title,
        "permalink": note.permalink,
        "project": store_name(stores, note.store),
        "file_path": note.path.as_str(),
        "id": note.memory.to_string(),
        "note_type": note.kind,
        "created_at": note.created_at.to_string(),
        "updated_at": note.updated_at.to_string(),
    })
}

pub(super) fn store_name(stores: &[Store], id: StoreId) -> String {
    let store = stores.iter().find(|store| store.id == id);
    store.map_or_else(|| id.to_string(), |store| store.name.to_string())
}
