//! Random notes and random searches: the same answers from a backend and from the naive one.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use quipu_core::Backend;
use quipu_core::model::{MemoryId, View};
use quipu_knowledge::SearchTarget;
use quipu_knowledge::{Scope, SearchHit, SearchPage, SearchRequest};

use super::{Library, actor, at};

/// One step of a random run.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes a memory.
    Put(String, String),
    /// Deletes a memory, if it is there.
    Delete(String),
    /// Moves a memory, if it is there and its new place is free.
    Move(String, String),
    /// Redacts every version that can be, if any.
    Redact,
    /// Takes a step of the indexer.
    Index,
    /// Builds the index anew.
    Rebuild,
    /// Searches.
    Search(String),
}

const WORDS: [&str; 14] = [
    "tea",
    "teas",
    "green",
    "Greens",
    "kettle",
    "kettles",
    "parseJson",
    "json",
    "日本",
    "日本語",
    "café",
    "v1.2",
    "foo-bar",
    "organization",
];

const PATHS: [&str; 6] = ["/a.md", "/b.md", "/x/a.md", "/x/tea.md", "/x/y/c.md", "/z"];

/// Makes lists of steps.
pub fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let path = || select(&PATHS[..]).prop_map(str::to_owned);
    let step = prop_oneof![
        6 => (path(), note()).prop_map(|(path, text)| Step::Put(path, text)),
        1 => path().prop_map(Step::Delete),
        1 => (path(), path()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => Just(Step::Redact),
        1 => Just(Step::Index),
        1 => Just(Step::Rebuild),
        6 => query().prop_map(Step::Search),
    ];
    prop::collection::vec(step, 1..count)
}

fn word() -> impl Strategy<Value = String> {
    select(&WORDS[..]).prop_map(str::to_owned)
}

fn note() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => prop::collection::vec(word(), 1..6).prop_map(|words| words.join(" ")),
        1 => word().prop_map(|word| format!("# {word}")),
        1 => (word(), word()).prop_map(|(first, second)| format!("- [{first}] {second} #tag")),
        2 => (word(), word()).prop_map(|(first, second)| format!("- needs [[{first}]] ({second})")),
        1 => select(&["[[a]]", "[[x/tea]]", "[[./a.md]]", "[[../b]]", "[[Tea]]"][..])
            .prop_map(str::to_owned),
    ];
    let head = prop_oneof![
        3 => Just(String::new()),
        1 => word().prop_map(|word| format!("---\ntags: [{word}]\ntitle: {word}\n---\n")),
        1 => Just("---\npermalink: a\nn: 5\n---\n".to_owned()),
    ];
    (head, prop::collection::vec(line, 0..6)).prop_map(|(head, lines)| head + &lines.join("\n"))
}

fn query() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        6 => word(),
        2 => (word(), word()).prop_map(|(first, second)| format!("\"{first} {second}\"")),
        2 => select(&["te*", "gre*", "orga*", "日*", "ket*", "foo-b*", "organiz*"][..])
            .prop_map(str::to_owned),
        1 => word().prop_map(|word| format!("tag:{word}")),
        1 => select(&["path:x", "path:/x/*", "path:*tea*", "type:note", "tag:tag"][..])
            .prop_map(str::to_owned),
    ];
    let glue = select(&[" ", " ", " AND ", " OR ", " NOT "][..]);
    (atom.clone(), prop::collection::vec((glue, atom), 0..4)).prop_map(|(first, rest)| {
        rest.into_iter().fold(first, |query, (glue, atom)| format!("{query}{glue}{atom}"))
    })
}

/// Takes the steps, and compares every answer with that of an index that was built just now.
///
/// An index that followed changes one by one, was merged, scrubbed and rebuilt in between must answer as
/// one that was made at once: the same hits, in the same order, with the same scores.
pub fn compare(backend: Arc<dyn Backend>, steps: &[Step]) {
    let tested = Library::new(Arc::clone(&backend));
    for step in steps {
        let Step::Search(text) = step else {
            take(&tested, step);
            continue;
        };
        let fresh = tested.with_new_index(Arc::clone(&backend));
        for target in [SearchTarget::Memories, SearchTarget::Observations, SearchTarget::Relations]
        {
            let found = [&tested, &fresh].map(|it| searched(it, text, target));
            assert_eq!(found[0], found[1], "{text} in {target:?}");
        }
    }
    assert_eq!(links(&tested), links(&tested.with_new_index(backend)));
    assert_eq!(tested.engine.check().expect("it checks").problems, []);
}

fn take(library: &Library, step: &Step) {
    let Library { engine, store, .. } = library;
    match step {
        Step::Put(path, text) => {
            library.put(path, text);
        }
        // Nothing may be there.
        Step::Delete(path) => drop(engine.delete_at(&actor(), *store, &at(path))),
        Step::Move(from, to) => drop(engine.rename(&actor(), *store, &at(from), &at(to))),
        Step::Redact => {
            let query = quipu_core::backend::VersionQuery {
                filter: quipu_core::backend::VersionFilter::default(),
                before: None,
                limit: 3,
                view: View::Basic,
            };
            for version in engine.versions(*store, &query).expect("they are listed").items {
                // What a memory holds now cannot be redacted.
                drop(engine.redact(&actor(), *store, &[version.id]));
            }
        }
        Step::Index => drop(engine.follow(None).expect("it indexes")),
        Step::Rebuild => engine.rebuild().expect("it rebuilds"),
        Step::Search(_) => {}
    }
}

/// Returns what a search finds, with the scores.
fn searched(library: &Library, text: &str, target: SearchTarget) -> (Vec<String>, usize) {
    let request = SearchRequest {
        targets: vec![target],
        limit: 900,
        ..SearchRequest::new(vec![library.store], text)
    };
    let SearchPage { hits, total, .. } = library.engine.search(&request).expect("it searches");
    let shown = |hit: &SearchHit| {
        format!("{} {} {:?} {:?}", hit.note.permalink, hit.score, hit.found, hit.snippet)
    };
    (hits.iter().map(shown).collect(), total.count)
}

/// Returns every link, backlink, missing link and orphan.
fn links(library: &Library) -> Vec<String> {
    let Library { engine, store, .. } = library;
    let scope = Scope::only(*store);
    let graph = engine.graph(*store, 1000).expect("it draws");
    let mut lines = vec![format!("{:?}", graph.links)];
    let memories: Vec<MemoryId> = graph.notes.iter().map(|note| note.memory).collect();
    for memory in memories {
        let links = engine.links(&scope, memory, 1000).expect("they are listed");
        let back = engine.backlinks(&scope, memory, 1000).expect("they are listed");
        lines.push(format!("{links:?} {back:?}"));
    }
    let unresolved = engine.unresolved(&scope, 1000).expect("they are listed");
    let orphans = engine.orphans(&scope, 1000).expect("they are listed");
    lines.push(format!("{unresolved:?} {orphans:?}"));
    lines
}
