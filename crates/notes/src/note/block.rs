//! Markdown as blocks of running text: headings, list items, paragraphs, table cells.
//!
//! A block's text is verbatim source minus the prefix of each container line (indentation, `>`), so
//! that offsets can be mapped back to the source. The text that the markdown parser reports would
//! lose escapes and the exact ranges of links. Code blocks outside of list items are skipped.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A block of running text.
#[derive(Debug)]
pub(crate) struct Block {
    /// The kind of block.
    pub(crate) kind: BlockKind,
    /// The text. Lines end with LF; an empty line separates the paragraphs of a list item.
    pub(crate) text: String,
    /// The ranges of code in `text`, in order.
    pub(crate) code: Vec<Range<usize>>,
    /// The markdown links and images in `text`, inner ones before outer ones.
    pub(crate) links: Vec<MarkdownLink>,
    /// The byte range of the block in the source.
    pub(crate) source: Range<usize>,
    /// The verbatim copies that `text` consists of: offset in `text`, offset in the source.
    stretches: Vec<(usize, usize)>,
}

/// The kind of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// A heading.
    Heading {
        /// From 1 to 6.
        level: u8,
        /// The text without markup.
        plain: String,
    },
    /// A list item, without nested lists.
    Item,
    /// Anything else.
    Other,
}

/// A markdown link or image.
#[derive(Debug)]
pub(crate) struct MarkdownLink {
    /// The range in the block's text.
    pub(crate) range: Range<usize>,
    /// What it points to.
    pub(crate) destination: String,
    /// Whether it is an image.
    pub(crate) is_image: bool,
}

impl Block {
    /// Maps an offset in the text to one in the source.
    pub(crate) fn source_offset(&self, offset: usize) -> usize {
        let after = self.stretches.partition_point(|(start, _)| *start <= offset);
        let stretch = after.checked_sub(1).and_then(|last| self.stretches.get(last));
        stretch.map_or(self.source.start, |(start, source)| source + (offset - start))
    }

    fn new(kind: BlockKind, source: Range<usize>) -> Self {
        let (text, code, links, stretches) = Default::default();
        Self { kind, text, code, links, source, stretches }
    }
}

/// Returns the blocks of the body, in order.
pub(crate) fn blocks(source: &str, body: Range<usize>) -> Vec<Block> {
    let base = body.start;
    let text = source.get(body).unwrap_or_default();
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    let mut collector = Collector { source, ..Collector::default() };
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        collector.take(event, base + range.start..base + range.end);
    }
    collector.blocks
}

/// Collects parser events into blocks.
#[derive(Default)]
struct Collector<'a> {
    source: &'a str,
    blocks: Vec<Block>,
    /// The open containers, the innermost last.
    around: Vec<Around>,
    /// The open links: offset in the block's text, and destination.
    links: Vec<(usize, String)>,
    /// The end of what was copied from the source; `None` if the next copy starts a new stretch.
    copied: Option<usize>,
}

/// A container of running text.
#[derive(Clone, Copy)]
enum Around {
    /// A list item, by block index.
    Item(usize),
    /// A paragraph, heading or the like, by the index of the block that receives its text.
    Text(usize),
    /// Code in a list item, by block index.
    Code(usize),
    /// Anything that receives no text itself.
    Nothing,
}

impl Collector<'_> {
    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(&tag, range),
            Event::End(tag) if is_inline(tag) => self.end_inline(tag, range),
            Event::End(_) => {
                self.around.pop();
                self.copied = None;
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(block) = self.block() {
                    block.text.push('\n');
                }
                self.add_plain(" ");
                self.copied = None;
            }
            Event::Text(text) => {
                let is_code = matches!(self.around.last(), Some(Around::Code(_)));
                self.copy(range, is_code.into());
                self.add_plain(&text);
            }
            Event::Code(text) => {
                self.copy(range, Protection::Code);
                self.add_plain(&text);
            }
            Event::Html(_) | Event::InlineHtml(_) | Event::FootnoteReference(_) => {
                self.copy(range, Protection::None);
            }
            Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: Range<usize>) {
        let inside = match (tag, self.around.last()) {
            (Tag::Item, _) => Around::Item(self.begin(BlockKind::Item, range)),
            (Tag::Heading { level, .. }, _) => {
                let kind = BlockKind::Heading { level: number(*level), plain: String::new() };
                Around::Text(self.begin(kind, range))
            }
            (Tag::Paragraph | Tag::HtmlBlock, Some(Around::Item(block))) => Around::Text(*block),
            (Tag::CodeBlock(_), Some(Around::Item(block))) => Around::Code(*block),
            (Tag::Paragraph | Tag::HtmlBlock | Tag::TableCell, _) => {
                Around::Text(self.begin(BlockKind::Other, range))
            }
            (Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }, _) => {
                self.open(range.start);
                let copied = self.copied.unwrap_or(range.start);
                let until = range.start.max(copied);
                self.copy(copied..until, Protection::None);
                let start = self.block().map_or(0, |block| block.text.len());
                self.links.push((start, dest_url.to_string()));
                return;
            }
            (tag, _) if is_inline(tag.to_end()) => return self.open(range.start),
            _ => Around::Nothing,
        };
        self.around.push(inside);
        self.copied = None;
    }

    fn end_inline(&mut self, tag: TagEnd, range: Range<usize>) {
        self.copy(range.clone(), Protection::None);
        let is_image = tag == TagEnd::Image;
        if !is_image && tag != TagEnd::Link {
            return;
        }
        let Some((start, destination)) = self.links.pop() else { return };
        if let Some(block) = self.block() {
            let range = start..block.text.len();
            block.links.push(MarkdownLink { range, destination, is_image });
        }
    }

    fn begin(&mut self, kind: BlockKind, source: Range<usize>) -> usize {
        self.blocks.push(Block::new(kind, source));
        self.blocks.len() - 1
    }

    /// Returns the block that receives text now.
    fn block(&mut self) -> Option<&mut Block> {
        match self.around.last()? {
            Around::Item(block) | Around::Text(block) | Around::Code(block) => {
                self.blocks.get_mut(*block)
            }
            Around::Nothing => None,
        }
    }

    /// Starts a stretch at an offset of the source, unless one is open.
    fn open(&mut self, start: usize) {
        if self.copied.is_some() {
            return;
        }
        // The parser does not report the backslash that escapes the first character.
        let before = start.checked_sub(1).filter(|it| self.source.get(*it..start) == Some("\\"));
        let start = before.unwrap_or(start);
        let Some(block) = self.block() else { return };
        if !block.text.is_empty() && !block.text.ends_with('\n') {
            block.text.push_str("\n\n");
        }
        block.stretches.push((block.text.len(), start));
        self.copied = Some(start);
    }

    /// Copies the source from the end of the last copy to the end of the range.
    fn copy(&mut self, range: Range<usize>, protection: Protection) {
        self.open(range.start);
        let Some(copied) = self.copied else { return };
        let Some(text) = self.source.get(copied..range.end) else { return };
        let size = range.end - range.start.max(copied);
        let Some(block) = self.block() else { return };
        block.text.push_str(text);
        if protection == Protection::Code {
            let end = block.text.len();
            block.code.push(end.saturating_sub(size)..end);
        }
        self.copied = Some(range.end);
    }

    fn add_plain(&mut self, text: &str) {
        if let Some(Block { kind: BlockKind::Heading { plain, .. }, .. }) = self.block() {
            plain.push_str(text);
        }
    }
}

/// Whether a piece of text is code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    None,
    Code,
}

impl From<bool> for Protection {
    fn from(is_code: bool) -> Self {
        if is_code { Self::Code } else { Self::None }
    }
}

fn is_inline(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
