//! The Porter stemmer, with irregular forms.
//!
//! `connect`, `connected`, `connecting` and `connections` become `connect`, and `went` becomes
//! `go`. Words of anything but lower-case ASCII letters are returned unchanged.

#[cfg(test)]
mod tests;

use super::irregular::base;

/// Shorter words have no suffix; longer ones are not words.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=40;

/// Returns the stem of a lower-case word.
pub(super) fn stem(word: &str) -> String {
    if !LENGTHS.contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word(base(word).unwrap_or(word).to_owned());
    word.remove_plural();
    word.remove_past();
    word.replace_y();
    word.replace_first(&LONG_ENDINGS, 0);
    word.replace_first(&MIDDLE_ENDINGS, 0);
    word.remove_last();
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

/// Longer suffixes come before the suffixes that they end with.
const LAST_ENDINGS: [&str; 18] = [
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "al", "er", "ic", "ou",
];

/// A word whose suffixes are removed step by step.
struct Word(String);

impl Word {
    /// Returns what precedes a suffix, if the word has it.
    fn before(&self, ending: &str) -> Option<&str> {
        self.0.strip_suffix(ending)
    }

    /// Returns whether the word has a suffix.
    ///
    /// Most suffixes are ruled out by their last letter; calling `memcmp` for each of them was a
    /// tenth of the cost of tokenizing.
    fn has(&self, ending: &str) -> bool {
        self.0.as_bytes().last() == ending.as_bytes().last() && self.0.ends_with(ending)
    }

    fn replace(&mut self, ending: &str, by: &str) {
        self.0.truncate(self.0.len() - ending.len());
        self.0.push_str(by);
    }

    /// Replaces the first suffix that the word has, if the stem before it is long enough.
    fn replace_first(&mut self, endings: &[(&str, &str)], measure_min: usize) {
        let fits = |&&(ending, _): &&(&str, &str)| self.has(ending);
        if let Some(&(ending, by)) = endings.iter().find(fits)
            && self.before(ending).is_some_and(|stem| measure(stem) > measure_min)
        {
            self.replace(ending, by);
        }
    }

    fn remove_plural(&mut self) {
        for (ending, by) in [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")] {
            if self.has(ending) {
                return self.replace(ending, by);
            }
        }
    }

    fn remove_past(&mut self) {
        if let Some(stem) = self.before("eed") {
            if measure(stem) > 0 {
                self.replace("eed", "ee");
            }
            return;
        }
        for ending in ["ed", "ing"] {
            if self.before(ending).is_some_and(has_vowel) {
                self.replace(ending, "");
                return self.restore();
            }
        }
    }

    /// Undoes the spelling change before a removed `ed` or `ing`: `hop(p)ing`, `hop(e)ing`.
    fn restore(&mut self) {
        if ["at", "bl", "iz"].iter().any(|ending| self.has(ending))
            || (measure(&self.0) == 1 && ends_short(&self.0))
        {
            self.0.push('e');
        } else if ends_double(&self.0) && !self.0.ends_with(['l', 's', 'z']) {
            self.0.pop();
        }
    }

    fn replace_y(&mut self) {
        // Only after a consonant, which Porter does not require: `deploy` must meet `deployment`.
        let is_ending = |stem: &str| has_vowel(stem) && vowels(stem).last() == Some(false);
        if self.before("y").is_some_and(is_ending) {
            self.replace("y", "i");
        }
    }

    fn remove_last(&mut self) {
        if let Some(stem) = self.before("ion")
            && stem.ends_with(['s', 't'])
        {
            if measure(stem) > 1 {
                self.replace("ion", "");
            }
            return;
        }
        if let Some(ending) = LAST_ENDINGS.iter().find(|ending| self.has(ending))
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

/// Returns for each letter whether it is a vowel; a `y` after a consonant is one.
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

/// Returns Porter's measure: how often a vowel is followed by a consonant.
fn measure(word: &str) -> usize {
    let mut previous_is_vowel = false;
    let mut count = 0;
    for is_vowel in vowels(word) {
        count += usize::from(previous_is_vowel && !is_vowel);
        previous_is_vowel = is_vowel;
    }
    count
}

/// Returns whether the word ends with a double consonant.
fn ends_double(word: &str) -> bool {
    let last = vowels(word).last();
    let mut letters = word.bytes().rev();
    last == Some(false) && letters.next() == letters.next()
}

/// Returns whether the word ends with consonant, vowel, consonant, the last of which is not w, x or
/// y.
fn ends_short(word: &str) -> bool {
    let last_three =
        vowels(word).fold([None; 3], |[_, second, third], it| [second, third, Some(it)]);
    last_three == [Some(false), Some(true), Some(false)] && !word.ends_with(['w', 'x', 'y'])
}
