//! Regular expressions, for redactions by content.
//!
//! `regex-lite` takes time linear in the text for one match, but finding all of them can be quadratic, and
//! the texts may have been written by somebody who knows that. So the size of an expression is limited,
//! and so is the time for one text and for all of them.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use quipu_core::Error;
use quipu_core::engine::Matcher;
use regex_lite::{Regex, RegexBuilder};

/// How long an expression may be.
const EXPRESSION_SIZE_BYTES_MAX: usize = 4 * 1024;

/// How large it may be when it is compiled. At this size, one match in the longest memory takes about a
/// second.
const COMPILED_SIZE_BYTES_MAX: usize = 64 * 1024;

/// How deep it may be nested.
const NESTING_MAX: u32 = 50;

/// How long the search of one text may take.
const TEXT_TIME_MAX: Duration = Duration::from_secs(2);

/// A regular expression that gives up when it takes too long.
#[derive(Debug)]
pub struct RegexMatcher {
    regex: Regex,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How much time is left for all texts.
    left: Duration,
    has_given_up: bool,
}

/// Returns whether an expression has a group of flags with an `i`, such as `(?i)` or `(?si:…)`.
fn ignores_case(expression: &str) -> bool {
    expression.split("(?").skip(1).any(|rest| {
        let is_flag = |character: &char| character.is_ascii_alphabetic();
        rest.chars().take_while(is_flag).any(|flag| flag == 'i')
    })
}

impl RegexMatcher {
    /// Compiles an expression that may search for so long altogether.
    ///
    /// An error does not repeat the expression, which may hold what is to be redacted.
    pub fn new(expression: &str, time_max: Duration) -> Result<Self, Error> {
        if expression.len() > EXPRESSION_SIZE_BYTES_MAX {
            let message = format!(
                "the regular expression has {} bytes, but may have at most {EXPRESSION_SIZE_BYTES_MAX}",
                expression.len()
            );
            return Err(Error::invalid(message));
        }
        // `(?i)` folds ASCII only. To leave `MÜLLER` in the text after a redaction of `(?i)müller` and to
        // count zero hits would be worse than to refuse.
        if !expression.is_ascii() && ignores_case(expression) {
            return Err(Error::invalid("`(?i)` ignores the case of ASCII letters only").with_hint(
                "write both cases of other letters, such as `m[üÜ]ller`, without `(?i)`",
            ));
        }
        let mut builder = RegexBuilder::new(expression);
        builder.size_limit(COMPILED_SIZE_BYTES_MAX).nest_limit(NESTING_MAX);
        let regex = builder.build().map_err(|error| {
            Error::invalid(format!("the regular expression is not valid: {error}"))
                .with_hint("the syntax is that of Rust's `regex-lite`: `\\w` and `\\d` are ASCII")
        })?;
        if regex.is_match("") {
            return Err(Error::invalid(
                "the regular expression matches the empty text, so it is everywhere",
            )
            .with_hint("replace `*` by `+`"));
        }
        let state = Mutex::new(State { left: time_max, has_given_up: false });
        Ok(Self { regex, state })
    }

    fn search(&self, text: &str, deadline: Instant) -> Option<Vec<Range<usize>>> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(next) = self.regex.find_at(text, from) {
            found.push(next.range());
            // After a match of nothing, the next one begins at least one character further.
            let step = text.get(next.end()..).and_then(|rest| rest.chars().next());
            from = match (next.is_empty(), step) {
                (false, _) => next.end(),
                (true, Some(character)) => next.end() + character.len_utf8(),
                (true, None) => break,
            };
            if Instant::now() > deadline {
                return None;
            }
        }
        Some(found)
    }
}

impl Matcher for RegexMatcher {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_given_up {
            return Vec::new();
        }
        let start = Instant::now();
        let found = self.search(text, start + TEXT_TIME_MAX.min(state.left));
        state.left = state.left.saturating_sub(start.elapsed());
        state.has_given_up = found.is_none() || state.left.is_zero();
        found.unwrap_or_default()
    }

    fn require_complete(&self) -> Result<(), Error> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.has_given_up {
            return Ok(());
        }
        Err(Error::invalid("the regular expression takes too long")
            .with_hint("make it more specific, or narrow the selection with a path or a time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn find(expression: &str, text: &str) -> Vec<Range<usize>> {
        RegexMatcher::new(expression, HOUR).expect("it is valid").find(text)
    }

    #[test]
    fn ignoring_case_is_refused_where_it_would_miss_some() {
        for expression in ["(?i)jürgen", "a(?si:ü)", "ü(?i)x"] {
            let error = RegexMatcher::new(expression, HOUR).expect_err("it is refused");
            assert!(error.to_string().contains("ASCII letters only"), "{expression}");
        }
        assert_eq!(find("j[üÜ]rgen", "jÜrgen jürgen"), [0..7, 8..15]);
        assert_eq!(find("(?:ü|i)", "ii"), [0..1, 1..2]);
    }

    #[test]
    fn all_matches_are_found() {
        assert_eq!(find("ghp_[a-z0-9]+", "ghp_a1, ghp_b2"), [0..6, 8..14]);
        assert_eq!(find("(?i)cheese", "Cheese cheese"), [0..6, 7..13]);
        assert_eq!(find(r"\bx|y", "ä x y"), [3..4, 5..6]);
    }

    #[test]
    fn expressions_that_match_nothing_are_refused_and_not_repeated() {
        for expression in ["", "a*", "(secret)?", "^$"] {
            let error = RegexMatcher::new(expression, HOUR).expect_err("it is refused");
            assert!(!error.message().contains("secret"), "{error}");
        }
    }

    #[test]
    fn hostile_expressions_are_refused_or_bounded() {
        let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        for expression in ["(", "a{1000}{1000}", &"a".repeat(5000), &nested] {
            assert!(RegexMatcher::new(expression, HOUR).is_err(), "{expression}");
        }
        let text = "A".repeat(100 * 1024);
        let start = Instant::now();
        assert_eq!(find("(A|AA)+$", &text).len(), 1);
        let quadratic = RegexMatcher::new(".*[^A-Z]|[A-Z]", HOUR).expect("it is valid");
        quadratic.find(&text);
        assert!(quadratic.require_complete().is_err());
        assert!(start.elapsed() < Duration::from_mins(1));
    }

    #[test]
    fn the_time_for_all_texts_is_limited() {
        let matcher = RegexMatcher::new("abc", Duration::ZERO).expect("it is valid");
        matcher.find("abc");
        assert!(matcher.require_complete().is_err());
    }
}
