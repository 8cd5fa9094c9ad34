//! Printing an expression and parsing it again.

use proptest::prelude::*;

use super::*;

/// Returns the text of a query that means an expression.
fn printed(expr: &Expr) -> String {
    let operands = |parts: &[Expr]| -> Vec<_> { parts.iter().map(operand).collect() };
    match expr {
        Expr::Term(Term::Word(text)) => text.clone(),
        Expr::Term(Term::Prefix(text)) => format!("{text}*"),
        Expr::Term(Term::Phrase(text)) => format!("\"{text}\""),
        Expr::Filter(Filter { field, value }) => {
            let name = match field {
                Field::Tag => "tag",
                Field::Type => "type",
                Field::Path => "path",
            };
            format!("{name}:\"{value}\"")
        }
        Expr::Juxtaposed(parts) => operands(parts).join(" "),
        Expr::And(parts) => operands(parts).join(" AND "),
        Expr::Or(parts) => operands(parts).join(" OR "),
        Expr::Not(part) => format!("NOT {}", operand(part)),
    }
}

/// Prints an expression so that it is one operand of any other.
fn operand(expr: &Expr) -> String {
    match expr {
        Expr::Term(_) | Expr::Filter(_) => printed(expr),
        Expr::Juxtaposed(_) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) => {
            format!("({})", printed(expr))
        }
    }
}

/// Returns an expression as the parser builds it: no nested juxtapositions, no lists of one.
fn canonical(expr: Expr) -> Expr {
    let each = |parts: Vec<Expr>| parts.into_iter().map(canonical).collect::<Vec<_>>();
    match expr {
        Expr::Juxtaposed(parts) => {
            let flat = each(parts).into_iter().flat_map(|part| {
                if let Expr::Juxtaposed(inner) = part { inner } else { vec![part] }
            });
            Expr::Juxtaposed(flat.collect())
        }
        Expr::And(parts) => Expr::And(each(parts)),
        Expr::Or(parts) => Expr::Or(each(parts)),
        Expr::Not(part) => Expr::Not(Box::new(canonical(*part))),
        leaf @ (Expr::Term(_) | Expr::Filter(_)) => leaf,
    }
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        "[a-z]{1,4}(-[a-z]{1,3})?".prop_map(|it| Expr::Term(Term::Word(it))),
        "[a-z]{1,4}".prop_map(|it| Expr::Term(Term::Prefix(it))),
        "[a-z]{1,4} [a-z]{1,4}".prop_map(|it| Expr::Term(Term::Phrase(it))),
        (
            prop::sample::select(vec![Field::Tag, Field::Type, Field::Path]),
            "[a-z/]{1,4}( [a-z]{1,3})?"
        )
            .prop_map(|(field, value)| Expr::Filter(Filter { field, value })),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            several().prop_map(Expr::Juxtaposed),
            several().prop_map(Expr::And),
            several().prop_map(Expr::Or),
            inner.clone().prop_map(|part| Expr::Not(Box::new(part))),
        ]
    })
}

proptest! {
    #[test]
    fn a_printed_expression_parses_to_itself(expr in expr()) {
        let expr = canonical(expr);
        let query = Query::parse(&printed(&expr));
        prop_assert_eq!(query.omitted_count, 0);
        prop_assert_eq!(query.expr, Some(expr));
    }

    #[test]
    fn white_space_and_empty_parentheses_change_nothing(expr in expr()) {
        let text = printed(&expr);
        let expected = Query::parse(&text);
        prop_assert_eq!(&Query::parse(&format!(" \t{text}\n")), &expected);
        prop_assert_eq!(&Query::parse(&format!("({text})")), &expected);
        prop_assert_eq!(&Query::parse(&format!("{text} ()")), &expected);
    }
}
