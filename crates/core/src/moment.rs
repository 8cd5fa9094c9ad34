//! Moments: points in the history of a store, as people name them.

use std::fmt;

use crate::Error;
use crate::backend::Sequence;
use crate::model::{Timestamp, VersionId};
use crate::timeframe;

/// A point in the history of a store. What it means for a store is for
/// [`Engine::moment`](crate::Engine::moment) to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A time; the transactions that were complete by then are included.
    Time(Timestamp),
    /// What [`Engine::moment`](crate::Engine::moment) has returned for another moment; the same state
    /// again. As a [`Time`](Self::Time), it could mean the state before: a version or a sequence may
    /// be in the middle of a transaction.
    Resolved(Timestamp),
    /// A place in the change feed; this change is included.
    Sequence(Sequence),
    /// A version; the change that made it is included.
    Version(VersionId),
}

impl Moment {
    /// Reads a time such as `yesterday 14:00`, `2h ago` or RFC 3339, a sequence such as `#12345`, or a
    /// version's id. Times without an offset are UTC.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, Error> {
        let text = text.trim();
        if let Some(number) = text.strip_prefix('#') {
            let number = number.parse().ok().ok_or_else(|| malformed(text))?;
            return Ok(Self::Sequence(Sequence(number)));
        }
        if let Ok(version) = text.parse() {
            return Ok(Self::Version(version));
        }
        timeframe::moment(text, now).map(Self::Time).ok_or_else(|| malformed(text))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(at) | Self::Resolved(at) => fmt::Display::fmt(at, f),
            Self::Sequence(sequence) => write!(f, "#{}", sequence.0),
            Self::Version(version) => fmt::Display::fmt(version, f),
        }
    }
}

/// Splits `STORE@MOMENT`; the moment is `None` if there is no `@`.
///
/// The last `@` counts, so that a store may have one in its name. No moment contains one.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('@') {
        Some((store, moment)) if !store.is_empty() => (store, Some(moment)),
        Some(_) | None => (text, None),
    }
}

fn malformed(text: &str) -> Error {
    Error::invalid(format!("`{text}` is not a moment")).with_hint(
        "write a time such as `yesterday 14:00`, `2h ago` or `2026-11-15T12:00:00Z`, a place in the \
         feed such as `#12345`, or the id of a version",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Id as _;

    fn parse(text: &str) -> Option<String> {
        let now = "2026-11-15T12:30:00Z".parse().unwrap();
        Moment::parse(text, now).ok().map(|moment| moment.to_string().replace(".000000", ""))
    }

    #[test]
    fn the_three_kinds_are_told_apart() {
        assert_eq!(parse("#12345").as_deref(), Some("#12345"));
        let version = VersionId::from_bits(7).to_string();
        assert_eq!(parse(&version), Some(version));
        assert_eq!(parse(" 2026-11-01 ").as_deref(), Some("2026-11-01T00:00:00Z"));
        assert_eq!(parse("yesterday 14:00").as_deref(), Some("2026-11-14T14:00:00Z"));
        assert_eq!(parse("2h ago").as_deref(), Some("2026-11-15T10:30:00Z"));
    }

    #[test]
    fn other_texts_are_refused_with_examples() {
        for text in ["", "#", "#-1", "#1x", "#99999999999999999999", "memver_x", "soon", "14:00 h"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        let error = Moment::parse("soon", Timestamp::MIN).unwrap_err();
        assert!(error.hint().unwrap().contains("yesterday 14:00"));
    }

    #[test]
    fn the_last_at_sign_separates_the_moment() {
        assert_eq!(split("notes"), ("notes", None));
        assert_eq!(split("notes@yesterday"), ("notes", Some("yesterday")));
        assert_eq!(split("a@b@#7"), ("a@b", Some("#7")));
        assert_eq!(split("notes@"), ("notes", Some("")));
        assert_eq!(split("@notes"), ("@notes", None));
    }
}
