//! Points in time as people and models write them: `7d`, `two weeks ago`, `yesterday`, `this month`,
//! `2026-11-15`, `2026-11`.

use std::time::Duration;

use crate::model::Timestamp;

const DAY: Duration = Duration::from_hours(24);

/// Returns the moment that a text means, looking back from `now`; `None` if it is malformed.
///
/// Days begin at midnight UTC and weeks on Monday. A span without `ago` means the same as with it.
pub fn since(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim().to_lowercase();
    match text.as_str() {
        "now" => return Some(now),
        "today" => return Some(midnight(now)),
        "yesterday" => return Some(midnight(now).minus(DAY)),
        "this week" => return Some(monday(now)),
        "this month" => return month_start(now.to_string().get(..7)?),
        "this year" => return month_start(&format!("{}-01", now.to_string().get(..4)?)),
        _ => {}
    }
    match span(text.strip_suffix("ago").unwrap_or(&text)) {
        Some(span) => Some(now.minus(span)),
        None => text.to_uppercase().parse().ok().or_else(|| month_start(&text)),
    }
}

/// Returns the moment that a text means, as [`since`] does; a day may be followed by a time of day, as in
/// `yesterday 14:00` and `2026-11-15 09:30`.
pub fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    let Some((day, time)) = text.rsplit_once(' ') else {
        return since(text, now);
    };
    let Some(time) = time_of_day(time) else {
        return since(text, now);
    };
    let day = match day.trim().to_lowercase().as_str() {
        day @ ("today" | "yesterday") => since(day, now)?,
        // Only a date has a midnight to count from: `2h ago 14:00` means nothing.
        day if day.len() == "2026-11-15".len() => day.parse().ok()?,
        _ => return None,
    };
    Some(day.plus(time))
}

/// Returns how long after midnight a time such as `14:00` or `14:00:30` is.
fn time_of_day(text: &str) -> Option<Duration> {
    let midnight = jiff::civil::Time::midnight();
    let time = text.contains(':').then(|| text.parse::<jiff::civil::Time>().ok())??;
    Duration::try_from(
        time.since(midnight).ok()?.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?,
    )
    .ok()
}

/// Returns when a month such as `2026-11` begins.
fn month_start(month: &str) -> Option<Timestamp> {
    format!("{month}-01").parse().ok()
}

fn monday(now: Timestamp) -> Timestamp {
    let midnight = midnight(now);
    let day_micros = i64::try_from(DAY.as_micros()).expect("a day is short");
    // The epoch, 1970-01-01, was a Thursday.
    let days_since_monday = (midnight.as_micros().div_euclid(day_micros) + 3).rem_euclid(7);
    midnight.minus(DAY * u32::try_from(days_since_monday).unwrap_or_default())
}

/// Returns the duration that a text means, such as `90d`, `3 hours` or `1 month`.
pub fn span(text: &str) -> Option<Duration> {
    let text = text.trim().trim_start_matches("last ").trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(digits_end)?;
    let (count, unit): (u32, &str) = match (digits, unit.split_once(' ')) {
        ("", Some((word, unit))) => (number(word)?, unit),
        ("", None) => (1, unit),
        (digits, _) => (digits.parse().ok()?, unit),
    };
    let unit = match unit.trim() {
        "s" | "sec" | "secs" | "second" | "seconds" => Duration::from_secs(1),
        "m" | "min" | "mins" | "minute" | "minutes" => Duration::from_mins(1),
        "h" | "hour" | "hours" => Duration::from_hours(1),
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => DAY * 7,
        "month" | "months" => DAY * 30,
        "y" | "year" | "years" => DAY * 365,
        _ => return None,
    };
    unit.checked_mul(count)
}

/// Returns the number that a word stands for.
fn number(word: &str) -> Option<u32> {
    const WORDS: [&str; 12] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let place = match word {
        "a" | "an" => Some(0),
        word => WORDS.iter().position(|known| *known == word),
    };
    u32::try_from(place? + 1).ok()
}

fn midnight(now: Timestamp) -> Timestamp {
    let day_micros = i64::try_from(DAY.as_micros()).expect("a day is short");
    Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(day_micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Option<String> {
        let now = "2026-11-15T12:30:00Z".parse().unwrap();
        since(text, now).map(|at| at.to_string().replace(".000000", ""))
    }

    #[test]
    fn spans_look_back() {
        assert_eq!(check("7d").as_deref(), Some("2026-11-08T12:30:00Z"));
        assert_eq!(check("2 weeks").as_deref(), Some("2026-11-01T12:30:00Z"));
        assert_eq!(check("3 hours ago").as_deref(), Some("2026-11-15T09:30:00Z"));
        assert_eq!(check("Last Week").as_deref(), Some("2026-11-08T12:30:00Z"));
        assert_eq!(check("90m").as_deref(), Some("2026-11-15T11:00:00Z"));
    }

    #[test]
    fn numbers_may_be_words() {
        assert_eq!(check("a week ago"), check("7d"));
        assert_eq!(check("an hour ago"), check("1h"));
        assert_eq!(check("two days ago"), check("2d"));
        assert_eq!(check("last twelve months"), check("12 months"));
    }

    #[test]
    fn weeks_months_and_years_have_a_start() {
        assert_eq!(check("this week").as_deref(), Some("2026-11-09T00:00:00Z"));
        assert_eq!(check("This month").as_deref(), Some("2026-11-01T00:00:00Z"));
        assert_eq!(check("this year").as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(check("2026-10").as_deref(), Some("2026-10-01T00:00:00Z"));
        let monday = "2026-11-16T00:00:00Z".parse().unwrap();
        assert_eq!(since("this week", monday), Some(monday));
    }

    #[test]
    fn days_begin_at_midnight() {
        assert_eq!(check("today").as_deref(), Some("2026-11-15T00:00:00Z"));
        assert_eq!(check("yesterday").as_deref(), Some("2026-11-14T00:00:00Z"));
    }

    #[test]
    fn dates_and_moments_are_taken_as_they_are() {
        assert_eq!(check("2026-11-01").as_deref(), Some("2026-11-01T00:00:00Z"));
        assert_eq!(check("2026-11-01t10:00:00+01:00").as_deref(), Some("2026-11-01T09:00:00Z"));
    }

    #[test]
    fn a_day_may_have_a_time() {
        let now = "2026-11-15T12:30:00Z".parse().unwrap();
        let check = |text| moment(text, now).map(|at| at.to_string().replace(".000000", ""));
        assert_eq!(check("Yesterday 14:00").as_deref(), Some("2026-11-14T14:00:00Z"));
        assert_eq!(check("today 09:05:30").as_deref(), Some("2026-11-15T09:05:30Z"));
        assert_eq!(check("2026-11-01 23:59").as_deref(), Some("2026-11-01T23:59:00Z"));
        assert_eq!(check("2026-11-01T23:59:00+01:00").as_deref(), Some("2026-11-01T22:59:00Z"));
        assert_eq!(check("two weeks ago").as_deref(), Some("2026-11-01T12:30:00Z"));
        for text in ["yesterday 25:00", "2h ago 14:00", "14:00", "2026-11 14:00", "today 14"] {
            assert_eq!(check(text), None, "{text}");
        }
    }

    #[test]
    fn malformed_texts_are_refused() {
        for text in
            ["", "soon", "7", "d7", "7 moons", "99999999999d", "日本", "2026-13", "a", "b week"]
        {
            assert_eq!(check(text), None, "{text}");
        }
    }
}
