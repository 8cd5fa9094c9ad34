//! English words without their endings, by Porter's rules.
//!
//! `connect`, `connected`, `connecting` and `connections` all become `connect`, and `went` becomes
//! `go`. Words that are not plain lower-case ASCII letters stay as they are.

use super::irregular::base;

/// Shorter words have no ending to lose; longer ones are not words.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=40;

/// Returns the stem of a lower-case word.
pub(super) fn stem(word: &str) -> String {
    if !LENGTHS.contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word(base(word).unwrap_or(word).to_owned());
    word.lose_plural();
    word.lose_past();
    word.turn_y();
    word.replace_first(&LONG_ENDINGS, 0);
    word.replace_first(&MIDDLE_ENDINGS, 0);
    word.lose_last();
    word.tidy();
    word.0
}

const LONG_ENDINGS: [(&str, &str); 21] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
];

const MIDDLE_ENDINGS: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Longer endings stand before their own endings.
const LAST_ENDINGS: [&str; 18] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "al", "er", "ic", "ou",
];

/// A word that loses its endings one after another.
struct Word(String);

impl Word {
    /// Returns what is before an ending, if the word has it.
    fn before(&self, ending: &str) -> Option<&str> {
        self.0.strip_suffix(ending)
    }

    fn replace(&mut self, ending: &str, by: &str) {
        self.0.truncate(self.0.len() - ending.len());
        self.0.push_str(by);
    }

    /// Replaces the first ending that fits, if what is before it is long enough.
    fn replace_first(&mut self, endings: &[(&str, &str)], measure_min: usize) {
        let fits = |&&(ending, _): &&(&str, &str)| self.0.ends_with(ending);
        if let Some(&(ending, by)) = endings.iter().find(fits)
            && self.before(ending).is_some_and(|stem| measure(stem) > measure_min)
        {
            self.replace(ending, by);
        }
    }

    fn lose_plural(&mut self) {
        for (ending, by) in [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")] {
            if self.0.ends_with(ending) {
                return self.replace(ending, by);
            }
        }
    }

    fn lose_past(&mut self) {
        if let Some(stem) = self.before("eed") {
            if measure(stem) > 0 {
                self.replace("eed", "ee");
            }
            return;
        }
        for ending in ["ed", "ing"] {
            if self.before(ending).is_some_and(has_vowel) {
                self.replace(ending, "");
                return self.mend();
            }
        }
    }

    /// Gives back what a lost `ed` or `ing` had taken: `hop(p)ing`, `hop(e)ing`.
    fn mend(&mut self) {
        if ["at", "bl", "iz"].iter().any(|ending| self.0.ends_with(ending))
            || (measure(&self.0) == 1 && ends_short(&self.0))
        {
            self.0.push('e');
        } else if ends_double(&self.0) && !self.0.ends_with(['l', 's', 'z']) {
            self.0.pop();
        }
    }

    fn turn_y(&mut self) {
        // `query` and `queries` meet, `deploy` and `deployment` too.
        let is_ending = |stem: &str| has_vowel(stem) && vowels(stem).last() == Some(false);
        if self.before("y").is_some_and(is_ending) {
            self.replace("y", "i");
        }
    }

    fn lose_last(&mut self) {
        if let Some(stem) = self.before("ion")
            && stem.ends_with(['s', 't'])
        {
            if measure(stem) > 1 {
                self.replace("ion", "");
            }
            return;
        }
        if let Some(ending) = LAST_ENDINGS.iter().find(|ending| self.0.ends_with(*ending))
            && self.before(ending).is_some_and(|stem| measure(stem) > 1)
        {
            self.replace(ending, "");
        }
    }

    fn tidy(&mut self) {
        if let Some(stem) = self.before("e")
            && (measure(stem) > 1 || (measure(stem) == 1 && !ends_short(stem)))
        {
            self.replace("e", "");
        }
        if self.0.ends_with("ll") && measure(&self.0) > 1 {
            self.0.pop();
        }
    }
}

/// Tells for each letter whether it is a vowel; a `y` after a consonant is one.
fn vowels(word: &str) -> impl Iterator<Item = bool> {
    word.bytes().scan(true, |previous_is_vowel, letter| {
        let is_vowel = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => !*previous_is_vowel,
            _ => false,
        };
        *previous_is_vowel = is_vowel;
        Some(is_vowel)
    })
}

fn has_vowel(word: &str) -> bool {
    vowels(word).any(|is_vowel| is_vowel)
}

/// Returns how often a vowel is followed by a consonant.
fn measure(word: &str) -> usize {
    let mut previous_is_vowel = false;
    let mut count = 0;
    for is_vowel in vowels(word) {
        count += usize::from(previous_is_vowel && !is_vowel);
        previous_is_vowel = is_vowel;
    }
    count
}

/// Tells whether the word ends with the same consonant twice.
fn ends_double(word: &str) -> bool {
    let last = vowels(word).last();
    let mut letters = word.bytes().rev();
    last == Some(false) && letters.next() == letters.next()
}

/// Tells whether the word ends with consonant, vowel, consonant, the last not being w, x or y.
fn ends_short(word: &str) -> bool {
    let kinds: Vec<_> = vowels(word).collect();
    kinds.ends_with(&[false, true, false]) && !word.ends_with(['w', 'x', 'y'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::stem;

    #[test]
    fn the_forms_of_a_word_have_one_stem() {
        for forms in [
            vec!["connect", "connected", "connecting", "connection", "connections"],
            vec!["deploy", "deploys", "deployed", "deploying", "deployment"],
            vec!["decision", "decisions"],
            vec!["cache", "caches", "cached", "caching"],
            vec!["query", "queries", "querying", "queried"],
            vec!["hop", "hops", "hopped", "hopping"],
            vec!["relate", "related", "relates", "relating"],
            vec!["go", "goes", "going", "gone", "went"],
            vec!["buy", "buys", "buying", "bought"],
            vec!["child", "children"],
            vec!["write", "writing", "wrote", "written"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|it| *it == stems[0]), "{forms:?}: {stems:?}");
        }
    }

    #[test]
    fn well_known_stems() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("motoring", "motor"),
            ("conflated", "conflat"),
            ("sized", "size"),
            ("failing", "fail"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("digitizer", "digit"),
            ("vietnamization", "vietnam"),
            ("hopefulness", "hope"),
            ("electriciti", "electr"),
            ("revival", "reviv"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("controll", "control"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn what_is_no_english_word_stays() {
        for word in ["", "is", "v2", "größe", "日本", "Cats", &"s".repeat(41)] {
            assert_eq!(stem(word), word);
        }
    }

    proptest! {
        #[test]
        fn every_word_has_a_stem(word in "[a-z]{1,12}") {
            prop_assert!(!stem(&word).is_empty());
        }
    }
}
