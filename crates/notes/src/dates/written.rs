//! Dates as they are written: `2025-03-04`, `4 March 2025`, `March 4th`.

use jiff::ToSpan as _;
use jiff::civil::Date;

use super::{Days, Read};

/// Returns the first full date in a text, such as a title or a path. A date has a year; without a day
/// it is the first of its month.
pub fn written_date(text: &str) -> Option<Date> {
    // Most texts have none, and are not worth splitting.
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|letter: char| !letter.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
    let mut starts = (0..words.len()).filter_map(|start| words.get(start..));
    starts.find_map(full)
}

/// Reads a date with a year, split at whatever separates its parts: `2025-03-04`, `2025/03/04`.
fn full(words: &[&str]) -> Option<Date> {
    if let Some((days, _)) = dated(words) {
        return Some(days.first);
    }
    let [year_word, month_word, rest @ ..] = words else { return None };
    let month = two_digits(month_word).filter(|_| month_word.len() == 2)?;
    let day = rest.first().and_then(|word| two_digits(word)).unwrap_or(1);
    let year = year(year_word)?;
    Date::new(year, month, day).or_else(|_| Date::new(year, month, 1)).ok()
}

/// Returns the number of two digits at the beginning of a word, as in `04t10`.
fn two_digits(word: &str) -> Option<i8> {
    let (digits, rest) = word.split_at_checked(2)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_end = !rest.starts_with(|letter: char| letter.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number && has_end)
}

/// Reads a date that has a month and a year or a day.
pub(super) fn day_and_month(words: &[&str], today: Date) -> Read {
    if let Some(found) = dated(words) {
        return Some(found);
    }
    let (month, day, count) = match words {
        [day_word, "of", month_word, ..] => (month(month_word)?, day(day_word)?, 3),
        [first, second, ..] => match (month(first), month(second)) {
            (Some(month), _) => (month, day(second)?, 2),
            (None, Some(month)) => (month, day(first)?, 2),
            (None, None) => return None,
        },
        _ => return None,
    };
    let this_year = Date::new(today.year(), month, day).ok()?;
    let begun = if this_year <= today { this_year } else { this_year.saturating_sub(1.year()) };
    Some((Days::one(begun), count))
}

/// Reads a date with a year.
fn dated(words: &[&str]) -> Read {
    let first = words.first()?;
    if let Some(days) = iso(first) {
        return Some((days, 1));
    }
    let of_day = |year: i16, month: i8, day: i8| Some(Days::one(Date::new(year, month, day).ok()?));
    match words {
        [day_word, "of", month_word, year_word, ..] if day(day_word).is_some() => {
            Some((of_day(year(year_word)?, month(month_word)?, day(day_word)?)?, 4))
        }
        [one, two, year_word, ..] if year(year_word).is_some() && year(two).is_none() => {
            let (month, day) = match (month(one), month(two)) {
                (Some(month), _) => (month, day(two)?),
                (None, Some(month)) => (month, day(one)?),
                (None, None) => return None,
            };
            Some((of_day(year(year_word)?, month, day)?, 3))
        }
        [month_word, year_word, ..] => {
            let first = Date::new(year(year_word)?, month(month_word)?, 1).ok()?;
            Some((Days::of_month(first), 2))
        }
        _ => None,
    }
}

/// Reads `2025-03-04`, `2025-03` or a moment such as `2025-03-04t10:00`, of which the rest is
/// separate words.
fn iso(word: &str) -> Option<Days> {
    let parts: Vec<&str> = word.split('-').collect();
    match parts.as_slice() {
        [year_part, month_part] if month_part.len() == 2 => {
            let first = Date::new(year(year_part)?, two_digits(month_part)?, 1).ok()?;
            Some(Days::of_month(first))
        }
        [year_part, month_part, day_part, ..] if month_part.len() == 2 => {
            let (month, day) = (two_digits(month_part)?, two_digits(day_part)?);
            Some(Days::one(Date::new(year(year_part)?, month, day).ok()?))
        }
        _ => None,
    }
}

/// Returns the year of four digits that a word is.
pub(super) fn year(word: &str) -> Option<i16> {
    let is_year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|year| is_year && (1900..2200).contains(year))
}

/// Returns the number of the month that a word names.
pub(super) fn month(word: &str) -> Option<i8> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let is_it = |name: &str| {
        name == word || (name.get(..3) == Some(word)) || (word == "sept" && name.starts_with(word))
    };
    (1..).zip(NAMES).find(|(_, name)| is_it(name)).map(|(number, _)| number)
}

/// Returns the day of a month that a word is, such as `4` or `4th`.
fn day(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end));
    let digits = digits.unwrap_or(word);
    let is_number = digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|day| is_number && (1..=31).contains(day))
}
