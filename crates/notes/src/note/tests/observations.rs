//! Observations: list items with a category.

use super::note;

/// Returns each observation as `category|text|tags|context`.
fn observations(text: &str) -> Vec<String> {
    let shown = |it: &super::Observation| {
        let context = it.context.as_deref().unwrap_or("-");
        format!("{}|{}|{}|{context}", it.category, it.text, it.tags.join(","))
    };
    note(text).observations.iter().map(shown).collect()
}

#[test]
fn a_list_item_with_a_category() {
    assert_eq!(
        observations("- [method] Pour slowly #tea #slow (from the tin)"),
        ["method|Pour slowly #tea #slow|tea,slow|from the tin"]
    );
    for marker in ["-", "*", "+", "1.", "12)"] {
        assert_eq!(observations(&format!("{marker} [a b] text")), ["a b|text||-"], "{marker}");
    }
}

#[test]
fn only_list_items_are_observations() {
    assert!(observations("[a] text #tag\n\n# [b] text #tag\n\n| [c] x |\n|---|\n").is_empty());
}

#[test]
fn checkboxes_and_time_codes_are_not_categories() {
    for text in ["[ ]", "[x]", "[X]", "[-]", "[?]", "[→]", "[12:30]", "[1:02:03]", "[]", "[  ]"] {
        assert!(observations(&format!("- {text} water the tea")).is_empty(), "{text}");
    }
    for text in [
        "[12:30-13:00]",
        "[12:30 PM]",
        "[9:05am – 10:00am]",
        "[00:01:02,500]",
        "[00:01:02,500 --> 00:01:04,000]",
        "[^1]",
        "[^note]",
    ] {
        assert!(observations(&format!("- {text} water the tea")).is_empty(), "{text}");
    }
    assert_eq!(observations("- [12:30 lunch] soup"), ["12:30 lunch|soup||-"]);
    for text in ["[a](b) c", "[a]b c", "[a]", "[[a]] b", "[a(b)] c", "\\[a] b", "[a][b] c"] {
        assert!(observations(&format!("- {text}")).is_empty(), "{text}");
    }
    assert_eq!(observations("- [1] one"), ["1|one||-"]);
    assert_eq!(observations("- [茶] 好"), ["茶|好||-"]);
}

#[test]
fn code_blocks_hold_no_observations() {
    for text in ["- ```\n  [a] text\n  ```", "-     [a] text", "- ~~~\n  [a] text\n  ~~~\n  more"] {
        assert!(observations(text).is_empty(), "{text}");
    }
    assert_eq!(observations("- [a] `code` text"), ["a|`code` text||-"]);
}

#[test]
fn the_whole_item_is_kept() {
    assert_eq!(
        observations("- [a] one\n  two\nthree (four\n  five)\n- [b] six\n\n  seven\n"),
        ["a|one two three||four five", "b|six\nseven||-"]
    );
    assert_eq!(observations("> - [a] one\n>   two\n"), ["a|one two||-"]);
}

#[test]
fn nested_lists_are_items_of_their_own() {
    assert_eq!(
        observations("- [a] one\n  - [b] two\n    1. [c] three\n- [d] four"),
        ["a|one||-", "b|two||-", "c|three||-", "d|four||-"]
    );
}

#[test]
fn the_context_is_balanced_and_at_the_end() {
    let cases = [
        ("x (a (b) c)", "x||a (b) c"),
        ("x (a) y", "x (a) y||-"),
        ("x :( (a)", "x :(||a"),
        ("x) (a)", "x)||a"),
        ("call f(x)", "call f(x)||-"),
        ("see [docs](https://example.com)", "see [docs](https://example.com)||-"),
        ("see [docs](a.md) (b)", "see [docs](a.md)||b"),
        ("x (`)` and a)", "x||`)` and a"),
        ("x \\(a\\)", "x \\(a\\)||-"),
        ("x ()", "x||-"),
        ("(only this)", "(only this)||-"),
        ("x (a", "x (a||-"),
    ];
    for (text, expected) in cases {
        assert_eq!(observations(&format!("- [k] {text}")), [format!("k|{expected}")], "{text}");
    }
}

#[test]
fn tags_are_words_that_begin_with_a_number_sign() {
    let tags = |text: &str| note(&format!("- [k] {text}")).observations[0].tags.join(" ");
    assert_eq!(tags("#one#two, #three. (#four) #a/b #ü #one"), "one two three four a/b ü");
    assert_eq!(tags("C# x#y https://example.com/#z `#code` \\#no [[A#B]] [a](#b) # #"), "");
    assert_eq!(tags("Ada&#39;s http://x/?q=#frag http://x?#y 5%#z \u{201c}#a\u{201d} x,#b"), "a b");
    assert_eq!(tags("#v1.2 #日本語、 #🫖"), "v1.2 日本語 🫖");
}

#[test]
fn lines_are_counted_in_the_whole_text() {
    let found = note("---\ntitle: x\n---\n\n- [a] one\n  - [b] two\n").observations;
    assert_eq!(found.iter().map(|it| it.line).collect::<Vec<_>>(), [5, 6]);
}
