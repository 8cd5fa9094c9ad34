//! The parser of the query language. `NOT` binds tightest, then juxtaposition, `AND`, `OR`.

use super::Expr;
use super::lexer::Lexeme;

/// Parses lexemes; `None` if they hold no term.
pub(super) fn parse(tokens: &[Lexeme]) -> Option<Expr> {
    Parser { tokens }.alternatives()
}

struct Parser<'a> {
    tokens: &'a [Lexeme],
}

impl Parser<'_> {
    /// Parses operands of `OR`. The lexer has balanced the parentheses and bounded their depth.
    fn alternatives(&mut self) -> Option<Expr> {
        let mut parts = Vec::from_iter(self.conjunction());
        while self.skip(&Lexeme::Or) {
            parts.extend(self.conjunction());
        }
        combined(parts, Expr::Or)
    }

    /// Parses operands of `AND`, each a juxtaposition.
    fn conjunction(&mut self) -> Option<Expr> {
        let (mut groups, mut group) = (Vec::new(), Vec::new());
        loop {
            if self.skip(&Lexeme::And) {
                groups.extend(combined(std::mem::take(&mut group), Expr::Juxtaposed));
            } else if self.skip(&Lexeme::Not) {
                let unwanted = self.unit().and_then(|parts| combined(parts, Expr::Juxtaposed));
                group.extend(unwanted.map(|it| Expr::Not(Box::new(it))));
            } else if let Some(parts) = self.unit() {
                group.extend(parts);
            } else {
                break;
            }
        }
        groups.extend(combined(group, Expr::Juxtaposed));
        combined(groups, Expr::And)
    }

    /// Parses a term, a filter or parentheses. Juxtaposed expressions in parentheses are returned
    /// one by one, so that `(a b) c` equals `a b c`.
    fn unit(&mut self) -> Option<Vec<Expr>> {
        let (first, rest) = self.tokens.split_first()?;
        let part = match first {
            Lexeme::And | Lexeme::Or | Lexeme::Not | Lexeme::Close => return None,
            Lexeme::Term(term) => Expr::Term(term.clone()),
            Lexeme::Filter(filter) => Expr::Filter(filter.clone()),
            Lexeme::Open => {
                self.tokens = rest;
                let inside = self.alternatives();
                self.skip(&Lexeme::Close);
                return Some(match inside {
                    Some(Expr::Juxtaposed(parts)) => parts,
                    inside => Vec::from_iter(inside),
                });
            }
        };
        self.tokens = rest;
        Some(vec![part])
    }

    fn skip(&mut self, token: &Lexeme) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if first == token => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }
}

/// Combines expressions; a single one is returned unchanged.
fn combined(mut parts: Vec<Expr>, combine: fn(Vec<Expr>) -> Expr) -> Option<Expr> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(combine(parts)),
    }
}
