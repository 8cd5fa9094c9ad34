//! Passages: the parts of a memory that have a vector each.
//!
//! An encoder reads a few hundred words and reduces them to one vector. The vector of a long text
//! would be that of its beginning, or of nothing in particular.

use quipu_notes::Note;

use crate::index::Lines;

/// About how many words a passage has: what small encoders read before they stop reading.
const WORDS: usize = 200;

/// The maximum number of passages of a memory. The passages of a longer memory are longer.
const PASSAGES_MAX: usize = 64;

/// A part of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) lines: Lines,
    /// The title of the memory and the text of the passage.
    pub(crate) text: String,
}

/// Splits a memory into passages, at the ends of lines and, if possible, before headings. A memory
/// without text is its title.
pub(crate) fn passages(title: &str, text: &str) -> Vec<Passage> {
    let body = Note::parse_header(text).body;
    let before = text.get(..body.start).unwrap_or_default();
    let first_line = before.matches('\n').count() + 1;
    let body = text.get(body).unwrap_or_default();
    let words: usize = body.lines().map(count_words).sum();
    // Passages end at lines and before headings, so they may be half as long as they could be.
    let most = WORDS.max(words.div_ceil(PASSAGES_MAX / 2));
    let mut builder = Builder { title, most, passages: Vec::new(), part: None, words: 0 };
    for (number, line) in (first_line..).zip(body.lines()) {
        builder.add_line(u32::try_from(number).unwrap_or(u32::MAX), line);
    }
    builder.end();
    let mut passages = builder.passages;
    if passages.is_empty() {
        let line = u32::try_from(first_line).unwrap_or(u32::MAX);
        let lines = Lines { first: line, last: line };
        passages.push(Passage { lines, text: title.to_owned() });
    }
    passages.truncate(PASSAGES_MAX);
    passages
}

/// Counts words, and the characters of scripts that do not separate words as half a word each.
fn count_words(line: &str) -> usize {
    let others = line.chars().filter(|letter| *letter >= '\u{2e80}').count();
    line.split_whitespace().count() + others / 2
}

struct Builder<'t> {
    title: &'t str,
    most: usize,
    passages: Vec<Passage>,
    part: Option<Passage>,
    words: usize,
}

impl Builder<'_> {
    fn add_line(&mut self, number: u32, line: &str) {
        let words = count_words(line);
        if words == 0 {
            return;
        }
        let is_heading = line.starts_with('#') && self.words > self.most / 2;
        if is_heading || self.words + words > self.most {
            self.end();
        }
        if words <= self.most {
            self.add(number, line, words);
            return;
        }
        // A paragraph in one line: its parts are in the same line.
        for part in parts(line, self.most) {
            self.add(number, part, self.most);
            self.end();
        }
    }

    fn add(&mut self, number: u32, text: &str, words: usize) {
        let title = self.title;
        let part = self.part.get_or_insert_with(|| Passage {
            lines: Lines { first: number, last: number },
            text: title.to_owned(),
        });
        part.text.push('\n');
        part.text.push_str(text);
        part.lines.last = number;
        self.words += words;
    }

    fn end(&mut self) {
        self.passages.extend(self.part.take());
        self.words = 0;
    }
}

/// Splits a line after about so many words.
fn parts(line: &str, words: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut rest, mut start, mut count) = (line, 0, 0);
    for (at, letter) in line.char_indices() {
        // Two ideographs are about a word, as in `count_words`.
        count += if letter.is_whitespace() { 2 } else { usize::from(letter >= '\u{2e80}') };
        if count >= 2 * words {
            let (part, left) = rest.split_at_checked(at - start).unwrap_or((rest, ""));
            parts.push(part);
            (rest, start, count) = (left, at, 0);
        }
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(passages: &[Passage]) -> Vec<(u32, u32)> {
        passages.iter().map(|passage| (passage.lines.first, passage.lines.last)).collect()
    }

    #[test]
    fn a_short_memory_is_one_passage_with_its_title() {
        let passages = passages("Tea", "---\ntitle: Tea\n---\n\nNever boil it.\nServe it hot.\n");
        assert_eq!(lines(&passages), [(5, 6)]);
        assert_eq!(passages[0].text, "Tea\nNever boil it.\nServe it hot.");
    }

    #[test]
    fn a_memory_without_text_is_its_title() {
        for text in ["", "\n\n", "---\ntitle: Tea\n---\n"] {
            let passages = passages("Tea", text);
            assert_eq!(passages.len(), 1);
            assert_eq!(passages[0].text, "Tea");
        }
    }

    #[test]
    fn long_memories_are_split_at_lines() {
        let line = "ten words that are the same in every line here\n";
        let passages = passages("T", &line.repeat(50));
        assert_eq!(lines(&passages), [(1, 20), (21, 40), (41, 50)]);
    }

    #[test]
    fn passages_begin_at_headings() {
        let line = "ten words that are the same in every line here\n";
        let text = format!("{}## Next\n{}", line.repeat(12), line.repeat(12));
        assert_eq!(lines(&passages("T", &text)), [(1, 12), (13, 25)]);
    }

    #[test]
    fn every_word_of_a_long_line_is_in_a_passage() {
        let words: Vec<_> = (0..1000).map(|number| format!("w{number}")).collect();
        let passages = passages("T", &words.join(" "));
        assert!((5..8).contains(&passages.len()), "{}", passages.len());
        let all: Vec<_> =
            passages.iter().flat_map(|passage| passage.text.split_whitespace()).collect();
        assert_eq!(all.iter().filter(|word| **word != "T").count(), 1000);
        assert!(passages.iter().all(|passage| passage.lines == Lines { first: 1, last: 1 }));
    }

    #[test]
    fn scripts_without_spaces_are_split() {
        let passages = passages("T", &"漢字".repeat(1000));
        assert!((5..8).contains(&passages.len()), "{}", passages.len());
        assert_eq!(passages.iter().map(|it| it.text.matches('漢').count()).sum::<usize>(), 1000);
    }

    #[test]
    fn the_number_of_passages_is_bounded_and_the_end_is_in_one() {
        let mut text = "a line of five words\n".repeat(6_000);
        text.push_str("the end of all\n");
        let passages = passages("T", &text);
        assert!(passages.len() <= PASSAGES_MAX, "{}", passages.len());
        assert!(passages.last().unwrap().text.ends_with("the end of all"));
    }
}
