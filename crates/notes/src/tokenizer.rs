//! The tokenizer: from text to the terms of an index.
//!
//! A term is a word in lower case, folded to plain Latin letters without accents, and stemmed in
//! the language of its text. Everything but letters and digits separates words: `foo-bar`,
//! `foo/bar.rs` and `foo_bar` are several words each. Chinese, Japanese and Korean text, which has
//! no spaces, is indexed by bigrams: every pair of adjacent characters is a term.
//!
//! Text is indexed by its stems and, where they differ, by the original words as well (see
//! [`variants`]). Stems alone would break prefix search: `organizatio*` is a prefix of the word but
//! not of its stem `organ`. Original words alone would require a query to be expanded to every
//! inflected form, and would split the document frequency of a word among its forms, so that the
//! idf of each is too high. The original words have no positions, and those of the body have a
//! low weight, so they add matches without distorting the ranking.
//!
//! Terms are compared byte by byte, so notes and queries must be tokenized alike. Any change of the
//! terms of a text requires a new format version of the index.

mod detection;
mod english;
mod irregular;
mod language;
mod lexicon;
// rustfmt would put every word with non-ASCII letters on a line of its own.
#[rustfmt::skip]
mod stop_words;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::iter;
use std::ops::{Range, RangeInclusive};

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::permalink::undecomposed;

pub use language::Language;
pub use lexicon::{Found, Lexicon};

/// Longer words are truncated.
const TERM_SIZE_BYTES_MAX: usize = 64;
/// Shorter words have no suffix; longer ones are not words.
const STEMMED_CHARS: RangeInclusive<usize> = 3..=40;

/// A term and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The term.
    pub term: String,
    /// The byte range of the word in the text.
    pub range: Range<usize>,
}

/// Returns the tokens of a text, in order.
pub fn tokenize(text: &str, language: Language) -> Vec<Token> {
    tokenize_matching(text, language, |_| true)
}

/// Returns the tokens of a text in order, with empty terms for words that `is_wanted` rejects.
///
/// Stemming is most of the cost, and a snippet needs the stems of only a few words.
pub(crate) fn tokenize_matching(
    text: &str,
    language: Language,
    is_wanted: impl Fn(Prefix) -> bool,
) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 6);
    each_run(text, |run, range| match run {
        Run::Word => {
            let written = text.get(range.clone()).unwrap_or_default();
            if has_prefix(written, language) && !is_wanted(Prefix::of(written, language)) {
                return tokens.push(Token { term: String::new(), range });
            }
            let term = term(written, language);
            if !term.is_empty() {
                tokens.push(Token { term, range });
            }
        }
        Run::Ideographs => bigrams(text, range, &mut tokens),
    });
    tokens
}

/// Returns whether the term of a word begins with the same letter. It may not if the letter has an
/// accent; `l'eau` becomes `eau`, and the Dutch `gelopen` becomes `loop`.
fn has_prefix(written: &str, language: Language) -> bool {
    let is_participle = language == Language::Dutch && written.starts_with(['g', 'G']);
    let is_elided = language != Language::English && written.contains('\'');
    written.is_ascii() && !is_participle && !is_elided
}

/// Calls `visit` with each term of some texts, in order.
///
/// Cheaper than [`tokenize`] where no places are needed: repeated words are stemmed once.
pub fn each_term<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    language: Language,
    mut visit: impl FnMut(&str),
) {
    let mut lexicon = Lexicon::default();
    for text in texts {
        lexicon.read(text, language, |found| match found {
            Found::Term(term) => visit(term),
            Found::Variant(_) => {}
        });
    }
}

/// Returns the terms of texts that [`tokenize`] does not return, but that they should be found by
/// as well: unstemmed words (for prefixes), the parts of identifiers such as `parseJson2`, and the
/// last character of a run of ideographs, which is not the first of any bigram.
pub fn variants<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    language: Language,
) -> BTreeSet<String> {
    let mut lexicon = Lexicon::default();
    let mut variants = BTreeSet::new();
    for text in texts {
        lexicon.read(text, language, |found| match found {
            Found::Term(_) => {}
            Found::Variant(variant) => {
                variants.insert(variant.to_owned());
            }
        });
    }
    variants
}

/// The first letters of an ASCII word or a term, as far as stemming preserves them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefix {
    first: Option<u8>,
    second: Option<u8>,
}

impl Prefix {
    /// Returns the prefixes of all words that may have this term.
    pub(crate) fn of_words(term: &str, language: Language) -> impl Iterator<Item = Self> + use<> {
        let prefix = Self::of(term, language);
        let forms = (language == Language::English).then(irregular::forms).into_iter().flatten();
        let forms = forms.filter(move |(_, base)| Self::of(base, language).is_like(prefix));
        iter::once(prefix).chain(forms.map(move |(form, _)| Self::of(form, language)))
    }

    pub(crate) fn of(word: &str, language: Language) -> Self {
        let mut letters = word.bytes().filter(|byte| *byte != b'\'');
        // Stemming turns a final `y` into `i`, which may be the second letter.
        let mut next = || match letters.next()?.to_ascii_lowercase() {
            b'y' => Some(b'i'),
            letter => Some(letter),
        };
        let first = next();
        // Snowball also adds and drops vowels: the Dutch `apen` becomes `aap`.
        let second = if language == Language::English { next() } else { None };
        Self { first, second }
    }

    /// Returns whether a word with one prefix may have a term with the other.
    pub(crate) fn is_like(self, other: Self) -> bool {
        self.first == other.first
            && (self.second == other.second || self.second.is_none() || other.second.is_none())
    }
}

/// Returns the distinct stems of a word in the given languages, the English one first.
pub fn stems(word: &str, languages: &[Language]) -> Vec<String> {
    let mut stems = Vec::with_capacity(languages.len());
    for language in english_first(languages) {
        let stem = term(word, language);
        if !stem.is_empty() && !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

/// Returns the languages in order, but English first if it is among them.
pub(crate) fn english_first(languages: &[Language]) -> impl Iterator<Item = Language> {
    let is_english = |language: &Language| *language == Language::English;
    let english = languages.iter().copied().filter(is_english);
    english.chain(languages.iter().copied().filter(move |language| !is_english(language)))
}

/// Returns the term of a word; empty for a lone accent.
fn term(written: &str, language: Language) -> String {
    stemmed(written, &folded(written), language)
}

/// Returns the stem of a word, given as written and folded.
fn stemmed(written: &str, folded_word: &str, language: Language) -> String {
    let Some(stemmer) = language.snowball() else { return english::stem(folded_word) };
    let is_letter = |it: char| it.is_alphabetic() || is_apostrophe(it) || is_combining_mark(it);
    if !STEMMED_CHARS.contains(&written.chars().count()) || !written.chars().all(is_letter) {
        return folded_word.to_owned();
    }
    // Unlike in English, folding must come last: Snowball distinguishes endings by their accents,
    // and recognizes the article of `l'école` by its apostrophe.
    let lower: String = without_possessive(written)
        .nfc()
        .flat_map(char::to_lowercase)
        .map(|letter| if is_apostrophe(letter) { '\'' } else { letter })
        .collect();
    let stem = folded(&stemmer.stem(&lower)).into_owned();
    if stem.is_empty() { folded_word.to_owned() } else { stem }
}

/// Calls `visit` with the [`variants`] of a run.
pub(crate) fn each_variant(
    run: Run,
    written: &str,
    language: Language,
    mut visit: impl FnMut(String),
) {
    match run {
        Run::Ideographs => {
            let last = clusters(written).pop().and_then(|last| written.get(last));
            last.map(composed).into_iter().for_each(visit);
        }
        Run::Word => {
            let word = folded(written);
            if !word.is_empty() && stemmed(written, &word, language) != word {
                visit(word.into_owned());
            }
            for part in parts(written).into_iter().chain(after_elision(written)) {
                let word = folded(part);
                visit(stemmed(part, &word, language));
                visit(word.into_owned());
            }
        }
    }
}

/// Splits an identifier where it changes between lower case, upper case and digits; empty if it
/// does not.
pub(crate) fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return parts;
    }
    let mut start = 0;
    let classes = word.char_indices().map(|(at, letter)| (at, CharClass::of(letter)));
    let classes: Vec<_> = classes.collect();
    for window in classes.windows(2) {
        let [(before, first), (at, second)] = window else { continue };
        let boundary = match (first, second) {
            // `HTTPServer`: the last capital starts the next part.
            (CharClass::Upper, CharClass::Lower) if *before > start => Some(*before),
            (CharClass::Upper, CharClass::Lower) => None,
            (first, second) => (first != second).then_some(*at),
        };
        if let Some(boundary) = boundary.filter(|boundary| *boundary > start) {
            parts.extend(word.get(start..boundary));
            start = boundary;
        }
    }
    if start > 0 {
        parts.extend(word.get(start..));
    }
    parts
}

/// Returns the word after an elision, as in `l'école`.
fn after_elision(word: &str) -> Option<&str> {
    let (short, rest) = word.split_once(is_apostrophe)?;
    let is_long = rest.chars().nth(1).is_some() && !rest.contains(is_apostrophe);
    (short.chars().count() <= 2 && is_long).then_some(rest)
}

/// Folds a word: lower case, plain Latin letters without accents, no possessive `'s`.
pub(crate) fn folded(written: &str) -> Cow<'_, str> {
    let written = without_possessive(written);
    let is_accent = |letter: &char| ('\u{300}'..='\u{36f}').contains(letter);
    let folded: Cow<'_, str> = if written.is_ascii() {
        if written.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            Cow::Borrowed(written)
        } else {
            let kept = written.chars().filter(|letter| !is_apostrophe(*letter));
            Cow::Owned(kept.map(|letter| letter.to_ascii_lowercase()).collect())
        }
    } else {
        let decomposed = written.nfkd().filter(|letter| !is_accent(letter));
        // Decomposition may produce separators, which a term must not contain: `½` becomes `1⁄2`.
        let lower = decomposed.flat_map(char::to_lowercase).filter(|letter| is_letter(*letter));
        let mut plain = String::with_capacity(written.len());
        for letter in lower.nfc() {
            match undecomposed(letter) {
                Some(letters) => plain.push_str(letters),
                None => plain.push(letter),
            }
            // The rest is truncated anyway. Some characters decompose to eighteen.
            if plain.len() > TERM_SIZE_BYTES_MAX {
                break;
            }
        }
        Cow::Owned(plain)
    };
    truncated(folded)
}

fn without_possessive(written: &str) -> &str {
    let endings = ["'s", "’s", "'S", "’S"];
    endings.iter().find_map(|ending| written.strip_suffix(ending)).unwrap_or(written)
}

fn truncated(word: Cow<'_, str>) -> Cow<'_, str> {
    if word.len() <= TERM_SIZE_BYTES_MAX {
        return word;
    }
    let end = (0..=TERM_SIZE_BYTES_MAX).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
    let mut word = word.into_owned();
    word.truncate(end);
    Cow::Owned(word)
}

/// Adds the bigrams of a run of ideographs, or the only character.
fn bigrams(text: &str, range: Range<usize>, tokens: &mut Vec<Token>) {
    let run = text.get(range.clone()).unwrap_or_default();
    let letters = clusters(run);
    let token = |part: Range<usize>| Token {
        term: composed(run.get(part.clone()).unwrap_or_default()),
        range: range.start + part.start..range.start + part.end,
    };
    if let [only] = letters.as_slice() {
        tokens.push(token(only.clone()));
    }
    for pair in letters.windows(2) {
        if let [first, second] = pair {
            tokens.push(token(first.start..second.end));
        }
    }
}

/// Returns the ranges of the characters in a run of ideographs. Characters that belong together,
/// such as the letters of a decomposed Korean syllable, are one.
fn clusters(run: &str) -> Vec<Range<usize>> {
    let mut clusters: Vec<Range<usize>> = Vec::with_capacity(run.len() / 3);
    for (at, letter) in run.char_indices() {
        let end = at + letter.len_utf8();
        match clusters.last_mut() {
            Some(last) if is_extender(letter) => last.end = end,
            Some(_) | None => clusters.push(at..end),
        }
    }
    clusters
}

/// Returns a character or bigram in composed form. Marks that extend a character are unlimited in
/// number, terms are not.
fn composed(written: &str) -> String {
    if written.contains(is_extender) {
        truncated(Cow::Owned(written.nfc().collect())).into_owned()
    } else {
        written.to_owned()
    }
}

/// Returns whether a character extends the one before it: a Korean vowel or final consonant, a
/// Japanese voicing mark.
fn is_extender(letter: char) -> bool {
    matches!(letter, '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}' | '\u{3099}' | '\u{309a}')
}

/// The kind of a run of letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// A word.
    Word,
    /// Characters of a script that has no spaces.
    Ideographs,
}

/// Calls `visit` with each run of letters in a text.
pub(crate) fn each_run(text: &str, mut visit: impl FnMut(Run, Range<usize>)) {
    let mut open: Option<(Run, usize)> = None;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        // Most words are plain, and are skipped as a whole: letter by letter, finding words would
        // take longer than looking them up.
        let plain = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let (run, size) = if plain > 0 { (Some(Run::Word), plain) } else { next_run(rest, open) };
        if open.map(|(run, _)| run) != run {
            if let Some((kind, start)) = open.take() {
                visit(kind, start..at);
            }
            open = run.map(|run| (run, at));
        }
        at += size;
    }
    if let Some((kind, start)) = open {
        visit(kind, start..text.len());
    }
}

/// Returns the run that the first character of a text belongs to, and the size of the character.
fn next_run(text: &str, open: Option<(Run, usize)>) -> (Option<Run>, usize) {
    let mut letters = text.chars();
    let Some(letter) = letters.next() else { return (None, 0) };
    let joins = is_apostrophe(letter)
        && matches!(open, Some((Run::Word, _)))
        && letters.next().is_some_and(|next| run_of(next) == Some(Run::Word));
    (if joins { Some(Run::Word) } else { run_of(letter) }, letter.len_utf8())
}

fn run_of(letter: char) -> Option<Run> {
    if letter.is_ascii() {
        letter.is_ascii_alphanumeric().then_some(Run::Word)
    } else if is_ideograph(letter) {
        Some(Run::Ideographs)
    } else {
        is_letter(letter).then_some(Run::Word)
    }
}

fn is_letter(letter: char) -> bool {
    // Combining accents belong to the word.
    letter.is_alphanumeric() || is_combining_mark(letter)
}

fn is_apostrophe(letter: char) -> bool {
    matches!(letter, '\'' | '’')
}

/// Returns whether a character belongs to a script that has no spaces between words.
pub(crate) fn is_ideograph(letter: char) -> bool {
    matches!(letter,
        '\u{2e80}'..='\u{2fdf}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3100}'..='\u{318f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{d7b0}'..='\u{d7ff}'
        | '\u{20000}'..='\u{3ffff}'
    ) && (letter.is_alphanumeric() || is_extender(letter))
}

/// The kind of a character in an identifier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Lower,
    Upper,
    Digit,
}

impl CharClass {
    fn of(letter: char) -> Self {
        if letter.is_numeric() {
            Self::Digit
        } else if letter.is_uppercase() {
            Self::Upper
        } else {
            Self::Lower
        }
    }
}
