//! Patterns of paths, which the index has no terms for.

use crate::Error;
use crate::backend::Reader;
use crate::engine::naming::each_note;
use crate::index::{PathFilter, Sense};
use crate::model::StoreId;
use crate::note::Glob;
use crate::query::{Expression, Field, Filter};

/// So many memories a pattern stands for inside of `OR`, `NOT` and parentheses.
const MATCHES_MAX: usize = 1000;

/// Takes the patterns that every hit must or must not fit out of an expression; the others become
/// the paths that fit them.
pub(super) fn without_patterns(
    reader: &dyn Reader,
    stores: &[StoreId],
    expression: Expression,
    filters: &mut Vec<PathFilter>,
) -> Result<Option<Expression>, Error> {
    if let Some(globs) = globs(&expression) {
        filters.push(PathFilter { globs, sense: Sense::Must });
        return Ok(None);
    }
    let mut each = |parts: Vec<Expression>| -> Result<Vec<Expression>, Error> {
        let mut kept = Vec::new();
        for part in parts {
            kept.extend(without_patterns(reader, stores, part, filters)?);
        }
        Ok(kept)
    };
    Ok(Some(match expression {
        Expression::Not(unwanted) => match globs(&unwanted) {
            Some(globs) => {
                filters.push(PathFilter { globs, sense: Sense::MustNot });
                return Ok(None);
            }
            None => Expression::Not(Box::new(spelled_out(reader, stores, *unwanted)?)),
        },
        Expression::Together(parts) => match each(parts)? {
            parts if parts.is_empty() => return Ok(None),
            parts => Expression::Together(parts),
        },
        Expression::All(parts) => match each(parts)? {
            parts if parts.is_empty() => return Ok(None),
            parts => Expression::All(parts),
        },
        Expression::Any(_) | Expression::Term(_) | Expression::Filter(_) => {
            spelled_out(reader, stores, expression)?
        }
    }))
}

/// Returns the patterns of which one is to fit, if the expression is nothing else.
fn globs(expression: &Expression) -> Option<Vec<Glob>> {
    match expression {
        Expression::Filter(filter) => pattern(filter).map(|glob| vec![glob]),
        Expression::Any(parts) => {
            let each: Option<Vec<_>> = parts.iter().map(globs).collect();
            each.map(|each| each.concat())
        }
        Expression::Term(_) | Expression::Together(_) | Expression::All(_) | Expression::Not(_) => {
            None
        }
    }
}

/// Returns the pattern of a filter on the path; `None` if it names one place.
fn pattern(filter: &Filter) -> Option<Glob> {
    let place = filter.value.strip_suffix("/*").unwrap_or(&filter.value);
    (filter.field == Field::Path && place.contains(['*', '?'])).then(|| Glob::new(&filter.value))
}

/// Puts the paths that fit them in the place of patterns.
fn spelled_out(
    reader: &dyn Reader,
    stores: &[StoreId],
    expression: Expression,
) -> Result<Expression, Error> {
    let each = |parts: Vec<Expression>| -> Result<Vec<Expression>, Error> {
        parts.into_iter().map(|part| spelled_out(reader, stores, part)).collect()
    };
    Ok(match expression {
        Expression::Filter(filter) => match pattern(&filter) {
            Some(glob) => Expression::Any(paths(reader, stores, &glob)?),
            None => Expression::Filter(filter),
        },
        Expression::Together(parts) => Expression::Together(each(parts)?),
        Expression::All(parts) => Expression::All(each(parts)?),
        Expression::Any(parts) => Expression::Any(each(parts)?),
        Expression::Not(part) => Expression::Not(Box::new(spelled_out(reader, stores, *part)?)),
        Expression::Term(_) => expression,
    })
}

fn paths(reader: &dyn Reader, stores: &[StoreId], glob: &Glob) -> Result<Vec<Expression>, Error> {
    let mut paths = Vec::new();
    for &store in stores {
        each_note(reader, store, |row| {
            if glob.matches(row.path.as_str()) {
                let value = row.path.as_str().to_owned();
                paths.push(Expression::Filter(Filter { field: Field::Path, value }));
            }
            paths.len() < MATCHES_MAX
        })?;
    }
    Ok(paths)
}
