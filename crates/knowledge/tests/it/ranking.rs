//! Scores are what the formula says, computed once more in the simplest way.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quipu_knowledge::SearchRequest;
use quipu_testkit::InMemoryBackend;
use quipu_testkit::knowledge::Library;

/// Words that are their own stems and have no other forms, so that only fields and counts matter.
const WORDS: [&str; 6] = ["tea", "cup", "pot", "milk", "salt", "corn"];

/// A note: its heading, which is its title too, and the words of its text.
#[derive(Clone, Debug)]
struct Text {
    heading: Vec<usize>,
    body: Vec<usize>,
}

fn text() -> impl Strategy<Value = Text> {
    let words = |count| prop::collection::vec(0..WORDS.len(), count);
    (words(1..3), words(0..30)).prop_map(|(heading, body)| Text { heading, body })
}

fn joined(words: &[usize], separator: &str) -> String {
    let words: Vec<_> = words.iter().filter_map(|word| WORDS.get(*word).copied()).collect();
    words.join(separator)
}

fn written(text: &Text) -> String {
    format!("# {}\n\n{}\n", joined(&text.heading, " "), joined(&text.body, " "))
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("there are few"))
}

/// How much a word counts in a note: a heading is a title (6), a heading (2.5) and text (1), and its
/// words are in the note's fields (0.4, once).
fn weight(text: &Text, word: usize) -> f64 {
    let count = |words: &[usize]| number(words.iter().filter(|it| **it == word).count());
    let in_fields = if text.heading.contains(&word) { f64::from(0.4_f32) } else { 0.0 };
    count(&text.heading) * 9.5 + count(&text.body) + in_fields
}

fn length(text: &Text) -> f64 {
    number(text.heading.len() + text.body.len())
}

/// Returns the scores of the notes that have every word.
fn scores(notes: &BTreeMap<String, Text>, words: &[usize]) -> Vec<(String, f64)> {
    let count = number(notes.len());
    let mean = notes.values().map(length).sum::<f64>() / count;
    let mut scored = Vec::new();
    for (path, text) in notes {
        if words.iter().any(|word| weight(text, *word) == 0.0) {
            continue;
        }
        let score = words.iter().map(|word| {
            let having = notes.values().filter(|it| weight(it, *word) > 0.0).count();
            let having = number(having);
            let worth = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            let weight = weight(text, *word);
            let norm = 1.2 * (1.0 - 0.75 + 0.75 * length(text) / mean);
            worth * weight * 2.2 / (weight + norm)
        });
        scored.push((path.clone(), score.sum()));
    }
    scored
}

/// Searches, and returns the hits with their scores.
fn found(library: &Library, words: &[usize]) -> Vec<(String, f64)> {
    // `AND` asks for every word and for nothing less.
    let text = joined(words, " AND ");
    let request = SearchRequest { limit: 500, ..SearchRequest::new(vec![library.store], text) };
    let hits = library.engine.search(&request).expect("it searches").hits;
    hits.into_iter().map(|hit| (hit.note.path.as_str().to_owned(), hit.score)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The statistics are those of the notes that live, however they came to be what they are.
    #[test]
    fn scores_are_exact(
        steps in prop::collection::vec((0..12_usize, prop::option::weighted(0.85, text())), 1..60),
        queries in prop::collection::vec(prop::collection::vec(0..WORDS.len(), 1..4), 1..4),
    ) {
        let library = Library::new(std::sync::Arc::new(InMemoryBackend::default()));
        let mut notes = BTreeMap::new();
        for (number, (place, text)) in steps.into_iter().enumerate() {
            let path = format!("/{place}.md");
            match text {
                Some(text) => {
                    library.put(&path, &written(&text));
                    notes.insert(path, text);
                }
                None if notes.remove(&path).is_some() => library.delete(&path),
                None => {}
            }
            if number % 3 == 0 {
                library.engine.follow(None).unwrap();
            }
        }
        for mut words in queries {
            words.sort_unstable();
            words.dedup();
            let found = found(&library, &words);
            let mut expected = scores(&notes, &words);
            prop_assert_eq!(found.len(), expected.len());
            prop_assert!(found.is_sorted_by(|(_, left), (_, right)| left >= right), "{found:?}");
            for (path, score) in &found {
                let place = expected.iter().position(|(it, _)| it == path).expect("it matches");
                let (_, wanted) = expected.swap_remove(place);
                prop_assert!((score - wanted).abs() < 1e-6, "{path}: {score}, not {wanted}");
            }
        }
    }
}
