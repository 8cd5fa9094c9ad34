//! Arguments as models send them.
//!
//! Models are sloppy: a list comes comma-separated or as JSON in a string, a number as a string, an
//! absent value as `null` or an empty string. All of that is accepted; anything else is rejected
//! with the name of the argument.

use quipu_core::Error;
use quipu_core::model::Timestamp;
use quipu_core::timeframe;
use serde_json::{Map, Value};

/// The arguments of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments(Map<String, Value>);

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// For models.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// The page of a list that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paging {
    /// From 1.
    pub(super) page: usize,
    pub(super) page_size: usize,
}

impl Paging {
    /// Returns how many items come before this page.
    pub(super) fn offset(self) -> usize {
        (self.page - 1).saturating_mul(self.page_size)
    }
}

impl Arguments {
    pub(super) fn new(values: Option<Map<String, Value>>) -> Self {
        Self(values.unwrap_or_default())
    }

    /// Returns all arguments as they came.
    pub(super) fn as_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a text that may be empty.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::Bool(flag)) => Ok(Some(flag.to_string())),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) => Err(wrong(name, "a text")),
        }
    }

    /// Returns a trimmed text; an empty one counts as absent.
    pub(super) fn word(&self, name: &str) -> Result<Option<String>, Error> {
        let text = self.text(name)?;
        Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()))
    }

    /// Returns the first of several arguments that is present and not empty.
    pub(super) fn first_word(&self, names: &[&str]) -> Result<Option<String>, Error> {
        for name in names {
            if let Some(word) = self.word(name)? {
                return Ok(Some(word));
            }
        }
        Ok(None)
    }

    /// Returns a text that must be present and not empty.
    pub(super) fn required(&self, name: &str) -> Result<String, Error> {
        self.word(name)?.ok_or_else(|| missing(name))
    }

    /// Returns a text that must be present, but may be empty.
    pub(super) fn required_text(&self, name: &str) -> Result<String, Error> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    /// Returns a whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<usize>, Error> {
        let wrong = || wrong(name, "a whole number that is not negative");
        let text = match self.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                return Err(wrong());
            }
        };
        let whole = text.strip_suffix(".0").unwrap_or(&text);
        match whole.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(wrong()),
        }
    }

    /// Returns a whole number, clamped to between 1 and `max`.
    pub(super) fn count(&self, name: &str, default: usize, max: usize) -> Result<usize, Error> {
        Ok(self.number(name)?.unwrap_or(default).clamp(1, max))
    }

    /// Returns the requested page of a list.
    pub(super) fn paging(&self, default: usize, max: usize) -> Result<Paging, Error> {
        let page_size = self.count("page_size", default, max)?;
        Ok(Paging { page: self.count("page", 1, usize::MAX)?, page_size })
    }

    /// Returns a boolean.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        let text = match self.get(name) {
            None => return Ok(None),
            Some(Value::Bool(flag)) => return Ok(Some(*flag)),
            Some(other) => other.to_string().trim_matches('"').to_lowercase(),
        };
        match text.as_str() {
            "" => Ok(None),
            "true" | "yes" | "1" => Ok(Some(true)),
            "false" | "no" | "0" => Ok(Some(false)),
            _ => Err(wrong(name, "true or false")),
        }
    }

    /// Returns a list of words in any of its notations.
    pub(super) fn list(&self, name: &str) -> Result<Vec<String>, Error> {
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => words(name, items),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(items)) => words(name, &items),
                Ok(_) | Err(_) => {
                    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                    Ok(parts.map(str::to_owned).collect())
                }
            },
            Some(number @ (Value::Number(_) | Value::Bool(_))) => Ok(vec![number.to_string()]),
            Some(Value::Null | Value::Object(_)) => Err(wrong(name, "a list of texts")),
        }
    }

    /// Returns an object, which may be JSON in a string.
    pub(super) fn object(&self, name: &str) -> Result<Map<String, Value>, Error> {
        match self.get(name) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(Map::new()),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Object(object)) => Ok(object),
                Ok(_) | Err(_) => Err(wrong(name, "an object")),
            },
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
                Err(wrong(name, "an object"))
            }
        }
    }

    /// Returns one of `choices`, ignoring case.
    pub(super) fn choice(
        &self,
        name: &str,
        choices: &[&'static str],
    ) -> Result<Option<&'static str>, Error> {
        let Some(word) = self.word(name)? else { return Ok(None) };
        let found = choices.iter().find(|choice| choice.eq_ignore_ascii_case(&word));
        match found {
            Some(choice) => Ok(Some(choice)),
            None => Err(Error::invalid(format!("{name}: `{word}` is not possible"))
                .with_hint(format!("it is one of {}", choices.join(", ")))),
        }
    }

    /// Returns the requested output format.
    pub(super) fn format(&self) -> Result<Format, Error> {
        match self.choice("output_format", &["text", "json"])? {
            Some("json") => Ok(Format::Json),
            Some(_) | None => Ok(Format::Text),
        }
    }

    /// Returns a point in time, absolute or relative to `now`.
    pub(super) fn since(&self, name: &str, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let Some(word) = self.word(name)? else { return Ok(None) };
        match timeframe::since(&word, now) {
            Some(moment) => Ok(Some(moment)),
            None => Err(Error::invalid(format!("{name}: `{word}` is not a time"))
                .with_hint("write it like 7d, 2 weeks, yesterday or 2026-11-15")),
        }
    }
}

fn words(name: &str, items: &[Value]) -> Result<Vec<String>, Error> {
    let mut words = Vec::new();
    for item in items {
        match item {
            Value::String(text) => words.push(text.trim().to_owned()),
            Value::Number(_) | Value::Bool(_) => words.push(item.to_string()),
            Value::Null => {}
            Value::Array(_) | Value::Object(_) => return Err(wrong(name, "a list of texts")),
        }
    }
    words.retain(|word| !word.is_empty());
    Ok(words)
}

fn missing(name: &str) -> Error {
    Error::invalid(format!("the argument `{name}` is missing"))
}

fn wrong(name: &str, wanted: &str) -> Error {
    Error::invalid(format!("the argument `{name}` must be {wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: &Value) -> Arguments {
        Arguments::new(value.as_object().cloned())
    }

    #[test]
    fn lists_have_three_notations() {
        let forms = [json!(["a", "b"]), json!("a, b"), json!("[\"a\", \"b\"]")];
        for form in forms {
            let given = arguments(&json!({ "tags": form }));
            assert_eq!(given.list("tags").unwrap(), ["a", "b"]);
        }
        assert_eq!(arguments(&json!({"tags": [1, null, " x "]})).list("tags").unwrap(), ["1", "x"]);
        assert!(arguments(&json!({"tags": null})).list("tags").unwrap().is_empty());
        assert!(arguments(&json!({"tags": {"a": 1}})).list("tags").is_err());
    }

    #[test]
    fn numbers_may_be_strings() {
        for form in [json!(3), json!("3"), json!(3.0), json!(" 3 ")] {
            assert_eq!(arguments(&json!({ "page": form })).number("page").unwrap(), Some(3));
        }
        for form in [json!(-1), json!("three"), json!(1.5), json!([1])] {
            assert!(arguments(&json!({ "page": form })).number("page").is_err());
        }
        assert_eq!(arguments(&json!({"page": ""})).number("page").unwrap(), None);
    }

    #[test]
    fn flags_may_be_strings_or_numbers() {
        for form in [json!(true), json!("true"), json!("True"), json!(1)] {
            assert_eq!(arguments(&json!({ "x": form })).flag("x").unwrap(), Some(true));
        }
        assert_eq!(arguments(&json!({"x": "no"})).flag("x").unwrap(), Some(false));
        assert!(arguments(&json!({"x": "perhaps"})).flag("x").is_err());
    }

    #[test]
    fn objects_may_be_json_strings() {
        let given = arguments(&json!({"metadata": "{\"a\": 1}"}));
        assert_eq!(given.object("metadata").unwrap().get("a"), Some(&json!(1)));
        assert!(arguments(&json!({"metadata": "a=1"})).object("metadata").is_err());
    }

    #[test]
    fn errors_name_the_argument() {
        let error = arguments(&json!({})).required("identifier").unwrap_err();
        assert_eq!(error.message(), "the argument `identifier` is missing");
        let error = arguments(&json!({"type": "new"})).choice("type", &["old"]).unwrap_err();
        assert_eq!(error.hint(), Some("it is one of old"));
        let error =
            arguments(&json!({"since": "soon"})).since("since", Timestamp::MIN).unwrap_err();
        assert_eq!(error.message(), "since: `soon` is not a time");
    }
}
