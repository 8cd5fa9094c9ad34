//! Line-by-line comparison of two texts.

use std::fmt;
use std::ops::Range;

use imara_diff::{Algorithm, InternedInput};

/// The difference between two texts, by lines.
///
/// A line includes its line break, so a missing one at the end counts as a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    old: Vec<String>,
    new: Vec<String>,
    changes: Vec<(Range<usize>, Range<usize>)>,
}

/// A group of changes with the lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// Which lines of the old text it covers, counted from 0.
    pub old: Range<usize>,
    /// Which lines of the new text it covers, counted from 0.
    pub new: Range<usize>,
    /// The lines, in order.
    pub lines: Vec<Line<'a>>,
}

/// One line of a hunk, with its line break if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// It is in both texts.
    Kept(&'a str),
    /// It is only in the old text.
    Removed(&'a str),
    /// It is only in the new text.
    Added(&'a str),
}

impl Diff {
    /// Compares two texts.
    ///
    /// Where more than about 16,000 lines were replaced by about as many others, which does not happen to
    /// text that people write, they are one change: comparing them would take seconds if lines repeat.
    pub fn new(old: &str, new: &str) -> Self {
        let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect();
        Self { old: lines(old), new: lines(new), changes: changes(old, new) }
    }

    /// Returns whether the texts are equal.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns how many lines the new text has that the old one has not.
    pub fn added_count(&self) -> usize {
        self.changes.iter().map(|(_, new)| new.len()).sum()
    }

    /// Returns how many lines the old text has that the new one has not.
    pub fn removed_count(&self) -> usize {
        self.changes.iter().map(|(old, _)| old.len()).sum()
    }

    /// Returns which lines of the old text became which lines of the new one, in order.
    pub(crate) fn changes(&self) -> &[(Range<usize>, Range<usize>)] {
        &self.changes
    }

    /// Returns those of the given lines of the old text that exist.
    pub(crate) fn old_lines(&self, range: Range<usize>) -> impl Iterator<Item = &str> {
        lines_in(&self.old, range.start..range.end.min(self.old.len()))
    }

    /// Returns those of the given lines of the new text that exist.
    pub(crate) fn new_lines(&self, range: Range<usize>) -> impl Iterator<Item = &str> {
        lines_in(&self.new, range.start..range.end.min(self.new.len()))
    }

    /// Returns the changes with at most `context` unchanged lines around each.
    pub fn hunks(&self, context: usize) -> Vec<Hunk<'_>> {
        let mut groups: Vec<Vec<&(Range<usize>, Range<usize>)>> = Vec::new();
        for change in &self.changes {
            match groups.last_mut() {
                Some(group)
                    if group.last().is_some_and(|(last, _)| {
                        change.0.start - last.end <= context.saturating_mul(2)
                    }) =>
                {
                    group.push(change);
                }
                Some(_) | None => groups.push(vec![change]),
            }
        }
        groups.into_iter().filter_map(|group| self.hunk(&group, context)).collect()
    }

    fn hunk(&self, group: &[&(Range<usize>, Range<usize>)], context: usize) -> Option<Hunk<'_>> {
        let ((first_old, first_new), (last_old, last_new)) = (group.first()?, group.last()?);
        let lead = context.min(first_old.start);
        let tail = context.min(self.old.len() - last_old.end);
        let old = first_old.start - lead..last_old.end + tail;
        let new = first_new.start - lead..last_new.end + tail;
        let mut lines = Vec::new();
        let mut position = old.start;
        for (removed, added) in group {
            lines.extend(lines_in(&self.old, position..removed.start).map(Line::Kept));
            lines.extend(lines_in(&self.old, removed.clone()).map(Line::Removed));
            lines.extend(lines_in(&self.new, added.clone()).map(Line::Added));
            position = removed.end;
        }
        lines.extend(lines_in(&self.old, position..old.end).map(Line::Kept));
        Some(Hunk { old, new, lines })
    }
}

/// The maximum number of pairs of lines to compare, after a common prefix and suffix are stripped.
const COMPARED_PAIRS_MAX: usize = 16_384 * 16_384;

fn changes(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let input = InternedInput::new(old, new);
    let (before, after) = (&input.before, &input.after);
    let same = |(old, new): &(_, _)| old == new;
    let lead = before.iter().zip(after).take_while(same).count();
    let rests = before.iter().skip(lead).rev().zip(after.iter().skip(lead).rev());
    let tail = rests.take_while(same).count();
    let middle = (lead..before.len() - tail, lead..after.len() - tail);
    if middle.0.len().saturating_mul(middle.1.len()) > COMPARED_PAIRS_MAX {
        return vec![middle];
    }
    let mut diff = imara_diff::Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let range = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| (range(hunk.before), range(hunk.after))).collect()
}

/// The maximum size of each text whose words are compared.
const WORDS_SIZE_BYTES_MAX: usize = 8 * 1024;

/// Returns which parts of two texts differ, by words, as ranges of bytes in order.
///
/// A word is a run of letters and digits, a run of white space, or any other single character. A text
/// of more than 8 KiB is not compared by words, and neither are two that have next to nothing in
/// common: marks all over the place say less than none. Both are one change then.
pub fn word_changes(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let whole = || vec![(0..old.len(), 0..new.len())];
    if old.len().max(new.len()) > WORDS_SIZE_BYTES_MAX {
        return whole();
    }
    let (old_words, new_words) = (words(old), words(new));
    let mut input = InternedInput::default();
    input.update_before(old_words.iter().map(|(_, word)| *word));
    input.update_after(new_words.iter().map(|(_, word)| *word));
    let mut diff = imara_diff::Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let start = |words: &[(usize, &str)], place: u32, end: usize| {
        words.get(place as usize).map_or(end, |(start, _)| *start)
    };
    let size = |words: &[(usize, &str)]| -> usize {
        words.iter().map(|(_, word)| word.trim().len()).sum()
    };
    let mut kept_size = size(&old_words);
    let mut changes = Vec::new();
    for hunk in diff.hunks() {
        let removed = hunk.before.start as usize..hunk.before.end as usize;
        kept_size -= old_words.get(removed).map_or(0, size);
        let side = |words: &[(usize, &str)], range: Range<u32>, end: usize| {
            start(words, range.start, end)..start(words, range.end, end)
        };
        changes.push((
            side(&old_words, hunk.before, old.len()),
            side(&new_words, hunk.after, new.len()),
        ));
    }
    if kept_size * 4 < old.trim().len().min(new.trim().len()) { whole() } else { changes }
}

/// Returns the words of a text with the places where they begin.
fn words(text: &str) -> Vec<(usize, &str)> {
    #[derive(PartialEq)]
    enum Kind {
        Letters,
        Space,
        Other,
    }
    let kind = |character: char| {
        if character.is_alphanumeric() {
            Kind::Letters
        } else if character.is_whitespace() {
            Kind::Space
        } else {
            Kind::Other
        }
    };
    let mut starts = Vec::new();
    let mut last = Kind::Other;
    for (at, character) in text.char_indices() {
        let kind = kind(character);
        if at == 0 || kind == Kind::Other || kind != last {
            starts.push(at);
        }
        last = kind;
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let words = starts.iter().copied().zip(ends);
    words.filter_map(|(start, end)| Some((start, text.get(start..end)?))).collect()
}

fn lines_in(lines: &[String], range: Range<usize>) -> impl Iterator<Item = &str> {
    lines.get(range).unwrap_or_default().iter().map(String::as_str)
}

impl Hunk<'_> {
    /// Returns the line that introduces the hunk in a unified diff, such as `@@ -1,3 +1,4 @@`.
    pub fn header(&self) -> String {
        let side = |range: &Range<usize>| match range.len() {
            // The convention for an empty side is the line before it.
            0 => format!("{},0", range.start),
            1 => format!("{}", range.start + 1),
            length => format!("{},{length}", range.start + 1),
        };
        format!("@@ -{} +{} @@", side(&self.old), side(&self.new))
    }
}

impl fmt::Display for Line<'_> {
    /// Writes the line as a unified diff does, without its line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, text) = match self {
            Self::Kept(text) => (' ', text),
            Self::Removed(text) => ('-', text),
            Self::Added(text) => ('+', text),
        };
        match text.strip_suffix('\n') {
            Some(text) => write!(f, "{sign}{text}"),
            None => write!(f, "{sign}{text}\n\\ No newline at end of file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unified(old: &str, new: &str) -> String {
        let diff = Diff::new(old, new);
        let shown = |hunk: &Hunk<'_>| {
            let lines: Vec<_> = hunk.lines.iter().map(Line::to_string).collect();
            format!("{}\n{}\n", hunk.header(), lines.join("\n"))
        };
        diff.hunks(1).iter().map(shown).collect()
    }

    #[test]
    fn equal_texts_have_no_difference() {
        assert!(Diff::new("a\nb\n", "a\nb\n").is_empty());
        assert_eq!(unified("", ""), "");
    }

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let expected = "@@ -2,3 +2,3 @@\n b\n-c\n+X\n d\n";
        assert_eq!(unified("a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n"), expected);
    }

    #[test]
    fn near_changes_share_a_hunk_and_far_ones_do_not() {
        assert_eq!(Diff::new("a\nb\nc\nd\n", "A\nb\nc\nD\n").hunks(1).len(), 1);
        assert_eq!(Diff::new("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n").hunks(1).len(), 2);
    }

    #[test]
    fn a_missing_newline_at_the_end_is_marked() {
        let expected = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n";
        assert_eq!(unified("a", "a\n"), expected);
    }

    #[test]
    fn creation_and_deletion_have_an_empty_side() {
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn very_many_changed_lines_are_one_change() {
        let old = format!("first\n{}last\n", "a\n".repeat(40_000));
        let new = format!("first\n{}last\n", "b\na\n".repeat(20_000));
        let diff = Diff::new(&old, &new);
        // The last of the repeated lines is equal as well.
        assert_eq!(diff.changes, [(1..40_000, 1..40_000)]);
    }

    /// Shows changed words in brackets, old and new.
    fn marked(old: &str, new: &str) -> (String, String) {
        let (mut old_shown, mut new_shown) = (old.to_owned(), new.to_owned());
        for (removed, added) in word_changes(old, new).into_iter().rev() {
            for (shown, range) in [(&mut old_shown, removed), (&mut new_shown, added)] {
                shown.insert(range.end, ']');
                shown.insert(range.start, '[');
            }
        }
        (old_shown, new_shown)
    }

    #[test]
    fn changed_words_are_found_across_lines() {
        let (old, new) = marked("green tea, 80 °C\nsteep", "green tea,\n75 °C steep");
        assert_eq!(old, "green tea,[ 80] °C[\n]steep");
        assert_eq!(new, "green tea,[\n75] °C[ ]steep");
    }

    #[test]
    fn texts_without_common_words_are_one_change() {
        assert_eq!(word_changes("black coffee", "green tea"), [(0..12, 0..9)]);
        let long = "a ".repeat(WORDS_SIZE_BYTES_MAX);
        assert_eq!(word_changes(&long, "a"), [(0..long.len(), 0..1)]);
    }

    proptest! {
        #[test]
        fn what_is_between_changed_words_is_equal(old in "[abé ,\n]{0,30}", new in "[abé ,\n]{0,30}") {
            let kept = |text: &str, changed: Vec<Range<usize>>| {
                let mut kept = text.to_owned();
                changed.into_iter().rev().for_each(|range| kept.replace_range(range, ""));
                kept
            };
            let (removed, added) = word_changes(&old, &new).into_iter().unzip();
            prop_assert_eq!(kept(&old, removed), kept(&new, added));
        }

        #[test]
        fn both_texts_can_be_read_back(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let diff = Diff::new(&old, &new);
            let hunks = diff.hunks(usize::MAX / 4);
            let side = |wanted: fn(&Line<'_>) -> Option<String>| -> String {
                hunks.iter().flat_map(|hunk| &hunk.lines).filter_map(wanted).collect()
            };
            if diff.is_empty() {
                prop_assert_eq!(old, new);
                return Ok(());
            }
            prop_assert_eq!(side(|line| match line {
                Line::Kept(text) | Line::Removed(text) => Some((*text).to_owned()),
                Line::Added(_) => None,
            }), old);
            prop_assert_eq!(side(|line| match line {
                Line::Kept(text) | Line::Added(text) => Some((*text).to_owned()),
                Line::Removed(_) => None,
            }), new);
        }
    }
}
