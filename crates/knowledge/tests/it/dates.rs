//! Dates in questions: memories of the days that are asked about come first.

use quipu_knowledge::{ScoreReason, SearchHit, SearchRequest};
use quipu_testkit::knowledge::Library;

use crate::shelf::with;

/// Searches; today is 2026-01-01, the day on which everything is written.
fn hits(library: &Library, text: &str) -> Vec<SearchHit> {
    let new = SearchRequest::new(vec![library.store], text);
    let hits = library.engine.search(&SearchRequest { explain: true, ..new });
    let hits = hits.expect("it searches").hits;
    for hit in &hits {
        let explained = hit.explanation.as_ref().expect("it was asked for").score();
        assert!((explained - hit.score).abs() < 1e-9, "{text}: {explained} {}", hit.score);
    }
    hits
}

/// Returns the paths of the hits that are preferred for their date, sorted.
fn preferred(library: &Library, text: &str) -> Vec<String> {
    let is_dated = |hit: &&SearchHit| {
        let mut parts = hit.explanation.iter().flat_map(|it| &it.parts);
        parts.any(|part| matches!(part.reason, ScoreReason::Date(_)))
    };
    let all = hits(library, text);
    let mut paths: Vec<_> =
        all.iter().filter(is_dated).map(|hit| hit.note.path.to_string()).collect();
    paths.sort();
    paths
}

fn shelf() -> Library {
    with(&[
        ("/field.md", "---\ndate: 2025-12-24\n---\ntea with Nora"),
        ("/created.md", "---\ncreated: 2025-12-02T23:00:00Z\n---\ntea with Nora"),
        ("/journal/2025-05-04.md", "tea with Nora"),
        ("/titled.md", "# Standup, 4 May 2025\n\ntea with Nora"),
        ("/plain.md", "tea with Nora"),
    ])
}

#[test]
fn memories_of_the_days_come_first_and_others_are_found_too() {
    let library = shelf();
    let found = hits(&library, "tea on 2025-12-24");
    assert_eq!((found.len(), found[0].note.path.as_str()), (5, "/field.md"));
    assert!(found[0].score > found[1].score);
}

#[test]
fn the_day_of_a_memory_is_what_it_says_itself() {
    let library = shelf();
    assert_eq!(preferred(&library, "tea last month"), ["/created.md", "/field.md"]);
    assert_eq!(preferred(&library, "tea in May 2025"), ["/journal/2025-05-04.md", "/titled.md"]);
    assert_eq!(preferred(&library, "tea before June 2025").len(), 2);
    let in_may = ["/journal/2025-05-04.md", "/titled.md"];
    for text in ["tea im Mai 2025", "tea en mayo de 2025", "tea в мае 2025", "tea 2025年5月"]
    {
        assert_eq!(preferred(&library, text), in_may, "{text}");
    }
}

#[test]
fn a_memory_without_a_date_is_of_the_day_of_its_last_change() {
    let library = shelf();
    assert_eq!(preferred(&library, "tea today"), ["/plain.md"]);
    assert_eq!(preferred(&library, "tea"), [""; 0]);
    assert_eq!(preferred(&library, "tea yesterday"), [""; 0]);
}

#[test]
fn the_words_of_a_date_are_words_too() {
    let library = with(&[("/a.md", "the yesterday show"), ("/b.md", "another show")]);
    let found = hits(&library, "yesterday show");
    assert_eq!(found[0].note.path.as_str(), "/a.md");
}
