//! Edits of notes as pure functions: appending, sections, fields of the frontmatter.
//!
//! Each returns the whole new text and preserves every byte that it does not have to change.
//! Parsing and printing the whole note would reformat what its author wrote.

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use crate::Value;
use crate::note::block::{self, BlockKind};
use crate::note::frontmatter::Frontmatter;
use crate::note::lines::{Lines, with_offsets};
use crate::note::yaml;

/// Why a note was not edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The text to find is empty, which matches everywhere.
    NothingToFind,
    /// The text to find does not occur as often as expected.
    WrongCount {
        /// How often it occurs.
        found: usize,
        /// How often it was expected.
        expected: usize,
    },
    /// No heading has this text.
    NoSection {
        /// The requested heading.
        section: String,
        /// The existing headings.
        headings: Vec<String>,
    },
    /// Several headings have this text.
    SeveralSections {
        /// The requested heading.
        section: String,
        /// Their lines, 1-based.
        lines: Vec<usize>,
    },
    /// The frontmatter is not valid, so its fields cannot be changed.
    Frontmatter {
        /// What is wrong with it.
        reason: String,
    },
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToFind => f.write_str("the text to find is empty"),
            Self::WrongCount { found: 0, .. } => f.write_str("the text to find is not in the note"),
            Self::WrongCount { found, expected } => {
                write!(f, "the text to find is in the note {found} times, not {expected}")
            }
            Self::NoSection { section, headings } if headings.is_empty() => {
                write!(f, "the note has no section `{section}`; it has no headings at all")
            }
            Self::NoSection { section, headings } => {
                let headings = headings.join("`, `");
                write!(f, "the note has no section `{section}`; its headings are `{headings}`")
            }
            Self::SeveralSections { section, lines } => {
                let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                write!(f, "several sections are called `{section}`, on lines {}", lines.join(", "))
            }
            Self::Frontmatter { reason } => {
                write!(f, "the frontmatter cannot be edited, because {reason}")
            }
        }
    }
}

impl std::error::Error for EditError {}

/// Appends text on a line of its own.
pub fn append(text: &str, content: &str) -> String {
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { line_end(text) };
    [text, gap, content].concat()
}

/// Inserts text at the beginning of the body, after the frontmatter.
pub fn prepend(text: &str, content: &str) -> String {
    let start = Frontmatter::parse(text).body_start;
    let (before, body) = text.split_at_checked(start).unwrap_or((text, ""));
    let end_of_line = line_end(text);
    let has_gap = before.is_empty() || before.ends_with(['\n', '\u{feff}']);
    let gap = if has_gap { "" } else { end_of_line };
    [before, gap, &on_own_lines(content, end_of_line), body].concat()
}

/// Replaces a text that must occur exactly `expected` times, not counting overlaps.
pub fn find_replace(
    text: &str,
    find: &str,
    replacement: &str,
    expected: usize,
) -> Result<String, EditError> {
    if find.is_empty() {
        return Err(EditError::NothingToFind);
    }
    let found = text.matches(find).count();
    if found != expected || found == 0 {
        return Err(EditError::WrongCount { found, expected });
    }
    Ok(text.replace(find, replacement))
}

/// Replaces the text between a heading and the next one of any level.
///
/// The heading is kept; if `content` begins with it, it is not repeated.
pub fn replace_section(text: &str, section: &str, content: &str) -> Result<String, EditError> {
    let section = Section::find(text, section)?;
    let end_of_line = line_end(text);
    let (before, old, after) = section.split(text);
    let heading = text.get(section.heading.clone()).unwrap_or_default().trim_end();
    let content = content.trim_start_matches(['\r', '\n']);
    let content = match content.strip_prefix(heading) {
        Some(rest) if rest.is_empty() || rest.starts_with(['\r', '\n']) => rest,
        _ => content,
    };
    let content = content.trim_matches(['\r', '\n']);
    let has_gap = old.starts_with(['\r', '\n']) && !content.is_empty();
    let gap_before = if has_gap { end_of_line } else { "" };
    let gap_after = if after.is_empty() { "" } else { end_of_line };
    let content = on_own_lines(content, end_of_line);
    Ok([&on_own_lines(before, end_of_line), gap_before, &content, gap_after, after].concat())
}

/// Inserts text before a heading, followed by an empty line.
pub fn insert_before_section(
    text: &str,
    section: &str,
    content: &str,
) -> Result<String, EditError> {
    let section = Section::find(text, section)?;
    let (before, after) = text.split_at_checked(section.heading.start).unwrap_or((text, ""));
    let end_of_line = line_end(text);
    let content = content.trim_end_matches(['\r', '\n']);
    Ok([before, &on_own_lines(content, end_of_line), end_of_line, after].concat())
}

/// Inserts text right after a heading.
pub fn insert_after_section(text: &str, section: &str, content: &str) -> Result<String, EditError> {
    let section = Section::find(text, section)?;
    let (before, after) = text.split_at_checked(section.heading.end).unwrap_or((text, ""));
    let end_of_line = line_end(text);
    Ok([&on_own_lines(before, end_of_line), &*on_own_lines(content, end_of_line), after].concat())
}

/// Sets fields of the frontmatter, or removes those whose value is `None`.
///
/// Other fields, comments and the body are preserved. A note without frontmatter gets one.
pub fn set_metadata(text: &str, changes: &[(String, Option<Value>)]) -> Result<String, EditError> {
    let frontmatter = Frontmatter::parse(text);
    let Some(span) = frontmatter.yaml.clone() else {
        return match frontmatter.remarks.first() {
            Some(remark) => Err(not_editable(&remark.text)),
            None => with_new_frontmatter(text, frontmatter.body_start, changes),
        };
    };
    let mut block = YamlBlock::new(text.get(span.clone()).unwrap_or_default(), line_end(text));
    block.apply(changes)?;
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    checked([before, &block.text, after].concat(), changes)
}

fn with_new_frontmatter(
    text: &str,
    start: usize,
    changes: &[(String, Option<Value>)],
) -> Result<String, EditError> {
    let end_of_line = line_end(text);
    let mut block = YamlBlock::new("", end_of_line);
    block.apply(changes)?;
    if block.text.is_empty() {
        return Ok(text.to_owned());
    }
    let (before, body) = text.split_at_checked(start).unwrap_or((text, ""));
    let dashes = format!("---{end_of_line}");
    checked([before, &dashes, &block.text, &dashes, body].concat(), changes)
}

/// Returns the new text if parsing it yields the requested fields.
///
/// The edit replaces lines, but YAML has more ways to write a field than this code knows. A note
/// must not be damaged by one of the others.
fn checked(text: String, changes: &[(String, Option<Value>)]) -> Result<String, EditError> {
    let fields = Frontmatter::parse(&text).fields;
    let holds = |(key, wanted): &(String, Option<Value>)| {
        let is_last =
            changes.iter().rev().find(|it| it.0 == *key).is_some_and(|it| it.1 == *wanted);
        let found = fields.iter().find(|field| field.key == *key).map(|field| &field.value);
        !is_last || found == wanted.as_ref()
    };
    if changes.iter().all(holds) {
        Ok(text)
    } else {
        Err(not_editable("its layout is not supported"))
    }
}

fn not_editable(reason: &str) -> EditError {
    EditError::Frontmatter { reason: reason.to_owned() }
}

/// The YAML of a frontmatter during an edit.
struct YamlBlock<'a> {
    text: String,
    indentation: String,
    end_of_line: &'a str,
}

impl<'a> YamlBlock<'a> {
    fn new(text: &str, end_of_line: &'a str) -> Self {
        let first = text.lines().find(|line| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with('#')
        });
        let indentation = first.map_or("", |line| {
            line.split_at_checked(line.len() - line.trim_start().len()).map_or("", |it| it.0)
        });
        Self { text: text.to_owned(), indentation: indentation.to_owned(), end_of_line }
    }

    /// Makes changes one after the other, since each moves the lines of the fields after it.
    fn apply(&mut self, changes: &[(String, Option<Value>)]) -> Result<(), EditError> {
        for (key, value) in changes {
            let fields = Frontmatter::fields_of(&self.text);
            let place = fields.and_then(|fields| field_range(&self.text, &fields, key));
            self.set(place.map_err(|reason| not_editable(&reason))?, key, value.as_ref())?;
        }
        Ok(())
    }

    /// Writes a field at `place`, or at the end; removes it if there is no value.
    fn set(
        &mut self,
        place: Option<Range<usize>>,
        key: &str,
        value: Option<&Value>,
    ) -> Result<(), EditError> {
        let lines = match value {
            None => String::new(),
            Some(value) => yaml::field(key, value, &self.indentation, self.end_of_line)
                .ok_or_else(|| not_editable("the value is nested too deep"))?,
        };
        let place = place.unwrap_or(self.text.len()..self.text.len());
        if self.text.get(place.clone()).is_some() {
            self.text.replace_range(place, &lines);
        }
        Ok(())
    }
}

/// Returns the range of a field's lines, without trailing comments and empty lines.
fn field_range(
    yaml: &str,
    fields: &[(String, usize)],
    key: &str,
) -> Result<Option<Range<usize>>, String> {
    let lines: Vec<_> = with_offsets(yaml).collect();
    let is_flow = |line: usize| {
        lines.get(line).is_some_and(|(_, line)| line.trim_start().starts_with(['{', '?']))
    };
    if fields.iter().any(|field| is_flow(field.1)) || fields.windows(2).any(is_on_one_line) {
        return Err("its fields do not stand on lines of their own".to_owned());
    }
    let Some(place) = fields.iter().position(|field| field.0 == key) else { return Ok(None) };
    let first = fields.get(place).map_or(0, |field| field.1);
    let next = fields.get(place + 1).map_or(lines.len(), |field| field.1);
    let own = lines.get(first..next).unwrap_or_default();
    let is_comment = |(_, line): &&(usize, &str)| line.trim().is_empty() || line.starts_with('#');
    let after_count = own.iter().rev().take_while(is_comment).count();
    let own = own.get(..own.len() - after_count).unwrap_or_default();
    let start = own.first().map_or(0, |line| line.0);
    Ok(Some(start..own.last().map_or(start, |(offset, line)| offset + line.len())))
}

fn is_on_one_line(fields: &[(String, usize)]) -> bool {
    matches!(fields, [(_, first), (_, second)] if first == second)
}

/// A heading and the text below it.
struct Section {
    /// The range of the heading's lines.
    heading: Range<usize>,
    /// The offset of the next heading.
    end: usize,
}

impl Section {
    /// Finds the section with a heading, given with or without its `#`.
    fn find(text: &str, wanted: &str) -> Result<Self, EditError> {
        let headings = headings(text);
        let level = wanted.trim().bytes().take_while(|byte| *byte == b'#').count();
        let name = wanted.trim().trim_start_matches('#').trim();
        let fits = |heading: &&HeadingLines| level == 0 || usize::from(heading.level) == level;
        let select = |is_called: &dyn Fn(&str) -> bool| -> Vec<&HeadingLines> {
            headings.iter().filter(fits).filter(|heading| is_called(&heading.text)).collect()
        };
        let mut found = select(&|text| text == name);
        if found.is_empty() {
            found = select(&|text| text.to_lowercase() == name.to_lowercase());
        }
        match found.as_slice() {
            [] => Err(EditError::NoSection {
                section: wanted.to_owned(),
                headings: headings
                    .iter()
                    .take(HEADINGS_SHOWN_MAX)
                    .map(HeadingLines::shown)
                    .collect(),
            }),
            [only] => {
                let end = headings.iter().find(|it| it.lines.start > only.lines.start);
                let end = end.map_or(text.len(), |next| next.lines.start);
                Ok(Self { heading: only.lines.clone(), end })
            }
            several => {
                let lines = Lines::new(text);
                let numbers = several.iter().map(|it| lines.number(it.lines.start)).collect();
                Err(EditError::SeveralSections { section: wanted.to_owned(), lines: numbers })
            }
        }
    }

    /// Splits a text into everything up to the heading's end, the section's body, and the rest.
    fn split<'a>(&self, text: &'a str) -> (&'a str, &'a str, &'a str) {
        let part = |range: Range<usize>| text.get(range).unwrap_or_default();
        (part(0..self.heading.end), part(self.heading.end..self.end), part(self.end..text.len()))
    }
}

/// How many headings an error lists at most.
const HEADINGS_SHOWN_MAX: usize = 50;

struct HeadingLines {
    level: u8,
    text: String,
    lines: Range<usize>,
}

impl HeadingLines {
    fn shown(&self) -> String {
        format!("{} {}", "#".repeat(usize::from(self.level)), self.text)
    }
}

/// Returns the headings that start a section; those inside of lists and quotes do not.
fn headings(text: &str) -> Vec<HeadingLines> {
    let body = Frontmatter::parse(text).body_start..text.len();
    let found = block::blocks(text, body.clone()).into_iter().filter_map(|block| {
        let BlockKind::Heading { level, plain } = &block.kind else { return None };
        let before = text.get(..block.source.start)?;
        let line_start = before.rfind('\n').map_or(body.start, |at| at + 1);
        let lead = text.get(line_start..block.source.start)?;
        let end = block.source.end;
        let is_whole = text.get(..end)?.ends_with('\n');
        let rest = if is_whole {
            0
        } else {
            text.get(end..)?.find('\n').map_or(text.len() - end, |at| at + 1)
        };
        lead.trim().is_empty().then(|| HeadingLines {
            level: *level,
            text: plain.split_whitespace().collect::<Vec<_>>().join(" "),
            lines: line_start..end + rest,
        })
    });
    found.collect()
}

/// Returns the line terminator of a text.
fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text.get(..at).is_some_and(|line| line.ends_with('\r')) => "\r\n",
        _ => "\n",
    }
}

/// Terminates the last line of a text, unless it is empty.
fn on_own_lines(text: &str, end_of_line: &str) -> String {
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end_of_line };
    [text, gap].concat()
}
