//! Where the links of a note may lead.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use pulldown_cmark::LinkType;

use crate::form::address;
use crate::visible;

use super::{Place, fragment};

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To another site: the address, and its host.
    Web {
        /// The address, in ASCII.
        url: String,
        /// The host that the browser would go to.
        host: String,
    },
    /// To a note, by a name that [`Knowledge::resolve`](quipu_knowledge::Knowledge::resolve) knows.
    Note(String),
    /// To a section of the same note.
    Section(String),
    /// Nowhere: the link is shown as text.
    Nowhere,
}

/// What is not part of an address as it is. Quotes and angle brackets could not do harm, as the
/// attribute is escaped; encoded they are also not mistaken for the end by a reader.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'\\');

impl Destination {
    /// Parses the target of a link.
    pub(super) fn new(link_type: LinkType, target: &str) -> Self {
        if matches!(link_type, LinkType::WikiLink { .. }) {
            return Self::Note(target.to_owned());
        }
        if link_type == LinkType::Email {
            return Self::Nowhere;
        }
        // Browsers ignore blanks and controls around an address, and some of them inside of it. Seen
        // without them, no scheme can hide.
        let bare: String = target.chars().filter(|it| !is_ignored(*it)).collect();
        if let Some(url) = web_address(&bare) {
            return url;
        }
        let end = bare.find([':', '/', '\\', '?', '#']).unwrap_or(bare.len());
        let (start, rest) = bare.split_at_checked(end).unwrap_or((&bare, ""));
        if rest.starts_with(':') {
            let is_note = start.eq_ignore_ascii_case("memory") && rest.starts_with("://");
            return if is_note { Self::Note(bare) } else { Self::Nowhere };
        }
        if start.is_empty() && rest.starts_with('#') {
            return Self::Section(rest.trim_start_matches('#').to_owned());
        }
        // `//host` is another site, under whatever scheme.
        let is_host = start.is_empty() && rest.chars().take(2).all(|it| it == '/' || it == '\\');
        if bare.is_empty() || (is_host && rest.len() > 1) {
            return Self::Nowhere;
        }
        // The place in the note is not part of its name.
        let name = target.split(['#', '?']).next().unwrap_or_default();
        let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
        if name.trim().is_empty() { Self::Nowhere } else { Self::Note(name) }
    }
}

/// Returns whether a browser might ignore a character where a scheme is expected.
fn is_ignored(character: char) -> bool {
    character.is_control() || character.is_whitespace() || visible::is_ignorable(character)
}

/// Returns an address of the web.
fn web_address(bare: &str) -> Option<Destination> {
    let (scheme, rest) = bare.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let host = host(rest);
    if host.is_empty() {
        return Some(Destination::Nowhere);
    }
    let scheme = scheme.to_ascii_lowercase();
    let url = format!("{scheme}://{}", utf8_percent_encode(rest, ESCAPED));
    Some(Destination::Web { url, host })
}

/// Returns the host of what follows `://`, as browsers find it: after the last `@`, and a backslash ends
/// it too.
fn host(rest: &str) -> String {
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_lowercase()
}

/// A link or an image whose end has not been read.
#[derive(Debug)]
pub(super) struct OpenLink {
    destination: Destination,
    /// What is written in the note.
    target: String,
    title: String,
    /// The text so far.
    pub(super) text: String,
    /// Whether it is an image.
    pub(super) is_image: bool,
    /// Whether it is an element of its own.
    pub(super) is_shown: bool,
    /// How many elements are open around it.
    pub(super) depth: usize,
}

/// How much of a link's text is looked at, and how much of an image's description is shown.
const TEXT_SIZE_BYTES_MAX: usize = 1_000;

impl OpenLink {
    pub(super) fn new(link_type: LinkType, target: &str, title: &str) -> Self {
        Self {
            destination: Destination::new(link_type, target),
            target: target.to_owned(),
            title: title.to_owned(),
            text: String::new(),
            is_image: false,
            is_shown: true,
            depth: 0,
        }
    }

    /// Adds to the text.
    pub(super) fn add_text(&mut self, text: &str) {
        if self.text.len() < TEXT_SIZE_BYTES_MAX {
            self.text.extend(text.chars().take(TEXT_SIZE_BYTES_MAX));
        }
    }

    /// Returns the markup before the text.
    pub(super) fn start(&self, place: Place<'_>) -> String {
        match &self.destination {
            Destination::Web { url, .. } => opened(&html! {
                a.leaves href=(url) rel="noopener noreferrer nofollow" {}
            }),
            Destination::Note(name) => {
                let to = address(place.resolver, &[("to", name.as_str()), ("from", place.memory)]);
                opened(&html! { a href=(to) {} })
            }
            Destination::Section(section) => {
                let section = percent_decode_str(section).decode_utf8_lossy();
                let to = format!("{}#{}", place.page, fragment(&section));
                opened(&html! { a href=(to) {} })
            }
            Destination::Nowhere => String::from("<span class=\"dead-link\">"),
        }
    }

    /// Returns the markup behind the text: where the link leads if it leaves this site, and its title,
    /// which a model reads too.
    pub(super) fn end(&self) -> String {
        let title = html! {
            @if !self.title.is_empty() { " " small { "“" (visible::short(&self.title)) "”" } }
        };
        let markup = match &self.destination {
            Destination::Web { host, .. } => html! {
                @if self.text.trim() != self.target { " " small.host { (visible::short(host)) } }
                span.leaves-mark role="img" aria-label=" (another site)" { "↗" }
                @if self.is_misleading() { " " span.badge.warning { "not what it says" } }
                (title)
            },
            Destination::Note(_) | Destination::Section(_) => title,
            Destination::Nowhere => html! {
                @if self.text.trim() != self.target { " (" code { (visible::short(&self.target)) } ")" }
                (title)
            },
        };
        let closer = match &self.destination {
            Destination::Nowhere => "</span>",
            Destination::Web { .. } | Destination::Note(_) | Destination::Section(_) => "</a>",
        };
        markup.into_string() + closer
    }

    /// Returns the words that stand for an image.
    pub(super) fn image(&self) -> String {
        let title =
            if self.title.is_empty() { String::new() } else { format!(" “{}”", self.title) };
        format!("[image: {} ({}){title}]", self.text.trim(), self.target)
    }

    /// Returns whether the text names another host than the one that the link leads to.
    pub(super) fn is_misleading(&self) -> bool {
        let Destination::Web { host, .. } = &self.destination else { return false };
        let claimed = claimed_host(self.text.trim());
        claimed.is_some_and(|claimed| without_www(&claimed) != without_www(host))
    }
}

/// Returns the start tag of an element that was rendered without content.
fn opened(element: &Markup) -> String {
    let text = element.0.strip_suffix("</a>").unwrap_or(&element.0);
    text.to_owned()
}

/// Returns the host that a text looks like, if it looks like an address.
fn claimed_host(text: &str) -> Option<String> {
    let has_scheme = text.contains("://");
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    if rest.contains(char::is_whitespace) {
        return None;
    }
    let host = host(rest);
    let (_, top) = host.rsplit_once('.')?;
    let top = top.split(':').next().unwrap_or_default();
    // `README.md` and `1.5` are no hosts. Of what has no scheme, only the most frequent endings count.
    let is_known =
        ["com", "org", "net", "io", "dev", "ai", "gov", "edu", "app", "co"].contains(&top);
    (has_scheme || is_known).then_some(host)
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}
