//! Times as they are written in the frontmatter.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// Parses RFC 3339. Without an offset it is UTC; a date alone is midnight.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    let without_offset = || in_utc(text.parse::<DateTime>().ok()?);
    text.parse().ok().or_else(without_offset)
}

/// Returns when a written year, month, day or time is over, in UTC; `None` if it is none of these.
///
/// A note that is valid to a day is valid on that day, as a ticket is.
pub fn end_of(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let is_date = text.len() <= "2026-01-01".len()
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if !is_date {
        return moment(text);
    }
    let day = |text: &str| text.parse::<Date>().ok();
    let next = match text.len() {
        4 => day(&format!("{text}-01-01"))?.checked_add(1.year()),
        7 => day(&format!("{text}-01"))?.checked_add(1.month()),
        _ => day(text)?.checked_add(1.day()),
    };
    in_utc(next.ok()?.to_datetime(jiff::civil::Time::midnight()))
}

fn in_utc(civil: DateTime) -> Option<Timestamp> {
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_time_is_over_when_all_of_it_has_passed() {
        let end = |text| end_of(text).map(|end| end.to_string());
        for (text, wanted) in [
            ("2026", "2027-01-01T00:00:00Z"),
            ("2026-12", "2027-01-01T00:00:00Z"),
            ("2024-02", "2024-03-01T00:00:00Z"),
            (" 2024-02-29 ", "2024-03-01T00:00:00Z"),
            ("2026-05-01T12:30:00+02:00", "2026-05-01T10:30:00Z"),
            ("2026-05-01 12:30", "2026-05-01T12:30:00Z"),
        ] {
            assert_eq!(end(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "soon", "26", "2026-13", "2026-02-30", "9999", "2026-05-01T25:00", "----"]
        {
            assert_eq!(end(text), None, "{text}");
        }
    }
}
