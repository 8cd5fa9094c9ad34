//! Line endings, which browsers do not keep.

use quipu_core::diff::{Diff, Line};

/// Returns a submitted text with the line endings that it had before it went through a form.
///
/// Browsers send every line break as CR LF, whatever it was. A line that is also in `base` gets its
/// ending back, even in a text that mixes them; a new line gets the ending that most lines have. So a
/// text that was submitted unchanged is unchanged.
pub(super) fn restored(base: &str, submitted: &str) -> String {
    let lines = lines(base);
    let unified = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
    let (old, new) = (unified(base), unified(submitted));
    let diff = Diff::new(&old, &new);
    if diff.is_empty() {
        return base.to_owned();
    }
    let usual = usual_ending(&lines);
    let mut text = String::with_capacity(submitted.len());
    let mut old_lines = lines.into_iter();
    for line in diff.hunks(usize::MAX / 4).iter().flat_map(|hunk| &hunk.lines) {
        let line = match line {
            Line::Kept(_) => old_lines.next().unwrap_or_default().to_owned(),
            Line::Removed(_) => {
                old_lines.next();
                continue;
            }
            Line::Added(line) => {
                line.strip_suffix('\n').map_or((*line).to_owned(), |it| it.to_owned() + usual)
            }
        };
        // A lone CR and the LF of an empty line would become one line break.
        if text.ends_with('\r') && line.starts_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    }
    text
}

/// Returns the lines of a text with their endings: LF, CR LF or CR.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = match rest.find(['\n', '\r']) {
            Some(at) if rest.get(at..).is_some_and(|it| it.starts_with("\r\n")) => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        lines.push(line);
        rest = behind;
    }
    lines
}

fn usual_ending(lines: &[&str]) -> &'static str {
    let ended = lines.iter().filter(|line| line.ends_with(['\n', '\r'])).count();
    let windows = lines.iter().filter(|line| line.ends_with("\r\n")).count();
    if windows * 2 > ended { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns what a browser sends for a text in a form.
    fn sent(text: &str) -> String {
        text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n")
    }

    #[test]
    fn new_lines_end_like_the_others() {
        assert_eq!(restored("a\nb\n", "a\r\nx\r\nb\r\n"), "a\nx\nb\n");
        assert_eq!(restored("a\r\nb\r\n", "a\r\nx\r\nb\r\n"), "a\r\nx\r\nb\r\n");
        assert_eq!(restored("", "a\r\nb"), "a\nb");
    }

    #[test]
    fn each_line_of_a_mixed_text_keeps_its_ending() {
        assert_eq!(restored("a\r\nb\nc\rd", "a\r\nb\r\nc\r\nx\r\nd"), "a\r\nb\nc\rx\nd");
        assert_eq!(restored("\n\na", "\r\n\r\na\r\n"), "\n\na\n");
    }

    proptest! {
        #[test]
        fn a_text_that_nobody_changed_is_unchanged(text in "[ab\r\n]{0,40}") {
            prop_assert_eq!(restored(&text, &sent(&text)), text);
        }

        #[test]
        fn what_was_typed_is_kept(base in "[ab\r\n]{0,40}", typed in "[abc\n]{0,40}") {
            let unified = restored(&base, &sent(&typed)).replace("\r\n", "\n").replace('\r', "\n");
            prop_assert_eq!(unified, typed);
        }
    }
}
