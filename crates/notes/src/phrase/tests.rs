//! The terms of typed text.

use proptest::prelude::*;

use super::*;

const ENGLISH: &[Language] = &[Language::English];

#[test]
fn compound_words_are_truncated_by_pieces() {
    let check = |text: &str, room, kept: &str, counts: (usize, usize)| {
        let found = truncated(text, room);
        assert_eq!((found.kept, (found.kept_count, found.omitted_count)), (kept, counts));
    };
    check("foo-bar/baz", 3, "foo-bar/baz", (3, 0));
    check("foo-bar/baz.", 2, "foo-bar", (2, 1));
    check("parseJson tea", 2, "parseJson", (2, 1));
    check("parseJson", 1, "", (0, 2));
    check("日本語の", 3, "日本語", (3, 1));
    check("…", 1, "…", (1, 0));
    check("…", 0, "", (0, 1));
    let hash = "a1".repeat(20_000);
    check(&hash, 1, &hash, (1, 0));
    assert_eq!(spelled_out(&hash, Language::English).len(), 1);
}

fn shown(phrases: Vec<Phrase>) -> Vec<String> {
    let shown = |phrase: Phrase| {
        let star = if phrase.last == TermMatch::Prefix { "*" } else { "" };
        phrase.terms.join(" ") + star
    };
    phrases.into_iter().map(shown).collect()
}

#[test]
fn a_word_has_the_spellings_of_an_identifier() {
    for (word, expected) in [
        ("tea", &["tea"][..]),
        ("Connections", &["connect"]),
        ("parseJson", &["parsejson", "pars json"]),
        ("parse_json", &["pars json", "parsejson"]),
        ("foo-bar/baz.rs", &["foo bar baz rs", "foobar baz rs"]),
        ("日本語", &["日本 本語"]),
        ("茶", &["茶*"]),
        ("tea茶", &["tea 茶"]),
    ] {
        assert_eq!(shown(Phrase::spellings(word, ENGLISH)), expected, "{word}");
    }
}

#[test]
fn each_language_adds_its_stems() {
    let languages = &[Language::German, Language::English];
    assert_eq!(shown(Phrase::spellings("Häuser", languages)), ["hauser", "haus"]);
    assert_eq!(shown(Phrase::spellings("Rust", languages)), ["rust"]);
    assert_eq!(shown(Phrase::quoted("kleine Häuser", languages)), ["klein hauser", "klein haus"]);
    assert_eq!(
        shown(Phrase::pieces("Katzen-Häuser", languages)),
        ["katzen", "katz", "hauser", "haus"]
    );
    assert_eq!(
        shown(Phrase::prefix("Häuser im Wal", languages)),
        ["hauser im wal*", "haus im wal*"]
    );
    assert_eq!(Phrase::spellings("tea", &[]), []);
}

#[test]
fn pieces_are_the_terms_of_a_compound() {
    assert_eq!(shown(Phrase::pieces("foo-bars", ENGLISH)), ["foo", "bar"]);
    assert_eq!(shown(Phrase::pieces("日本語", ENGLISH)), ["日本", "本語"]);
    assert_eq!(Phrase::pieces("teas", ENGLISH), []);
}

#[test]
fn prefixes_keep_the_ending_of_the_last_word() {
    assert_eq!(shown(Phrase::prefix("Connections organizatio", ENGLISH)), ["connect organizatio*"]);
    assert_eq!(shown(Phrase::prefix("t", ENGLISH)), ["t"]);
    assert_eq!(shown(Phrase::prefix("日", ENGLISH)), ["日*"]);
}

#[test]
fn a_phrase_matches_its_terms_in_order() {
    let exact = Phrase { terms: vec!["green".to_owned(), "te".to_owned()], last: TermMatch::Exact };
    let prefix = Phrase { last: TermMatch::Prefix, ..exact.clone() };
    for (terms, is_exact, is_prefix) in [
        (&["green", "te"][..], true, true),
        (&["green", "tea"], false, true),
        (&["greens", "te"], false, false),
        (&["te", "green"], false, false),
        (&["green"], false, false),
        (&["green", "te", "te"], false, false),
    ] {
        assert_eq!((exact.matches(terms), prefix.matches(terms)), (is_exact, is_prefix));
    }
}

#[test]
fn punctuation_is_not_a_word() {
    assert_eq!(Phrase::spellings("--", ENGLISH), []);
    assert_eq!(Phrase::quoted("", ENGLISH), []);
    assert_eq!(Phrase::prefix("!", ENGLISH), []);
    assert_eq!(shown(Phrase::prefix("tea \u{301}", ENGLISH)), ["tea"]);
}

proptest! {
    #[test]
    fn a_word_is_found_by_itself(word in "[a-zA-Zéß日本0-9_-]{1,16}", language in prop::sample::select(Language::ALL.to_vec())) {
        let tokens = tokenize(&word, language);
        let terms: Vec<_> = tokens.iter().map(|token| token.term.as_str()).collect();
        let found = Phrase::spellings(&word, &[language]);
        prop_assert_eq!(found.is_empty(), terms.is_empty());
        let is_found = found.iter().any(|phrase| phrase.matches(&terms));
        prop_assert!(is_found || terms.is_empty() || found[0].last == TermMatch::Prefix);
    }

    #[test]
    fn more_languages_find_more(text in "[a-zA-Zäöüéßñ' -]{1,24}") {
        let each: Vec<_> =
            Language::ALL.iter().flat_map(|language| Phrase::quoted(&text, &[*language])).collect();
        let all = Phrase::quoted(&text, &Language::ALL);
        prop_assert!(each.iter().all(|phrase| all.contains(phrase)));
        prop_assert!(all.iter().all(|phrase| each.contains(phrase)));
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        prop_assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn a_longer_word_has_the_prefix_of_a_shorter_one(word in "[a-z]{2,10}", rest in "[a-z]{0,5}") {
        let longer = format!("{word}{rest}");
        for phrase in Phrase::prefix(&word, ENGLISH) {
            prop_assert!(phrase.matches(&[&longer]));
        }
    }

    #[test]
    fn truncation_counts_every_piece(text in "[a-zA-Z0-9 日本._-]{0,40}", room in 0..12_usize) {
        let cut = truncated(&text, room);
        prop_assert!(text.starts_with(cut.kept) && cut.kept_count <= room.max(1));
        let whole = truncated(&text, usize::MAX);
        prop_assert_eq!(whole.kept_count, cut.kept_count + cut.omitted_count);
        prop_assert_eq!(whole.kept, text.as_str());
    }
}
