//! Dropping the stop words of a question.

#[cfg(test)]
mod tests;

use super::{Expr, Term};
use crate::tokenizer::{Language, english_first};

/// The minimum number of stop words of a language other than English for a query to be in it. One
/// proves nothing: `die hard` is not German.
const FOREIGN_STOP_WORDS_MIN: usize = 2;

/// Returns the juxtaposed parts of a query without stop words, unless nothing else would be left.
///
/// `languages` are those of the searched texts; the stop words are those of the language that the
/// query seems to be in.
pub fn significant<'e>(parts: &'e [Expr], languages: &[Language]) -> Vec<&'e Expr> {
    let all = || parts.iter().collect();
    let Some(language) = query_language(parts, languages) else { return all() };
    let mut position = WordPosition::SentenceStart;
    let mut marked: Vec<(bool, &Expr)> = Vec::with_capacity(parts.len());
    for part in parts {
        let word = word_of(part);
        marked.push((word.is_some_and(|it| is_insignificant(it, position, language)), part));
        let ends = word.is_some_and(|word| word.ends_with(['.', '?', '!']));
        position = if ends { WordPosition::SentenceStart } else { WordPosition::Inside };
    }
    if marked.iter().all(|(is_dropped, part)| *is_dropped || part.is_constraint()) {
        return all();
    }
    marked.into_iter().filter(|(is_dropped, _)| !is_dropped).map(|(_, part)| part).collect()
}

/// Returns the language that has the most stop words among the words of a query.
fn query_language(parts: &[Expr], languages: &[Language]) -> Option<Language> {
    let words: Vec<_> = parts.iter().filter_map(word_of).map(normalized).collect();
    let count = |language: Language| words.iter().filter(|it| language.is_stop_word(it)).count();
    let mut best = None;
    let mut best_count = 0;
    for language in english_first(languages) {
        let is_english = language == Language::English;
        let found = count(language);
        if found > best_count && (is_english || found >= FOREIGN_STOP_WORDS_MIN) {
            (best, best_count) = (Some(language), found);
        }
    }
    best
}

fn word_of(part: &Expr) -> Option<&str> {
    match part {
        Expr::Term(Term::Word(word)) => Some(word),
        Expr::Term(Term::Prefix(_) | Term::Phrase(_))
        | Expr::Filter(_)
        | Expr::Juxtaposed(_)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Not(_) => None,
    }
}

/// Returns a typed word in the form of the stop word lists.
fn normalized(word: &str) -> String {
    trimmed(word).to_lowercase().replace('’', "'")
}

fn trimmed(word: &str) -> &str {
    word.trim_start_matches(['¿', '¡']).trim_end_matches(['?', '!', '.', ',', ':', ';'])
}

/// Returns whether a word is a stop word that says nothing about what is asked for.
///
/// `my`, `our` and `you` say whose fact it is, which is often all that tells two messages apart.
/// Capital letters are significant: `IT` and `US` are not pronouns, and `Will` is a name. Only
/// the first word of a sentence is capitalized anyway.
fn is_insignificant(word: &str, position: WordPosition, language: Language) -> bool {
    let lower = normalized(word);
    let mut rest = trimmed(word).chars();
    let is_capitalized = rest.next().is_some_and(char::is_uppercase);
    let is_name = match position {
        WordPosition::SentenceStart => NAMES.contains(&lower.as_str()),
        WordPosition::Inside => lower != "i" && !lower.starts_with("i'"),
    };
    let is_significant = rest.any(char::is_uppercase) || (is_capitalized && is_name);
    !is_significant && language.is_stop_word(&lower) && !language.is_personal(&lower)
}

/// The position of a word in its sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordPosition {
    SentenceStart,
    Inside,
}

/// Stop words that are names when they are capitalized, at any position.
const NAMES: [&str; 1] = ["will"];
