//! Passages: the parts of a memory that have a vector each.
//!
//! An encoder reads a few hundred tokens and reduces them to one vector. The vector of a long text
//! would be that of its beginning, or of nothing in particular. So a passage has at most as many tokens as
//! the encoder reads, and as it would otherwise be torn out of its context, it comes with the title of the
//! memory and the headings that it is below.

#[cfg(test)]
mod tests;

use quipu_notes::{LineKind, Note, Outline};
use quipu_vectors::Encoder;

use crate::index::Lines;

/// How many tokens a passage has at most, even if the encoder reads more: the longer it is, the less of it
/// is about any one thing. With half as many, the vectors take twice the memory and find hardly more.
const TOKENS_MAX: usize = 192;
/// How many it may have at least, even if the encoder reads less.
const TOKENS_MIN: usize = 32;

/// How many bytes count as a token at least. A word that the encoder does not know may be one token, however
/// long it is.
const TOKEN_SIZE_BYTES_MAX: usize = 16;

/// Which part of a passage its headings may be.
const TRAIL_SHARE: usize = 4;

/// The maximum number of passages of a memory, which one of 100 kB of prose, code or ideographs does not
/// reach. The passages of one with more tokens are longer, and the encoder reads the beginning of each.
const PASSAGES_MAX: usize = 256;

/// A part of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) lines: Lines,
    /// The title of the memory, the headings above the passage, and its text.
    pub(crate) text: String,
}

/// Splits a memory into passages, at the ends of lines and, if possible, before headings. A memory
/// without text is its title.
pub(crate) fn passages(title: &str, text: &str, encoder: &dyn Encoder) -> Vec<Passage> {
    let body = Note::parse_header(text).body;
    let before = text.get(..body.start).unwrap_or_default();
    let first_line = before.matches('\n').count() + 1;
    let numbered = (first_line..).zip(text.get(body).unwrap_or_default().lines());
    let tokens = |text: &str| encoder.tokens(text).max(text.len().div_ceil(TOKEN_SIZE_BYTES_MAX));
    let lines: Vec<_> = numbered
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(number, text)| Line { number: to_number(number), text, tokens: tokens(text) })
        .collect();
    let mut tokens_max = encoder.tokens_max().clamp(TOKENS_MIN, TOKENS_MAX);
    loop {
        let splitter = Splitter::new(title, tokens_max, &tokens);
        let mut passages = splitter.split(&lines);
        if passages.is_empty() {
            let line = to_number(first_line);
            let lines = Lines { first: line, last: line };
            passages.push(Passage { lines, text: title.to_owned() });
        }
        if passages.len() <= PASSAGES_MAX {
            return passages;
        }
        tokens_max = tokens_max.saturating_mul(2);
    }
}

fn to_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// A line of the body, or a part of one.
#[derive(Clone, Copy)]
struct Line<'t> {
    number: u32,
    text: &'t str,
    tokens: usize,
}

/// Counts the tokens of a text.
type Tokens<'e> = &'e dyn Fn(&str) -> usize;

struct Splitter<'t, 'e> {
    title: &'t str,
    tokens_max: usize,
    tokens: Tokens<'e>,
    outline: Outline,
    passages: Vec<Passage>,
    /// The passage that lines are added to.
    part: Option<Part>,
    /// Headings whose text follows, and the trail that the first of them is below.
    headings: Vec<Line<'t>>,
    above: String,
}

/// A passage to which lines are added.
struct Part {
    passage: Passage,
    tokens: usize,
}

impl<'t, 'e> Splitter<'t, 'e> {
    fn new(title: &'t str, tokens_max: usize, tokens: Tokens<'e>) -> Self {
        Self {
            title,
            tokens_max,
            tokens,
            outline: Outline::default(),
            passages: Vec::new(),
            part: None,
            headings: Vec::new(),
            above: String::new(),
        }
    }

    fn split(mut self, lines: &[Line<'t>]) -> Vec<Passage> {
        for line in lines {
            match self.outline.read(line.text) {
                LineKind::Heading(_) => self.add_heading(*line),
                LineKind::Text | LineKind::Empty => self.add_text(*line),
            }
        }
        self.add_headings();
        self.end();
        self.passages
    }

    /// Keeps a heading for the text below it: one at the end of a passage would be torn from what it is
    /// about.
    fn add_heading(&mut self, line: Line<'t>) {
        let is_half_full = |part: &Part| part.tokens > self.tokens_max / 2;
        if self.part.as_ref().is_some_and(is_half_full) {
            self.end();
        }
        if self.headings.is_empty() {
            let headings = self.outline.headings();
            self.above = self.trail(headings.get(..headings.len() - 1).unwrap_or_default());
        }
        self.headings.push(line);
        if self.heading_tokens() + (self.tokens)(&self.above) > self.tokens_max / 2 {
            self.add_headings();
        }
    }

    fn heading_tokens(&self) -> usize {
        self.headings.iter().map(|line| line.tokens).sum()
    }

    /// Adds the headings whose text has not come yet.
    fn add_headings(&mut self) {
        let headings = std::mem::take(&mut self.headings);
        let tokens: usize = headings.iter().map(|line| line.tokens).sum();
        if self.room().is_some_and(|room| tokens > room) {
            self.end();
        }
        let above = std::mem::take(&mut self.above);
        for heading in headings {
            self.add(heading, &above);
        }
    }

    fn add_text(&mut self, line: Line<'t>) {
        let tokens = self.heading_tokens() + line.tokens;
        if self.room().is_some_and(|room| tokens > room) {
            self.end();
        }
        self.add_headings();
        if self.room().is_some_and(|room| line.tokens <= room) {
            self.append(line);
        } else {
            let trail = self.trail(self.outline.headings());
            self.add(line, &trail);
        }
    }

    /// Adds a line to the passage, or to a new one below some headings. What does not fit goes on in further
    /// passages of the same line.
    fn add(&mut self, line: Line<'t>, trail: &str) {
        let all = self.tokens_max.saturating_sub((self.tokens)(trail));
        let room = self.room().unwrap_or(all);
        let is_whole = line.tokens <= room;
        let parts = if is_whole { vec![line.text] } else { self.parts(line.text, (room, all)) };
        for (place, text) in parts.into_iter().enumerate() {
            if place > 0 {
                self.end();
            }
            if self.part.is_none() {
                self.begin(line.number, trail.to_owned());
            }
            let tokens = if is_whole { line.tokens } else { (self.tokens)(text) };
            self.append(Line { text, tokens, ..line });
        }
    }

    /// Returns how many tokens the passage has left; `None` if there is none.
    fn room(&self) -> Option<usize> {
        self.part.as_ref().map(|part| self.tokens_max.saturating_sub(part.tokens))
    }

    fn begin(&mut self, number: u32, trail: String) {
        let (tokens, lines) = ((self.tokens)(&trail), Lines { first: number, last: number });
        self.part = Some(Part { passage: Passage { lines, text: trail }, tokens });
    }

    fn append(&mut self, line: Line<'t>) {
        let Some(Part { passage, tokens }) = &mut self.part else { return };
        passage.text.push('\n');
        passage.text.push_str(line.text);
        passage.lines.last = line.number;
        *tokens += line.tokens;
    }

    fn end(&mut self) {
        self.passages.extend(self.part.take().map(|part| part.passage));
    }

    /// Returns the title and some headings, as far as they leave room for a text.
    fn trail(&self, headings: &[(usize, String)]) -> String {
        let headings = headings.iter().map(|(_, text)| text.as_str());
        let below = headings.filter(|text| *text != self.title);
        let trail = below.fold(self.title.to_owned(), |trail, text| format!("{trail} > {text}"));
        let most = self.tokens_max / TRAIL_SHARE;
        if (self.tokens)(&trail) <= most {
            return trail;
        }
        self.parts(&trail, (most, most)).first().map_or_else(String::new, |&it| it.to_owned())
    }

    /// Splits a line between words into parts that have room: the first one in a passage that has begun, the
    /// others in passages of their own.
    fn parts<'l>(&self, line: &'l str, (mut room, next_room): (usize, usize)) -> Vec<&'l str> {
        let mut parts = Vec::new();
        let (mut start, mut at, mut used) = (0, 0, 0);
        for word in self.words(line, next_room.max(1)) {
            let tokens = (self.tokens)(word);
            if used > 0 && used + tokens > room {
                parts.extend(line.get(start..at));
                (start, used, room) = (at, 0, next_room);
            }
            used += tokens;
            at += word.len();
        }
        parts.extend(line.get(start..).filter(|rest| !rest.is_empty()));
        parts
    }

    /// Returns the words of a line with the spaces after them. Those that take more than half of the room are
    /// cut: scripts without spaces, and encoded data.
    fn words<'l>(&self, line: &'l str, room: usize) -> impl Iterator<Item = &'l str> {
        let most = (room / 2).max(1);
        line.split_inclusive(char::is_whitespace).flat_map(move |word| {
            let tokens = (self.tokens)(word);
            let size_bytes =
                if tokens > most { (word.len() * most / tokens).max(1) } else { word.len() };
            pieces(word, size_bytes)
        })
    }
}

/// Cuts a text into pieces of about this size.
fn pieces(text: &str, size_bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, left) = rest.split_at_checked(rest.ceil_char_boundary(size_bytes))?;
        rest = left;
        Some(piece).filter(|piece| !piece.is_empty())
    })
}
