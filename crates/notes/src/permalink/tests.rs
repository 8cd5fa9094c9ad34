//! Paths as permalinks.

use proptest::prelude::*;

use super::*;

#[test]
fn a_permalink_is_the_slug_of_a_path() {
    let cases = [
        ("/Projects/TeaHouse.md", "projects/tea-house"),
        ("/a_b c--d.md", "a-b-c-d"),
        ("/Don't Panic!.md", "dont-panic"),
        ("/Größe & Straße.md", "grosse-strasse"),
        ("/Ærø/Łódź Øl.md", "aero/lodz-ol"),
        ("/日本語 メモ.md", "日本語-メモ"),
        ("/Чай/Зелёный й.md", "чай/зелёный-й"),
        ("/हिन्दी.md", "हिन्दी"),
        ("/v1.2 Notes.md", "v1-2-notes"),
        ("/release-1.2", "release-1-2"),
        ("/data.json", "data"),
        ("/HTTPServer2Go.md", "httpserver2-go"),
        ("/.hidden", "hidden"),
        ("/!!!/a.md", "untitled/a"),
        ("/-a-/b-.md", "a/b"),
    ];
    for (text, expected) in cases {
        assert_eq!(permalink(text), expected, "{text}");
    }
    assert_eq!(numbered_permalink("a/b", 2), "a/b-2");
}

#[test]
fn extensions_are_short_and_have_a_letter() {
    for (name, stem) in [
        ("tea.md", "tea"),
        ("tea.markdown", "tea"),
        ("archive.tar.gz", "archive.tar"),
        ("v1.2", "v1.2"),
        ("v1.2b", "v1"),
        (".hidden", ".hidden"),
        ("a/.hidden", "a/.hidden"),
        ("tea.", "tea."),
        ("tea.verylongext", "tea.verylongext"),
        ("tea.m d", "tea.m d"),
        ("日本.md", "日本"),
        ("", ""),
    ] {
        assert_eq!(without_extension(name), stem, "{name}");
    }
}

#[test]
fn words_are_separated_by_single_dashes() {
    for (text, expected) in [
        ("Tea House", "tea-house"),
        ("teaHouse", "tea-house"),
        ("TeaHouse2Go", "tea-house2-go"),
        ("TEA", "tea"),
        ("tea -- house", "tea-house"),
        ("  tea  ", "tea"),
        ("tea_house", "tea-house"),
        ("tea's", "teas"),
        ("l’école", "lecole"),
        ("C++", "c"),
        ("50%", "50"),
        ("a/b", "a-b"),
        ("🫖", "untitled"),
        ("", "untitled"),
    ] {
        assert_eq!(slug(text), expected, "{text}");
    }
}

#[test]
fn latin_letters_become_ascii_and_others_stay() {
    for (text, expected) in [
        ("Ærøskøbing", "aeroskobing"),
        ("Œuvre", "oeuvre"),
        ("Straße", "strasse"),
        ("Þór", "thor"),
        ("Đà Nẵng", "da-nang"),
        ("Łódź", "lodz"),
        ("Ħal", "hal"),
        ("ısı", "isi"),
        ("ŋ", "n"),
        ("Ŧ", "t"),
        ("ĳs", "ijs"),
        ("ſ", "s"),
        ("Ñandú", "nandu"),
        ("Ελλάδα", "ελλάδα"),
        ("Москва", "москва"),
        ("שלום", "שלום"),
        ("مرحبا", "مرحبا"),
        ("हिन्दी", "हिन्दी"),
        ("日本", "日本"),
    ] {
        assert_eq!(slug(text), expected, "{text}");
        assert_eq!(slug(expected), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn slugs_are_stable_and_clean(text in any::<String>()) {
        let once = slug(&text);
        prop_assert!(!once.is_empty() && !once.contains("--") && !once.contains('/'));
        prop_assert!(!once.starts_with('-') && !once.ends_with('-'));
        prop_assert!(!once.contains(|letter: char| letter.is_ascii_uppercase()));
        prop_assert!(once.chars().all(|it| !it.is_ascii() || it.is_ascii_alphanumeric() || it == '-'));
    }

    #[test]
    fn a_permalink_has_as_many_segments_as_its_path(segments in prop::collection::vec("[a-zA-Z é茶!-]{1,6}", 1..5)) {
        let path = format!("/{}", segments.join("/"));
        prop_assert_eq!(permalink(&path).split('/').count(), segments.len());
    }

    #[test]
    fn numbered_permalinks_are_distinct(permalink in "[a-z]{1,5}", first in 1..1000_usize, second in 1..1000_usize) {
        let numbered = [first, second].map(|number| numbered_permalink(&permalink, number));
        prop_assert_eq!(numbered[0] == numbered[1], first == second);
    }
}
