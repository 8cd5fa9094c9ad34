//! Searches with more matches than are ranked.

use std::thread;

use quipu_core::engine::Precondition;
use quipu_core::model::StoreId;
use quipu_knowledge::SearchRequest;

use crate::support::{Fixture, actor, content, fixture, new_store, path};

/// More than are ranked, in each of eight threads.
const EACH: usize = 80;

/// Writes notes that all have a word in their title.
fn crowd(fixture: &Fixture) {
    crowd_at(fixture, "/crowd");
}

fn crowd_at(fixture: &Fixture, directory: &str) {
    thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for number in 0..EACH {
                    let title = format!("# Meeting on the plan of week {number} in part {thread}");
                    fixture.put(&format!("{directory}/{thread}-{number}.md"), &title);
                }
            });
        }
    });
}

fn found(fixture: &Fixture, stores: &[StoreId], text: &str, limit: usize) -> Vec<(String, f64)> {
    let request = SearchRequest { limit, ..SearchRequest::new(stores.to_vec(), text) };
    let page = fixture.engine.search(&request).expect("it searches");
    page.hits.into_iter().map(|hit| (hit.note.path.as_str().to_owned(), hit.score)).collect()
}

#[test]
fn an_old_note_with_the_best_title_comes_first() {
    let fixture = fixture();
    // The first search takes memories into the index in the order of their paths.
    fixture.put("/a.md", "# Meeting");
    crowd(&fixture);
    let (first, best) = found(&fixture, &[fixture.store], "meeting", 5).remove(0);
    assert_eq!(first, "/a.md");
    let (second, next) = found(&fixture, &[fixture.store], "meeting", 5).remove(1);
    assert!(second.starts_with("/crowd/") && next < best, "{second} {next} {best}");
}

#[test]
fn a_pattern_stands_for_all_paths_that_fit_it_wherever_it_stands() {
    let fixture = fixture();
    crowd(&fixture);
    crowd_at(&fixture, "/more");
    let count = |text: &str| {
        let request = SearchRequest::new(vec![fixture.store], text);
        let total = fixture.engine.search(&request).expect("it searches").total;
        assert!(!total.is_lower_bound, "{text}");
        total.count
    };
    assert_eq!(count("nothing OR path:*0*"), count("path:*0*"));
    assert_eq!(count("nothing OR path:*-*"), 16 * EACH);
    assert_eq!(count("path:/more NOT (path:*-* path:/more)"), 0);
    assert_eq!(count("path:/more AND (path:*-* OR nothing)"), 8 * EACH);
}

#[test]
fn the_scores_of_a_crowded_store_and_a_small_one_can_be_compared() {
    let fixture = fixture();
    crowd(&fixture);
    let small = new_store(&fixture.engine, "small");
    let exact = (&path("/exact.md"), &content("# Meeting"));
    fixture.engine.put(&actor(), small, exact, Precondition::None).expect("written");
    let hits = found(&fixture, &[fixture.store, small], "meeting", 3);
    assert_eq!(hits.first().map(|(path, _)| path.as_str()), Some("/exact.md"), "{hits:?}");
}

#[test]
fn pages_do_not_depend_on_their_size_and_end() {
    let fixture = fixture();
    crowd(&fixture);
    let whole = found(&fixture, &[fixture.store], "meeting plan", 100);
    assert_eq!(whole.get(..10), Some(&*found(&fixture, &[fixture.store], "meeting plan", 10)));
    let mut paged = Vec::new();
    for offset in (0..).step_by(50) {
        let request = SearchRequest {
            offset,
            limit: 50,
            ..SearchRequest::new(vec![fixture.store], "meeting plan")
        };
        let page = fixture.engine.search(&request).expect("it searches");
        assert_eq!(page.total.count, 8 * EACH);
        paged.extend(page.hits.into_iter().map(|hit| hit.note.path.as_str().to_owned()));
        if !page.has_more {
            break;
        }
    }
    assert_eq!(paged.len(), 500);
    let whole: Vec<_> = whole.into_iter().map(|(path, _)| path).collect();
    assert_eq!(paged.get(..100), Some(&*whole));
    paged.sort_unstable();
    paged.dedup();
    assert_eq!(paged.len(), 500, "no hit is on two pages");
}
