//! Which parts of markdown are running text.

use super::note;

/// Returns the tags of a text, which are recognized in running text only.
fn tags(text: &str) -> String {
    note(text).inline_tags.join(" ")
}

/// Returns the headings as `level text`.
fn headings(text: &str) -> Vec<String> {
    note(text).headings.iter().map(|it| format!("{} {}", it.level, it.text)).collect()
}

#[test]
fn running_text_is_everywhere_but_in_code() {
    for (text, expected) in [
        ("a #t", "t"),
        ("# a #t", "t"),
        ("a #t\n===\n", "t"),
        ("- #t", "t"),
        ("1. #t", "t"),
        ("- a\n  - #t", "t"),
        ("> #t", "t"),
        ("> > #t", "t"),
        ("> - #t", "t"),
        ("| a #t | b #u |\n|---|---|\n| #v | |\n", "t u v"),
        ("*a #t* **#u** ~~#v~~", "t u v"),
        ("[a #t](b)", ""),
        ("a[^1]\n\n[^1]: #t", "t"),
        ("a<br>#t", "t"),
        ("<div>\n#t\n</div>", "t"),
        ("a  \n#t", "t"),
        ("a\\\n#t", "t"),
        ("`#t`", ""),
        ("``#t` #u``", ""),
        ("    #t", ""),
        ("```\n#t\n```", ""),
        ("~~~rust\n#t\n~~~", ""),
        ("```\n#t", ""),
        ("- ```\n  #t\n  ```", ""),
        ("> ```\n> #t\n> ```", ""),
        ("\\#t", ""),
    ] {
        assert_eq!(tags(text), expected, "{text:?}");
    }
}

#[test]
fn headings_of_both_styles() {
    for (text, expected) in [
        ("# A", "1 A"),
        ("###### A", "6 A"),
        ("## A ##", "2 A"),
        ("A\n=", "1 A"),
        ("A\n-", "2 A"),
        ("A\nB\n===", "1 A B"),
        ("# A *b* `c` [d](e) ![f](g)", "1 A b c d f"),
        ("# A [[B|c]]", "1 A [[B|c]]"),
        ("# A\\*", "1 A*"),
        ("# A &amp; B", "1 A & B"),
        ("#", "1 "),
        ("#\tA", "1 A"),
        ("> # A", "1 A"),
        ("- # A", "1 A"),
    ] {
        assert_eq!(headings(text), [expected], "{text:?}");
    }
    for text in ["####### A", "#A", "\\# A", "    # A", "```\n# A\n```", "a\n\n---"] {
        assert!(headings(text).is_empty(), "{text:?}");
    }
}

#[test]
fn ranges_point_into_the_source() {
    let text = "---\nx: y\n---\n# Ä\n\n> - uses\n>   [[B]] é\n>\n>   [c](d.md) [[E|f]]\n\n| [[G]] |\n|---|\n";
    let note = note(text);
    let written = |range: &std::ops::Range<usize>| text.get(range.clone()).unwrap();
    let links: Vec<_> = note.links.iter().map(|it| (it.line, written(&it.range))).collect();
    assert_eq!(links, [(7, "[[B]]"), (9, "[c](d.md)"), (9, "[[E|f]]"), (11, "[[G]]")]);
    assert_eq!(written(&note.headings[0].range).trim_end(), "# Ä");
}

#[test]
fn paragraphs_of_an_item_belong_to_it() {
    let text = "- [k] one\n\n  two\n\n  - [l] three\n\n  four\n- [m] five\n";
    let found: Vec<_> = note(text).observations.into_iter().map(|it| it.text).collect();
    assert_eq!(found, ["one\ntwo\nfour", "three", "five"]);
}

#[test]
fn html_and_entities_are_text() {
    let found = note("- [k] a &lt; b <b>c</b> <!-- d --> e\n").observations;
    assert_eq!(found[0].text, "a &lt; b <b>c</b> <!-- d --> e");
}
