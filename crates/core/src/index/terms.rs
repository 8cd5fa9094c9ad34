//! Texts as terms: what the index keeps and what a query asks for.
//!
//! A term is a word in lower case, in plain Latin letters without accents and without its English
//! ending. Everything that is not a letter or a digit separates words, so `foo-bar`, `foo/bar.rs`
//! and `foo_bar` are words beside each other. Chinese, Japanese and Korean text has no spaces, so
//! each pair of neighbouring characters is a term.
//!
//! Backends get terms and compare them byte by byte; all knowledge of language is here.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

use super::irregular;
use super::stem::stem;
use crate::note::undecomposed;

/// Longer words are cut; what follows cannot be searched for.
const TERM_SIZE_BYTES_MAX: usize = 64;
/// Stands between terms that are not beside each other in a text. No term of a text or a query
/// begins like it, because there it is a plain `a`.
pub(super) const TERM_APART: &str = "ª";

/// A term and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The term.
    pub text: String,
    /// The bytes of the text that it was made of.
    pub range: Range<usize>,
}

/// Returns the terms of a text in their order.
pub fn terms(text: &str) -> Vec<Term> {
    terms_like(text, |_| true)
}

/// Returns the terms of a text in their order. Of a word whose beginning is not wanted, only the
/// place is told: making its term takes longer than everything else.
pub(super) fn terms_like(text: &str, is_wanted: impl Fn(Beginning) -> bool) -> Vec<Term> {
    let mut found = Vec::with_capacity(text.len() / 6);
    each_run(text, |run, range| match run {
        Run::Word => {
            let written = text.get(range.clone()).unwrap_or_default();
            if written.is_ascii() && !is_wanted(Beginning::of(written)) {
                return found.push(Term { text: String::new(), range });
            }
            let term = term_of(written);
            if !term.is_empty() {
                found.push(Term { text: term, range });
            }
        }
        Run::Ideographs => pairs(text, range, &mut found),
    });
    found
}

/// How a word of ASCII letters and digits begins, or a term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    first: Option<u8>,
    second: Option<u8>,
}

impl Beginning {
    /// Returns how words may begin whose terms begin like this.
    pub(super) fn of_words(self) -> impl Iterator<Item = Self> {
        let irregular = irregular::forms().filter(move |(_, word)| Self::of(word).is_like(self));
        iter::once(self).chain(irregular.map(|(form, _)| Self::of(form)))
    }

    pub(super) fn of(word: &str) -> Self {
        let mut letters = word.bytes().filter(|byte| *byte != b'\'');
        // The stem of `oy` ends with an `i`.
        let mut next = || match letters.next()?.to_ascii_lowercase() {
            b'y' => Some(b'i'),
            letter => Some(letter),
        };
        Self { first: next(), second: next() }
    }

    /// Tells whether a word that begins with one may have a term that begins with the other.
    pub(super) fn is_like(self, other: Self) -> bool {
        self.first == other.first
            && (self.second == other.second || self.second.is_none() || other.second.is_none())
    }
}

/// Returns the term of a written word; nothing is left of a lone accent.
pub(super) fn term_of(written: &str) -> String {
    stem(&folded(written))
}

/// Calls `work` with what else a run can be found by: the word as it is written, the parts of an
/// identifier such as `parseJson2`, the last character of a run without spaces.
pub(super) fn further_terms(run: Run, written: &str, mut work: impl FnMut(String)) {
    match run {
        Run::Ideographs => {
            let last = clusters(written).pop().and_then(|last| written.get(last));
            last.map(composed).into_iter().for_each(work);
        }
        Run::Word => {
            let word = folded(written);
            if !word.is_empty() && stem(&word) != word {
                work(word.into_owned());
            }
            for part in parts(written).into_iter().chain(after_elision(written)) {
                let part = folded(part);
                work(stem(&part));
                work(part.into_owned());
            }
        }
    }
}

/// Returns the parts of a word that changes between small and capital letters or digits; none if
/// it has only one.
pub(super) fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return parts;
    }
    let mut start = 0;
    let kinds: Vec<_> = word.char_indices().map(|(at, letter)| (at, kind(letter))).collect();
    for window in kinds.windows(2) {
        let [(before, first), (at, second)] = window else { continue };
        let begins = match (first, second) {
            // `HTTPServer`: the last capital belongs to the next part.
            (Kind::Capital, Kind::Small) if *before > start => Some(*before),
            (Kind::Capital, Kind::Small) => None,
            (first, second) => (first != second).then_some(*at),
        };
        if let Some(begins) = begins.filter(|begins| *begins > start) {
            parts.extend(word.get(start..begins));
            start = begins;
        }
    }
    if start > 0 {
        parts.extend(word.get(start..));
    }
    parts
}

/// Returns the word that follows a shortened one, as in `l'école`.
fn after_elision(word: &str) -> Option<&str> {
    let (short, rest) = word.split_once(is_apostrophe)?;
    let is_long = rest.chars().nth(1).is_some() && !rest.contains(is_apostrophe);
    (short.chars().count() <= 2 && is_long).then_some(rest)
}

/// Returns the lower-case form of a written word in plain Latin letters, without accents and
/// without the ending of a possessor.
pub(super) fn folded(written: &str) -> Cow<'_, str> {
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
        // Decomposing may bring out what separates words, which a term cannot hold.
        let lower = decomposed.flat_map(char::to_lowercase).filter(|letter| is_letter(*letter));
        let mut plain = String::with_capacity(written.len());
        for letter in lower.nfc() {
            match undecomposed(letter) {
                Some(letters) => plain.push_str(letters),
                None => plain.push(letter),
            }
        }
        Cow::Owned(plain)
    };
    cut(folded)
}

fn without_possessive(written: &str) -> &str {
    let endings = ["'s", "’s", "'S", "’S"];
    endings.iter().find_map(|ending| written.strip_suffix(ending)).unwrap_or(written)
}

fn cut(word: Cow<'_, str>) -> Cow<'_, str> {
    if word.len() <= TERM_SIZE_BYTES_MAX {
        return word;
    }
    let end = (0..=TERM_SIZE_BYTES_MAX).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
    let mut word = word.into_owned();
    word.truncate(end);
    Cow::Owned(word)
}

/// Adds each pair of neighbouring characters, or the character if it is alone.
fn pairs(text: &str, range: Range<usize>, found: &mut Vec<Term>) {
    let run = text.get(range.clone()).unwrap_or_default();
    let letters = clusters(run);
    let term = |part: Range<usize>| Term {
        text: composed(run.get(part.clone()).unwrap_or_default()),
        range: range.start + part.start..range.start + part.end,
    };
    if let [only] = letters.as_slice() {
        found.push(term(only.clone()));
    }
    for pair in letters.windows(2) {
        if let [first, second] = pair {
            found.push(term(first.start..second.end));
        }
    }
}

/// Returns where the characters of a run without spaces stand. What is written as several, such as a
/// Korean syllable of single letters, is one.
fn clusters(run: &str) -> Vec<Range<usize>> {
    let mut clusters: Vec<Range<usize>> = Vec::with_capacity(run.len() / 3);
    for (at, letter) in run.char_indices() {
        let end = at + letter.len_utf8();
        match clusters.last_mut() {
            Some(last) if continues(letter) => last.end = end,
            Some(_) | None => clusters.push(at..end),
        }
    }
    clusters
}

fn composed(written: &str) -> String {
    if written.contains(continues) { written.nfc().collect() } else { written.to_owned() }
}

/// Tells whether a character is a part of the one before it: a vowel or final consonant of Korean, a
/// voicing mark of Japanese.
fn continues(letter: char) -> bool {
    matches!(letter, '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7ff}' | '\u{3099}' | '\u{309a}')
}

/// What kind of text a run of letters is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// A word.
    Word,
    /// Characters of a script without spaces.
    Ideographs,
}

/// Calls `work` with each run of letters in a text.
pub(super) fn each_run(text: &str, mut work: impl FnMut(Run, Range<usize>)) {
    let mut open: Option<(Run, usize)> = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let joins = is_apostrophe(letter)
            && matches!(open, Some((Run::Word, _)))
            && letters.peek().is_some_and(|(_, next)| run_of(*next) == Some(Run::Word));
        let run = if joins { Some(Run::Word) } else { run_of(letter) };
        if open.map(|(run, _)| run) != run {
            if let Some((kind, start)) = open.take() {
                work(kind, start..at);
            }
            open = run.map(|run| (run, at));
        }
    }
    if let Some((kind, start)) = open {
        work(kind, start..text.len());
    }
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
    // Accents written after their letter belong to the word.
    letter.is_alphanumeric() || unicode_normalization::char::is_combining_mark(letter)
}

fn is_apostrophe(letter: char) -> bool {
    matches!(letter, '\'' | '’')
}

/// Tells whether a character belongs to a script without spaces between words.
pub(super) fn is_ideograph(letter: char) -> bool {
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
    ) && (letter.is_alphanumeric() || continues(letter))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    Capital,
    Digit,
}

fn kind(letter: char) -> Kind {
    if letter.is_numeric() {
        Kind::Digit
    } else if letter.is_uppercase() {
        Kind::Capital
    } else {
        Kind::Small
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Vec<String> {
        terms(text).into_iter().map(|term| term.text).collect()
    }

    #[test]
    fn words_lose_case_accents_and_endings() {
        assert_eq!(of("The Cafés were CONNECTED"), ["the", "cafe", "were", "connect"]);
        assert_eq!(of("Größe naïve"), ["gross", "naiv"]);
        assert_eq!(
            of("Łódź Smørrebrød Straße Æther İstanbul"),
            ["lodz", "smorrebrod", "strass", "aether", "istanbul"]
        );
        assert_eq!(
            of("user's don’t James's JAMES’S James"),
            ["user", "dont", "jame", "jame", "jame"]
        );
    }

    #[test]
    fn everything_else_separates_words() {
        assert_eq!(
            of("foo-bar foo/bar.rs foo_bar"),
            ["foo", "bar", "foo", "bar", "rs", "foo", "bar"]
        );
        assert_eq!(of("v1.2.3 C++ #tag 'x'"), ["v1", "2", "3", "c", "tag", "x"]);
        assert_eq!(of(" \n\t…—"), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(of("日本語 tea茶"), ["日本", "本語", "tea", "茶"]);
        assert_eq!(of("こんにちは"), ["こん", "んに", "にち", "ちは"]);
        let mut further = Vec::new();
        further_terms(Run::Ideographs, "日本語", |term| further.push(term));
        assert_eq!(further, ["語"]);
    }

    #[test]
    fn composed_and_decomposed_letters_are_the_same() {
        for text in ["한국어", "がぎぐ", "café", "日本語が"] {
            let decomposed: String = text.nfd().collect();
            assert_eq!(of(&decomposed), of(text), "{text}");
        }
        let decomposed: String = "한국".nfd().collect();
        assert_eq!(terms(&decomposed)[0].range, 0..decomposed.len());
    }

    #[test]
    fn what_follows_a_shortened_word_is_found_too() {
        let further = |text: &str| {
            let mut found = Vec::new();
            further_terms(Run::Word, text, |term| found.push(term));
            found
        };
        assert_eq!(further("l'école"), ["lecole", "ecol", "ecole"]);
        assert!(further("d’Artagnan").contains(&"artagnan".to_owned()));
        assert_eq!(further("don't"), Vec::<String>::new());
    }

    #[test]
    fn terms_know_their_places() {
        let text = "Ünder the 日本語!";
        for term in terms(text) {
            let written = text.get(term.range.clone()).unwrap();
            assert_eq!(stem(&folded(written)), term.text);
        }
    }

    #[test]
    fn identifiers_have_parts() {
        let none: [&str; 0] = [];
        assert_eq!(parts("parseJson2"), ["parse", "Json", "2"]);
        assert_eq!(parts("HTTPServer"), ["HTTP", "Server"]);
        assert_eq!(parts("Tea"), none);
        assert_eq!(parts("tea"), none);
        assert_eq!(parts("TEA"), none);
        assert_eq!(parts("sha256"), ["sha", "256"]);
    }

    #[test]
    fn irregular_forms_are_among_the_words_of_their_terms() {
        for (form, _) in irregular::forms() {
            let term = Beginning::of(&term_of(form));
            assert!(term.of_words().any(|it| it.is_like(Beginning::of(form))), "{form}");
        }
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(of(&"x".repeat(100_000)), ["x".repeat(64)]);
        assert_eq!(of(&"é".repeat(100)), ["e".repeat(64)]);
    }

    proptest! {
        #[test]
        fn a_term_begins_like_its_word(word in "[a-zA-Z0-9]([a-z'ys]{0,3}[a-zA-Z0-9']{0,8}(ies|ing|ed|[a-z0-9]))?") {
            let term = Beginning::of(&term_of(&word));
            prop_assert!(term.of_words().any(|it| it.is_like(Beginning::of(&word))));
        }

        #[test]
        fn terms_hold_nothing_that_separates_words(text in "(\\PC|ª){0,40}") {
            for term in terms(&text).iter().map(|term| &term.text) {
                prop_assert!(!term.contains(TERM_APART));
                prop_assert!(!term.is_empty());
                prop_assert!(!term.contains(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()));
            }
        }
    }
}
