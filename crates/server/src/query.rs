//! Query strings.

use std::str::FromStr;

use quipu_core::backend::{Archived, Span};
use quipu_core::model::{Timestamp, View};

use super::answer::Failure;
use super::choices::{FULL_PAGE_MAX, PAGE_DEFAULT, PAGE_MAX};

/// The pairs of a query string. Unknown names are ignored; a known name with an empty value is an
/// error, since the sender of `expected_content_sha256=` meant to restrict what happens.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn new(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns all names with their values.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the value of a name. Two values are an error: either may be the intended one.
    pub(super) fn get(&self, name: &str) -> Result<Option<&str>, Failure> {
        if self.0.iter().filter(|(key, _)| key == name).count() > 1 {
            return Err(Failure::invalid(format!("{name}: may be given once only")));
        }
        self.get_or_empty(name).map(|value| not_empty(name, value)).transpose()
    }

    /// Returns the value of a name for which an empty value is meaningful.
    pub(super) fn get_or_empty(&self, name: &str) -> Option<&str> {
        let named = self.0.iter().rfind(|(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    /// Returns all values of a name that may be repeated, with or without `[]` at its end.
    pub(super) fn all(&self, name: &str) -> Result<Vec<&str>, Failure> {
        let is_named = |key: &str| key.strip_suffix("[]").unwrap_or(key) == name;
        let named = self.0.iter().filter(|(key, _)| is_named(key));
        named.map(|(_, value)| not_empty(name, value)).collect()
    }

    /// Parses the value of a name.
    pub(super) fn parse<T: FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let parsed = self.get(name)?.map(str::parse).transpose();
        parsed.map_err(|error| Failure::invalid(format!("{name}: {error}")))
    }

    pub(super) fn view(&self, default: View) -> Result<View, Failure> {
        match self.get("view")? {
            None => Ok(default),
            Some("basic") => Ok(View::Basic),
            Some("full") => Ok(View::Full),
            Some(_) => Err(Failure::invalid("view: must be one of: basic, full")),
        }
    }

    pub(super) fn archived(&self) -> Result<Archived, Failure> {
        match self.get("include_archived")? {
            None | Some("false") => Ok(Archived::Hide),
            Some("true") => Ok(Archived::Show),
            Some(_) => Err(Failure::invalid("include_archived: must be true or false")),
        }
    }

    /// Returns the size of a page of at most `max` items.
    pub(super) fn limit_up_to(&self, max: usize, default: usize) -> Result<usize, Failure> {
        let Some(text) = self.get("limit")? else { return Ok(default) };
        text.parse()
            .ok()
            .filter(|limit| (1..=max).contains(limit))
            .ok_or_else(|| Failure::invalid(format!("limit: must be a number from 1 to {max}")))
    }

    /// Returns the size of a page.
    pub(super) fn limit(&self, view: View) -> Result<usize, Failure> {
        let limit = self.limit_up_to(PAGE_MAX, PAGE_DEFAULT)?;
        Ok(match view {
            View::Basic => limit,
            View::Full => limit.min(FULL_PAGE_MAX),
        })
    }

    /// Returns the span of `created_at`.
    pub(super) fn created(&self) -> Result<Span, Failure> {
        let moment = |name: &str| self.parse::<Timestamp>(&format!("created_at[{name}]"));
        let all = Span::default();
        let micro = std::time::Duration::from_micros(1);
        let after = moment("gt")?.map(Timestamp::next);
        let before = moment("lt")?.map(|before| before.minus(micro));
        Ok(Span {
            first: moment("gte")?.unwrap_or(all.first).max(after.unwrap_or(all.first)),
            last: moment("lte")?.unwrap_or(all.last).min(before.unwrap_or(all.last)),
        })
    }
}

fn not_empty<'v>(name: &str, value: &'v str) -> Result<&'v str, Failure> {
    if value.is_empty() {
        return Err(Failure::invalid(format!(
            "{name}: must not be empty; give a value or leave it out"
        )));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_encodings_of_a_space_and_of_brackets_are_decoded() {
        let query = Query::new("a=x+y&b=x%20y&created_at%5Bgte%5D=2026-01-01T00%3A00%3A00&c=");
        for (name, value) in [("a", Some("x y")), ("b", Some("x y")), ("d", None)] {
            assert_eq!(query.get(name).unwrap(), value, "{name}");
        }
        let span = query.created().unwrap();
        assert_eq!(span.first.to_string(), "2026-01-01T00:00:00.000000Z");
        assert_eq!(span.last, Timestamp::MAX);
    }

    #[test]
    fn empty_and_repeated_values_are_rejected() {
        let query = Query::new("a=&b&c[]=x&c[]=&d=x&d=");
        for name in ["a", "b", "d"] {
            assert!(query.get(name).is_err(), "{name}");
        }
        assert!(query.all("c").is_err());
        assert_eq!(query.get_or_empty("a"), Some(""));
        assert_eq!((query.get("e").unwrap(), query.all("e").unwrap()), (None, Vec::new()));
    }

    #[test]
    fn exclusive_bounds_are_off_by_a_microsecond() {
        let span =
            Query::new("created_at[gt]=1970-01-01T00:00:01Z&created_at[lt]=1970-01-01T00:00:02Z")
                .created()
                .unwrap();
        assert_eq!((span.first.as_micros(), span.last.as_micros()), (1_000_001, 1_999_999));
    }

    #[test]
    fn limits_outside_their_range_are_rejected() {
        let limit = |text: &str, view| Query::new(text).limit(view).ok();
        assert_eq!(limit("", View::Basic), Some(20));
        assert_eq!(limit("limit=100", View::Basic), Some(100));
        assert_eq!(limit("limit=100", View::Full), Some(20));
        assert_eq!(limit("limit=7", View::Full), Some(7));
        for text in ["limit=0", "limit=101", "limit=-1", "limit=x", "limit=1.5"] {
            assert_eq!(limit(text, View::Basic), None, "{text}");
        }
    }
}
