use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::block::BlockReader;
use super::super::postings::{Doc, Field, Postings};
use super::super::segment::{Document, Documents, Segment, SegmentBuilder, Totals};
use super::super::term::{self, Mark, Space};
use super::{Text, document, documents, text};

fn built(texts: &[Text]) -> Segment {
    let mut builder = SegmentBuilder::default();
    for (number, text) in (0..).zip(texts) {
        assert_eq!(builder.add(documents(number, text)), number);
    }
    builder.finish()
}

/// Returns the documents of each term, read from the blocks.
fn lists(segment: &Segment) -> BTreeMap<Vec<u8>, Vec<Doc>> {
    let mut lists = BTreeMap::new();
    for block in &segment.blocks {
        let mut terms = BlockReader::new(&block.first, &block.postings);
        while let Some((term, postings)) = terms.next().unwrap() {
            let docs = Postings::new(postings).map(|it| it.unwrap().doc).collect();
            assert_eq!(lists.insert(term.to_vec(), docs), None, "each term is in one block");
        }
    }
    lists
}

/// The same, from the texts.
fn naive_lists(texts: &[Text]) -> BTreeMap<Vec<u8>, Vec<Doc>> {
    let mut lists: BTreeMap<Vec<u8>, BTreeSet<Doc>> = BTreeMap::new();
    let mut add = |term: Vec<u8>, doc: Doc| lists.entry(term).or_default().extend([doc]);
    let (mut observation, mut relation) = (0, 0);
    for (doc, text) in (0..).zip(texts) {
        add(term::memory(super::memory(doc)), doc);
        for word in &text.words {
            add(term::word(Space::Memories, word), doc);
        }
        for tag in &text.tags {
            add(Mark::Tag(tag).term(Space::Memories), doc);
        }
        for words in &text.observations {
            for it in words {
                add(term::word(Space::Observations, it), observation);
            }
            observation += 1;
        }
        for words in &text.relations {
            for it in words {
                add(term::word(Space::Relations, it), relation);
            }
            relation += 1;
        }
    }
    lists.into_iter().map(|(term, docs)| (term, docs.into_iter().collect())).collect()
}

proptest! {
    #[test]
    fn a_segment_inverts_its_documents(texts in prop::collection::vec(text(), 0..20)) {
        let segment = built(&texts);
        prop_assert_eq!(lists(&segment), naive_lists(&texts));
        let count = |count: fn(&Text) -> usize| texts.iter().map(count).sum::<usize>();
        let counts = [
            texts.len(),
            count(|text| text.observations.len()),
            count(|text| text.relations.len()),
        ];
        prop_assert_eq!(segment.columns.counts(), counts);
    }

    /// The block of a term is the last one that does not begin after it, as in a linear scan.
    #[test]
    fn the_block_of_a_term_is_found(
        texts in prop::collection::vec(text(), 0..40),
        wanted in "[mor][w#][a-e]{0,4}",
    ) {
        let segment = built(&texts);
        let wanted = wanted.as_bytes();
        let scanned = segment.blocks.iter().rfind(|block| block.first.as_slice() <= wanted);
        prop_assert_eq!(segment.block_of(wanted), scanned);
        // A term with the prefix is at or after it, so reading begins there and ends at the end.
        let from: Vec<_> = segment.blocks_from(wanted).collect();
        let rest = segment.blocks.iter().skip(segment.blocks.len() - from.len());
        prop_assert!(from.iter().copied().eq(rest));
        let with_prefix = lists(&segment).into_keys().filter(|term| term.starts_with(wanted)).count();
        let mut found = 0;
        for block in from {
            let mut terms = BlockReader::new(&block.first, &block.postings);
            while let Some((term, _)) = terms.next().unwrap() {
                found += usize::from(term.starts_with(wanted));
            }
        }
        prop_assert_eq!(found, with_prefix);
    }

    /// Documents are added in any order of their parts: only their places count.
    #[test]
    fn the_order_of_words_and_marks_does_not_matter(
        (one, other) in text().prop_flat_map(|text| {
            let document = document(Space::Memories, &text.words, &text.tags);
            (Just(document.words.clone()), Just(document.words).prop_shuffle())
        }),
    ) {
        let segment = |words: Vec<(Vec<u8>, Field, u32)>| {
            let memory = Document { length: 1, words, marks: Vec::new() };
            let mut builder = SegmentBuilder::default();
            builder.add(Documents { memory, ..documents(1, &Text::default()) });
            builder.finish()
        };
        prop_assert_eq!(segment(one), segment(other));
    }
}

fn in_language(tags: &[&str]) -> Segment {
    let mut builder = SegmentBuilder::default();
    for (number, tag) in (0..).zip(tags) {
        let mut documents = documents(number, &Text::of("a lovely day"));
        documents.memory.marks.push(Mark::Language(tag).term(Space::Memories));
        builder.add(documents);
    }
    builder.finish()
}

#[test]
fn a_segment_with_a_note_in_another_language_is_foreign() {
    assert!(!in_language(&[]).is_foreign());
    assert!(!in_language(&["en", "en"]).is_foreign());
    assert!(in_language(&["en", "de"]).is_foreign());
    assert!(in_language(&["da"]).is_foreign(), "before English in the order of terms");
    assert!(in_language(&["uk"]).is_foreign());
    // A tag that begins like that of English is another one.
    assert!(in_language(&["en", "eng"]).is_foreign());
}

#[test]
fn totals_are_added_and_never_fall_below_zero() {
    let of = |number| Totals { counts: [number; 3], lengths: [2 * number; 3] };
    let mut totals = of(5);
    totals.add(&of(2));
    assert_eq!(totals, of(7));
    totals.subtract(&of(3));
    assert_eq!(totals, of(4));
    totals.subtract(&of(9));
    assert_eq!(totals, of(0));
    totals.add(&Totals { counts: [u64::MAX; 3], lengths: [u64::MAX; 3] });
    totals.add(&of(1));
    assert_eq!(totals.count(Space::Relations), u64::MAX);
    assert_eq!(totals.length(Space::Observations), u64::MAX);
}

#[test]
fn the_totals_of_a_note_count_each_space() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let text = Text {
        observations: vec![words("a b"), words("c")],
        relations: vec![words("d e f")],
        ..Text::of("g h i j")
    };
    let totals = documents(1, &text).totals();
    assert_eq!(totals, Totals { counts: [1, 2, 1], lengths: [4, 3, 3] });
}

/// Caching counts bytes, so an estimate of nothing would let the cache grow without limit.
#[test]
fn the_size_of_a_segment_grows_with_its_lists() {
    let (small, large) = (built(&[Text::of("a")]), built(&vec![Text::of("a b c d e f"); 50]));
    assert!(small.size_bytes() >= 100);
    assert!(large.size_bytes() > 2 * small.size_bytes());
}
