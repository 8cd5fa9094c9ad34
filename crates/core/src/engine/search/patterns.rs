//! Patterns of paths, which the index has no terms for.
//!
//! A query with patterns is the same as several without, each for the memories whose paths fit some
//! of the patterns and not the others.

use crate::index::{PathFilter, Sense};
use crate::note::Glob;
use crate::query::{Expression, Field, Filter};

use super::fillers::is_condition;

/// So many searches a query may become.
const CASES_MAX: usize = 16;

/// What a query asks of the memories whose paths pass.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Case {
    /// What they must have; `None` if nothing.
    pub(super) wanted: Option<Expression>,
    /// What counts besides, if they have it.
    pub(super) preferred: Vec<Expression>,
    /// Which paths pass. No path passes in two cases.
    pub(super) paths: Vec<PathFilter>,
}

/// All cases of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cases {
    pub(super) cases: Vec<Case>,
    /// Whether there were too many patterns, so that some fit nothing.
    pub(super) is_cut: bool,
}

/// Whether the paths of a case fit a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    Fits,
    FitsNot,
    /// It makes no difference, or the pattern is left out and means nothing.
    Either,
}

/// What is known of an expression.
#[derive(PartialEq, Eq)]
enum Truth {
    Always,
    Never,
    Open(Expression),
}

impl Cases {
    pub(super) fn of(expression: &Expression) -> Self {
        let mut patterns = Patterns::default();
        patterns.collect(expression);
        let (open, is_cut) = patterns.decided(expression);
        let cases = open.iter().filter_map(|fits| patterns.case(expression, fits)).collect();
        Self { cases, is_cut }
    }
}

/// The patterns of a query, those beside each other in an `OR` together.
#[derive(Default)]
struct Patterns(Vec<Vec<Glob>>);

impl Patterns {
    fn collect(&mut self, expression: &Expression) {
        let globs = globs(expression);
        if !globs.is_empty() && !self.0.contains(&globs) {
            self.0.push(globs);
        }
        match expression {
            Expression::Any(parts) => {
                for part in parts.iter().filter(|part| pattern(part).is_none()) {
                    self.collect(part);
                }
            }
            Expression::Together(parts) | Expression::All(parts) => {
                for part in parts {
                    self.collect(part);
                }
            }
            Expression::Not(part) => self.collect(part),
            Expression::Term(_) | Expression::Filter(_) => {}
        }
    }

    /// Returns which patterns fit in each case, and whether there would have been too many cases.
    fn decided(&self, expression: &Expression) -> (Vec<Vec<Fit>>, bool) {
        let mut open: Vec<Vec<Fit>> = vec![Vec::new()];
        let mut is_cut = false;
        for _ in &self.0 {
            let each: Vec<_> = open.iter().map(|fits| self.choices(expression, fits)).collect();
            let is_too_much = each.iter().map(Vec::len).sum::<usize>() > CASES_MAX;
            let mut next = Vec::new();
            for (fits, choices) in open.iter().zip(each) {
                let is_left_out = is_too_much && choices.len() > 1;
                is_cut |= is_left_out;
                let choices = if is_left_out { vec![Fit::Either] } else { choices };
                next.extend(choices.into_iter().map(|fit| [fits.as_slice(), &[fit]].concat()));
            }
            open = next;
        }
        (open, is_cut)
    }

    /// Returns what the next pattern can be without ruling everything out.
    fn choices(&self, expression: &Expression, fits: &[Fit]) -> Vec<Fit> {
        let truth = |fit| self.truth(expression, &[fits, &[fit]].concat(), &mut Vec::new());
        match (truth(Fit::Fits), truth(Fit::FitsNot)) {
            (Truth::Never, Truth::Never) => Vec::new(),
            (Truth::Never, _) => vec![Fit::FitsNot],
            (_, Truth::Never) => vec![Fit::Fits],
            (fitting, other) if fitting == other => vec![Fit::Either],
            (_, _) => vec![Fit::Fits, Fit::FitsNot],
        }
    }

    fn case(&self, expression: &Expression, fits: &[Fit]) -> Option<Case> {
        let mut preferred = Vec::new();
        let wanted = match self.truth(expression, fits, &mut preferred) {
            Truth::Never => return None,
            Truth::Always => None,
            Truth::Open(wanted) => Some(wanted),
        };
        let filter = |(globs, fit): (&Vec<Glob>, &Fit)| {
            let sense = match fit {
                Fit::Fits => Sense::Must,
                Fit::FitsNot => Sense::MustNot,
                Fit::Either => return None,
            };
            Some(PathFilter { globs: globs.clone(), sense })
        };
        Some(Case {
            wanted,
            preferred,
            paths: self.0.iter().zip(fits).filter_map(filter).collect(),
        })
    }

    /// Returns what is left of an expression when it is known which of the first patterns fit. What
    /// an alternative that holds anyway makes needless is preferred.
    fn truth(
        &self,
        expression: &Expression,
        fits: &[Fit],
        preferred: &mut Vec<Expression>,
    ) -> Truth {
        let globs = globs(expression);
        let of_globs = match self.0.iter().zip(fits).find(|(known, _)| **known == globs) {
            Some((_, Fit::Fits)) => Truth::Always,
            Some((_, Fit::FitsNot | Fit::Either)) => Truth::Never,
            None if globs.is_empty() => Truth::Never,
            None => Truth::Open(expression.clone()),
        };
        match expression {
            Expression::Term(_) => Truth::Open(expression.clone()),
            Expression::Filter(_) if globs.is_empty() => Truth::Open(expression.clone()),
            Expression::Filter(_) => of_globs,
            Expression::Together(parts) => {
                self.all(parts, fits, preferred).map(Expression::Together)
            }
            Expression::All(parts) => self.all(parts, fits, preferred).map(Expression::All),
            Expression::Any(parts) => {
                let others = parts.iter().filter(|part| pattern(part).is_none());
                let mut truths: Vec<_> =
                    others.map(|part| self.truth(part, fits, preferred)).collect();
                truths.push(of_globs);
                one_of(truths, preferred)
            }
            Expression::Not(part) => match self.truth(part, fits, &mut Vec::new()) {
                Truth::Always => Truth::Never,
                Truth::Never => Truth::Always,
                Truth::Open(part) => Truth::Open(Expression::Not(Box::new(part))),
            },
        }
    }

    fn all(&self, parts: &[Expression], fits: &[Fit], preferred: &mut Vec<Expression>) -> All {
        let mut open = Vec::new();
        for part in parts {
            match self.truth(part, fits, preferred) {
                Truth::Always => {}
                Truth::Never => return All::Never,
                Truth::Open(part) => open.push(part),
            }
        }
        All::Open(open)
    }
}

/// What is left of parts that must all hold.
enum All {
    Never,
    Open(Vec<Expression>),
}

impl All {
    fn map(self, combine: fn(Vec<Expression>) -> Expression) -> Truth {
        match self {
            Self::Never => Truth::Never,
            Self::Open(parts) if parts.is_empty() => Truth::Always,
            Self::Open(parts) => Truth::Open(combine(parts)),
        }
    }
}

fn one_of(truths: Vec<Truth>, preferred: &mut Vec<Expression>) -> Truth {
    let is_certain = truths.contains(&Truth::Always);
    let mut open = Vec::new();
    for truth in truths {
        if let Truth::Open(part) = truth {
            open.push(part);
        }
    }
    if is_certain {
        preferred.extend(open.into_iter().filter(|part| !is_condition(part)));
        return Truth::Always;
    }
    if open.is_empty() { Truth::Never } else { Truth::Open(Expression::Any(open)) }
}

/// Returns the patterns of which one is to fit, if an expression is one or has some beside each
/// other.
fn globs(expression: &Expression) -> Vec<Glob> {
    match expression {
        Expression::Any(parts) => parts.iter().filter_map(pattern).collect(),
        Expression::Filter(_) => pattern(expression).into_iter().collect(),
        Expression::Term(_) | Expression::Together(_) | Expression::All(_) | Expression::Not(_) => {
            Vec::new()
        }
    }
}

/// Returns the pattern of a filter on the path; `None` if it names one place or is something else.
fn pattern(expression: &Expression) -> Option<Glob> {
    let Expression::Filter(Filter { field: Field::Path, value }) = expression else { return None };
    let place = value.strip_suffix("/*").unwrap_or(value);
    place.contains(['*', '?']).then(|| Glob::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    fn cases(text: &str) -> Cases {
        Cases::of(&Query::parse(text).wanted.unwrap())
    }

    #[test]
    fn patterns_that_must_or_must_not_fit_need_one_search() {
        let many: Vec<_> = (0..60).map(|number| format!("NOT path:*{number}*")).collect();
        for text in ["tea path:*a*", "tea AND (path:*a* OR path:*b*)", &many.join(" ")] {
            assert_eq!((cases(text).cases.len(), cases(text).is_cut), (1, false), "{text}");
        }
        assert_eq!(cases("path:*a* NOT path:*a*"), Cases::default());
        assert_eq!(cases("(path:*a* path:*b*) OR (path:*c* NOT path:*a*)").cases.len(), 2);
    }

    #[test]
    fn patterns_in_one_or_are_one() {
        let many: Vec<_> = (0..60).map(|number| format!("path:*{number}*")).collect();
        let found = cases(&format!("tea OR {}", many.join(" OR ")));
        assert_eq!((found.cases.len(), found.is_cut), (2, false));
        assert_eq!(found.cases[0].wanted, None);
        assert_eq!(found.cases[0].preferred, [Query::parse("tea").wanted.unwrap()]);
    }

    #[test]
    fn a_query_never_becomes_many_searches() {
        let many: Vec<_> = (0..60).map(|number| format!("NOT (path:*{number}* tea)")).collect();
        let found = cases(&many.join(" "));
        assert!((2..=CASES_MAX).contains(&found.cases.len()));
        assert!(found.is_cut);
    }
}
