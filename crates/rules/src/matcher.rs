//! The patterns of a rule.

use std::sync::OnceLock;

use regex_lite::{Regex, RegexBuilder};

use crate::glob::{Dialect, Glob};
use crate::path::{normalized, relative};
use crate::shell::{SimpleCommand, base_name};

/// How large an expression may become when it is compiled.
const COMPILED_SIZE_BYTES_MAX: usize = 64 * 1024;

/// How deep an expression may be nested.
const NESTING_MAX: u32 = 50;

/// How much of a text an expression is searched in. Its time is linear in the text, at some hundred
/// nanoseconds for each byte.
pub(crate) const TEXT_SIZE_BYTES_MAX: usize = 256 * 1024;

/// A glob for paths.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    written: String,
    glob: Glob,
    /// The pattern without `/**` at its end: the directory itself.
    directory: Option<Glob>,
    is_excluding: bool,
    place: Place,
}

/// What a pattern is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The whole path, since the pattern begins with a slash or `~`.
    Whole,
    /// The path below a root.
    BelowRoot,
    /// The last part of the path, wherever it is.
    Name,
}

/// A path as patterns see it: normalized, and relative to each root that it is below.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenPath {
    pub(crate) whole: String,
    pub(crate) home_relative: Option<String>,
    pub(crate) below_roots: Vec<String>,
}

impl SeenPath {
    /// `path` is resolved; `roots` and `home` are normalized.
    pub(crate) fn new(path: &str, roots: &[String], home: &str) -> Self {
        let whole = normalized(path);
        let below_roots =
            roots.iter().filter_map(|root| relative(&whole, root).map(str::to_owned)).collect();
        let home_relative = if home.is_empty() { None } else { relative(&whole, home) };
        let home_relative = home_relative.map(|rest| format!("~/{rest}"));
        Self { whole, home_relative, below_roots }
    }
}

impl PathPattern {
    /// Returns patterns; at least one of them must name something, not only exclude.
    pub(crate) fn all(written: &[String]) -> Result<Vec<Self>, String> {
        let patterns: Vec<_> = written.iter().map(|pattern| Self::new(pattern)).collect();
        if patterns.iter().all(|pattern| pattern.is_excluding) {
            return Err(
                "`path` only excludes; name what it is about as well, such as `**`".to_owned()
            );
        }
        Ok(patterns)
    }

    fn new(written: &str) -> Self {
        let (is_excluding, bare) = match written.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, written),
        };
        let bare = normalized(bare.strip_prefix("./").unwrap_or(bare));
        let bare = if bare.ends_with('/') { format!("{bare}**") } else { bare };
        let place = match bare.trim_end_matches("/**") {
            _ if bare.starts_with('/') || bare.starts_with("~/") => Place::Whole,
            _ if bare.contains('/') => Place::BelowRoot,
            _ if bare == "**" => Place::BelowRoot,
            _ => Place::Name,
        };
        let directory = bare
            .strip_suffix("/**")
            .filter(|rest| !rest.is_empty())
            .map(|rest| Glob::new(rest, Dialect::Path));
        let glob = Glob::new(&bare, Dialect::Path);
        Self { written: written.to_owned(), glob, directory, is_excluding, place }
    }

    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    fn matches(&self, path: &SeenPath) -> bool {
        let fits = |text: &str| {
            self.glob.matches(text)
                || self.directory.as_ref().is_some_and(|glob| glob.matches(text))
        };
        match self.place {
            Place::Whole => fits(&path.whole) || path.home_relative.as_deref().is_some_and(fits),
            Place::BelowRoot => path.below_roots.iter().any(|below| fits(below)),
            Place::Name => fits(base_name(&path.whole)),
        }
    }

    /// Returns whether a path is among those that are named and not excluded.
    pub(crate) fn any_matches(patterns: &[Self], path: &SeenPath) -> bool {
        let matches = |excluding| {
            move |pattern: &&Self| pattern.is_excluding == excluding && pattern.matches(path)
        };
        patterns.iter().any(|pattern| matches(false)(&pattern))
            && !patterns.iter().any(|pattern| matches(true)(&pattern))
    }
}

/// A pattern for commands: words with wildcards, or an expression between slashes.
#[derive(Clone, Debug)]
pub(crate) enum CommandPattern {
    Words(WordsPattern),
    Expression(TextPattern),
}

#[derive(Clone, Debug)]
pub(crate) struct WordsPattern {
    written: String,
    words: Vec<WordPattern>,
}

#[derive(Clone, Debug)]
enum WordPattern {
    /// `**`: any number of words.
    Any,
    One(Glob),
}

impl CommandPattern {
    pub(crate) fn new(written: &str) -> Self {
        let expression = written.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        match expression.filter(|expression| !expression.is_empty()) {
            Some(expression) => Self::Expression(TextPattern::between_slashes(written, expression)),
            None => Self::Words(WordsPattern::new(written)),
        }
    }

    pub(crate) fn written(&self) -> &str {
        match self {
            Self::Words(words) => &words.written,
            Self::Expression(expression) => &expression.written,
        }
    }

    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Words(_) => None,
            Self::Expression(expression) => expression.problem(),
        }
    }
}

impl WordsPattern {
    fn new(written: &str) -> Self {
        let mut words: Vec<_> = written
            .split_whitespace()
            .enumerate()
            .map(|(place, word)| match word {
                "**" => WordPattern::Any,
                // The command is compared without case, since file systems may ignore it.
                word if place == 0 => WordPattern::One(Glob::new(&normalized(word), Dialect::Word)),
                word => WordPattern::One(Glob::new(word, Dialect::Word)),
            })
            .collect();
        words.dedup_by(|next, before| {
            matches!((next, before), (WordPattern::Any, WordPattern::Any))
        });
        Self { written: written.to_owned(), words }
    }

    /// Returns whether a command begins with these words.
    pub(crate) fn matches(&self, command: &SimpleCommand) -> bool {
        let Some(name) = command.words.first() else { return false };
        let has_directory =
            self.written.split_whitespace().next().is_some_and(|it| it.contains('/'));
        let name = normalized(if has_directory { name } else { base_name(name) });
        let word = |place: usize| match place {
            0 => Some(name.as_str()),
            place => command.words.get(place).map(String::as_str),
        };
        // Only the last `**` is ever retried, as with stars in a word.
        let (mut at, mut place, mut retry) = (0, 0, None);
        loop {
            match (self.words.get(at), word(place)) {
                (None, _) => return true,
                (Some(WordPattern::Any), _) => {
                    at += 1;
                    retry = Some((at, place));
                }
                (Some(WordPattern::One(glob)), Some(found)) if glob.matches(found) => {
                    at += 1;
                    place += 1;
                }
                (Some(WordPattern::One(_)), None) => return false,
                (Some(WordPattern::One(_)), Some(_)) => {
                    let Some((after, from)) = retry else { return false };
                    retry = Some((after, from + 1));
                    (at, place) = (after, from + 1);
                }
            }
        }
    }
}

/// An expression, compiled by its first use.
#[derive(Clone, Debug)]
pub(crate) struct TextPattern {
    written: String,
    expression: String,
    regex: OnceLock<Result<Regex, String>>,
}

impl TextPattern {
    pub(crate) fn new(written: &str) -> Self {
        Self::between_slashes(written, written)
    }

    fn between_slashes(written: &str, expression: &str) -> Self {
        let (written, expression) = (written.to_owned(), expression.to_owned());
        Self { written, expression, regex: OnceLock::new() }
    }

    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    fn regex(&self) -> &Result<Regex, String> {
        self.regex.get_or_init(|| {
            let mut builder = RegexBuilder::new(&self.expression);
            builder.size_limit(COMPILED_SIZE_BYTES_MAX).nest_limit(NESTING_MAX);
            builder.build().map_err(|error| error.to_string())
        })
    }

    /// Returns whether a text has a match; fails if the expression cannot be compiled.
    pub(crate) fn is_in(&self, text: &str) -> Result<bool, String> {
        let text = text.get(..text.floor_char_boundary(TEXT_SIZE_BYTES_MAX)).unwrap_or_default();
        self.regex().as_ref().map(|regex| regex.is_match(text)).map_err(Clone::clone)
    }

    pub(crate) fn problem(&self) -> Option<String> {
        let error = self.regex().as_ref().err()?;
        Some(format!("the expression `{}` is not valid: {error}", self.written))
    }
}
