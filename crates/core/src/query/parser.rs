//! Tokens as an expression: `NOT` binds most, then what stands together, then `AND`, then `OR`.

use super::Expression;
use super::lexer::Token;

/// Combines tokens into what they ask for; `None` if that is nothing.
pub(super) fn parse(tokens: &[Token]) -> Option<Expression> {
    Parser { tokens }.alternatives()
}

struct Parser<'a> {
    tokens: &'a [Token],
}

impl Parser<'_> {
    /// Reads parts with `OR` between them. Parentheses are balanced and bounded in depth.
    fn alternatives(&mut self) -> Option<Expression> {
        let mut parts = Vec::from_iter(self.conjunction());
        while self.skip(&Token::Or) {
            parts.extend(self.conjunction());
        }
        combined(parts, Expression::Any)
    }

    /// Reads parts that stand together, or have `AND` between them.
    fn conjunction(&mut self) -> Option<Expression> {
        let (mut groups, mut group) = (Vec::new(), Vec::new());
        loop {
            if self.skip(&Token::And) {
                groups.extend(combined(std::mem::take(&mut group), Expression::Together));
            } else if self.skip(&Token::Not) {
                let unwanted = self.unit().and_then(|parts| combined(parts, Expression::Together));
                group.extend(unwanted.map(|it| Expression::Not(Box::new(it))));
            } else if let Some(parts) = self.unit() {
                group.extend(parts);
            } else {
                break;
            }
        }
        groups.extend(combined(group, Expression::Together));
        combined(groups, Expression::All)
    }

    /// Reads a term, a filter or parentheses, which may hold several parts that stand together, or
    /// none.
    fn unit(&mut self) -> Option<Vec<Expression>> {
        let (first, rest) = self.tokens.split_first()?;
        let part = match first {
            Token::And | Token::Or | Token::Not | Token::Close => return None,
            Token::Term(term) => Expression::Term(term.clone()),
            Token::Filter(filter) => Expression::Filter(filter.clone()),
            Token::Open => {
                self.tokens = rest;
                let inside = self.alternatives();
                self.skip(&Token::Close);
                return Some(match inside {
                    Some(Expression::Together(parts)) => parts,
                    inside => Vec::from_iter(inside),
                });
            }
        };
        self.tokens = rest;
        Some(vec![part])
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
