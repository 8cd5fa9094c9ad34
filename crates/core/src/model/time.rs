//! Timestamps with microsecond precision.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A moment in UTC, counted in microseconds since 1970.
///
/// Its text form is RFC 3339 with six digits and `Z`, such as `2026-11-15T12:00:00.000000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The latest timestamp that has a four-digit year in every time zone.
const MICROS_MAX: i64 = 253_402_207_200_000_000;

impl Timestamp {
    /// The earliest moment, 1970.
    pub const MIN: Self = Self(0);
    /// The latest moment that has a textual form.
    pub const MAX: Self = Self(MICROS_MAX);

    /// Returns the moment this many microseconds after 1970, kept inside [`Self::MIN`] and
    /// [`Self::MAX`].
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(0, MICROS_MAX))
    }

    /// Returns the microseconds since 1970.
    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns the moment one microsecond later.
    #[must_use]
    pub fn next(self) -> Self {
        Self::from_micros(self.0 + 1)
    }

    /// Returns the moment `span` earlier.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        let span_micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_sub(span_micros))
    }

    /// Returns the moment `span` later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        let span_micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_add(span_micros))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = jiff::Timestamp::from_microsecond(self.0).expect("the range is checked");
        write!(f, "{moment:.6}")
    }
}

/// The error for a text that is neither a date nor a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseTimestampError;

impl fmt::Display for ParseTimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an RFC 3339 time such as `2026-11-15T12:00:00Z`")
    }
}

impl std::error::Error for ParseTimestampError {}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    /// Reads RFC 3339; a text without an offset is UTC, a date alone is its first moment.
    fn from_str(text: &str) -> Result<Self, ParseTimestampError> {
        let with_offset = text.parse::<jiff::Timestamp>().ok();
        let without_offset = || {
            let civil = text.parse::<jiff::civil::DateTime>().ok()?;
            civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
        };
        let moment = with_offset.or_else(without_offset).ok_or(ParseTimestampError)?;
        Ok(Self::from_micros(moment.as_microsecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<String> {
        text.parse::<Timestamp>().ok().map(|at| at.to_string())
    }

    #[test]
    fn six_digits_and_z_always() {
        assert_eq!(Timestamp::MIN.to_string(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00.000000Z");
    }

    #[test]
    fn offsets_are_converted_and_missing_ones_are_utc() {
        let noon = Some("2026-01-01T12:00:00.000000Z".to_owned());
        assert_eq!(parse("2026-01-01T12:00:00Z"), noon);
        assert_eq!(parse("2026-01-01T14:00:00+02:00"), noon);
        assert_eq!(parse("2026-01-01T12:00:00"), noon);
        assert_eq!(parse("2026-01-01"), Some("2026-01-01T00:00:00.000000Z".to_owned()));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "yesterday", "2026-13-01", "12:00"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn moments_stay_in_range() {
        assert_eq!(Timestamp::MIN.minus(Duration::from_secs(1)), Timestamp::MIN);
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.next(), Timestamp::MAX);
    }
}
