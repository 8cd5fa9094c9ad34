//! The words of a question that say nothing about what is looked for.

use crate::query::{Expression, Term};

/// Returns the parts of a query that stand together without the commonest words, unless there is
/// nothing else to look for.
pub(super) fn telling(parts: &[Expression]) -> Vec<&Expression> {
    let mut place = Place::Begin;
    let mut with_fillers: Vec<(bool, &Expression)> = Vec::with_capacity(parts.len());
    for part in parts {
        let word = word_of(part);
        with_fillers.push((word.is_some_and(|word| is_filler(word, place)), part));
        let ends = word.is_some_and(|word| word.ends_with(['.', '?', '!']));
        place = if ends { Place::Begin } else { Place::Inside };
    }
    if with_fillers.iter().all(|(is_filler, part)| *is_filler || is_condition(part)) {
        return parts.iter().collect();
    }
    with_fillers.into_iter().filter(|(is_filler, _)| !is_filler).map(|(_, part)| part).collect()
}

/// Tells whether a part only narrows down what the others look for.
pub(super) fn is_condition(part: &Expression) -> bool {
    match part {
        Expression::Filter(_) | Expression::Not(_) => true,
        Expression::Term(_) | Expression::Together(_) | Expression::All(_) | Expression::Any(_) => {
            false
        }
    }
}

fn word_of(part: &Expression) -> Option<&str> {
    match part {
        Expression::Term(Term::Word(word)) => Some(word),
        Expression::Term(Term::Prefix(_) | Term::Phrase(_))
        | Expression::Filter(_)
        | Expression::Together(_)
        | Expression::All(_)
        | Expression::Any(_)
        | Expression::Not(_) => None,
    }
}

/// Tells whether a word says nothing about what is looked for.
///
/// Capital letters tell: `IT` and `US` are no pronouns, and `Will` is a name. Only at the beginning
/// of a sentence they do not.
fn is_filler(word: &str, place: Place) -> bool {
    let word = word.trim_end_matches(['?', '!', '.', ',', ':', ';']).replace('’', "'");
    let lower = word.to_lowercase();
    let mut rest = word.chars();
    let begins_high = rest.next().is_some_and(char::is_uppercase);
    let is_name = match place {
        Place::Begin => NAMES.contains(&lower.as_str()),
        Place::Inside => lower != "i" && !lower.starts_with("i'"),
    };
    let tells = rest.any(char::is_uppercase) || (begins_high && is_name);
    !tells && FILLERS.binary_search(&lower.as_str()).is_ok()
}

/// Where a word stands in its sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Begin,
    Inside,
}

/// Fillers that are names when they begin with a capital letter, wherever they stand.
const NAMES: [&str; 1] = ["will"];

/// The commonest English words, in their order; `may` and `no` are not among them, because they
/// often tell.
const FILLERS: [&str; 111] = [
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "but", "by", "can", "could", "did", "didn't", "do", "does", "doesn't", "don't", "for",
    "from", "had", "has", "have", "he", "her", "him", "his", "how", "how's", "i", "i'd", "i'm",
    "i've", "if", "in", "into", "is", "isn't", "it", "it's", "its", "let", "let's", "me", "might",
    "must", "my", "nor", "of", "on", "or", "our", "ours", "out", "over", "please", "shall", "she",
    "should", "so", "some", "such", "than", "that", "that's", "the", "their", "theirs", "them",
    "then", "there", "there's", "these", "they", "this", "those", "to", "too", "up", "us", "was",
    "wasn't", "we", "we've", "were", "what", "what's", "when", "where", "where's", "which",
    "while", "who", "who's", "whom", "whose", "why", "will", "with", "won't", "would", "you",
    "you're", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;

    /// Returns the words of a query that are looked for.
    fn told(text: &str) -> String {
        let Some(Expression::Together(parts)) = Query::parse(text).wanted else {
            panic!("words that stand together")
        };
        telling(&parts).into_iter().filter_map(word_of).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fillers_are_in_their_order() {
        assert!(FILLERS.is_sorted());
    }

    #[test]
    fn questions_lose_what_says_nothing() {
        assert_eq!(told("What is the name of my cat? Where will it sleep?"), "name cat? sleep?");
        assert_eq!(told("what did I say, what I\u{2019}ve done"), "say, done");
        assert_eq!(told("to be or not"), "not");
        assert_eq!(told("is it all"), "is it all");
    }

    #[test]
    fn words_with_capitals_tell() {
        for text in ["IT department", "US visa", "WHO guidelines", "Will birthday", "may 2023"] {
            assert_eq!(told(text), text);
        }
        assert_eq!(told("the May 2023 meeting of the US office"), "May 2023 meeting US office");
        assert_eq!(told("how did Will and IT help us"), "Will IT help");
        assert_eq!(told("tea with no sugar"), "tea no sugar");
    }
}
