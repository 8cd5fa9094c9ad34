use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::term::{self, Mark, Space, field_prefix, language_prefix};
use super::memory;

/// Every kind of mark with the same text.
fn marks(text: &str) -> Vec<Mark<'_>> {
    vec![
        Mark::Tag(text),
        Mark::Type(text),
        Mark::Place(text),
        Mark::Category(text),
        Mark::Relation(text),
        Mark::Language(text),
        Mark::Name(text),
        Mark::Title(text),
        Mark::Permalink(text),
        Mark::LinkTo(text),
    ]
}

proptest! {
    /// If two kinds shared a key, a title would be found as a tag.
    #[test]
    fn no_two_kinds_of_terms_are_equal(text in "\\PC{0,12}", id: u32) {
        for space in Space::ALL {
            let mut terms: Vec<_> = marks(&text).into_iter().map(|mark| mark.term(space)).collect();
            terms.push(term::word(space, &text));
            let distinct: BTreeSet<_> = terms.iter().collect();
            prop_assert_eq!(distinct.len(), terms.len());
            prop_assert!(!terms.contains(&term::memory(memory(id))));
            for term in &terms {
                prop_assert_eq!(Space::of_term(term), Some(space));
            }
        }
    }

    /// The terms of one kind are adjacent, so that a prefix finds them and nothing else.
    #[test]
    fn a_prefix_of_a_word_finds_words_only(text in "[a-z]{0,4}", rest in "[a-z]{0,4}", id: u32) {
        let prefix = term::word(Space::Memories, &text);
        let longer = term::word(Space::Memories, &[text.as_str(), &rest].concat());
        prop_assert!(longer.starts_with(&prefix));
        prop_assert!(!term::word(Space::Observations, &text).starts_with(&prefix));
        prop_assert!(!term::memory(memory(id)).starts_with(&prefix));
        for mark in marks(&text) {
            prop_assert!(!mark.term(Space::Memories).starts_with(&prefix));
        }
        prop_assert!(!Mark::Field(&text, &rest).term(Space::Memories).starts_with(&prefix));
    }

    #[test]
    fn a_field_is_no_beginning_of_another(key in "[a-z.]{0,5}", more in "[a-z.]{1,5}", value in "[a-z]{0,5}") {
        let longer = [key.as_str(), &more].concat();
        let term = Mark::Field(&longer, &value).term(Space::Memories);
        prop_assert!(!term.starts_with(&field_prefix(&key)));
        let own = Mark::Field(&key, &value).term(Space::Memories);
        prop_assert_eq!(own.strip_prefix(field_prefix(&key).as_slice()), Some(value.as_bytes()));
    }

    #[test]
    fn the_terms_of_memories_are_ordered_like_their_ids(left: u32, right: u32) {
        let (first, second) = (term::memory(memory(left)), term::memory(memory(right)));
        prop_assert_eq!(left.cmp(&right), first.cmp(&second));
    }
}

/// Tags, types, categories and relations are compared without regard to case; names are made alike
/// by whoever writes them, and places and titles are exact.
#[test]
fn case_matters_where_it_is_meant_to() {
    let is_equal = |make: fn(&'static str) -> Mark<'static>| {
        make("ÄSCII/Tea").term(Space::Memories) == make("äscii/tea").term(Space::Memories)
    };
    assert!(is_equal(Mark::Tag));
    assert!(is_equal(Mark::Type));
    assert!(is_equal(Mark::Category));
    assert!(is_equal(Mark::Relation));
    assert!(!is_equal(Mark::Place));
    assert!(!is_equal(Mark::Title));
    assert!(!is_equal(Mark::Permalink));
    assert!(!is_equal(Mark::Name));
    assert!(!is_equal(Mark::LinkTo));
}

#[test]
fn a_term_without_a_space_is_malformed() {
    assert_eq!(Space::of_term(b""), None);
    assert_eq!(Space::of_term(b"x"), None);
    assert_eq!(Space::of_term(&[0, b'm']), None);
    assert_eq!(Space::of_term(b"m"), Some(Space::Memories));
}

#[test]
fn the_languages_of_a_segment_are_adjacent() {
    let of = |tag| Mark::Language(tag).term(Space::Memories);
    assert!(of("en").starts_with(&language_prefix()));
    assert!(of("pt").starts_with(&language_prefix()));
    assert_eq!(language_prefix(), of(""));
}

#[test]
fn each_space_picks_its_own() {
    assert_eq!(Space::ALL.map(|space| space.pick([1, 2, 3])), [1, 2, 3]);
}
