//! Edits of frontmatter fields: what changes, and what must not.

use super::*;
use crate::Note;

fn texts(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|&text| Value::from(text)).collect())
}

#[test]
fn a_field_is_replaced_in_place() {
    for (before, after) in [
        ("a: 1", "a: x"),
        ("a: 'one'  # why", "a: x"),
        ("a:\n  - 1\n  - 2", "a: x"),
        ("a: [1, 2]", "a: x"),
        ("a: |\n  one\n  two", "a: x"),
        ("a: >-\n  one\n\n  two", "a: x"),
        ("a:\n  b: 1\n  c: 2", "a: x"),
        ("a: {b: 1}", "a: x"),
        ("a:", "a: x"),
        ("\"a\": 1", "a: x"),
        ("a: \"one\n  two\"", "a: x"),
    ] {
        for (first, last) in
            [("", ""), ("first: 0\n", ""), ("", "\nlast: 9"), ("# c\n", "\n# c\nz: 1")]
        {
            let text = |field: &str| format!("---\n{first}{field}{last}\n---\nBody\n");
            let edited = set(&text(before), "a", Some(Value::from("x")));
            assert_eq!(edited, Ok(text(after)), "{before:?} in {first:?} {last:?}");
        }
    }
}

#[test]
fn a_field_is_removed_with_its_lines() {
    for field in ["a: 1\n", "a:\n  - 1\n  - 2\n", "a: |\n  one\n\n  two\n", "a: {b: 1}\n"] {
        let text = format!("---\nfirst: 0\n{field}last: 9\n---\nBody\n");
        assert_eq!(set(&text, "a", None), Ok("---\nfirst: 0\nlast: 9\n---\nBody\n".to_owned()));
    }
    let only = "---\na: 1\n---\nBody\n";
    assert_eq!(set(only, "a", None), Ok("---\n---\nBody\n".to_owned()));
}

#[test]
fn several_fields_change_at_once() {
    let text = "---\na: 1\nb: 2\n---\n";
    let changes = [
        ("b".to_owned(), None),
        ("c".to_owned(), Some(texts(&["x", "y"]))),
        ("a".to_owned(), Some(Value::from("z"))),
    ];
    let expected = "---\na: z\nc:\n  - x\n  - y\n---\n";
    assert_eq!(set_metadata(text, &changes), Ok(expected.to_owned()));
    let twice =
        [("a".to_owned(), Some(Value::from("x"))), ("a".to_owned(), Some(Value::from("y")))];
    assert_eq!(set_metadata("", &twice), Ok("---\na: y\n---\n".to_owned()));
    assert_eq!(set_metadata(text, &[]), Ok(text.to_owned()));
}

#[test]
fn an_indented_block_stays_indented() {
    let text = "---\n  a: 1\n  b: 2\n---\n";
    assert_eq!(
        set(text, "c", Some(Value::from("3"))),
        Ok("---\n  a: 1\n  b: 2\n  c: 3\n---\n".to_owned())
    );
}

#[test]
fn known_fields_are_set_like_all_others() {
    let text = "Body\n";
    for (key, value) in [("title", "Tea: a guide"), ("type", "guide"), ("permalink", "a/b")] {
        let edited = set(text, key, Some(Value::from(value))).unwrap();
        let note = Note::parse("/x.md", &edited);
        let found = match key {
            "title" => Some(note.title),
            "type" => Some(note.kind),
            _ => note.permalink,
        };
        assert_eq!(found.as_deref(), Some(value));
    }
    let edited = set(text, "tags", Some(texts(&["tea", "a b"]))).unwrap();
    assert_eq!(Note::parse("/x.md", &edited).tags, ["tea", "a b"]);
}

#[test]
fn keys_are_quoted_where_yaml_needs_it() {
    for key in ["a b", "a: b", "#a", "- a", "'", "", "null", "日本", "a.b"] {
        let edited = set("Body", key, Some(Value::from("x"))).unwrap();
        let note = Note::parse("/x.md", &edited);
        assert_eq!(note.metadata, [(key.to_owned(), Value::from("x"))], "{edited}");
        assert_eq!(set(&edited, key, None).unwrap(), "---\n---\nBody");
    }
}

#[test]
fn refused_edits_say_why() {
    for (text, reason) in [
        ("---\na: b: c\n---\n", "not valid YAML"),
        ("---\ntext\n---\n", "not a mapping"),
        ("---\n{a: 1, b: 2}\n---\n", "lines of their own"),
        ("---\n? a\n: 1\n---\n", "lines of their own"),
    ] {
        let error = set(text, "a", Some(Value::from("x"))).unwrap_err().to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
    }
}
