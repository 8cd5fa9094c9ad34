//! The grammar inside of blocks: headings, observations, relations, tags, links.

use std::collections::HashSet;
use std::ops::Range;

use super::block::{Block, BlockKind, MarkdownLink};
use super::lines::Lines;
use super::links::{WikiLink, wiki_links};
use super::qualifier::qualifiers;
use super::{Heading, Link, LinkStyle, LinkTarget, Note, Observation, Relation};

/// Parses a block and adds what it holds to the note.
pub(super) fn read(block: &Block, lines: &Lines, note: &mut Note) {
    let mut wiki = wiki_links(&block.text, &block.code);
    let markdown = markdown_links(block, &wiki);
    let protected = protected(block, &markdown, &wiki);
    let item = Item { text: &block.text, protected: &protected };
    let line = |offset| lines.number(block.source_offset(offset));
    let observations_count = note.observations.len();
    match &block.kind {
        BlockKind::Heading { level, plain } => note.headings.push(Heading {
            level: *level,
            text: plain.split_whitespace().collect::<Vec<_>>().join(" "),
            line: lines.number(block.source.start),
            range: block.source.clone(),
        }),
        // An item that begins with a code block shows an example; it states nothing.
        BlockKind::Item if block.code.first().is_some_and(|code| code.start == 0) => {}
        BlockKind::Item => match item.observation(line(0)) {
            Some(observation) => note.observations.push(observation),
            None => {
                let first = wiki.first().filter(|link| !link.is_embed);
                if let Some((kind, context)) = first.and_then(|link| item.relation(link)) {
                    let WikiLink { range, target, .. } = wiki.remove(0);
                    let line = line(range.start);
                    let range = source_range(block, &range);
                    note.relations.push(Relation { kind, target, context, line, range });
                }
            }
        },
        BlockKind::Other => {}
    }
    if note.observations.len() == observations_count {
        // `#12` is an issue.
        let is_name = |tag: &String| tag.chars().any(|it| !it.is_numeric());
        note.inline_tags.extend(item.tags(0).into_iter().filter(is_name));
    }
    let first_new = note.links.len();
    note.links.extend(wiki.into_iter().map(|link| Link {
        target: link.target,
        style: if link.is_embed { LinkStyle::WikiEmbed } else { LinkStyle::Wiki },
        line: line(link.range.start),
        range: source_range(block, &link.range),
    }));
    note.links.extend(memory_links(block, &markdown, lines));
    note.links.get_mut(first_new..).unwrap_or_default().sort_by_key(|link| link.range.start);
}

fn source_range(block: &Block, range: &Range<usize>) -> Range<usize> {
    let start = block.source_offset(range.start);
    start..start + range.len()
}

/// Returns the markdown links that point to memories.
fn memory_links(block: &Block, markdown: &[&MarkdownLink], lines: &Lines) -> Vec<Link> {
    let links = markdown.iter().filter_map(|link| {
        let start = block.source_offset(link.range.start);
        let last = block.source_offset(link.range.end.saturating_sub(1));
        Some(Link {
            target: LinkTarget::of_markdown(&link.destination)?,
            style: if link.is_image { LinkStyle::MarkdownEmbed } else { LinkStyle::Markdown },
            line: lines.number(start),
            range: start..last + 1,
        })
    });
    links.collect()
}

/// Returns the markdown links of a block. `[[A]](b)` is a wiki link followed by parentheses,
/// although the markdown parser reports a link as well.
fn markdown_links<'a>(block: &'a Block, wiki: &[WikiLink]) -> Vec<&'a MarkdownLink> {
    let starts: HashSet<_> = wiki.iter().map(|link| link.range.start).collect();
    block.links.iter().filter(|link| !starts.contains(&link.range.start)).collect()
}

/// Returns the ranges of code and links, whose characters are literal, sorted and merged.
fn protected(block: &Block, markdown: &[&MarkdownLink], wiki: &[WikiLink]) -> Vec<Range<usize>> {
    let code = block.code.iter().cloned();
    let markdown = markdown.iter().map(|link| link.range.clone());
    let wiki = wiki.iter().map(|link| link.range.clone());
    let mut all: Vec<_> = code.chain(markdown).chain(wiki).collect();
    all.sort_by_key(|range| (range.start, range.end));
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(all.len());
    for range in all {
        match apart.last_mut().filter(|last| range.start < last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    apart
}

/// The text of a list item.
struct Item<'a> {
    text: &'a str,
    /// The ranges whose characters are literal, sorted and merged.
    protected: &'a [Range<usize>],
}

impl Item<'_> {
    /// Parses `[category] @time text #tag (context)`.
    fn observation(&self, line: usize) -> Option<Observation> {
        let (category, rest) = category(self.text)?;
        let (times, rest) = qualifiers(rest.trim_start());
        let start = self.text.len() - rest.len();
        let context = self.context(start).filter(|context| {
            self.text.get(start..context.start).is_some_and(|text| !text.trim().is_empty())
        });
        let end = context.as_ref().map_or(self.text.len(), |context| context.start);
        let text = flowing(self.text.get(start..end).unwrap_or_default());
        let context = context.and_then(|range| self.inside(&range));
        (!text.is_empty() || !times.is_empty()).then(|| Observation {
            category: category.to_owned(),
            text,
            tags: self.tags(start),
            context,
            times,
            line,
        })
    }

    /// Parses `kind [[Target]] (context)`, where the link is the first of the item.
    fn relation(&self, link: &WikiLink) -> Option<(String, Option<String>)> {
        let kind = relation_kind(self.text.get(..link.range.start)?.trim())?;
        let parentheses = self.parentheses_alone(link.range.end)?;
        let context = parentheses.last().and_then(|range| self.inside(range));
        Some((kind.to_owned(), context))
    }

    /// Returns the balanced parentheses after `start`; `None` if there are words beside them,
    /// because the item is then a sentence with a link in it. Tags (`#tag`) and block ids (`^id`)
    /// are not words.
    fn parentheses_alone(&self, start: usize) -> Option<Vec<Range<usize>>> {
        let mut found = Vec::new();
        let mut open = Vec::new();
        let mut is_label = false;
        let mut is_worded = false;
        for (offset, character) in self.meaningful(start) {
            is_label = matches!(character, '#' | '^') || (is_label && is_tag_character(character));
            is_worded |= character.is_alphanumeric() && !is_label;
            let closed = match character {
                '(' => {
                    open.push(offset);
                    None
                }
                ')' => open.pop().filter(|_| open.is_empty()),
                _ => None,
            };
            if let Some(begin) = closed {
                found.push(begin..offset + 1);
                is_worded = false;
            }
            if is_worded && open.is_empty() {
                return None;
            }
        }
        (!is_worded).then_some(found)
    }

    /// Returns the balanced parentheses that end the item, if a space precedes them.
    fn context(&self, start: usize) -> Option<Range<usize>> {
        let end = self.text.trim_end().len();
        let mut open = Vec::new();
        let mut last = None;
        for (offset, character) in self.meaningful(start) {
            match character {
                '(' => open.push(offset),
                ')' => last = open.pop().map(|begin| begin..offset + 1),
                _ => {}
            }
        }
        last.filter(|range| {
            let before = self.text.get(start..range.start).unwrap_or_default();
            range.end == end && (before.is_empty() || before.ends_with(char::is_whitespace))
        })
    }

    fn inside(&self, parentheses: &Range<usize>) -> Option<String> {
        let text = flowing(self.text.get(parentheses.start + 1..parentheses.end - 1)?);
        (!text.is_empty()).then_some(text)
    }

    /// Returns the tags after `start`, deduplicated.
    fn tags(&self, start: usize) -> Vec<String> {
        let mut found = Vec::new();
        // Most blocks have none, which is far faster to see than to read them letter by letter.
        if !self.text.get(start..).is_some_and(|text| text.contains('#')) {
            return found;
        }
        let mut seen = HashSet::new();
        let mut before = ' ';
        let mut word: Option<String> = None;
        for (_, character) in self.meaningful(start).chain([(0, ' ')]) {
            if let Some(tag) = word.as_mut().filter(|_| is_tag_character(character)) {
                tag.push(character);
            } else {
                let ended = word.take();
                // `&#39;` is a character entity, and `?q=#top` is part of a URL.
                let is_inside = is_tag_character(before) || matches!(before, '&' | '=' | '?' | '%');
                let begins = character == '#' && (ended.is_some() || !is_inside);
                word = begins.then(String::new);
                let tag = ended.as_deref().unwrap_or_default().trim_end_matches(['.', '/', '-']);
                if !tag.is_empty() && seen.insert(tag.to_owned()) {
                    found.push(tag.to_owned());
                }
            }
            before = character;
        }
        found
    }

    /// Returns the characters after `start`, with NUL in place of escaped and literal ones.
    fn meaningful(&self, start: usize) -> impl Iterator<Item = (usize, char)> {
        let mut protected = self.protected.iter().peekable();
        let mut is_escaped = false;
        let characters = self.text.get(start..).unwrap_or_default().char_indices();
        characters.map(move |(offset, character)| {
            let offset = start + offset;
            while protected.next_if(|range| range.end <= offset).is_some() {}
            let is_protected = protected.peek().is_some_and(|range| range.start <= offset);
            let is_hidden = is_protected || is_escaped;
            is_escaped = !is_hidden && character == '\\';
            (offset, if is_hidden { '\0' } else { character })
        })
    }
}

/// Splits `[category] rest`; `None` for checkboxes, footnotes and timestamps in brackets.
fn category(text: &str) -> Option<(&str, &str)> {
    let after = text.trim_start().strip_prefix('[')?;
    let end = after.find(['[', ']', '(', ')', '\n'])?;
    let (category, rest) = after.split_at_checked(end)?;
    let rest = rest.strip_prefix(']')?;
    let category = category.trim();
    let mut characters = category.chars();
    let is_box = match (characters.next(), characters.next()) {
        (Some(only), None) => matches!(only, 'x' | 'X') || !only.is_alphanumeric(),
        (None, _) => true,
        (Some(first), Some(_)) => first == '^' || is_time_code(category),
    };
    (!is_box && rest.starts_with(char::is_whitespace)).then_some((category, rest))
}

/// Returns whether a text is a time or a span such as `12:30`, `1:02:03.5`, `12:30 PM` or
/// `12:30-13:00`.
fn is_time_code(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let is_time = |time: &str| {
        let time = time.trim().to_ascii_lowercase();
        let halves = ["am", "pm", "a.m.", "p.m."];
        let time = halves.iter().find_map(|half| time.strip_suffix(half)).unwrap_or(&time);
        let time = time.split_once(['.', ',']).map_or(time, |(whole, _)| whole).trim_end();
        time.contains(':') && time.split(':').all(is_part)
    };
    let mut times = text.split(['-', '–', '—', '→', '>']).filter(|time| !time.trim().is_empty());
    text.contains(':') && times.all(is_time)
}

/// Returns the kind of a relation: one word, or several in quotes.
fn relation_kind(text: &str) -> Option<&str> {
    const QUOTES: [(char, char); 3] = [('"', '"'), ('\'', '\''), ('\u{201c}', '\u{201d}')];
    let quoted = QUOTES.iter().find_map(|(open, close)| {
        let inside = text.strip_prefix(*open)?.strip_suffix(*close)?;
        (!inside.contains([*open, *close, '\n'])).then_some(inside)
    });
    let kind = match quoted {
        Some(inside) => inside.trim(),
        None if text.contains(char::is_whitespace) => return None,
        None => text.trim_matches('*').trim_end_matches(':').trim_matches('*'),
    };
    let is_word = kind.chars().any(char::is_alphanumeric);
    (is_word && !kind.contains(['[', ']', '`', '\\', '\n'])).then_some(kind)
}

fn is_tag_character(character: char) -> bool {
    let is_foreign_sign = matches!(character, '\u{80}'..='\u{bf}' | '\u{2000}'..='\u{206f}'
        | '\u{3000}'..='\u{303f}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff0f}'
        | '\u{ff1a}'..='\u{ff20}');
    character.is_alphanumeric()
        || matches!(character, '_' | '-' | '/' | '.' | '+')
        || (!character.is_ascii() && !is_foreign_sign && !character.is_whitespace())
}

/// Unwraps a text: one line per paragraph.
fn flowing(text: &str) -> String {
    let mut flowing = String::with_capacity(text.len());
    let mut gap = "";
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            gap = "\n";
            continue;
        }
        if !flowing.is_empty() {
            flowing.push_str(gap);
        }
        flowing.push_str(line);
        gap = " ";
    }
    flowing
}
