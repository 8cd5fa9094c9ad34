//! Feeds arbitrary bytes to everything that decodes blobs of the index.
//!
//! Seals protect these decoders from accidents, but not from someone who writes the file. Whatever
//! the input, they must neither panic nor loop forever, nor use more memory than the input could
//! fill.

use std::sync::Arc;

use quipu_core::model::{Id as _, MemoryId, StoreId};
use quipu_notes::Phrase;
use quipu_notes::tokenizer::Language;

use crate::card::Card;
use crate::index::{self, Bits, Fields, Input, SegmentView, Space};
use crate::search::{Phrases, Scoring};

/// Decodes bytes as every kind of blob, and looks up phrases in segments that are made of them.
///
/// # Panics
///
/// If a decoder yields more than the bytes can hold.
pub fn read_any(bytes: &[u8]) {
    for from in [0, 1, bytes.len() / 2] {
        let bytes = bytes.get(from..).unwrap_or_default();
        let read = index::read_any(bytes);
        assert!(read <= 4 * bytes.len(), "{read} of {} bytes", bytes.len());
        read_card(bytes);
    }
    search(bytes);
}

fn read_card(bytes: &[u8]) {
    let (store, memory) = (StoreId::from_bits(1), MemoryId::from_bits(2));
    if let Ok(card) = Card::read(store, memory, bytes) {
        assert!(card.names.len() + card.links.len() <= bytes.len());
        assert_eq!(Card::read(store, memory, &card.to_bytes()), Ok(card));
    }
    Card::read_row(store, memory, bytes).map(drop).unwrap_or_default();
}

/// Looks up words, prefixes and phrases in a segment that claims to contain them.
fn search(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let pieces: Vec<_> = std::iter::from_fn(|| input.bytes().ok()).take(12).collect();
    let languages = [Language::English];
    let words: Vec<_> = Phrase::quoted("tea cup", &languages).into_iter().collect();
    let prefixes =
        Phrase::prefix("tea cu", &languages).into_iter().chain(Phrase::prefix("t", &languages));
    for segment in index::any_segments(&pieces) {
        let view = SegmentView::in_memory(Arc::new(segment));
        for space in Space::ALL {
            let mut phrases = Phrases::new(space, Scoring::DEFAULT);
            let live = Bits::all(view.count(space));
            let all = words.iter().cloned().chain(prefixes.clone());
            for phrase in all.map(|phrase| phrases.add(phrase, Fields::ALL)).collect::<Vec<_>>() {
                let Ok(found) = phrases.look_up(phrase, &view, &live) else { continue };
                assert!(found.is_sorted_by(|(left, _), (right, _)| left < right));
                assert!(found.iter().all(|(doc, _)| live.contains(*doc)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::put_bytes;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read_any(&bytes);
        }

        /// Posting lists consist mostly of small numbers, so these inputs get further.
        #[test]
        fn bytes_that_look_like_lists_are_read_or_refused(
            pieces in prop::collection::vec(
                prop::collection::vec(prop_oneof![8 => 0_u8..9, 1 => any::<u8>()], 0..40),
                0..12,
            ),
        ) {
            let mut bytes = Vec::new();
            for piece in &pieces {
                put_bytes(&mut bytes, piece);
            }
            read_any(&bytes);
        }
    }

    /// Regression: matching a phrase went on beyond the highest document number.
    #[test]
    fn the_highest_document_number_ends_a_list() {
        let mut list = Vec::new();
        index::put_varint(&mut list, u64::from(u32::MAX) << 1 | 1);
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, &list);
        put_bytes(&mut bytes, &[0]);
        read_any(&bytes);
    }

    /// A length prefix may claim any size, but nothing is allocated before that much input is
    /// present.
    #[test]
    fn oversized_length_prefixes_are_refused() {
        for length in [u64::MAX, u64::from(u32::MAX), 1 << 40] {
            let mut bytes = vec![0; 33];
            index::put_varint(&mut bytes, length);
            bytes.extend([1; 40]);
            read_any(&bytes);
        }
    }
}
