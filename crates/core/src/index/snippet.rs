//! Snippets: the part of a text that shows why it was found.

use std::ops::Range;

use super::Phrase;
use super::terms::{Beginning, each_run, further_terms, terms_like};

/// A part of a text with the matches in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The part, on one line.
    pub text: String,
    /// The bytes of `text` that match, in their order.
    pub matches: Vec<Range<usize>>,
}

/// How long a snippet is, in characters.
const CHARS_MAX: usize = 240;
/// How much of that stands before the first match.
const LEAD_CHARS: usize = 40;

/// Returns the part of a text in which the most different phrases stand.
///
/// If none does, it is the beginning of the text.
pub fn snippet(text: &str, phrases: &[&Phrase]) -> Snippet {
    let mut found = matches(text, phrases);
    if found.is_empty() {
        found = further_matches(text, phrases);
    }
    let best = best_start(&found);
    let start = best.map_or(0, |at| back(text, at, LEAD_CHARS));
    let end = forward(text, start, CHARS_MAX);
    let shown = found.iter().filter(|found| found.range.start >= start && found.range.end <= end);
    on_one_line(text, start..end, &united(shown.map(|found| &found.range)))
}

/// Makes one range of those that overlap, which phrases with a word in common do.
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

struct Found {
    phrase: usize,
    range: Range<usize>,
}

fn matches(text: &str, phrases: &[&Phrase]) -> Vec<Found> {
    if phrases.is_empty() {
        return Vec::new();
    }
    let terms = phrases.iter().flat_map(|it| &it.terms);
    let wanted: Vec<_> = terms.flat_map(|term| Beginning::of(term).of_words()).collect();
    let all = terms_like(text, |word| wanted.iter().any(|term| word.is_like(*term)));
    let words: Vec<&str> = all.iter().map(|term| term.text.as_str()).collect();
    let mut found = Vec::new();
    for (number, phrase) in phrases.iter().enumerate() {
        let length = phrase.terms.len().max(1);
        for (place, window) in words.windows(length).enumerate() {
            if !phrase.fits(window) {
                continue;
            }
            let (first, last) = (all.get(place), all.get(place + length - 1));
            if let (Some(first), Some(last)) = (first, last) {
                found.push(Found { phrase: number, range: first.range.start..last.range.end });
            }
        }
    }
    found.sort_by_key(|found| (found.range.start, found.range.end));
    found
}

/// Returns the words that can be found otherwise than by their term: the beginning of a whole word,
/// a part of an identifier.
fn further_matches(text: &str, phrases: &[&Phrase]) -> Vec<Found> {
    let mut found = Vec::new();
    let words: Vec<_> =
        phrases.iter().enumerate().filter(|(_, phrase)| phrase.terms.len() == 1).collect();
    if words.is_empty() {
        return found;
    }
    each_run(text, |run, range| {
        let mut fitting = Vec::new();
        further_terms(run, text.get(range.clone()).unwrap_or_default(), |term| {
            fitting.extend(words.iter().filter(|(_, it)| it.fits(&[&term])).map(|(it, _)| *it));
        });
        fitting.dedup();
        found.extend(fitting.into_iter().map(|phrase| Found { phrase, range: range.clone() }));
    });
    found
}

/// Returns where the part with the most different phrases begins.
fn best_start(found: &[Found]) -> Option<usize> {
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
        // Texts with very many matches are as well shown by one of the first.
        if number > 500 {
            break;
        }
    }
    best
}

/// Returns the place some characters before, at the beginning of a word.
fn back(text: &str, at: usize, chars: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let start = before.char_indices().rev().nth(chars).map_or(0, |(start, _)| start);
    if start == 0 {
        return 0;
    }
    let lead = text.get(start..at).unwrap_or_default();
    let space = lead.find(char::is_whitespace).map_or(0, |space| space + 1);
    start + space.min(lead.len())
}

fn forward(text: &str, start: usize, chars: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    rest.char_indices().nth(chars).map_or(text.len(), |(end, _)| start + end)
}

/// Makes every run of white space one space and moves the matches along.
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
    Snippet { matches, text: line }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::TermQuery;
    use super::super::term_query::TEXT;
    use super::*;

    fn of(text: &str, words: &[&str]) -> Snippet {
        let queries: Vec<_> = words.iter().filter_map(|word| TermQuery::word(word, TEXT)).collect();
        let phrases: Vec<_> = queries.iter().flat_map(TermQuery::phrases).collect();
        snippet(text, &phrases)
    }

    fn marked(snippet: &Snippet) -> Vec<&str> {
        snippet.matches.iter().filter_map(|range| snippet.text.get(range.clone())).collect()
    }

    #[test]
    fn matches_are_shown_as_they_are_written() {
        let found = of("# Tea\n\nWe   like brewing\nGreen Teas here", &["tea", "brew"]);
        assert_eq!(found.text, "# Tea We like brewing Green Teas here");
        assert_eq!(marked(&found), ["Tea", "brewing", "Teas"]);
        assert_eq!(marked(&of("The men's club went home", &["go", "man"])), ["men's", "went"]);
    }

    #[test]
    fn beginnings_and_parts_of_words_are_shown() {
        let text = format!("{} the organization calls parseJson2", "x ".repeat(400));
        let prefix = TermQuery::prefix("organiz", TEXT).unwrap();
        assert_eq!(marked(&snippet(&text, &prefix.phrases())), ["organization"]);
        assert_eq!(marked(&of(&text, &["json"])), ["parseJson2"]);
        assert_eq!(marked(&of(&text, &["tea"])), [""; 0]);
    }

    #[test]
    fn matches_do_not_overlap() {
        assert_eq!(marked(&of("green tea", &["tea", "green-tea", "teas"])), ["green tea"]);
        assert_eq!(marked(&of("日本語", &["日本", "本語"])), ["日本語"]);
    }

    #[test]
    fn the_densest_part_is_shown() {
        let far = format!("tea {} green tea ceremony {}", "x ".repeat(400), "y ".repeat(400));
        let found = of(&far, &["tea", "ceremony"]);
        assert!(found.text.starts_with('…') && found.text.ends_with('…'));
        assert_eq!(marked(&found), ["tea", "ceremony"]);
        assert!(found.text.chars().count() <= CHARS_MAX + 2);
    }

    #[test]
    fn without_a_match_the_beginning_is_shown() {
        assert_eq!(of("a short text", &["tea"]).text, "a short text");
        assert_eq!(of("", &["tea"]), Snippet::default());
    }

    proptest! {
        #[test]
        fn matches_lie_inside_the_snippet(text in "[a-cé日本 \n…]{0,600}", word in "[a-cé日]{1,3}") {
            let found = of(&text, &[&word]);
            for range in &found.matches {
                prop_assert!(found.text.get(range.clone()).is_some_and(|part| !part.is_empty()));
            }
        }
    }
}
