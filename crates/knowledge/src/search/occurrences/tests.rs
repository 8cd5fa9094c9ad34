use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use quipu_core::model::{Id as _, MemoryId, Timestamp};

use super::*;
use crate::index::{BatchBuilder, Document, Documents, Field, MemoryRow};

/// The words of a document by field and position; variants are at position 0.
type Words = BTreeSet<(Field, u32, String)>;

const FIELDS: [Field; 4] = [Field::Title, Field::Tags, Field::Headings, Field::Body];

fn words() -> impl Strategy<Value = Words> {
    // Few words and few positions, so that phrases occur.
    let placed = (prop::sample::select(&FIELDS[..]), 0_u32..7, "[ab]{1,2}");
    let form = (prop::sample::select(&[Field::TitleForms, Field::Forms][..]), Just(0), "[ab]{1,2}");
    prop::collection::btree_set(prop_oneof![8 => placed, 1 => form], 0..24)
}

fn documents(number: u128, words: &Words) -> Documents {
    let found = words.iter().map(|(field, at, text)| (word(Space::Memories, text), *field, *at));
    Documents {
        row: MemoryRow {
            id: MemoryId::from_bits(number),
            updated_at: Timestamp::from_micros(1),
            path: format!("/{number}.md"),
        },
        memory: Document { length: 1, words: found.collect(), marks: Vec::new() },
        observations: Vec::new(),
        relations: Vec::new(),
    }
}

fn view(all: &[Words]) -> SegmentView<'static> {
    let mut batch = BatchBuilder::default();
    for (number, words) in (1..).zip(all) {
        batch.add(documents(number, words), Vec::new());
    }
    let overlay = batch.finish().overlay(Timestamp::MIN);
    SegmentView::in_memory(Arc::clone(&overlay.segment))
}

fn phrase(terms: &[&str], last: TermMatch) -> Phrase {
    Phrase { terms: terms.iter().map(|&term| term.to_owned()).collect(), last }
}

fn looked_up(
    view: &SegmentView<'_>,
    phrase: &Phrase,
    fields: Fields,
    live: &Bits,
) -> Vec<(Doc, Weight)> {
    let mut phrases = Phrases::new(Space::Memories, Scoring::DEFAULT);
    let id = phrases.add(phrase.clone(), fields);
    phrases.look_up(id, view, live).unwrap()
}

/// Returns the weighted frequency of a phrase in a document, word by word.
fn naive(words: &Words, phrase: &Phrase, fields: Fields) -> Weight {
    let is_last = |place: usize| place + 1 == phrase.terms.len();
    let fits = |place: usize, text: &str| {
        let wanted = phrase.terms[place].as_str();
        let is_prefix = phrase.last == TermMatch::Prefix && is_last(place);
        if is_prefix { text.starts_with(wanted) } else { text == wanted }
    };
    let mut at: BTreeMap<(Field, u32), Vec<&str>> = BTreeMap::new();
    for (field, position, text) in words {
        at.entry((*field, *position)).or_default().push(text);
    }
    let mut sum = 0.0;
    for (field, position, text) in words.iter().filter(|(field, ..)| fields.contains(*field)) {
        // A single word counts wherever it stands; several must stand side by side.
        if phrase.terms.len() > 1 && !FIELDS.contains(field) {
            continue;
        }
        let follows = |place: u32| {
            let there = at.get(&(*field, position + place)).map_or(&[][..], Vec::as_slice);
            there.iter().any(|text| fits(usize::try_from(place).unwrap(), text))
        };
        let rest = 1..u32::try_from(phrase.terms.len()).unwrap();
        if fits(0, text) && rest.into_iter().all(follows) {
            sum += Scoring::DEFAULT.weight(*field);
        }
    }
    sum
}

fn any_phrase() -> impl Strategy<Value = Phrase> {
    let last = prop::sample::select(&[TermMatch::Exact, TermMatch::Prefix][..]);
    (prop::collection::vec("[ab]{1,2}", 1..4), last)
        .prop_map(|(terms, last)| Phrase { terms, last })
}

fn any_fields() -> impl Strategy<Value = Fields> {
    prop::sample::select(&[Fields::ALL, Fields::TITLE, Fields::NAMES][..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Words, prefixes, phrases, and phrases that end with a prefix: intersecting lists finds what
    /// walking over every position finds, with the same weights.
    #[test]
    fn a_lookup_finds_what_a_walk_finds(
        all in prop::collection::vec(words(), 1..12),
        phrases in prop::collection::vec((any_phrase(), any_fields()), 1..6),
        dead in prop::collection::vec(any::<bool>(), 12),
    ) {
        let view = view(&all);
        let mut live = Bits::all(all.len());
        for (doc, is_dead) in (0..).zip(dead) {
            if is_dead {
                live.remove(doc);
            }
        }
        for (phrase, fields) in &phrases {
            let found = looked_up(&view, phrase, *fields, &live);
            let weights = (0..).zip(&all).map(|(doc, words)| (doc, naive(words, phrase, *fields)));
            let expected: Vec<_> =
                weights.filter(|(doc, weight)| *weight > 0.0 && live.contains(*doc)).collect();
            prop_assert_eq!(found.len(), expected.len(), "{:?} {:?}", phrase, found);
            for ((doc, found), (wanted, expected)) in found.iter().zip(&expected) {
                prop_assert_eq!(doc, wanted);
                prop_assert!((found - expected).abs() < 1e-3, "{:?} {} {}", phrase, found, expected);
            }
        }
    }
}

proptest! {
    /// What explanations show is read in one pass for all documents, and adds up to their weights.
    #[test]
    fn the_frequencies_in_the_fields_add_up_to_the_weights(
        all in prop::collection::vec(words(), 1..12),
        phrase in any_phrase(),
        fields in any_fields(),
        skipped in prop::collection::vec(any::<bool>(), 12),
    ) {
        let view = view(&all);
        let mut phrases = Phrases::new(Space::Memories, Scoring::DEFAULT);
        let id = phrases.add(phrase, fields);
        let mut found = phrases.look_up(id, &view, &Bits::all(all.len())).unwrap();
        found.retain(|(doc, _)| !skipped[usize::try_from(*doc).unwrap()]);
        let docs: Vec<_> = found.iter().map(|(doc, _)| *doc).collect();
        let frequencies = phrases.frequencies(id, &view, &docs).unwrap();
        prop_assert_eq!(frequencies.len(), docs.len());
        for ((_, weight), frequencies) in found.iter().zip(frequencies) {
            let weigh = |(field, count): &(Field, Weight)| Scoring::DEFAULT.weight(*field) * count;
            let sum: Weight = frequencies.iter().map(weigh).sum();
            prop_assert!((sum - weight).abs() < 1e-3, "{sum} {weight}");
        }
    }
}

fn placed(words: &[(Field, u32, &str)]) -> Words {
    words.iter().map(|(field, at, text)| (*field, *at, (*text).to_owned())).collect()
}

/// The last word of one field and the first of the next are not side by side.
#[test]
fn a_phrase_does_not_span_fields() {
    let view = view(&[
        placed(&[(Field::Title, 0, "green"), (Field::Tags, 0, "tea"), (Field::Tags, 1, "tea")]),
        placed(&[(Field::Body, 4, "green"), (Field::Body, 5, "tea")]),
        placed(&[(Field::Body, 5, "green"), (Field::Body, 4, "tea")]),
    ]);
    let found =
        looked_up(&view, &phrase(&["green", "tea"], TermMatch::Exact), Fields::ALL, &Bits::all(3));
    assert_eq!(found, [(1, 1.0)]);
}

/// A word that is repeated is looked for as often as it is typed.
#[test]
fn a_phrase_may_repeat_a_word() {
    let view = view(&[
        placed(&[(Field::Body, 0, "tea"), (Field::Body, 1, "tea"), (Field::Body, 2, "tea")]),
        placed(&[(Field::Body, 0, "tea"), (Field::Body, 2, "tea")]),
    ]);
    let twice = phrase(&["tea", "tea"], TermMatch::Exact);
    assert_eq!(looked_up(&view, &twice, Fields::ALL, &Bits::all(2)), [(0, 2.0)]);
    let often = phrase(&["tea", "tea", "tea", "tea"], TermMatch::Exact);
    assert_eq!(looked_up(&view, &often, Fields::ALL, &Bits::all(2)), []);
}

#[test]
fn variants_stand_beside_nothing() {
    let view = view(&[placed(&[
        (Field::Forms, 0, "green"),
        (Field::Body, 1, "tea"),
        (Field::Forms, 0, "tea"),
    ])]);
    let both = phrase(&["green", "tea"], TermMatch::Exact);
    assert_eq!(looked_up(&view, &both, Fields::ALL, &Bits::all(1)), []);
    let one = phrase(&["green"], TermMatch::Exact);
    let found = looked_up(&view, &one, Fields::ALL, &Bits::all(1));
    assert!(
        matches!(found.as_slice(), [(0, weight)] if (*weight - Scoring::DEFAULT.other).abs() < 1e-6)
    );
}

/// A prefix adds up the words that it begins, but a place counts once in a phrase.
#[test]
fn words_with_a_common_prefix_at_one_place_count_once_in_a_phrase() {
    let view = view(&[placed(&[
        (Field::Body, 0, "green"),
        (Field::Body, 1, "tea"),
        (Field::Body, 1, "teas"),
    ])]);
    let both = phrase(&["green", "te"], TermMatch::Prefix);
    assert_eq!(looked_up(&view, &both, Fields::ALL, &Bits::all(1)), [(0, 1.0)]);
    let alone = phrase(&["te"], TermMatch::Prefix);
    assert_eq!(looked_up(&view, &alone, Fields::ALL, &Bits::all(1)), [(0, 2.0)]);
}

#[test]
fn equal_phrases_are_looked_up_once() {
    let mut phrases = Phrases::new(Space::Memories, Scoring::DEFAULT);
    let tea = || phrase(&["tea"], TermMatch::Exact);
    let first = phrases.add(tea(), Fields::ALL);
    assert_eq!(phrases.add(tea(), Fields::ALL), first);
    assert_ne!(phrases.add(tea(), Fields::TITLE), first);
    assert_ne!(phrases.add(phrase(&["tea"], TermMatch::Prefix), Fields::ALL), first);
    assert_eq!(phrases.get(first), Some(&tea()));
}
