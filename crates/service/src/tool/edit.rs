//! Edits of a text as pure functions: replacing a unique substring, inserting lines.
//!
//! All take linear time, whatever the text is. Lines end with LF only.

/// The result of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The new text.
    pub(super) text: String,
    /// The line, counted from 1, on which the replacement begins.
    pub(super) line: usize,
}

/// Why nothing was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplaceError {
    /// The text to replace is empty, so it is everywhere.
    Empty,
    /// It does not occur.
    Missing,
    /// It occurs more than once; overlapping occurrences count.
    Several {
        /// The line of each occurrence, counted from 1.
        lines: Vec<usize>,
    },
}

/// Replaces the only occurrence of `old` by `new`.
///
/// Overlapping occurrences count as several, which `str::matches` does not see: replacing `aa` in `aaa`
/// has two possible results, and the caller must say which is meant.
pub(super) fn replace(text: &str, old: &str, new: &str) -> Result<Replaced, ReplaceError> {
    if old.is_empty() {
        return Err(ReplaceError::Empty);
    }
    let found = occurrences(text.as_bytes(), old.as_bytes());
    match found.as_slice() {
        [] => Err(ReplaceError::Missing),
        [start] => {
            let (before, rest) = text.split_at_checked(*start).expect("a match begins a character");
            let after = rest.strip_prefix(old).expect("the match was found here");
            let line = before.matches('\n').count() + 1;
            Ok(Replaced { text: [before, new, after].concat(), line })
        }
        several => Err(ReplaceError::Several { lines: lines_of(text, several) }),
    }
}

/// Returns the line, counted from 1, of each offset; the offsets are sorted.
fn lines_of(text: &str, offsets: &[usize]) -> Vec<usize> {
    let mut line = 1;
    let mut counted = 0;
    let line_at = |offset: &usize| {
        line += text.get(counted..*offset).unwrap_or_default().matches('\n').count();
        counted = *offset;
        line
    };
    offsets.iter().map(line_at).collect()
}

/// Returns where `pattern` begins in `text`, including overlapping occurrences.
///
/// This is the algorithm of Knuth, Morris and Pratt. Repeating `str::find` from the next character would
/// be quadratic for a text and a pattern of a single repeated letter.
fn occurrences(text: &[u8], pattern: &[u8]) -> Vec<usize> {
    let borders = borders(pattern);
    let mut found = Vec::new();
    let mut matched = 0;
    for (end, byte) in (1..).zip(text) {
        matched = advance(pattern, &borders, matched, *byte);
        if matched == pattern.len() {
            found.push(end - matched);
        }
    }
    found
}

/// Returns, for each prefix of the pattern by its length, the length of its longest proper prefix that is
/// also its suffix.
fn borders(pattern: &[u8]) -> Vec<usize> {
    let mut borders = vec![0, 0];
    let mut matched = 0;
    for byte in pattern.iter().skip(1) {
        matched = advance(pattern, &borders, matched, *byte);
        borders.push(matched);
    }
    borders
}

/// Returns how much of the pattern is matched after one more byte.
fn advance(pattern: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    loop {
        if pattern.get(matched) == Some(&byte) {
            return matched + 1;
        }
        if matched == 0 {
            return 0;
        }
        matched = borders.get(matched).copied().unwrap_or(0);
    }
}

/// The error for a line number that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InsertError {
    /// How many lines the text has; the empty one after a final newline does not count.
    pub(super) lines_count: usize,
}

/// Returns how many lines a text has; the empty one after a final newline does not count.
pub(super) fn lines_count(text: &str) -> usize {
    let body = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() { 0 } else { body.matches('\n').count() + 1 }
}

/// Inserts lines after line number `after`; 0 means before the first.
///
/// Newlines at the end of `addition` are dropped, and the result always ends with one.
pub(super) fn insert(text: &str, after: i64, addition: &str) -> Result<String, InsertError> {
    let lines_count = lines_count(text);
    let after = usize::try_from(after).ok().filter(|after| *after <= lines_count);
    let after = after.ok_or(InsertError { lines_count })?;
    let addition = addition.trim_end_matches('\n');
    let split = match after {
        0 => 0,
        // The end of a line is the break after it, or the end of the text.
        _ => text.match_indices('\n').nth(after - 1).map_or(text.len(), |(at, _)| at + 1),
    };
    let (before, rest) = text.split_at_checked(split).expect("a line ends a character");
    let needs_break = !before.is_empty() && !before.ends_with('\n');
    let mut result = String::with_capacity(text.len() + addition.len() + 2);
    result.push_str(before);
    if needs_break {
        result.push('\n');
    }
    result.push_str(addition);
    result.push('\n');
    result.push_str(rest);
    if !result.ends_with('\n') {
        result.push('\n');
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replaced(text: &str, old: &str, new: &str) -> Result<(String, usize), ReplaceError> {
        replace(text, old, new).map(|replaced| (replaced.text, replaced.line))
    }

    fn several(lines: &[usize]) -> Result<(String, usize), ReplaceError> {
        Err(ReplaceError::Several { lines: lines.to_vec() })
    }

    #[test]
    fn the_only_occurrence_is_replaced() {
        assert_eq!(replaced("a\nb\nc", "b", "B"), Ok(("a\nB\nc".to_owned(), 2)));
        assert_eq!(replaced("a\nb\nc\n", "\nb", "\nB"), Ok(("a\nB\nc\n".to_owned(), 1)));
        assert_eq!(replaced("über", "ü", "u"), Ok(("uber".to_owned(), 1)));
        assert_eq!(replaced("x", "x", ""), Ok((String::new(), 1)));
    }

    #[test]
    fn what_is_missing_empty_or_ambiguous_is_not_replaced() {
        assert_eq!(replaced("abc", "x", "y"), Err(ReplaceError::Missing));
        assert_eq!(replaced("abc", "", "y"), Err(ReplaceError::Empty));
        assert_eq!(replaced("x\ny x\nx", "x", "y"), several(&[1, 2, 3]));
        assert_eq!(replaced("x x", "x", "y"), several(&[1, 1]));
    }

    #[test]
    fn overlapping_occurrences_are_several() {
        assert_eq!(replaced("aaa", "aa", "b"), several(&[1, 1]));
        assert_eq!(replaced("aaaa", "aa", "b"), several(&[1, 1, 1]));
        assert_eq!(replaced("abcabcab", "abcab", "x"), several(&[1, 1]));
    }

    #[test]
    fn lines_are_inserted_after_the_line() {
        let cases = [
            ("a\nb\n", 0, "x", "x\na\nb\n"),
            ("a\nb\n", 1, "x", "a\nx\nb\n"),
            ("a\nb\n", 2, "x", "a\nb\nx\n"),
            ("a\nb", 1, "x", "a\nx\nb\n"),
            ("a\nb", 2, "x", "a\nb\nx\n"),
            ("", 0, "x", "x\n"),
            ("a\n\n", 1, "x", "a\nx\n\n"),
            ("\n", 0, "x", "x\n\n"),
            ("a\n", 1, "x\ny\n\n\n", "a\nx\ny\n"),
            ("a\r\nb\r\n", 1, "x\r\n", "a\r\nx\r\nb\r\n"),
        ];
        for (text, after, addition, expected) in cases {
            let inserted = insert(text, after, addition);
            assert_eq!(inserted.as_deref(), Ok(expected), "{text:?} {after} {addition:?}");
        }
    }

    #[test]
    fn lines_that_do_not_exist_are_refused_with_their_number() {
        for (text, after, lines_count) in
            [("a\nb\n", 3, 2), ("a\nb", 3, 2), ("a\n", -1, 1), ("", 1, 0), ("\n", 2, 1)]
        {
            assert_eq!(insert(text, after, "x"), Err(InsertError { lines_count }), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn occurrences_are_those_of_a_naive_search(text in "[ab\n]{0,40}", pattern in "[ab]{1,4}") {
            let begins = |at: &usize| text.as_bytes()[*at..].starts_with(pattern.as_bytes());
            let naive: Vec<_> = (0..text.len()).filter(begins).collect();
            prop_assert_eq!(occurrences(text.as_bytes(), pattern.as_bytes()), naive);
        }

        #[test]
        fn every_line_can_be_inserted_after(text in "[a\n]{0,12}", addition in "[x\n]{0,4}") {
            let lines_count = i64::try_from(text.lines().count()).unwrap();
            for after in 0..=lines_count {
                let inserted = insert(&text, after, &addition).unwrap();
                prop_assert!(inserted.ends_with('\n'));
                let mut expected: Vec<_> = text.lines().collect();
                let addition = addition.trim_end_matches('\n');
                let at = usize::try_from(after).unwrap();
                expected.splice(at..at, addition.split('\n'));
                prop_assert_eq!(inserted.split('\n').count() - 1, expected.len());
                prop_assert_eq!(inserted.lines().collect::<Vec<_>>(), expected);
            }
            prop_assert!(insert(&text, lines_count + 1, &addition).is_err());
        }
    }
}
