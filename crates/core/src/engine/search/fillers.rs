//! The words of a question that say nothing about what is looked for.

use crate::query::{Expression, Term};

/// Returns the parts of a query that stand together without the commonest words, unless there is
/// nothing else to look for.
pub(super) fn telling(parts: &[Expression]) -> Vec<&Expression> {
    let asks = |part: &&Expression| !is_filler(part) && !is_condition(part);
    if !parts.iter().any(|part| asks(&part)) {
        return parts.iter().collect();
    }
    parts.iter().filter(|part| !is_filler(part)).collect()
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

/// Tells whether a part of a query is a word that says nothing about what is looked for.
fn is_filler(part: &Expression) -> bool {
    let Expression::Term(Term::Word(word)) = part else { return false };
    let word = word.trim_end_matches(['?', '!', '.', ',', ':', ';']).to_lowercase();
    let word = word.replace('’', "'");
    FILLERS.binary_search(&word.as_str()).is_ok()
}

/// The commonest English words, in their order.
const FILLERS: [&str; 113] = [
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "but", "by", "can", "could", "did", "didn't", "do", "does", "doesn't", "don't", "for",
    "from", "had", "has", "have", "he", "her", "him", "his", "how", "how's", "i", "i'd", "i'm",
    "i've", "if", "in", "into", "is", "isn't", "it", "it's", "its", "let", "let's", "may", "me",
    "might", "must", "my", "no", "nor", "of", "on", "or", "our", "ours", "out", "over", "please",
    "shall", "she", "should", "so", "some", "such", "than", "that", "that's", "the", "their",
    "theirs", "them", "then", "there", "there's", "these", "they", "this", "those", "to", "too",
    "up", "us", "was", "wasn't", "we", "we've", "were", "what", "what's", "when", "where",
    "where's", "which", "while", "who", "who's", "whom", "whose", "why", "will", "with", "won't",
    "would", "you", "you're", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillers_are_in_their_order() {
        assert!(FILLERS.is_sorted());
    }
}
