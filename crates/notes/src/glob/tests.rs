//! What patterns match.

use proptest::prelude::*;

use super::*;

#[test]
fn patterns() {
    let fits = |pattern: &str, text: &str| Glob::new(pattern).matches(text);
    for (pattern, text) in [
        ("docs/*", "/docs/a/b.md"),
        ("*", ""),
        ("*.md", "a.md"),
        ("/a?c", "abc"),
        ("a*b*c", "a-b-b-c"),
        ("日*", "日本"),
        ("**/x", "a/x"),
        ("a*", "a"),
    ] {
        assert!(fits(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in
        [("docs/*", "doc/a"), ("a?c", "ac"), ("*.md", "a.md.txt"), ("", "a"), ("A", "a")]
    {
        assert!(!fits(pattern, text), "{pattern} {text}");
    }
    let hostile = Glob::new(&"*a".repeat(512));
    assert!(!hostile.matches(&"a".repeat(511)));
}

/// Matches by trying every length for every star: simple, and slow.
fn naive(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=text.len()).any(|size| naive(rest, &text[size..])),
        (['?', rest @ ..], [_, after @ ..]) => naive(rest, after),
        ([wanted, rest @ ..], [found, after @ ..]) => wanted == found && naive(rest, after),
        ([], [_, ..]) | ([_, ..], []) => false,
    }
}

#[test]
fn a_leading_slash_is_ignored_on_both_sides() {
    for (pattern, text) in [("/a/*", "a/b"), ("a/*", "/a/b"), ("///a", "/a"), ("/", "")] {
        assert!(Glob::new(pattern).matches(text), "{pattern} {text}");
    }
    assert_eq!(Glob::new("/docs/*").as_str(), "docs/*");
}

#[test]
fn the_rest_of_a_long_pattern_is_ignored() {
    let long = "a".repeat(CHARS_MAX);
    assert!(Glob::new(&format!("{long}b")).matches(&long));
    assert_eq!(Glob::new(&"é".repeat(5_000)).as_str().chars().count(), CHARS_MAX);
}

#[test]
fn case_and_composition_matter() {
    assert!(!Glob::new("Tea*").matches("tea.md"));
    assert!(!Glob::new("caf\u{e9}").matches("cafe\u{301}"));
    assert!(Glob::new("caf?").matches("caf\u{e9}"));
}

proptest! {
    #[test]
    fn patterns_match_what_a_naive_matcher_says(pattern in "[ab*?é]{0,8}", text in "[abé]{0,10}") {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = naive(&letters(&pattern), &letters(&text));
        prop_assert_eq!(Glob::new(&pattern).matches(&text), expected);
    }

    #[test]
    fn a_text_matches_itself_and_with_any_part_as_a_star(text in "[a-zé日][a-z/é日]{0,19}", place in 0..20_usize) {
        prop_assert!(Glob::new(&text).matches(&text));
        let letters: Vec<_> = text.chars().collect();
        let (before, after) = letters.split_at(place.min(letters.len()));
        let starred = |part: &[char]| part.iter().collect::<String>();
        prop_assert!(Glob::new(&(starred(before) + "*")).matches(&text));
        prop_assert!(Glob::new(&("*".to_owned() + &starred(after))).matches(&text));
    }
}
