//! Links: `[[wiki links]]` and markdown links to memories.

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::percent_decode_str;

use super::LinkTarget;

/// File extensions that make the target of a markdown link a memory.
const MEMORY_EXTENSIONS: [&str; 3] = ["md", "markdown", "txt"];

/// File extensions of attachments, which vaults hold beside their notes.
const ATTACHMENT_EXTENSIONS: [&str; 45] = [
    "avif", "bmp", "gif", "heic", "ico", "jpeg", "jpg", "png", "svg", "tif", "tiff",
    "webp", //
    "3gp", "aac", "aif", "flac", "m4a", "mp3", "oga", "ogg", "opus", "wav", //
    "avi", "m4v", "mkv", "mov", "mp4", "ogv", "webm", //
    "csv", "doc", "docx", "epub", "key", "odp", "ods", "odt", "pdf", "ppt", "pptx", "xls", "xlsx",
    "zip", //
    "base", "canvas",
];

/// A wiki link in a text.
#[derive(Debug)]
pub(super) struct WikiLink {
    /// The range, brackets and the `!` of an embed included.
    pub(super) range: Range<usize>,
    /// What it points to.
    pub(super) target: LinkTarget,
    /// Whether it is an embed.
    pub(super) is_embed: bool,
}

/// Returns the wiki links outside of code, in order. A link cannot span lines.
pub(super) fn wiki_links(text: &str, code: &[Range<usize>]) -> Vec<WikiLink> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut code = code.iter().peekable();
    let mut open = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if let Some(inside) = code.next_if(|range| range.start <= at) {
            (at, open) = (at.max(inside.end), None);
            continue;
        }
        let next = bytes.get(at + 1);
        match (byte, next, open) {
            (b'\\', Some(escaped), _) if escaped.is_ascii_punctuation() => at += 1,
            (b'\n', ..) => open = None,
            (b'[', Some(b'['), _) => open = Some(at),
            (b']', Some(b']'), Some(start)) => {
                let inside = text.get(start + 2..at).unwrap_or_default();
                found.extend(wiki_link(text, start..at + 2, inside));
                open = None;
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn wiki_link(text: &str, range: Range<usize>, inside: &str) -> Option<WikiLink> {
    let target = LinkTarget::parse(inside)?;
    let before = text.get(..range.start).unwrap_or_default();
    let is_embed = before.ends_with('!') && !before.ends_with("\\!");
    let start = if is_embed { range.start - 1 } else { range.start };
    Some(WikiLink { range: start..range.end, target, is_embed })
}

impl LinkTarget {
    /// Parses the inside of a wiki link; `None` if it has no name, as in `[[#Section]]`.
    pub fn parse(inside: &str) -> Option<Self> {
        // Inside of tables, the bar must be escaped.
        let (place, alias) = match inside.split_once('|') {
            Some((place, alias)) => (place.strip_suffix('\\').unwrap_or(place), alias),
            None => (inside, ""),
        };
        let place = place.trim();
        if place.is_empty() || place.starts_with('#') {
            return None;
        }
        // `#` and `::` with spaces around belong to the name (`C # tips`). If nothing has that
        // name, `Identifier::readings` splits there after all.
        let (name, section) = match split_around(place, "#") {
            Some((name, "#", section)) => (name, section),
            Some(_) | None => (place, ""),
        };
        let (store, name) = match store_and_name(name) {
            Some((store, "::", name)) => (store, name),
            Some(_) | None => ("", name),
        };
        Some(Self {
            store: non_empty(store),
            name: name.to_owned(),
            section: non_empty(section),
            alias: non_empty(alias),
        })
    }

    /// Returns whether the name has the extension of an attachment: an image, a recording, a
    /// document or the like.
    pub fn is_attachment(&self) -> bool {
        let Some((stem, extension)) = self.name.rsplit_once('.') else { return false };
        !stem.is_empty()
            && ATTACHMENT_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
    }

    /// Parses the destination of a markdown link; `None` if it is not a memory.
    pub(super) fn of_markdown(destination: &str) -> Option<Self> {
        if destination.starts_with("memory://") {
            let name = destination.to_owned();
            return Some(Self { store: None, name, section: None, alias: None });
        }
        if destination.starts_with("//") || has_scheme(destination) {
            return None;
        }
        let (place, section) = destination.split_once('#').unwrap_or((destination, ""));
        let place = percent_decoded(place.split('?').next().unwrap_or_default());
        let section = non_empty(&percent_decoded(section));
        has_memory_extension(&place).then_some(Self {
            store: None,
            name: place,
            section,
            alias: None,
        })
    }
}

/// Splits a text at a separator into what precedes it, the separator with surrounding spaces, and
/// what follows; `None` if one side is empty, as in `C#`.
pub(crate) fn split_around<'a>(
    text: &'a str,
    separator: &str,
) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, behind) = text.split_once(separator)?;
    let (before, behind) = (before.trim_end(), behind.trim_start());
    let separator = text.get(before.len()..text.len() - behind.len())?;
    (!before.is_empty() && !behind.is_empty()).then_some((before, separator, behind))
}

/// Splits `store::name` like [`split_around`]. A `::` after a `#` belongs to the section.
pub(crate) fn store_and_name(text: &str) -> Option<(&str, &str, &str)> {
    split_around(text, "::").filter(|(store, ..)| !store.contains('#'))
}

/// Returns whether a name has the file extension of a memory.
pub(crate) fn has_memory_extension(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    MEMORY_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn non_empty(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns whether a destination begins with a URL scheme.
fn has_scheme(destination: &str) -> bool {
    let end = destination.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    end.is_some_and(|end| end > 0 && destination.get(end..).is_some_and(|it| it.starts_with(':')))
}

/// Decodes `%20` and the like; returns the text unchanged if the result would not be UTF-8.
pub(crate) fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}
