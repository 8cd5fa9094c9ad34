//! Words: case, accents, separators, identifiers.

mod golden;
mod hostile;
mod lexicon;
mod properties;
mod scripts;

use std::collections::HashSet;

use super::*;

const ENGLISH: Language = Language::English;

fn of(text: &str) -> Vec<String> {
    tokenize(text, ENGLISH).into_iter().map(|token| token.term).collect()
}

#[test]
fn words_lose_case_accents_and_suffixes() {
    assert_eq!(of("The Cafés were CONNECTED"), ["the", "cafe", "were", "connect"]);
    assert_eq!(of("Größe naïve"), ["gross", "naiv"]);
    assert_eq!(
        of("Łódź Smørrebrød Straße Æther İstanbul"),
        ["lodz", "smorrebrod", "strass", "aether", "istanbul"]
    );
    assert_eq!(of("user's don’t James's JAMES’S James"), ["user", "dont", "jame", "jame", "jame"]);
}

#[test]
fn everything_else_separates_words() {
    assert_eq!(of("foo-bar foo/bar.rs foo_bar"), ["foo", "bar", "foo", "bar", "rs", "foo", "bar"]);
    assert_eq!(of("v1.2.3 C++ #tag 'x'"), ["v1", "2", "3", "c", "tag", "x"]);
    assert_eq!(of(" \n\t…—"), Vec::<String>::new());
}

#[test]
fn scripts_without_spaces_become_bigrams() {
    assert_eq!(of("日本語 tea茶"), ["日本", "本語", "tea", "茶"]);
    assert_eq!(of("こんにちは"), ["こん", "んに", "にち", "ちは"]);
    let mut further = Vec::new();
    each_variant(Run::Ideographs, "日本語", ENGLISH, |term| further.push(term));
    assert_eq!(further, ["語"]);
}

#[test]
fn composed_and_decomposed_letters_are_the_same() {
    for text in ["한국어", "がぎぐ", "café", "日本語が"] {
        let decomposed: String = text.nfd().collect();
        assert_eq!(of(&decomposed), of(text), "{text}");
    }
    let decomposed: String = "한국".nfd().collect();
    assert_eq!(tokenize(&decomposed, ENGLISH)[0].range, 0..decomposed.len());
}

#[test]
fn the_word_after_an_elision_is_a_variant() {
    let further = |text: &str| {
        let mut found = Vec::new();
        each_variant(Run::Word, text, ENGLISH, |term| found.push(term));
        found
    };
    assert_eq!(further("l'école"), ["lecole", "ecol", "ecole"]);
    assert!(further("d’Artagnan").contains(&"artagnan".to_owned()));
    assert_eq!(further("don't"), Vec::<String>::new());
}

#[test]
fn tokens_have_ranges() {
    let text = "Ünder the 日本語!";
    for token in tokenize(text, ENGLISH) {
        let written = text.get(token.range.clone()).unwrap();
        assert_eq!(term(written, ENGLISH), token.term);
    }
}

#[test]
fn identifiers_have_parts() {
    let none: [&str; 0] = [];
    assert_eq!(parts("parseJson2"), ["parse", "Json", "2"]);
    assert_eq!(parts("HTTPServer"), ["HTTP", "Server"]);
    assert_eq!(parts("Tea"), none);
    assert_eq!(parts("tea"), none);
    assert_eq!(parts("TEA"), none);
    assert_eq!(parts("sha256"), ["sha", "256"]);
}

/// Returns whether a snippet of words with the term of this word shows the word.
fn is_stemmed_in_snippets(word: &str, language: Language) -> bool {
    let written = Prefix::of(word, language);
    let mut wanted = Prefix::of_words(&term(word, language), language);
    !has_prefix(word, language) || wanted.any(|prefix| prefix.is_like(written))
}

#[test]
fn irregular_forms_are_among_the_words_of_their_terms() {
    for (form, _) in irregular::forms() {
        assert!(is_stemmed_in_snippets(form, ENGLISH), "{form}");
    }
}

#[test]
fn long_words_are_truncated() {
    assert_eq!(of(&"x".repeat(100_000)), ["x".repeat(64)]);
    assert_eq!(of(&"é".repeat(100)), ["e".repeat(64)]);
}

#[test]
fn possessives_are_dropped_and_apostrophes_join() {
    for (text, expected) in [
        ("Ada's", "ada"),
        ("ADA'S", "ada"),
        ("Ada’s", "ada"),
        ("the students' books", "the student book"),
        ("rock 'n' roll", "rock n roll"),
        ("o'clock", "oclock"),
        ("'quoted'", "quot"),
        ("it's", "it"),
        ("s's", "s"),
        ("''", ""),
    ] {
        assert_eq!(of(text).join(" "), expected, "{text}");
    }
}

#[test]
fn numbers_and_versions_are_words() {
    for (text, expected) in [
        ("2026-11-15", "2026 11 15"),
        ("3.14", "3 14"),
        ("1,000", "1 000"),
        ("v2", "v2"),
        ("80°C", "80 c"),
        ("½", "12"),
        ("x²", "x2"),
        ("№ 5", "5"),
        ("50%", "50"),
        ("१२", "१२"),
    ] {
        assert_eq!(of(text).join(" "), expected, "{text}");
    }
}

#[test]
fn markdown_and_code_are_words_with_punctuation() {
    for (text, expected) in [
        ("**bold** _it_ `code`", "bold it code"),
        ("[link](https://example.com/a?b=c#d)", "link http exampl com a b c d"),
        ("[[Tea house#Pour|tea]]", "tea hous pour tea"),
        ("fn main() { let x = 3; }", "fn main let x 3"),
        ("user@example.com", "user exampl com"),
        ("C:\\dir\\file.txt", "c dir file txt"),
        ("#tag/sub-tag", "tag sub tag"),
        ("a|b|c", "a b c"),
        ("snake_case_name", "snake case name"),
        ("--flag=value", "flag valu"),
    ] {
        assert_eq!(of(text).join(" "), expected, "{text}");
    }
}

#[test]
fn identifiers_are_found_by_their_parts() {
    let variants = |text: &str| variants([text], ENGLISH).into_iter().collect::<Vec<_>>().join(" ");
    for (text, expected) in [
        ("parseJson2", "2 json pars parse"),
        ("HTTPServer", "http server"),
        ("XMLHttpRequest", "http request xml"),
        ("sha256", "256 sha"),
        ("iPhone15Pro", "15 i phone pro"),
        ("running", "running"),
        ("tea", ""),
        ("TEA", ""),
        ("Tea", ""),
        ("日本語", "語"),
        ("l'école", "ecol ecole lecole"),
    ] {
        assert_eq!(variants(text), expected, "{text}");
    }
}

#[test]
fn folding_is_the_same_for_all_spellings_of_a_letter() {
    for spellings in [
        "café cafe CAFÉ cafe\u{301} Cafe",
        "straße strasse STRASSE STRAẞE",
        "Ærø aero AERØ",
        "łódź lodz ŁÓDŹ",
        "ﬁne fine FINE",
        "ｆｕｌｌ full",
        "İzmir izmir Izmir",
        "mañana manana MAÑANA",
    ] {
        let folded: HashSet<_> = spellings.split(' ').map(|it| folded(it).into_owned()).collect();
        assert_eq!(folded.len(), 1, "{spellings}: {folded:?}");
    }
}
