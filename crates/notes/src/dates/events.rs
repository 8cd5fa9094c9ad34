//! Events in questions: `before the release`, `since the launch`.
//!
//! When an event was is known to the notes alone. So this only says which words may name it. English is
//! read and no other language: there, the words for `after` and `since` mostly say from where or whereto.

use jiff::civil::Date;

use super::{Bound, DateSpan, Days};
use crate::tokenizer::Language;

/// Words that may name an event, and where the days that are asked about are from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventReference {
    /// `None` if they are those of the event itself.
    bound: Option<Bound>,
    /// The words that mean the days, in lower case.
    written: String,
    /// The words of the name as written, without stop words; there is at least one.
    pub words: Vec<String>,
}

/// How many words a name has at most, with those between them that are left out.
const NAME_WORDS_MAX: usize = 6;

/// How many places in a text are looked at.
const PLACES_MAX: usize = 4;

/// What may stand before a name, besides stop words.
const DETERMINERS: [&str; 5] = ["my", "our", "your", "us", "we"];

impl EventReference {
    /// Returns what a text may refer to. The words at one place may be the name of an event and what is
    /// said of it, so the longest name comes first, then those that it begins with.
    pub fn all(text: &str) -> Vec<Self> {
        let clauses = clauses(text);
        let starts = clauses.iter().flat_map(|clause| {
            let rests = (0..clause.len()).filter_map(|place| clause.get(place..));
            rests.filter(|rest| rest.first().copied().is_some_and(is_bound))
        });
        starts.take(PLACES_MAX).flat_map(names).collect()
    }

    /// Returns the days that are meant if the event was on this day.
    pub fn span(&self, day: Date) -> DateSpan {
        let days = Days::one(day);
        let Days { first, last } = self.bound.map_or(days, |bound| bound.apply(days));
        DateSpan { first, last, written: self.written.clone() }
    }
}

fn is_bound(word: &str) -> bool {
    ["before", "after", "since", "until", "during"].contains(&word.to_lowercase().as_str())
}

/// Splits a text at the punctuation between its words.
fn clauses(text: &str) -> Vec<Vec<&str>> {
    let mut clauses = vec![Vec::new()];
    for written in text.split_whitespace() {
        let word = written.trim_matches(|letter: char| !letter.is_alphanumeric());
        if let Some(clause) = clauses.last_mut()
            && !word.is_empty()
        {
            clause.push(word);
        }
        if written.ends_with(['.', ',', ';', ':', '?', '!', ')']) {
            clauses.push(Vec::new());
        }
    }
    clauses
}

/// Returns the names that may follow the word at the beginning.
fn names(words: &[&str]) -> Vec<EventReference> {
    let Some((bound_word, rest)) = words.split_first() else { return Vec::new() };
    let bound_word = bound_word.to_lowercase();
    let is_stop_word = |word: &str| Language::English.is_stop_word(&word.to_lowercase());
    let is_before_name =
        |word: &&&str| is_stop_word(word) || DETERMINERS.contains(&word.to_lowercase().as_str());
    let start = rest.iter().take_while(is_before_name).count();
    let name = rest.get(start..).unwrap_or_default();
    let longest = name.len().min(NAME_WORDS_MAX);
    let reference = |count: usize| {
        let name =
            name.get(..count).filter(|name| !name.last().is_none_or(|it| is_stop_word(it)))?;
        let words = name.iter().filter(|word| !is_stop_word(word));
        let written = rest.get(..start + count)?.join(" ").to_lowercase();
        Some(EventReference {
            bound: Bound::of(&bound_word),
            written: format!("{bound_word} {written}"),
            words: words.map(|word| (*word).to_owned()).collect(),
        })
    };
    (1..=longest).rev().filter_map(reference).collect()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let all = EventReference::all(text).into_iter();
        all.map(|it| (it.written.clone(), it.words.join(" "))).collect()
    }

    #[test]
    fn the_words_after_a_preposition_may_name_an_event() {
        assert_eq!(
            found("What did we decide before the release?"),
            [("before the release".to_owned(), "release".to_owned())]
        );
        assert_eq!(
            found("since our move to Berlin, who called"),
            [
                ("since our move to berlin".to_owned(), "move Berlin".to_owned()),
                ("since our move".to_owned(), "move".to_owned()),
            ]
        );
        assert_eq!(found("After release 2.4 broke")[1].1, "release 2.4");
    }

    #[test]
    fn a_text_without_a_name_refers_to_nothing() {
        for text in ["", "before", "before.", "after it", "the day before, we met", "Before? No."] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn a_span_is_on_the_side_of_the_event_that_is_meant() {
        let day = date(2026, 3, 4);
        for (text, first, last) in [
            ("before launch", Date::MIN, date(2026, 3, 3)),
            ("until launch", Date::MIN, day),
            ("during launch", day, day),
            ("since launch", day, Date::MAX),
            ("after launch", date(2026, 3, 5), Date::MAX),
        ] {
            let span = EventReference::all(text)[0].span(day);
            assert_eq!((span.first, span.last, span.written.as_str()), (first, last, text));
        }
    }

    #[test]
    fn long_texts_have_few_references() {
        for text in ["before ab bc cd de ef fg gh ", "before ab. "] {
            let all = EventReference::all(&text.repeat(1000));
            assert!(all.len() <= PLACES_MAX * NAME_WORDS_MAX, "{}", all.len());
        }
    }
}
