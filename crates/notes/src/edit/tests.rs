//! Edits of notes.

mod layout;
mod metadata;
mod properties;
mod sections;

use super::*;

const NOTE: &str = "---\ntitle: Tea\n---\n# Tea\n\nIntro\n\n## Pour\n\nSlowly.\n\n### Detail\n\nx\n\n## Drink\nHot\n";

#[test]
fn text_is_added_at_both_ends() {
    assert_eq!(append("a", "b"), "a\nb");
    assert_eq!(append("a\n", "b\n"), "a\nb\n");
    assert_eq!(append("", "b"), "b");
    assert_eq!(append("a\r\nb", "c"), "a\r\nb\r\nc");
    assert_eq!(prepend("---\nx: y\n---\na", "b"), "---\nx: y\n---\nb\na");
    assert_eq!(prepend("---\nx: y\n---", "b"), "---\nx: y\n---\nb\n");
    assert_eq!(prepend("a", "b\n"), "b\na");
    assert_eq!(prepend("\u{feff}a", "b"), "\u{feff}b\na");
}

#[test]
fn a_replacement_checks_the_count() {
    assert_eq!(find_replace("a b a", "a", "c", 2), Ok("c b c".to_owned()));
    let wrong = |found, expected| Err(EditError::WrongCount { found, expected });
    assert_eq!(find_replace("a b a", "a", "c", 1), wrong(2, 1));
    assert_eq!(find_replace("a", "x", "c", 1), wrong(0, 1));
    assert_eq!(find_replace("a", "x", "c", 0), wrong(0, 0));
    assert_eq!(find_replace("a", "", "c", 1), Err(EditError::NothingToFind));
}

#[test]
fn a_section_ends_at_the_next_heading() {
    let edited = replace_section(NOTE, "## Pour", "Fast.").unwrap();
    assert_eq!(edited, NOTE.replace("Slowly.", "Fast."));
    let edited = replace_section(NOTE, "pour", "## Pour\nFast.\n\n").unwrap();
    assert_eq!(edited, NOTE.replace("Slowly.", "Fast."));
    let edited = replace_section(NOTE, "Drink", "Cold\n\nwith ice").unwrap();
    assert_eq!(edited, NOTE.replace("Hot", "Cold\n\nwith ice"));
    let emptied = replace_section(NOTE, "Detail", "").unwrap();
    assert_eq!(emptied, NOTE.replace("### Detail\n\nx\n\n", "### Detail\n\n"));
    assert_eq!(replace_section("# A", "A", "b"), Ok("# A\nb\n".to_owned()));
    assert_eq!(replace_section("A\n===\nb", "A", "c"), Ok("A\n===\nc\n".to_owned()));
    assert_eq!(
        replace_section("# A\r\nb\r\n# C\r\n", "A", "x"),
        Ok("# A\r\nx\r\n\r\n# C\r\n".to_owned())
    );
}

#[test]
fn text_goes_before_and_after_a_heading() {
    let edited = insert_before_section(NOTE, "Drink", "## Wait\n\n3 min\n").unwrap();
    assert_eq!(edited, NOTE.replace("## Drink", "## Wait\n\n3 min\n\n## Drink"));
    let edited = insert_after_section(NOTE, "Drink", "Now").unwrap();
    assert_eq!(edited, NOTE.replace("## Drink\n", "## Drink\nNow\n"));
    assert_eq!(insert_before_section("\u{feff}# A", "A", "b"), Ok("\u{feff}b\n\n# A".to_owned()));
    assert_eq!(insert_after_section("# A", "A", "b"), Ok("# A\nb\n".to_owned()));
}

#[test]
fn an_ambiguous_section_is_refused() {
    let error = replace_section(NOTE, "# Pour", "x").unwrap_err();
    assert!(error.to_string().contains("`## Pour`"), "{error}");
    let error = replace_section("# A\n\n## A\n", "A", "x").unwrap_err();
    assert_eq!(error.to_string(), "several sections are called `A`, on lines 1, 3");
    assert!(replace_section("# A\n\n## A\n", "## A", "x").is_ok());
    assert!(replace_section("```\n# A\n```\n- # A\n> # A\n", "A", "x").is_err());
}

fn set(text: &str, key: &str, value: Option<Value>) -> Result<String, EditError> {
    set_metadata(text, &[(key.to_owned(), value)])
}

#[test]
fn a_field_changes_and_nothing_else() {
    let text = "---\n# about\ntitle: 'Tea'   # odd\nlist:\n  - a\n  - b\n\n# next\nend: |\n  x\n\n  y\n---\nBody: x\n";
    let text_value = |text: &str| Some(Value::from(text));
    assert_eq!(set(text, "title", text_value("Pot")), Ok(text.replace("'Tea'   # odd", "Pot")));
    assert_eq!(
        set(text, "list", text_value("c")),
        Ok(text.replace("list:\n  - a\n  - b", "list: c"))
    );
    assert_eq!(set(text, "list", None), Ok(text.replace("list:\n  - a\n  - b\n", "")));
    assert_eq!(set(text, "end", None), Ok(text.replace("end: |\n  x\n\n  y\n", "")));
    let added = set(text, "tags", Some(Value::List(vec!["a: b".into(), "c".into()])));
    assert_eq!(added, Ok(text.replace("  y\n---", "  y\ntags:\n  - \"a: b\"\n  - c\n---")));
    assert_eq!(set(text, "missing", None), Ok(text.to_owned()));
}

#[test]
fn a_note_without_frontmatter_gets_one() {
    let value = Some(Value::from("x"));
    assert_eq!(set("Body", "a", value.clone()), Ok("---\na: x\n---\nBody".to_owned()));
    assert_eq!(
        set("\u{feff}Body\r\n", "a", value),
        Ok("\u{feff}---\r\na: x\r\n---\r\nBody\r\n".to_owned())
    );
    assert_eq!(set("Body", "a", None), Ok("Body".to_owned()));
}

#[test]
fn invalid_frontmatter_is_left_alone() {
    for text in
        ["---\na: b: c\n---\n", "---\n{a: b}\n---\n", "---\nx\n---\n", "---\na: 1\na: 2\n---\n"]
    {
        let error = set(text, "a", Some(Value::from("x"))).unwrap_err();
        assert!(matches!(error, EditError::Frontmatter { .. }), "{text}");
    }
}

#[test]
fn every_value_round_trips_through_yaml() {
    let texts = [
        "",
        " a ",
        "null",
        "~",
        "yes",
        "- x",
        "a: b",
        "a #b",
        "#b",
        "'",
        "\"",
        "\\",
        "é\n\t\u{7}\u{2028}",
        "@a",
        "[x",
        "{x",
        "*x",
        "&x",
        "!x",
        "%x",
        "1.5",
        "-1",
        "日本",
        "a\r\nb",
        "?",
        "x:",
        "2026-01-01",
        "---",
    ];
    let list = Value::List(texts.map(Value::from).to_vec());
    let map = Value::Map(texts.map(|text| (format!("k{text}"), Value::from(text))).to_vec());
    let empty =
        Value::List(vec![Value::List(vec![]), Value::Map(vec![]), Value::Null, list.clone()]);
    for value in [list, map.clone(), empty, Value::List(vec![map])] {
        let text = set("Body", "field", Some(value.clone())).unwrap();
        assert_eq!(crate::Note::parse("/x.md", &text).metadata, [("field".to_owned(), value)]);
    }
}

#[test]
fn a_value_nested_too_deep_is_refused() {
    let deep = (0..100).fold(Value::Null, |value, _| Value::List(vec![value]));
    assert!(set("Body", "a", Some(deep)).is_err());
}
