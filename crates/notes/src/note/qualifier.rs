//! Time qualifiers of observations: `@effective[2026-06-10,2026-07-27)`, `@due:2026-07-27`,
//! `@2026-06`.

use std::ops::Bound;

use jiff::civil;

/// A time qualifier of an observation. Dates are kept as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeQualifier {
    /// The whole qualifier as written, such as `@due:2026-07-27`.
    pub written: String,
    /// How the time relates to the fact.
    pub kind: TimeKind,
    /// The start; a round bracket excludes the date.
    pub from: Bound<String>,
    /// The end; a round bracket excludes the date.
    pub until: Bound<String>,
}

/// How a time relates to a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeKind {
    /// The fact is in force during that time.
    Effective,
    /// The fact is true during that time.
    Valid,
    /// The fact happened then.
    Occurred,
    /// The task is due then.
    Due,
    /// The fact refers to that time.
    Mentioned,
}

impl TimeKind {
    /// All kinds by keyword.
    const WORDS: [(&'static str, Self); 5] = [
        ("effective", Self::Effective),
        ("valid", Self::Valid),
        ("occurred", Self::Occurred),
        ("due", Self::Due),
        ("mentioned", Self::Mentioned),
    ];

    /// Returns the keyword.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// Parses the qualifiers at the beginning of a text, and returns the rest.
pub(super) fn qualifiers(mut text: &str) -> (Vec<TimeQualifier>, &str) {
    let mut found = Vec::new();
    while let Some((qualifier, rest)) = qualifier(text) {
        found.push(qualifier);
        text = rest;
    }
    (found, text)
}

fn qualifier(text: &str) -> Option<(TimeQualifier, &str)> {
    let after = text.strip_prefix('@')?;
    let word_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
    let (word, after) = after.split_at_checked(word_end)?;
    let kind = match word {
        "" => TimeKind::Valid,
        word => TimeKind::WORDS.iter().find(|(known, _)| *known == word)?.1,
    };
    let is_span = after.starts_with(['[', '(']);
    let end = if is_span {
        // Dates hold no brackets, so the first one ends the span.
        after.find([']', ')'])? + 1
    } else {
        after.find(char::is_whitespace).unwrap_or(after.len())
    };
    let (time, rest) = after.split_at_checked(end)?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let (from, until) = if is_span { span(time)? } else { point(time, word)? };
    let written = text.get(..text.len() - rest.len()).unwrap_or_default().to_owned();
    Some((TimeQualifier { written, kind, from, until }, rest.trim_start()))
}

fn point(time: &str, word: &str) -> Option<(Bound<String>, Bound<String>)> {
    let time = if word.is_empty() { time } else { time.strip_prefix(':')? };
    let bound = || Bound::Included(time.to_owned());
    is_date(time).then(|| (bound(), bound()))
}

fn span(time: &str) -> Option<(Bound<String>, Bound<String>)> {
    let (from, until) = time.split_once(',')?;
    let (from, until) = match (from.strip_prefix('['), from.strip_prefix('(')) {
        (Some(date), _) => (bound(date, Bound::Included)?, until),
        (None, Some(date)) => (bound(date, Bound::Excluded)?, until),
        (None, None) => return None,
    };
    let until = match (until.strip_suffix(']'), until.strip_suffix(')')) {
        (Some(date), _) => bound(date, Bound::Included)?,
        (None, Some(date)) => bound(date, Bound::Excluded)?,
        (None, None) => return None,
    };
    let is_empty = matches!((&from, &until), (Bound::Unbounded, Bound::Unbounded));
    (!is_empty).then_some((from, until))
}

fn bound(date: &str, wrap: fn(String) -> Bound<String>) -> Option<Bound<String>> {
    match date.trim() {
        "" => Some(Bound::Unbounded),
        date => is_date(date).then(|| wrap(date.to_owned())),
    }
}

/// Returns whether a text is a year, a month, a day or a timestamp.
fn is_date(text: &str) -> bool {
    let is_number = |part: &str, digits| {
        part.len() == digits && part.bytes().all(|digit| digit.is_ascii_digit())
    };
    match text.split_once('-') {
        None => is_number(text, 4),
        Some((year, month)) if is_number(year, 4) && month.len() == 2 => {
            is_number(month, 2) && matches!(month.parse(), Ok(1..=12))
        }
        Some((year, _)) => {
            is_number(year, 4)
                && (text.parse::<civil::Date>().is_ok()
                    || text.parse::<civil::DateTime>().is_ok()
                    || text.parse::<jiff::Timestamp>().is_ok())
        }
    }
}
