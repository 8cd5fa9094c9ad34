//! Any text can be tokenized in any language, and shown as a snippet.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_notes::tokenizer::{Language, tokenize, variants};
use quipu_notes::{Phrase, snippet};

fuzz_target!(|text: &str| {
    let query: String = text.chars().take(40).collect();
    for language in Language::ALL.into_iter().chain([Language::detect(text)]) {
        for token in tokenize(text, language) {
            assert!(!token.term.is_empty() && token.term.len() <= 64);
            assert!(text.get(token.range).is_some());
        }
        drop(variants([text], language));
        let phrases = Phrase::spellings(&query, &[Language::English, language]);
        let found = snippet(text, language, &phrases.iter().collect::<Vec<_>>());
        for range in found.matches {
            assert!(found.text.get(range).is_some());
        }
    }
});
