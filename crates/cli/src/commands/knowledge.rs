//! `quipu search`, `recent`, `context`, `links` and `graph`.

mod drawing;

use std::io::Write;

use anstyle::{AnsiColor, Style};
use quipu_core::Error;
use quipu_core::backend::Archived;
use quipu_core::model::{Directory, StoreId, Timestamp, View};
use quipu_core::timeframe;
use quipu_knowledge::{
    ContextRequest, Coverage, Direction, Found, NoteLink, RecentRequest, Related, Scope,
    SearchFilter, SearchHit, SearchMode, SearchRequest, SearchTarget,
};
use quipu_notes::{Comparison, FieldFilter, Predicate, Snippet};
use quipu_service::wire::{
    ContextBody, ListBody, NoteBody, NoteLinkBody, OrphansBody, RecentBody, SearchBody,
};
use serde::Serialize;

use crate::args::{
    ContextArguments, GraphArguments, GraphFormat, LinksArguments, RecentArguments,
    SearchArguments, SearchIn, SearchWhat,
};
use crate::context::{Context, Data};
use crate::failure::Failure;
use crate::print::{answer, count, local, note, raw, style};

pub(super) fn search(context: &Context, arguments: &SearchArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?.with_vectors(context);
    let request = request(&data, arguments)?;
    let page = data.engine.search(&request)?;
    let stores = if request.stores.len() > 1 { data.stores(Archived::Show)? } else { Vec::new() };
    let authors = data.authors();
    if page.is_behind && data.is_past() {
        note("the store is too large to be searched as it was; only a part of it was searched");
    } else if page.is_behind {
        note(&format!(
            "the index in {} cannot be written, so recent changes may be missing",
            context.settings.data.display()
        ));
    }
    if let Some(notice) = &page.notice {
        note(notice);
    }
    if let Some(Coverage { embedded, memories }) = page.coverage.filter(|it| !it.is_complete()) {
        note(&format!(
            "{embedded} of {memories} memories have vectors; `quipu model embed` makes the others"
        ));
    }
    answer(context.form, &SearchBody::from(&page), |out| {
        for hit in &page.hits {
            if let Some(store) = stores.iter().find(|store| store.id == hit.note.store) {
                write!(out, "{}  ", store.name)?;
            }
            write_hit(out, hit, &authors.short(&hit.actor))?;
        }
        let more = if page.total.is_lower_bound { "at least " } else { "" };
        match (page.hits.len(), page.total.count) {
            (0, 0) => writeln!(out, "no matches"),
            (0, total) if arguments.limit > 0 => {
                writeln!(out, "no matches left: {more}{total} in all, {} skipped", arguments.offset)
            }
            (shown, total) if shown < total => writeln!(out, "{shown} of {more}{total}"),
            (_, _) => Ok(()),
        }
    })
}

/// Returns all stores.
pub(super) fn all_stores(data: &Data) -> Result<Vec<StoreId>, Failure> {
    Ok(data.stores(Archived::Show)?.iter().map(|store| store.id).collect())
}

/// Returns the stores that are named, or the selected one.
pub(super) fn named_stores(data: &Data) -> Result<Vec<StoreId>, Failure> {
    if data.named.len() < 2 {
        return Ok(vec![data.store()?.id]);
    }
    let mut stores = Vec::new();
    for name in &data.named {
        let store = data.find_store(name)?.id;
        // The same store may be given by name and by id.
        if !stores.contains(&store) {
            stores.push(store);
        }
    }
    Ok(stores)
}

fn request(data: &Data, arguments: &SearchArguments) -> Result<SearchRequest, Failure> {
    let stores = if arguments.all { all_stores(data)? } else { named_stores(data)? };
    let conditions = arguments.conditions.iter().map(|text| field_filter(text));
    Ok(SearchRequest {
        stores,
        text: arguments.words.join(" "),
        mode: match arguments.by {
            None => SearchMode::default(),
            Some(SearchIn::Text) => SearchMode::Text,
            Some(SearchIn::Title) => SearchMode::Title,
            Some(SearchIn::Permalink) => SearchMode::Permalink,
            Some(SearchIn::Vector) => SearchMode::Vector,
            Some(SearchIn::Hybrid) => SearchMode::Hybrid,
        },
        targets: arguments
            .what
            .iter()
            .map(|what| match what {
                SearchWhat::Memories => SearchTarget::Memories,
                SearchWhat::Observations => SearchTarget::Observations,
                SearchWhat::Relations => SearchTarget::Relations,
            })
            .collect(),
        filter: SearchFilter {
            directory: arguments.path.as_deref().map(directory).transpose()?,
            kinds: arguments.kinds.clone(),
            tags: arguments.tags.clone(),
            categories: arguments.categories.clone(),
            fields: conditions.collect::<Result<_, _>>()?,
            changed_after: moment(data, arguments.after.as_deref())?,
        },
        offset: arguments.offset,
        limit: arguments.limit,
        explain: arguments.explain,
        asked_by: None,
    })
}

fn directory(text: &str) -> Result<Directory, Failure> {
    let text = text.trim_matches('/');
    let text = if text.is_empty() { "/".to_owned() } else { format!("/{text}/") };
    Ok(Directory::parse(&text).map_err(Error::from)?)
}

fn moment(data: &Data, text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let moment = timeframe::since(text, data.engine.now());
    moment.map(Some).ok_or_else(|| {
        Failure::usage(format!("`{text}` is not a time such as `7d` or `2026-11-15`"))
    })
}

/// A list that may be truncated, as JSON; `--limit` returns more.
#[derive(Serialize)]
struct TruncatedBody<T> {
    #[serde(flatten)]
    list: ListBody<T>,
    has_more: bool,
}

impl<T> TruncatedBody<T> {
    /// Notes that the list is truncated.
    fn note_more(&self) {
        if self.has_more {
            note("there are more; `--limit` shows them");
        }
    }
}

/// Parses a predicate such as `status=open`, `priority>=2` or `due`.
fn field_filter(text: &str) -> Result<FieldFilter, Failure> {
    const OPERATORS: [(&str, Comparison); 6] = [
        ("!=", Comparison::NotEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<=", Comparison::LessOrEqual),
        ("=", Comparison::Equal),
        (">", Comparison::Greater),
        ("<", Comparison::Less),
    ];
    let split = OPERATORS
        .iter()
        .filter_map(|(operator, comparison)| Some((text.split_once(operator)?, *comparison)))
        .min_by_key(|((key, _), _)| key.len());
    let (key, predicate) = match split {
        Some(((key, value), comparison)) => {
            (key, Predicate::Is(comparison, value.trim().to_owned()))
        }
        None => (text, Predicate::Exists),
    };
    if key.trim().is_empty() {
        return Err(Failure::usage(format!("`{text}` does not name a field"))
            .with_hint("write it like `status=open` or `priority>=2`"));
    }
    Ok(FieldFilter { key: key.trim().to_owned(), predicate })
}

fn write_hit(out: &mut dyn Write, hit: &SearchHit, author: &str) -> std::io::Result<()> {
    let (path, dim) = (style(AnsiColor::Green).bold(), Style::new().dimmed());
    let what = match &hit.found {
        Found::Memory => String::new(),
        Found::Observation(observation) => format!("  [{}]", observation.category),
        Found::Relation(link) => format!("  {}", link.kind),
    };
    writeln!(
        out,
        "{path}{}{path:#}  {}{what}  {dim}{:.2}, {}, {author}{dim:#}",
        hit.note.path,
        hit.note.title,
        hit.score,
        local(hit.note.updated_at),
    )?;
    if let Some(freshness) = &hit.freshness {
        let warning = style(AnsiColor::Yellow);
        writeln!(out, "    {warning}{freshness}{warning:#}")?;
    }
    writeln!(out, "    {}", highlighted(&hit.snippet))?;
    for part in hit.explanation.iter().flat_map(|it| &it.parts) {
        writeln!(out, "    {dim}{part}{dim:#}")?;
    }
    Ok(())
}

/// Returns a snippet with its matches in bold.
fn highlighted(snippet: &Snippet) -> String {
    let bold = Style::new().bold();
    let mut text = String::new();
    let mut end = 0;
    for range in &snippet.matches {
        let Some(before) = snippet.text.get(end..range.start) else { continue };
        let found = snippet.text.get(range.clone()).unwrap_or_default();
        text.push_str(&format!("{before}{bold}{found}{bold:#}"));
        end = range.end;
    }
    text.push_str(snippet.text.get(end..).unwrap_or_default());
    text
}

pub(super) fn recent(context: &Context, arguments: &RecentArguments) -> Result<(), Failure> {
    let data = context.open()?;
    let request = RecentRequest {
        stores: vec![data.store()?.id],
        since: moment(&data, Some(&arguments.since))?.unwrap_or(Timestamp::MIN),
        operations: Vec::new(),
        kinds: arguments.kinds.clone(),
        before: None,
        limit: arguments.limit,
    };
    let page = data.engine.recent(&request)?;
    let list = ListBody::complete(page.items.iter().map(RecentBody::from).collect());
    let body = TruncatedBody { list, has_more: page.next.is_some() };
    body.note_more();
    let authors = data.authors();
    answer(context.form, &body, |out| {
        for change in &page.items {
            let version = &change.version;
            let path =
                version.path.as_ref().map_or_else(|| "(redacted)".to_owned(), ToString::to_string);
            writeln!(
                out,
                "{}  {:<8}  {path}  {}  {}",
                local(version.created_at),
                version.operation,
                change.title,
                authors.short(&version.actor)
            )?;
        }
        match page.items.is_empty() {
            true if arguments.limit == 0 => writeln!(out, "`--limit 0` shows nothing"),
            true => writeln!(out, "no changes"),
            false => Ok(()),
        }
    })
}

pub(super) fn context(context: &Context, arguments: &ContextArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let request = ContextRequest {
        depth: arguments.depth,
        kinds: arguments.kinds.clone(),
        changed_after: moment(&data, arguments.after.as_deref())?,
        related_max: arguments.max_related,
        offset: 0,
        limit: arguments.limit,
    };
    let found = data.engine.context(&scope(&data)?, &arguments.memory, &request)?;
    answer(context.form, &ContextBody::from(&found), |out| {
        for item in &found.items {
            let path = style(AnsiColor::Green).bold();
            writeln!(out, "{path}{}{path:#}  {}", item.note.path, item.note.title)?;
            for observation in &item.observations {
                writeln!(out, "  {observation}")?;
            }
            for related in &item.related {
                write_related(out, related)?;
            }
            if item.is_cut {
                writeln!(out, "  … and more; `--max-related` shows them")?;
            }
        }
        Ok(())
    })
}

fn write_related(out: &mut dyn Write, related: &Related) -> std::io::Result<()> {
    let indent = "  ".repeat(related.depth);
    let arrow = match related.direction {
        Direction::Outgoing => "→",
        Direction::Incoming => "←",
    };
    let kind = &related.link.kind;
    match &related.note {
        Some(note) => writeln!(out, "{indent}{arrow} {kind}  {}  {}", note.path, note.title),
        None => {
            writeln!(out, "{indent}{arrow} {kind}  [[{}]] (unresolved)", related.link.target.name)
        }
    }
}

/// Returns a scope whose home is the selected store, and from which links reach all others.
fn scope(data: &Data) -> Result<Scope, Failure> {
    let others: Vec<StoreId> = data.stores(Archived::Show)?.iter().map(|store| store.id).collect();
    Ok(Scope::new(data.store()?.id, others))
}

pub(super) fn links(context: &Context, arguments: &LinksArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let scope = scope(&data)?;
    if arguments.orphans {
        let orphans = data.engine.orphans(&scope, arguments.limit)?;
        return answer(context.form, &OrphansBody::from(&orphans), |out| {
            for note in &orphans.notes {
                writeln!(out, "{}  {}", note.path, note.title)?;
            }
            writeln!(out, "{} without links", count(orphans.total_count, "memory", "memories"))
        });
    }
    // One extra entry shows whether the list is truncated.
    let limit = arguments.limit.saturating_add(1);
    let mut found = match &arguments.memory {
        None => data.engine.unresolved(&scope, limit)?,
        Some(name) => {
            let home = Scope::only(scope.home);
            let memory = data.engine.resolve(&home, name, View::Basic)?.id;
            if arguments.back {
                data.engine.backlinks(&scope, memory, limit)?
            } else {
                data.engine.links(&scope, memory, limit)?
            }
        }
    };
    let has_more = found.len() > arguments.limit;
    found.truncate(arguments.limit);
    let list = ListBody::complete(found.iter().map(NoteLinkBody::from).collect());
    let body = TruncatedBody { list, has_more };
    body.note_more();
    answer(context.form, &body, |out| {
        for link in &found {
            write_link(out, link)?;
        }
        if found.is_empty() { writeln!(out, "no links") } else { Ok(()) }
    })
}

fn write_link(out: &mut dyn Write, link: &NoteLink) -> std::io::Result<()> {
    let row = &link.link;
    let to = link.to.as_ref().map_or_else(|| "(unresolved)".to_owned(), |to| to.path.to_string());
    writeln!(out, "{}:{}  {} [[{}]] → {to}", link.from.path, row.line, row.kind, row.target.name)
}

pub(super) fn graph(context: &Context, arguments: &GraphArguments) -> Result<(), Failure> {
    let data = context.open_at(&arguments.past)?;
    let graph = data.engine.graph(data.store()?.id, arguments.limit)?;
    if graph.is_cut {
        note(&format!(
            "only the first {} memories are drawn; `--limit` draws more",
            arguments.limit
        ));
    }
    let drawn = match arguments.format {
        GraphFormat::Dot => drawing::dot(&graph),
        GraphFormat::Svg => drawing::svg(&graph),
    };
    if context.form == crate::print::Form::Text {
        return raw(&drawn);
    }
    let notes: Vec<_> = graph.notes.iter().map(NoteBody::from).collect();
    let links: Vec<_> = graph
        .links
        .iter()
        .map(|(from, to, kind)| serde_json::json!({"from": from, "to": to, "relation_type": kind}))
        .collect();
    let body = serde_json::json!({"notes": notes, "links": links, "is_cut": graph.is_cut});
    answer(context.form, &body, |_| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed() {
        let read = |text: &str| {
            let filter = field_filter(text).unwrap();
            (filter.key, filter.predicate)
        };
        let is = |key: &str, comparison, value: &str| {
            (key.to_owned(), Predicate::Is(comparison, value.to_owned()))
        };
        assert_eq!(read("status=open"), is("status", Comparison::Equal, "open"));
        assert_eq!(read("a.b >= 2"), is("a.b", Comparison::GreaterOrEqual, "2"));
        assert_eq!(read("x!=a=b"), is("x", Comparison::NotEqual, "a=b"));
        assert_eq!(read("x<3"), is("x", Comparison::Less, "3"));
        assert_eq!(read("due"), ("due".to_owned(), Predicate::Exists));
        assert!(field_filter("=3").is_err());
    }
}
