//! Tags, stop words, and the stems of each language.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::tokenizer::{stems, tokenize};

/// For each language, inflected forms with the same stem, one word per line.
const FORMS: [(Language, &str); 18] = [
    (Language::English, "brew brews brewed brewing\nnote notes noted\ngo went gone"),
    (Language::Czech, "hrad hradu hrady hradem\nžena ženy ženě ženu\nkniha knihy knihu"),
    (Language::Danish, "bil biler bilen bilerne\nhus huset huse husene\nrejse rejser rejsen"),
    (Language::Dutch, "huis huizen\nlopen loopt\nboek boeken boekje"),
    (
        Language::Finnish,
        "talo talon talossa talot\nkirja kirjan kirjat kirjassa\nauto autoa autossa",
    ),
    (
        Language::French,
        "maison maisons\nchanter chantait\nécole écoles l'école L’École\nnational nationale nationaux",
    ),
    (
        Language::German,
        "Haus Häuser Hauses Häusern\nKatze Katzen\nlaufen laufe\nschön schöne schöner\nGröße Größen GRÖSSE",
    ),
    (Language::Greek, "σπίτι σπίτια σπιτιού\nδρόμος δρόμοι δρόμους δρόμου"),
    (Language::Hungarian, "ház házak házban házat\nkönyv könyvek könyvet\nautó autók"),
    (
        Language::Italian,
        "casa case\nlibro libri\nparlare parlano parlava\namico amici l'amico\nacqua dell’acqua",
    ),
    (Language::Norwegian, "bil biler bilen bilene\nhus huset husene\nbok boken"),
    (Language::Polish, "dom domu domy domem\nkobieta kobiety kobietą\nksiążka książki książkę"),
    (Language::Portuguese, "casa casas\nlivro livros\nfalar falava falamos\ncriança crianças"),
    (Language::Romanian, "casă case casele\ncarte cărți cărții"),
    (Language::Russian, "книга книги книгу книгой\nдом дома домом\nкрасивый красивая красивые"),
    (Language::Spanish, "casa casas\nlibro libros\nhablar hablamos hablaba\nnación naciones"),
    (Language::Swedish, "bil bilar bilen bilarna\nhus huset husen\nflicka flickor"),
    (Language::Ukrainian, "книга книги книгу книгою\nмісто міста містом"),
];

#[test]
fn inflected_forms_find_each_other() {
    for (language, words) in FORMS {
        for forms in words.lines() {
            let found: HashSet<_> =
                forms.split(' ').flat_map(|it| stems(it, &[language])).collect();
            assert_eq!(found.len(), 1, "{language:?} {forms}: {found:?}");
        }
    }
}

#[test]
fn different_words_have_different_stems() {
    for (language, words) in FORMS {
        let firsts = words.lines().filter_map(|forms| forms.split(' ').next());
        let found: HashSet<_> = firsts.flat_map(|word| stems(word, &[language])).collect();
        assert_eq!(found.len(), words.lines().count(), "{language:?}: {found:?}");
    }
}

#[test]
fn case_and_composition_make_no_difference() {
    use unicode_normalization::UnicodeNormalization as _;
    for (language, words) in FORMS {
        for word in words.split_whitespace() {
            let decomposed: String = word.nfd().collect();
            assert_eq!(stems(&decomposed, &[language]), stems(word, &[language]), "{word}");
            let lower = word.to_lowercase();
            assert_eq!(stems(&lower, &[language]), stems(word, &[language]), "{word}");
        }
    }
}

#[test]
fn a_word_has_a_stem_for_each_language_that_finds_another() {
    let languages = [Language::German, Language::English, Language::French];
    assert_eq!(stems("connections", &languages), ["connect", "connection"]);
    assert_eq!(stems("Katzen", &languages), ["katzen", "katz"]);
    assert_eq!(stems("rust", &languages), ["rust"]);
    assert_eq!(stems("v2", &languages), ["v2"]);
    assert_eq!(stems("\u{301}", &languages), [""; 0]);
    assert_eq!(stems("tea", &[]), [""; 0]);
}

#[test]
fn non_words_are_unchanged() {
    for language in Language::ALL {
        for word in ["v2", "sha256", "日本", &"s".repeat(41), "is"] {
            let expected: Vec<_> = tokenize(word, Language::English);
            assert_eq!(tokenize(word, language), expected, "{language:?} {word}");
        }
    }
}

#[test]
fn languages_are_known_by_their_tags() {
    for (tag, language) in [
        ("en", Language::English),
        ("de", Language::German),
        ("DE-at", Language::German),
        (" deu ", Language::German),
        ("German", Language::German),
        ("pt_BR", Language::Portuguese),
        ("nb-NO", Language::Norwegian),
        ("nn", Language::Norwegian),
        ("zh", Language::English),
    ] {
        let found = Language::from_tag(tag);
        assert_eq!(found, (tag != "zh").then_some(language), "{tag}");
    }
    for tag in ["", "-", "d", "rust", "deutschland"] {
        assert_eq!(Language::from_tag(tag), None, "{tag}");
    }
}

#[test]
fn tags_are_read_back_and_belong_to_one_language() {
    let mut seen = HashSet::new();
    for (place, language) in Language::ALL.into_iter().enumerate() {
        assert_eq!(language as usize, place, "the order of `ALL` is that of the enum");
        assert_eq!(Language::from_tag(language.tag()), Some(language));
        assert!(language.tags().iter().all(|tag| seen.insert(*tag)), "{language:?}");
    }
}

#[test]
fn stop_words_are_sorted_and_in_lower_case() {
    for language in Language::ALL {
        let words = language.stop_words();
        assert!(words.is_sorted_by(|left, right| left < right), "{language:?}");
        assert!(words.iter().all(|word| word.to_lowercase() == *word), "{language:?}");
        assert!((50..160).contains(&words.len()), "{language:?}: {}", words.len());
    }
}

proptest! {
    #[test]
    fn every_word_has_a_stem_in_every_language(word in "\\PC{1,45}|[a-zà-ÿ'’]{1,20}|[а-яёіїєґ]{1,20}|[α-ωά-ώ]{1,20}") {
        for language in Language::ALL {
            for token in tokenize(&word, language) {
                prop_assert!(!token.term.is_empty() && token.term.len() <= 64);
                prop_assert!(word.get(token.range).is_some());
            }
        }
    }

    #[test]
    fn tokens_stand_at_the_same_places_in_every_language(text in "[a-zA-Zäéßñæøå0-9 '’.,日本-]{0,60}") {
        let places = |language| -> Vec<_> {
            tokenize(&text, language).into_iter().map(|token| token.range).collect()
        };
        let english = places(Language::English);
        for language in Language::ALL {
            prop_assert_eq!(&places(language), &english);
        }
    }
}
