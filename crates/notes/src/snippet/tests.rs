//! Which excerpt of a text is shown, and what is highlighted in it.

mod spaces;

use proptest::prelude::*;

use super::*;

const ENGLISH: &[Language] = &[Language::English];

fn of(text: &str, words: &[&str]) -> Snippet {
    let phrases: Vec<_> = words.iter().flat_map(|word| Phrase::spellings(word, ENGLISH)).collect();
    shown(text, &phrases)
}

fn shown(text: &str, phrases: &[Phrase]) -> Snippet {
    snippet(text, Language::English, &phrases.iter().collect::<Vec<_>>())
}

fn marked(snippet: &Snippet) -> Vec<&str> {
    snippet.matches.iter().filter_map(|range| snippet.text.get(range.clone())).collect()
}

#[test]
fn matches_are_shown_as_they_are_written() {
    let found = of("# Tea\n\nWe   like brewing\nGreen Teas here", &["tea", "brew"]);
    assert_eq!(found.text, "# Tea We like brewing Green Teas here");
    assert_eq!(marked(&found), ["Tea", "brewing", "Teas"]);
    assert_eq!(marked(&of("The men's club went home", &["go", "man"])), ["men's", "went"]);
}

#[test]
fn prefixes_and_parts_of_words_are_shown() {
    let text = format!("{} the organization calls parseJson2", "x ".repeat(400));
    let prefix = Phrase::prefix("organiz", ENGLISH);
    assert_eq!(marked(&shown(&text, &prefix)), ["organization"]);
    assert_eq!(marked(&of(&text, &["json"])), ["parseJson2"]);
    assert_eq!(marked(&of(&text, &["tea"])), [""; 0]);
}

#[test]
fn matches_do_not_overlap() {
    assert_eq!(marked(&of("green tea", &["tea", "green-tea", "teas"])), ["green tea"]);
    assert_eq!(marked(&of("日本語", &["日本", "本語"])), ["日本語"]);
}

#[test]
fn matches_are_found_in_the_language_of_the_text() {
    for (language, text, words, expected) in [
        (Language::German, "Zwei Häuser und eine Katze", ["haus", "Katzen"], ["Häuser", "Katze"]),
        (Language::French, "Les oiseaux de l'école", ["écoles", "oiseau"], ["oiseaux", "l'école"]),
        (Language::Russian, "Две книги о чае", ["книгу", "чай"], ["книги", "чае"]),
        (Language::Dutch, "Twee apen in huizen", ["aap", "huis"], ["apen", "huizen"]),
        (Language::Dutch, "Gelopen en gewerkt", ["lopen", "werken"], ["Gelopen", "gewerkt"]),
    ] {
        let phrases: Vec<_> =
            words.iter().flat_map(|word| Phrase::spellings(word, &[language])).collect();
        let found = snippet(text, language, &phrases.iter().collect::<Vec<_>>());
        assert_eq!(marked(&found), expected, "{text}");
    }
}

#[test]
fn the_densest_part_is_shown() {
    let far = format!("tea {} green tea ceremony {}", "x ".repeat(400), "y ".repeat(400));
    let found = of(&far, &["tea", "ceremony"]);
    assert!(found.text.starts_with('…') && found.text.ends_with('…'));
    assert_eq!(marked(&found), ["tea", "ceremony"]);
    assert!(found.text.chars().count() <= CHARS_MAX + 2);
}

#[test]
fn without_a_match_the_beginning_is_shown() {
    assert_eq!(of("a short text", &["tea"]).text, "a short text");
    assert_eq!(of("", &["tea"]), Snippet::default());
}

#[test]
fn a_snippet_begins_shortly_before_the_first_match() {
    let text = format!("{} tea {}", "word ".repeat(100), "word ".repeat(100));
    let found = of(&text, &["tea"]);
    let lead = found.text.split("tea").next().unwrap();
    assert!(lead.starts_with("…word"), "{lead}");
    assert!((LEAD_CHARS - 10..=LEAD_CHARS + 2).contains(&lead.chars().count()), "{lead}");
}

#[test]
fn an_ellipsis_marks_omitted_text() {
    for (before, after, starts, ends) in [
        ("", "", false, false),
        ("word ", "", false, false),
        (&*"word ".repeat(50), "", true, false),
        ("", &*" word".repeat(100), false, true),
        (&*"word ".repeat(50), &*" word".repeat(100), true, true),
    ] {
        let found = of(&format!("{before}tea{after}"), &["tea"]);
        assert_eq!((found.text.starts_with('…'), found.text.ends_with('…')), (starts, ends));
        assert_eq!(marked(&found), ["tea"]);
    }
}

#[test]
fn phrases_are_marked_whole() {
    let phrase = Phrase::quoted("green tea", ENGLISH);
    assert_eq!(marked(&shown("a green, tea and a green cup", &phrase)), ["green, tea"]);
    let phrase = Phrase::prefix("green te", ENGLISH);
    assert_eq!(marked(&shown("green teapots, green cups", &phrase)), ["green teapots"]);
}

#[test]
fn white_space_is_collapsed_around_matches() {
    let found = of("one\n\n  two\t\ttea\u{3000}three \n", &["two", "tea"]);
    assert_eq!(found.text, "one two tea three");
    assert_eq!(marked(&found), ["two", "tea"]);
}

#[test]
fn letters_of_several_bytes_are_marked_whole() {
    for (text, word, expected) in [
        ("Ein Café", "cafe", "Café"),
        ("緑茶を飲む", "緑茶", "緑茶"),
        ("cafe\u{301}s here", "café", "cafe\u{301}s"),
        ("🫖tea🫖", "tea", "tea"),
    ] {
        assert_eq!(marked(&of(text, &[word])), [expected], "{text}");
    }
}

#[test]
fn a_text_full_of_matches_is_shown_quickly() {
    let found = of(&"tea ".repeat(25_000), &["tea", "pot"]);
    assert!(found.matches.len() > 40 && found.text.ends_with('…'));
}

#[test]
fn a_word_without_spaces_is_cut() {
    let text = format!("{}tea", "x".repeat(1_000));
    assert_eq!(of(&text, &["tea"]).text.chars().count(), CHARS_MAX + 1);
    let text = format!("{} tea", "x".repeat(1_000));
    assert_eq!(of(&text, &["tea"]).text, "…tea");
}

proptest! {
    #[test]
    fn matches_lie_inside_the_snippet(text in "[a-cé日本 \n…]{0,600}", word in "[a-cé日]{1,3}") {
        let found = of(&text, &[&word]);
        for range in &found.matches {
            prop_assert!(found.text.get(range.clone()).is_some_and(|part| !part.is_empty()));
        }
    }

    #[test]
    fn snippets_are_short_and_taken_from_the_text(text in "[a-dé日 \n.]{0,600}", words in prop::collection::vec("[a-d]{1,3}", 0..4)) {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let found = of(&text, &words);
        prop_assert!(found.text.chars().count() <= CHARS_MAX + 2);
        prop_assert!(!found.text.contains(['\n', '\t']) && !found.text.contains("  "));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let inside = found.text.trim_matches('…').trim();
        prop_assert!(flat.contains(inside), "{:?}", found.text);
        let is_sorted = found.matches.is_sorted_by(|left, right| left.end <= right.start);
        prop_assert!(is_sorted, "{:?}", found.matches);
    }

    #[test]
    fn what_is_marked_has_a_term_of_the_query(text in "[a-c ]{0,200}", word in "[a-c]{2,3}") {
        let found = of(&text, &[&word]);
        for part in marked(&found) {
            prop_assert!(Phrase::spellings(&word, ENGLISH) == Phrase::spellings(part, ENGLISH), "{part}");
        }
    }
}
