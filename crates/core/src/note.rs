//! What the knowledge layer reads out of a memory's markdown.
//!
//! [`Note::parse`] cannot fail: a strange text is still a note, and what was not understood is a
//! [`Remark`]. It takes time linear in the text, reads nothing else, and never changes the text.
//! Which memory a link means is decided by the index, with the help of [`Identifier`].

mod block;
pub mod edit;
mod frontmatter;
mod glob;
mod grammar;
mod identifier;
mod lines;
mod links;
mod permalink;
mod qualifier;
#[cfg(test)]
mod tests;
mod value;
mod yaml;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use crate::model::{MemoryPath, Timestamp};

pub use glob::Glob;
pub use identifier::{Identifier, Nearness, Reference, alias_key, path_candidates};
pub(crate) use permalink::undecomposed;
pub use permalink::{numbered_permalink, permalink, slug};
pub use qualifier::{TimeKind, TimeQualifier};
pub use value::Value;

use frontmatter::Frontmatter;
use lines::Lines;

/// What a note's `type` is when it does not say.
pub const KIND_DEFAULT: &str = "note";
/// The kind of a link that is not written as a relation.
pub const LINKS_TO: &str = "links_to";

/// A memory's text, understood as a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its title: from the frontmatter, else the first heading of level 1, else the file's name.
    pub title: String,
    /// Its `type`.
    pub kind: String,
    /// The tags of its frontmatter, without `#`, each once.
    pub tags: Vec<String>,
    /// The tags in its text, without `#`, each once; those of observations are with them.
    pub inline_tags: Vec<String>,
    /// Other names that its frontmatter gives it (`aliases`).
    pub aliases: Vec<String>,
    /// The permalink that its frontmatter asks for.
    pub permalink: Option<String>,
    /// When it was created, by its own account.
    pub created: Option<Timestamp>,
    /// When it was modified, by its own account.
    pub modified: Option<Timestamp>,
    /// Everything else in the frontmatter, in its order.
    pub metadata: Vec<(String, Value)>,
    /// Its headings, in their order.
    pub headings: Vec<Heading>,
    /// Its observations, in their order.
    pub observations: Vec<Observation>,
    /// The links that are written as relations, in their order.
    pub relations: Vec<Relation>,
    /// All other links, in their order; each means [`LINKS_TO`].
    pub links: Vec<Link>,
    /// The bytes of the text after the frontmatter.
    pub body: Range<usize>,
    /// What was not understood.
    pub remarks: Vec<Remark>,
}

/// A heading of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// From 1, the highest, to 6.
    pub level: u8,
    /// Its text without the markup around it.
    pub text: String,
    /// The line on which it begins, counted from 1.
    pub line: usize,
    /// Its bytes, the signs that make it a heading included.
    pub range: Range<usize>,
}

/// A fact with a category: `- [category] @time text #tag (context)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What kind of fact it is.
    pub category: String,
    /// The fact; tags stay in it, the context and the times do not. It is empty if there are only
    /// times.
    pub text: String,
    /// The words that begin with `#`, without it, each once.
    pub tags: Vec<String>,
    /// What stood in the parentheses at its end.
    pub context: Option<String>,
    /// When the fact holds.
    pub times: Vec<TimeQualifier>,
    /// The line on which it begins, counted from 1.
    pub line: usize,
}

impl Observation {
    /// Returns when the fact holds, as it is written: `@due:2026-07-27`.
    pub fn written_times(&self) -> Vec<&str> {
        self.times.iter().map(|time| time.written.as_str()).collect()
    }
}

impl fmt::Display for Observation {
    /// Writes it on one line, as it stands in a list item.
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

/// A link with a meaning: `- kind [[Target]] (context)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// What the target is to the note, such as `depends_on`.
    pub kind: String,
    /// What it points to.
    pub target: Target,
    /// What stood in the parentheses at its end.
    pub context: Option<String>,
    /// The line of the target, counted from 1.
    pub line: usize,
    /// The bytes of the target, brackets included.
    pub range: Range<usize>,
}

/// A link in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it points to.
    pub target: Target,
    /// How it is written.
    pub style: LinkStyle,
    /// The line on which it begins, counted from 1.
    pub line: usize,
    /// Its bytes, brackets included.
    pub range: Range<usize>,
}

/// How a link is written.
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

/// What a link points to, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The store, if the link names one.
    pub store: Option<String>,
    /// The path, permalink or title; never empty.
    pub name: String,
    /// The section, as in `[[Target#Section]]`.
    pub section: Option<String>,
    /// The text to show, as in `[[Target|text]]`.
    pub alias: Option<String>,
}

/// One line between a note and what it points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge<'a> {
    /// What the target is to the note.
    pub kind: &'a str,
    /// What it points to.
    pub target: &'a Target,
    /// The context of a relation.
    pub context: Option<&'a str>,
    /// The line, counted from 1.
    pub line: usize,
}

/// Something in a note that was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The line that it is about, counted from 1.
    pub line: usize,
    /// What is wrong, lower case, without a full stop.
    pub text: String,
}

impl Note {
    /// Reads a memory's text as a note.
    pub fn parse(path: &MemoryPath, text: &str) -> Self {
        let lines = Lines::new(text);
        let (mut note, header_end) = Self::read_header(text);
        for block in block::blocks(text, note.body.clone()) {
            grammar::read(&block, &lines, &mut note);
        }
        let mut seen: HashSet<_> = note.tags.iter().cloned().collect();
        note.inline_tags.retain(|tag| seen.insert(tag.clone()));
        if note.title.is_empty() {
            // What looks like a heading in a block that is not YAML is most likely a comment.
            let mut headings = note.headings.iter().filter(|it| it.range.start >= header_end);
            let first = headings.find(|it| it.level == 1 && !it.text.is_empty());
            note.title = first.map_or_else(|| stem(path).to_owned(), |it| it.text.clone());
        }
        note
    }

    /// Reads only the frontmatter of a memory's text, and where the rest begins.
    pub(crate) fn parse_header(text: &str) -> Self {
        Self::read_header(text).0
    }

    /// Reads the frontmatter, and returns where its block ends, also if it was not understood.
    fn read_header(text: &str) -> (Self, usize) {
        let frontmatter = Frontmatter::parse(text);
        let mut note = Self {
            title: String::new(),
            kind: KIND_DEFAULT.to_owned(),
            tags: Vec::new(),
            inline_tags: Vec::new(),
            aliases: Vec::new(),
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
        (note, frontmatter.block_end)
    }

    /// Returns everything that the note points to: its relations, then its other links.
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

    fn take_fields(&mut self, fields: Vec<frontmatter::Field>) {
        for field in fields {
            let text = field.value.joined().filter(|text| !text.is_empty());
            let moment = text.as_deref().and_then(|text| text.parse().ok());
            match (field.key.as_str(), text) {
                ("title", text) => {
                    let title = text.unwrap_or_default();
                    self.title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                }
                ("type", text) => self.kind = text.unwrap_or_else(|| KIND_DEFAULT.to_owned()),
                ("tags", _) => self.tags = value::tags(&field.value),
                // Links may use these names, and searches may still filter by the field.
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

/// Returns the name of a path's file without its extension.
fn stem(path: &MemoryPath) -> &str {
    permalink::without_extension(path.file_name())
}
