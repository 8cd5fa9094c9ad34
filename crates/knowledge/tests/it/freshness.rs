//! Freshness: notes that are expired or stale rank lower, and say so.

use std::time::Duration;

use quipu_core::Moment;
use quipu_core::model::Timestamp;
use quipu_knowledge::{
    FreshnessState, Knowledge, ScoreReason, SearchHit, SearchMode, SearchRequest, SearchTarget,
};
use quipu_notes::{Comparison, FieldFilter, Predicate};
use quipu_testkit::knowledge::Library;

use crate::shelf::{library, with};

fn hits(knowledge: &Knowledge, request: &SearchRequest) -> Vec<SearchHit> {
    let hits = knowledge.search(&SearchRequest { explain: true, ..request.clone() });
    let hits = hits.expect("it searches").hits;
    for hit in &hits {
        let explained = hit.explanation.as_ref().expect("it was asked for").score();
        assert!((explained - hit.score).abs() < 1e-9, "{explained} {}", hit.score);
    }
    hits
}

fn found(library: &Library, text: &str) -> Vec<SearchHit> {
    hits(&library.engine, &SearchRequest::new(vec![library.store], text))
}

/// Formats hits with what is said about them.
fn said(hits: &[SearchHit]) -> Vec<String> {
    let each = hits.iter().map(|hit| match &hit.freshness {
        Some(freshness) => format!("{} {freshness}", hit.note.path),
        None => hit.note.path.to_string(),
    });
    each.collect()
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

#[test]
fn what_is_over_ranks_below_what_holds() {
    let library = with(&[
        ("/a.md", "---\nsuperseded_by: '[[Tea plan]]'\n---\n# Tea\n\ntea tea tea"),
        ("/b.md", "---\nstatus: draft\n---\n# Tea\n\ntea tea tea"),
        ("/c.md", "a long note that mentions tea only once, among many other words about cups"),
    ]);
    let hits = found(&library, "tea");
    assert_eq!(said(&hits), ["/b.md status draft", "/c.md", "/a.md superseded by [[Tea plan]]"]);
    let [stale, _, over] = &hits[..] else { panic!("three hits") };
    assert!((over.score * 2.0 - stale.score).abs() < 1e-9, "{} {}", over.score, stale.score);
    let mut reasons = over.explanation.iter().flat_map(|it| &it.parts).map(|part| &part.reason);
    assert!(reasons.any(|it| *it == ScoreReason::Freshness(FreshnessState::Expired)));
}

#[test]
fn a_note_is_over_when_the_clock_passes_its_end() {
    let library = with(&[
        ("/a.md", "---\nvalid_to: 2026-05-01\n---\ntea"),
        ("/b.md", "---\nstale_after: 2026-04-01T08:00:00Z\n---\ntea"),
        ("/c.md", "tea and cups"),
    ]);
    let said_at = |now: &str| {
        library.clock.set(at(now));
        said(&found(&library, "tea"))
    };
    let stale = "/b.md stale after 2026-04-01T08:00:00Z";
    assert_eq!(said_at("2026-04-01T07:59:59.999999Z"), ["/b.md", "/a.md", "/c.md"]);
    assert_eq!(said_at("2026-04-01T08:00:00Z"), ["/a.md", "/c.md", stale]);
    assert_eq!(said_at("2026-05-01T23:59:59.999999Z"), ["/a.md", "/c.md", stale]);
    assert_eq!(said_at("2026-05-02T00:00:00Z"), ["/c.md", stale, "/a.md valid until 2026-05-01"]);
}

#[test]
fn the_past_is_judged_by_its_own_time() {
    let library = library();
    library.clock.set(at("2026-03-01T00:00:00Z"));
    library.put("/a.md", "---\nvalid_to: 2026-05-01\n---\ntea");
    library.clock.set(at("2026-07-01T00:00:00Z"));
    library.put("/b.md", "tea and cups");
    let said_at = |moment: &str| {
        let moment = Moment::parse(moment, library.engine.now()).expect("a moment");
        let past = library.engine.moment(library.store, &moment).expect("a past");
        let then = library.engine.at(&past).expect("it opens").judged_by(&moment);
        said(&hits(&then, &SearchRequest::new(vec![library.store], "tea")))
    };
    assert_eq!(said(&found(&library, "tea")), ["/b.md", "/a.md valid until 2026-05-01"]);
    assert_eq!(said_at("2026-04-01T00:00:00Z"), ["/a.md"]);
    // Nothing had changed since March.
    assert_eq!(said_at("2026-06-01T00:00:00Z"), ["/a.md valid until 2026-05-01"]);
}

#[test]
fn every_match_is_judged_and_pages_fit_together() {
    let library = library();
    for number in 0..60 {
        let status = if number % 2 == 0 { "obsolete" } else { "done" };
        let text = format!("---\nstatus: {status}\n---\n# Tea\n\n{}", "tea ".repeat(number));
        library.put(&format!("/{number}.md"), &text);
    }
    let page = |offset, limit| {
        let request = SearchRequest::new(vec![library.store], "tea");
        hits(&library.engine, &SearchRequest { offset, limit, ..request })
    };
    let all = said(&page(0, 100));
    assert_eq!(all.len(), 60);
    let paged: Vec<_> = (0..60).step_by(7).flat_map(|offset| said(&page(offset, 7))).collect();
    assert_eq!(paged, all);
    let is_over = |line: &&String| line.ends_with("status obsolete");
    assert_eq!(all.iter().take(10).filter(is_over).count(), 0, "{all:?}");
    assert_eq!(all.iter().filter(is_over).count(), 30);
}

#[test]
fn who_asks_for_what_is_over_finds_it() {
    let library = with(&[("/a.md", "---\nstatus: obsolete\n---\n# Old plan"), ("/b.md", "# Plan")]);
    let new = SearchRequest::new(vec![library.store], "");
    let mut request = new.clone();
    let predicate = Predicate::Is(Comparison::Equal, "obsolete".to_owned());
    request.filter.fields = vec![FieldFilter { key: "status".to_owned(), predicate }];
    assert_eq!(said(&hits(&library.engine, &request)), ["/a.md status obsolete"]);
    let request = SearchRequest { text: "old".to_owned(), mode: SearchMode::Title, ..new.clone() };
    assert_eq!(said(&hits(&library.engine, &request)), ["/a.md status obsolete"]);
    let request = SearchRequest { text: "a".to_owned(), mode: SearchMode::Permalink, ..new };
    assert_eq!(said(&hits(&library.engine, &request)), ["/a.md status obsolete"]);
}

#[test]
fn parts_of_notes_are_judged_with_them() {
    let library = with(&[
        ("/a.md", "---\nstatus: rejected\n---\n- [rule] Never boil tea\n- needs [[Tea cups]]"),
        ("/b.md", "- [rule] Never boil tea, or almost never\n- needs [[Tea cups]] (or glasses)"),
    ]);
    let new = SearchRequest::new(vec![library.store], "tea");
    for target in [SearchTarget::Observations, SearchTarget::Relations] {
        let hits = hits(&library.engine, &SearchRequest { targets: vec![target], ..new.clone() });
        assert_eq!(said(&hits), ["/b.md", "/a.md status rejected"]);
    }
}

#[test]
fn a_note_that_is_renewed_ranks_as_before() {
    let library = with(&[("/a.md", "# Tea\n\ntea"), ("/b.md", "tea and cups")]);
    let before = found(&library, "tea")[0].score;
    library.put("/a.md", "---\nstatus: obsolete\n---\n# Tea\n\ntea");
    assert_eq!(said(&found(&library, "tea")), ["/b.md", "/a.md status obsolete"]);
    library.clock.advance(Duration::from_mins(1));
    library.put("/a.md", "# Tea\n\ntea");
    let hits = found(&library, "tea");
    assert_eq!(said(&hits), ["/a.md", "/b.md"]);
    assert!((hits[0].score - before).abs() < 1e-9);
}

#[test]
fn neighbors_of_a_note_that_is_over_lift_it_less() {
    let over = "---\nstatus: obsolete\n---\nNora: Biscuit, everybody agreed";
    let notes = [
        ("/s1/1.md", "Sam: what is the puppy called?"),
        ("/s1/2.md", "Nora: Biscuit, everybody agreed"),
        ("/s2/1.md", "Sam: what is the puppy called?"),
        ("/s2/2.md", over),
    ];
    let hits = found(&with(&notes), "Nora puppy");
    let score = |path: &str| {
        let hit = hits.iter().find(|hit| hit.note.path.as_str() == path).expect("it is found");
        let parts = hit.explanation.iter().flat_map(|it| &it.parts);
        let part = parts.filter(|part| part.reason == ScoreReason::Neighbors);
        part.map(|part| part.score).sum::<f64>()
    };
    assert!((score("/s2/2.md") * 4.0 - score("/s1/2.md")).abs() < 1e-9);
    assert!(score("/s2/1.md") < score("/s1/1.md"));
}
