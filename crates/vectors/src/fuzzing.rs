//! Feeds arbitrary bytes to what strangers write: weights, tokenizers and the answers of servers.
//!
//! Whatever the input, it is refused or usable: nothing panics, and no number of a vector is not finite.

use crate::endpoint::EndpointEncoder;
use crate::safetensors::tensors;
use crate::tokenizer::Tokenizer;

/// A text that most tokenizers know something of.
const TEXT: &str = "Green tea, 75 °C: 日本語 [MASK]";
const TOKENS_MAX: usize = 16;

/// Reads bytes as the header of weights, as a tokenizer and as an answer.
///
/// # Panics
///
/// If something is accepted that cannot be used.
pub fn read_any(bytes: &[u8]) {
    let size_bytes = 8 + bytes.len() as u64 + 64;
    if let Ok(tensors) = tensors(bytes, 8 + bytes.len() as u64, size_bytes) {
        // Each has a name in the header.
        assert!(tensors.len() <= bytes.len());
    }
    if let Ok(tokenizer) = Tokenizer::parse(bytes) {
        assert!(tokenizer.tokens(TEXT, TOKENS_MAX).len() <= TOKENS_MAX);
    }
    for count in [1, 2] {
        let Some(vectors) = EndpointEncoder::read_any(bytes, count) else { continue };
        assert_eq!(vectors.len(), count);
        assert!(vectors.iter().flatten().all(|number| number.is_finite()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Texts that are accepted, or nearly.
    fn valid() -> Vec<String> {
        let tensor = json!({"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]});
        let word_piece = json!({
            "normalizer": {
                "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "tea": 1}},
        });
        let bpe = json!({
            "model": {
                "type": "BPE", "unk_token": "x", "byte_fallback": true,
                "vocab": {"x": 0, "t": 1, "e": 2, "te": 3}, "merges": ["t e"],
            },
        });
        let answer = json!({"data": [
            {"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [0.0, 1e30]},
        ]});
        let weights = json!({"embeddings": tensor, "__metadata__": {"format": "pt"}});
        [weights, word_piece, bpe, answer].iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_valid_is_accepted() {
        let [weights, word_piece, bpe, answer] = &valid()[..] else { panic!() };
        assert!(tensors(weights.as_bytes(), 8, 8 + 64).is_ok());
        assert_eq!(Tokenizer::parse(word_piece.as_bytes()).unwrap().tokens("tea", 9), [1]);
        assert_eq!(Tokenizer::parse(bpe.as_bytes()).unwrap().tokens("te", 9), [3]);
        assert!(EndpointEncoder::read_any(answer.as_bytes(), 2).is_some());
        for text in valid() {
            read_any(text.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read_any(&bytes);
        }

        /// A digit, a bracket or a name is another one, or is missing.
        #[test]
        fn valid_texts_with_changes_are_read_or_refused(
            which in 0_usize..4,
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), "[0-9.,eE+\\-\\[\\]{}\":a-z]{0,3}"), 0..6,
            ),
        ) {
            let mut text = valid().swap_remove(which);
            for (place, new) in changes {
                let place = place.index(text.len());
                text.replace_range(place..=place, &new);
            }
            read_any(text.as_bytes());
        }
    }
}
