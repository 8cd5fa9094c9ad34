//! Encoders that fail, and what happens while vectors are made.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::model::Content;
use quipu_knowledge::{
    Coverage, EmbedStep, Embedded, INDEX_FILE, Knowledge, RankedBy, SearchMode, SearchRequest,
};
use quipu_testkit::encoders::{Behavior, ConceptEncoder};
use quipu_testkit::knowledge::Library;

use crate::shelf::{actor, at};
use crate::vectors::{NOTES, embed, embedded, encoder, paths, search, with_encoder};

const LIMIT: Duration = Duration::from_mins(1);

/// What an encoder can do wrong without hanging.
const FAILURES: [Behavior; 4] =
    [Behavior::Fails, Behavior::WrongLength, Behavior::TooFew, Behavior::NotANumber];

fn step(library: &Library) -> EmbedStep {
    library.engine.embed_step(LIMIT).expect("it steps")
}

fn coverage(library: &Library) -> Option<Coverage> {
    search(library, SearchMode::Best, "vehicle").coverage
}

fn has_failed(step: &EmbedStep) -> bool {
    matches!(step, EmbedStep::Failed(reason) if !reason.is_empty())
}

#[test]
fn an_encoder_that_fails_on_memories_leaves_the_search_by_words() {
    for behavior in FAILURES {
        let encoder = encoder();
        let library = with_encoder(&NOTES, &encoder);
        encoder.behave(behavior);
        assert!(has_failed(&step(&library)), "{behavior:?}");
        assert!(library.engine.embed(&|_| Ok(())).is_err(), "{behavior:?}");
        encoder.behave(Behavior::Works);
        let page = search(&library, SearchMode::Best, "automobile");
        assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
        assert!(page.notice.is_some());
        embed(&library.engine);
        assert_eq!(paths(&search(&library, SearchMode::Best, "vehicle")), ["/car.md"]);
    }
}

#[test]
fn an_encoder_that_fails_on_questions_leaves_the_search_by_words() {
    for behavior in FAILURES.into_iter().chain([Behavior::Panics]) {
        let encoder = encoder();
        let library = with_encoder(&NOTES, &encoder);
        embed(&library.engine);
        encoder.behave(behavior);
        for mode in [SearchMode::Best, SearchMode::Hybrid, SearchMode::Vector] {
            let page = search(&library, mode, "automobile");
            assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
            assert!(
                page.notice.is_some_and(|notice| notice.contains("semantic search")),
                "{behavior:?}"
            );
        }
        // After a failure it is left alone for a while.
        assert_eq!(encoder.counts().0, 1, "{behavior:?}");
    }
}

#[test]
fn a_question_that_is_rejected_costs_no_other_question_its_vector() {
    let encoder = encoder();
    let library = with_encoder(&NOTES, &encoder);
    embed(&library.engine);
    encoder.behave(Behavior::RejectsPoison);
    for _ in 0..3 {
        let page = search(&library, SearchMode::Best, "poison for an automobile");
        assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
        assert!(page.notice.is_some_and(|notice| notice.contains("rejects this text")));
        assert_eq!(search(&library, SearchMode::Best, "vehicle").ranked_by, RankedBy::Hybrid);
    }
    // Nothing is asked again, neither what was answered nor what was rejected.
    assert_eq!(encoder.counts().0, 2);
}

#[test]
fn an_encoder_that_hangs_hangs_no_search() {
    let encoder = encoder();
    let library = Arc::new(with_encoder(&NOTES, &encoder));
    embed(&library.engine);
    encoder.behave(Behavior::Hangs);
    let begun = Instant::now();
    let searches: Vec<_> = (0..8)
        .map(|number| {
            let library = Arc::clone(&library);
            thread::spawn(move || {
                let page = search(&library, SearchMode::Best, &format!("automobile {number}"));
                assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
                assert!(page.notice.is_some());
            })
        })
        .collect();
    for search in searches {
        search.join().expect("it searches");
    }
    for number in 10..60 {
        search(&library, SearchMode::Best, &format!("automobile {number}"));
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(encoder.counts().0, 1, "calls pile up");
    encoder.behave(Behavior::Works);
    let deadline = Instant::now() + LIMIT;
    while search(&library, SearchMode::Best, "automobile").ranked_by == RankedBy::Text {
        assert!(Instant::now() < deadline, "it does not recover");
    }
}

#[test]
fn an_encoder_that_hangs_on_memories_holds_up_neither_searches_nor_indexing() {
    let encoder = encoder();
    let library = Arc::new(with_encoder(&NOTES, &encoder));
    embed(&library.engine);
    library.put("/new.md", "a sedan");
    encoder.behave(Behavior::Hangs);
    let other = Arc::clone(&library);
    let embedding = thread::spawn(move || other.engine.embed_step(LIMIT).expect("it steps"));
    while encoder.counts().1 < 7 {
        thread::yield_now();
    }
    for number in 0..5 {
        library.put(&format!("/{number}.md"), &format!("tea{number}"));
        let page = search(&library, SearchMode::Text, &format!("tea{number}"));
        assert_eq!(page.hits.len(), 1);
    }
    assert_eq!(library.engine.embed_step(LIMIT).expect("it steps"), EmbedStep::Busy);
    encoder.behave(Behavior::Works);
    assert!(matches!(embedding.join().expect("it ends"), EmbedStep::Embedded(_)));
}

#[test]
fn one_memory_that_cannot_be_encoded_does_not_hold_up_the_others() {
    let encoder = encoder();
    let library = with_encoder(&[], &encoder);
    for number in 0..100 {
        library.put(&format!("/{number:03}.md"), &format!("tea {number}"));
        if number % 40 == 20 {
            library.put(&format!("/{number:03}-p.md"), "poison");
        }
    }
    encoder.behave(Behavior::FailsOnPoison);
    let mut failures = 0;
    for _ in 0..400 {
        failures += usize::from(has_failed(&step(&library)));
        if coverage(&library) == Some(Coverage { embedded: 100, memories: 102 }) {
            break;
        }
    }
    assert_eq!(coverage(&library), Some(Coverage { embedded: 100, memories: 102 }));
    assert!(failures < 10, "{failures}");
    encoder.behave(Behavior::Works);
    embed(&library.engine);
    assert_eq!(coverage(&library), Some(Coverage { embedded: 102, memories: 102 }));
}

#[test]
fn memories_that_the_encoder_rejects_hold_up_no_others_and_are_not_tried_again() {
    let encoder = encoder();
    let library = with_encoder(&[], &encoder);
    for number in 0..40 {
        library.put(&format!("/{number}.md"), &format!("tea {number}"));
        library.put(&format!("/{number}-p.md"), "poison");
    }
    encoder.behave(Behavior::RejectsPoison);
    let done = EmbedStep::Embedded(Embedded { embedded: 40, rejected: 40 });
    assert_eq!(step(&library), done);
    assert_eq!(step(&library), EmbedStep::Complete);
    assert_eq!(coverage(&library), Some(Coverage { embedded: 40, memories: 80 }));
    assert_eq!(library.engine.embedded().expect("it counts"), (40, 80));
    assert_eq!(library.engine.check().expect("it checks").problems, []);

    // Another process knows it too, and one that has changed is tried again.
    let other = Knowledge::new(library.engine.engine().clone(), library.directory.path());
    let other = other.with_encoder(Some(Arc::new(encoder.clone())));
    assert_eq!(other.embed_step(LIMIT).expect("it steps"), EmbedStep::Complete);
    library.put("/7-p.md", "tea at last");
    let one = Embedded { embedded: 1, rejected: 0 };
    assert_eq!(other.embed_step(LIMIT).expect("it steps"), EmbedStep::Embedded(one));
    assert_eq!(coverage(&library), Some(Coverage { embedded: 41, memories: 80 }));

    encoder.behave(Behavior::Works);
    let report = library.engine.embed(&|_| Ok(())).expect("it embeds");
    assert_eq!((report.embedded, report.rejected, report.memories), (39, 0, 80));
    assert_eq!(coverage(&library), Some(Coverage { embedded: 80, memories: 80 }));
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

#[test]
fn a_passage_that_is_rejected_leaves_the_rest_of_its_memory() {
    let encoder = encoder();
    let line = "nothing to see in this line of words at all\n".repeat(40);
    let text = format!("poison\n{line}\n## Later\n\nThe automobile needs new tires.\n");
    let library = with_encoder(&[("/long.md", &text)], &encoder);
    encoder.behave(Behavior::RejectsPoison);
    embed(&library.engine);
    assert_eq!(coverage(&library), Some(Coverage { embedded: 1, memories: 1 }));
    assert_eq!(paths(&search(&library, SearchMode::Vector, "vehicle")), ["/long.md"]);
}

#[test]
fn what_was_embedded_before_a_failure_is_reported() {
    let encoder = encoder();
    let library = with_encoder(&[], &encoder);
    for number in 0..100 {
        library.put(&format!("/{number:03}.md"), &format!("tea {number}"));
    }
    let (calls, broken) = (AtomicUsize::new(0), encoder.clone());
    encoder.in_the_middle(move |_| {
        if calls.fetch_add(1, Ordering::Relaxed) == 1 {
            broken.behave(Behavior::Fails);
        }
    });
    assert_eq!(step(&library), EmbedStep::Embedded(Embedded { embedded: 64, rejected: 0 }));
    assert!(has_failed(&step(&library)));
}

#[test]
fn a_wrong_length_in_the_third_batch_keeps_the_first_two() {
    let encoder = encoder();
    let library = with_encoder(&[], &encoder);
    for number in 0..100 {
        library.put(&format!("/{number:03}.md"), &format!("tea {number}"));
    }
    let (calls, liar) = (AtomicUsize::new(0), encoder.clone());
    encoder.in_the_middle(move |_| {
        if calls.fetch_add(1, Ordering::Relaxed) == 1 {
            liar.behave(Behavior::WrongLength);
        }
    });
    assert!(matches!(step(&library), EmbedStep::Embedded(_)));
    assert!(has_failed(&step(&library)));
    assert_eq!(library.engine.embedded().expect("it counts"), (64, 100));
    encoder.behave(Behavior::Works);
    embed(&library.engine);
    assert_eq!(library.engine.embedded().expect("it counts"), (100, 100));
}

#[test]
fn a_memory_that_changes_while_it_is_encoded_is_encoded_again() {
    let encoder = encoder();
    let library = with_encoder(&NOTES, &encoder);
    let (engine, store) = (library.engine.engine().clone(), library.store);
    let is_done = AtomicUsize::new(0);
    encoder.in_the_middle(move |_| {
        if is_done.fetch_add(1, Ordering::Relaxed) == 0 {
            let content = Content::new("a puppy").expect("a text");
            let (path, none) = (at("/car.md"), quipu_core::engine::Precondition::None);
            engine.put(&actor(), store, (&path, &content), none).expect("it is written");
            engine.delete_at(&actor(), store, &at("/sea.md")).expect("it is deleted");
        }
    });
    step(&library);
    assert_eq!(paths(&search(&library, SearchMode::Best, "vehicle")), Vec::<&str>::new());
    assert_eq!(paths(&search(&library, SearchMode::Best, "beach")), Vec::<&str>::new());
    embed(&library.engine);
    assert_eq!(coverage(&library), Some(Coverage { embedded: 5, memories: 5 }));
    assert_eq!(paths(&search(&library, SearchMode::Vector, "dog")).len(), 2);
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

#[test]
fn an_index_that_is_removed_while_vectors_are_made_loses_nothing() {
    let encoder = encoder();
    let library = with_encoder(&NOTES, &encoder);
    let directory = library.directory.path().to_owned();
    let is_done = AtomicUsize::new(0);
    encoder.in_the_middle(move |_| {
        if is_done.fetch_add(1, Ordering::Relaxed) == 0 {
            for suffix in ["", "-wal", "-shm"] {
                let file = directory.join(format!("{INDEX_FILE}{suffix}"));
                fs::remove_file(file).unwrap_or_default();
            }
        }
    });
    step(&library);
    embed(&library.engine);
    assert_eq!(paths(&search(&library, SearchMode::Best, "vehicle")), ["/car.md"]);
    assert_eq!(coverage(&library), Some(Coverage { embedded: 6, memories: 6 }));
    library.engine.discard_index().expect("it is removed");
    let page = search(&library, SearchMode::Best, "automobile");
    assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
    embed(&library.engine);
    assert_eq!(coverage(&library), Some(Coverage { embedded: 6, memories: 6 }));
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

#[test]
fn a_model_that_changes_halfway_leaves_no_mixture() {
    let encoder = encoder();
    let library = with_encoder(&[], &encoder);
    for number in 0..100 {
        library.put(&format!("/{number:03}.md"), &format!("tea {number}"));
    }
    let other = ConceptEncoder::new("others");
    let engine = Knowledge::new(library.engine.engine().clone(), library.directory.path());
    let engine = engine.with_encoder(Some(Arc::new(other)));
    let (taking_over, is_done) = (engine.clone(), AtomicUsize::new(0));
    encoder.in_the_middle(move |_| {
        // Another process may not embed now, but may do so between two batches.
        if is_done.fetch_add(1, Ordering::Relaxed) == 1 {
            assert_eq!(taking_over.embed_step(LIMIT).expect("it steps"), EmbedStep::Busy);
        }
    });
    library.engine.embed_step(Duration::ZERO).expect("it steps");
    let (made, _) = library.engine.embedded().expect("it counts");
    assert!(0 < made && made < 100, "{made}");
    embed(&engine);
    assert_eq!(engine.embedded().expect("it counts"), (100, 100));
    assert_eq!(library.engine.embedded().expect("it counts"), (0, 100));
    assert_eq!(step(&library), EmbedStep::Superseded);
    assert_eq!(engine.check().expect("it checks").problems, []);
}

#[test]
fn threads_that_embed_at_once_do_the_work_once() {
    let encoder = encoder();
    let library = with_encoder(&[], &encoder);
    for number in 0..200 {
        library.put(&format!("/{number:03}.md"), &format!("tea {number}"));
    }
    let engines: Vec<_> = (0..4)
        .map(|_| {
            let engine = Knowledge::new(library.engine.engine().clone(), library.directory.path());
            engine.with_encoder(Some(Arc::new(encoder.clone())))
        })
        .collect();
    thread::scope(|scope| {
        for engine in &engines {
            scope.spawn(|| embed(engine));
        }
    });
    assert_eq!(encoder.counts().1, 200);
    let request = SearchRequest::new(vec![library.store], "tea");
    let page = engines[0].search(&request).expect("it searches");
    assert_eq!(page.coverage, Some(Coverage { embedded: 200, memories: 200 }));
    assert_eq!(engines[0].check().expect("it checks").problems, []);
}

#[test]
fn a_removed_store_takes_its_vectors_along() {
    let library = embedded(&NOTES);
    let other = quipu_testkit::knowledge::new_store(&library.engine, "other");
    crate::shelf::put(&library, other, "/sedan.md", "a sedan");
    embed(&library.engine);
    library.engine.delete_store(library.store).expect("it is deleted");
    library.engine.erase_store(library.store).expect("it is erased");
    assert_eq!(library.engine.embedded().expect("it counts"), (1, 1));
    let request = SearchRequest::new(vec![other], "vehicle");
    assert_eq!(library.engine.search(&request).expect("it searches").hits.len(), 1);
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}
