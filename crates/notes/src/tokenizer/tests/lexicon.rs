//! The lexicon: what is remembered is what would be computed.

use proptest::prelude::*;

use super::*;
use crate::tokenizer::lexicon::WORDS_MAX;

/// Returns what a lexicon finds in a text, variants in brackets.
fn read(lexicon: &mut Lexicon, text: &str, language: Language) -> Vec<String> {
    let mut all = Vec::new();
    lexicon.read(text, language, |found| match found {
        Found::Term(term) => all.push(term.to_owned()),
        Found::Variant(variant) => all.push(format!("[{variant}]")),
    });
    all
}

#[test]
fn variants_follow_their_term() {
    let mut lexicon = Lexicon::default();
    for _ in 0..2 {
        assert_eq!(
            read(&mut lexicon, "Connected teas", ENGLISH),
            ["connect", "[connected]", "tea", "[teas]"]
        );
        assert_eq!(read(&mut lexicon, "日本語", ENGLISH), ["日本", "本語", "[語]"]);
    }
}

#[test]
fn a_word_has_its_own_terms_in_each_language() {
    let mut lexicon = Lexicon::default();
    let (english, german) = (read(&mut lexicon, "Häuser", ENGLISH), Language::German);
    assert_ne!(read(&mut lexicon, "Häuser", german), english);
    assert_eq!(read(&mut lexicon, "Häuser", german), ["haus", "[hauser]"]);
    assert_eq!(read(&mut lexicon, "Häuser", ENGLISH), english);
}

#[test]
fn the_number_of_remembered_words_is_bounded() {
    let mut lexicon = Lexicon::default();
    for number in 0..3 * WORDS_MAX {
        read(&mut lexicon, &format!("word{number}"), ENGLISH);
        assert!(lexicon.words_count() <= WORDS_MAX + 1);
    }
    let long = "x".repeat(1000);
    let before = lexicon.words_count();
    read(&mut lexicon, &long, ENGLISH);
    assert_eq!(lexicon.words_count(), before);
}

proptest! {
    #[test]
    fn what_was_read_before_changes_nothing(texts in prop::collection::vec("\\PC{0,40}", 1..6)) {
        let mut lexicon = Lexicon::default();
        for language in [ENGLISH, Language::French, ENGLISH] {
            for text in &texts {
                let fresh = read(&mut Lexicon::default(), text, language);
                prop_assert_eq!(read(&mut lexicon, text, language), fresh);
            }
        }
    }
}
