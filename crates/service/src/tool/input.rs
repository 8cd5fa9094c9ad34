//! Parses what a model sends, leniently where a mistake is harmless.
//!
//! Fields are read when they are needed, in the order in which the SDK's own tool looks at them, so
//! that a command with several mistakes gets the same answer.

use std::ops::Range;

use serde_json::{Number, Value};

use super::strings::{Refusal, Strings};

const COMMANDS: [&str; 6] = ["view", "create", "str_replace", "insert", "delete", "rename"];

/// The fields of one command.
pub(super) struct Fields<'a> {
    input: &'a Value,
}

impl<'a> Fields<'a> {
    pub(super) fn new(input: &'a Value) -> Self {
        Self { input }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.input.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn command(&self) -> Result<&'a str, Refusal> {
        if !self.input.is_object() {
            return Err(Refusal::Input {
                problem: "the input must be a JSON object with a `command`".to_owned(),
            });
        }
        self.text("command")
    }

    pub(super) fn text(&self, name: &'static str) -> Result<&'a str, Refusal> {
        match self.get(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(Refusal::Input { problem: format!("`{name}` must be a string") }),
            None => Err(Refusal::Input { problem: format!("`{name}` is missing") }),
        }
    }

    pub(super) fn path(&self, name: &'static str) -> Result<&'a str, Refusal> {
        self.text(name)
    }

    /// Returns `old_path`; models sometimes send it as `path`.
    pub(super) fn old_path(&self) -> Result<&'a str, Refusal> {
        match (self.get("old_path"), self.get("path")) {
            (None, Some(Value::String(path))) => Ok(path),
            _ => self.path("old_path"),
        }
    }

    /// Returns the replacement for `old_str`; an absent one deletes it.
    pub(super) fn replacement(&self, strings: Strings) -> Result<&'a str, Refusal> {
        match (self.get("new_str"), strings) {
            (None, Strings::Doc) => Ok(""),
            (None | Some(_), Strings::Doc | Strings::Python) => self.text("new_str"),
        }
    }

    /// Returns the text to insert; models sometimes call it `new_str`.
    pub(super) fn insert_text(&self) -> Result<&'a str, Refusal> {
        match (self.get("insert_text"), self.get("new_str")) {
            (None, Some(Value::String(text))) => Ok(text),
            _ => self.text("insert_text"),
        }
    }

    /// Returns the line to insert after, given how many there are.
    pub(super) fn insert_line(&self, lines_count: usize) -> Result<i64, Refusal> {
        let value = self.get("insert_line");
        let shown = match value {
            // The SDK compares a malformed number before it fails on it.
            Some(Value::Number(number)) if is_outside(number, lines_count) => {
                WholeNumber::from_number(number)
                    .map_or_else(|| number.to_string(), |number| number.shown())
            }
            value => {
                let number = value.and_then(WholeNumber::read).ok_or_else(|| Refusal::Input {
                    problem: "`insert_line` must be a whole number".to_owned(),
                })?;
                let is_inside =
                    usize::try_from(number.number()).is_ok_and(|number| number <= lines_count);
                if is_inside {
                    return Ok(number.number());
                }
                number.shown()
            }
        };
        Err(Refusal::InsertLine { line: shown, lines_count })
    }

    /// Returns the lines to show. Anything that is not a list of two is ignored, as in the SDK, except
    /// for what the SDK rejects.
    pub(super) fn view_range(&self) -> Result<ViewRange, Refusal> {
        let wrong = || Refusal::Input {
            problem: "`view_range` must be two whole numbers, such as [1, 20], or [5, -1] for all \
                      lines from 5 on"
                .to_owned(),
        };
        match self.input.get("view_range") {
            Some(Value::Array(values)) => match values.as_slice() {
                [first, last] => {
                    let first = WholeNumber::read(first).ok_or_else(wrong)?;
                    let last = if last.is_null() {
                        None
                    } else {
                        Some(WholeNumber::read(last).ok_or_else(wrong)?.number())
                    };
                    Ok(ViewRange::Lines { first: first.number(), last })
                }
                _ => Ok(ViewRange::All),
            },
            Some(Value::String(text)) if text.chars().count() == 2 => Err(wrong()),
            Some(Value::Object(pairs)) if pairs.len() == 2 => Err(wrong()),
            Some(Value::Number(number)) if number.as_f64() != Some(0.0) => Err(wrong()),
            Some(Value::Bool(true)) => Err(wrong()),
            Some(
                Value::String(_)
                | Value::Object(_)
                | Value::Number(_)
                | Value::Bool(_)
                | Value::Null,
            )
            | None => Ok(ViewRange::All),
        }
    }
}

/// Fails if the command does not exist.
pub(super) fn known(command: &str) -> Result<(), Refusal> {
    if COMMANDS.contains(&command) {
        return Ok(());
    }
    let problem = format!("unknown command `{command}`; the commands are {}", COMMANDS.join(", "));
    Err(Refusal::Input { problem })
}

fn is_outside(number: &Number, lines_count: usize) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "a text has far fewer lines than that")]
    let last = lines_count as f64;
    number.as_f64().is_some_and(|number| !(0.0..=last).contains(&number))
}

/// A whole number in any notation: `2`, `2.0`, `"2"` or `true`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WholeNumber {
    /// It fits.
    Fits(i64),
    /// Too large to fit; only its sign matters.
    Huge(f64),
}

impl WholeNumber {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::from_number(number),
            Value::String(text) => text.trim().parse().ok().map(Self::Fits),
            Value::Bool(truth) => Some(Self::Fits(i64::from(*truth))),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn from_number(number: &Number) -> Option<Self> {
        if let Some(number) = number.as_i64() {
            return Some(Self::Fits(number));
        }
        let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
        // Every whole number of this size is written exactly without an exponent.
        let text = format!("{number:.0}");
        Some(text.parse().map_or(Self::Huge(number), Self::Fits))
    }

    /// Returns the number, or the nearest that fits.
    pub(super) fn number(&self) -> i64 {
        match self {
            Self::Fits(number) => *number,
            Self::Huge(number) if *number < 0.0 => i64::MIN,
            Self::Huge(_) => i64::MAX,
        }
    }

    /// Returns the number as it is shown in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Fits(number) => number.to_string(),
            Self::Huge(number) => format!("{number:.0}"),
        }
    }
}

/// Which lines of a file to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewRange {
    /// All of them.
    All,
    /// From the first to the last, counted from 1.
    Lines {
        /// The first; less than 1 means 1.
        first: i64,
        /// The last; -1 and `None` mean the end, other negative numbers count from it.
        last: Option<i64>,
    },
}

impl ViewRange {
    /// Returns the range of lines, counted from 0, in a file with `count` lines. It may be empty.
    pub(super) fn of(self, lines_count: usize) -> Range<usize> {
        let Self::Lines { first, last } = self else { return 0..lines_count };
        let start = usize::try_from(first.max(1) - 1).unwrap_or(usize::MAX);
        let end = match last {
            None | Some(-1) => lines_count,
            Some(last) if last < 0 => {
                let dropped = usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX);
                lines_count.saturating_sub(dropped)
            }
            Some(last) => usize::try_from(last).unwrap_or(usize::MAX).min(lines_count),
        };
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(value: &Value) -> Option<i64> {
        WholeNumber::read(value).map(|number| number.number())
    }

    #[test]
    fn whole_numbers_are_accepted_in_every_notation() {
        for value in [json!(2), json!(2.0), json!("2"), json!(" 2 ")] {
            assert_eq!(number(&value), Some(2), "{value}");
        }
        assert_eq!(number(&json!(true)), Some(1));
        assert_eq!(number(&json!(1e30)), Some(i64::MAX));
        for value in [json!(1.5), json!("x"), json!("1.5"), json!([1]), json!(null)] {
            assert_eq!(number(&value), None, "{value}");
        }
    }

    #[test]
    fn ranges_slice_as_python_does() {
        let lines = |first, last| ViewRange::Lines { first, last }.of(5);
        assert_eq!(ViewRange::All.of(5), 0..5);
        assert_eq!(lines(2, Some(3)), 1..3);
        assert_eq!(lines(2, Some(-1)), 1..5);
        assert_eq!(lines(2, None), 1..5);
        assert_eq!(lines(0, Some(99)), 0..5);
        assert_eq!(lines(1, Some(-2)), 0..3);
        assert!(lines(4, Some(2)).is_empty() && lines(9, Some(10)).is_empty());
        assert!(lines(1, Some(0)).is_empty() && lines(1, Some(-9)).is_empty());
    }
}
