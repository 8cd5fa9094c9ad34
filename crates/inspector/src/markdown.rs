//! Markdown as markup that is safe to show, whatever the note says.
//!
//! The elements and attributes of the result are the few that this module writes. Raw HTML is shown as
//! text, images are named and not fetched, links lead to http(s) or to our own pages. Work and result are
//! bounded: nesting has a maximum depth, as browsers and screen readers give up on more, and the rest of
//! a note whose markup would be enormous is left to the other views.

mod links;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use maud::{Markup, PreEscaped, Render as _};
use pulldown_cmark::{
    Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd,
};

use links::OpenLink;

/// Where a note is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The address of the page that shows it, for links to its own sections.
    pub(crate) page: &'a str,
    /// The address that resolves the links of notes; the link becomes its query.
    pub(crate) resolver: &'a str,
    /// The memory, so that relative links start from where it is.
    pub(crate) memory: &'a str,
}

/// A note as markup, and what its reader must be warned of.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// The note.
    pub(crate) markup: Markup,
    /// How many pieces of raw HTML it has, other than comments.
    pub(crate) raw_html_count: usize,
    /// How many links claim to lead to another host than they do.
    pub(crate) misleading_links_count: usize,
    /// How many link definitions nothing refers to: text that no renderer shows.
    pub(crate) unused_definitions_count: usize,
    /// Whether the end is left out.
    pub(crate) is_cut: bool,
}

/// How deep elements nest. What is deeper is shown without its element.
const DEPTH_MAX: usize = 48;

/// The longest markup; a note that would need more is cut.
const MARKUP_SIZE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The longest text of a heading that goes into its id.
const HEADING_ID_CHARS_MAX: usize = 60;

/// Renders markdown.
pub(crate) fn render(text: &str, place: Place<'_>) -> Rendered {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_WIKILINKS;
    let mut parser = Parser::new_ext(text, options).into_offset_iter();
    let mut writer = Writer::new(place);
    for (event, range) in parser.by_ref() {
        if event == Event::End(TagEnd::TableCell) {
            writer.cell_end = range.end;
        } else if event == Event::End(TagEnd::TableRow) {
            writer.excess(text.get(writer.cell_end..range.end).unwrap_or_default());
        }
        writer.take(event);
        if writer.out.len() > MARKUP_SIZE_BYTES_MAX {
            writer.is_cut = true;
            break;
        }
    }
    writer.close_all();
    let definitions = parser.reference_definitions().iter();
    let unused =
        definitions.filter(|(label, _)| !writer.used_labels.contains(&label.to_lowercase()));
    let unused_definitions_count = if writer.is_cut { 0 } else { unused.count() };
    Rendered {
        markup: PreEscaped(writer.out),
        raw_html_count: writer.raw_html_count,
        misleading_links_count: writer.misleading_links_count,
        unused_definitions_count,
        is_cut: writer.is_cut,
    }
}

/// Turns events into markup.
struct Writer<'a> {
    place: Place<'a>,
    out: String,
    /// What ends each open element; empty for one that is not shown as an element.
    closers: Vec<&'static str>,
    /// What was written before the heading that is open.
    before_heading: Option<String>,
    /// How many elements are open around it.
    heading_depth: usize,
    heading_text: String,
    heading_level: u8,
    heading_ids: HashMap<String, usize>,
    /// The links that are open, the innermost last. Images are among them.
    links: Vec<OpenLink>,
    /// The columns of the table that is open, and the next one.
    columns: Vec<Alignment>,
    column: usize,
    is_in_table_head: bool,
    /// Where the last cell ends in the text.
    cell_end: usize,
    tables_count: usize,
    footnotes: HashMap<String, usize>,
    defined_footnotes: HashSet<usize>,
    used_labels: HashSet<String>,
    raw_html_count: usize,
    /// Whether a block of HTML has begun and its first line is still to come.
    is_html_begun: bool,
    misleading_links_count: usize,
    is_cut: bool,
}

impl<'a> Writer<'a> {
    fn new(place: Place<'a>) -> Self {
        Self {
            place,
            out: String::new(),
            closers: Vec::new(),
            before_heading: None,
            heading_depth: 0,
            heading_text: String::new(),
            heading_level: 1,
            heading_ids: HashMap::new(),
            links: Vec::new(),
            columns: Vec::new(),
            column: 0,
            is_in_table_head: false,
            cell_end: 0,
            tables_count: 0,
            footnotes: HashMap::new(),
            defined_footnotes: HashSet::new(),
            used_labels: HashSet::new(),
            raw_html_count: 0,
            is_html_begun: false,
            misleading_links_count: 0,
            is_cut: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Html(text) => {
                if std::mem::take(&mut self.is_html_begun) {
                    self.raw_html_count += usize::from(!is_comment(&text));
                }
                self.text(&text);
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.element("code", &text);
            }
            Event::InlineHtml(text) => {
                self.raw_html_count += usize::from(!is_comment(&text));
                self.with_class("code", "raw-html", &text);
            }
            Event::FootnoteReference(label) => self.footnote_reference(&label),
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.void("<br>"),
            Event::Rule => self.void("<hr>"),
            Event::TaskListMarker(is_done) => self.void(if is_done {
                "<span class=\"task\" role=\"img\" aria-label=\"done\">☑</span> "
            } else {
                "<span class=\"task\" role=\"img\" aria-label=\"to do\">☐</span> "
            }),
        }
    }

    /// Writes text, escaped. Inside of an image it becomes the description.
    fn text(&mut self, text: &str) {
        if let Some(link) = self.links.last_mut() {
            link.add_text(text);
            if link.is_image {
                return;
            }
        }
        if self.before_heading.is_some() {
            self.heading_text.push_str(text);
        }
        text.render_to(&mut self.out);
    }

    /// Writes markup without text.
    fn void(&mut self, markup: &str) {
        if !self.is_in_image() {
            self.out.push_str(markup);
        }
    }

    fn element(&mut self, name: &str, text: &str) {
        self.void(&format!("<{name}>"));
        self.text(text);
        self.void(&format!("</{name}>"));
    }

    fn with_class(&mut self, name: &str, class: &str, text: &str) {
        self.void(&format!("<{name} class=\"{class}\">"));
        self.text(text);
        self.void(&format!("</{name}>"));
    }

    fn is_in_image(&self) -> bool {
        self.links.last().is_some_and(|link| link.is_image)
    }

    /// Begins an element that may be inside of others of its kind.
    fn nest(&mut self, markup: &str, closer: &'static str) {
        if self.closers.len() < DEPTH_MAX {
            self.open(markup, closer);
        } else {
            self.closers.push("");
        }
    }

    /// Begins an element that is never inside of another of its kind, or that needs the one around it.
    fn open(&mut self, markup: &str, closer: &'static str) {
        if self.is_in_image() {
            self.closers.push("");
        } else {
            self.out.push_str(markup);
            self.closers.push(closer);
        }
    }

    fn close(&mut self) {
        let closer = self.closers.pop().unwrap_or_default();
        self.out.push_str(closer);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.open("<p>", "</p>\n"),
            Tag::Heading { .. } => {
                // The id is made of the text, which is not known yet.
                self.before_heading = Some(std::mem::take(&mut self.out));
                self.heading_depth = self.closers.len();
                self.heading_text.clear();
            }
            Tag::BlockQuote(_) => self.nest("<blockquote>", "</blockquote>\n"),
            Tag::CodeBlock(kind) => self.code_block(&kind),
            Tag::HtmlBlock => {
                self.is_html_begun = true;
                self.open("<pre class=\"raw-html\">", "</pre>\n");
            }
            Tag::List(None) => self.nest("<ul>", "</ul>\n"),
            Tag::List(Some(first)) => self.nest(&format!("<ol start=\"{first}\">"), "</ol>\n"),
            // Without its list it is no item.
            Tag::Item if self.closers.last().is_none_or(|it| it.is_empty()) => {
                self.closers.push("");
            }
            Tag::Item => self.open("<li>", "</li>\n"),
            Tag::FootnoteDefinition(label) => self.footnote_definition(&label),
            Tag::Table(columns) => {
                self.columns = columns;
                self.tables_count += 1;
                let number = self.tables_count;
                let group = "<div class=\"wide\" role=\"group\" tabindex=\"0\"";
                let label = format!("{group} aria-label=\"Table {number}\"><table>");
                self.open(&label, "</tbody></table></div>\n");
            }
            Tag::TableHead => {
                (self.is_in_table_head, self.column) = (true, 0);
                self.open("<thead><tr>", "</tr></thead><tbody>\n");
            }
            Tag::TableRow => {
                self.column = 0;
                self.open("<tr>", "</tr>\n");
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => self.nest("<em>", "</em>"),
            Tag::Strong => self.nest("<strong>", "</strong>"),
            Tag::Strikethrough => self.nest("<del>", "</del>"),
            Tag::Superscript => self.nest("<sup>", "</sup>"),
            Tag::Subscript => self.nest("<sub>", "</sub>"),
            Tag::Link { link_type, dest_url, title, id } => {
                self.use_label(link_type, &id);
                self.open_link(OpenLink::new(link_type, &dest_url, &title));
            }
            Tag::Image { link_type, dest_url, title, id } => {
                self.use_label(link_type, &id);
                let mut link = OpenLink::new(link_type, &dest_url, &title);
                // An embedded note is a link to it.
                link.is_image = !matches!(link_type, LinkType::WikiLink { .. });
                self.open_link(link);
            }
            // These need options that are not set.
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => self.open("<div>", "</div>"),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => self.end_heading(level),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::TableHead => {
                self.is_in_table_head = false;
                self.close();
            }
            TagEnd::Paragraph
            | TagEnd::BlockQuote(_)
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Table
            | TagEnd::TableRow
            | TagEnd::TableCell
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => self.close(),
        }
    }

    /// Ends everything that is open, after the last event or in the middle of a note that is cut.
    fn close_all(&mut self) {
        while let Some(depth) = self.links.last().map(|link| link.depth) {
            self.close_down_to(depth);
            self.close_link();
        }
        if self.before_heading.is_some() {
            self.close_down_to(self.heading_depth);
            self.end_heading(HeadingLevel::H6);
        }
        self.close_down_to(0);
    }

    fn close_down_to(&mut self, depth: usize) {
        while self.closers.len() > depth {
            self.close();
        }
    }

    /// Begins a code block. What is written after its fence is shown, as a model reads it too.
    fn code_block(&mut self, kind: &CodeBlockKind<'_>) {
        match kind {
            CodeBlockKind::Fenced(info) if !info.trim().is_empty() && !self.is_in_image() => {
                self.out.push_str("<p class=\"fence\">");
                info.trim().render_to(&mut self.out);
                self.out.push_str("</p>");
            }
            CodeBlockKind::Fenced(_) | CodeBlockKind::Indented => {}
        }
        self.open("<pre>", "</pre>\n");
    }

    /// Writes a heading one level lower than it says, as the page has the first, and at most one level
    /// lower than the one before, as a document without gaps can be navigated.
    fn end_heading(&mut self, level: HeadingLevel) {
        let Some(before) = self.before_heading.take() else { return };
        let content = std::mem::replace(&mut self.out, before);
        let wanted = u8::try_from(level as usize).unwrap_or(u8::MAX).saturating_add(1);
        let level = wanted.min(self.heading_level + 1).min(6);
        self.heading_level = level;
        let id = self.heading_id();
        self.out.push_str(&format!("<h{level} id=\"{id}\">{content}</h{level}>\n"));
    }

    /// Returns an id that no element of ours has and no other heading.
    fn heading_id(&mut self) -> String {
        let slug = fragment(&self.heading_text);
        let count = self.heading_ids.entry(slug.clone()).or_default();
        *count += 1;
        // An underscore is in no slug, so `a` for the second time is not `a-2`.
        if *count == 1 { slug } else { format!("{slug}_{count}") }
    }

    fn cell(&mut self) {
        let alignment = self.columns.get(self.column).copied().unwrap_or(Alignment::None);
        self.column += 1;
        let class = match alignment {
            Alignment::None | Alignment::Left => "",
            Alignment::Center => " class=\"center\"",
            Alignment::Right => " class=\"number\"",
        };
        if self.is_in_table_head {
            self.open(&format!("<th scope=\"col\"{class}>"), "</th>");
        } else {
            self.open(&format!("<td{class}>"), "</td>");
        }
    }

    /// Shows what a row has after its last column: renderers drop it, and a model reads it.
    fn excess(&mut self, text: &str) {
        let text = text.trim_matches(|it: char| it == '|' || it.is_whitespace());
        if !text.is_empty() {
            self.with_class("td", "raw-html", text);
        }
    }

    /// Returns the number of a footnote.
    fn footnote(&mut self, label: &str) -> usize {
        let next = self.footnotes.len() + 1;
        *self.footnotes.entry(label.to_lowercase()).or_insert(next)
    }

    fn footnote_reference(&mut self, label: &str) {
        let number = self.footnote(label);
        // A link inside of a link would end the outer one.
        let markup = if self.links.is_empty() {
            let page = self.place.page;
            format!("<sup><a href=\"{page}#note-footnote-{number}\">{number}</a></sup>")
        } else {
            format!("<sup>{number}</sup>")
        };
        self.void(&markup);
    }

    fn footnote_definition(&mut self, label: &str) {
        let number = self.footnote(label);
        let id = if self.defined_footnotes.insert(number) {
            format!(" id=\"note-footnote-{number}\"")
        } else {
            String::new()
        };
        let markup = format!("<div class=\"footnote\"{id}><sup>{number}</sup>");
        self.nest(&markup, "</div>\n");
    }

    /// Notes that a definition is used.
    fn use_label(&mut self, link_type: LinkType, label: &str) {
        match link_type {
            LinkType::Reference | LinkType::Collapsed | LinkType::Shortcut => {
                self.used_labels.insert(label.to_lowercase());
            }
            LinkType::Inline
            | LinkType::ReferenceUnknown
            | LinkType::CollapsedUnknown
            | LinkType::ShortcutUnknown
            | LinkType::Autolink
            | LinkType::Email
            | LinkType::WikiLink { .. } => {}
        }
    }

    fn open_link(&mut self, mut link: OpenLink) {
        // Neither may be inside of another: what is inside is the text of the outer one.
        link.is_shown = self.links.is_empty();
        link.depth = self.closers.len();
        if link.is_shown && !link.is_image {
            self.out.push_str(&link.start(self.place));
        }
        self.links.push(link);
    }

    fn close_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        if link.is_image {
            let name = link.image();
            self.text(&name);
            return;
        }
        if let Some(outer) = self.links.last_mut() {
            outer.add_text(&link.text);
        }
        if link.is_shown {
            self.misleading_links_count += usize::from(link.is_misleading());
            self.out.push_str(&link.end());
        }
    }
}

/// Returns whether raw HTML is a comment, which [`visible`](crate::visible) counts.
fn is_comment(html: &str) -> bool {
    html.trim_start().starts_with("<!--")
}

/// Returns the part of an id that stands for a heading. It begins with what no id of ours does.
fn fragment(heading: &str) -> String {
    let mut id = String::from("note-");
    for character in heading.chars().take(HEADING_ID_CHARS_MAX) {
        if character.is_alphanumeric() {
            id.extend(character.to_lowercase());
        } else if !id.ends_with('-') {
            id.push('-');
        }
    }
    id
}
