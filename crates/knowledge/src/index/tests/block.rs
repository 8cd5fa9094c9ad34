use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::block::{Block, BlockPositions, BlockReader, BlockWriter, find_in_block};
use super::super::codec::Damaged;

type Lists = BTreeMap<Vec<u8>, Vec<u8>>;

fn blocks(lists: &Lists) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut writer = BlockWriter::new(|block| {
        blocks.push(block);
        Ok::<_, Damaged>(())
    });
    for (term, list) in lists {
        // The positions tell which list they belong to.
        writer.add(term, list, term).unwrap();
    }
    writer.finish().unwrap();
    blocks
}

fn only(lists: &Lists) -> Block {
    let mut blocks = blocks(lists);
    assert_eq!(blocks.len(), 1);
    blocks.remove(0)
}

fn lists(terms: &[&str]) -> Lists {
    terms.iter().map(|term| (term.as_bytes().to_vec(), vec![7; term.len()])).collect()
}

fn found<'b>(block: &'b Block, term: &str) -> Option<(usize, &'b [u8])> {
    find_in_block(&block.first, &block.postings, term.as_bytes()).unwrap()
}

#[test]
fn nothing_is_written_for_no_terms() {
    assert_eq!(blocks(&Lists::new()), []);
}

/// A term is compared without being decompressed, so every relation of a wanted term to its
/// neighbors counts: a prefix of one, an extension, a sibling, before the first, after the last.
#[test]
fn terms_are_found_among_their_neighbors() {
    let block = only(&lists(&["b", "ba", "bab", "babble", "bac", "bb", "c", "ca"]));
    for (place, term) in ["b", "ba", "bab", "babble", "bac", "bb", "c", "ca"].iter().enumerate() {
        assert_eq!(found(&block, term), Some((place, vec![7; term.len()].as_slice())), "{term}");
    }
    for term in ["", "a", "aa", "b\0", "baa", "babb", "babbl", "babbles", "bad", "bba", "bz", "c\0"]
    {
        assert_eq!(found(&block, term), None, "{term:?}");
    }
    assert_eq!(found(&block, "cb"), None);
    assert_eq!(found(&block, "ca\0"), None);
}

#[test]
fn the_empty_term_comes_first() {
    let block = only(&lists(&["", "a"]));
    assert_eq!(found(&block, ""), Some((0, &[][..])));
    assert_eq!(found(&block, "a"), Some((1, &[7][..])));
    assert_eq!(found(&block, "b"), None);
}

/// The size of a block is checked before a term is added, so that a block is at most as large as
/// allowed, or has a single term.
#[test]
fn a_block_ends_before_it_gets_too_large() {
    let list = |size| vec![1; size];
    let both = |first: usize, second: usize| {
        let lists = Lists::from([(b"a".to_vec(), list(first)), (b"b".to_vec(), list(second))]);
        blocks(&lists).len()
    };
    // A length of two bytes precedes the first list, and the second term adds one byte.
    assert_eq!(both(500, 900 - 500 - 2 - 1), 1);
    assert_eq!(both(500, 900 - 500 - 2), 2);
    assert_eq!(both(5_000, 1), 2);
    assert_eq!(both(1, 5_000), 2);
}

/// No term lies between a block and the next: that is how a wrong row is noticed.
#[test]
fn blocks_name_their_successors() {
    let lists: Lists = (0..2_000_u32).map(|it| (it.to_be_bytes().to_vec(), vec![3; 9])).collect();
    let blocks = blocks(&lists);
    assert!(blocks.len() > 10);
    for pair in blocks.windows(2) {
        assert_eq!(pair[0].next, pair[1].first);
    }
    assert_eq!(blocks.last().unwrap().next, Vec::<u8>::new());
    let count: usize = blocks
        .iter()
        .map(|block| {
            let mut terms = BlockReader::new(&block.first, &block.postings);
            let mut positions = BlockPositions::new(&block.positions);
            let mut count = 0;
            while let Some((term, _)) = terms.next().unwrap() {
                assert_eq!(positions.next().unwrap(), term);
                count += 1;
            }
            assert_eq!(positions.next(), Err(Damaged), "there are as many positions as terms");
            count
        })
        .sum();
    assert_eq!(count, lists.len());
}

#[test]
fn a_term_that_shares_more_than_there_is_is_damage() {
    // The first list is empty; the second term shares four of three bytes.
    let postings = [0, 4, 1, b'x', 0];
    let mut terms = BlockReader::new(b"tea", &postings);
    assert_eq!(terms.next(), Ok(Some((&b"tea"[..], &[][..]))));
    assert_eq!(terms.next(), Err(Damaged));
}

#[test]
fn a_writer_reports_that_a_block_cannot_be_kept() {
    let mut writer = BlockWriter::new(|_| Err::<(), _>("full"));
    writer.add(b"a", &[0; 2_000], &[]).unwrap();
    assert_eq!(writer.add(b"b", &[0; 2_000], &[]), Err("full"));
    let mut writer = BlockWriter::new(|_| Err::<(), _>("full"));
    writer.add(b"a", &[], &[]).unwrap();
    assert_eq!(writer.finish(), Err("full"));
}

fn random() -> impl Strategy<Value = Lists> {
    let term = prop::collection::vec(prop_oneof![b'a'..b'd', Just(0_u8), Just(255)], 0..6);
    prop::collection::btree_map(term, prop::collection::vec(any::<u8>(), 0..60), 1..60)
}

proptest! {
    /// A linear scan over all terms finds the same list at the same place.
    #[test]
    fn finding_is_scanning(
        lists in random(),
        wanted in prop::collection::vec(prop_oneof![b'a'..b'd', Just(0_u8), Just(255)], 0..7),
    ) {
        for block in blocks(&lists) {
            let mut terms = BlockReader::new(&block.first, &block.postings);
            let (mut place, mut scanned) = (0, None);
            while let Some((term, list)) = terms.next().unwrap() {
                if term == wanted {
                    scanned = Some((place, list));
                }
                place += 1;
            }
            let found = find_in_block(&block.first, &block.postings, &wanted).unwrap();
            prop_assert_eq!(found, scanned);
        }
    }

    /// Whatever is cut off, a lookup finds the right list, none, or damage.
    #[test]
    fn a_truncated_block_has_no_other_lists(lists in random(), cut in any::<prop::sample::Index>()) {
        for block in blocks(&lists) {
            let part = &block.postings[..cut.index(block.postings.len())];
            for (term, list) in &lists {
                if let Ok(Some((_, found))) = find_in_block(&block.first, part, term) {
                    prop_assert_eq!(found, list.as_slice());
                }
            }
            let mut terms = BlockReader::new(&block.first, part);
            while let Ok(Some((term, found))) = terms.next() {
                prop_assert_eq!(lists.get(term).map(Vec::as_slice), Some(found));
            }
        }
    }
}
