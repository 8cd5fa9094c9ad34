//! Permalinks, identifiers, aliases, patterns.

use super::super::*;
use super::path;
use crate::model::{Directory, Id as _, MemoryId};

#[test]
fn a_permalink_is_the_slug_of_a_path() {
    let cases = [
        ("/Projects/TeaHouse.md", "projects/tea-house"),
        ("/a_b c--d.md", "a-b-c-d"),
        ("/Don't Panic!.md", "dont-panic"),
        ("/Größe & Straße.md", "grosse-strasse"),
        ("/Ærø/Łódź Øl.md", "aero/lodz-ol"),
        ("/日本語 メモ.md", "日本語-メモ"),
        ("/Чай/Зелёный й.md", "чай/зелёный-й"),
        ("/हिन्दी.md", "हिन्दी"),
        ("/v1.2 Notes.md", "v1-2-notes"),
        ("/release-1.2", "release-1-2"),
        ("/data.json", "data"),
        ("/HTTPServer2Go.md", "httpserver2-go"),
        ("/.hidden", "hidden"),
        ("/!!!/a.md", "untitled/a"),
        ("/-a-/b-.md", "a/b"),
    ];
    for (text, expected) in cases {
        assert_eq!(permalink(&path(text)), expected, "{text}");
    }
    assert_eq!(numbered_permalink("a/b", 2), "a/b-2");
}

#[test]
fn identifiers_are_told_apart() {
    let name = |text: &str| Reference::Name(text.to_owned());
    let id = MemoryId::from_bits(7);
    let parse = |text: &str| Identifier::parse(text).reference;
    assert_eq!(parse(&id.to_string()), Reference::Id(id));
    assert_eq!(parse(&format!("memory://{id}")), Reference::Id(id));
    assert_eq!(parse(" /a/b.md "), name("/a/b.md"));
    assert_eq!(parse("std::vector"), name("std::vector"));
    assert_eq!(parse("memory://a%20b/c"), name("a b/c"));
    assert_eq!(parse("docs/*"), Reference::Glob(Glob::new("docs/*")));

    let linked = Identifier::parse("[[work::Tea#S|t]]");
    assert_eq!((linked.store.as_deref(), linked.reference), (Some("work"), name("Tea")));
}

#[test]
fn signs_may_belong_to_a_name() {
    let readings = |text: &str| {
        let readings = Identifier::parse(text).readings().into_iter();
        let shown = |it: Identifier| {
            let store = it.store.map_or_else(String::new, |store| format!("<{store}>"));
            format!("{store}{}", it.reference.name().unwrap_or_default())
        };
        readings.map(shown).collect::<Vec<_>>()
    };
    assert_eq!(readings("C# tips"), ["C# tips"]);
    assert_eq!(readings("[[C# tips]]"), ["C# tips", "C"]);
    assert_eq!(readings("[[Issue #12|it]]"), ["Issue #12", "Issue"]);
    assert_eq!(readings("[[./C# tips]]"), ["./C# tips", "./C"]);
    assert_eq!(readings("[[C# tips.md]]"), ["C# tips.md"]);
    assert_eq!(readings("[[Rust :: notes]]"), ["Rust :: notes", "<Rust>notes"]);
    assert_eq!(readings("[[a ::b # c]]"), ["a ::b # c", "a ::b", "<a>b # c", "<a>b"]);
    assert_eq!(readings("[[C# std::x]]"), ["C# std::x", "C"]);
    assert_eq!(readings("[[C# tips#Use]]"), ["C# tips#Use", "C# tips", "C"]);
    assert_eq!(readings("[[trail::]]"), ["trail::"]);
    assert_eq!(readings("[[C#]]"), ["C#", "C"]);
    assert_eq!(readings("[[std::vector]]"), ["std::vector", "<std>vector"]);
    assert_eq!(readings("[[a::b#c|d]]"), ["a::b#c", "a::b", "<a>b#c", "<a>b"]);
    assert_eq!(readings("memory://z#s%20t"), ["z#s t", "z"]);
    assert_eq!(readings("memory://z%23s"), ["z#s"]);
    assert_eq!(readings("memory://#s"), ["#s"]);
    for (left, right) in [("C# tips", "C#tips"), ("Issue #12", "issue#12"), ("a # - b", "A#b")] {
        assert_eq!(alias_key(left), alias_key(right));
    }
}

#[test]
fn a_url_may_begin_with_a_store() {
    let split = |text: &str| {
        Identifier::parse(text).with_store().map(|(store, rest)| (store.to_owned(), rest))
    };
    let tea = Reference::Name("a/tea".to_owned());
    assert_eq!(split("memory://work/a/tea"), Some(("work".to_owned(), tea)));
    let glob = Reference::Glob(Glob::new("*"));
    assert_eq!(split("MEMORY://work/*"), Some(("work".to_owned(), glob)));
    for text in ["memory://tea", "work/tea", "memory://*/tea", "memory:///tea", "memory://work/"] {
        assert_eq!(split(text), None, "{text}");
    }
}

#[test]
fn names_can_be_paths() {
    let from = Directory::parse("/a/b/").unwrap();
    let paths = |name: &str| {
        let found = path_candidates(name, Some(&from));
        found.iter().map(MemoryPath::as_str).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(paths("/x/y.md"), "/x/y.md /x/y.md.md");
    assert_eq!(paths("x"), "/x /x.md");
    assert_eq!(paths("./x.md"), "/a/b/x.md /a/b/x.md.md");
    assert_eq!(paths("c/x.md"), "/a/b/c/x.md /a/b/c/x.md.md /c/x.md /c/x.md.md");
    assert_eq!(path_candidates("./x.md", None), [path("/x.md"), path("/x.md.md")]);
    assert_eq!(paths("../x"), "/a/x /a/x.md");
    assert_eq!(paths("../../../x"), "");
    assert_eq!(paths("e\u{301}"), "/é /é.md");
    assert_eq!(paths(""), "");
    assert_eq!(paths("a\u{0}b"), "");
}

#[test]
fn aliases_ignore_case_and_gaps() {
    for text in ["Tea House", "tea_house", "TEA-HOUSE", " tea - house_"] {
        assert_eq!(alias_key(text), "tea-house", "{text}");
    }
    assert_eq!(alias_key("Ünïcode 茶"), "ünïcode-茶");
}

#[test]
fn the_nearest_title_comes_first() {
    let from = Directory::parse("/a/b/").unwrap();
    let mut paths =
        ["/z/t.md", "/a/b/c/t.md", "/t.md", "/a/t.md", "/a/b/u/v/t.md", "/a/b/t.md"].map(path);
    paths.sort_by_key(|path| Nearness::new(&from, path));
    let texts = paths.each_ref().map(MemoryPath::as_str);
    assert_eq!(texts, ["/a/b/t.md", "/t.md", "/a/t.md", "/a/b/c/t.md", "/a/b/u/v/t.md", "/z/t.md"]);
}

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
