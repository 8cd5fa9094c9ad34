//! Dates in questions: memories of the days that are asked about come first.

use std::time::Duration;

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
fn an_explanation_says_which_days_are_meant() {
    let library = shelf();
    for (text, shown) in [
        ("tea in May 2025", "in may 2025 (2025-05-01 to 2025-05-31)"),
        ("tea on 2025-12-24", "on 2025-12-24 (2025-12-24)"),
        ("tea before 2025-06", "before 2025-06 (to 2025-05-31)"),
        ("tea since 2025-12-24", "since 2025-12-24 (from 2025-12-24)"),
    ] {
        let all = hits(&library, text);
        let mut parts = all.iter().flat_map(|hit| &hit.explanation.as_ref().expect("one").parts);
        let part = parts.find(|part| matches!(part.reason, ScoreReason::Date(_)));
        let part = part.expect("a memory of these days").to_string();
        assert!(part.ends_with(&format!("bonus for its date: {shown}")), "{part}");
    }
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
fn a_memory_without_a_date_is_of_the_days_of_its_creation_and_its_last_change() {
    let library = shelf();
    assert_eq!(preferred(&library, "tea today"), ["/plain.md"]);
    assert_eq!(preferred(&library, "tea"), [""; 0]);
    assert_eq!(preferred(&library, "tea yesterday"), [""; 0]);
    library.clock.advance(Duration::from_hours(24));
    library.put("/plain.md", "tea with Nora and Ada");
    library.put("/new.md", "tea with Ada");
    assert_eq!(preferred(&library, "tea today"), ["/new.md", "/plain.md"]);
    assert_eq!(preferred(&library, "tea yesterday"), ["/plain.md"]);
}

fn preferred_calls(library: &Library, text: &str) -> Vec<String> {
    let mut paths = preferred(library, text);
    paths.retain(|path| path.starts_with("/call/"));
    paths
}

#[test]
fn an_event_was_when_its_note_says() {
    let library = with(&[
        ("/release.md", "---\ndate: 2025-06-10\ncreated: 2025-01-01\n---\n# Release 2.4\n\nnotes"),
        ("/move.md", "# Move to Berlin, 1 March 2025\n\nboxes"),
        ("/launch.md", "# Launch\n\nwithout a date"),
        ("/call/2025-06-09.md", "# Call\n\ntea with Nora"),
        ("/call/2025-06-10.md", "# Call again\n\ntea with Nora"),
        ("/call/2025-06-11.md", "# Call at last\n\ntea with Nora"),
    ]);
    let calls = ["/call/2025-06-09.md", "/call/2025-06-10.md", "/call/2025-06-11.md"];
    for (text, expected) in [
        ("tea before the release", &calls[..1]),
        ("tea until release 2.4", &calls[..2]),
        ("tea during the releases", &calls[1..2]),
        ("tea since the release we had", &calls[1..]),
        ("tea after the Release.", &calls[2..]),
        ("tea since our move to Berlin", &calls),
        ("tea before the move to Berlin", &[]),
        ("tea after the launch", &[]),
        ("tea after the holidays", &[]),
        // The last words are no part of its name, and those of two notes name none.
        ("tea after the call", &[]),
    ] {
        assert_eq!(preferred_calls(&library, text), expected, "{text}");
    }
    // A date that is written counts more than one that must be looked up.
    assert_eq!(preferred_calls(&library, "tea on 2025-06-09 before the release"), calls[..1]);
    library.put("/other.md", "---\ndate: 2025-08-10\n---\n# Release 2.5\n");
    assert_eq!(preferred_calls(&library, "tea before the release"), [""; 0]);
    assert_eq!(preferred_calls(&library, "tea before release 2.4"), calls[..1]);
    library.delete("/release.md");
    assert_eq!(preferred_calls(&library, "tea before the release"), calls);
}

#[test]
fn an_event_is_looked_for_in_the_searched_stores_only() {
    let library = with(&[("/call/2025-06-09.md", "tea with Nora")]);
    let other = quipu_testkit::knowledge::new_store(&library.engine, "other");
    let text = "---\ndate: 2025-06-10\n---\n# Release\n";
    crate::shelf::put(&library, other, "/release.md", text);
    assert_eq!(preferred(&library, "tea before the release"), [""; 0]);
    let request = SearchRequest {
        explain: true,
        ..SearchRequest::new(vec![library.store, other], "tea before the release")
    };
    let page = library.engine.search(&request).expect("it searches");
    let parts = page.hits.iter().flat_map(|hit| &hit.explanation.as_ref().expect("one").parts);
    assert!(parts.into_iter().any(|part| matches!(part.reason, ScoreReason::Date(_))));
}

#[test]
fn the_words_of_a_date_are_words_too() {
    let library = with(&[("/a.md", "the yesterday show"), ("/b.md", "another show")]);
    let found = hits(&library, "yesterday show");
    assert_eq!(found[0].note.path.as_str(), "/a.md");
}
