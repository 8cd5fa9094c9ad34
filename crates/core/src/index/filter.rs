//! Conditions on the fields of a note's frontmatter and on its path.

use std::cmp::Ordering;

use crate::model::MemoryPath;
use crate::note::Glob;

/// What a field must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter {
    /// The field; dots lead into maps: `author.name`.
    pub key: String,
    /// What must hold.
    pub condition: Condition,
}

/// A condition on the values of a field. A list has several values; one that fits is enough.
///
/// Numbers are compared as numbers, anything else as text, in which case makes no difference; so
/// ISO dates are in their order. A moment is compared with a day as the day on which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The field is there.
    Exists,
    /// The field is not there.
    Absent,
    /// A value compares so with this one.
    Is(Comparison, String),
    /// A value is one of these.
    In(Vec<String>),
    /// A value lies between these; both belong to it.
    Between(String, String),
    /// For each of these there is a value that equals it or, being a text, has it in it.
    Contains(Vec<String>),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal; a field that is not there is not equal to anything.
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

/// Which patterns the path of a memory must or must not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFilter {
    /// The patterns; one that fits is enough.
    pub globs: Vec<Glob>,
    /// Whether one must fit or must not.
    pub sense: Sense,
}

/// Whether something must hold or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// It must.
    Must,
    /// It must not.
    MustNot,
}

impl PathFilter {
    /// Tells whether a path passes.
    pub fn accepts(&self, path: &MemoryPath) -> bool {
        let fits = self.globs.iter().any(|glob| glob.matches(path.as_str()));
        fits == (self.sense == Sense::Must)
    }
}

impl FieldFilter {
    /// Tells whether the values of the field fit; none means that the field is not there.
    pub fn accepts<'a>(&self, mut values: impl Iterator<Item = &'a str> + Clone) -> bool {
        match &self.condition {
            Condition::Exists => values.next().is_some(),
            Condition::Absent => values.next().is_none(),
            Condition::Is(Comparison::NotEqual, wanted) => {
                !values.any(|value| compare(value, wanted) == Ordering::Equal)
            }
            Condition::Is(comparison, wanted) => {
                values.any(|value| comparison.holds(compare(value, wanted)))
            }
            Condition::In(wanted) => {
                values.any(|value| wanted.iter().any(|it| compare(value, it) == Ordering::Equal))
            }
            Condition::Between(low, high) => values.any(|value| {
                compare(value, low) != Ordering::Less && compare(value, high) != Ordering::Greater
            }),
            Condition::Contains(wanted) => wanted.iter().all(|wanted| {
                let lower = wanted.to_lowercase();
                values.clone().any(|value| {
                    compare(value, wanted) == Ordering::Equal
                        || value.to_lowercase().contains(&lower)
                })
            }),
        }
    }

    /// Tells whether a memory without the field can fit.
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
        (Some(left), Some(right)) => left.total_cmp(&right),
        (_, _) => {
            let left = if is_day(right) { day_of(left) } else { left };
            left.to_lowercase().cmp(&right.to_lowercase())
        }
    }
}

/// Tells whether a text is like `2026-11-15`.
fn is_day(text: &str) -> bool {
    let is_day = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(is_day)
}

/// Returns the day of a moment; any other text stays as it is.
fn day_of(text: &str) -> &str {
    match text.split_once(['T', 't', ' ']) {
        Some((day, time)) if is_day(day) && time.starts_with(|it: char| it.is_ascii_digit()) => day,
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(condition: Condition, values: &[&str]) -> bool {
        FieldFilter { key: "k".to_owned(), condition }.accepts(values.iter().copied())
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn numbers_compare_as_numbers_and_the_rest_as_text() {
        let greater = |than: &str| Condition::Is(Comparison::Greater, than.to_owned());
        assert!(check(greater("9"), &["10"]));
        assert!(!check(greater("9"), &["10 apples"]));
        assert!(check(greater("2026-01-31"), &["2026-02-01"]));
        assert!(check(Condition::Is(Comparison::Equal, "1.0".to_owned()), &["1"]));
        assert!(check(Condition::Is(Comparison::Equal, "Done".to_owned()), &["done"]));
    }

    #[test]
    fn a_moment_is_on_its_day() {
        let is = |comparison| Condition::Is(comparison, "2026-11-15".to_owned());
        let moment = ["2026-11-15T10:00:00.000000Z"];
        assert!(check(is(Comparison::Equal), &moment));
        assert!(check(is(Comparison::LessOrEqual), &["2026-11-15 23:59"]));
        assert!(!check(is(Comparison::Greater), &moment));
        assert!(check(is(Comparison::Greater), &["2026-11-16T00:00:00Z"]));
        assert!(!check(is(Comparison::Equal), &["2026-11-15 tea"]));
    }

    #[test]
    fn one_value_of_a_list_is_enough() {
        assert!(check(Condition::In(texts(&["b", "c"])), &["a", "b"]));
        assert!(check(Condition::Between("2".to_owned(), "3".to_owned()), &["1", "3"]));
        assert!(!check(Condition::Between("2".to_owned(), "3".to_owned()), &["1", "4"]));
    }

    #[test]
    fn contains_wants_all_and_looks_into_texts() {
        assert!(check(Condition::Contains(texts(&["a", "b"])), &["b", "A"]));
        assert!(!check(Condition::Contains(texts(&["a", "x"])), &["b", "a"]));
        assert!(check(Condition::Contains(texts(&["ea ho"])), &["Tea House"]));
    }

    #[test]
    fn absence_is_a_condition_too() {
        assert!(check(Condition::Absent, &[]));
        assert!(check(Condition::Is(Comparison::NotEqual, "x".to_owned()), &[]));
        assert!(!check(Condition::Exists, &[]));
        assert!(check(Condition::Exists, &[""]));
    }
}
