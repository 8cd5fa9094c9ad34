//! Two changes of one text, brought together.

use std::ops::Range;

use quipu_core::merge::{Conflict, Merged, merge};

/// The line before what the visitor wrote.
pub(super) const MINE: &str = "<<<<<<< yours";
/// The line between the two.
pub(super) const BETWEEN: &str = "=======";
/// The line after what others wrote.
pub(super) const THEIRS: &str = ">>>>>>> theirs";

/// What the text could become.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    /// The text, with markers where the changes touch.
    pub(super) text: String,
    /// Whether it needs no decision.
    pub(super) is_clean: bool,
}

impl Proposal {
    /// Merges two changes of a base.
    pub(super) fn new(base: &str, mine: &str, theirs: &str) -> Self {
        match merge(base, mine, theirs) {
            Merged::Clean(text) => Self { text, is_clean: true },
            Merged::Conflicted(conflicts) => {
                Self { text: marked([base, mine, theirs], &conflicts), is_clean: false }
            }
        }
    }
}

/// Returns whether a text has the marks of a conflict that nobody has decided.
pub(super) fn is_marked(text: &str) -> bool {
    [MINE, BETWEEN, THEIRS].iter().all(|mark| text.lines().any(|line| line == *mark))
}

/// Returns the merged text with both sides of every conflict.
fn marked([base, mine, theirs]: [&str; 3], conflicts: &[Conflict]) -> String {
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (base, mine, theirs) = (lines(base), lines(mine), lines(theirs));
    let part = |lines: &[&str], range: Range<usize>| -> String {
        lines.get(range).unwrap_or_default().concat()
    };
    let mut text = String::new();
    let (mut base_at, mut mine_at, mut theirs_at) = (0, 0, 0);
    for conflict in conflicts {
        between(
            &part(&base, base_at..conflict.base.start),
            &part(&mine, mine_at..conflict.ours.start),
            &part(&theirs, theirs_at..conflict.theirs.start),
            &mut text,
        );
        push_conflict(
            &part(&mine, conflict.ours.clone()),
            &part(&theirs, conflict.theirs.clone()),
            &mut text,
        );
        (base_at, mine_at, theirs_at) = (conflict.base.end, conflict.ours.end, conflict.theirs.end);
    }
    between(
        &part(&base, base_at..base.len()),
        &part(&mine, mine_at..mine.len()),
        &part(&theirs, theirs_at..theirs.len()),
        &mut text,
    );
    text
}

/// Adds what lies between two conflicts, where only one side changed each line. Compared on its own, a
/// passage may align differently than in the whole text; it is then shown as a conflict rather than lost.
fn between(base: &str, mine: &str, theirs: &str, text: &mut String) {
    match merge(base, mine, theirs) {
        Merged::Clean(merged) => text.push_str(&merged),
        Merged::Conflicted(_) => push_conflict(mine, theirs, text),
    }
}

fn push_conflict(mine: &str, theirs: &str, text: &mut String) {
    // Without a line break at its end, the last line would run into the marker.
    let ended = |part: &str| {
        let is_open = !part.is_empty() && !part.ends_with('\n');
        if is_open { format!("{part}\n") } else { part.to_owned() }
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("{MINE}\n{}{BETWEEN}\n{}{THEIRS}\n", ended(mine), ended(theirs)));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn changes_apart_are_merged_without_a_mark() {
        let proposal = Proposal::new("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n");
        assert_eq!(proposal, Proposal { text: "A\nb\nC\n".to_owned(), is_clean: true });
    }

    #[test]
    fn changes_of_one_line_are_both_there() {
        let proposal = Proposal::new("1\na\n2\n3\n", "1\nmine\n2\n3\n", "1\ntheirs\n2\n3\nnew\n");
        let expected = "1\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> theirs\n2\n3\nnew\n";
        assert_eq!(proposal, Proposal { text: expected.to_owned(), is_clean: false });
    }

    #[test]
    fn an_open_last_line_does_not_run_into_a_mark() {
        let proposal = Proposal::new("", "mine", "theirs");
        assert_eq!(proposal.text, "<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> theirs\n");
    }

    proptest! {
        #[test]
        fn no_line_that_either_side_added_is_lost(
            base in prop::collection::vec("[abc]", 0..12),
            mine in prop::collection::vec("[abcm]", 0..12),
            theirs in prop::collection::vec("[abct]", 0..12),
        ) {
            let text = |lines: &[String]| lines.iter().flat_map(|line| [line, "\n"]).collect::<String>();
            let proposal = Proposal::new(&text(&base), &text(&mine), &text(&theirs));
            // `m` and `t` are in no base, so each is an addition of one side.
            for added in ["m\n", "t\n"] {
                let count = |text: &str| text.split_inclusive('\n').filter(|line| *line == added).count();
                let expected = count(&text(&mine)).max(count(&text(&theirs)));
                prop_assert_eq!(count(&proposal.text), expected, "{}", proposal.text);
            }
        }
    }
}
