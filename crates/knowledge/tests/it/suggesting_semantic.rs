//! Suggestions by meaning.

use quipu_core::model::MemoryPath;
use quipu_knowledge::{SuggestRequest, Suggestions};
use quipu_testkit::encoders::Behavior;
use quipu_testkit::knowledge::Library;

use crate::vectors::{NOTES, embed, embedded, encoder, with_encoder};

fn suggest(library: &Library, text: &str) -> Suggestions {
    library.engine.suggest(&SuggestRequest::new(vec![library.store], text)).expect("it suggests")
}

fn paths(suggestions: &Suggestions) -> Vec<&str> {
    suggestions.items.iter().map(|item| item.note.path.as_str()).collect()
}

#[test]
fn a_memory_that_says_the_same_in_other_words_is_suggested() {
    let library = embedded(&NOTES);
    for (text, path) in [("vehicle", "/car.md"), ("clinic", "/doctor.md"), ("the beach", "/sea.md")]
    {
        let found = suggest(&library, text);
        assert_eq!(paths(&found), [path], "{text}");
        let item = &found.items[0];
        let similar = item.similar.expect("it was found by meaning");
        assert!(similar.cosine > 0.5, "{similar:?}");
        assert_eq!(item.words, Vec::<String>::new());
        assert_eq!(paths(&suggest(&crate::shelf::with(&NOTES), text)), Vec::<&str>::new());
    }
}

#[test]
fn words_and_meaning_are_both_reasons() {
    let library = embedded(&NOTES);
    let found = suggest(&library, "Does the physician move the appointment at the clinic?");
    let item = &found.items[0];
    assert_eq!(item.note.path.as_str(), "/doctor.md");
    assert!(item.similar.is_some() && item.words.contains(&"physician".to_owned()), "{item:?}");
}

#[test]
fn what_has_nothing_to_do_with_any_memory_brings_up_none() {
    let library = embedded(&NOTES);
    for text in ["hello, how are you?", "thanks!", "the plot of a novel by Melville", "", "?"] {
        assert_eq!(paths(&suggest(&library, text)), Vec::<&str>::new(), "{text}");
    }
}

#[test]
fn nobody_is_asked_for_the_vector_of_a_greeting() {
    let encoder = encoder();
    let library = with_encoder(&NOTES, &encoder);
    embed(&library.engine);
    for text in ["hello, how are you?", "thanks!", "please write the file", "", "?"] {
        assert_eq!(paths(&suggest(&library, text)), Vec::<&str>::new(), "{text}");
    }
    assert_eq!(encoder.counts().0, 0);
    suggest(&library, "hello, where is my vehicle?");
    assert_eq!(encoder.counts().0, 1);
}

#[test]
fn equal_requests_have_equal_answers_with_a_model_too() {
    let library = embedded(&NOTES);
    for text in ["vehicle", "Does the physician move the appointment?", "green tea at the beach"] {
        let first = format!("{:?}", suggest(&library, text).items);
        assert_eq!(first, format!("{:?}", suggest(&library, text).items), "{text}");
        // Without the answers that this process remembers, too.
        let again = library.engine.clone().with_encoder(Some(std::sync::Arc::new(encoder())));
        let request = SuggestRequest::new(vec![library.store], text);
        let again = again.suggest(&request).expect("it suggests");
        assert_eq!(first, format!("{:?}", again.items), "{text}");
    }
}

#[test]
fn without_vectors_words_decide_as_before() {
    let with_words = |library: &Library| {
        let found = suggest(library, "never boil green tea in the vehicle");
        let items = found.items.iter().map(|item| (item.note.path.to_string(), item.score));
        items.collect::<Vec<_>>()
    };
    let by_words = with_words(&crate::shelf::with(&NOTES));
    assert_eq!(by_words.len(), 1);
    let failing = encoder();
    let library = with_encoder(&NOTES, &failing);
    assert_eq!(with_words(&library), by_words, "nothing has vectors yet");
    embed(&library.engine);
    assert_eq!(with_words(&library).len(), 2);
    failing.behave(Behavior::Fails);
    let others = |library: &Library| suggest(library, "green tea on the ocean").items.len();
    assert_eq!(others(&library), 1, "the encoder fails");
}

#[test]
fn an_encoder_that_hangs_hangs_no_suggestion() {
    let hanging = encoder();
    let library = with_encoder(&NOTES, &hanging);
    embed(&library.engine);
    hanging.behave(Behavior::Hangs);
    assert_eq!(paths(&suggest(&library, "never boil green tea")), ["/tea.md"]);
    assert_eq!(paths(&suggest(&library, "vehicle")), Vec::<&str>::new());
    hanging.behave(Behavior::Works);
}

#[test]
fn what_is_over_is_replaced_by_its_successor_also_by_meaning() {
    let library = embedded(&[
        ("/old.md", "---\nsuperseded_by: \"[[new]]\"\n---\nThe automobile is a sedan."),
        ("/new.md", "The automobile is a car."),
        ("/stale.md", "---\nstatus: obsolete\n---\nThe hound is a puppy."),
        ("/tea.md", "Never boil green tea."),
        ("/sea.md", "A week at the shore."),
    ]);
    let found = suggest(&library, "vehicle");
    assert_eq!(paths(&found), ["/new.md"]);
    assert_eq!(
        found.items[0].replaces.iter().map(MemoryPath::as_str).collect::<Vec<_>>(),
        ["/old.md"]
    );
    let over = suggest(&library, "canine");
    assert_eq!(paths(&over), Vec::<&str>::new());
    assert_eq!(over.left_out[0].path.as_str(), "/stale.md");
}

#[test]
fn excluded_memories_and_the_budget_hold_for_meaning_too() {
    let library = embedded(&NOTES);
    let car = suggest(&library, "vehicle").items[0].note.memory;
    let request = SuggestRequest::new(vec![library.store], "vehicle");
    let without = SuggestRequest { exclude: vec![car], ..request.clone() };
    assert!(library.engine.suggest(&without).expect("it suggests").items.is_empty());
    let small = SuggestRequest { budget_tokens: 60, ..request };
    assert!(library.engine.suggest(&small).expect("it suggests").items.is_empty());
}
