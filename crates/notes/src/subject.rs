//! The words that say what a text is about.
//!
//! A prompt or a file is no query: most of its words are there for grammar, for courtesy or because a
//! request needs a verb. Those are taken out or marked here; how rare the others are, only the searched
//! texts can tell.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

use crate::tokenizer::{Language, Run, each_run, folded, is_ideograph, stems, tokenize};

/// A distinct word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectWord<'t> {
    /// The word as written where it first occurs; a pair of characters in a script without spaces.
    pub written: &'t str,
    /// How often it occurs, in any inflection.
    pub count: usize,
    /// Whether it may say what the text is about.
    pub kind: SubjectKind,
}

impl SubjectWord<'_> {
    fn promise(&self) -> f64 {
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let length = match self.kind {
            SubjectKind::Topic => number(self.written.chars().count().min(LONG_WORD_CHARS)),
            SubjectKind::Pair => PAIR_LENGTH,
            SubjectKind::Request => 1.0,
        };
        length * (1.0 + number(self.count).ln())
    }
}

/// How much a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// It may name what the text is about.
    Topic,
    /// It is a pair of characters in a script without spaces, which may be a word or parts of two.
    Pair,
    /// It is a word of requests, such as `write` or `file`, and means little without others.
    Request,
}

/// The length from which on a word is as promising as any.
const LONG_WORD_CHARS: usize = 10;
/// The length of a pair of characters, which is as rare as a word of this many letters.
const PAIR_LENGTH: f64 = 6.0;
/// Shorter words of letters name nothing; longer ones are keys and hashes.
const WORD_CHARS: std::ops::RangeInclusive<usize> = 2..=40;

/// Returns at most `limit` distinct words of a text, the most promising first, without stop words and
/// words of courtesy.
///
/// A frequent word says what the text is about, and a long one is rarely a common one; which of them are
/// rare indeed is not known here. Equal ones are in the order of the text.
pub fn subject_words(text: &str, limit: usize) -> Vec<SubjectWord<'_>> {
    let language = Language::detect(text);
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut words: Vec<SubjectWord<'_>> = Vec::new();
    let mut add = |term: String, written, kind| match places.get(&term) {
        Some(place) => {
            if let Some(word) = words.get_mut(*place) {
                word.count += 1;
            }
        }
        None => {
            places.insert(term, words.len());
            words.push(SubjectWord { written, count: 1, kind });
        }
    };
    // The same few words make up most of a text, and each is stemmed once.
    let mut known: HashMap<&str, Option<String>> = HashMap::new();
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    each_run(text, |run, range| match run {
        Run::Word => {
            let written = part(range);
            let term = known.entry(written).or_insert_with(|| subject_term(written, language));
            if let Some(term) = term.clone() {
                let is_request = REQUEST.binary_search(&term.as_str()).is_ok();
                let kind = if is_request { SubjectKind::Request } else { SubjectKind::Topic };
                add(term, written, kind);
            }
        }
        Run::Ideographs => {
            for token in tokenize(part(range.clone()), language) {
                let written = part(range.start + token.range.start..range.start + token.range.end);
                let is_courtesy = COURTESY_OF_IDEOGRAPHS.iter().any(|it| it.contains(&token.term));
                if !is_courtesy {
                    add(token.term, written, SubjectKind::Pair);
                }
            }
        }
    });
    words.sort_by(|left, right| right.promise().total_cmp(&left.promise()));
    words.truncate(limit);
    words
}

/// Returns the term that a word is counted by; `None` if it says nothing.
fn subject_term(written: &str, language: Language) -> Option<String> {
    let lower = written.to_lowercase().replace('’', "'");
    let is_stop_word = |language: Language| language.is_stop_word(&lower);
    if !WORD_CHARS.contains(&written.chars().count())
        || is_stop_word(language)
        || is_stop_word(Language::English)
        || COURTESY.binary_search(&&*folded(written)).is_ok()
    {
        return None;
    }
    stems(written, &[language]).pop().filter(|term| !term.contains(is_ideograph))
}

/// Words of courtesy, folded and sorted. They are in every prompt and in no memory that is meant.
#[rustfmt::skip]
const COURTESY: [&str; 44] = [
    "adios", "bitte", "bonjour", "bonsoir", "buenas", "buenos", "bye", "ciao", "danke", "evening",
    "fine", "gracias", "gruss", "grusse", "hallo", "hello", "hey", "hi", "hola", "kind", "merci",
    "moin", "morning", "nice", "ok", "okay", "please", "regards", "salut", "servus", "sorry", "thank",
    "thanks", "thx", "tschuss", "welcome", "yeah", "yes", "yo", "здравствуите", "пожалуиста",
    "пока", "привет", "спасибо",
];

/// Greetings in scripts without spaces. A pair of characters that is part of one says nothing.
const COURTESY_OF_IDEOGRAPHS: [&str; 8] = [
    "你好吗",
    "您好",
    "谢谢你",
    "再见",
    "こんにちは",
    "こんばんは",
    "ありがとうございます",
    "안녕하세요",
];

/// The stems of words that requests are made of, sorted.
#[rustfmt::skip]
const REQUEST: [&str; 100] = [
    "add", "answer", "ask", "bad", "befor", "best", "better", "big", "bit", "bring", "build", "call",
    "case", "chang", "check", "code", "come", "comput", "correct", "creat", "current", "day", "delet",
    "describ", "detail", "differ", "do", "document", "done", "each", "easi", "edit", "everyth",
    "exampl", "exist", "explain", "file", "find", "first", "fix", "follow", "function", "get", "give",
    "go", "good", "great", "happen", "help", "here", "idea", "implement", "improv", "keep", "know",
    "last", "like", "line", "list", "littl", "look", "lot", "make", "mean", "more", "name", "need",
    "new", "next", "now", "number", "old", "one", "open", "part", "problem", "project", "question",
    "read", "realli", "right", "run", "say", "see", "set", "short", "show", "start", "tell", "text",
    "thing", "think", "time", "today", "two", "understand", "updat", "use", "want", "write",
];
