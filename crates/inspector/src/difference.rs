//! The difference of two texts as markup: one below the other, or side by side.
//!
//! Colors only support what signs and elements say: a removed line is a `del` with the sign `−`, an
//! added one an `ins` with `+`, and changed words are marked by lines as well.

use std::ops::Range;

use maud::{Markup, html};
use quipu_core::diff::{Diff, Hunk, Line, word_changes};

use crate::{text, visible};

/// How the two texts are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// Removed lines above the added ones.
    #[default]
    Inline,
    /// The old text on the left, the new one on the right.
    Side,
}

impl Arrangement {
    /// Reads the word of an address.
    pub(crate) fn of(word: Option<&str>) -> Self {
        if word == Some(Self::Side.as_str()) { Self::Side } else { Self::Inline }
    }

    /// Returns its word in an address.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Side => "side",
        }
    }
}

/// How much markup the differences of one page may still take, in bytes.
#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
    /// How much one difference may take, so that a long one leaves room for others.
    each: usize,
}

impl Room {
    /// For a page about one difference.
    pub(crate) fn for_one() -> Self {
        Self { left: 400 * 1024, each: 400 * 1024 }
    }

    /// For a page with many differences.
    pub(crate) fn for_many() -> Self {
        Self { left: 36 * 1024, each: 8 * 1024 }
    }

    /// Returns the hunks that one difference may show; the last one may be cut.
    fn fit<'a>(&mut self, hunks: Vec<Hunk<'a>>) -> Vec<Hunk<'a>> {
        let mut left = self.left.min(self.each);
        let mut take = |line: &Line<'_>| {
            let (Line::Kept(text) | Line::Removed(text) | Line::Added(text)) = line;
            let rest = left.checked_sub(ROW_SIZE_BYTES + text.len())?;
            self.left -= left - rest;
            left = rest;
            Some(())
        };
        let mut shown = Vec::new();
        for hunk in hunks {
            let lines_count = hunk.lines.len();
            let lines: Vec<_> =
                hunk.lines.into_iter().take_while(|line| take(line).is_some()).collect();
            let is_cut = lines.len() < lines_count;
            if !lines.is_empty() {
                shown.push(Hunk { lines, ..hunk });
            }
            if is_cut {
                break;
            }
        }
        shown
    }
}

/// About how many bytes a line takes besides its text.
const ROW_SIZE_BYTES: usize = 140;

/// How many unchanged lines are shown around a change.
const CONTEXT_LINES: usize = 3;

/// Returns a difference as a table, as far as there is room for it.
///
/// `name` says what is compared, for those who cannot see where the table stands.
pub(crate) fn difference(
    diff: &Diff,
    name: &str,
    arrangement: Arrangement,
    room: &mut Room,
) -> Markup {
    if diff.is_empty() {
        return html! { p { "The texts are equal." } };
    }
    let count = |hunks: &[Hunk<'_>]| hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
    let hunks = diff.hunks(CONTEXT_LINES);
    let lines_count = count(&hunks);
    let shown = room.fit(hunks);
    let left_count = lines_count - count(&shown);
    html! {
        @if !shown.is_empty() {
            table.diff.side[arrangement == Arrangement::Side] {
                caption.unseen { (name) }
                (head(arrangement))
                @for hunk in &shown {
                    tbody { @match arrangement {
                        Arrangement::Inline => (inline(hunk)),
                        Arrangement::Side => (side_by_side(hunk)),
                    } }
                }
            }
        }
        @if left_count > 0 {
            p { small {
                (text::count(left_count as u64, "more line is", "more lines are"))
                " not shown here, because the page would become too long."
            } }
        }
    }
}

/// Returns how many lines were added and removed, in signs and words.
pub(crate) fn line_counts(diff: &Diff) -> Markup {
    html! {
        span.counts {
            ins { "+" (diff.added_count()) span.unseen { " lines added" } } " "
            del { "−" (diff.removed_count()) span.unseen { " lines removed" } }
        }
    }
}

/// Returns a text as it is shown everywhere in differences and old versions. This is the only place
/// that decides how single characters look.
pub(crate) fn characters(text: &str) -> Markup {
    visible::short(text)
}

fn head(arrangement: Arrangement) -> Markup {
    let columns: &[&str] = match arrangement {
        Arrangement::Inline => &["Old line", "New line", "Change", "Text"],
        Arrangement::Side => &["Old line", "Old text", "New line", "New text"],
    };
    html! {
        colgroup { @for column in columns { col class=(column_class(column)); } }
        // A hidden head would take the columns out of the table for some screen readers.
        thead { tr { @for column in columns { th scope="col" { span.unseen { (column) } } } } }
    }
}

/// Returns the class by which the style sheet knows how wide a column is.
fn column_class(column: &str) -> &'static str {
    match column.split_once(' ') {
        Some((_, "line")) => "numbers",
        Some(_) => "half",
        None if column == "Change" => "signs",
        None => "texts",
    }
}

/// Consecutive lines of a hunk that belong together.
enum Block<'a> {
    Kept(&'a str),
    Changed { removed: Vec<&'a str>, added: Vec<&'a str> },
}

fn blocks<'a>(hunk: &Hunk<'a>) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    for line in &hunk.lines {
        match (line, blocks.last_mut()) {
            (Line::Kept(text), _) => blocks.push(Block::Kept(text)),
            (Line::Removed(text), Some(Block::Changed { removed, added })) if added.is_empty() => {
                removed.push(text);
            }
            (Line::Added(text), Some(Block::Changed { added, .. })) => added.push(text),
            (Line::Removed(text), _) => {
                blocks.push(Block::Changed { removed: vec![text], added: Vec::new() });
            }
            (Line::Added(text), _) => {
                blocks.push(Block::Changed { removed: Vec::new(), added: vec![text] });
            }
        }
    }
    blocks
}

/// Counts a line, and returns its number.
fn next(number: &mut usize) -> usize {
    *number += 1;
    *number
}

fn inline(hunk: &Hunk<'_>) -> Markup {
    let (mut old, mut new) = (hunk.old.start, hunk.new.start);
    html! {
        (hunk_row(hunk))
        @for block in blocks(hunk) {
            @match block {
                Block::Kept(line) => {
                    tr {
                        td.n { (next(&mut old)) } td.n { (next(&mut new)) } td {}
                        td.line { (ended(line, &characters(line))) }
                    }
                }
                Block::Changed { removed, added } => {
                    @let (removed_words, added_words) = marks(&removed, &added);
                    @for (line, words) in removed.into_iter().zip(&removed_words) {
                        tr.removed {
                            td.n { (next(&mut old)) } td.n {} td.sign { (REMOVED.sign()) }
                            td.line { del { (ended(line, &marked(line, words))) } }
                        }
                    }
                    @for (line, words) in added.into_iter().zip(&added_words) {
                        tr.added {
                            td.n {} td.n { (next(&mut new)) } td.sign { (ADDED.sign()) }
                            td.line { ins { (ended(line, &marked(line, words))) } }
                        }
                    }
                }
            }
        }
    }
}

fn side_by_side(hunk: &Hunk<'_>) -> Markup {
    let (mut old, mut new) = (hunk.old.start, hunk.new.start);
    html! {
        (hunk_row(hunk))
        @for block in blocks(hunk) {
            @match block {
                Block::Kept(line) => {
                    tr {
                        td.n { (next(&mut old)) } td.line { (ended(line, &characters(line))) }
                        td.n { (next(&mut new)) } td.line { (ended(line, &characters(line))) }
                    }
                }
                Block::Changed { removed, added } => {
                    @let (removed_words, added_words) = marks(&removed, &added);
                    @for row in 0..removed.len().max(added.len()) {
                        tr {
                            @match (removed.get(row), removed_words.get(row)) {
                                (Some(line), Some(words)) => {
                                    td.n { (next(&mut old)) }
                                    td.line.removed {
                                        (REMOVED.sign()) del { (ended(line, &marked(line, words))) }
                                    }
                                }
                                _ => { td.n {} td.line {} }
                            }
                            @match (added.get(row), added_words.get(row)) {
                                (Some(line), Some(words)) => {
                                    td.n { (next(&mut new)) }
                                    td.line.added {
                                        (ADDED.sign()) ins { (ended(line, &marked(line, words))) }
                                    }
                                }
                                _ => { td.n {} td.line {} }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The sign of a line, and the word for those who cannot see it.
struct Sign(&'static str, &'static str);

const REMOVED: Sign = Sign("−", "removed");
const ADDED: Sign = Sign("+", "added");

impl Sign {
    fn sign(&self) -> Markup {
        html! { span.sign { span aria-hidden="true" { (self.0) } span.unseen { (self.1) } } }
    }
}

/// Returns the row that says where a hunk is.
fn hunk_row(hunk: &Hunk<'_>) -> Markup {
    let place = |range: &Range<usize>| match range.len() {
        0 => "nothing".to_owned(),
        1 => format!("line {}", range.start + 1),
        _ => format!("lines {} to {}", range.start + 1, range.end),
    };
    let (old, new) = (place(&hunk.old), place(&hunk.new));
    let words = if old == new { old } else { format!("{old} became {new}") };
    html! { tr.hunk { td colspan="4" { (words) } } }
}

/// Returns a line with a remark if it lacks a line break: it is the last one of its text.
fn ended(line: &str, shown: &Markup) -> Markup {
    html! { (shown) @if !line.ends_with('\n') { small { " (no line break at the end)" } } }
}

/// The parts of each line that are marked.
type Marks = Vec<Vec<Range<usize>>>;

/// Returns which words changed, for each removed and for each added line.
///
/// The lines are compared as a whole and not one by one: a paragraph that was wrapped differently is
/// mostly equal, although no line of it is.
fn marks(removed: &[&str], added: &[&str]) -> (Marks, Marks) {
    let (old, new) = (removed.concat(), added.concat());
    let changes = word_changes(&old, &new);
    let is_whole = matches!(changes.as_slice(), [only] if *only == (0..old.len(), 0..new.len()));
    // If everything changed, the signs of the lines say it all.
    let changes = if is_whole { Vec::new() } else { changes };
    let (old, new): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
    (by_line(removed, &old), by_line(added, &new))
}

/// Splits ranges of consecutive lines into ranges of each line.
fn by_line(lines: &[&str], ranges: &[Range<usize>]) -> Marks {
    let mut start = 0;
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        // The line break cannot be seen, so it is not marked.
        let end = start + line.trim_end_matches('\n').len();
        let inside = ranges.iter().filter(|range| range.start < end && range.end > start);
        let cut = inside.map(|range| range.start.max(start) - start..range.end.min(end) - start);
        found.push(cut.collect());
        start += line.len();
    }
    found
}

/// Returns a line with the given parts marked.
fn marked(line: &str, words: &[Range<usize>]) -> Markup {
    let mut at = 0;
    let mut parts = Vec::new();
    for word in words {
        parts.push((line.get(at..word.start).unwrap_or_default(), false));
        parts.push((line.get(word.clone()).unwrap_or_default(), true));
        at = word.end;
    }
    parts.push((line.get(at..).unwrap_or_default(), false));
    html! {
        @for (part, is_marked) in parts {
            @if is_marked { mark { (characters(part)) } } @else { (characters(part)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str, arrangement: Arrangement) -> String {
        let diff = Diff::new(old, new);
        difference(&diff, "test", arrangement, &mut Room::for_one()).into_string()
    }

    #[test]
    fn lines_have_numbers_signs_and_marked_words() {
        let page = shown("a\ngreen tea\nz\n", "a\ngreen coffee\nz\n", Arrangement::Inline);
        assert!(page.contains("<del>green <mark>tea</mark>\n</del>"), "{page}");
        assert!(page.contains("<ins>green <mark>coffee</mark>\n</ins>"), "{page}");
        assert!(page.contains("<span class=\"unseen\">removed</span>"), "{page}");
        assert!(page.contains("<td class=\"n\">3</td><td class=\"n\">3</td>"), "{page}");
    }

    #[test]
    fn side_by_side_pairs_lines_and_leaves_gaps() {
        let page = shown("one two\nx\n", "one three\n", Arrangement::Side);
        assert!(page.contains("<del>one <mark>two</mark>\n</del>"), "{page}");
        assert!(page.contains("<td class=\"n\"></td><td class=\"line\"></td>"), "{page}");
    }

    #[test]
    fn hostile_lines_stay_text() {
        let hostile = "<script>alert(1)</script> & \"</del>\"\n";
        for arrangement in [Arrangement::Inline, Arrangement::Side] {
            let page = shown(hostile, &hostile.replace("alert", "prompt"), arrangement);
            assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
            assert_eq!(page.matches("</del>").count(), 1, "{page}");
        }
    }

    #[test]
    fn a_missing_line_break_at_the_end_is_said() {
        assert!(shown("a", "a\n", Arrangement::Inline).contains("(no line break at the end)"));
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let (old, new) = ("old line\n".repeat(9_000), "new row\n".repeat(9_000));
        let diff = Diff::new(&old, &new);
        let mut room = Room::for_many();
        let page = difference(&diff, "test", Arrangement::Inline, &mut room).into_string();
        assert!(page.contains("<del>old line\n</del>") && page.len() < 16 * 1024, "{page}");
        assert!(page.contains("more lines are not shown here"), "{page}");
        let small = Diff::new("a\n", "b\n");
        let page = difference(&small, "test", Arrangement::Inline, &mut room).into_string();
        assert!(page.contains("<ins>b\n</ins>"), "a small one still fits: {page}");
    }

    #[test]
    fn lines_that_are_too_long_for_words_are_marked_as_a_whole() {
        let page = shown(&"a ".repeat(9_000), &"b ".repeat(9_000), Arrangement::Inline);
        assert!(page.contains("<del>") && !page.contains("<mark>"));
    }
}
