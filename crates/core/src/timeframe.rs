//! Points in time as people and models write them: `7d`, `2 weeks`, `yesterday`, `2026-11-15`.

use std::time::Duration;

use crate::model::Timestamp;

const DAY: Duration = Duration::from_hours(24);

/// Returns the moment that a text means, looking back from `now`; `None` if it means none.
///
/// Days begin at midnight UTC. A span without `ago` means the same as with it.
pub fn since(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim().to_lowercase();
    match text.as_str() {
        "now" => return Some(now),
        "today" => return Some(midnight(now)),
        "yesterday" => return Some(midnight(now).minus(DAY)),
        _ => {}
    }
    match span(text.strip_suffix("ago").unwrap_or(&text)) {
        Some(span) => Some(now.minus(span)),
        None => text.to_uppercase().parse().ok(),
    }
}

/// Returns the length of time that a text means, such as `90d`, `3 hours` or `1 month`.
pub fn span(text: &str) -> Option<Duration> {
    let text = text.trim().trim_start_matches("last ").trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(digits_end)?;
    let count: u32 = if digits.is_empty() { 1 } else { digits.parse().ok()? };
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
    fn other_texts_mean_nothing() {
        for text in ["", "soon", "7", "d7", "7 moons", "99999999999d", "日本"] {
            assert_eq!(check(text), None, "{text}");
        }
    }
}
