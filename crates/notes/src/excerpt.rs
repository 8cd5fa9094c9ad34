//! Excerpts: the passage of a text to be read instead of the whole.
//!
//! A [`snippet`](crate::snippet()) is one line for people who choose among hits. An excerpt is read in
//! place of the text, so it keeps its lines and begins with the heading that it is under.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::Phrase;
use crate::snippet::{Occurrence, occurrences};
use crate::tokenizer::Language;

/// Stands for what is left out.
const OMITTED: &str = "…";
/// How many lines with a match are tried as the first of the excerpt. In a text with more, an early
/// one is as good as any.
const STARTS_MAX: usize = 200;

/// Returns the consecutive lines of a text with the most distinct phrases, below their heading, in at
/// most `size_bytes_max` bytes; all of a text that is not longer.
pub fn excerpt(
    text: &str,
    language: Language,
    phrases: &[&Phrase],
    size_bytes_max: usize,
) -> String {
    let text = text.trim();
    if text.len() <= size_bytes_max {
        return text.to_owned();
    }
    let found = occurrences(text, language, phrases);
    let lines = lines(text);
    let marks = 2 * (OMITTED.len() + 1);
    let room = size_bytes_max.saturating_sub(marks);
    let (first, last) = best_lines(&lines, &found, room);
    let start = lines.get(first).map_or(0, |line| line.start);
    let heading = heading_above(text, &lines, first, room / 4);
    let room = room - heading.len();
    let end = lines.get(last).map_or(0, |line| line.end).max(start);
    let passage = match text.get(start..end).filter(|passage| passage.len() <= room) {
        Some(passage) => passage.trim_end(),
        // The line of the match alone is too long, or the heading took its room.
        None => cut(text, start, first_match(&found, start), room),
    };
    let mut excerpt = String::with_capacity(size_bytes_max);
    excerpt.push_str(&heading);
    let begins_with_heading = !heading.is_empty() || text.get(..start).is_none_or(str::is_empty);
    if !begins_with_heading {
        excerpt.push_str(OMITTED);
        excerpt.push('\n');
    }
    excerpt.push_str(passage);
    if !text.ends_with(passage) {
        excerpt.push('\n');
        excerpt.push_str(OMITTED);
    }
    excerpt
}

/// Returns the ranges of lines, with their ends.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let each = text.split_inclusive('\n').map(|line| {
        let range = start..start + line.len();
        start = range.end;
        range
    });
    each.collect()
}

/// Returns the first and the last of the consecutive lines with the most distinct phrases that have
/// room, or that have no room but begin with a match. Then lines are added up to the end of the
/// paragraph.
fn best_lines(lines: &[Range<usize>], found: &[Occurrence], room: usize) -> (usize, usize) {
    let line_of = |at: usize| lines.partition_point(|line| line.end <= at);
    let mut best = (0, 0, 0);
    let mut tried = None;
    for (number, start) in found.iter().enumerate().take(STARTS_MAX) {
        let first = line_of(start.range.start);
        if tried.replace(first) == Some(first) {
            continue;
        }
        let from = lines.get(first).map_or(0, |line| line.start);
        let (mut phrases, mut last) = (BTreeSet::new(), first);
        for other in found.iter().skip(number) {
            let line = line_of(other.range.start);
            if lines.get(line).is_none_or(|line| line.end - from > room) && line != first {
                break;
            }
            phrases.insert(other.phrase);
            last = line;
        }
        if phrases.len() > best.0 {
            best = (phrases.len(), first, last);
        }
    }
    let (_, first, mut last) = best;
    let from = lines.get(first).map_or(0, |line| line.start);
    // A blank line has one byte.
    while lines.get(last + 1).is_some_and(|line| line.end - from <= room && line.len() > 1) {
        last += 1;
    }
    (first, last)
}

fn first_match(found: &[Occurrence], start: usize) -> usize {
    found.iter().map(|it| it.range.start).find(|at| *at >= start).unwrap_or(start)
}

/// Returns the heading above a line with what is left out between them, unless it has no room.
fn heading_above(text: &str, lines: &[Range<usize>], first: usize, room: usize) -> String {
    let above = lines.get(..first).unwrap_or_default().iter().enumerate().rev();
    let mut headings = above.filter_map(|(number, line)| {
        let line = text.get(line.clone())?.trim_end();
        line.starts_with('#').then_some((number, line))
    });
    let is_heading = lines.get(first).and_then(|line| text.get(line.clone()));
    if is_heading.is_some_and(|line| line.starts_with('#')) {
        return String::new();
    }
    let Some((number, heading)) = headings.next() else { return String::new() };
    let between = lines.get(number + 1..first).unwrap_or_default();
    let is_next =
        between.iter().all(|line| text.get(line.clone()).unwrap_or_default().trim().is_empty());
    let heading = if is_next { format!("{heading}\n") } else { format!("{heading}\n{OMITTED}\n") };
    if heading.len() <= room { heading } else { String::new() }
}

/// Returns at most `room` bytes after `start` with the match at `at` in them.
fn cut(text: &str, start: usize, at: usize, room: usize) -> &str {
    let from = if at - start > room / 2 { at - room / 4 } else { start };
    let from = text.ceil_char_boundary(from);
    let end = text.floor_char_boundary((from + room).min(text.len()));
    text.get(from..end).unwrap_or_default().trim()
}
