//! Queries against texts: a naive search shows what expressions mean.

use super::*;
use crate::Phrase;
use crate::tokenizer::{Language, tokenize};

const ENGLISH: &[Language] = &[Language::English];

/// A text with its type and tags.
struct Sample {
    text: &'static str,
    kind: &'static str,
    tags: &'static [&'static str],
}

const GREEN: Sample =
    Sample { text: "Green tea is brewed at 80 degrees", kind: "guide", tags: &["tea", "green"] };
const BLACK: Sample =
    Sample { text: "Black teas need boiling water", kind: "guide", tags: &["tea"] };
const COFFEE: Sample = Sample { text: "Coffee; not tea at all", kind: "note", tags: &[] };

fn matches(expr: &Expr, sample: &Sample) -> bool {
    let all = |parts: &[Expr]| parts.iter().all(|part| matches(part, sample));
    match expr {
        Expr::Term(term) => {
            let phrases = match term {
                Term::Word(text) => Phrase::spellings(text, ENGLISH),
                Term::Prefix(text) => Phrase::prefix(text, ENGLISH),
                Term::Phrase(text) => Phrase::quoted(text, ENGLISH),
            };
            let tokens = tokenize(sample.text, Language::English);
            let terms: Vec<_> = tokens.iter().map(|token| token.term.as_str()).collect();
            phrases.iter().any(|it| terms.windows(it.terms.len()).any(|window| it.matches(window)))
        }
        Expr::Filter(Filter { field: Field::Tag, value }) => sample.tags.contains(&value.as_str()),
        Expr::Filter(Filter { field: Field::Type, value }) => sample.kind == value,
        Expr::Filter(Filter { field: Field::Path, .. }) => false,
        Expr::Juxtaposed(parts) | Expr::And(parts) => all(parts),
        Expr::Or(parts) => parts.iter().any(|part| matches(part, sample)),
        Expr::Not(part) => !matches(part, sample),
    }
}

/// Returns the first letters of the samples that a query finds.
fn found(text: &str) -> String {
    let expr = Query::parse(text).expr.unwrap();
    let samples = [GREEN, BLACK, COFFEE];
    samples.iter().filter(|it| matches(&expr, it)).filter_map(|it| it.text.chars().next()).collect()
}

#[test]
fn expressions_match_as_documented() {
    for (query, expected) in [
        ("tea", "GBC"),
        ("teas", "GBC"),
        ("green tea", "G"),
        ("brewing", "G"),
        ("green OR black", "GB"),
        ("tea NOT green", "BC"),
        ("NOT tea", ""),
        ("tea AND (water OR degrees)", "GB"),
        ("\"green tea\"", "G"),
        ("\"tea green\"", ""),
        ("\"boil water\"", "B"),
        ("boil*", "B"),
        ("deg* OR cof*", "GC"),
        ("tag:tea", "GB"),
        ("tag:tea NOT tag:green", "B"),
        ("type:note OR tag:green", "GC"),
        ("type:guide boiled", "B"),
        ("(black OR coffee) NOT water", "C"),
        ("NOT (black OR coffee)", "G"),
        ("80", "G"),
    ] {
        assert_eq!(found(query), expected, "{query}");
    }
}

#[test]
fn constraints_are_filters_and_negations() {
    for (query, expected) in [
        ("tea", false),
        ("tag:tea", true),
        ("NOT tea", true),
        ("NOT (a b)", true),
        ("a OR b", false),
        ("tag:a OR tag:b", false),
        ("a b", false),
        ("a AND b", false),
    ] {
        assert_eq!(Query::parse(query).expr.unwrap().is_constraint(), expected, "{query}");
    }
}
