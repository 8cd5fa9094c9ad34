//! Passages: the part of a text around a place, by lines and headings.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::note::lines::with_offsets;
use crate::outline::{LineKind, Outline};

/// A part of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The headings that it is below, from the top, as written.
    pub headings: Vec<String>,
    /// Its first line in the whole text, 1-based.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
}

impl Passage {
    /// Returns the paragraphs that a range of bytes is in; `None` if they are all of the body.
    ///
    /// `body` is the part of the text without the frontmatter, whose lines count but are no part of
    /// any passage. Paragraphs are separated by empty lines and headings.
    pub fn around(text: &str, body: Range<usize>, place: &Range<usize>) -> Option<Self> {
        let before = text.get(..body.start).unwrap_or_default();
        let mut reading = Reading::default();
        let mut has_more = false;
        let first_number = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let lines = with_offsets(text.get(body.clone()).unwrap_or_default());
        for (number, (offset, line)) in (first_number..).zip(lines) {
            let start = body.start + offset;
            let end = start + line.len();
            let is_text = reading.read(number, line);
            if start < place.end && end > place.start {
                reading.extend(number);
            } else if is_text {
                has_more |= !reading.continues(number);
            }
            if has_more && start > place.end && reading.paragraph.is_none() {
                break;
            }
        }
        let found = reading.found?;
        (has_more || found.skips_text).then_some(found.passage)
    }
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    outline: Outline,
    /// The first line of the current paragraph.
    paragraph: Option<usize>,
    /// Whether there was text before the current paragraph.
    has_text_before: bool,
    found: Option<FoundPassage>,
}

struct FoundPassage {
    passage: Passage,
    skips_text: bool,
    /// Whether the paragraph at its end goes on.
    is_open: bool,
}

impl Reading {
    /// Reads a line, and returns whether it is text: neither empty nor a heading.
    fn read(&mut self, number: usize, line: &str) -> bool {
        if self.outline.read(line) == LineKind::Text {
            self.paragraph.get_or_insert(number);
            return true;
        }
        self.has_text_before |= self.paragraph.take().is_some();
        if let Some(found) = &mut self.found {
            found.is_open = false;
        }
        false
    }

    /// Makes the current line part of the passage.
    fn extend(&mut self, number: usize) {
        let is_open = self.paragraph.is_some();
        let headings = || self.outline.headings().iter().map(|(_, text)| text.clone()).collect();
        let found = self.found.get_or_insert_with(|| FoundPassage {
            passage: Passage {
                headings: headings(),
                first_line: self.paragraph.unwrap_or(number),
                last_line: number,
            },
            skips_text: self.has_text_before,
            is_open,
        });
        found.passage.last_line = number;
        found.is_open = is_open;
    }

    /// Returns whether a line of text continues the paragraph at the end of the passage.
    fn continues(&mut self, number: usize) -> bool {
        match &mut self.found {
            Some(found) if found.is_open => {
                found.passage.last_line = number;
                true
            }
            // A paragraph before the passage may turn out to be a part of it.
            None => true,
            Some(_) => false,
        }
    }
}
