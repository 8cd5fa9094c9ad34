//! Dates in questions: `last week`, `in May 2025`, `before 2025-03-04`.
//!
//! Only expressions are understood that are hardly anything else: `May` alone may be a name and `2024` a
//! number, so they need a word before them or a further part of a date. A date without a year is the last
//! one that has begun.
//!
//! The grammar is that of English. German, French, Spanish and Russian differ from it in words and in the
//! place of a few of them, so a question in one of these is put into English word by word; Chinese and
//! Japanese have no words to split, and are read by their characters.

mod characters;
mod events;
mod words;
mod written;

#[cfg(test)]
mod tests;

use jiff::civil::Weekday;
use jiff::tz::Offset;
use jiff::{Span, Timestamp, ToSpan as _};

pub use events::EventReference;
pub use jiff::civil::Date;
pub use written::written_date;
use written::{day_and_month, month, year};

/// A span of days that a text asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateSpan {
    /// The first day.
    pub first: Date,
    /// The last day.
    pub last: Date,
    /// The words that mean it, in lower case.
    pub written: String,
}

impl DateSpan {
    /// Returns the first span that a text asks about, as seen from a day.
    pub fn find(text: &str, today: Date) -> Option<Self> {
        let lower = text.to_lowercase();
        let (Days { first, last }, written) =
            characters::find(&lower, today).or_else(|| words::find(&lower, today))?;
        (first <= last).then_some(Self { first, last, written })
    }

    /// Returns whether a day is in the span.
    pub fn contains(&self, day: Date) -> bool {
        self.first <= day && day <= self.last
    }
}

/// Returns the day of a moment, given in microseconds since 1970, in UTC.
pub fn day_of(microseconds: i64) -> Option<Date> {
    let at = Timestamp::from_microsecond(microseconds).ok()?;
    Some(Offset::UTC.to_datetime(at).date())
}

/// Some days, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Days {
    pub(crate) first: Date,
    pub(crate) last: Date,
}

impl Days {
    pub(crate) fn one(day: Date) -> Self {
        Self { first: day, last: day }
    }

    pub(crate) fn of_month(day: Date) -> Self {
        Self { first: day.first_of_month(), last: day.last_of_month() }
    }

    pub(crate) fn of_year(day: Date) -> Self {
        Self { first: day.first_of_year(), last: day.last_of_year() }
    }

    fn of_week(day: Date) -> Self {
        let first = day.saturating_sub(i64::from(day.weekday().since(Weekday::Monday)).days());
        Self { first, last: first.saturating_add(6.days()) }
    }
}

/// Days, and the number of words that mean them.
pub(crate) type Read = Option<(Days, usize)>;

/// Reads an expression at the beginning of some words.
fn span(words: &[&str], today: Date) -> Read {
    let (word, rest) = words.split_first()?;
    if let Some(bound) = Bound::of(word) {
        let (days, count) = determined(rest, today).or_else(|| plain(rest, today))?;
        return Some((bound.apply(days), count + 1));
    }
    if matches!(*word, "in" | "during" | "on" | "of" | "from") {
        let (days, count) = determined(rest, today).or_else(|| plain(rest, today))?;
        return Some((days, count + 1));
    }
    plain(words, today)
}

/// On which side of some days a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Before,
    Until,
    After,
    Since,
}

impl Bound {
    fn of(word: &str) -> Option<Self> {
        match word {
            "before" => Some(Self::Before),
            "until" | "till" | "by" => Some(Self::Until),
            "after" => Some(Self::After),
            "since" => Some(Self::Since),
            _ => None,
        }
    }

    fn apply(self, days: Days) -> Days {
        match self {
            Self::Before => Days { first: Date::MIN, last: earlier(days.first, 1.day()) },
            Self::Until => Days { first: Date::MIN, last: days.last },
            Self::After => Days { first: later(days.last, 1.day()), last: Date::MAX },
            Self::Since => Days { first: days.first, last: Date::MAX },
        }
    }
}

/// Reads what is a date only after a word such as `in`.
fn determined(words: &[&str], today: Date) -> Read {
    let first = words.first()?;
    if let Some((days, count)) = day_and_month(words, today) {
        return Some((days, count));
    }
    if let Some(year) = year(first) {
        return Some((Days::of_year(Date::new(year, 1, 1).ok()?), 1));
    }
    if let Some(month) = month(first) {
        let this_year = Date::new(today.year(), month, 1).ok()?;
        let begun = if this_year <= today { this_year } else { earlier(this_year, 1.year()) };
        return Some((Days::of_month(begun), 1));
    }
    weekday(first).map(|day| (Days::one(before(today, day)), 1))
}

/// Reads what is a date wherever it stands.
fn plain(words: &[&str], today: Date) -> Read {
    if let Some(found) = day_and_month(words, today) {
        return Some(found);
    }
    match words {
        ["today" | "tonight", ..] => Some((Days::one(today), 1)),
        ["yesterday", ..] => Some((Days::one(earlier(today, 1.day())), 1)),
        ["last" | "past", unit, ..] if weekday(unit).is_some() => {
            Some((Days::one(before(today, weekday(unit)?)), 2))
        }
        ["this", unit, ..] => Some((around(unit, today)?, 2)),
        ["last" | "previous", unit, ..] if around(unit, today).is_some() => {
            Some((around(unit, earlier(around(unit, today)?.first, 1.day()))?, 2))
        }
        ["last" | "past", count, unit, ..] => {
            let first = earlier(today, units(number(count)?, unit)?);
            Some((Days { first, last: today }, 3))
        }
        [count, unit, "ago", ..] => {
            let then = earlier(today, units(number(count)?, unit)?);
            // What was `two weeks ago` was hardly on that very day.
            let days = if unit.starts_with("day") { Days::one(then) } else { around(unit, then)? };
            Some((days, 3))
        }
        _ => None,
    }
}

/// Returns the week, month or year that a day is in.
fn around(unit: &str, day: Date) -> Option<Days> {
    match unit.strip_suffix('s').unwrap_or(unit) {
        "week" => Some(Days::of_week(day)),
        "month" => Some(Days::of_month(day)),
        "year" => Some(Days::of_year(day)),
        _ => None,
    }
}

fn units(count: i64, unit: &str) -> Option<Span> {
    match unit.strip_suffix('s').unwrap_or(unit) {
        "day" => Some(count.days()),
        "week" => Some(count.weeks()),
        "month" => Some(count.months()),
        "year" => Some(count.years()),
        _ => None,
    }
}

/// Returns a small number, in digits or in words.
fn number(word: &str) -> Option<i64> {
    const WORDS: [&str; 12] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    if matches!(word, "a" | "an") {
        return Some(1);
    }
    let spelled = (1..).zip(WORDS).find(|(_, known)| *known == word).map(|(number, _)| number);
    // More would leave the calendar.
    spelled.or_else(|| word.parse().ok().filter(|number| (1..1000).contains(number)))
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

/// Returns the last day before today that is this day of the week.
fn before(today: Date, day: Weekday) -> Date {
    let yesterday = earlier(today, 1.day());
    earlier(yesterday, i64::from(yesterday.weekday().since(day)).days())
}

fn earlier(day: Date, span: Span) -> Date {
    day.saturating_sub(span)
}

fn later(day: Date, span: Span) -> Date {
    day.saturating_add(span)
}
