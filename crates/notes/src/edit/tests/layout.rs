//! Edits keep the line terminators, marks and gaps that a text has.

use proptest::prelude::*;

use super::*;

type Edit = fn(&str) -> Result<String, EditError>;

fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn windows(text: &str) -> String {
    unix(text).replace('\n', "\r\n")
}

/// Fails if a text mixes line terminators.
#[track_caller]
fn assert_crlf(text: &str) {
    assert_eq!(windows(text), text, "{text:?}");
}

/// Regression: after a frontmatter without a line terminator, the gap was a bare line feed.
#[test]
fn text_before_the_body_has_the_terminators_of_the_note() {
    assert_eq!(prepend("---\r\nx: y\r\n---", "b"), "---\r\nx: y\r\n---\r\nb\r\n");
    assert_eq!(prepend("---\r\nx: y\r\n---\r\na", "b"), "---\r\nx: y\r\n---\r\nb\r\na");
    assert_eq!(prepend("a\r\n", "b"), "b\r\na\r\n");
}

#[test]
fn every_edit_of_a_windows_text_is_the_edit_of_the_same_unix_text() {
    let text = windows(NOTE);
    let set = |text: &str| {
        let changes =
            [("status".to_owned(), Some(Value::from("open"))), ("title".to_owned(), None)];
        set_metadata(text, &changes)
    };
    let edits: [(&str, Edit); 6] = [
        ("append", |text| Ok(append(text, "end"))),
        ("prepend", |text| Ok(prepend(text, "start"))),
        ("replace", |text| replace_section(text, "Pour", "Fast.")),
        ("before", |text| insert_before_section(text, "Drink", "Wait.")),
        ("after", |text| insert_after_section(text, "Drink", "Cold?")),
        ("empty", |text| replace_section(text, "Drink", "")),
    ];
    for (name, edit) in edits {
        let (on_windows, on_unix) = (edit(&text).unwrap(), edit(NOTE).unwrap());
        assert_eq!(unix(&on_windows), on_unix, "{name}");
        if name != "append" {
            assert_crlf(&on_windows);
        }
    }
    assert_eq!(unix(&set(&text).unwrap()), set(NOTE).unwrap());
    assert_crlf(&set(&text).unwrap());
}

#[test]
fn a_byte_order_mark_stays_first() {
    let text = "\u{feff}# Tea\n\nhot\n";
    let changes = [("status".to_owned(), Some(Value::from("open")))];
    for edited in [
        append(text, "x"),
        prepend(text, "x"),
        set_metadata(text, &changes).unwrap(),
        replace_section(text, "Tea", "cold").unwrap(),
        insert_before_section(text, "Tea", "x").unwrap(),
    ] {
        assert!(edited.starts_with('\u{feff}'), "{edited:?}");
        assert_eq!(edited.matches('\u{feff}').count(), 1, "{edited:?}");
        assert!(crate::Note::parse("/a.md", &edited).headings.iter().any(|it| it.text == "Tea"));
    }
}

#[test]
fn sections_are_found_in_every_style() {
    for (text, section, expected) in [
        ("Tea\n===\nold\n", "Tea", "Tea\n===\nnew\n"),
        ("Tea\n---\nold\n", "## Tea", "Tea\n---\nnew\n"),
        ("# Tea #\nold\n", "Tea", "# Tea #\nnew\n"),
        ("#  Green   tea\nold\n", "green tea", "#  Green   tea\nnew\n"),
        ("# *Tea* `x`\nold\n", "Tea x", "# *Tea* `x`\nnew\n"),
        ("# Tea", "Tea", "# Tea\nnew\n"),
        ("# Tea\n```\n# Not\n```\n# Next\n", "Tea", "# Tea\nnew\n\n# Next\n"),
    ] {
        assert_eq!(replace_section(text, section, "new").as_deref(), Ok(expected), "{text:?}");
    }
}

/// A heading in a list or a quote is part of it, and begins no section.
#[test]
fn headings_inside_of_blocks_begin_no_section() {
    let text = "# Tea\n\n- # In a list\n\n> # In a quote\n\nend\n# Last\n";
    for inside in ["In a list", "In a quote"] {
        assert!(matches!(replace_section(text, inside, "x"), Err(EditError::NoSection { .. })));
    }
    assert_eq!(replace_section(text, "Tea", "new").unwrap(), "# Tea\n\nnew\n\n# Last\n");
}

#[test]
fn the_frontmatter_is_no_section() {
    let text = "---\n# a comment\ntitle: Tea\n---\n# Tea\nold\n";
    assert!(replace_section(text, "a comment", "x").is_err());
    let edited = replace_section(text, "Tea", "new").unwrap();
    assert_eq!(edited, "---\n# a comment\ntitle: Tea\n---\n# Tea\nnew\n");
}

#[test]
fn errors_read_as_sentences() {
    for (error, text) in [
        (EditError::NothingToFind, "the text to find is empty"),
        (EditError::WrongCount { found: 0, expected: 1 }, "the text to find is not in the note"),
        (
            EditError::WrongCount { found: 3, expected: 1 },
            "the text to find is in the note 3 times, not 1",
        ),
        (
            EditError::NoSection { section: "x".to_owned(), headings: Vec::new() },
            "the note has no section `x`; it has no headings at all",
        ),
        (
            EditError::SeveralSections { section: "x".to_owned(), lines: vec![2, 9] },
            "several sections are called `x`, on lines 2, 9",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["# A", "## B", "text", "", "- x", "C", "===", "é 日"]);
    let end = prop::sample::select(vec!["\n", "\r\n"]);
    (prop::collection::vec(line, 0..12), end)
        .prop_map(|(lines, end)| lines.iter().flat_map(|line| [*line, end]).collect::<String>())
}

proptest! {
    /// What is added is there, and what was there stays.
    #[test]
    fn adding_text_takes_nothing_away(text in lines(), content in "[a-z]{1,6}") {
        for edited in [append(&text, &content), prepend(&text, &content)] {
            prop_assert!(edited.contains(&content) && edited.contains(&text));
            prop_assert!(edited.len() <= text.len() + content.len() + 2);
        }
    }

    /// A section that is replaced by what it holds keeps its text.
    #[test]
    fn replacing_a_section_twice_is_replacing_it_once(text in lines(), content in "[a-z]{1,6}") {
        if let Ok(once) = replace_section(&text, "B", &content) {
            prop_assert_eq!(replace_section(&once, "B", &content), Ok(once.clone()));
            prop_assert_eq!(windows(&once) == once, windows(&text) == text, "{:?}", once);
        }
    }
}
