//! Context: what the memories beside it add to the score of a memory.

use quipu_knowledge::{ScoreReason, SearchHit, SearchRequest};
use quipu_testkit::knowledge::Library;

use crate::shelf::library;

fn hits(library: &Library, text: &str, (offset, limit): (usize, usize)) -> Vec<SearchHit> {
    let new = SearchRequest::new(vec![library.store], text);
    let request = SearchRequest { offset, limit, explain: true, ..new };
    library.engine.search(&request).expect("it searches").hits
}

fn paths(hits: &[SearchHit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.note.path.as_str()).collect()
}

fn from_neighbors(hit: &SearchHit) -> f64 {
    let parts = hit.explanation.iter().flat_map(|it| &it.parts);
    parts.filter(|part| part.reason == ScoreReason::Neighbors).map(|part| part.score).sum()
}

fn has_context(hit: &SearchHit) -> bool {
    from_neighbors(hit) > 0.0
}

/// More messages mention Nora than hits can take in context, and each is as good as the answer by
/// its own words.
fn conversation() -> Library {
    let library = library();
    library.put("/s1/9.md", "Sam: what is the puppy called?");
    library.put("/s1/10.md", "Nora: Biscuit, everybody agreed");
    library.put("/s1/11.md", "Sam: lovely");
    for number in 0..150 {
        library.put(&format!("/s2/{number}.md"), "Nora: good morning everybody");
    }
    library
}

#[test]
fn an_answer_is_found_by_the_question_before_it() {
    let library = conversation();
    let found = hits(&library, "name of Nora's puppy, called", (0, 10));
    assert_eq!(paths(&found)[..2], ["/s1/9.md", "/s1/10.md"]);
    let [question, answer] = &found[..2] else { panic!("two hits") };
    assert!(from_neighbors(question) > 0.0, "the answer mentions Nora");
    assert!(from_neighbors(answer) > from_neighbors(question));
    assert!(found.iter().all(|hit| hit.note.path.as_str() != "/s1/11.md"), "it has no word");
}

#[test]
fn pages_with_context_fit_together() {
    let library = conversation();
    let all = hits(&library, "Nora puppy", (0, 500));
    assert_eq!(all.len(), 152);
    assert!(all.is_sorted_by(|left, right| left.score >= right.score));
    for size in [1, 40, 99] {
        let mut paged = Vec::new();
        while paged.len() < all.len() {
            paged.extend(hits(&library, "Nora puppy", (paged.len(), size)));
        }
        assert_eq!(paths(&paged), paths(&all), "pages of {size}");
    }
}

#[test]
fn a_single_word_is_looked_for_without_context() {
    let library = library();
    library.put("/title.md", "# Kettle");
    for number in 0..5 {
        library.put(&format!("/crowd/{number}.md"), "a kettle on week three of the plan");
    }
    let found = hits(&library, "kettle", (0, 10));
    assert_eq!((found.len(), paths(&found)[0]), (6, "/title.md"));
    assert!(found.iter().all(|hit| !has_context(hit)));
}

#[test]
fn directories_are_apart_however_large_they_are() {
    let library = library();
    library.put("/a/1.md", "kettle tea");
    library.put("/a/b/2.md", "kettle");
    library.put("/a.md", "kettle");
    let found = hits(&library, "kettle tea", (0, 10));
    assert!(found.iter().all(|hit| !has_context(hit)));
    library.put("/a/2.md", "kettle");
    let found = hits(&library, "kettle tea", (0, 10));
    assert_eq!(found.iter().filter(|hit| has_context(hit)).count(), 2);
    for number in 3..=1500 {
        library.put(&format!("/a/{number}.md"), "cup");
    }
    let found = hits(&library, "kettle tea", (0, 10));
    assert_eq!(found.iter().filter(|hit| has_context(hit)).count(), 2);
}

#[test]
fn neighbors_count_less_the_further_away_they_are() {
    let library = library();
    library.put("/far/0.md", "kettle tea");
    for distance in 1..=4 {
        let directory = format!("d{distance}");
        library.put(&format!("/{directory}/0.md"), "tea");
        for number in 1..6 {
            let text = if number == distance { "kettle" } else { "cup" };
            library.put(&format!("/{directory}/{number}.md"), text);
        }
    }
    let found = hits(&library, "kettle tea", (0, 20));
    let gained = |path: &str| {
        let hit = found.iter().find(|hit| hit.note.path.as_str() == path);
        from_neighbors(hit.expect("it is found"))
    };
    let gains = ["/d1/0.md", "/d2/0.md", "/d3/0.md"].map(gained);
    assert!(gains.is_sorted_by(|near, far| near > far), "{gains:?}");
    assert!(gains[2] > 0.0 && gained("/d4/0.md") == 0.0, "{gains:?}");
}

#[test]
fn a_session_about_the_subject_precedes_one_that_is_not() {
    let library = library();
    for number in 0..40 {
        library.put(&format!("/other-{number}/1.md"), "Sam: we fly tomorrow");
    }
    library.put("/trip/1.md", "Nora: Porto, in spring");
    library.put("/trip/20.md", "Sam: we fly tomorrow");
    for number in 2..20 {
        library.put(&format!("/trip/{number}.md"), "Nora: mhm");
    }
    let found = hits(&library, "when do we fly to Porto", (0, 3));
    assert!(paths(&found).contains(&"/trip/20.md"), "{:?}", paths(&found));
    let session = found.iter().find(|hit| hit.note.path.as_str() == "/trip/20.md");
    let parts = &session.expect("it is found").explanation.as_ref().expect("asked for").parts;
    let shared =
        parts.iter().any(|part| matches!(part.reason, ScoreReason::Directory(it) if it > 0.7));
    assert!(shared, "{parts:?}");
}

/// Each search in between makes a segment, so that a directory has members in several of them.
#[test]
fn neighbors_are_the_same_however_a_directory_was_written() {
    let library = library();
    for number in 0..60 {
        let text = ["kettle tea", "cup", "kettle", "tea cup", "pot"][number % 5];
        // In an order that puts each one between others.
        library.put(&format!("/d{}/{}.md", number % 2, number * 37 % 60), text);
        if number % 9 == 8 {
            hits(&library, "tea", (0, 1));
        }
    }
    let scores = |hits: Vec<SearchHit>| {
        let score = |hit: SearchHit| (hit.note.path.to_string(), hit.score, from_neighbors(&hit));
        hits.into_iter().map(score).collect::<Vec<_>>()
    };
    let followed = scores(hits(&library, "kettle tea", (0, 100)));
    assert!(followed.iter().any(|(_, _, gained)| *gained > 0.0), "{followed:?}");
    library.engine.discard_index().expect("it is removed");
    assert_eq!(followed, scores(hits(&library, "kettle tea", (0, 100))));
}
