//! Relations and links.

use super::super::{LinkStyle, TimeKind};
use super::{note, target};

/// Returns each relation as `kind|target|context`.
fn relations(text: &str) -> Vec<String> {
    let shown = |it: &super::Relation| {
        let context = it.context.as_deref().unwrap_or("-");
        format!("{}|{}|{context}", it.kind, target(&it.target))
    };
    note(text).relations.iter().map(shown).collect()
}

fn links(text: &str) -> Vec<String> {
    note(text).links.iter().map(|it| target(&it.target)).collect()
}

#[test]
fn a_word_before_a_link_in_a_list_is_a_relation() {
    assert_eq!(
        relations("- depends_on [[Tea Pot]] (for pouring)"),
        ["depends_on|Tea Pot|for pouring"]
    );
    assert_eq!(relations("1. 依存 [[A]]"), ["依存|A|-"]);
    assert_eq!(relations("- \"is part of\" [[A]]"), ["is part of|A|-"]);
    assert_eq!(relations("- **uses**: [[A]](why (not))"), ["uses|A|why (not)"]);
    assert_eq!(relations("- uses [[A]] `(x)` (b\n  c)"), ["uses|A|b c"]);
    assert_eq!(relations("- uses [[A|a]], [[B]]"), ["uses|A|a|-"]);
    assert_eq!(links("- uses [[A|a]], [[B]]"), ["B"]);
}

#[test]
fn any_other_link_means_links_to() {
    for text in [
        "uses [[A]]",
        "- is part of [[A]]",
        "- [[A]] (context)",
        "- → [[A]]",
        "- [kind] see [[A]]",
        "- [ ] see [[A]]",
        "- uses ![[A]]",
        "# Uses [[A]]",
        "| uses [[A]] |\n|---|\n",
        "> uses [[A]]",
        "- `uses` [[A]]",
    ] {
        assert!(relations(text).is_empty(), "{text}");
        assert_eq!(links(text), ["A"], "{text}");
    }
}

#[test]
fn parts_of_a_wiki_link() {
    let cases = [
        ("[[A|b c]]", "A|b c"),
        ("[[A#S]]", "A#S"),
        ("[[A#S#T|b]]", "A#S#T|b"),
        ("[[ a / b.md ]]", "a / b.md"),
        ("[[work::A#S|b]]", "work::A#S|b"),
        ("[[::A]]", "::A"),
        ("[[store::]]", "store::"),
        ("[[work::C# tips|b]]", "work::C# tips|b"),
        ("[[[A]]]", "A"),
        ("[[A [1]]]", "A [1"),
        ("[[A [[B]]", "B"),
        ("| [[A\\|b]] |\n|---|\n", "A|b"),
    ];
    for (text, expected) in cases {
        assert_eq!(links(text), [expected], "{text}");
    }
    for text in ["[[]]", "[[ ]]", "[[#S]]", "[[|b]]", "[[A\nB]]", "[[A]", "[A]]", "[[ # ]]"] {
        assert!(links(text).is_empty(), "{text}");
    }
}

#[test]
fn a_sentence_is_not_a_relation() {
    for text in [
        "- Ask [[Ada]] about the budget",
        "- Ask [[Ada]] about it (today)",
        "- met [[Ada]] and [[Bob]]",
        "- met [[Ada]]\n  yesterday",
        "- see [[Ada]]: she knows",
    ] {
        assert!(relations(text).is_empty() && !links(text).is_empty(), "{text}");
    }
    for text in ["- uses [[A]]", "- uses [[A]].", "- uses [[A]], [[B]]", "- uses [[A]], [[B]] (c)"]
    {
        assert_eq!(relations(text).len(), 1, "{text}");
    }
}

#[test]
fn punctuation_tags_and_parentheses_do_not_make_a_sentence() {
    for (text, context) in [
        ("- uses [[A]] (ctx).", "ctx"),
        ("- uses [[A]]; (a (b)),", "a (b)"),
        ("- uses [[A]] (a) (b)", "b"),
        ("- uses [[A]] #tag", "-"),
        ("- uses [[A]] (ctx) #one #two/3, #四", "ctx"),
        ("- uses [[A]] #tag (ctx)", "ctx"),
        ("- uses [[A]] ^abc-1", "-"),
        ("- uses [[A]] (ctx). ^abc", "ctx"),
        ("- uses [[A]]!", "-"),
        ("- uses [[A]] ✅", "-"),
    ] {
        assert_eq!(relations(text), [format!("uses|A|{context}")], "{text}");
    }
    for text in ["- see [[A]] (and then", "- see [[A]] #tag or not", "- see [[A]] (a) and (b)."] {
        assert!(relations(text).is_empty(), "{text}");
    }
}

#[test]
fn footnotes_hold_links() {
    assert_eq!(links("Tea[^1] and [[B]][^1].\n\n[^1]: [[Ada]] said so\n"), ["B", "Ada"]);
    assert_eq!(links("Tea[^1]\n\n[^1]: [[Ada]]"), ["Ada"]);
}

#[test]
fn code_and_escapes_hold_no_links() {
    for text in [
        "`[[A]]`",
        "``x ` [[A]]``",
        "```\n[[A]]\n```",
        "~~~\n[[A]]\n",
        "    [[A]]",
        "\\[[A]]",
        "[\\[A]]",
        "- x\n\n      [[A]]",
        "[[A`]]`",
        "- ```\n  - uses [[A]]\n  ```",
    ] {
        assert!(links(text).is_empty() && relations(text).is_empty(), "{text}");
    }
    assert_eq!(links("` [[A]]"), ["A"]);
    assert_eq!(links("\\\\[[A]]"), ["A"]);
}

#[test]
fn embeds_are_links() {
    let found = note("![[A]] \\![[B]] ![x](c.md)").links;
    let styles: Vec<_> = found.iter().map(|link| link.style).collect();
    assert_eq!(styles, [LinkStyle::WikiEmbed, LinkStyle::Wiki, LinkStyle::MarkdownEmbed]);
}

#[test]
fn markdown_links_to_memories() {
    let cases = [
        ("[x](a.md)", "a.md"),
        ("[x](notes/a%20b.md#S%20T)", "notes/a b.md#S T"),
        ("[x](../a.MD \"title\")", "../a.MD"),
        ("[x](/a.md?raw)", "/a.md"),
        ("[x](<a b.md>)", "a b.md"),
        ("[x][r]\n\n[r]: /a.md", "/a.md"),
        ("[x](memory://work/a)", "memory://work/a"),
        ("- [k] see [x](a.md)", "a.md"),
    ];
    for (text, expected) in cases {
        assert_eq!(links(text), [expected], "{text}");
    }
    for text in [
        "[x](https://example.com/a.md)",
        "[x](//example.com/a.md)",
        "[x](mailto:a.md)",
        "[x](#a)",
        "[x](a.png)",
        "[x](a)",
        "[x]()",
        "`[x](a.md)`",
        "\\[x](a.md)",
        "<https://example.com/a.md>",
    ] {
        assert!(links(text).is_empty(), "{text}");
    }
}

#[test]
fn places_of_links_are_exact() {
    let text = "---\na: b\n---\n> - é uses\n>   [[A]] ![[B|b]]\n>   [x](c.md)\n\n- uses [[D]]\n";
    let note = note(text);
    let places: Vec<_> =
        note.links.iter().map(|it| (it.line, text.get(it.range.clone()).unwrap())).collect();
    assert_eq!(places, [(5, "[[A]]"), (5, "![[B|b]]"), (6, "[x](c.md)")]);
    let relation = &note.relations[0];
    assert_eq!((relation.line, text.get(relation.range.clone()).unwrap()), (8, "[[D]]"));
}

#[test]
fn edges_are_all_links_with_their_kinds() {
    let note = note("[[A]]\n- uses [[B]] (c)\n");
    let edges: Vec<_> = note.edges().map(|it| (it.kind, &*it.target.name, it.context)).collect();
    assert_eq!(edges, [("uses", "B", Some("c")), ("links_to", "A", None)]);
}

#[test]
fn time_qualifiers_follow_the_category() {
    let cases = [
        (
            "@effective[2026-06-10,2026-07-27)",
            "effective Included(\"2026-06-10\") Excluded(\"2026-07-27\")",
        ),
        ("@[2026, 2027]", "valid Included(\"2026\") Included(\"2027\")"),
        ("@occurred(2026-06,]", "occurred Excluded(\"2026-06\") Unbounded"),
        ("@due:2026-07-27", "due Included(\"2026-07-27\") Included(\"2026-07-27\")"),
        ("@2026-06", "valid Included(\"2026-06\") Included(\"2026-06\")"),
        (
            "@mentioned:2026-06-10T10:00:00Z",
            "mentioned Included(\"2026-06-10T10:00:00Z\") Included(\"2026-06-10T10:00:00Z\")",
        ),
    ];
    for (text, expected) in cases {
        let found = note(&format!("- [k] {text} fact")).observations;
        assert_eq!(found[0].text, "fact", "{text}");
        assert_eq!(found[0].written_times(), [text]);
        let times: Vec<_> = found[0].times.iter().map(super::time).collect();
        assert_eq!(times, [expected], "{text}");
    }
    for text in
        ["@yesterday", "@due:tomorrow", "@2026-13", "@you", "@", "@[,]", "@due[2026]", "@2026x"]
    {
        let found = note(&format!("- [k] {text} fact")).observations;
        assert_eq!((found[0].text.as_str(), found[0].times.len()), (&*format!("{text} fact"), 0));
    }
    let written = "[task] @due:2026-07-27 buy tea (soon)";
    assert_eq!(note(&format!("- {written}")).observations[0].to_string(), written);
    for written in ["[k] @due:2027-01", "[k] @2026 @due:2027-01"] {
        assert_eq!(note(&format!("- {written}")).observations[0].to_string(), written);
    }
    let alone = note("- [k] @due:2027-01\n- [k] @due:2027-01 (context)").observations;
    assert_eq!(alone[0].written_times(), ["@due:2027-01"]);
    assert_eq!((alone[0].text.as_str(), alone[1].text.as_str()), ("", "(context)"));
    let two = note("- [k] @2026 @due:2027-01 fact").observations;
    assert_eq!(
        two[0].times.iter().map(|it| it.kind).collect::<Vec<_>>(),
        [TimeKind::Valid, TimeKind::Due]
    );
}

#[test]
fn attachments_are_known_by_their_names() {
    let is_attachment = |text: &str| note(text).links[0].target.is_attachment();
    for text in ["![[cup.png]]", "[[a/Scan 1.PDF#page=3]]", "[[Board.canvas]]"] {
        assert!(is_attachment(text), "{text}");
    }
    for text in ["[[cup]]", "[[v1.2]]", "[[a.md]]", "[[.png]]"] {
        assert!(!is_attachment(text), "{text}");
    }
}
