//! The languages that words are stemmed in.

#[cfg(test)]
mod tests;

use frostem::{Algorithm, Stemmer};

use super::stop_words;

/// A language that words are stemmed in.
///
/// Texts in all other languages are treated as English: its stemmer changes only words of plain
/// Latin letters, and few of those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Czech, and Slovak texts that look like it.
    Czech,
    /// Danish.
    Danish,
    /// Dutch.
    Dutch,
    /// Finnish.
    Finnish,
    /// French.
    French,
    /// German.
    German,
    /// Greek.
    Greek,
    /// Hungarian.
    Hungarian,
    /// Italian.
    Italian,
    /// Norwegian, of both written forms.
    Norwegian,
    /// Polish.
    Polish,
    /// Portuguese.
    Portuguese,
    /// Romanian.
    Romanian,
    /// Russian, and other texts in Cyrillic that are not Ukrainian.
    Russian,
    /// Spanish.
    Spanish,
    /// Swedish.
    Swedish,
    /// Ukrainian.
    Ukrainian,
}

impl Language {
    /// Every language, English first.
    pub const ALL: [Self; 18] = [
        Self::English,
        Self::Czech,
        Self::Danish,
        Self::Dutch,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hungarian,
        Self::Italian,
        Self::Norwegian,
        Self::Polish,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Ukrainian,
    ];

    /// Returns the language with a tag such as `de`, `pt-BR`, `deu` or `German`.
    pub fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default().to_lowercase();
        Self::ALL.into_iter().find(|language| language.tags().contains(&primary.as_str()))
    }

    /// Returns the language's two-letter code, which [`from_tag`](Self::from_tag) reads.
    pub fn tag(self) -> &'static str {
        self.tags().first().copied().unwrap_or_default()
    }

    /// Returns the two-letter code, followed by all other tags and names of the language.
    fn tags(self) -> &'static [&'static str] {
        match self {
            Self::English => &["en", "eng", "english"],
            Self::Czech => &["cs", "ces", "cze", "czech"],
            Self::Danish => &["da", "dan", "danish"],
            Self::Dutch => &["nl", "nld", "dut", "dutch"],
            Self::Finnish => &["fi", "fin", "finnish"],
            Self::French => &["fr", "fra", "fre", "french"],
            Self::German => &["de", "deu", "ger", "german"],
            Self::Greek => &["el", "ell", "gre", "greek"],
            Self::Hungarian => &["hu", "hun", "hungarian"],
            Self::Italian => &["it", "ita", "italian"],
            Self::Norwegian => &["no", "nb", "nn", "nor", "nob", "nno", "norwegian"],
            Self::Polish => &["pl", "pol", "polish"],
            Self::Portuguese => &["pt", "por", "portuguese"],
            Self::Romanian => &["ro", "ron", "rum", "romanian"],
            Self::Russian => &["ru", "rus", "russian"],
            Self::Spanish => &["es", "spa", "spanish"],
            Self::Swedish => &["sv", "swe", "swedish"],
            Self::Ukrainian => &["uk", "ukr", "ukrainian"],
        }
    }

    /// Returns the Snowball stemmer of the language; English has one of its own.
    pub(super) fn snowball(self) -> Option<Stemmer> {
        let algorithm = match self {
            Self::English => return None,
            Self::Czech => Algorithm::Czech,
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Greek => Algorithm::Greek,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Italian => Algorithm::Italian,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Polish => Algorithm::Polish,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Ukrainian => Algorithm::Ukrainian,
        };
        Some(Stemmer::new(algorithm))
    }

    /// Returns whether a lower-case word is a stop word of this language.
    pub(crate) fn is_stop_word(self, word: &str) -> bool {
        self.stop_words().binary_search(&word).is_ok()
    }

    /// Returns the stop words of the language, sorted.
    pub(super) fn stop_words(self) -> &'static [&'static str] {
        match self {
            Self::English => stop_words::ENGLISH,
            Self::Czech => stop_words::CZECH,
            Self::Danish => stop_words::DANISH,
            Self::Dutch => stop_words::DUTCH,
            Self::Finnish => stop_words::FINNISH,
            Self::French => stop_words::FRENCH,
            Self::German => stop_words::GERMAN,
            Self::Greek => stop_words::GREEK,
            Self::Hungarian => stop_words::HUNGARIAN,
            Self::Italian => stop_words::ITALIAN,
            Self::Norwegian => stop_words::NORWEGIAN,
            Self::Polish => stop_words::POLISH,
            Self::Portuguese => stop_words::PORTUGUESE,
            Self::Romanian => stop_words::ROMANIAN,
            Self::Russian => stop_words::RUSSIAN,
            Self::Spanish => stop_words::SPANISH,
            Self::Swedish => stop_words::SWEDISH,
            Self::Ukrainian => stop_words::UKRAINIAN,
        }
    }

    /// Returns whether a lower-case word is a pronoun of the first or second person.
    pub(crate) fn is_personal(self, word: &str) -> bool {
        let personal = match self {
            Self::English => stop_words::personal::ENGLISH,
            Self::Czech => stop_words::personal::CZECH,
            Self::Danish => stop_words::personal::DANISH,
            Self::Dutch => stop_words::personal::DUTCH,
            Self::Finnish => stop_words::personal::FINNISH,
            Self::French => stop_words::personal::FRENCH,
            Self::German => stop_words::personal::GERMAN,
            Self::Greek => stop_words::personal::GREEK,
            Self::Hungarian => stop_words::personal::HUNGARIAN,
            Self::Italian => stop_words::personal::ITALIAN,
            Self::Norwegian => stop_words::personal::NORWEGIAN,
            Self::Polish => stop_words::personal::POLISH,
            Self::Portuguese => stop_words::personal::PORTUGUESE,
            Self::Romanian => stop_words::personal::ROMANIAN,
            Self::Russian => stop_words::personal::RUSSIAN,
            Self::Spanish => stop_words::personal::SPANISH,
            Self::Swedish => stop_words::personal::SWEDISH,
            Self::Ukrainian => stop_words::personal::UKRAINIAN,
        };
        personal.binary_search(&word).is_ok()
    }
}
