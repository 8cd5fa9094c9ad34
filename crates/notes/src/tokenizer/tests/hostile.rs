//! Adversarial texts of the maximum size of a memory.
//!
//! Nothing here is timed: each takes milliseconds in linear time, and minutes otherwise.

use super::*;
use crate::{Phrase, snippet};

const SIZE_BYTES: usize = 100 * 1024;

/// The pieces that adversarial texts repeat.
const PIECES: [&str; 24] = [
    "a",
    "A",
    "aB",
    "a1",
    "a'",
    "'",
    "’s",
    "-",
    " ",
    "\n",
    "é",
    "e\u{301}",
    "\u{301}",
    "ß",
    "ﷺ",
    "日",
    "が",
    "か\u{3099}",
    "\u{1160}",
    "한",
    "🫖",
    "ა",
    "s's ",
    "ing",
];

fn filled(piece: &str) -> String {
    piece.repeat(SIZE_BYTES / piece.len())
}

#[test]
fn repeated_pieces_are_tokenized_in_every_language() {
    for piece in PIECES {
        let text = filled(piece);
        for language in [Language::English, Language::German, Language::Russian] {
            let tokens = tokenize(&text, language);
            assert!(tokens.iter().all(|token| token.term.len() <= TERM_SIZE_BYTES_MAX));
        }
        assert!(variants([text.as_str()], ENGLISH).len() < text.len());
        Language::detect(&text);
    }
}

#[test]
fn repeated_pieces_are_shown_as_snippets() {
    for piece in PIECES {
        let text = filled(piece);
        let phrases = [Phrase::spellings(piece, &[ENGLISH]), Phrase::prefix(piece, &[ENGLISH])];
        let phrases: Vec<_> = phrases.iter().flatten().collect();
        let found = snippet(&text, ENGLISH, &phrases);
        assert!(found.text.chars().count() <= 250, "{piece:?}");
    }
}

#[test]
fn a_compatibility_character_does_not_make_a_term_longer() {
    // It decomposes to 18 letters.
    assert_eq!(tokenize(&"ﷺ".repeat(50), ENGLISH)[0].term.len(), TERM_SIZE_BYTES_MAX);
}

#[test]
fn long_words_are_stemmed_in_no_language() {
    for language in Language::ALL {
        let word = "nationalization".repeat(4);
        assert_eq!(tokenize(&word, language)[0].term, word);
    }
}

#[test]
fn phrases_of_long_texts_are_bounded_by_the_text() {
    for piece in PIECES {
        let text = filled(piece);
        for phrases in [
            Phrase::spellings(&text, &[ENGLISH]),
            Phrase::quoted(&text, &[ENGLISH]),
            Phrase::prefix(&text, &[ENGLISH]),
        ] {
            assert!(phrases.len() <= 3, "{piece:?}");
            assert!(phrases.iter().all(|phrase| phrase.terms.len() <= text.len()));
        }
    }
}
