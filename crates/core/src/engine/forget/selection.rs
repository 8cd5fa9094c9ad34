//! What a redaction is about.

use std::fmt;
use std::ops::Range;

use crate::Error;
use crate::backend::Span;
use crate::model::{
    Actor, Content, MemoryId, MemoryPath, Reason, Timestamp, Version, VersionId, View,
};

/// Conditions on versions; all that are set must hold.
#[derive(Clone, Debug, Default)]
pub struct Selection<'a> {
    /// What a text, a path or a reason holds.
    pub pattern: Option<Pattern<'a>>,
    /// The path, or a directory above it.
    pub path: Option<MemoryPath>,
    /// The memory.
    pub memory: Option<MemoryId>,
    /// The author is one of these, if there are any.
    pub actors: Vec<Actor>,
    /// The version is one of these, if there are any.
    pub versions: Vec<VersionId>,
    /// When the version was made.
    pub created: Span,
}

/// Finds what is to be redacted. Every function from a text to ranges is one.
pub trait Matcher: Send + Sync {
    /// Returns where a text matches: ranges in order, without overlap, on character boundaries.
    fn find(&self, text: &str) -> Vec<Range<usize>>;

    /// Fails if a search was given up, such as one that took too long. It is asked before anything is
    /// changed for good, since what was found may be incomplete.
    fn require_complete(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl<F: Fn(&str) -> Vec<Range<usize>> + Send + Sync> Matcher for F {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        self(text)
    }
}

/// What a text has to hold.
#[derive(Clone)]
pub struct Pattern<'a> {
    finder: Finder<'a>,
    description: String,
}

#[derive(Clone, Copy)]
enum Finder<'a> {
    Text(&'a str),
    Matcher(&'a dyn Matcher),
}

/// What of a version holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Its text.
    Text,
    /// Its path.
    Path,
    /// Its reason.
    Reason,
}

impl Carrier {
    /// Returns the word that all doors use for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Path => "path",
            Self::Reason => "reason",
        }
    }
}

impl<'a> Pattern<'a> {
    /// Returns a pattern that matches exactly this text.
    pub fn text(text: &'a str) -> Result<Self, Error> {
        let chars_count = text.chars().count();
        let description = match chars_count {
            1 => "a text of 1 character".to_owned(),
            count => format!("a text of {count} characters"),
        };
        Self::new(Finder::Text(text), description)
    }

    /// Returns a pattern that matches what a matcher finds, such as a regular expression.
    ///
    /// The description stands in receipts, so it must not hold what is looked for.
    pub fn matcher(
        matcher: &'a dyn Matcher,
        description: impl Into<String>,
    ) -> Result<Self, Error> {
        Self::new(Finder::Matcher(matcher), description.into())
    }

    fn new(finder: Finder<'a>, description: String) -> Result<Self, Error> {
        let matches_nothing = match finder {
            Finder::Text(text) => text.is_empty(),
            Finder::Matcher(matcher) => !matcher.find("").is_empty(),
        };
        if matches_nothing {
            return Err(Error::invalid("the pattern matches the empty text, so it is everywhere")
                .with_hint("say what to look for"));
        }
        Ok(Self { finder, description })
    }

    /// Returns the exact text, if it is one.
    pub(super) fn exact(&self) -> Option<&'a str> {
        match self.finder {
            Finder::Text(text) => Some(text),
            Finder::Matcher(_) => None,
        }
    }

    /// Returns where a text matches. A match of nothing at all is none.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        match self.finder {
            Finder::Text(wanted) => {
                text.match_indices(wanted).map(|(at, it)| at..at + it.len()).collect()
            }
            Finder::Matcher(matcher) => {
                matcher.find(text).into_iter().filter(|range| !range.is_empty()).collect()
            }
        }
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match self.finder {
            Finder::Text(wanted) => text.contains(wanted),
            Finder::Matcher(_) => !self.find(text).is_empty(),
        }
    }
}

impl Pattern<'_> {
    fn require_complete(&self) -> Result<(), Error> {
        match self.finder {
            Finder::Text(_) => Ok(()),
            Finder::Matcher(matcher) => matcher.require_complete(),
        }
    }
}

impl fmt::Debug for Pattern<'_> {
    /// Shows the description only: what is to be forgotten must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.description).finish()
    }
}

impl Selection<'_> {
    /// Fails if the selection has no condition but a time: it would select the history of everybody.
    pub(super) fn require_condition(&self) -> Result<(), Error> {
        if self.created.first > self.created.last {
            return Err(Error::invalid("the end of the time lies before its beginning"));
        }
        let has_condition = self.pattern.is_some()
            || self.path.is_some()
            || self.memory.is_some()
            || !self.actors.is_empty()
            || !self.versions.is_empty();
        if has_condition {
            return Ok(());
        }
        Err(Error::invalid("nothing is selected").with_hint(
            "say what to redact: a text, a pattern, a path, a memory, a session or an actor",
        ))
    }

    /// Returns whether a text that belongs to no version matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.pattern.as_ref().is_some_and(|pattern| pattern.matches(text))
    }

    /// Fails if a search was given up.
    pub(super) fn require_complete(&self) -> Result<(), Error> {
        self.pattern.as_ref().map_or(Ok(()), Pattern::require_complete)
    }

    /// Fails if the reason, which the receipt keeps, holds what is to be redacted.
    pub(super) fn require_unnamed(&self, reason: Option<&Reason>) -> Result<(), Error> {
        let Some(reason) = reason.map(Reason::as_str) else { return Ok(()) };
        let holds_match = self.pattern.as_ref().is_some_and(|pattern| pattern.matches(reason));
        let holds_path = self.path.as_ref().is_some_and(|path| reason.contains(path.as_str()));
        if holds_match || holds_path {
            return Err(Error::invalid("the reason holds what is to be redacted")
                .with_hint("the reason is kept in the receipt; describe it in other words"));
        }
        Ok(())
    }

    /// Describes the selection without what is to be redacted. A path is part of that.
    pub(super) fn description(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.pattern.as_ref().map(|pattern| pattern.description.clone()));
        parts.extend(
            self.path
                .as_ref()
                .map(|path| format!("a path of {} characters", path.as_str().chars().count())),
        );
        parts.extend(self.memory.map(|memory| format!("the memory `{memory}`")));
        if !self.actors.is_empty() {
            let actors: Vec<_> = self.actors.iter().map(|actor| format!("`{actor}`")).collect();
            parts.push(format!("versions by {}", actors.join(" or ")));
        }
        match self.versions.len() {
            0 => {}
            1 => parts.push("1 version".to_owned()),
            count => parts.push(format!("{count} versions")),
        }
        if self.created.first > Timestamp::MIN {
            parts.push(format!("since {}", self.created.first));
        }
        if self.created.last < Timestamp::MAX {
            parts.push(format!("until {}", self.created.last));
        }
        parts.join(", ")
    }

    /// Returns how much of a version must be read to decide.
    pub(super) fn view(&self) -> View {
        if self.pattern.is_some() { View::Full } else { View::Basic }
    }

    /// Returns whether only the pattern decides, so that rows without an author or a path can be selected.
    pub(super) fn is_by_content_alone(&self) -> bool {
        self.pattern.is_some()
            && self.path.is_none()
            && self.memory.is_none()
            && self.versions.is_empty()
            && self.actors.is_empty()
    }

    pub(super) fn has_path(&self, path: &MemoryPath) -> bool {
        self.path
            .as_ref()
            .is_none_or(|wanted| wanted == path || wanted.as_directory().contains(path))
    }

    pub(super) fn has_actor(&self, actor: &Actor) -> bool {
        self.actors.is_empty() || self.actors.contains(actor)
    }

    /// Returns what of a version the pattern matches, if the version is selected and not redacted.
    pub(super) fn carriers(&self, version: &Version) -> Option<Vec<Carrier>> {
        let is_selected = version.redaction.is_none()
            && version.path.as_ref().is_some_and(|path| self.has_path(path))
            && self.memory.is_none_or(|memory| version.memory == memory)
            && self.has_actor(&version.actor)
            && (self.versions.is_empty() || self.versions.contains(&version.id))
            && self.created.contains(version.created_at);
        if !is_selected {
            return None;
        }
        let Some(pattern) = &self.pattern else { return Some(Vec::new()) };
        let fields = [
            (Carrier::Text, version.content.as_ref().map(Content::as_str)),
            (Carrier::Path, version.path.as_ref().map(MemoryPath::as_str)),
            (Carrier::Reason, version.reason.as_ref().map(Reason::as_str)),
        ];
        let matches = |text: Option<&str>| text.is_some_and(|text| pattern.matches(text));
        let carriers: Vec<_> =
            fields.into_iter().filter(|(_, text)| matches(*text)).map(|(it, _)| it).collect();
        (!carriers.is_empty()).then_some(carriers)
    }
}
