//! Values of the frontmatter, as they are read and as they are used.

use super::*;

fn field(yaml: &str) -> Value {
    let note = note(&format!("---\nfield: {yaml}\n---\n"));
    let found = note.metadata.into_iter().find(|(key, _)| key == "field");
    found.map(|(_, value)| value).expect("the field is read")
}

fn list(items: &[&str]) -> Value {
    Value::List(items.iter().map(|&item| Value::from(item)).collect())
}

/// Numbers, booleans and dates are kept as they are written.
#[test]
fn scalars_are_kept_as_written() {
    for text in ["5", "05", "1.50", "1e3", "true", "Yes", "2026-11-15", "0x1f", "12:30", "1_000"] {
        assert_eq!(field(text), Value::from(text), "{text}");
    }
    for text in ["null", "Null", "NULL", "~", ""] {
        assert_eq!(field(text), Value::Null, "{text:?}");
    }
    for (text, expected) in [
        ("\"null\"", "null"),
        ("'~'", "~"),
        ("''", ""),
        ("\"a\\tb\\u00e9\"", "a\tbé"),
        ("'it''s'", "it's"),
        ("a # comment", "a"),
        ("a#b", "a#b"),
        ("|\n  two\n  lines", "two\nlines\n"),
        (">-\n  one\n  line", "one line"),
        ("!!str 5", "5"),
    ] {
        assert_eq!(field(text), Value::from(expected), "{text:?}");
    }
}

#[test]
fn lists_and_maps_nest() {
    assert_eq!(field("[a, 'b, c', 5]"), list(&["a", "b, c", "5"]));
    assert_eq!(field("\n  - a\n  - b"), list(&["a", "b"]));
    assert_eq!(field("\n- a\n- b"), list(&["a", "b"]), "without indentation");
    assert_eq!(field("[]"), Value::List(Vec::new()));
    assert_eq!(field("{}"), Value::Map(Vec::new()));
    let map = field("{b: 1, a: {x: [y]}}");
    let Value::Map(entries) = &map else { panic!("{map:?}") };
    assert_eq!(entries.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(
        map.at("a").and_then(|it| it.at("x")).and_then(|it| it.at("0")),
        Some(&Value::from("y"))
    );
}

#[test]
fn values_are_looked_up_by_key_and_by_index() {
    let list = list(&["a", "b"]);
    assert_eq!(list.at("1"), Some(&Value::from("b")));
    for missing in ["2", "-1", "x", "", "1.0"] {
        assert_eq!(list.at(missing), None, "{missing:?}");
    }
    let map = Value::Map(vec![("1".to_owned(), Value::Null), ("a.b".to_owned(), Value::from("x"))]);
    assert_eq!(map.at("1"), Some(&Value::Null));
    assert_eq!(map.at("a.b"), Some(&Value::from("x")));
    assert_eq!(map.at("a"), None);
    assert_eq!(Value::from("text").at("0"), None);
    assert_eq!(Value::Null.at(""), None);
    assert_eq!(Value::from("x").as_text(), Some("x"));
    assert!([Value::Null, list, map].iter().all(|value| value.as_text().is_none()));
}

/// A tag may be written in many ways; each is listed once, in the order of the text.
#[test]
fn tags_of_every_form() {
    for (yaml, expected) in [
        ("[a, b]", "a b"),
        ("a, b", "a b"),
        ("'#a, #b'", "a b"),
        ("['#a', '# b', '##c']", "a b c"),
        ("[a, a, A]", "a A"),
        ("[a, [b, [c]]]", "a b c"),
        ("['a, b', c]", "a b c"),
        ("[a, '', '#', ' ']", "a"),
        ("{a: b}", ""),
        ("", ""),
        ("5", "5"),
        ("[tea/green, 日本]", "tea/green 日本"),
    ] {
        let note = note(&format!("---\ntags: {yaml}\n---\n"));
        assert_eq!(note.tags.join(" "), expected, "{yaml}");
    }
}

/// An alias may contain a comma, unlike a tag.
#[test]
fn aliases_of_every_form() {
    for (yaml, expected) in [
        ("Tea, green", "Tea, green"),
        ("[Tea, green]", "Tea|green"),
        ("['Tea, green', x]", "Tea, green|x"),
        ("'  two   words  '", "two words"),
        ("[a, [b], {c: d}, '', 5]", "a|5"),
        ("{a: b}", ""),
        ("", ""),
    ] {
        let note = note(&format!("---\naliases: {yaml}\n---\n"));
        assert_eq!(note.aliases.join("|"), expected, "{yaml}");
    }
}

#[test]
fn a_title_of_every_form() {
    for (yaml, expected) in [
        ("Tea", "Tea"),
        ("'  Tea  '", "Tea"),
        ("5", "5"),
        ("[Tea, time]", "Tea, time"),
        ("[]", "Heading"),
        ("", "Heading"),
        ("''", "Heading"),
        ("{a: b}", "Heading"),
    ] {
        let note = note(&format!("---\ntitle: {yaml}\n---\n# Heading\n"));
        assert_eq!(note.title, expected, "{yaml}");
    }
}

/// The remark says what is wrong and where, and the block stays part of the text.
#[test]
fn what_is_no_frontmatter_is_text_with_a_remark() {
    for (yaml, line, reason) in [
        ("- a\n- b", 2, "it is not a mapping"),
        ("just text", 2, "it is not a mapping"),
        ("a: &x 1\nb: *x", 3, "it uses an alias"),
        ("a: 1\nb: [", 4, "it is not valid YAML"),
        ("? [a]\n: b", 2, "a key is a list or a map"),
    ] {
        let text = format!("---\n{yaml}\n---\nbody\n");
        let note = note(&text);
        assert_eq!(note.body, 0..text.len(), "{yaml}");
        let [remark] = note.remarks.as_slice() else { panic!("{yaml}: {:?}", note.remarks) };
        assert!(remark.text.contains(reason), "{yaml}: {}", remark.text);
        assert!(remark.line.abs_diff(line) <= 1, "{yaml}: line {}", remark.line);
    }
}

#[test]
fn nothing_but_comments_is_an_empty_frontmatter() {
    for yaml in ["", "# a comment\n", "\n\n", "~\n", "# a\n\n# b\n"] {
        let text = format!("---\n{yaml}---\nbody");
        let note = note(&text);
        assert_eq!(text.get(note.body), Some("body"), "{yaml:?}");
        assert_eq!((note.metadata.len(), note.remarks.len()), (0, 0), "{yaml:?}");
    }
}
