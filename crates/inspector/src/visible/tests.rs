use super::*;

fn shown(text: &str) -> String {
    view(text).into_string()
}

#[test]
fn ordinary_writing_stays_as_it_is() {
    let texts = [
        "plain\r\ntext\twith tabs\n",
        "<b>&amp; \"quotes\"</b>".trim_matches(|_| false),
        "👩‍👩‍👧 ❤️ 1️⃣ ©️ \u{845b}\u{e0100}",
        "می‌خواهم क्‍ष",
        "Ελληνικά, 日本語, Ñandú, e\u{301}",
    ];
    for text in texts {
        assert_eq!(hidden(text).characters_count, 0, "{text:?}");
        assert!(!shown(text).contains("hidden-char"), "{text:?}");
    }
}

#[test]
fn a_plain_text_has_the_code_points_of_hidden_characters() {
    assert_eq!(plain("tea\u{202e}dm.\u{200b}<b>"), "tea⟨U+202E⟩dm.⟨U+200B⟩<b>");
    assert_eq!(plain("\u{e0041}"), "⟨U+E0041⟩");
    assert_eq!(plain("10\u{a0}km, 👩‍👩‍👧"), "10\u{a0}km, 👩‍👩‍👧");
}

#[test]
fn every_kind_of_hidden_character_becomes_a_badge_with_its_code() {
    let cases = [
        ('\u{200b}', "ZERO WIDTH SPACE U+200B"),
        ('\u{202e}', "RIGHT-TO-LEFT OVERRIDE U+202E"),
        ('\u{ad}', "SOFT HYPHEN U+00AD"),
        ('\u{feff}', "ZERO WIDTH NO-BREAK SPACE U+FEFF"),
        ('\u{1b}', "CONTROL CHARACTER U+001B"),
        ('\r', "CONTROL CHARACTER U+000D"),
        ('\u{85}', "CONTROL CHARACTER U+0085"),
        ('\u{3164}', "HANGUL FILLER U+3164"),
        ('\u{fe0f}', "VARIATION SELECTOR U+FE0F"),
        ('\u{200d}', "ZERO WIDTH JOINER U+200D"),
        ('\u{e0001}', "TAG CHARACTER U+E0001"),
    ];
    for (character, title) in cases {
        let text = format!("a{character}b");
        assert_eq!(hidden(&text).characters_count, 1, "{title}");
        let shown = shown(&text);
        assert!(shown.contains(&format!("title=\"{title}\"")), "{shown}");
        assert!(!shown.contains(character), "{title}");
        assert!(shown.starts_with('a') && shown.ends_with('b'), "{shown}");
    }
}

#[test]
fn tag_characters_are_shown_as_what_a_model_reads() {
    let secret: String =
        "rm -rf <x>".chars().filter_map(|it| char::from_u32(u32::from(it) + 0xe_0000)).collect();
    let shown = shown(&format!("hello{secret}!"));
    assert!(shown.contains("tags: rm -rf &lt;x&gt;</span>!"), "{shown}");
    assert_eq!(hidden(&secret).characters_count, 10);
}

#[test]
fn lookalikes_of_a_space_are_shown_but_warn_of_nothing() {
    let text = "10\u{a0}km\u{3000}x";
    assert_eq!(hidden(text), Hidden::default());
    assert!(shown(text).contains("NO-BREAK SPACE U+00A0"));
}

#[test]
fn runs_share_a_badge() {
    assert!(shown(&"\u{200b}".repeat(3)).contains(">U+200B × 3</span>"));
    let pair = "\u{200b}\u{200c}".repeat(10_000);
    let shown = shown(&pair);
    assert_eq!(shown.matches("<span").count(), 1);
    assert!(shown.contains("title=\"20000 hidden characters\""));
    assert!(shown.len() < pair.len() * 3, "{}", shown.len());
}

#[test]
fn comments_are_marked_also_if_they_never_end() {
    let text = "a <!-- one --> b <!--> c\u{200b}";
    assert_eq!(hidden(text), Hidden { characters_count: 1, comments_count: 2 });
    let shown = shown(text);
    assert!(shown.contains(
        "<mark class=\"hidden-text\" title=\"HTML comment\">&lt;!-- one --&gt;</mark> b"
    ));
    assert!(shown.ends_with("</span></mark>"), "{shown}");
}

#[test]
fn a_chain_of_variation_selectors_is_hidden_text() {
    let text = "❤\u{fe0f}\u{fe0f}\u{e0101}\u{e0102}";
    assert_eq!(hidden(text).characters_count, 3);
}
