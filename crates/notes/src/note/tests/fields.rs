//! Frontmatter, titles and the body.

use super::note;
use crate::Value;
use crate::tokenizer::Language;

#[test]
fn known_fields_are_parsed() {
    let note = note(
        "---\ntitle: Green tea\ntype: guide\ntags: [tea, '#green', tea]\npermalink: drinks/tea\n\
         created: 2026-06-10\nmodified: 2026-06-11T10:00:00+02:00\n---\nText\n",
    );
    assert_eq!((note.title.as_str(), note.kind.as_str()), ("Green tea", "guide"));
    assert_eq!(note.tags, ["tea", "green"]);
    assert_eq!(note.permalink.as_deref(), Some("drinks/tea"));
    assert_eq!(note.created, "2026-06-10T00:00:00Z".parse().ok());
    assert_eq!(note.modified, "2026-06-11T08:00:00Z".parse().ok());
    assert_eq!((note.metadata, note.remarks), (vec![], vec![]));
}

#[test]
fn the_title_falls_back_to_the_first_heading_and_the_file() {
    assert_eq!(note("text").title, "tea");
    assert_eq!(note("## Two\n\n# One `x` *y* [z](u)\n\n# Other").title, "One x y z");
    assert_eq!(note("One\n===\n").title, "One");
    assert_eq!(note("---\ntitle:\n---\n# One").title, "One");
    assert_eq!(note("```\n# no\n```\n").title, "tea");
    assert_eq!(note("---\ntitle: [a, 2, b]\n---\n").title, "a, 2, b");
    assert_eq!(note("---\ntitle: 2026\n---\n").title, "2026");
    assert_eq!(note("---\ntitle: \" a\\n  b\\tc \"\n---\n").title, "a b c");
    assert_eq!(note("---\n# a comment\ntitle: [a\n---\n\ntext\n").title, "tea");
    assert_eq!(note("---\n# a comment\ntitle: [a\n---\n\n# One\n").title, "One");
    assert_eq!(note("---\ntitle: {a: b}\n---\n").title, "tea");
}

#[test]
fn tags_are_a_list_or_a_text() {
    let tags = |yaml: &str| note(&format!("---\ntags: {yaml}\n---\n")).tags.join("|");
    assert_eq!(tags("a, b,c d"), "a|b|c d");
    assert_eq!(tags("'a, #b, c d,,'"), "a|b|c d");
    assert_eq!(tags("[a, null, ~, 3, '#b']"), "a|3|b");
    assert_eq!(tags("\n  - a\n  - '#b'\n  -\n"), "a|b");
    assert_eq!(tags("#a"), "");
}

#[test]
fn everything_else_is_metadata() {
    let note = note(
        "---\nstatus: draft # for now\ncount: 3\ndone: true\nnone:\nquoted: 'null'\nfolded: >\n  a\n  b\n\
         kept: |\n  a\n  b\nlist: [1, [2]]\nmap:\n  a: 1\n  b: {c: d}\ncreated: soon\n---\n",
    );
    let text = Value::from;
    let expected = [
        ("status", text("draft")),
        ("count", text("3")),
        ("done", text("true")),
        ("none", Value::Null),
        ("quoted", text("null")),
        ("folded", text("a b\n")),
        ("kept", text("a\nb\n")),
        ("list", Value::List(vec![text("1"), Value::List(vec![text("2")])])),
        (
            "map",
            Value::Map(vec![
                ("a".to_owned(), text("1")),
                ("b".to_owned(), Value::Map(vec![("c".to_owned(), text("d"))])),
            ]),
        ),
        ("created", text("soon")),
    ];
    assert_eq!(note.metadata, expected.map(|(key, value)| (key.to_owned(), value)));
    let map = &note.metadata[8].1;
    assert_eq!(map.at("b").and_then(|it| it.at("c")).and_then(Value::as_text), Some("d"));
    assert_eq!(note.metadata[7].1.at("1").and_then(|it| it.at("0")), Some(&text("2")));
}

#[test]
fn an_invalid_block_is_text() {
    let cases = [
        ("a: b: c", "not valid YAML"),
        ("just text", "not a mapping"),
        ("- a\n- b", "not a mapping"),
        ("a: [1", "not valid YAML"),
        ("a: &b c\nd: *b", "alias"),
        ("? [a]\n: b", "a key is a list"),
        ("a: \"b", "not valid YAML"),
    ];
    for (yaml, reason) in cases {
        let text = format!("---\n{yaml}\n---\n\n- [x y] found\n");
        let note = note(&text);
        assert_eq!(note.body, 0..text.len(), "{yaml}");
        assert_eq!(note.remarks.len(), 1, "{yaml}");
        assert!(note.remarks[0].text.contains(reason), "{yaml}: {}", note.remarks[0].text);
        assert_eq!(note.observations.len(), 1, "{yaml}");
    }
}

#[test]
fn the_last_of_repeated_fields_wins() {
    let note = note("---\na: 1\nb: 2\na: 3\n---\n");
    assert_eq!(note.metadata[0], ("a".to_owned(), Value::from("3")));
    assert_eq!((note.metadata.len(), note.remarks[0].line), (2, 4));
}

#[test]
fn where_the_body_begins() {
    let body = |text: &str| text.get(note(text).body).unwrap().to_owned();
    assert_eq!(body("---\na: b\n---\nBody\n"), "Body\n");
    assert_eq!(body("---\r\na: b\r\n---\r\nBody"), "Body");
    assert_eq!(body("---\na: b\n..."), "");
    assert_eq!(body("---\n---\nBody"), "Body");
    assert_eq!(body("---\na: b\n"), "---\na: b\n");
    assert_eq!(body("\n---\na: b\n---\n"), "\n---\na: b\n---\n");
    assert_eq!(body("\u{feff}---\na: b\n---\nBody"), "Body");
    assert_eq!(body("\u{feff}Body"), "Body");
    assert_eq!(body(""), "");
    assert_eq!(body("---"), "---");
}

#[test]
fn tags_in_the_text_count() {
    let tags = |text: &str| note(text).inline_tags.join("|");
    assert_eq!(
        tags("Paid. #invoice/2026 and #tea, (#cup)\n\n## About #heading\n"),
        "invoice/2026|tea|cup|heading"
    );
    assert_eq!(tags("- a #list\n- uses [[A]] #related\n\n> #quoted\n"), "list|related|quoted");
    // Tags of the frontmatter and of observations are kept there.
    assert_eq!(tags("---\ntags: [tea]\n---\n#tea #cup #cup\n\n- [fact] hot #green\n"), "cup");
    for none in
        ["# Heading\n", "`#code`", "```\n#code\n```\n", "a#b", "issue #12", "\\#no", "[[A#b]]"]
    {
        assert_eq!(tags(none), "", "{none}");
    }
}

#[test]
fn aliases_are_alternative_names() {
    let aliases = |yaml: &str| note(&format!("---\n{yaml}\n---\n")).aliases.join("|");
    assert_eq!(
        aliases("aliases: [Green tea, 'Sencha, first flush', 7]"),
        "Green tea|Sencha, first flush|7"
    );
    assert_eq!(aliases("aliases:\n  - A\n  - ~\n  - {b: c}"), "A");
    assert_eq!(aliases("alias: Sencha"), "Sencha");
    assert_eq!(aliases("aliases:"), "");
    assert_eq!(note("---\naliases: [A]\n---\n").metadata.len(), 1, "searches may filter by it");
}

#[test]
fn the_language_is_named_or_detected() {
    let text = "Der Kessel steht in der Küche, aber er ist kaputt.";
    let language = |yaml: &str| note(&format!("---\n{yaml}\n---\n{text}\n")).language;
    assert_eq!(note(text).language, Language::German);
    assert_eq!(note("").language, Language::English);
    assert_eq!(language("lang: fr"), Language::French);
    assert_eq!(language("language: pt-BR"), Language::Portuguese);
    assert_eq!(language("lang: [xx, Dutch]"), Language::Dutch);
    // Anything that is not a language is ignored.
    assert_eq!(language("language: rust"), Language::German);
    assert_eq!(language("lang:"), Language::German);
    assert_eq!(language("title: The tea of the house is what it was"), Language::German);
}
