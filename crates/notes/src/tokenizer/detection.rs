//! Detecting the language of a text by its script and its stop words.
//!
//! This runs on every note, so it reads only the beginning of a text, stops as soon as one language
//! is far ahead, and packs words of up to eight bytes into an integer for the lookup. N-gram models
//! are better at short texts but cost as much as tokenizing, and a short text that is misdetected
//! as English can still be found by the exact forms of its words.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use super::Language;

/// Later words are not read.
const WORDS_MAX: usize = 200;
/// Nor is later text: Chinese text is a single long word here.
const SIZE_BYTES_MAX: usize = 8 * 1024;
/// A language with this many stop words wins early if all others are far behind.
const DECISIVE_COUNT: u8 = 8;
/// How far behind.
const DECISIVE_LEAD: u8 = 4;
/// Fewer stop words are coincidence, unless the text is short and has none in English.
const EVIDENCE_MIN: u8 = 3;
/// The share of stop words below which they are coincidence: code and lists contain a few stop
/// words of any language.
const EVIDENCE_PERCENT_MIN: usize = 5;
/// The same for a short text with two stop words.
const SHORT_PERCENT_MIN: usize = 25;

impl Language {
    /// Returns the most likely language of a text, or English if there is too little evidence.
    pub fn detect(text: &str) -> Self {
        let text = text.get(..text.floor_char_boundary(SIZE_BYTES_MAX)).unwrap_or(text);
        let mut evidence = Evidence::new(&STOP_WORDS);
        let mut word = WordKey::default();
        let mut letters = text.chars();
        loop {
            match letters.next() {
                Some(letter) if letter.is_ascii_alphanumeric() => word.push_ascii(letter),
                Some(letter) if !letter.is_ascii() && letter.is_alphanumeric() => word.push(letter),
                separator => {
                    if word.size_bytes > 0 {
                        evidence.add(&word);
                        word = WordKey::default();
                    }
                    if separator.is_none()
                        || evidence.is_decisive
                        || evidence.words_count >= WORDS_MAX
                    {
                        return evidence.language();
                    }
                }
            }
        }
    }
}

/// A word in lower case, packed for the lookup.
#[derive(Default)]
struct WordKey {
    /// The first eight bytes, little-endian.
    key: u64,
    size_bytes: u32,
    script: Script,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Script {
    #[default]
    Latin,
    Cyrillic,
    Greek,
    Other,
}

impl WordKey {
    fn push_ascii(&mut self, letter: char) {
        // This bit distinguishes lower from upper case, and all digits have it.
        self.push_byte(u64::from(u32::from(letter) | 0x20));
    }

    fn push(&mut self, letter: char) {
        self.script = match letter {
            '\u{80}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => self.script,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Script::Greek,
            '\u{400}'..='\u{52f}' => Script::Cyrillic,
            _ => Script::Other,
        };
        for letter in letter.to_lowercase() {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                self.push_byte(u64::from(byte));
            }
        }
    }

    fn push_byte(&mut self, byte: u64) {
        if self.size_bytes < u64::BITS / 8 {
            self.key |= byte << (self.size_bytes * 8);
        }
        self.size_bytes = self.size_bytes.saturating_add(1);
    }
}

/// What is known about the language of a text.
struct Evidence<'t> {
    table: &'t Table,
    /// How many distinct stop words of each language were found.
    ///
    /// Counting repetitions would be wrong: a text may be full of `com` or `bin`, which are
    /// Portuguese and German, but not of many such words.
    counts: [u8; Language::ALL.len()],
    seen: SlotSet,
    is_decisive: bool,
    words_count: usize,
    cyrillic_count: usize,
    greek_count: usize,
}

impl<'t> Evidence<'t> {
    fn new(table: &'t Table) -> Self {
        Self {
            table,
            counts: [0; Language::ALL.len()],
            seen: SlotSet([0; SLOTS_COUNT / 64]),
            is_decisive: false,
            words_count: 0,
            cyrillic_count: 0,
            greek_count: 0,
        }
    }

    fn add(&mut self, word: &WordKey) {
        self.words_count += 1;
        match word.script {
            Script::Cyrillic => self.cyrillic_count += 1,
            Script::Greek => self.greek_count += 1,
            Script::Latin | Script::Other => {}
        }
        let Some((slot, languages)) = self.table.find(word) else { return };
        if !self.seen.insert(slot) {
            return;
        }
        let (mut rest, mut most) = (languages, 0);
        while rest != 0 {
            if let Some(count) = self.counts.get_mut(rest.trailing_zeros() as usize) {
                *count = count.saturating_add(1);
                most = most.max(*count);
            }
            rest &= rest - 1;
        }
        if most >= DECISIVE_COUNT {
            let rivals = self.counts.iter().filter(|count| **count + DECISIVE_LEAD > most).count();
            self.is_decisive = rivals == 1;
        }
    }

    fn language(&self) -> Language {
        if self.cyrillic_count * 2 > self.words_count {
            let is_ukrainian = self.count(Language::Ukrainian) > self.count(Language::Russian);
            return if is_ukrainian { Language::Ukrainian } else { Language::Russian };
        }
        if self.greek_count * 2 > self.words_count {
            return Language::Greek;
        }
        let english = self.count(Language::English);
        let mut best = Language::English;
        for language in Language::ALL {
            if self.count(language) > self.count(best) {
                best = language;
            }
        }
        let count = self.count(best);
        let is_part = |percent| usize::from(count) * 100 >= self.words_count * percent;
        let is_long_enough = count >= EVIDENCE_MIN && is_part(EVIDENCE_PERCENT_MIN);
        let is_pure = count > 1 && english == 0 && is_part(SHORT_PERCENT_MIN);
        if is_long_enough || is_pure { best } else { Language::English }
    }

    fn count(&self, language: Language) -> u8 {
        self.counts.get(language as usize).copied().unwrap_or_default()
    }
}

/// A set of slots of the table.
struct SlotSet([u64; SLOTS_COUNT / 64]);

impl SlotSet {
    /// Adds a slot; returns `false` if it was present.
    fn insert(&mut self, slot: usize) -> bool {
        let Some(bits) = self.0.get_mut(slot / 64) else { return false };
        let bit = 1 << (slot % 64);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }
}

const SLOTS_BITS: u32 = 12;
const SLOTS_COUNT: usize = 1 << SLOTS_BITS;

/// All stop words of at most eight bytes.
static STOP_WORDS: LazyLock<Table> = LazyLock::new(Table::new);

/// A hash table with open addressing; less than half of its slots are taken.
struct Table(Box<[Slot; SLOTS_COUNT]>);

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The word as in [`WordKey::key`]; 0 if the slot is vacant.
    key: u64,
    /// The languages in which it is a stop word, as a bit set.
    languages: u32,
}

impl Table {
    fn new() -> Self {
        let slots = vec![Slot::default(); SLOTS_COUNT].into_boxed_slice();
        let mut table = Self(slots.try_into().expect("the size is that of the array"));
        for language in Language::ALL {
            for text in language.stop_words() {
                let mut word = WordKey::default();
                text.chars().for_each(|letter| word.push(letter));
                table.add(&word, language);
            }
        }
        table
    }

    fn add(&mut self, word: &WordKey, language: Language) {
        if let Some(place) = self.place(word)
            && let Some(slot) = self.0.get_mut(place)
        {
            slot.key = word.key;
            slot.languages |= 1 << (language as u32);
        }
    }

    /// Returns the slot of a stop word and the languages in which it is one.
    fn find(&self, word: &WordKey) -> Option<(usize, u32)> {
        let place = self.place(word)?;
        let slot = self.0.get(place)?;
        (slot.key != 0).then_some((place, slot.languages))
    }

    /// Returns the slot in which a word is, or the vacant one in which it would be; `None` if it is
    /// too long.
    fn place(&self, word: &WordKey) -> Option<usize> {
        if word.size_bytes > u64::BITS / 8 {
            return None;
        }
        let hash = word.key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS_BITS);
        let mut place = usize::try_from(hash).ok()?;
        loop {
            let slot = self.0.get(place % SLOTS_COUNT)?;
            if slot.key == word.key || slot.key == 0 {
                return Some(place % SLOTS_COUNT);
            }
            place += 1;
        }
    }
}
