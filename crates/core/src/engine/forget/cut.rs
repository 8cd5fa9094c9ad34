//! Takes a match out of texts, paths and short fields.

use std::collections::BTreeMap;

use crate::model::{
    Attachment, Content, Description, HeadChange, Instructions, MemoryId, MemoryPath, Metadata,
    Name, Reason, Receipt, Session, Store, Version, slug,
};
use crate::settings::Limits;

use super::{Pattern, Selection, written};

/// What stands in place of a match; the next one is tried if the result would match again, as when the
/// word `redacted` is redacted.
const MARKS: [&str; 4] = ["[redacted]", "…", "*", ""];

/// What stands in place of a match in a path.
const PATH_MARKS: [&str; 2] = ["redacted", "x"];

/// How many paths are tried until one is free.
const NUMBERED_MAX: u32 = 100;

/// How long the title of a session may be, the value of a label, and so on.
const TITLE_CHARS_MAX: usize = super::super::SESSION_TITLE_CHARS_MAX;
const VALUE_CHARS_MAX: usize = 512;
const KEY_CHARS_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 255;
const DESCRIPTION_CHARS_MAX: usize = 1024;
const INSTRUCTIONS_CHARS_MAX: usize = 4096;
const REASON_CHARS_MAX: usize = 500;

/// Returns what takes a match out of a live memory, whose newest version this is.
pub(super) fn head_change(
    selection: &Selection<'_>,
    version: &Version,
    limits: &Limits,
) -> HeadChange {
    let Some(pattern) = &selection.pattern else { return HeadChange::Deleted };
    let (Some(content), Some(path)) = (&version.content, &version.path) else {
        return HeadChange::Deleted;
    };
    let text = content.as_str();
    let is_moved = pattern.matches(path.as_str());
    let is_edited = pattern.matches(text);
    let can_be_moved = !is_moved || !paths(pattern, path, version.memory).is_empty();
    let can_be_edited = !is_edited || self::text(pattern, content, limits).is_some();
    match (is_edited, is_moved) {
        _ if !can_be_moved || !can_be_edited => HeadChange::Deleted,
        (true, true) => HeadChange::EditedAndMoved,
        (true, false) => HeadChange::Edited,
        (false, true) => HeadChange::Moved,
        (false, false) => HeadChange::Rewritten,
    }
}

/// Returns a text without matches that keeps its lines, so that front matter, lists and tables keep
/// theirs; `None` if every replacement would match again or be too long.
pub(super) fn text(pattern: &Pattern<'_>, content: &Content, limits: &Limits) -> Option<Content> {
    let text = content.as_str();
    let size_max = usize::try_from(limits.content_size_bytes_max).unwrap_or(usize::MAX);
    let cut = MARKS.iter().map(|mark| replaced(pattern, text, &['\n', '\r'], mark));
    let fits = |cut: &String| cut.len() <= size_max.max(text.len()) && !pattern.matches(cut);
    cut.into_iter().find(fits).and_then(|cut| Content::new(cut).ok())
}

/// Returns paths without matches that a memory can be moved to, the best first. They may be occupied.
pub(super) fn paths(pattern: &Pattern<'_>, path: &MemoryPath, memory: MemoryId) -> Vec<MemoryPath> {
    let cut: Vec<_> =
        PATH_MARKS.iter().map(|mark| replaced(pattern, path.as_str(), &['/'], mark)).collect();
    let numbered = cut.iter().flat_map(|cut| {
        (1..=NUMBERED_MAX).map(move |number| match number {
            1 => cut.clone(),
            number => with_number(cut, number),
        })
    });
    let candidates = numbered.chain([format!("/{memory}")]);
    let parsed = candidates.filter_map(|candidate| MemoryPath::parse(&candidate).ok());
    parsed.filter(|path| !pattern.matches(path.as_str())).collect()
}

/// Puts a number before the extension of a path.
fn with_number(path: &str, number: u32) -> String {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    match file.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => {
            format!("{directory}/{stem}-{number}.{extension}")
        }
        Some(_) | None => format!("{directory}/{file}-{number}"),
    }
}

/// Returns a short text without matches and with at most so many characters; empty if nothing else helps.
pub(super) fn short(pattern: &Pattern<'_>, text: &str, chars_max: usize) -> String {
    if !pattern.matches(text) {
        return text.to_owned();
    }
    let shortened = |mark: &&str| {
        let cut = replaced(pattern, text, &['\n'], mark);
        cut.chars().take(chars_max).collect::<String>()
    };
    MARKS.iter().map(shortened).find(|cut| !pattern.matches(cut)).unwrap_or_default()
}

/// Returns an opaque body without matches, also if they are written with escapes; empty if nothing else
/// helps.
pub(super) fn body(pattern: &Pattern<'_>, text: &str) -> String {
    if !written::matches(pattern, text) {
        return text.to_owned();
    }
    let cut = short(pattern, text, usize::MAX);
    if written::matches(pattern, &cut) { String::new() } else { cut }
}

/// Replaces each match. Its characters in `kept` stay: lines of a text, segments of a path.
fn replaced(pattern: &Pattern<'_>, text: &str, kept: &[char], mark: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut kept_until = 0;
    for range in pattern.find(text) {
        result.push_str(text.get(kept_until..range.start).unwrap_or_default());
        for part in text.get(range.clone()).unwrap_or_default().split_inclusive(kept) {
            let inside = part.trim_end_matches(kept);
            result.push_str(if inside.is_empty() { "" } else { mark });
            result.push_str(part.get(inside.len()..).unwrap_or_default());
        }
        kept_until = range.end;
    }
    result.push_str(text.get(kept_until..).unwrap_or_default());
    result
}

/// Returns a session without matches, and the fields that had some.
pub(super) fn session(pattern: &Pattern<'_>, before: &Session) -> (Session, Vec<&'static str>) {
    let mut after = before.clone();
    after.title = short(pattern, &before.title, TITLE_CHARS_MAX);
    after.metadata = metadata(pattern, &before.metadata);
    after.details = body(pattern, &before.details);
    for (position, attachment) in after.attachments.iter_mut().enumerate() {
        cut_attachment(pattern, attachment, position);
    }
    let holds_match = |it: &Attachment| {
        [it.name.as_str(), it.description.as_str(), it.instructions.as_str(), &it.slug]
            .iter()
            .any(|text| pattern.matches(text))
    };
    let fields = [
        ("title", pattern.matches(&before.title)),
        ("metadata", has_match(pattern, &before.metadata)),
        ("details", written::matches(pattern, &before.details)),
        ("stores", before.attachments.iter().any(holds_match)),
    ];
    (after, fields.into_iter().filter(|(_, matches)| *matches).map(|(field, _)| field).collect())
}

fn cut_attachment(pattern: &Pattern<'_>, attachment: &mut Attachment, position: usize) {
    if let Ok(name) = Name::new(short(pattern, attachment.name.as_str(), NAME_CHARS_MAX)) {
        attachment.name = name;
    }
    let description = short(pattern, attachment.description.as_str(), DESCRIPTION_CHARS_MAX);
    attachment.description = Description::new(description).unwrap_or_default();
    let instructions = short(pattern, attachment.instructions.as_str(), INSTRUCTIONS_CHARS_MAX);
    attachment.instructions = Instructions::new(instructions).unwrap_or_default();
    if pattern.matches(&attachment.slug) {
        // The position keeps it unique among the directories of a mount.
        attachment.slug = format!("{}-{position}", slug(&attachment.name));
    }
}

/// Returns an earlier receipt without matches in what people have written into it, or in names of files.
pub(super) fn receipt(pattern: &Pattern<'_>, before: &Receipt) -> Receipt {
    let all = |sentences: &[String]| {
        sentences.iter().map(|it| short(pattern, it, usize::MAX)).collect::<Vec<_>>()
    };
    let reason = before.reason.as_ref().map(|it| short(pattern, it.as_str(), REASON_CHARS_MAX));
    Receipt {
        reason: reason.and_then(|reason| Reason::new(reason).ok()),
        remarks: all(&before.remarks),
        unreachable: all(&before.unreachable),
        ..before.clone()
    }
}

/// Returns a store without matches in its description and its labels, and the fields that had some.
pub(super) fn store(pattern: &Pattern<'_>, before: &Store) -> (Store, Vec<&'static str>) {
    let description = short(pattern, before.description.as_str(), DESCRIPTION_CHARS_MAX);
    let after = Store {
        description: Description::new(description).unwrap_or_default(),
        metadata: metadata(pattern, &before.metadata),
        ..before.clone()
    };
    let fields = [
        ("description", pattern.matches(before.description.as_str())),
        ("metadata", has_match(pattern, &before.metadata)),
    ];
    (after, fields.into_iter().filter(|(_, matches)| *matches).map(|(field, _)| field).collect())
}

fn has_match(pattern: &Pattern<'_>, metadata: &Metadata) -> bool {
    metadata.pairs().iter().any(|(key, value)| pattern.matches(key) || pattern.matches(value))
}

/// Returns labels without matches. A label whose key cannot be kept is left out.
pub(super) fn metadata(pattern: &Pattern<'_>, before: &Metadata) -> Metadata {
    let mut pairs = BTreeMap::new();
    for (key, value) in before.pairs() {
        let key = short(pattern, key, KEY_CHARS_MAX);
        if !key.is_empty() {
            pairs.entry(key).or_insert_with(|| short(pattern, value, VALUE_CHARS_MAX));
        }
    }
    Metadata::new(pairs).unwrap_or_default()
}
