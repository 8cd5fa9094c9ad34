//! Tokens as a query: `NOT` binds most, then what stands together, then `AND`, then `OR`.

use super::lexer::Token;
use super::{Expression, Filter, Query, Sense};

/// Combines tokens into a query.
pub(super) fn parse(tokens: &[Token]) -> Query {
    let mut parser = Parser { tokens };
    let Part { wanted, unwanted, filters } = parser.alternatives();
    Query { wanted, unwanted, filters, left_out: 0 }
}

/// What a part of a query asks for.
#[derive(Default)]
struct Part {
    wanted: Option<Expression>,
    unwanted: Vec<Expression>,
    filters: Vec<Filter>,
}

struct Parser<'a> {
    tokens: &'a [Token],
}

impl Parser<'_> {
    /// Reads parts with `OR` between them. Parentheses are balanced and bounded in depth.
    fn alternatives(&mut self) -> Part {
        let mut parts = vec![self.conjunction()];
        while self.skip(&Token::Or) {
            parts.push(self.conjunction());
        }
        if let [_] = parts.as_slice() {
            return parts.pop().unwrap_or_default();
        }
        if let Some(filter) = one_of(&parts) {
            return Part { filters: vec![filter], ..Part::default() };
        }
        let mut whole = Part::default();
        let mut wanted = Vec::new();
        for mut part in parts {
            whole.filters.append(&mut part.filters);
            wanted.extend(part.into_expression());
        }
        whole.wanted = combined(wanted, Expression::Any);
        whole
    }

    /// Reads parts that stand together, or have `AND` or `NOT` between them.
    fn conjunction(&mut self) -> Part {
        let mut whole = Part::default();
        let (mut groups, mut group) = (Vec::new(), Vec::new());
        loop {
            if self.skip(&Token::And) {
                groups.extend(combined(std::mem::take(&mut group), Expression::Together));
            } else if self.skip(&Token::Not) {
                if let Some(part) = self.unit() {
                    whole.forbid(part);
                }
            } else if let Some(mut part) = self.unit() {
                whole.filters.append(&mut part.filters);
                group.extend(part.into_expression());
            } else {
                break;
            }
        }
        groups.extend(combined(group, Expression::Together));
        whole.wanted = combined(groups, Expression::All);
        whole
    }

    /// Reads a term, a filter or parentheses.
    fn unit(&mut self) -> Option<Part> {
        let (first, rest) = self.tokens.split_first()?;
        match first {
            Token::And | Token::Or | Token::Not | Token::Close => None,
            Token::Term(term) => {
                self.tokens = rest;
                let wanted = Some(Expression::Term(term.clone()));
                Some(Part { wanted, ..Part::default() })
            }
            Token::Filter(field, value) => {
                self.tokens = rest;
                let values = vec![value.clone()];
                let filter = Filter { field: *field, values, sense: Sense::Must };
                Some(Part { filters: vec![filter], ..Part::default() })
            }
            Token::Open => {
                self.tokens = rest;
                let part = self.alternatives();
                self.skip(&Token::Close);
                Some(part)
            }
        }
    }

    fn skip(&mut self, token: &Token) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if first == token => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }
}

impl Part {
    /// Returns what is wanted without what is not. What is only unwanted asks for nothing.
    fn into_expression(self) -> Option<Expression> {
        let wanted = self.wanted?;
        Some(match combined(self.unwanted, Expression::Any) {
            Some(unwanted) => Expression::Except(Box::new(wanted), Box::new(unwanted)),
            None => wanted,
        })
    }

    fn forbid(&mut self, part: Self) {
        let filters = part.filters.iter().cloned();
        self.filters.extend(filters.map(|filter| Filter { sense: Sense::MustNot, ..filter }));
        self.unwanted.extend(part.into_expression());
    }
}

/// Returns the one filter that filters on the same field with `OR` between them mean.
fn one_of(parts: &[Part]) -> Option<Filter> {
    let mut filters = parts.iter().map(|part| match part.filters.as_slice() {
        [only] if part.wanted.is_none() && part.unwanted.is_empty() => Some(only),
        _ => None,
    });
    let mut first = filters.next()??.clone();
    for filter in filters {
        let filter = filter.filter(|it| it.field == first.field && it.sense == first.sense)?;
        first.values.extend(filter.values.iter().cloned());
    }
    (first.sense == Sense::Must).then_some(first)
}

/// Combines expressions; one alone stays as it is.
fn combined(
    mut parts: Vec<Expression>,
    combine: fn(Vec<Expression>) -> Expression,
) -> Option<Expression> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(combine(parts)),
    }
}
