//! Three-way merge of texts, line by line.
//!
//! Merges two texts that were derived from the same base: what only one of them changed is taken from
//! it. Where both changed the same or adjacent lines in different ways, no rule can know what is meant,
//! and the caller decides.
//!
//! Adjacent changes conflict, as in git: of two neighboring lines that were edited by two people, each
//! was written with the old text of the other in view.

use std::ops::Range;

use crate::diff::Diff;

/// The result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The text with the changes of both sides.
    Clean(String),
    /// The conflicts, in order; there is at least one.
    Conflicted(Vec<Conflict>),
}

/// A region that both sides changed in different ways, as lines counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Which lines of the base it covers.
    pub base: Range<usize>,
    /// What our text has there.
    pub ours: Range<usize>,
    /// What their text has there.
    pub theirs: Range<usize>,
}

/// Merges the changes that two texts made to a base.
///
/// Lines keep their line breaks, whatever kind, and a missing one at the end is a change like any
/// other. The result does not depend on which side is called ours.
pub fn merge(base: &str, ours: &str, theirs: &str) -> Merged {
    let (our_diff, their_diff) = (Diff::new(base, ours), Diff::new(base, theirs));
    let mut text = String::with_capacity(ours.len().max(theirs.len()));
    let mut conflicts = Vec::new();
    let mut position = 0;
    for region in regions(&our_diff, &their_diff) {
        text.extend(our_diff.old_lines(position..region.base.start));
        position = region.base.end;
        let lines = |diff: &Diff, range: &Range<usize>| -> String {
            diff.new_lines(range.clone()).collect()
        };
        let base: String = our_diff.old_lines(region.base.clone()).collect();
        let ours = lines(&our_diff, &region.ours);
        let theirs = lines(&their_diff, &region.theirs);
        if ours == theirs || theirs == base {
            text.push_str(&ours);
        } else if ours == base {
            text.push_str(&theirs);
        } else {
            conflicts.push(region);
        }
    }
    if !conflicts.is_empty() {
        return Merged::Conflicted(conflicts);
    }
    text.extend(our_diff.old_lines(position..usize::MAX));
    Merged::Clean(text)
}

/// Returns the regions that either side changed; changes that overlap or touch are one region.
fn regions(ours: &Diff, theirs: &Diff) -> Vec<Conflict> {
    let mut sides = [Side::new(ours), Side::new(theirs)];
    let mut regions = Vec::new();
    while let Some(start) = sides.iter().filter_map(Side::next_start).min() {
        let mut end = start;
        while sides.iter_mut().any(|side| side.take_up_to(&mut end)) {}
        let [ours, theirs] = &mut sides;
        let base = start..end;
        regions.push(Conflict { ours: ours.close(&base), theirs: theirs.close(&base), base });
    }
    regions
}

/// A walk along the changes of one side.
struct Side<'a> {
    rest: &'a [(Range<usize>, Range<usize>)],
    /// The end of the last change that was taken, in the base and in the side's text.
    reached: (usize, usize),
    /// The end of the last region, likewise. From here to the next region both texts are equal.
    closed: (usize, usize),
}

impl<'a> Side<'a> {
    fn new(diff: &'a Diff) -> Self {
        Self { rest: diff.changes(), reached: (0, 0), closed: (0, 0) }
    }

    fn next_start(&self) -> Option<usize> {
        self.rest.first().map(|(base, _)| base.start)
    }

    /// Takes the next change if it begins at `end` or before, and moves `end` behind it.
    fn take_up_to(&mut self, end: &mut usize) -> bool {
        match self.rest.split_first() {
            Some(((base, text), rest)) if base.start <= *end => {
                self.rest = rest;
                self.reached = (base.end, text.end);
                *end = base.end.max(*end);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Ends a region and returns the lines of this side that correspond to `base`, which covers all
    /// changes since the last call.
    fn close(&mut self, base: &Range<usize>) -> Range<usize> {
        let start = self.closed.1 + (base.start - self.closed.0);
        let end = self.reached.1 + (base.end - self.reached.0);
        self.reached = (base.end, end);
        self.closed = self.reached;
        start..end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clean(base: &str, ours: &str, theirs: &str) -> String {
        match merge(base, ours, theirs) {
            Merged::Clean(text) => text,
            Merged::Conflicted(conflicts) => panic!("{conflicts:?}"),
        }
    }

    #[test]
    fn changes_of_different_lines_are_merged() {
        assert_eq!(clean("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n"), "A\nb\nC\n");
        assert_eq!(clean("a\nb\nc\n", "b\nc\n", "a\nb\nc\nd\n"), "b\nc\nd\n");
    }

    #[test]
    fn the_same_change_on_both_sides_is_made_once() {
        assert_eq!(clean("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n"), "a\nX\nc\n");
        assert_eq!(clean("a\nb\nc\nd\n", "X\nb\nc\nd\n", "X\nb\nc\nD\n"), "X\nb\nc\nD\n");
    }

    #[test]
    fn different_changes_of_a_line_are_a_conflict() {
        let expected = Conflict { base: 1..2, ours: 1..2, theirs: 1..3 };
        let merged = merge("a\nb\nc\n", "a\nX\nc\n", "a\nY\nZ\nc\n");
        assert_eq!(merged, Merged::Conflicted(vec![expected]));
    }

    #[test]
    fn changes_that_touch_are_a_conflict() {
        let expected = Conflict { base: 0..2, ours: 0..2, theirs: 0..2 };
        let merged = merge("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n");
        assert_eq!(merged, Merged::Conflicted(vec![expected]));
    }

    #[test]
    fn lines_added_at_the_same_place_are_a_conflict() {
        assert!(matches!(merge("a\n", "a\nb\n", "a\nc\n"), Merged::Conflicted(_)));
        assert!(matches!(merge("", "b\n", "c\n"), Merged::Conflicted(_)));
    }

    #[test]
    fn every_place_is_reported_as_lines_of_each_text() {
        let expected = vec![
            Conflict { base: 1..3, ours: 2..4, theirs: 1..2 },
            Conflict { base: 4..5, ours: 5..6, theirs: 3..4 },
        ];
        let merged = merge("a\nb\nc\nd\ne\n", "0\na\n1\nc\nd\n2\n", "a\n3\nd\n4\n");
        assert_eq!(merged, Merged::Conflicted(expected));
    }

    #[test]
    fn line_breaks_are_kept_as_they_are() {
        assert_eq!(clean("a\r\nb\r\nc", "A\r\nb\r\nc", "a\r\nb\r\nc\n"), "A\r\nb\r\nc\n");
        assert_eq!(clean("a\nb\nc", "a\nb\nc\n", "A\nb\nc"), "A\nb\nc\n");
        assert_eq!(clean("a\nb\nc\n", "a\nb\nc", "A\nb\nc\n"), "A\nb\nc");
    }

    #[test]
    fn long_repetitive_texts_are_merged_too() {
        let base = "a\n".repeat(50_000);
        let ours = "a\nb\n".repeat(25_000);
        let theirs = "b\na\n".repeat(25_000);
        assert_eq!(clean(&base, &ours, &base), ours);
        assert_eq!(clean(&base, &ours, &ours), ours);
        merge(&base, &ours, &theirs);
        merge(&ours, &theirs, &base);
        let empty_lines = "\n".repeat(100_000);
        assert_eq!(clean(&empty_lines, &base, &empty_lines), base);
        let squares = |modulus: u32| -> String {
            let lines: Vec<_> = (0..15_000_u32).map(|n| (n * n % modulus).to_string()).collect();
            lines.join("\n")
        };
        let (scattered, shuffled) = (squares(97), squares(89));
        assert_eq!(clean(&scattered, &scattered, &shuffled), shuffled);
        merge(&scattered, &shuffled, &base);
    }

    fn text() -> impl Strategy<Value = String> {
        "[abc\r\n]{0,40}"
    }

    proptest! {
        #[test]
        fn a_side_that_changed_nothing_gives_way(base in text(), changed in text()) {
            prop_assert_eq!(clean(&base, &changed, &base), changed.clone());
            prop_assert_eq!(clean(&base, &base, &changed), changed);
        }

        #[test]
        fn equal_sides_are_their_own_merge(base in text(), changed in text()) {
            prop_assert_eq!(clean(&base, &changed, &changed), changed);
        }

        #[test]
        fn the_sides_can_be_exchanged(base in text(), ours in text(), theirs in text()) {
            let swap = |Conflict { base, ours, theirs }| Conflict { base, ours: theirs, theirs: ours };
            let other = match merge(&base, &theirs, &ours) {
                Merged::Clean(text) => Merged::Clean(text),
                Merged::Conflicted(places) => Merged::Conflicted(places.into_iter().map(swap).collect()),
            };
            prop_assert_eq!(merge(&base, &ours, &theirs), other);
        }

        #[test]
        fn edits_of_lines_apart_are_all_kept(
            count in 3_usize..30,
            edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..2_u8), 0..8),
        ) {
            let mut sides = [Vec::new(), Vec::new()];
            let base: Vec<String> = (0..count).map(|n| format!("{n}\n")).collect();
            let (mut ours, mut theirs, mut both) = (base.clone(), base.clone(), base.clone());
            for (place, side) in edits {
                let place = place.index(count);
                let is_free = sides[usize::from(1 - side)].iter().all(|other: &usize| other.abs_diff(place) > 1);
                if is_free {
                    sides[usize::from(side)].push(place);
                    let edited = if side == 0 { &mut ours } else { &mut theirs };
                    edited[place] = format!("{place}, edited by {side}\n");
                    both[place].clone_from(&edited[place]);
                }
            }
            prop_assert_eq!(clean(&base.concat(), &ours.concat(), &theirs.concat()), both.concat());
        }
    }
}
