//! Texts with white space of several bytes, and letters of every size.

use proptest::prelude::*;

use super::*;

/// Everything that Unicode calls white space and people write.
const SPACES: [&str; 9] =
    [" ", "\u{a0}", "\u{3000}", "\u{2003}", "\u{202f}", "\u{2028}", "\u{85}", "\r\n", "\t"];

/// Regression: the beginning of a snippet is moved to the next word, and a space of several bytes
/// was taken for one byte. The snippet was then empty.
#[test]
fn words_may_be_separated_by_any_space() {
    for space in SPACES {
        for word in ["x", "é", "漢", "word"] {
            let text =
                format!("{}kettle{space}{}", format!("{word}{space}").repeat(60), "y ".repeat(9));
            let found = of(&text, &["kettle"]);
            assert_eq!(marked(&found), ["kettle"], "{word}{space:?}");
            assert!(found.text.starts_with('…'), "{word}{space:?}: {}", found.text);
            assert!(found.text.contains(&format!("{word} {word} kettle y y")), "{}", found.text);
        }
    }
}

#[test]
fn every_space_becomes_one_blank() {
    for space in SPACES {
        let found = of(&format!("{space}a{space}{space}tea{space}b{space}"), &["tea"]);
        assert_eq!(found.text, "a tea b", "{space:?}");
        assert_eq!(marked(&found), ["tea"], "{space:?}");
    }
}

/// The lead of 40 characters is counted in characters, whatever their size.
#[test]
fn the_lead_is_as_long_in_every_script() {
    for letter in ["a", "é", "漢", "😀"] {
        let text = format!("{} tea", letter.repeat(200));
        let found = of(&text, &["tea"]);
        let lead = found.text.split("tea").next().unwrap().chars().count();
        assert!((1..=42).contains(&lead), "{letter}: {lead}");
        assert_eq!(marked(&found), ["tea"], "{letter}");
    }
}

#[test]
fn a_text_of_spaces_has_an_empty_snippet() {
    for space in SPACES {
        let found = of(&space.repeat(500), &["tea"]);
        assert_eq!(found.matches, []);
        assert!(found.text.trim_matches('…').is_empty(), "{space:?}: {:?}", found.text);
    }
    assert_eq!(of("", &["tea"]), Snippet::default());
}

proptest! {
    /// Wherever a match stands and whatever surrounds it, it is shown and marked.
    #[test]
    fn a_match_is_always_shown(
        before in prop::collection::vec(prop::sample::select(&["x", "漢字", "é", "😀", "-", "1"][..]), 0..120),
        after in prop::collection::vec(prop::sample::select(&["y", "語", "ö", "."][..]), 0..120),
        spaces in prop::collection::vec(prop::sample::select(&SPACES[..]), 240),
    ) {
        let mut text = String::new();
        let mut spaces = spaces.iter();
        let mut add = |part: &str| {
            text.push_str(part);
            text.push_str(spaces.next().copied().unwrap_or(" "));
        };
        for part in &before {
            add(part);
        }
        add("kettle");
        for part in &after {
            add(part);
        }
        let found = of(&text, &["kettle"]);
        prop_assert_eq!(marked(&found), ["kettle"], "{:?}", found.text);
        prop_assert!(found.text.chars().count() <= CHARS_MAX + 2);
        prop_assert!(!found.text.chars().any(|it| it.is_whitespace() && it != ' '));
        prop_assert!(!found.text.contains("  "));
    }
}
