//! Links: `[[wiki links]]` and markdown links to memories.

use std::ops::Range;

use super::Target;

/// The endings of files that are memories when a markdown link points to them.
const MEMORY_EXTENSIONS: [&str; 3] = ["md", "markdown", "txt"];

/// The endings of files that vaults hold beside their notes.
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
    /// Its place, brackets and the `!` of an embed included.
    pub(super) range: Range<usize>,
    /// What it points to.
    pub(super) target: Target,
    /// Whether it is an embed.
    pub(super) is_embed: bool,
}

/// Returns the wiki links of a text outside of code, in their order. A link stays on one line.
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
    let target = Target::parse(inside)?;
    let before = text.get(..range.start).unwrap_or_default();
    let is_embed = before.ends_with('!') && !before.ends_with("\\!");
    let start = if is_embed { range.start - 1 } else { range.start };
    Some(WikiLink { range: start..range.end, target, is_embed })
}

impl Target {
    /// Reads what stands between the brackets of a wiki link; `None` if it points to nothing.
    pub fn parse(inside: &str) -> Option<Self> {
        // In a table the bar is escaped.
        let (place, alias) = match inside.split_once('|') {
            Some((place, alias)) => (place.strip_suffix('\\').unwrap_or(place), alias),
            None => (inside, ""),
        };
        let place = place.trim();
        if place.is_empty() || place.starts_with('#') {
            return None;
        }
        // A sign with spaces beside it belongs to the name, at least until that means nothing.
        let (name, section) = match around(place, "#") {
            Some((name, "#", section)) => (name, section),
            Some(_) | None => (place, ""),
        };
        let (store, name) = match store_and_name(name) {
            Some((store, "::", name)) => (store, name),
            Some(_) | None => ("", name),
        };
        Some(Self {
            store: kept(store),
            name: name.to_owned(),
            section: kept(section),
            alias: kept(alias),
        })
    }

    /// Tells whether it is called like an image, a recording, a document or another file that lies
    /// beside notes and is none.
    pub fn is_attachment(&self) -> bool {
        let Some((stem, extension)) = self.name.rsplit_once('.') else { return false };
        !stem.is_empty()
            && ATTACHMENT_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
    }

    /// Reads where a markdown link points; `None` if that is not a memory.
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
        let section = kept(&percent_decoded(section));
        has_memory_extension(&place).then_some(Self {
            store: None,
            name: place,
            section,
            alias: None,
        })
    }
}

/// Splits a text into what stands before a sign, the sign with the spaces beside it, and what stands
/// behind; `None` if something is missing, as in `C#`.
pub(super) fn around<'a>(text: &'a str, sign: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, behind) = text.split_once(sign)?;
    let (before, behind) = (before.trim_end(), behind.trim_start());
    let sign = text.get(before.len()..text.len() - behind.len())?;
    (!before.is_empty() && !behind.is_empty()).then_some((before, sign, behind))
}

/// Splits `store::name` like [`around`]; a store comes before every section.
pub(super) fn store_and_name(text: &str) -> Option<(&str, &str, &str)> {
    around(text, "::").filter(|(store, ..)| !store.contains('#'))
}

/// Tells whether a name ends like the file of a memory.
pub(super) fn has_memory_extension(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    MEMORY_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn kept(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Tells whether a link begins with the name of a protocol.
fn has_scheme(destination: &str) -> bool {
    let end = destination.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    end.is_some_and(|end| end > 0 && destination.get(end..).is_some_and(|it| it.starts_with(':')))
}

/// Replaces `%20` and the like; a text that would not be UTF-8 stays as it is.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let digits = after.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let code = digits
            .filter(|it| *first == b'%' && it.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
