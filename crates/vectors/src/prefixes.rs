//! Prefixes: the words that some models want in front of a text, to know what it is.
//!
//! Such a model was trained with them, and places questions and their answers near each other only if both
//! have theirs.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Purpose;

/// What stands in front of questions and of passages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefixes {
    /// In front of a question.
    #[serde(rename = "question_prefix", default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// In front of a passage of a memory.
    #[serde(rename = "passage_prefix", default, skip_serializing_if = "String::is_empty")]
    pub passage: String,
}

/// The question prefix of English models of the BGE family.
const BGE_QUESTION: &str = "Represent this sentence for searching relevant passages: ";

/// What models call their prompts. The first that a model has is taken.
const QUESTION_PROMPTS: [&str; 3] = ["query", "search_query", "question"];
const PASSAGE_PROMPTS: [&str; 3] = ["passage", "document", "search_document"];

impl Prefixes {
    /// Returns the prefixes of the family that a model belongs to by its name; `None` if it is unknown.
    pub fn of_family(model: &str) -> Option<Self> {
        let name = model.to_lowercase();
        let parts: Vec<_> = name.split(|letter: char| !letter.is_alphanumeric()).collect();
        let has = |part| parts.contains(&part);
        let (question, passage) = if has("e5") && !has("instruct") && !has("mistral") {
            ("query: ", "passage: ")
        } else if has("nomic") && has("embed") && has("text") {
            ("search_query: ", "search_document: ")
        } else if has("bge") && has("en") {
            (BGE_QUESTION, "")
        } else {
            return None;
        };
        Some(Self { question: question.to_owned(), passage: passage.to_owned() })
    }

    /// Returns the prefixes among the prompts of a model; `None` if there are none.
    pub(crate) fn of_prompts(prompts: &HashMap<String, String>) -> Option<Self> {
        let first = |names: [&str; 3]| {
            names.into_iter().find_map(|name| prompts.get(name)).cloned().unwrap_or_default()
        };
        let found = Self { question: first(QUESTION_PROMPTS), passage: first(PASSAGE_PROMPTS) };
        (!found.is_empty()).then_some(found)
    }

    /// Returns whether nothing stands in front of any text.
    pub fn is_empty(&self) -> bool {
        self.question.is_empty() && self.passage.is_empty()
    }

    pub(crate) fn of(&self, purpose: Purpose) -> &str {
        match purpose {
            Purpose::Question => &self.question,
            Purpose::Memory => &self.passage,
        }
    }

    /// Returns a text with what stands in front of it.
    pub(crate) fn add<'t>(&self, purpose: Purpose, text: &'t str) -> Cow<'t, str> {
        match self.of(purpose) {
            "" => Cow::Borrowed(text),
            prefix => Cow::Owned(format!("{prefix}{text}")),
        }
    }

    /// Returns an identity that tells vectors with these prefixes from others.
    pub(crate) fn identified(&self, identity: String) -> String {
        if self.is_empty() {
            return identity;
        }
        format!("{identity} {:?} {:?}", self.question, self.passage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(model: &str) -> Option<(String, String)> {
        Prefixes::of_family(model).map(|it| (it.question, it.passage))
    }

    #[test]
    fn known_families_have_their_prefixes() {
        let pair = |question: &str, passage: &str| Some((question.to_owned(), passage.to_owned()));
        for (model, expected) in [
            ("intfloat/multilingual-e5-small", pair("query: ", "passage: ")),
            ("E5-base-v2", pair("query: ", "passage: ")),
            ("nomic-embed-text", pair("search_query: ", "search_document: ")),
            ("nomic-embed-text:v1.5", pair("search_query: ", "search_document: ")),
            ("BAAI/bge-small-en-v1.5", pair(BGE_QUESTION, "")),
            ("bge-m3", None),
            ("multilingual-e5-large-instruct", None),
            ("all-MiniLM-L6-v2", None),
            ("concepts", None),
        ] {
            assert_eq!(family(model), expected, "{model}");
        }
    }

    #[test]
    fn prefixes_are_read_from_prompts() {
        let prompts = |names: &[(&str, &str)]| {
            let owned = names.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            Prefixes::of_prompts(&owned.collect())
        };
        assert_eq!(prompts(&[("classification", "classify: ")]), None);
        assert_eq!(prompts(&[("query", ""), ("document", "")]), None);
        let found = prompts(&[("document", "d: "), ("query", "q: "), ("clustering", "c: ")]);
        assert_eq!(found.map(|it| (it.question, it.passage)), Some(("q: ".into(), "d: ".into())));
    }

    #[test]
    fn prefixes_are_part_of_the_identity() {
        let some = |question: &str, passage: &str| {
            Prefixes { question: question.to_owned(), passage: passage.to_owned() }
                .identified("bert:1".to_owned())
        };
        assert_eq!(some("", ""), "bert:1");
        let all = [some("a", ""), some("", "a"), some("a\" \"", ""), some("a", " ")];
        for (place, identity) in all.iter().enumerate() {
            assert!(!all[..place].contains(identity), "{identity}");
        }
    }
}
