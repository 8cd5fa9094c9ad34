//! Readers of blobs, applied to arbitrary bytes.

use super::bits::Bits;
use super::block::{Block, BlockPositions, BlockReader, find_in_block};
use super::codec::Input;
use super::columns::{Columns, Facts, Fixed, Memories, each_path, memory_id};
use super::error::IndexError;
use super::merge::{Blocks, MergeInput, merge};
use super::places::Places;
use super::postings::{Field, Positions, Postings, Weights};
use super::segment::Segment;
use super::store_rows::totals_from_bytes;
use super::term::{self, Space};
use super::vector_rows;

/// Reads bytes as every kind of blob; returns the largest number of items.
pub(crate) fn read_any(bytes: &[u8]) -> usize {
    let mut most = 0;
    let mut positions = Positions::new(bytes);
    let mut skipped = Positions::new(bytes);
    let mut count = 0;
    for posting in Postings::new(bytes) {
        let Ok(posting) = posting else { break };
        count += 1;
        if let Ok(places) = positions.read(&posting) {
            most = most.max(places.len());
        }
        if let Ok(encoded) = skipped.take(&posting) {
            most = most.max(encoded.len());
        }
    }
    most = most.max(count);
    count = 0;
    Weights::new(|field| if field == Field::Body { 1.0 } else { 0.5 })
        .each(bytes, |_, _| count += 1)
        .unwrap_or_default();
    most = most.max(count);
    count = 0;
    let mut terms = BlockReader::new(b"tea", bytes);
    while let Ok(Some((term, list))) = terms.next() {
        count += 1;
        // A term may share the prefix of the previous one, so only its suffix is bounded by the
        // input.
        most = most.max(list.len()).max(term.len().saturating_sub(bytes.len()));
    }
    most = most.max(count);
    for term in [&b"tea"[..], b"teapot", b"", bytes] {
        find_in_block(b"tea", bytes, term).map(drop).unwrap_or_default();
    }
    let mut positions = BlockPositions::new(bytes);
    while positions.next().is_ok() {}
    count = 0;
    each_path(bytes, |_, _| count += 1).unwrap_or_default();
    let mut bits = Bits::none(512);
    bits.insert_bytes(0, bytes).unwrap_or_default();
    totals_from_bytes(bytes).map(drop).unwrap_or_default();
    if let Ok(mut vectors) = vector_rows::from_bytes(bytes, memory_id([0; 16]), 3) {
        let mut count = 0;
        while let Ok(Some(_)) = vectors.passages.next() {
            count += 1;
        }
        most = most.max(count);
    }
    most.max(count).max(bits.count().saturating_sub(8 * bytes.len()))
}

struct Given(std::vec::IntoIter<Block>);

impl Blocks for Given {
    fn next_block(&mut self) -> Result<Option<Block>, IndexError> {
        Ok(self.0.next())
    }
}

/// Returns segments with arbitrary bytes as lists and columns, and the result of merging them.
pub(crate) fn any_segments(pieces: &[&[u8]]) -> Vec<Segment> {
    let piece = |place: usize| pieces.get(place).copied().unwrap_or_default().to_vec();
    let mut blocks = Vec::new();
    for (place, (space, word)) in
        [(Space::Memories, "cup"), (Space::Memories, "tea"), (Space::Observations, "tea")]
            .into_iter()
            .enumerate()
    {
        let mut postings = Vec::new();
        super::codec::put_bytes(&mut postings, &piece(2 * place));
        let mut positions = Vec::new();
        super::codec::put_bytes(&mut positions, &piece(2 * place + 1));
        // Everything after the first list is further terms, as far as it can be decoded.
        postings.extend(piece(6));
        positions.extend(piece(7));
        let first = term::word(space, word);
        blocks.push(Block { first, next: Vec::new(), postings, positions });
    }
    let mut paths = Vec::new();
    let count = Input::new(&piece(8)).len().min(40);
    (0..count).for_each(|_| super::codec::put_bytes(&mut paths, b"/a"));
    let facts = |place: usize| -> Option<Facts> {
        let mut rows = piece(place);
        rows.truncate(rows.len() / 8 * 8);
        let lengths = Fixed::from_bytes(vec![1; rows.len() / 2]).ok()?;
        Some(Facts { lengths, rows: Fixed::from_bytes(rows).ok()? })
    };
    let memories = Memories {
        lengths: Fixed::from_bytes(vec![1; 4 * count]).unwrap_or_default(),
        ids: Fixed::from_bytes(vec![2; 16 * count]).unwrap_or_default(),
        times: Fixed::from_bytes(vec![3; 8 * count]).unwrap_or_default(),
        places: Places::of(&paths).unwrap_or_default(),
        paths,
    };
    let observations = facts(9).unwrap_or_default();
    let columns = Columns { memories, observations, relations: facts(10).unwrap_or_default() };
    let segment = Segment { blocks, columns };
    let input = MergeInput {
        blocks: Given(segment.blocks.clone().into_iter()),
        columns: segment.columns.clone(),
        live: Bits::all(count),
    };
    let mut blocks = Vec::new();
    let merged = merge(vec![input], |block| {
        blocks.push(block);
        Ok(())
    });
    let merged = merged.ok().map(|columns| Segment { blocks, columns });
    std::iter::once(segment).chain(merged).collect()
}
