//! The limits of a query, from both sides.

use proptest::prelude::*;

use super::*;

fn depth(expr: &Expr) -> usize {
    match expr {
        Expr::Term(_) | Expr::Filter(_) => 0,
        Expr::Juxtaposed(parts) | Expr::And(parts) | Expr::Or(parts) => {
            1 + parts.iter().map(depth).max().unwrap_or(0)
        }
        Expr::Not(part) => 1 + depth(part),
    }
}

/// Counts terms and filters as the limit does, by their pieces.
fn size(expr: &Expr) -> usize {
    match expr {
        Expr::Term(term) => crate::phrase::truncated(term.text(), usize::MAX).kept_count,
        Expr::Filter(_) => 1,
        Expr::Juxtaposed(parts) | Expr::And(parts) | Expr::Or(parts) => {
            parts.iter().map(size).sum()
        }
        Expr::Not(part) => size(part),
    }
}

fn joined(count: usize, glue: &str) -> String {
    (0..count).map(|number| format!("w{}", "x".repeat(number % 7))).collect::<Vec<_>>().join(glue)
}

#[test]
fn the_last_term_that_fits_is_kept() {
    for glue in [" ", " AND ", " OR ", " NOT ", "-", "/"] {
        for (count, omitted) in [(TERMS_MAX - 1, 0), (TERMS_MAX, 0), (TERMS_MAX + 1, 1), (500, 372)]
        {
            let query = Query::parse(&joined(count, glue));
            assert_eq!(query.omitted_count, omitted, "{count} with `{glue}`");
            assert_eq!(size(&query.expr.unwrap()), count.min(TERMS_MAX), "{count} with `{glue}`");
        }
    }
}

#[test]
fn filters_count_as_terms() {
    let filters = "tag:x ".repeat(TERMS_MAX);
    let query = Query::parse(&format!("{filters} tea"));
    assert_eq!(query.omitted_count, 1);
    assert_eq!(query.terms(), Vec::<&Term>::new());
    let query = Query::parse(&format!("tea {filters}"));
    assert_eq!((query.omitted_count, query.terms().len()), (1, 1));
}

/// What is dropped leaves no operator behind.
#[test]
fn operators_of_dropped_terms_are_dropped() {
    let full = joined(TERMS_MAX, " ");
    for rest in ["AND more", "OR more", "NOT more", "AND NOT (more OR most)", "(more)"] {
        let query = Query::parse(&format!("{full} {rest}"));
        assert_eq!(query.expr, Query::parse(&full).expr, "{rest}");
    }
}

#[test]
fn parentheses_beyond_the_depth_are_ignored() {
    let nested = |count: usize| {
        let open = "(a OR ".repeat(count);
        Query::parse(&format!("{open}b{}", ")".repeat(count))).expr.unwrap()
    };
    assert_eq!(depth(&nested(1)), 1);
    assert_eq!(depth(&nested(DEPTH_MAX)), DEPTH_MAX);
    assert!(depth(&nested(DEPTH_MAX + 1)) <= DEPTH_MAX + 1);
    assert!(depth(&nested(100)) <= DEPTH_MAX + 1);
    // Parentheses around a single thing cost nothing.
    let wrapped = format!("{}a b{}", "(".repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX));
    assert_eq!(shown(&wrapped), "(a b)");
}

#[test]
fn unbalanced_parentheses_are_ignored() {
    check(&[
        ("(a", "a"),
        ("a)", "a"),
        (")a(", "a"),
        ("((a) b", "(a b)"),
        ("a) OR (b", "(a | b)"),
        ("(a OR b", "(a | b)"),
        ("a (b OR c)) d", "(a (b | c) d)"),
        ("()", ""),
        ("NOT ()", ""),
        ("a NOT (", "a"),
    ]);
}

#[test]
fn operators_without_operands_are_ignored() {
    check(&[
        ("AND", ""),
        ("NOT", ""),
        ("AND a", "a"),
        ("a AND", "a"),
        ("a OR", "a"),
        ("OR OR a OR OR b", "(a | b)"),
        ("a AND AND b", "(a & b)"),
        ("NOT NOT a", "!a"),
        ("a AND OR b", "(a | b)"),
        ("NOT AND a", "a"),
    ]);
}

/// Words that only look like operators, because operators are typed in capitals.
#[test]
fn operators_in_small_letters_are_words() {
    check(&[
        ("a and b", "(a and b)"),
        ("a Or b", "(a Or b)"),
        ("not a", "(not a)"),
        ("\"a AND b\"", "\"a AND b\""),
        ("ANDROID ORACLE NOTE", "(ANDROID ORACLE NOTE)"),
        ("a,AND,b", "a,AND,b"),
    ]);
}

proptest! {
    /// Any text is a query within the limits.
    #[test]
    fn every_query_is_within_the_limits(
        parts in prop::collection::vec(
            prop::sample::select(&[
                "tea", "a-b-c", "\"x y\"", "\"", "(", ")", "AND", "OR", "NOT", "tag:x", "path:", "*",
                "日本語", "parseJson2", "te*", "type:\"a b\"", "!?",
            ][..]),
            0..400,
        ),
        glue in prop::sample::select(&["", " ", "  "][..]),
    ) {
        let query = Query::parse(&parts.join(glue));
        if let Some(expr) = &query.expr {
            prop_assert!(size(expr) <= TERMS_MAX);
            prop_assert!(depth(expr) <= 4 * DEPTH_MAX);
            prop_assert!(query.terms().iter().all(|term| !term.text().trim().is_empty()));
        } else {
            prop_assert_eq!(query.omitted_count, 0);
        }
    }
}
