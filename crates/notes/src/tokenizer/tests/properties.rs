//! Properties of the tokens of every text.

use proptest::prelude::*;

use super::*;

/// Text with everything that the tokenizer distinguishes.
fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "tea",
        "Tea's",
        "running",
        "parseJson2",
        "HTTP",
        " ",
        "  ",
        "\n",
        "-",
        "_",
        "'",
        "’",
        ".",
        "é",
        "e\u{301}",
        "ß",
        "Ø",
        "日",
        "本語",
        "が",
        "か\u{3099}",
        "한국",
        "चाय",
        "чай",
        "½",
        "2026",
        "🫖",
        "ª",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..24).prop_map(|it| it.concat())
}

fn language() -> impl Strategy<Value = Language> {
    prop::sample::select(Language::ALL.to_vec())
}

proptest! {
    #[test]
    fn a_term_begins_like_its_word(word in "[a-zA-Z0-9]([a-z'ys]{0,3}[a-zA-Z0-9']{0,8}(ies|ing|ed|[a-z0-9]))?") {
        for language in Language::ALL {
            prop_assert!(is_stemmed_in_snippets(&word, language), "{language:?}");
        }
    }

    #[test]
    fn terms_contain_no_separators(text in "(\\PC|ª){0,40}") {
        for term in of(&text) {
            prop_assert!(!term.contains('ª'), "the index separates terms with it");
            prop_assert!(!term.is_empty());
            prop_assert!(!term.contains(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn ranges_are_in_order_and_only_bigrams_overlap(text in text(), language in language()) {
        let tokens = tokenize(&text, language);
        for pair in tokens.windows(2) {
            prop_assert!(pair[0].range.start < pair[1].range.start);
            let overlaps = pair[1].range.start < pair[0].range.end;
            let written = text.get(pair[0].range.clone()).unwrap_or_default();
            prop_assert!(!overlaps || written.contains(is_ideograph));
        }
    }

    #[test]
    fn each_term_visits_the_terms_of_tokenize(text in text(), other in text(), language in language()) {
        let mut visited = Vec::new();
        each_term([text.as_str(), &other], language, |term| visited.push(term.to_owned()));
        let tokens = tokenize(&text, language).into_iter().chain(tokenize(&other, language));
        prop_assert_eq!(visited, tokens.map(|token| token.term).collect::<Vec<_>>());
    }

    #[test]
    fn a_space_between_texts_separates_their_tokens(text in text(), other in text(), language in language()) {
        let both = tokenize(&format!("{text} {other}"), language);
        let (first, second) = (tokenize(&text, language), tokenize(&other, language));
        prop_assert_eq!(both.len(), first.len() + second.len());
        let terms = |tokens: &[Token]| tokens.iter().map(|it| it.term.clone()).collect::<Vec<_>>();
        prop_assert_eq!(terms(&both), [terms(&first), terms(&second)].concat());
    }

    #[test]
    fn composition_makes_no_difference(text in text(), language in language()) {
        let terms = |text: &str| tokenize(text, language).into_iter().map(|it| it.term).collect::<Vec<_>>();
        let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
        prop_assert_eq!(terms(&composed), terms(&decomposed));
    }

    #[test]
    fn folding_twice_is_folding_once(word in "[a-zA-Zà-ÿÀ-ßœŒłŁøØ'’0-9]{1,20}") {
        let once = folded(&word).into_owned();
        let is_plain = once.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        prop_assert!(is_plain, "{once}");
        prop_assert_eq!(folded(&once).into_owned(), once);
    }

    #[test]
    fn the_parts_of_an_identifier_are_the_identifier(word in "[a-zA-Z0-9]{1,20}") {
        let parts = parts(&word);
        prop_assert!(parts.is_empty() || (parts.len() > 1 && parts.concat() == word));
        prop_assert!(parts.iter().all(|part| !part.is_empty()));
    }

    #[test]
    fn variants_of_parts_of_a_text_are_variants_of_the_text(text in text(), other in text(), language in language()) {
        let both = variants([text.as_str(), &other], language);
        let mut each = variants([text.as_str()], language);
        each.extend(variants([other.as_str()], language));
        prop_assert_eq!(both, each);
    }

    #[test]
    fn unwanted_words_keep_their_places(text in text(), language in language()) {
        let all = tokenize(&text, language);
        let none = tokenize_matching(&text, language, |_| false);
        let places = |tokens: &[Token]| tokens.iter().map(|it| it.range.clone()).collect::<Vec<_>>();
        prop_assert_eq!(places(&none), places(&all));
        for (with, without) in all.iter().zip(&none) {
            prop_assert!(without.term.is_empty() || without.term == with.term);
        }
    }
}
