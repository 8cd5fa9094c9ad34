//! Searching by meaning.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quipu_core::ErrorKind;
use quipu_core::model::Directory;
use quipu_knowledge::{
    Coverage, EmbedStep, Embedded, Knowledge, RankedBy, ScoreReason, SearchFilter, SearchMode,
    SearchPage, SearchRequest, SearchTarget, Total,
};
use quipu_testkit::encoders::ConceptEncoder;
use quipu_testkit::knowledge::Library;

use crate::past::pinned;
use crate::shelf::{self, rename};

const LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn encoder() -> ConceptEncoder {
    ConceptEncoder::new("concepts")
}

/// Returns a library that searches by meaning; nothing has vectors yet.
pub(crate) fn with_encoder(notes: &[(&str, &str)], encoder: &ConceptEncoder) -> Library {
    let mut library = shelf::with(notes);
    library.engine = library.engine.with_encoder(Some(Arc::new(encoder.clone())));
    library
}

/// Returns a library whose notes have vectors.
pub(crate) fn embedded(notes: &[(&str, &str)]) -> Library {
    let library = with_encoder(notes, &encoder());
    embed(&library.engine);
    library
}

pub(crate) fn embed(engine: &Knowledge) {
    engine.embed(&|_| Ok(())).expect("it embeds");
}

pub(crate) fn request(library: &Library, mode: SearchMode, text: &str) -> SearchRequest {
    SearchRequest { mode, ..SearchRequest::new(vec![library.store], text) }
}

pub(crate) fn search(library: &Library, mode: SearchMode, text: &str) -> SearchPage {
    library.engine.search(&request(library, mode, text)).expect("it searches")
}

pub(crate) fn paths(page: &SearchPage) -> Vec<&str> {
    page.hits.iter().map(|hit| hit.note.path.as_str()).collect()
}

pub(crate) const NOTES: [(&str, &str); 6] = [
    ("/car.md", "# Garage\n\nThe automobile needs new tires."),
    ("/doctor.md", "# Appointment\n\nThe physician moved it to Tuesday."),
    ("/pets.md", "# Pets\n\nA puppy and its hound friend."),
    ("/sea.md", "# Holidays\n\nA week at the shore."),
    ("/pay.md", "# Work\n\nThe salary comes on the first."),
    ("/tea.md", "# Tea\n\nNever boil green tea."),
];

#[test]
fn memories_are_found_by_words_that_they_do_not_have() {
    let library = embedded(&NOTES);
    for (question, path) in [
        ("vehicle", "/car.md"),
        ("which clinic", "/doctor.md"),
        ("our dog", "/pets.md"),
        ("beach", "/sea.md"),
        ("money", "/pay.md"),
    ] {
        let page = search(&library, SearchMode::Best, question);
        assert_eq!(paths(&page).first(), Some(&path), "{question}");
        assert_eq!(page.ranked_by, RankedBy::Hybrid);
        assert_eq!(page.coverage, Some(Coverage { embedded: 6, memories: 6 }));
        assert_eq!(page.notice, None);
        let text = search(&library, SearchMode::Text, question);
        assert_eq!((paths(&text), text.ranked_by), (vec![], RankedBy::Text), "{question}");
        assert_eq!(text.coverage, None);
    }
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

#[test]
fn words_still_count() {
    let library = embedded(&NOTES);
    let page = search(&library, SearchMode::Best, "boil tea");
    assert_eq!(paths(&page).first(), Some(&"/tea.md"));
}

#[test]
fn a_search_by_vectors_is_scored_by_cosines() {
    let library = embedded(&NOTES);
    let page = search(&library, SearchMode::Vector, "vehicle");
    assert_eq!(page.ranked_by, RankedBy::Vector);
    assert_eq!(paths(&page).first(), Some(&"/car.md"));
    for hit in &page.hits {
        let similar = hit.similar.expect("it was found by meaning");
        assert!((f64::from(similar.cosine) - hit.score).abs() < 1e-6);
        assert!(hit.score > 0.0 && hit.score <= 1.001);
    }
}

#[test]
fn the_passage_that_was_found_is_shown() {
    let filler = "nothing to see in this line of words at all\n".repeat(30);
    let secret = "The physician is a doctor and in the clinic of the physician.\n";
    let text = format!("# Long\n\n{filler}\n## Later\n\n{}", secret.repeat(3));
    let mut notes = NOTES.to_vec();
    notes.retain(|(path, _)| *path != "/doctor.md");
    notes.push(("/long.md", &text));
    let library = embedded(&notes);
    let page = search(&library, SearchMode::Vector, "surgeon");
    let hit = &page.hits[0];
    assert_eq!(hit.note.path.as_str(), "/long.md");
    let similar = hit.similar.expect("it was found by meaning");
    let line = text.lines().position(|line| line.contains("physician")).expect("it has it") + 1;
    let line = u32::try_from(line).expect("few lines");
    assert!((similar.first_line..=similar.last_line).contains(&line), "{similar:?}");
    assert!(similar.last_line - similar.first_line < 30, "{similar:?}");
    assert!(hit.snippet.text.contains("## Later The physician"), "{:?}", hit.snippet);
}

#[test]
fn a_long_memory_is_compared_as_a_whole_too_and_shown_by_its_best_passage() {
    let [cars, doctors] = ["car ", "doctor "].map(|word| word.repeat(150));
    let text = format!("# Long\n\n## One\n\n{cars}\n\n## Two\n\n{doctors}{doctors}\n");
    let library = embedded(&[("/long.md", &text), ("/car.md", "car"), ("/tea.md", "tea")]);
    let page = search(&library, SearchMode::Vector, "car car doctor doctor");
    let similar = page.hits[0].similar.expect("it was found by meaning");
    assert_eq!(page.hits[0].note.path.as_str(), "/long.md");
    // Neither half is nearer than 45 degrees.
    assert!(similar.cosine > 0.9, "{similar:?}");
    assert!(similar.first_line > 1, "{similar:?}");
}

#[test]
fn explanations_add_up_to_the_scores() {
    let library = embedded(&NOTES);
    for (mode, question) in [
        (SearchMode::Best, "the puppy friend of the physician"),
        (SearchMode::Best, "vehicle"),
        (SearchMode::Vector, "dog"),
        (SearchMode::Hybrid, "\"green tea\" sea"),
    ] {
        let request = SearchRequest { explain: true, ..request(&library, mode, question) };
        let page = library.engine.search(&request).expect("it searches");
        assert!(!page.hits.is_empty());
        for hit in &page.hits {
            let explanation = hit.explanation.as_ref().expect("it was asked for");
            assert!((explanation.score() - hit.score).abs() < 1e-9, "{explanation:?}");
            let is_similar = |reason: &ScoreReason| matches!(reason, ScoreReason::Similar(_));
            assert!(explanation.parts.iter().any(|part| is_similar(&part.reason)));
        }
    }
}

#[test]
fn filters_hold_for_what_is_found_by_meaning() {
    let library = embedded(&[
        ("/a/car.md", "---\ntags: [red]\n---\nthe automobile"),
        ("/b/car.md", "---\ntags: [blue]\n---\nthe sedan"),
        ("/b/tea.md", "---\ntags: [red]\n---\ngreen tea"),
    ]);
    let page = search(&library, SearchMode::Best, "vehicle tag:red");
    assert_eq!(paths(&page), ["/a/car.md"]);
    let filter = SearchFilter {
        directory: Some(Directory::parse("/b/").expect("a directory")),
        ..SearchFilter::default()
    };
    for mode in [SearchMode::Best, SearchMode::Vector] {
        let request =
            SearchRequest { filter: filter.clone(), ..request(&library, mode, "vehicle") };
        let page = library.engine.search(&request).expect("it searches");
        assert_eq!(paths(&page).first(), Some(&"/b/car.md"), "{mode:?}");
        assert!(paths(&page).iter().all(|path| path.starts_with("/b/")), "{mode:?}");
    }
}

#[test]
fn operators_select_exactly_what_they_say() {
    let library = embedded(&NOTES);
    for mode in [SearchMode::Hybrid, SearchMode::Vector] {
        for query in [
            "\"the automobile\"",
            "automobile AND tires",
            "automobile OR sedan",
            "auto*",
            "automobile NOT puppy",
            "vehicle \"new tires\"",
        ] {
            let page = search(&library, mode, query);
            assert_eq!(paths(&page), ["/car.md"], "{query}");
            assert_eq!(page.total.count, 1, "{query}");
        }
        for query in ["vehicle AND puppy", "\"no such phrase\"", "vehicle*", "NOT automobile"] {
            let page = search(&library, mode, query);
            assert!(!paths(&page).contains(&"/car.md"), "{mode:?} {query}");
        }
    }
}

#[test]
fn a_question_about_something_unknown_finds_nothing() {
    let library = embedded(&NOTES);
    for question in ["joyful", "joyful and delighted"] {
        let page = search(&library, SearchMode::Best, question);
        assert_eq!((paths(&page), page.ranked_by), (vec![], RankedBy::Hybrid), "{question}");
        assert_eq!(page.total, Total { count: 0, is_lower_bound: false });
    }
}

#[test]
fn the_total_counts_what_has_words_and_what_is_found_by_its_meaning() {
    let note = |number: usize, text: &str| {
        (format!("/{number}.md"), text.replace('N', &number.to_string()))
    };
    let notes: Vec<_> = (0..600)
        .map(|number| note(number, "automobile N"))
        .chain((600..603).map(|number| note(number, "vehicle N")))
        .chain((603..1800).map(|number| note(number, "tea N")))
        .collect();
    let notes: Vec<_> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let library = embedded(&notes);
    let page = search(&library, SearchMode::Hybrid, "a vehicle");
    assert_eq!(page.total, Total { count: 603, is_lower_bound: false });
    let page = search(&library, SearchMode::Hybrid, "tea for the vehicle");
    assert_eq!(page.total, Total { count: 1800, is_lower_bound: false });
}

#[test]
fn notes_that_are_expired_or_stale_follow_by_meaning_too() {
    let mut notes = NOTES.to_vec();
    notes.push(("/old.md", "---\nstatus: obsolete\n---\nthe automobile"));
    notes.push(("/draft.md", "---\nstatus: draft\n---\nthe automobile"));
    let library = embedded(&notes);
    for mode in [SearchMode::Vector, SearchMode::Hybrid] {
        let request = SearchRequest { explain: true, ..request(&library, mode, "vehicle") };
        let page = library.engine.search(&request).expect("it searches");
        assert_eq!(paths(&page)[..3], ["/car.md", "/draft.md", "/old.md"], "{mode:?}");
        assert!(page.hits.is_sorted_by(|left, right| left.score >= right.score), "{mode:?}");
        for hit in &page.hits {
            let explanation = hit.explanation.as_ref().expect("it was asked for");
            assert!((explanation.score() - hit.score).abs() < 1e-9, "{explanation:?}");
            let mut parts = explanation.parts.iter();
            let lowered = parts.find(|it| matches!(it.reason, ScoreReason::Freshness(_)));
            assert_eq!(lowered.is_some_and(|it| it.score < 0.0), hit.freshness.is_some());
        }
    }
}

#[test]
fn pages_fit_together() {
    let notes: Vec<_> = (0..60)
        .map(|number| {
            let word = ["car", "automobile", "sedan", "puppy", "tea"][number % 5];
            let state = ["state: new", "status: draft", "status: obsolete"][number % 3];
            let day = number % 28 + 1;
            let text =
                format!("---\n{state}\ndate: 2025-05-{day:02}\n---\nnote {number} about a {word}");
            (format!("/{number}.md"), text)
        })
        .collect();
    let notes: Vec<_> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let library = embedded(&notes);
    let questions = ["a car and a vehicle", "a vehicle since 2025-05-14"];
    for (mode, question) in [SearchMode::Text, SearchMode::Best, SearchMode::Vector]
        .iter()
        .flat_map(|mode| questions.map(|it| (*mode, it)))
    {
        let all = SearchRequest { limit: 500, ..request(&library, mode, question) };
        let all = library.engine.search(&all).expect("it searches");
        assert!(all.hits.len() > 10, "{mode:?}");
        assert!(all.hits.is_sorted_by(|left, right| left.score >= right.score), "{mode:?}");
        let mut paged = Vec::new();
        loop {
            let page = SearchRequest {
                limit: 3,
                offset: paged.len(),
                ..request(&library, mode, question)
            };
            let page = library.engine.search(&page).expect("it searches");
            assert_eq!(page.total, all.total);
            paged.extend(page.hits.iter().map(|hit| hit.note.path.to_string()));
            if !page.has_more {
                break;
            }
        }
        assert_eq!(paged, paths(&all), "{mode:?}");
    }
}

#[test]
fn a_question_is_encoded_once_for_all_pages() {
    let encoder = encoder();
    let library = with_encoder(&NOTES, &encoder);
    embed(&library.engine);
    for offset in 0..5 {
        let page = SearchRequest { offset, ..request(&library, SearchMode::Best, "a vehicle") };
        library.engine.search(&page).expect("it searches");
    }
    assert_eq!(encoder.counts().0, 1);
}

#[test]
fn a_search_uses_the_vectors_that_there_are() {
    let library = embedded(&NOTES);
    library.put("/new.md", "a sedan");
    let page = search(&library, SearchMode::Best, "vehicle");
    assert_eq!(page.coverage, Some(Coverage { embedded: 6, memories: 7 }));
    assert_eq!(paths(&page), ["/car.md"]);
    let one = Embedded { embedded: 1, rejected: 0 };
    assert_eq!(library.engine.embed_step(LIMIT).expect("it steps"), EmbedStep::Embedded(one));
    assert!(matches!(library.engine.embed_step(LIMIT), Ok(EmbedStep::Complete)));
    let page = search(&library, SearchMode::Best, "vehicle");
    assert_eq!(page.coverage, Some(Coverage { embedded: 7, memories: 7 }));
    assert_eq!(page.hits.len(), 2);
}

#[test]
fn vectors_of_earlier_versions_are_not_used() {
    let library = embedded(&NOTES);
    assert_eq!(paths(&search(&library, SearchMode::Best, "vehicle")), ["/car.md"]);
    library.put("/car.md", "about a puppy");
    assert_eq!(paths(&search(&library, SearchMode::Best, "vehicle")), Vec::<&str>::new());
    library.delete("/sea.md");
    assert_eq!(paths(&search(&library, SearchMode::Best, "beach")), Vec::<&str>::new());
    rename(&library, "/pay.md", "/paid.md");
    embed(&library.engine);
    assert_eq!(paths(&search(&library, SearchMode::Best, "money")), ["/paid.md"]);
    let found = search(&library, SearchMode::Vector, "dog");
    assert_eq!(found.coverage, Some(Coverage { embedded: 5, memories: 5 }));
    assert_eq!(library.engine.check().expect("it checks").problems, []);
}

#[test]
fn only_what_changed_is_encoded_again() {
    let encoder = encoder();
    let library = with_encoder(&NOTES, &encoder);
    embed(&library.engine);
    assert_eq!(encoder.counts().1, 6);
    library.put("/car.md", "a new sedan");
    embed(&library.engine);
    embed(&library.engine);
    assert_eq!(encoder.counts().1, 7);
}

#[test]
fn the_newest_memories_get_their_vectors_first() {
    let encoder = encoder();
    let library = with_encoder(&[], &encoder);
    for number in 0..100 {
        library.put(&format!("/{number}.md"), &format!("tea {number}"));
    }
    let texts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&texts);
    encoder.in_the_middle(move |texts| {
        let numbers =
            texts.iter().filter_map(|text| text.rsplit(' ').next()?.parse::<usize>().ok());
        seen.lock().expect("no panic").extend(numbers);
    });
    embed(&library.engine);
    let embedded: Vec<usize> = texts.lock().expect("no panic").clone();
    let mut batches = embedded.chunks(32).map(|batch| batch.iter().copied().min());
    assert!(batches.next() >= Some(Some(68)), "{embedded:?}");
    assert!(batches.is_sorted_by(|left, right| left > right), "{embedded:?}");
}

#[test]
fn several_stores_are_searched_together() {
    let library = embedded(&NOTES);
    let other = quipu_testkit::knowledge::new_store(&library.engine, "other");
    shelf::put(&library, other, "/fleet.md", "a sedan and an automobile");
    embed(&library.engine);
    let stores = vec![library.store, other];
    let page = library.engine.search(&SearchRequest::new(stores, "vehicle")).expect("it searches");
    let mut found = paths(&page);
    found.sort_unstable();
    assert_eq!(found, ["/car.md", "/fleet.md"]);
    assert_eq!(page.coverage, Some(Coverage { embedded: 7, memories: 7 }));
    let only = SearchRequest::new(vec![other], "vehicle");
    assert_eq!(paths(&library.engine.search(&only).expect("it searches")), ["/fleet.md"]);
}

#[test]
fn a_store_with_too_many_vectors_is_searched_by_words() {
    let library = embedded(&NOTES);
    library.engine.limit_vectors(100);
    let page = search(&library, SearchMode::Best, "automobile vehicle");
    assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
    assert!(page.notice.is_some_and(|notice| notice.contains("too many embeddings")));
    assert_eq!(library.engine.vectors_size_bytes(), 0);
    library.engine.limit_vectors(1024 * 1024);
    assert_eq!(paths(&search(&library, SearchMode::Best, "vehicle")), ["/car.md"]);
}

#[test]
fn vectors_in_memory_stay_within_their_limit() {
    let library = embedded(&NOTES);
    search(&library, SearchMode::Best, "vehicle");
    let one = library.engine.vectors_size_bytes();
    assert!(one > 6 * quipu_testkit::encoders::DIMENSIONS, "{one}");
    let mut stores = vec![library.store];
    for number in 0..5 {
        let other = quipu_testkit::knowledge::new_store(&library.engine, &format!("other{number}"));
        for (path, text) in NOTES {
            shelf::put(&library, other, path, text);
        }
        stores.push(other);
    }
    embed(&library.engine);
    let most = 2 * one + one / 2;
    library.engine.limit_vectors(most);
    for store in stores.iter().chain(&stores) {
        let page = library.engine.search(&SearchRequest::new(vec![*store], "vehicle"));
        assert_eq!(paths(&page.expect("it searches")), ["/car.md"]);
        assert!(library.engine.vectors_size_bytes() <= most);
    }
    let all = library.engine.search(&SearchRequest::new(stores, "vehicle")).expect("it searches");
    assert_eq!((all.hits.len(), all.coverage.map(|it| it.embedded)), (6, Some(36)));
    library.engine.forget_idle_vectors();
    assert!(library.engine.vectors_size_bytes() > 0, "they were just used");
}

/// Vectors of earlier versions are removed before they are as many as those of present ones.
#[test]
fn notes_that_are_edited_do_not_fill_the_memory() {
    let note = |number: usize, word: &str| (format!("/{number}.md"), format!("{word} {number}"));
    let notes: Vec<_> = (0..400).map(|number| note(number, "tea")).collect();
    let notes: Vec<_> = notes.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let library = embedded(&notes);
    search(&library, SearchMode::Best, "vehicle");
    let before = library.engine.vectors_size_bytes();
    let words = ["car", "puppy", "salary", "shore", "physician", "home", "glad", "sedan"];
    for word in words {
        for number in 0..400 {
            let (path, text) = note(number, word);
            library.put(&path, &text);
        }
        embed(&library.engine);
        let page = search(&library, SearchMode::Vector, "vehicle");
        let is_meant = ["car", "sedan"].contains(&word);
        let is_found = page.hits.first().is_some_and(|hit| hit.score > 0.9);
        assert_eq!(is_found, is_meant, "{word}");
        // A thousand rows of garbage are kept, and nothing else.
        let garbage = 1_000 * (quipu_testkit::encoders::DIMENSIONS + 16);
        let size = library.engine.vectors_size_bytes();
        assert!(size < before + before / 2 + garbage, "{before} {size}");
    }
}

#[test]
fn another_model_makes_all_vectors_again() {
    let library = embedded(&NOTES);
    let other = ConceptEncoder::new("others");
    let engine = library.engine.clone().with_encoder(Some(Arc::new(other.clone())));
    let request = request(&library, SearchMode::Best, "vehicle");
    let page = engine.search(&request).expect("it searches");
    assert_eq!(page.ranked_by, RankedBy::Text);
    assert!(page.notice.is_some_and(|notice| notice.contains("another model")));
    // A process of its own, or else this one would know that it was first.
    let engine = Knowledge::new(library.engine.engine().clone(), library.directory.path());
    let engine = engine.with_encoder(Some(Arc::new(other.clone())));
    embed(&engine);
    assert_eq!(other.counts().1, 6);
    let page = engine.search(&request).expect("it searches");
    assert_eq!((page.ranked_by, paths(&page)), (RankedBy::Hybrid, vec!["/car.md"]));
    assert_eq!(library.engine.embed_step(LIMIT).expect("it steps"), EmbedStep::Superseded);
    assert_eq!(engine.embed_step(LIMIT).expect("it steps"), EmbedStep::Complete);
    assert_eq!(engine.check().expect("it checks").problems, []);
}

/// A server whose endpoint was down when it was started may begin to embed hours later.
#[test]
fn the_process_that_was_started_last_wins_even_if_it_embeds_first() {
    let library = with_encoder(&NOTES, &encoder());
    library.clock.advance(Duration::from_hours(1));
    let later = Knowledge::new(library.engine.engine().clone(), library.directory.path());
    let later = later.with_encoder(Some(Arc::new(ConceptEncoder::new("others"))));
    embed(&later);
    library.clock.advance(Duration::from_hours(1));
    assert_eq!(library.engine.embed_step(LIMIT).expect("it steps"), EmbedStep::Superseded);
    assert_eq!(later.embedded().expect("it counts"), (6, 6));
    // A command with the model of the first one gives it back, and it goes on.
    let command = Knowledge::new(library.engine.engine().clone(), library.directory.path());
    embed(&command.with_encoder(Some(Arc::new(encoder()))));
    library.put("/new.md", "a sedan");
    let one = Embedded { embedded: 1, rejected: 0 };
    assert_eq!(library.engine.embed_step(LIMIT).expect("it steps"), EmbedStep::Embedded(one));
}

#[test]
fn without_a_model_there_is_no_search_by_vectors() {
    let library = shelf::with(&NOTES);
    let error = library.engine.search(&request(&library, SearchMode::Vector, "vehicle"));
    let error = error.expect_err("there is no model");
    assert_eq!(*error.kind(), ErrorKind::InvalidInput);
    assert!(error.hint().is_some_and(|hint| hint.contains("quipu model install")), "{error:?}");
    let page = search(&library, SearchMode::Hybrid, "automobile");
    assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
    assert!(page.notice.is_some());
    let page = search(&library, SearchMode::Best, "automobile");
    assert_eq!((page.ranked_by, page.notice, page.coverage), (RankedBy::Text, None, None));
    assert!(library.engine.embed(&|_| Ok(())).is_err());
    assert_eq!(library.engine.embed_step(LIMIT).expect("it steps"), EmbedStep::Complete);
}

#[test]
fn titles_observations_and_relations_are_searched_by_words() {
    let library =
        embedded(&[("/car.md", "# Car\n\n- [fact] the automobile is red\n- uses [[Oil]]")]);
    for targets in [vec![SearchTarget::Observations], vec![SearchTarget::Relations]] {
        let request = SearchRequest { targets, ..request(&library, SearchMode::Best, "vehicle") };
        let page = library.engine.search(&request).expect("it searches");
        assert_eq!((page.hits.len(), page.ranked_by), (0, RankedBy::Text));
    }
    for mode in [SearchMode::Title, SearchMode::Permalink] {
        let page = search(&library, mode, "car");
        assert_eq!((page.hits.len(), page.ranked_by, page.notice), (1, RankedBy::Text, None));
    }
}

#[test]
fn a_search_without_words_needs_no_vectors() {
    let encoder = encoder();
    let library = with_encoder(&NOTES, &encoder);
    embed(&library.engine);
    let page = search(&library, SearchMode::Best, "tag:none");
    assert_eq!(page.ranked_by, RankedBy::Text);
    assert_eq!(search(&library, SearchMode::Best, "").hits.len(), 6);
    assert_eq!(encoder.counts().0, 0);
}

#[test]
fn the_past_is_searched_by_words() {
    let library = embedded(&NOTES);
    let past = pinned(&library.engine, library.store);
    for mode in [SearchMode::Best, SearchMode::Vector] {
        let page = past.search(&request(&library, mode, "automobile")).expect("it searches");
        assert_eq!((paths(&page), page.ranked_by), (vec!["/car.md"], RankedBy::Text));
        assert!(page.notice.is_some_and(|notice| notice.contains("past")));
    }
}
