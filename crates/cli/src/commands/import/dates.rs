//! Dates of files, kept as dates of notes.
//!
//! A version carries the moment of its write and cannot be backdated: moments are unique and never
//! go back. So the only place for the date of an imported file is the text itself, as `created` and
//! `modified` in the frontmatter, where searches can filter by it. An import does this only on
//! request: texts are imported byte for byte otherwise, and a folder that is synced later would
//! differ from the store in every note.

use std::fs::Metadata;
use std::path::Path;

use jiff::Timestamp;
use quipu_core::model::Content;
use quipu_notes::{Note, Value, edit};

/// The extensions of files in which frontmatter is usual.
const MARKDOWN_EXTENSIONS: [&str; 3] = ["md", "markdown", "mdx"];

/// The fields in which people and their plugins keep dates. A note with one of them is left as is,
/// whatever format the value has.
const DATE_FIELDS: [&str; 16] = [
    "created",
    "created_at",
    "created-at",
    "creation date",
    "ctime",
    "date",
    "date created",
    "date modified",
    "last modified",
    "last_modified",
    "modified",
    "modified_at",
    "mtime",
    "updated",
    "updated_at",
    "updated-at",
];

/// Whether an import adds the dates of files to notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileDates {
    Ignored,
    Added,
}

/// When a file was created and last modified, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dates {
    created: Timestamp,
    modified: Timestamp,
}

impl Dates {
    /// Returns the dates of a markdown file; `None` for other files.
    pub(super) fn of_file(file: &Path, metadata: &Metadata) -> Option<Self> {
        let extension = file.extension()?;
        if !MARKDOWN_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)) {
            return None;
        }
        let modified = whole_seconds(Timestamp::try_from(metadata.modified().ok()?).ok()?)?;
        // Copying a vault keeps the time of modification at best, so a file that was created after
        // it was modified is a copy, and the earlier time is nearer to the truth.
        let born = metadata.created().ok().and_then(|at| Timestamp::try_from(at).ok());
        let created = born.and_then(whole_seconds).map_or(modified, |born| born.min(modified));
        Some(Self { created, modified })
    }

    /// Returns the dates in the frontmatter of a note, if it has both.
    pub(super) fn of_note(text: &Content) -> Option<Self> {
        let note = Note::parse_header(text.as_str());
        Some(Self { created: note.created?, modified: note.modified? })
    }

    /// Returns these dates, with an earlier creation if `other` has one: editors that save by
    /// renaming make a new file each time.
    #[must_use]
    pub(super) fn created_with(self, other: Self) -> Self {
        Self { created: self.created.min(other.created), ..self }
    }

    /// Returns the text with these dates in its frontmatter.
    ///
    /// Returns `None` if the frontmatter has a date already, if it is not valid YAML, or if the text
    /// would exceed `size_max` bytes: a note without its date is better than no note.
    pub(super) fn added_to(self, text: &Content, size_max: u64) -> Option<Content> {
        let note = Note::parse_header(text.as_str());
        let is_date = |key: &str| DATE_FIELDS.iter().any(|known| key.eq_ignore_ascii_case(known));
        let has_date = note.created.is_some()
            || note.modified.is_some()
            || note.metadata.iter().any(|(key, _)| is_date(key));
        if has_date {
            return None;
        }
        let dates = [("created", self.created), ("modified", self.modified)];
        let fields = dates.map(|(key, at)| (key.to_owned(), Some(Value::Text(at.to_string()))));
        let dated = Content::new(edit::set_metadata(text.as_str(), &fields).ok()?).ok()?;
        (dated.size_bytes() <= size_max).then_some(dated)
    }
}

/// Drops fractions of a second, which nobody wants to read in a note.
fn whole_seconds(at: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(created: &str, modified: &str) -> Dates {
        Dates { created: created.parse().unwrap(), modified: modified.parse().unwrap() }
    }

    fn dated(text: &str) -> Option<String> {
        let dates = dates("2019-05-06T07:08:09Z", "2020-01-02T03:04:05Z");
        let dated = dates.added_to(&Content::new(text).unwrap(), 200)?;
        assert_eq!(Dates::of_note(&dated), Some(dates));
        Some(dated.as_str().to_owned())
    }

    #[test]
    fn dates_are_added_to_notes_without_any() {
        let lines = "created: \"2019-05-06T07:08:09Z\"\nmodified: \"2020-01-02T03:04:05Z\"\n";
        assert_eq!(dated("# Tea\n").unwrap(), format!("---\n{lines}---\n# Tea\n"));
        let tagged = dated("---\ntags: [a]\n---\nTea\n").unwrap();
        assert_eq!(tagged, format!("---\ntags: [a]\n{lines}---\nTea\n"));
        let windows = dated("---\r\ntags: [a]\r\n---\r\nTea\r\n").unwrap();
        assert_eq!(windows, tagged.replace('\n', "\r\n"));
    }

    #[test]
    fn dates_of_the_frontmatter_win() {
        for field in ["created: 2001-01-01", "modified: yesterday", "Date: 2001", "date created: x"]
        {
            assert_eq!(dated(&format!("---\n{field}\n---\nTea\n")), None, "{field}");
        }
        assert!(dated("---\ndue date: 2001-01-01\n---\nTea\n").is_some());
    }

    #[test]
    fn a_text_that_cannot_take_dates_stays_as_it_is() {
        assert_eq!(dated("---\n: [\n---\nTea\n"), None);
        assert_eq!(dated(&"x".repeat(190)), None);
    }

    #[test]
    fn the_earlier_creation_counts() {
        let (old, new) =
            (dates("2001-01-01T00:00:00Z", "2002-01-01T00:00:00Z"), "2003-01-01T00:00:00Z");
        let saved = dates(new, new);
        assert_eq!(saved.created_with(old), dates("2001-01-01T00:00:00Z", new));
        assert_eq!(old.created_with(saved), old);
    }
}
