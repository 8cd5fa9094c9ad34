//! Identifiers, paths and aliases.

use proptest::prelude::*;

use super::*;

use crate::{Glob, Identifier, Proximity, Reference, alias_key, path_candidates};

#[test]
fn identifiers_are_classified() {
    let name = |text: &str| Reference::Name(text.to_owned());
    let id = "mem_011111111111111111111119";
    let parse = |text: &str| Identifier::parse(text).reference;
    assert_eq!(parse(id), Reference::Id(id.to_owned()));
    assert_eq!(parse(&format!("memory://{id}")), Reference::Id(id.to_owned()));
    for text in ["mem_01", "mem_01short", "memver_011111111111111111111119", &format!("{id}9")] {
        assert_eq!(parse(text), name(text));
    }
    assert_eq!(parse(" /a/b.md "), name("/a/b.md"));
    assert_eq!(parse("std::vector"), name("std::vector"));
    assert_eq!(parse("memory://a%20b/c"), name("a b/c"));
    assert_eq!(parse("docs/*"), Reference::Glob(Glob::new("docs/*")));

    let linked = Identifier::parse("[[work::Tea#S|t]]");
    assert_eq!((linked.store.as_deref(), linked.reference), (Some("work"), name("Tea")));
}

#[test]
fn separators_may_belong_to_a_name() {
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
        Identifier::parse(text).split_store().map(|(store, rest)| (store.to_owned(), rest))
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
    let paths = |name: &str| path_candidates(name, Some("/a/b/")).join(" ");
    assert_eq!(paths("/x/y.md"), "/x/y.md /x/y.md.md");
    assert_eq!(paths("x"), "/x /x.md");
    assert_eq!(paths("./x.md"), "/a/b/x.md /a/b/x.md.md");
    assert_eq!(paths("c/x.md"), "/a/b/c/x.md /a/b/c/x.md.md /c/x.md /c/x.md.md");
    assert_eq!(path_candidates("./x.md", None), ["/x.md", "/x.md.md"]);
    assert_eq!(paths("../x"), "/a/x /a/x.md");
    assert_eq!(paths("../../../x"), "");
    assert_eq!(paths("e\u{301}"), "/é /é.md");
    assert_eq!(paths(""), "");
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
    let mut paths = ["/z/t.md", "/a/b/c/t.md", "/t.md", "/a/t.md", "/a/b/u/v/t.md", "/a/b/t.md"];
    paths.sort_by_key(|path| Proximity::new("/a/b/", path));
    assert_eq!(paths, ["/a/b/t.md", "/t.md", "/a/t.md", "/a/b/c/t.md", "/a/b/u/v/t.md", "/z/t.md"]);
}

#[test]
fn identifiers_of_every_form() {
    let id = "mem_01abcdefghABCDEFGH123456";
    for (text, expected) in [
        ("tea", "Name(tea)"),
        ("  tea  ", "Name(tea)"),
        ("/a/tea.md", "Name(/a/tea.md)"),
        ("a/tea", "Name(a/tea)"),
        ("a/*", "Glob(a/*)"),
        ("/a/*", "Glob(a/*)"),
        ("a?b", "Name(a?b)"),
        (id, "Id"),
        ("[[tea]]", "Name(tea)"),
        ("[[]]", "Name([[]])"),
        ("[[a", "Name([[a)"),
        ("memory://tea", "url Name(tea)"),
        ("Memory://Tea", "url Name(Tea)"),
        ("memory://a/b", "url Name(a/b)"),
        ("memory://a%20b", "url Name(a b)"),
        ("memory://a%2", "url Name(a%2)"),
        ("memory://a/*", "url Glob(a/*)"),
        ("memory://a#b", "url Name(a) #b"),
        ("memory://a#", "url Name(a)"),
        ("memory://", "url Name()"),
        ("[[s::a]]", "s:: Name(a)"),
        ("[[a#b]]", "Name(a) #b"),
        ("[[s::a#b|c]]", "s:: Name(a) #b"),
        ("[[memory://s/a]]", "url Name(s/a)"),
        ("s::a", "Name(s::a)"),
        ("a#b", "Name(a#b)"),
    ] {
        let found = Identifier::parse(text);
        let reference = match &found.reference {
            Reference::Id(_) => "Id".to_owned(),
            Reference::Glob(glob) => format!("Glob({})", glob.as_str()),
            Reference::Name(name) => format!("Name({name})"),
        };
        let url = if found.is_url { "url " } else { "" };
        let store = found.store.map_or_else(String::new, |store| format!("{store}:: "));
        let section = found.section.map_or_else(String::new, |section| format!(" #{section}"));
        assert_eq!(format!("{url}{store}{reference}{section}"), expected, "{text}");
    }
}

#[test]
fn ids_have_an_exact_form() {
    let digits = "01abcdefghABCDEFGH123456";
    assert_eq!(digits.len(), ID_CHARS);
    assert!(looks_like_id(&format!("mem_{digits}")));
    for text in [
        format!("mem_{digits}1"),
        format!("mem_{}", digits.split_at(1).1),
        format!("memory_{digits}"),
        format!("MEM_{digits}"),
        format!(" mem_{digits}"),
        format!("mem_{}é", digits.split_at(2).1),
        format!("mem_{}-", digits.split_at(1).1),
        "mem_".to_owned(),
        String::new(),
    ] {
        assert!(!looks_like_id(&text), "{text}");
    }
}

#[test]
fn candidates_from_everywhere() {
    for (name, from, expected) in [
        ("tea", None, "/tea /tea.md"),
        ("tea", Some("/"), "/tea /tea.md"),
        ("tea.md", None, "/tea.md /tea.md.md"),
        ("tea.md", Some("/a/"), "/a/tea.md /a/tea.md.md /tea.md /tea.md.md"),
        ("tea.md", Some("/"), "/tea.md /tea.md.md"),
        ("tea.txt", Some("/a/"), "/a/tea.txt /a/tea.txt.md /tea.txt /tea.txt.md"),
        ("b/tea", Some("/a/"), "/b/tea /b/tea.md"),
        ("./tea", Some("/a/"), "/a/tea /a/tea.md"),
        ("./tea", None, "/tea /tea.md"),
        ("../tea", Some("/a/b/"), "/a/tea /a/tea.md"),
        ("../tea", Some("/"), ""),
        ("../../tea", Some("/a/"), ""),
        ("a/../tea", None, "/tea /tea.md"),
        ("a/./b//c", None, "/a/b/c /a/b/c.md"),
        ("/tea", Some("/a/"), "/tea /tea.md"),
        ("/", None, ""),
        (".", None, ""),
    ] {
        assert_eq!(path_candidates(name, from).join(" "), expected, "{name} from {from:?}");
    }
}

#[test]
fn alias_keys_ignore_what_people_type_differently() {
    for spellings in [
        ["Tea House", "tea-house", "TEA_HOUSE", "tea   house"],
        ["C# Tips", "c#tips", "C # tips", "C#_tips"],
        ["Größe", "GRÖSSE".replace("SS", "ß").leak(), "größe", "Gro\u{308}ße"],
        ["a - b", "a_b", "A--B", " a b "],
    ] {
        let keys = spellings.map(alias_key);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }
    for (left, right) in [("tea house", "teahouse"), ("tea", "teas"), ("a.b", "a b"), ("é", "e")] {
        assert_ne!(alias_key(left), alias_key(right));
    }
}

proptest! {
    #[test]
    fn candidates_are_absolute_and_normalized(name in "[a-z./]{0,12}", from in prop::option::of("(/[a-z]{1,3}){0,3}/")) {
        let found = path_candidates(&name, from.as_deref());
        prop_assert!(found.len() <= 4);
        for path in &found {
            prop_assert!(path.starts_with('/') && !path.ends_with('/'));
            let is_normal = |segment: &str| !matches!(segment, "" | "." | "..");
            prop_assert!(path.split('/').skip(1).all(is_normal), "{path}");
        }
        let distinct: std::collections::HashSet<_> = found.iter().collect();
        prop_assert_eq!(distinct.len(), found.len());
    }

    #[test]
    fn the_first_reading_keeps_the_whole_name(text in "[a-z#: ]{1,12}") {
        let identifier = Identifier::parse(&format!("[[{text}]]"));
        let readings = identifier.readings();
        prop_assert!(!readings.is_empty() && readings.len() <= 8);
        prop_assert!(readings.iter().all(|reading| reading.section.is_none()));
        let first = readings[0].reference.name().unwrap_or_default();
        if let Some(target) = LinkTarget::parse(&text) {
            let squeezed = |text: &str| text.replace(' ', "");
            let name = target.name.as_str();
            prop_assert!(squeezed(first).contains(&squeezed(name)));
        }
    }

    #[test]
    fn proximity_puts_the_same_directory_first(from in "(/[ab]){0,2}/", paths in prop::collection::vec("(/[ab]){0,3}/[xy]", 1..6)) {
        let mut sorted = paths;
        sorted.sort_by_key(|path| Proximity::new(&from, path));
        let parent = |path: &str| path.rfind('/').and_then(|end| path.get(..=end)).map(str::to_owned);
        let is_here = |path: &String| parent(path).as_deref() == Some(from.as_str());
        let first_elsewhere = sorted.iter().position(|path| !is_here(path)).unwrap_or(sorted.len());
        prop_assert!(sorted[first_elsewhere..].iter().all(|path| !is_here(path)));
    }
}
