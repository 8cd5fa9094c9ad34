//! Tombstones: salted hashes of redacted text, by which it is recognized when it comes back.
//!
//! A text is searched for all tombstones of a store in one pass. At each place, a filter looks at the last
//! eight bytes; only where it fits, the SHA-256 of as many bytes as the tombstone has is compared.
//!
//! A rolling hash over the whole length would need a pass for each length. And stored beside the salt, all
//! of its 64 bits would be a linear equation that gives away a short password. The filter keeps 16 bits of
//! one. It looks at the end, because secrets of one kind often begin alike (`sk-`, `password=`).
//!
//! Whoever has the database can still try guesses against a hash, so a tombstone hides a random token and
//! not a word of a dictionary.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use sha2::{Digest as _, Sha256};

/// Shorter text gets no tombstone: it would be guessed at once, and found everywhere by chance.
pub const TOMBSTONE_SIZE_BYTES_MIN: usize = 8;

/// Of longer text, only the beginning is remembered.
const TOMBSTONE_SIZE_BYTES_MAX: usize = 1024;

/// How many places of one text are reported.
const FOUND_MAX: usize = 100;

/// How many bytes may be hashed to search one text. Only a text that was made for it needs more than a
/// fraction of this: it repeats the end of what was redacted thousands of times.
const HASHED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What one SHA-256 costs at least, in bytes.
const BLOCK_SIZE_BYTES: usize = 64;

/// The hash of a text that was redacted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tombstone {
    /// What the hash is salted with; a store has one salt.
    pub salt: [u8; 16],
    /// How many bytes are hashed.
    pub size_bytes: usize,
    /// A keyed hash of the last eight of them.
    pub filter: u16,
    /// The SHA-256 of the salt and the bytes.
    pub hash: [u8; 32],
}

impl Tombstone {
    /// Returns the part of a text that is recognized: all of it, or its beginning.
    pub fn remembered(text: &str) -> &str {
        text.get(..text.floor_char_boundary(TOMBSTONE_SIZE_BYTES_MAX)).unwrap_or(text)
    }

    /// Returns the tombstone of a text; `None` if it is too short to have one.
    pub fn new(salt: [u8; 16], text: &str) -> Option<Self> {
        let bytes = Self::remembered(text).as_bytes();
        let filter = filter(&salt, *bytes.last_chunk()?);
        Some(Self { salt, size_bytes: bytes.len(), filter, hash: hash(&salt, bytes) })
    }
}

impl fmt::Debug for Tombstone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tombstone").field("size_bytes", &self.size_bytes).finish_non_exhaustive()
    }
}

fn hash(salt: &[u8; 16], bytes: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(bytes).finalize().into()
}

/// Returns 16 bits of a multiply-shift hash, whose key is the salt.
fn filter(salt: &[u8; 16], window: [u8; 8]) -> u16 {
    let key = u128::from_le_bytes(*salt);
    let (add, factor) = (lower_half(key), lower_half(key >> 64) | 1);
    let mixed = (u64::from_le_bytes(window) ^ add).wrapping_mul(factor);
    let [.., low, high] = mixed.to_le_bytes();
    u16::from_le_bytes([low, high])
}

fn lower_half(bits: u128) -> u64 {
    u64::try_from(bits & u128::from(u64::MAX)).expect("64 bits fit")
}

/// The tombstones of a store, prepared for a search.
#[derive(Debug, Default)]
pub struct Tombstones {
    salts: BTreeMap<[u8; 16], Salted>,
}

/// The tombstones with one salt.
#[derive(Debug)]
struct Salted {
    /// One bit for each value of the filter.
    bits: Vec<u64>,
    /// The hashes by filter and size.
    hashes: BTreeMap<u16, BTreeMap<usize, Vec<[u8; 32]>>>,
}

impl Default for Salted {
    fn default() -> Self {
        Self { bits: vec![0; (usize::from(u16::MAX) + 1) / 64], hashes: BTreeMap::new() }
    }
}

impl Salted {
    fn is_set(&self, filter: u16) -> bool {
        let word = self.bits.get(usize::from(filter / 64)).copied().unwrap_or(0);
        word >> (filter % 64) & 1 == 1
    }

    fn add(&mut self, tombstone: &Tombstone) {
        if let Some(word) = self.bits.get_mut(usize::from(tombstone.filter / 64)) {
            *word |= 1 << (tombstone.filter % 64);
        }
        let sizes = self.hashes.entry(tombstone.filter).or_default();
        sizes.entry(tombstone.size_bytes).or_default().push(tombstone.hash);
    }
}

impl Tombstones {
    /// Prepares tombstones for a search.
    pub fn new(tombstones: &[Tombstone]) -> Self {
        let mut prepared = Self::default();
        for tombstone in tombstones {
            prepared.salts.entry(tombstone.salt).or_default().add(tombstone);
        }
        prepared
    }

    /// Returns where a text holds what has a tombstone: at most 100 places, in order and without overlap.
    ///
    /// This takes time linear in the length of the text. A text that was made to need more is reported at
    /// the place where the search was given up.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for (salt, salted) in &self.salts {
            found.extend(find(salt, salted, text.as_bytes()));
        }
        found.sort_by_key(|range| (range.start, range.end));
        let mut free_from = 0;
        found.retain(|range| {
            let is_free = range.start >= free_from;
            free_from = if is_free { range.end } else { free_from };
            is_free
        });
        found.truncate(FOUND_MAX);
        found
    }
}

fn find(salt: &[u8; 16], salted: &Salted, bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut free_from, mut hashed_bytes) = (0, 0);
    for (start, window) in bytes.windows(TOMBSTONE_SIZE_BYTES_MIN).enumerate() {
        let end = start + TOMBSTONE_SIZE_BYTES_MIN;
        let filter = window.first_chunk().map_or(0, |window| filter(salt, *window));
        if !salted.is_set(filter) {
            continue;
        }
        for (&size_bytes, hashes) in salted.hashes.get(&filter).into_iter().flatten() {
            let Some(start) = end.checked_sub(size_bytes).filter(|start| *start >= free_from)
            else {
                break;
            };
            hashed_bytes += size_bytes.max(BLOCK_SIZE_BYTES);
            let is_given_up = hashed_bytes > HASHED_BYTES_MAX;
            let candidate = bytes.get(start..end).unwrap_or_default();
            if is_given_up || hashes.contains(&hash(salt, candidate)) {
                found.push(start..end);
                free_from = end;
                if is_given_up || found.len() == FOUND_MAX {
                    return found;
                }
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SALT: [u8; 16] = *b"a salt for tests";

    fn tombstones(texts: &[&str]) -> Tombstones {
        let all: Vec<_> = texts.iter().filter_map(|text| Tombstone::new(SALT, text)).collect();
        Tombstones::new(&all)
    }

    #[test]
    fn a_text_that_comes_back_is_found_where_it_is() {
        let found = tombstones(&["sesame-open"]).find("käse: sesame-open, sesame-open!");
        assert_eq!(found, [7..18, 20..31]);
        assert!(tombstones(&["sesame-open"]).find("sesame-opem").is_empty());
        assert!(Tombstones::default().find("sesame-open").is_empty());
    }

    #[test]
    fn short_texts_have_no_tombstone() {
        assert!(Tombstone::new(SALT, "1234567").is_none());
        assert!(Tombstone::new(SALT, "12345678").is_some());
    }

    #[test]
    fn of_a_long_text_the_beginning_is_remembered() {
        let long = "ü".repeat(600) + "end";
        let found = tombstones(&[&long]).find(&long);
        assert_eq!(found.first(), Some(&(0..1024)));
        assert_eq!(
            Tombstone::new(SALT, &("x".to_owned() + &long)).map(|it| it.size_bytes),
            Some(1023)
        );
    }

    #[test]
    fn the_salt_decides_about_filter_and_hash() {
        let other = Tombstone::new(*b"some other salt!", "sesame-open").unwrap();
        let one = Tombstone::new(SALT, "sesame-open").unwrap();
        assert!(one.filter != other.filter && one.hash != other.hash);
        assert!(!format!("{one:?}").contains("hash"));
    }

    #[test]
    fn a_text_that_was_made_to_be_slow_is_given_up_and_reported() {
        let runs: Vec<_> =
            (0..1000).map(|extra| format!("{}xxxxxxxx", "y".repeat(extra + 8))).collect();
        let runs: Vec<_> = runs.iter().map(String::as_str).collect();
        let hostile = "zxxxxxxxx".repeat(11_000);
        assert_eq!(tombstones(&runs).find(&hostile).len(), 1);
    }

    /// The same by looking at every place.
    fn naive(text: &str, forgotten: &[String]) -> bool {
        forgotten
            .iter()
            .any(|it| it.len() >= TOMBSTONE_SIZE_BYTES_MIN && text.contains(it.as_str()))
    }

    proptest! {
        #[test]
        fn what_comes_back_is_found_and_nothing_else(
            text in "[ab]{0,200}",
            forgotten in proptest::collection::vec("[ab]{5,14}", 0..6),
        ) {
            let texts: Vec<_> = forgotten.iter().map(String::as_str).collect();
            let found = tombstones(&texts).find(&text);
            prop_assert_eq!(!found.is_empty(), naive(&text, &forgotten));
            for range in &found {
                prop_assert!(forgotten.iter().any(|it| Some(it.as_str()) == text.get(range.clone())));
            }
            prop_assert!(found.is_sorted_by(|one, next| one.end <= next.start));
        }

        #[test]
        fn every_text_is_found_in_whatever_surrounds_it(
            before: String, secret in "\\PC{8,400}", after: String,
        ) {
            prop_assert!(!tombstones(&[&secret]).find(&(before + &secret + &after)).is_empty());
        }
    }
}
