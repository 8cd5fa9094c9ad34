//! Adversarial texts of the maximum size of a memory.
//!
//! Nothing here is timed: each takes milliseconds in linear time, and minutes or the whole stack
//! otherwise.

use super::note;
use crate::edit;

const SIZE_BYTES: usize = 100 * 1024;

/// Everything with a meaning in markdown.
const MARKDOWN: &str = "[¦]¦[[¦]]¦![[¦[[a¦[[a]]¦[[a|¦(¦)¦()¦`¦`a¦``a`¦\\¦\\`¦*¦_¦**a ¦*a_¦~¦<¦<!--¦<a ¦<?¦\
    <![CDATA[¦&¦#¦#a¦@¦!¦![¦[a](¦[a](<¦](¦[a][¦[a]: b\n¦[a¦|¦| a ¦|-¦a|\n-|\n¦- ¦-\n¦> ¦>¦1. ¦\
    - [a] ¦- a\n¦  - a\n¦\t¦ ¦\n¦\r¦\r\n¦=¦a\n¦a\n=\n¦```\n¦~~~¦    a\n¦- [k] a (b\n¦\
    - uses [[a]]\n¦é¦字¦\u{feff}¦\"¦'¦x ¦*a **b ¦a**b¦[^a]: ¦[^a]¦$¦$$¦<b>¦http://¦www.¦\
    - [a](b)\n¦# a\n¦> - ¦* - + ¦1) a\n¦[a]: <b¦[a](b 'c¦&#¦&amp;¦{¦}";

/// Everything with a meaning in YAML.
const YAML: &str = "[¦{¦[a, ¦{a: ¦- ¦-\n¦a: ¦? ¦a:\n¦a: b\n¦&a ¦*a ¦!a ¦\"¦'¦\\¦\"\\¦|\n¦>\n¦a: |\n¦ ¦\t¦#¦\
    #\n¦\n¦[]¦{}¦a¦a b ¦%a\n¦[[¦,¦- a\n¦a: [¦- - - a\n¦: ¦- [¦'a'\n¦\"a\n¦a\n b\n¦? a\n: b\n¦\
    \u{feff}¦é¦!<¦[a: b, ¦[? ¦a: &b c\n¦[\n¦a: >\n\n";

fn filled(piece: &str) -> String {
    piece.repeat(SIZE_BYTES / piece.len())
}

#[test]
fn repeated_punctuation() {
    for piece in markdown_pieces() {
        note(&filled(piece));
        note(&format!("- [k] {}", piece.repeat(1000)));
    }
}

#[test]
fn hostile_frontmatter() {
    for piece in yaml_pieces() {
        let yaml = filled(piece);
        note(&format!("---\n{yaml}\n---\n"));
        note(&format!("---\na: {}\n---\nBody", piece.repeat(1000)));
    }
}

#[test]
fn deep_nesting() {
    let deeper = |line: fn(usize) -> String| (0..430).map(line).collect::<String>();
    let nested = note(&deeper(|depth| format!("{}- [k] a\n", " ".repeat(depth))));
    assert!(!nested.observations.is_empty());
    note(&deeper(|depth| format!("{}> a\n", ">".repeat(depth))));
    note(&format!("---\n{}---\n", deeper(|depth| format!("{}a:\n", " ".repeat(depth)))));
    note(&format!("{}a{}", "*".repeat(50_000), "*".repeat(50_000)));
    note(&format!("{}a{}", "[".repeat(50_000), "](b)".repeat(12_000)));
    note(&format!("{}a{}", "[[".repeat(25_000), "]]".repeat(25_000)));
    note(&format!("- [k] {}a{}", "(".repeat(50_000), ")".repeat(50_000)));
}

#[test]
fn one_long_line_is_read_to_its_end() {
    let text = format!("- [k] {} #last (context)", "word ".repeat(20_000));
    let found = note(&text).observations;
    assert_eq!(found[0].tags, ["last"]);
    assert_eq!(found[0].context.as_deref(), Some("context"));
    assert!(found[0].text.len() > 99_000);
}

#[test]
fn edits_of_long_notes() {
    let headings = filled("# a b\n");
    assert!(edit::replace_section(&headings, "a b", "x").is_err());
    let fields = (0..9_000).fold(String::new(), |all, number| all + &format!("k{number}: v\n"));
    let text = format!("---\n{fields}---\n");
    assert!(edit::set_metadata(&text, &[("k8999".to_owned(), None)]).is_ok());
}

#[test]
#[ignore = "it measures time; run it alone, on a quiet machine"]
fn four_times_the_text_takes_about_four_times_as_long() {
    let wrapped = |piece: &str, size: usize| {
        let fill = piece.repeat(size / piece.len());
        [
            fill.clone(),
            format!("- [k] {fill}"),
            format!("- uses [[{fill}"),
            format!("---\n{fill}\n---\n"),
            format!("---\na: {fill}\n---\nBody"),
        ]
    };
    let time = |text: &str| {
        let start = std::time::Instant::now();
        note(text);
        start.elapsed()
    };
    for piece in markdown_pieces().chain(yaml_pieces()) {
        let (quarters, wholes) = (wrapped(piece, SIZE_BYTES / 4), wrapped(piece, SIZE_BYTES));
        for (quarter, whole) in quarters.iter().zip(&wholes) {
            let (short, long) = (time(quarter), time(whole));
            let limit = short * 12 + std::time::Duration::from_millis(20);
            assert!(long < limit, "{piece:?}: {short:?}, then {long:?}");
        }
    }
}

fn markdown_pieces() -> impl Iterator<Item = &'static str> {
    MARKDOWN.split('¦')
}

fn yaml_pieces() -> impl Iterator<Item = &'static str> {
    YAML.split('¦')
}
