//! The query language, rule by rule.

mod limits;
mod meaning;
mod roundtrip;

use proptest::prelude::*;

use super::*;

/// Shows a query as one line.
fn shown(text: &str) -> String {
    Query::parse(text).expr.as_ref().map_or_else(String::new, expression)
}

fn expression(it: &Expr) -> String {
    let list = |parts: &[Expr], by: &str| {
        format!("({})", parts.iter().map(expression).collect::<Vec<_>>().join(by))
    };
    match it {
        Expr::Term(Term::Word(text)) => text.clone(),
        Expr::Term(Term::Prefix(text)) => format!("{text}*"),
        Expr::Term(Term::Phrase(text)) => format!("\"{text}\""),
        Expr::Juxtaposed(parts) => list(parts, " "),
        Expr::And(parts) => list(parts, " & "),
        Expr::Or(parts) => list(parts, " | "),
        Expr::Filter(Filter { field, value }) => format!("{field:?}={value}"),
        Expr::Not(unwanted) => format!("!{}", expression(unwanted)),
    }
}

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(text), *expected, "{text}");
    }
}

#[test]
fn words_phrases_and_prefixes() {
    check(&[
        ("tea", "tea"),
        ("green  tea", "(green tea)"),
        ("\"green tea\" pot*", "(\"green tea\" pot*)"),
        ("\u{201c}green\n tea\u{201d}", "\"green tea\""),
        ("foo-bar a/b.rs v1.2 C++", "(foo-bar a/b.rs v1.2 C++)"),
        ("日本語 お茶*", "(日本語 お茶*)"),
        ("", ""),
        (" * \"\" !? ", ""),
    ]);
}

#[test]
fn operators_in_capitals_combine() {
    check(&[
        ("a AND b", "(a & b)"),
        ("a OR b c", "(a | (b c))"),
        ("a b AND c OR d", "(((a b) & c) | d)"),
        ("a NOT b", "(a !b)"),
        ("a NOT b NOT \"c d\"", "(a !b !\"c d\")"),
        ("a AND NOT b", "(a & !b)"),
        ("a OR NOT b", "(a | !b)"),
        ("NOT (a b) c", "(!(a b) c)"),
        ("(a OR b) AND c", "((a | b) & c)"),
        ("(a b) c () (d)", "(a b c d)"),
        ("(a NOT b) OR c", "((a !b) | c)"),
        ("a and b or not c", "(a and b or not c)"),
    ]);
}

#[test]
fn filters_stand_where_words_do() {
    check(&[
        ("tea tag:green", "(tea Tag=green)"),
        ("TAG:#green Type:note path:/docs/*", "(Tag=green Type=note Path=/docs/*)"),
        ("tag:\"green tea\" a", "(Tag=green tea a)"),
        ("tea NOT tag:green", "(tea !Tag=green)"),
        ("tag:a OR tag:b", "(Tag=a | Tag=b)"),
        ("tag:a OR tea", "(Tag=a | tea)"),
        ("(tea AND tag:a) OR (b tag:c)", "((tea & Tag=a) | (b Tag=c))"),
        ("NOT tag:a", "!Tag=a"),
        ("NOT (tea tag:a)", "!(tea Tag=a)"),
        ("(tag:a OR tag:b) tea", "((Tag=a | Tag=b) tea)"),
        ("tag: tea", "(tag: tea)"),
        ("color:green http://x", "(color:green http://x)"),
    ]);
}

#[test]
fn unknown_syntax_is_words() {
    check(&[
        ("\"green tea", "(green tea)"),
        ("a \"b c\" \"d e", "(a \"b c\" d e)"),
        ("AND a OR", "a"),
        ("a OR OR b", "(a | b)"),
        ("a AND AND b", "(a & b)"),
        ("NOT a", "!a"),
        ("NOT", ""),
        ("((a)", "a"),
        ("a) b", "(a b)"),
        ("main() x", "(main x)"),
        ("f(x, y)", "(f x, y)"),
        ("a\0b \u{7}c", "(a b c)"),
        ("title MATCH 'x' NEAR(a b, 5) {c} ^d", "(title MATCH 'x' NEAR a b, 5 {c} ^d)"),
    ]);
}

#[test]
fn excess_terms_are_dropped() {
    let many = Query::parse(&"word ".repeat(10_000));
    assert_eq!(many.terms().len(), TERMS_MAX);
    assert_eq!(many.omitted_count, 10_000 - TERMS_MAX);

    let deep = format!("{}a OR b{}", "(".repeat(50_000), ")".repeat(50_000));
    assert_eq!(shown(&deep), "(a | b)");
    assert_eq!(shown(&"\"".repeat(100_000)), "");
    assert_eq!(shown(&"a \"".repeat(3)), "(a \"a\" a)");
}

#[test]
fn compound_terms_count_as_many() {
    let words = vec!["word"; 10_000];
    for text in [format!("\"{}\"", words.join(" ")), words.join("-"), words.join("/") + "*"] {
        let query = Query::parse(&text);
        let kept = query.terms()[0].text().matches("word").count();
        assert_eq!((kept, query.omitted_count), (TERMS_MAX, 10_000 - TERMS_MAX));
    }
    let run = Query::parse(&"茶".repeat(10_000));
    assert_eq!(run.terms()[0].text().chars().count(), TERMS_MAX);
    let hyphens = Query::parse(&"a-b-c ".repeat(50));
    assert_eq!((hyphens.terms().len(), hyphens.omitted_count), (43, 150 - TERMS_MAX));
}

#[test]
fn terms_come_in_the_order_of_typing() {
    let query = Query::parse("(a OR \"b c\") AND d* NOT e");
    let texts: Vec<_> = query.terms().into_iter().map(Term::text).collect();
    assert_eq!(texts, ["a", "b c", "d"]);
}

#[test]
fn precedence() {
    check(&[
        ("a b OR c d", "((a b) | (c d))"),
        ("a AND b OR c AND d", "((a & b) | (c & d))"),
        ("a OR b AND c", "(a | (b & c))"),
        ("(a OR b) AND (c OR d)", "((a | b) & (c | d))"),
        ("a (b OR c)", "(a (b | c))"),
        ("NOT a b", "(!a b)"),
        ("NOT (a OR b)", "!(a | b)"),
        ("NOT NOT a", "!a"),
        ("a AND (b)", "(a & b)"),
        ("((a b) OR c) d", "(((a b) | c) d)"),
        ("a AND b AND c", "(a & b & c)"),
        ("a OR b OR c", "(a | b | c)"),
        ("a (b AND c) d", "(a (b & c) d)"),
    ]);
}

#[test]
fn quotes_of_every_kind() {
    check(&[
        ("\u{201e}grüner Tee\u{201c}", "\"grüner Tee\""),
        ("\"a\" \"b\"", "(\"a\" \"b\")"),
        ("\"a\"b", "(\"a\" b)"),
        ("a\"b c\"d", "(a \"b c\" d)"),
        ("\"  a   b \"", "\"a b\""),
        ("\"\" a", "a"),
        ("\"a OR b\"", "\"a OR b\""),
        ("\"(a)\"", "\"(a)\""),
        ("'a b'", "('a b')"),
    ]);
}

#[test]
fn stars_make_prefixes_only_at_the_end() {
    check(&[
        ("te*", "te*"),
        ("te**", "te*"),
        ("*tea", "*tea"),
        ("t*a", "t*a"),
        ("*", ""),
        ("te* OR co*", "(te* | co*)"),
        ("NOT te*", "!te*"),
        ("\"te*\"", "\"te*\""),
    ]);
}

#[test]
fn filters_with_unusual_values() {
    check(&[
        ("tag:a,b", "Tag=a,b"),
        ("tag:#a/b", "Tag=a/b"),
        ("tag:\"\"", "tag:"),
        ("path:/a b", "(Path=/a b)"),
        ("path:\"/a b\"", "Path=/a b"),
        ("type:note:x", "Type=note:x"),
        ("tags:a", "tags:a"),
        ("tag:(a)", "(tag: a)"),
        ("TYPE:Note", "Type=Note"),
        ("tag:a*", "Tag=a*"),
    ]);
}

proptest! {
    #[test]
    fn every_query_parses(text in r#"[ab ()"*:]{0,40}|(AND |OR |NOT |\(|\)|"|a |tag:|b\* ){0,30}|.{0,30}"#) {
        let query = Query::parse(&text);
        let terms = query.terms();
        prop_assert!(terms.len() <= TERMS_MAX);
        prop_assert!(terms.iter().all(|term| !term.text().trim().is_empty()));
        if text.contains('a') {
            prop_assert!(query.expr.is_some() || text.contains(['"', ':']) || text.contains("NOT"));
        }
    }
}
