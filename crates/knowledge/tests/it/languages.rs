//! Other languages: notes are found by inflected forms of their words, beside notes in every other
//! language.

use std::collections::BTreeMap;

use quipu_knowledge::SearchRequest;

use crate::shelf::library;

const SETS: &str = include_str!("languages.txt");

/// How far down the note may be.
const PLACE_MAX: usize = 3;
/// The least number of notes and of questions in a set.
const SET_SIZE_MIN: usize = 8;

/// A language's notes and questions, each with a path.
#[derive(Default)]
struct Set<'t> {
    notes: Vec<(&'t str, &'t str)>,
    questions: Vec<(&'t str, &'t str)>,
}

fn sets() -> BTreeMap<&'static str, Set<'static>> {
    let mut sets: BTreeMap<_, Set<'_>> = BTreeMap::new();
    let mut language = "";
    for line in SETS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            language = name;
            continue;
        }
        let (left, right) = line.split_once(" | ").expect("two columns");
        let set = sets.entry(language).or_default();
        match left.strip_prefix("? ") {
            Some(question) => set.questions.push((question, right)),
            None => set.notes.push((left, right)),
        }
    }
    sets
}

#[test]
fn notes_are_found_by_inflected_forms_of_their_words() {
    let sets = sets();
    let library = library();
    for (path, text) in sets.values().flat_map(|set| &set.notes) {
        library.put(path, text);
    }
    let mut missed = Vec::new();
    for (language, set) in &sets {
        assert!(
            set.notes.len() >= SET_SIZE_MIN && set.questions.len() >= SET_SIZE_MIN,
            "{language}"
        );
        for (question, wanted) in &set.questions {
            let request = SearchRequest::new(vec![library.store], *question);
            let hits = library.engine.search(&request).expect("it searches").hits;
            let place = hits.iter().position(|hit| hit.note.path.as_str() == *wanted);
            if place.is_none_or(|place| place >= PLACE_MAX) {
                missed.push(format!("{language}: {question}: {place:?}"));
            }
        }
    }
    assert_eq!(sets.len(), 6);
    assert!(missed.is_empty(), "{missed:#?}");
}
