//! Blocks: runs of adjacent terms with their posting lists.
//!
//! With a row per term, most of the index would be overhead: half of all terms occur in one
//! document only, and their lists have two bytes. So adjacent terms share a row, which is keyed by
//! the first of them, and terms are prefix-compressed. A block is small enough for SQLite to keep
//! it in one page; a longer list has a block of its own.

use super::codec::{Damaged, Input, put_bytes, put_varint};

/// A block is closed at this size, so that it fits into a page of 4 KB, of which SQLite allows at
/// most a quarter for a row of this kind.
const SIZE_BYTES_MAX: usize = 900;

/// Adjacent terms with their posting lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// The first term.
    pub(crate) first: Vec<u8>,
    /// The first term of the next block; empty if it is the last. No term lies between this block
    /// and the next, so a lookup that a damaged B-tree leads to the wrong block is detected.
    pub(crate) next: Vec<u8>,
    /// The terms after the first, and the postings of all terms.
    pub(crate) postings: Vec<u8>,
    /// The positions of each term, in the same order.
    pub(crate) positions: Vec<u8>,
}

/// Writes blocks in order.
#[derive(Debug)]
pub(crate) struct BlockWriter<F> {
    block: Block,
    last: Vec<u8>,
    is_open: bool,
    keep: F,
}

impl<E, F: FnMut(Block) -> Result<(), E>> BlockWriter<F> {
    /// Returns a writer that passes each full block to `keep`.
    pub(crate) fn new(keep: F) -> Self {
        Self { block: Block::default(), last: Vec::new(), is_open: false, keep }
    }

    /// Adds a term with its posting list. Terms must be added in ascending order.
    pub(crate) fn add(&mut self, term: &[u8], postings: &[u8], positions: &[u8]) -> Result<(), E> {
        let size = self.block.postings.len() + postings.len() + term.len();
        if self.is_open && size > SIZE_BYTES_MAX {
            self.block.next = term.to_vec();
            self.flush()?;
        }
        if self.is_open {
            let shared = term.iter().zip(&self.last).take_while(|(new, old)| new == old).count();
            put_varint(&mut self.block.postings, u64::try_from(shared).unwrap_or(0));
            put_bytes(&mut self.block.postings, term.get(shared..).unwrap_or_default());
        } else {
            self.block.first = term.to_vec();
            self.is_open = true;
        }
        self.last.clear();
        self.last.extend_from_slice(term);
        put_bytes(&mut self.block.postings, postings);
        put_bytes(&mut self.block.positions, positions);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), E> {
        self.is_open = false;
        (self.keep)(std::mem::take(&mut self.block))
    }

    /// Passes on the last block.
    pub(crate) fn finish(mut self) -> Result<(), E> {
        if self.is_open { self.flush() } else { Ok(()) }
    }
}

/// Reads the terms of a block with their postings.
#[derive(Clone, Debug)]
pub(crate) struct BlockReader<'a> {
    input: Input<'a>,
    term: Vec<u8>,
    is_first: bool,
}

impl<'a> BlockReader<'a> {
    pub(crate) fn new(first: &[u8], postings: &'a [u8]) -> Self {
        Self { input: Input::new(postings), term: first.to_vec(), is_first: true }
    }

    /// Reads the next term and its postings; `None` at the end.
    #[expect(clippy::type_complexity, reason = "a name would hide what borrows from what")]
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &'a [u8])>, Damaged> {
        if self.input.is_empty() {
            return Ok(None);
        }
        if !self.is_first {
            let shared = self.input.varint_usize()?;
            if shared > self.term.len() {
                return Err(Damaged);
            }
            self.term.truncate(shared);
            self.term.extend_from_slice(self.input.bytes()?);
        }
        self.is_first = false;
        let postings = self.input.bytes()?;
        Ok(Some((&self.term, postings)))
    }
}

/// Finds the postings of a term in a block, and the number of terms before it.
///
/// This compares without decompressing terms. It knows how many bytes each term shares with the
/// previous one, and how many bytes the previous one, which is smaller, shares with the wanted
/// term.
pub(crate) fn find_in_block<'a>(
    first: &[u8],
    postings: &'a [u8],
    term: &[u8],
) -> Result<Option<(usize, &'a [u8])>, Damaged> {
    let mut input = Input::new(postings);
    let mut matched = common(first, term);
    let list = input.bytes()?;
    if matched == term.len() && matched == first.len() {
        return Ok(Some((0, list)));
    }
    if first.get(matched..) > term.get(matched..) {
        return Ok(None);
    }
    let mut place = 0;
    while !input.is_empty() {
        place += 1;
        let shared = input.varint_usize()?;
        let suffix = input.bytes()?;
        let list = input.bytes()?;
        if shared > matched {
            // It differs from the wanted term at the same byte as the previous term, so it is
            // smaller too.
            continue;
        }
        let rest = term.get(shared..).unwrap_or_default();
        let more = common(suffix, rest);
        if shared < matched || suffix.get(more..) > rest.get(more..) {
            return Ok(None);
        }
        if more == rest.len() && more == suffix.len() {
            return Ok(Some((place, list)));
        }
        matched = shared + more;
    }
    Ok(None)
}

/// Returns the length of the common prefix.
fn common(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// Reads the positions of a block, in step with a [`BlockReader`].
#[derive(Clone, Debug)]
pub(crate) struct BlockPositions<'a>(Input<'a>);

impl<'a> BlockPositions<'a> {
    pub(crate) fn new(positions: &'a [u8]) -> Self {
        Self(Input::new(positions))
    }

    pub(crate) fn next(&mut self) -> Result<&'a [u8], Damaged> {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Lists = BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>;

    fn lists() -> impl Strategy<Value = Lists> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..40);
        let long = prop::collection::vec(any::<u8>(), 900..2000);
        let term = prop::collection::vec(b'a'..b'e', 0..8);
        prop::collection::btree_map(term, (prop_oneof![9 => bytes(), 1 => long], bytes()), 0..80)
    }

    fn blocks(lists: &Lists) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut writer = BlockWriter::new(|block| {
            blocks.push(block);
            Ok::<_, Damaged>(())
        });
        for (term, (postings, positions)) in lists {
            writer.add(term, postings, positions).unwrap();
        }
        writer.finish().unwrap();
        blocks
    }

    proptest! {
        #[test]
        fn blocks_are_read_as_they_were_written(lists in lists()) {
            let blocks = blocks(&lists);
            let mut read = Lists::new();
            for block in &blocks {
                let mut terms = BlockReader::new(&block.first, &block.postings);
                let mut positions = BlockPositions::new(&block.positions);
                while let Some((term, postings)) = terms.next().unwrap() {
                    let both = (postings.to_vec(), positions.next().unwrap().to_vec());
                    read.insert(term.to_vec(), both);
                }
            }
            prop_assert!(blocks.is_sorted_by(|left, right| left.first < right.first));
            let firsts = blocks.iter().skip(1).map(|block| block.first.as_slice());
            for (block, next) in blocks.iter().zip(firsts.chain([&[][..]])) {
                prop_assert_eq!(&block.next, next);
            }
            prop_assert_eq!(read, lists);
        }

        #[test]
        fn every_term_is_found_in_its_block_and_no_other(
            lists in lists(),
            others in prop::collection::vec(prop::collection::vec(b'a'..b'f', 0..9), 20),
        ) {
            let blocks = blocks(&lists);
            for term in lists.keys().chain(&others) {
                let after = blocks.partition_point(|block| block.first <= *term);
                let Some(block) = after.checked_sub(1).map(|at| &blocks[at]) else { continue };
                let found = find_in_block(&block.first, &block.postings, term).unwrap();
                let expected = lists.get(term).map(|(postings, _)| postings.as_slice());
                prop_assert_eq!(found.map(|(_, postings)| postings), expected);
                if let Some((place, _)) = found {
                    let mut positions = BlockPositions::new(&block.positions);
                    for _ in 0..place {
                        positions.next().unwrap();
                    }
                    prop_assert_eq!(positions.next().unwrap(), lists[term].1.as_slice());
                }
            }
        }

        #[test]
        fn only_a_single_list_makes_a_block_long(lists in lists()) {
            for block in blocks(&lists) {
                let mut terms = BlockReader::new(&block.first, &block.postings);
                let mut count = 0;
                while terms.next().unwrap().is_some() {
                    count += 1;
                }
                // The lengths add a few bytes.
                prop_assert!(count == 1 || block.postings.len() < SIZE_BYTES_MAX + 20);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut terms = BlockReader::new(b"tea", &bytes);
            while let Ok(Some(_)) = terms.next() {}
            let mut positions = BlockPositions::new(&bytes);
            while positions.next().is_ok() {}
            let found = find_in_block(b"tea", &bytes, b"teapot");
            prop_assert!(found.is_err() || !bytes.is_empty());
        }
    }
}
