//! What is dropped of a question, whatever it is.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::query::Query;

const PARTS: [&str; 20] = [
    "the",
    "of",
    "is",
    "what",
    "IT",
    "Will",
    "tea",
    "kettle?",
    "der",
    "die",
    "und",
    "nicht",
    "le",
    "\"the cup\"",
    "th*",
    "tag:the",
    "(NOT the)",
    "(a OR the)",
    "I",
    "US",
];

fn parts() -> impl Strategy<Value = Vec<Expr>> {
    let part = select(&PARTS[..]).prop_map(|text| Query::parse(text).expr.unwrap());
    prop::collection::vec(part, 0..8)
}

fn languages() -> impl Strategy<Value = Vec<Language>> {
    prop::collection::vec(
        select(&[Language::English, Language::German, Language::French][..]),
        0..3,
    )
}

fn is_word(part: &Expr) -> bool {
    matches!(part, Expr::Term(Term::Word(_)))
}

proptest! {
    #[test]
    fn what_is_left_is_in_the_order_typed(parts in parts(), languages in languages()) {
        let left = significant(&parts, &languages);
        let mut rest = parts.iter();
        prop_assert!(left.iter().all(|part| rest.any(|it| std::ptr::eq(it, *part))));
    }

    /// A query never becomes empty, and a query of filters and stop words keeps its words.
    #[test]
    fn something_to_look_for_is_always_left(parts in parts(), languages in languages()) {
        let left = significant(&parts, &languages);
        let wanted = |parts: &[&Expr]| parts.iter().filter(|part| !part.is_constraint()).count();
        let all: Vec<_> = parts.iter().collect();
        prop_assert_eq!(wanted(&left) == 0, wanted(&all) == 0);
    }

    /// Only words are ever dropped: quotes, prefixes, filters and groups are meant.
    #[test]
    fn only_words_are_dropped(parts in parts(), languages in languages()) {
        let left = significant(&parts, &languages);
        for part in parts.iter().filter(|part| !is_word(part)) {
            prop_assert!(left.iter().any(|it| std::ptr::eq(*it, part)), "{:?}", part);
        }
    }

    /// What was significant once still is.
    #[test]
    fn dropping_twice_drops_no_more_unless_the_language_changes(parts in parts()) {
        let english = [Language::English];
        let once: Vec<Expr> = significant(&parts, &english).into_iter().cloned().collect();
        let twice = significant(&once, &english);
        // A word may come to stand at the beginning, where capitals do not make a name.
        let is_capital = |part: &Expr| {
            matches!(part, Expr::Term(Term::Word(word)) if word.starts_with(char::is_uppercase))
        };
        prop_assert!(once.iter().any(is_capital) || twice.len() == once.len(), "{:?}", once);
    }
}

#[test]
fn names_are_told_by_their_capitals() {
    let left = |text: &str| {
        let Some(Expr::Juxtaposed(parts)) = Query::parse(text).expr else {
            panic!("several parts")
        };
        let left = significant(&parts, &[Language::English]);
        left.into_iter().filter_map(word_of).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left("what is the IT budget"), "IT budget");
    assert_eq!(left("the US and us"), "US us");
    assert_eq!(left("Will it rain"), "Will rain");
    assert_eq!(left("will it rain"), "rain");
    assert_eq!(left("What do I know? The answer"), "know? answer");
    assert_eq!(left("to be or to be"), "to be or to be");
}
