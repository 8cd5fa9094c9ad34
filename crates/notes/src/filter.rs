//! Filters on the fields of a note's frontmatter.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

/// A filter on a frontmatter field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter {
    /// The field; dots descend into maps, as in `author.name`.
    pub key: String,
    /// What must hold for its values.
    pub predicate: Predicate,
}

/// A predicate on the values of a field. A list has several values, of which one must match.
///
/// Two numbers compare as numbers, anything else as case-insensitive text, which sorts ISO dates. A
/// timestamp that is compared with a date is truncated to its date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// The field exists.
    Exists,
    /// The field does not exist.
    Absent,
    /// A value compares like this with the given one.
    Is(Comparison, String),
    /// A value is one of these.
    In(Vec<String>),
    /// A value is between these, inclusive.
    Between(String, String),
    /// Each of these equals a value or is a substring of one.
    Contains(Vec<String>),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal; holds for a field that does not exist.
    NotEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
}

impl FieldFilter {
    /// Returns whether the values of the field match; there are none if it does not exist.
    pub fn accepts<'a>(&self, mut values: impl Iterator<Item = &'a str> + Clone) -> bool {
        match &self.predicate {
            Predicate::Exists => values.next().is_some(),
            Predicate::Absent => values.next().is_none(),
            Predicate::Is(Comparison::NotEqual, wanted) => {
                !values.any(|value| compare(value, wanted) == Ordering::Equal)
            }
            Predicate::Is(comparison, wanted) => {
                values.any(|value| comparison.holds(compare(value, wanted)))
            }
            Predicate::In(wanted) => {
                values.any(|value| wanted.iter().any(|it| compare(value, it) == Ordering::Equal))
            }
            Predicate::Between(low, high) => values.any(|value| {
                compare(value, low) != Ordering::Less && compare(value, high) != Ordering::Greater
            }),
            Predicate::Contains(wanted) => wanted.iter().all(|wanted| {
                let lower = wanted.to_lowercase();
                values.clone().any(|value| {
                    compare(value, wanted) == Ordering::Equal
                        || value.to_lowercase().contains(&lower)
                })
            }),
        }
    }

    /// Returns whether a note without the field matches.
    pub fn accepts_absence(&self) -> bool {
        self.accepts(std::iter::empty())
    }
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering == Ordering::Equal,
            Self::NotEqual => ordering != Ordering::Equal,
            Self::Greater => ordering == Ordering::Greater,
            Self::GreaterOrEqual => ordering != Ordering::Less,
            Self::Less => ordering == Ordering::Less,
            Self::LessOrEqual => ordering != Ordering::Greater,
        }
    }
}

fn compare(left: &str, right: &str) -> Ordering {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match (number(left), number(right)) {
        // Not `total_cmp`, for which `-0` is less than `0`. Both are finite, so they have an order.
        (Some(left), Some(right)) => left.partial_cmp(&right).unwrap_or(Ordering::Equal),
        (_, _) => {
            let left = if is_day(right) { day_of(left) } else { left };
            left.to_lowercase().cmp(&right.to_lowercase())
        }
    }
}

/// Returns whether a text is a date in the form `2026-11-15`.
fn is_day(text: &str) -> bool {
    let is_day = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(is_day)
}

/// Returns the date of a timestamp, and any other text unchanged.
fn day_of(text: &str) -> &str {
    match text.split_once(['T', 't', ' ']) {
        Some((day, time)) if is_day(day) && time.starts_with(|it: char| it.is_ascii_digit()) => day,
        Some(_) | None => text,
    }
}
