//! Snippets: the excerpt of a text that shows why it matches.

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::Phrase;
use crate::tokenizer::{Language, Prefix, each_run, each_variant, tokenize_matching};

/// An excerpt with its matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The excerpt, on one line.
    pub text: String,
    /// The byte ranges of the matches in `text`, sorted and disjoint.
    pub matches: Vec<Range<usize>>,
    /// The byte range of the matches in the text that it was taken from; `None` without matches.
    pub source: Option<Range<usize>>,
}

/// The length of a snippet in characters.
const CHARS_MAX: usize = 240;
/// How many of them precede the first match.
const LEAD_CHARS: usize = 40;

/// Returns the excerpt with the most distinct phrases, or the beginning of a text without any.
pub fn snippet(text: &str, language: Language, phrases: &[&Phrase]) -> Snippet {
    let found = occurrences(text, language, phrases);
    let best = best_start(&found);
    let start = best.map_or(0, |at| back(text, at, LEAD_CHARS));
    let end = forward(text, start, CHARS_MAX);
    let shown = found.iter().filter(|found| found.range.start >= start && found.range.end <= end);
    let shown = united(shown.map(|found| &found.range));
    let source = shown.first().zip(shown.last()).map(|(first, last)| first.start..last.end);
    Snippet { source, ..on_one_line(text, start..end, &shown) }
}

/// Returns where phrases occur in a text, in order.
pub(crate) fn occurrences(text: &str, language: Language, phrases: &[&Phrase]) -> Vec<Occurrence> {
    let found = matches(text, language, phrases);
    if found.is_empty() { variant_matches(text, language, phrases) } else { found }
}

/// Merges overlapping ranges; phrases with a word in common overlap.
fn united<'r>(ranges: impl Iterator<Item = &'r Range<usize>>) -> Vec<Range<usize>> {
    let mut united: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match united.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            Some(_) | None => united.push(range.clone()),
        }
    }
    united
}

/// An occurrence of a phrase.
pub(crate) struct Occurrence {
    /// The index of the phrase.
    pub(crate) phrase: usize,
    pub(crate) range: Range<usize>,
}

fn matches(text: &str, language: Language, phrases: &[&Phrase]) -> Vec<Occurrence> {
    if phrases.is_empty() {
        return Vec::new();
    }
    let terms = phrases.iter().flat_map(|it| &it.terms);
    let wanted: Vec<_> = terms.flat_map(|term| Prefix::of_words(term, language)).collect();
    let all =
        tokenize_matching(text, language, |word| wanted.iter().any(|term| word.is_like(*term)));
    let words: Vec<&str> = all.iter().map(|token| token.term.as_str()).collect();
    let mut found = Vec::new();
    for (number, phrase) in phrases.iter().enumerate() {
        let length = phrase.terms.len().max(1);
        for (place, window) in words.windows(length).enumerate() {
            if !phrase.matches(window) {
                continue;
            }
            let (first, last) = (all.get(place), all.get(place + length - 1));
            if let (Some(first), Some(last)) = (first, last) {
                found.push(Occurrence { phrase: number, range: first.range.start..last.range.end });
            }
        }
    }
    found.sort_by_key(|found| (found.range.start, found.range.end));
    found
}

/// Returns the words that match by a variant instead of their term: by a prefix of the unstemmed
/// word, or by a part of an identifier.
fn variant_matches(text: &str, language: Language, phrases: &[&Phrase]) -> Vec<Occurrence> {
    let mut found = Vec::new();
    let words: Vec<_> =
        phrases.iter().enumerate().filter(|(_, phrase)| phrase.terms.len() == 1).collect();
    if words.is_empty() {
        return found;
    }
    each_run(text, |run, range| {
        let mut fitting = Vec::new();
        let written = text.get(range.clone()).unwrap_or_default();
        each_variant(run, written, language, |term| {
            fitting.extend(words.iter().filter(|(_, it)| it.matches(&[&term])).map(|(it, _)| *it));
        });
        fitting.dedup();
        found.extend(fitting.into_iter().map(|phrase| Occurrence { phrase, range: range.clone() }));
    });
    found
}

/// Returns the start of the window with the most distinct phrases.
fn best_start(found: &[Occurrence]) -> Option<usize> {
    let mut best = None;
    let mut best_count = 0;
    for (number, first) in found.iter().enumerate() {
        let near = found.iter().skip(number);
        let near = near.take_while(|it| it.range.end <= first.range.start + CHARS_MAX - LEAD_CHARS);
        let mut kinds: Vec<_> = near.map(|it| it.phrase).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if kinds.len() > best_count {
            best_count = kinds.len();
            best = Some(first.range.start);
        }
        // Bounded, because each start scans its whole window. With this many matches, an early
        // window is as good as any.
        if number > 500 {
            break;
        }
    }
    best
}

/// Returns the start of a word at most `chars` characters before an offset.
fn back(text: &str, at: usize, chars: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let start = before.char_indices().rev().nth(chars).map_or(0, |(start, _)| start);
    if start == 0 {
        return 0;
    }
    let lead = text.get(start..at).unwrap_or_default();
    // Spaces may have several bytes, as between Japanese words.
    let space = lead.char_indices().find(|(_, letter)| letter.is_whitespace());
    start + space.map_or(0, |(at, letter)| at + letter.len_utf8())
}

fn forward(text: &str, start: usize, chars: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    rest.char_indices().nth(chars).map_or(text.len(), |(end, _)| start + end)
}

/// Collapses white space and shifts the matches accordingly.
fn on_one_line(text: &str, part: Range<usize>, ranges: &[Range<usize>]) -> Snippet {
    let mut line = String::new();
    let mut places = Vec::with_capacity(part.len());
    let shown = text.get(part.clone()).unwrap_or_default();
    if part.start > 0 {
        line.push('…');
    }
    for (at, letter) in shown.char_indices() {
        if !letter.is_whitespace() {
            places.push((part.start + at, line.len()));
            line.push(letter);
        } else if !line.is_empty() && !line.ends_with([' ', '…']) {
            line.push(' ');
        }
    }
    let end = line.trim_end().len();
    line.truncate(end);
    if part.end < text.len() {
        line.push('…');
    }
    let place_of = |at: usize| {
        let index = places.partition_point(|(from, _)| *from < at);
        places.get(index).map_or(end, |(_, to)| *to)
    };
    let end_of = |range: &Range<usize>| {
        let index = places.partition_point(|(from, _)| *from < range.end);
        let last = index.checked_sub(1).and_then(|index| places.get(index));
        last.map_or(end, |(_, to)| {
            let letter = line.get(*to..).and_then(|rest| rest.chars().next());
            to + letter.map_or(0, char::len_utf8)
        })
    };
    let matches = ranges.iter().map(|range| place_of(range.start)..end_of(range)).collect();
    Snippet { matches, text: line, source: None }
}
