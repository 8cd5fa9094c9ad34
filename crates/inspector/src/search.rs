//! The search: ranked hits with what makes them hits, and filters to narrow them.
//!
//! The address is the state: each filter is a link to another address, and what is typed is put into
//! the address as one types.

mod delete;
mod hits;
mod question;

use std::collections::HashMap;

use maud::{Markup, html};
use quipu_core::backend::Archived;
use quipu_core::model::{Store, StoreId};
use quipu_knowledge::{SearchHit, SearchPage, Total};
use quipu_service::authors::AuthorNames;

use crate::layout::{self, Room};
use crate::paging::Paging;
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;
use crate::{Page, changes, choice, shows};

use question::Question;

/// The pages of this module.
pub(crate) static PAGES: [Page; 3] = [
    shows(SEARCH, search),
    shows("/ui/search/delete", delete::confirm),
    changes("/ui/search/delete", delete::delete),
];

/// The address of the search.
pub(crate) const SEARCH: &str = "/ui/search";

/// How many hits a page has.
const HITS_PER_PAGE: usize = 25;
/// How many values of a kind the hits can be narrowed by.
const FACET_VALUES_MAX: usize = 12;

/// What every part of the page needs.
struct Scene<'a> {
    visit: &'a Visit<'a>,
    question: Question,
    stores: HashMap<StoreId, Store>,
    authors: AuthorNames<'a>,
}

fn search(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let readable = visit.stores(Archived::Show)?;
    let question = Question::new(visit, &readable)?;
    let paging = Paging::new(&visit.query, HITS_PER_PAGE);
    let found = question.answer(visit, paging, &readable)?;
    let form = form(&question, &readable);
    let title = match question.text.trim() {
        "" => "Search".to_owned(),
        text => format!("{text} · search"),
    };
    let scene = Scene {
        visit,
        question,
        stores: readable.into_iter().map(|store| (store.id, store)).collect(),
        authors: visit.authors(),
    };
    let content = html! {
        h1 { "Search" }
        (form)
        p #count role="status" { (outcome(&found)) }
        div #results {
            @if found.is_behind {
                p.message {
                    "The index is behind: the newest changes may be missing here. It catches up by \
                     itself; if it does not, look at the server's log and at the free space on its disk."
                }
            }
            @if let Some(notice) = &found.notice { p.message { "Note: " (notice) "." } }
            @if let Some(coverage) = found.coverage.filter(|it| !it.is_complete()) {
                p.message {
                    (text::grouped(coverage.embedded as u64)) " of "
                    (text::count(coverage.memories as u64, "memory", "memories"))
                    " can be found by meaning so far."
                }
            }
            (hits::list(&scene, &found.hits))
            @if !scene.question.explain && !found.hits.is_empty() {
                p { a href=(scene.question.explained()) { "Explain the scores" } }
            }
            (paging.links(SEARCH, &scene.question.pairs(), reachable(found.total)))
            (facets(&scene, &found.hits))
        }
    };
    Ok(Reply::Page(layout::page(visit, Room::Search, &title, &content)))
}

/// The search pages through this many hits at most.
const REACHABLE_MAX: usize = 500;

fn reachable(total: Total) -> usize {
    total.count.min(REACHABLE_MAX)
}

fn outcome(found: &SearchPage) -> String {
    let Total { count, is_lower_bound } = found.total;
    let memories = text::count(count as u64, "memory", "memories");
    match (count, is_lower_bound) {
        (0, _) => "Nothing found. Use fewer or other words, or remove a filter.".to_owned(),
        (_, true) => format!("At least {memories} found."),
        (_, false) => format!("{memories} found."),
    }
}

fn form(question: &Question, readable: &[Store]) -> Markup {
    let times = [
        ("", "any time"),
        ("today", "today"),
        ("7d", "the last 7 days"),
        ("30d", "the last 30 days"),
    ];
    let other = question.since.as_deref().filter(|since| times.iter().all(|(it, _)| it != since));
    html! {
        form #search role="search" action=(SEARCH) data-live-search="results" data-live-status="count" {
            div.ask {
                label { "Words"
                    input type="search" name="q" value=(question.text) autocomplete="off"
                        spellcheck="false" data-key="/" autofocus[question.is_empty()];
                }
                label { "Changed"
                    select name="since" {
                        @for (value, words) in times {
                            option value=(value) selected[question.since.as_deref().unwrap_or_default() == value] { (words) }
                        }
                        @if let Some(other) = other { option value=(other) selected { "since " (other) } }
                    }
                }
                button.primary { "Search" }
            }
            (store_choice(question, readable))
            (chosen(question))
            @if question.explain { input type="hidden" name="explain" value="1"; }
        }
        (help())
    }
}

fn store_choice(question: &Question, readable: &[Store]) -> Markup {
    let chosen: Vec<_> = question.stores.iter().map(ToString::to_string).collect();
    html! {
        @if readable.len() > 1 {
            details open[!question.stores.is_empty()] {
                summary { @match question.stores.len() {
                    0 => { "In all " (text::grouped(readable.len() as u64)) " stores" }
                    chosen => { "In " (text::count(chosen as u64, "store", "stores")) }
                } }
                fieldset {
                    legend { "Stores; none means all" }
                    (choice::boxes(readable, &chosen, ""))
                }
            }
        }
    }
}

/// Shows the filters that are in force as boxes to uncheck.
fn chosen(question: &Question) -> Markup {
    let values = question.kinds.iter().map(|kind| ("type", kind));
    let values = values.chain(question.tags.iter().map(|tag| ("tag", tag)));
    let author = question.author.as_ref().map(ToString::to_string);
    let values: Vec<_> = values.chain(author.as_ref().map(|author| ("author", author))).collect();
    html! {
        @if !values.is_empty() {
            fieldset {
                legend { "Only" }
                @for (name, value) in values {
                    label.inline {
                        input type="checkbox" name=(name) value=(value) checked;
                        (name) " " (visible::short(value))
                    }
                }
                @if question.author.is_some() {
                    p { small { "An author is looked for among the best " (REACHABLE_MAX) " hits." } }
                }
            }
        }
    }
}

fn help() -> Markup {
    let rows = [
        ("tea pot", "any of the words; the more of them a memory has, the higher it ranks"),
        ("\"tea pot\"", "exactly these words next to each other"),
        ("tea*", "words that begin with tea"),
        ("tea AND pot, tea OR coffee, NOT milk", "operators are written in capitals; ( ) group"),
        ("tag:travel", "memories with a tag"),
        ("type:person", "memories of a type"),
        ("path:/projects/*", "memories below a folder; * stands for anything"),
    ];
    html! {
        details #help {
            summary { "How to search" }
            dl { @for (query, meaning) in rows { dt { code { (query) } } dd { (meaning) } } }
        }
    }
}

/// Lists what the shown hits have in common, as links that narrow the search.
fn facets(scene: &Scene<'_>, hits: &[SearchHit]) -> Markup {
    let question = &scene.question;
    let stores = counted(hits.iter().map(|hit| hit.note.store), |store| {
        let name = scene.stores.get(store).map_or_else(String::new, |store| store.name.to_string());
        (!question.stores.contains(store)).then(|| (name, question.in_store(*store)))
    });
    let kinds = counted(hits.iter().map(|hit| &hit.note.kind), |kind| {
        (!question.kinds.contains(kind)).then(|| ((*kind).clone(), question.of_kind(kind)))
    });
    let tags = counted(hits.iter().flat_map(|hit| distinct(&hit.tags)), |tag| {
        (!question.tags.contains(tag)).then(|| ((*tag).clone(), question.with_tag(tag)))
    });
    let authors = counted(hits.iter().map(|hit| &hit.actor), |actor| {
        (question.author.as_ref() != Some(*actor))
            .then(|| (scene.authors.short(actor), question.by_author(actor)))
    });
    let facets = [("Store", stores), ("Type", kinds), ("Tag", tags), ("Author", authors)];
    html! {
        @if facets.iter().any(|(_, values)| !values.is_empty()) {
            section.facets aria-labelledby="narrow" {
                h2 #narrow { "Narrow down" }
                p { small { "The numbers count the hits on this page." } }
                dl { @for (name, values) in facets {
                    @if !values.is_empty() {
                        dt { (name) }
                        dd { ul { @for (value, address, count) in values {
                            li { a href=(address) { (visible::short(&value)) } " " small { (count) } }
                        } } }
                    }
                } }
            }
        }
    }
}

fn distinct(tags: &[String]) -> impl Iterator<Item = &String> {
    let is_first = |(place, tag): &(usize, &String)| !tags.iter().take(*place).any(|it| it == *tag);
    tags.iter().enumerate().filter(is_first).map(|(_, tag)| tag)
}

/// Counts values and returns the most frequent, each with its name and the address of the narrowed
/// search.
fn counted<T: Eq + std::hash::Hash>(
    values: impl Iterator<Item = T>,
    named: impl Fn(&T) -> Option<(String, String)>,
) -> Vec<(String, String, usize)> {
    let mut counts: HashMap<T, usize> = HashMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let rows = counts.iter().filter_map(|(value, count)| {
        let (name, address) = named(value)?;
        (!name.is_empty()).then_some((name, address, *count))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|one, other| other.2.cmp(&one.2).then_with(|| one.0.cmp(&other.0)));
    rows.truncate(FACET_VALUES_MAX);
    rows
}
