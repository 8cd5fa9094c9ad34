//! The hits of a search: where they are, an excerpt, and why they are hits.

use std::collections::BTreeSet;

use maud::{Markup, html};
use quipu_knowledge::SearchHit;
use quipu_notes::query::{Query, Term};
use quipu_notes::tokenizer::Language;
use quipu_notes::{Phrase, Snippet, snippet};
use quipu_service::caller::Need;

use crate::form::address;
use crate::text;
use crate::visible;

use super::Scene;

/// How many tags of a hit are shown.
const TAGS_MAX: usize = 8;

/// Lists hits, with boxes to select those that the visitor may change.
pub(super) fn list(scene: &Scene<'_>, hits: &[SearchHit]) -> Markup {
    let visit = scene.visit;
    let stores: BTreeSet<_> = hits.iter().map(|hit| hit.note.store).collect();
    let known = stores.iter().filter_map(|id| scene.stores.get(id));
    let open: BTreeSet<_> = known.filter(|it| visit.may_change(it)).map(|it| it.id).collect();
    let may = |hit: &SearchHit| open.contains(&hit.note.store);
    let phrases = phrases(&scene.question.text);
    let entries = html! {
        ol.hits { @for hit in hits {
            li {
                @if may(hit) {
                    input type="checkbox" name="memory" value=(hit.note.memory)
                        aria-label={ "Select " (hit.note.path) };
                    input type="hidden" name="place" value={ (hit.note.memory) "/" (hit.note.store) };
                }
                div { (entry(scene, &phrases, hit)) }
            }
        } }
    };
    html! {
        @if !open.is_empty() {
            form #selection action="/ui/search/delete" {
                input type="hidden" name="back" value=(scene.question.address());
                (entries)
                p { button { "Delete selected…" } }
            }
        } @else { (entries) }
    }
}

fn entry(scene: &Scene<'_>, phrases: &[Phrase], hit: &SearchHit) -> Markup {
    let note = &hit.note;
    let store = scene.stores.get(&note.store);
    html! {
        h2 { a href={ "/ui/stores/" (note.store) "/memories/" (note.memory) } { (visible::short(&note.title)) } }
        p.where {
            span.mono { (note.path) }
            @if let Some(store) = store {
                " in " a href={ "/ui/stores/" (store.id) } { (visible::short(store.name.as_str())) }
            }
            " · " (visible::short(&note.kind))
            " · " (text::time(note.updated_at, scene.visit.engine.now()))
            " by " (visible::short(&scene.authors.short(&hit.actor)))
        }
        @if let Some(freshness) = &hit.freshness {
            p { strong { (freshness.state.name()) } ": " (visible::short(&freshness.to_string())) }
        }
        @if !hit.snippet.text.is_empty() { p { (marked(&hit.snippet)) } }
        p {
            small { (why(phrases, hit)) }
            @if scene.visit.caller.may_in(note.store, Need::Manage) {
                @let at = [("store", note.store.to_string()), ("memory", note.memory.to_string())];
                " " a href=(address("/ui/redact", &at)) aria-label={ "Redact " (note.path) } { "Redact…" }
            }
        }
        (explained(hit))
    }
}

/// Shows what a score is made of, if that was asked for.
fn explained(hit: &SearchHit) -> Markup {
    html! {
        @if let Some(explanation) = &hit.explanation {
            details open {
                summary { "What the score is made of" }
                ul { @for part in &explanation.parts { li { (visible::short(&part.to_string())) } } }
            }
        }
    }
}

/// Returns an excerpt with its matches marked.
pub(super) fn marked(snippet: &Snippet) -> Markup {
    let piece = |from: usize, to: usize| snippet.text.get(from..to).unwrap_or_default();
    let mut end = 0;
    let mut parts = Vec::new();
    for found in &snippet.matches {
        parts.push((piece(end, found.start), piece(found.start, found.end)));
        end = found.end;
    }
    html! {
        @for (before, found) in parts {
            (visible::short(before)) mark { (visible::short(found)) }
        }
        (visible::short(piece(end, snippet.text.len())))
    }
}

/// Says which words of the search are in which parts of a memory, and how it ranks.
fn why(phrases: &[Phrase], hit: &SearchHit) -> Markup {
    let phrases: Vec<&Phrase> = phrases.iter().collect();
    let tags = hit.tags.iter().take(TAGS_MAX).cloned().collect::<Vec<_>>().join(" ");
    let path = hit.note.path.as_str().replace('/', " ");
    let found = |text: &str| words(&snippet(text, Language::English, &phrases));
    let fields = [
        ("title", found(&hit.note.title)),
        ("path", found(&path)),
        ("tags", found(&tags)),
        ("text", words(&hit.snippet)),
    ];
    let fields: Vec<_> = fields.into_iter().filter(|(_, words)| !words.is_empty()).collect();
    html! {
        @for (name, words) in &fields { (name) ": " (visible::short(&words.join(", "))) " · " }
        "score " (format!("{:.2}", hit.score))
    }
}

/// Returns the distinct matches of an excerpt, in lower case.
fn words(snippet: &Snippet) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for found in &snippet.matches {
        let word = snippet.text.get(found.clone()).unwrap_or_default().to_lowercase();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Returns what the search looks for in titles, paths and tags.
fn phrases(text: &str) -> Vec<Phrase> {
    let query = Query::parse(text);
    let terms = query.terms();
    let languages = [Language::English];
    let each = |term: &&Term| match term {
        Term::Word(word) => {
            let mut phrases = Phrase::spellings(word, &languages);
            // A single word also finds longer ones.
            if terms.len() == 1 {
                phrases.extend(Phrase::prefix(word, &languages));
            }
            phrases
        }
        Term::Prefix(start) => Phrase::prefix(start, &languages),
        Term::Phrase(words) => Phrase::quoted(words, &languages),
    };
    terms.iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_marked_and_everything_is_escaped() {
        let text = "<b>tea</b> & tea".to_owned();
        let snippet = Snippet { text, matches: vec![3..6, 13..16], source: None };
        assert_eq!(
            marked(&snippet).into_string(),
            "&lt;b&gt;<mark>tea</mark>&lt;/b&gt; &amp; <mark>tea</mark>"
        );
        let broken = Snippet { text: "té".to_owned(), matches: vec![0..2, 9..12], source: None };
        assert_eq!(marked(&broken).into_string(), "<mark></mark><mark></mark>");
    }

    #[test]
    fn the_words_of_a_match_are_listed_once() {
        let phrases = phrases("tea NOT milk");
        let phrases: Vec<&Phrase> = phrases.iter().collect();
        let found = snippet("Tea, milk and tea", Language::English, &phrases);
        assert_eq!(words(&found), ["tea"]);
    }
}
