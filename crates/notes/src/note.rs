//! Parsing a memory's markdown as a note.
//!
//! [`Note::parse`] is total: any text is a note, and what could not be parsed becomes a [`Remark`].
//! It runs in linear time. Links are returned as written; resolving them takes an index and starts
//! with [`Identifier`](crate::Identifier).

pub(crate) mod block;
pub(crate) mod frontmatter;
mod grammar;
pub(crate) mod lines;
pub(crate) mod links;
mod qualifier;
#[cfg(test)]
mod tests;
mod time;
mod value;
pub(crate) mod yaml;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use jiff::Timestamp;

use crate::permalink::without_extension;
use crate::tokenizer::Language;

pub use qualifier::{TimeKind, TimeQualifier};
pub use time::end_of;
pub use value::Value;

use frontmatter::Frontmatter;
use lines::Lines;
use time::moment;

/// The `type` of a note that does not name one.
pub const KIND_DEFAULT: &str = "note";
/// The kind of every link that is not a relation.
pub const LINKS_TO: &str = "links_to";

/// A memory's text, parsed as a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The title from the frontmatter, else the first level-1 heading, else the file name.
    pub title: String,
    /// The `type` from the frontmatter, else [`KIND_DEFAULT`].
    pub kind: String,
    /// The tags of the frontmatter, without `#`, deduplicated.
    pub tags: Vec<String>,
    /// The tags in the body, without `#`, deduplicated. Tags of observations are kept there, and
    /// those of the frontmatter are not repeated.
    pub inline_tags: Vec<String>,
    /// Alternative names from the frontmatter (`aliases`).
    pub aliases: Vec<String>,
    /// The language named in the frontmatter (`lang`, `language`), else the one detected from the
    /// body.
    pub language: Language,
    /// The permalink requested in the frontmatter.
    pub permalink: Option<String>,
    /// The `created` timestamp of the frontmatter.
    pub created: Option<Timestamp>,
    /// The `modified` timestamp of the frontmatter.
    pub modified: Option<Timestamp>,
    /// All other frontmatter fields, in order.
    pub metadata: Vec<(String, Value)>,
    /// The headings, in order.
    pub headings: Vec<Heading>,
    /// The observations, in order.
    pub observations: Vec<Observation>,
    /// The links written as relations, in order.
    pub relations: Vec<Relation>,
    /// All other links, in order; their kind is [`LINKS_TO`].
    pub links: Vec<Link>,
    /// The byte range of the text after the frontmatter.
    pub body: Range<usize>,
    /// What could not be parsed.
    pub remarks: Vec<Remark>,
}

/// A heading of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// From 1 (top) to 6.
    pub level: u8,
    /// The text without markup.
    pub text: String,
    /// The line on which it begins, 1-based.
    pub line: usize,
    /// The byte range in the text, `#` included.
    pub range: Range<usize>,
}

/// A fact with a category: `- [category] @time text #tag (context)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The category.
    pub category: String,
    /// The fact, including its tags but not its context and times. Empty if there are only times.
    pub text: String,
    /// The tags in the fact, without `#`, deduplicated.
    pub tags: Vec<String>,
    /// The content of the trailing parentheses.
    pub context: Option<String>,
    /// When the fact holds.
    pub times: Vec<TimeQualifier>,
    /// The line on which it begins, 1-based.
    pub line: usize,
}

impl Observation {
    /// Returns the time qualifiers as written, such as `@due:2026-07-27`.
    pub fn written_times(&self) -> Vec<&str> {
        self.times.iter().map(|time| time.written.as_str()).collect()
    }
}

impl fmt::Display for Observation {
    /// Formats it on one line, as in a list item.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.category)?;
        let text = Some(self.text.as_str()).filter(|text| !text.is_empty());
        for part in self.written_times().into_iter().chain(text) {
            write!(f, " {part}")?;
        }
        match &self.context {
            Some(context) => write!(f, " ({context})"),
            None => Ok(()),
        }
    }
}

/// A typed link: `- kind [[Target]] (context)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The relation of the note to the target, such as `depends_on`.
    pub kind: String,
    /// What it points to.
    pub target: LinkTarget,
    /// The content of the trailing parentheses.
    pub context: Option<String>,
    /// The line of the target, 1-based.
    pub line: usize,
    /// The byte range of the target, brackets included.
    pub range: Range<usize>,
}

/// A link in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it points to.
    pub target: LinkTarget,
    /// The syntax used.
    pub style: LinkStyle,
    /// The line on which it begins, 1-based.
    pub line: usize,
    /// The byte range of the link, brackets included.
    pub range: Range<usize>,
}

/// The syntax of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkStyle {
    /// `[[Target]]`
    Wiki,
    /// `![[Target]]`
    WikiEmbed,
    /// `[text](target.md)`
    Markdown,
    /// `![text](target.md)`
    MarkdownEmbed,
}

/// What a link points to, as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LinkTarget {
    /// The store, if the link names one.
    pub store: Option<String>,
    /// A path, permalink or title; never empty.
    pub name: String,
    /// The section, as in `[[Target#Section]]`.
    pub section: Option<String>,
    /// The text to show, as in `[[Target|text]]`.
    pub alias: Option<String>,
}

/// An outgoing edge of a note in the graph of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge<'a> {
    /// The relation of the note to the target.
    pub kind: &'a str,
    /// What it points to.
    pub target: &'a LinkTarget,
    /// The context of a relation.
    pub context: Option<&'a str>,
    /// The line, 1-based.
    pub line: usize,
}

/// A warning about something in a note that could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The line that it is about, 1-based.
    pub line: usize,
    /// What is wrong, in lower case and without a full stop.
    pub text: String,
}

impl Note {
    /// Parses a memory's text; the path supplies the title if the text has none.
    pub fn parse(path: &str, text: &str) -> Self {
        let lines = Lines::new(text);
        let (mut note, header_end) = Self::read_header(text);
        for block in block::blocks(text, note.body.clone()) {
            grammar::read(&block, &lines, &mut note);
        }
        let mut seen: HashSet<_> = note.tags.iter().cloned().collect();
        note.inline_tags.retain(|tag| seen.insert(tag.clone()));
        if note.title.is_empty() {
            // In a frontmatter block that is not valid YAML, a `#` line is most likely a comment.
            let mut headings = note.headings.iter().filter(|it| it.range.start >= header_end);
            let first = headings.find(|it| it.level == 1 && !it.text.is_empty());
            note.title = first.map_or_else(|| stem(path).to_owned(), |it| it.text.clone());
        }
        note
    }

    /// Parses only the frontmatter and detects the language; the title is empty unless the
    /// frontmatter has one.
    ///
    /// Far cheaper than [`parse`](Self::parse), which also parses the markdown.
    pub fn parse_header(text: &str) -> Self {
        Self::read_header(text).0
    }

    /// Returns one field of the frontmatter and the offset of the body; fails if the block is not valid.
    ///
    /// Cheaper than [`parse_header`](Self::parse_header), which also detects the language of the body.
    pub fn field(text: &str, key: &str) -> Result<(Option<Value>, usize), Remark> {
        let frontmatter = Frontmatter::parse(text);
        let is_broken = frontmatter.yaml.is_none();
        match frontmatter.remarks.into_iter().next().filter(|_| is_broken) {
            Some(remark) => Err(remark),
            None => {
                let mut fields = frontmatter.fields.into_iter();
                let field = fields.find(|field| field.key == key).map(|field| field.value);
                Ok((field, frontmatter.body_start))
            }
        }
    }

    /// Parses the frontmatter, and returns the end of its block even if the block is invalid.
    fn read_header(text: &str) -> (Self, usize) {
        let frontmatter = Frontmatter::parse(text);
        let mut note = Self {
            title: String::new(),
            kind: KIND_DEFAULT.to_owned(),
            tags: Vec::new(),
            inline_tags: Vec::new(),
            aliases: Vec::new(),
            language: Language::default(),
            permalink: None,
            created: None,
            modified: None,
            metadata: Vec::new(),
            headings: Vec::new(),
            observations: Vec::new(),
            relations: Vec::new(),
            links: Vec::new(),
            body: frontmatter.body_start..text.len(),
            remarks: frontmatter.remarks,
        };
        note.take_fields(frontmatter.fields);
        let body = || text.get(note.body.clone()).unwrap_or_default();
        note.language = note.named_language().unwrap_or_else(|| Language::detect(body()));
        (note, frontmatter.block_end)
    }

    /// Returns the outgoing edges: relations first, then all other links.
    pub fn edges(&self) -> impl Iterator<Item = Edge<'_>> {
        let relations = self.relations.iter().map(|relation| Edge {
            kind: &relation.kind,
            target: &relation.target,
            context: relation.context.as_deref(),
            line: relation.line,
        });
        let links = self.links.iter().map(|link| Edge {
            kind: LINKS_TO,
            target: &link.target,
            context: None,
            line: link.line,
        });
        relations.chain(links)
    }

    /// Returns the language named in the frontmatter. Unknown names are ignored, not errors: a note
    /// about code may well say `language: rust`.
    fn named_language(&self) -> Option<Language> {
        let fields = self.metadata.iter().filter(|(key, _)| key == "lang" || key == "language");
        fields.flat_map(|(_, value)| value::names(value)).find_map(|tag| Language::from_tag(&tag))
    }

    fn take_fields(&mut self, fields: Vec<frontmatter::FrontmatterField>) {
        for field in fields {
            let text = field.value.joined().filter(|text| !text.is_empty());
            let moment = text.as_deref().and_then(moment);
            match (field.key.as_str(), text) {
                ("title", text) => {
                    let title = text.unwrap_or_default();
                    self.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                }
                ("type", text) => self.kind = text.unwrap_or_else(|| KIND_DEFAULT.to_owned()),
                ("tags", _) => self.tags = value::tags(&field.value),
                // Aliases name the note in links, but searches may filter by the field as well.
                ("aliases" | "alias", _) => {
                    self.aliases.extend(value::names(&field.value));
                    self.metadata.push((field.key, field.value));
                }
                ("permalink", text) => self.permalink = text,
                ("created", Some(_)) if moment.is_some() => self.created = moment,
                ("modified", Some(_)) if moment.is_some() => self.modified = moment,
                ("created" | "modified", None) => {}
                _ => self.metadata.push((field.key, field.value)),
            }
        }
    }
}

/// Returns the file name of a path without its extension.
fn stem(path: &str) -> &str {
    without_extension(path.rsplit('/').next().unwrap_or(path))
}
