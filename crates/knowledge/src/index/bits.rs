//! Sets of documents of one segment.

use super::codec::Damaged;
use super::postings::Doc;

/// A set of documents, one bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// Returns the empty set of `len` possible documents.
    pub(crate) fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// Returns the set of all `len` documents.
    pub(crate) fn all(len: usize) -> Self {
        let mut bits = Self { words: vec![u64::MAX; len.div_ceil(64)], len };
        bits.trim();
        bits
    }

    /// Clears what is beyond the last document.
    fn trim(&mut self) {
        let used = self.len % 64;
        if used > 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << used) - 1;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn contains(&self, doc: Doc) -> bool {
        let doc = usize::try_from(doc).unwrap_or(usize::MAX);
        self.words.get(doc / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    /// Adds a document. One that the segment does not have is damage.
    pub(crate) fn insert(&mut self, doc: Doc) -> Result<(), Damaged> {
        let doc = usize::try_from(doc).ok().ok_or(Damaged)?;
        let word = self.words.get_mut(doc / 64).filter(|_| doc < self.len).ok_or(Damaged)?;
        *word |= 1 << (doc % 64);
        Ok(())
    }

    pub(crate) fn remove(&mut self, doc: Doc) {
        let doc = usize::try_from(doc).unwrap_or(usize::MAX);
        if let Some(word) = self.words.get_mut(doc / 64) {
            *word &= !(1 << (doc % 64));
        }
    }

    pub(crate) fn intersect(&mut self, other: &Self) {
        self.combine(other, |mine, other| mine & other);
    }

    pub(crate) fn unite(&mut self, other: &Self) {
        self.combine(other, |mine, other| mine | other);
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.combine(other, |mine, other| mine & !other);
    }

    fn combine(&mut self, other: &Self, operation: fn(u64, u64) -> u64) {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        for (mine, other) in self.words.iter_mut().zip(others) {
            *mine = operation(*mine, other);
        }
    }

    /// Returns the documents in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Doc> {
        self.words.iter().enumerate().flat_map(|(place, word)| {
            let start = Doc::try_from(place * 64).unwrap_or(Doc::MAX);
            let mut rest = *word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(start + bit)
            })
        })
    }

    /// Returns the set as bytes, the lowest documents first.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Adds the documents of a set as bytes, the first of which has the number `start`.
    pub(crate) fn insert_bytes(&mut self, start: Doc, bytes: &[u8]) -> Result<(), Damaged> {
        for (place, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            let first = Doc::try_from(place * 8).ok().and_then(|it| start.checked_add(it));
            let first = first.ok_or(Damaged)?;
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                self.insert(first.checked_add(bit).ok_or(Damaged)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const LEN: usize = 200;

    fn bits(docs: &BTreeSet<Doc>) -> Bits {
        let mut bits = Bits::none(LEN);
        for doc in docs {
            bits.insert(*doc).unwrap();
        }
        bits
    }

    fn set() -> impl Strategy<Value = BTreeSet<Doc>> {
        prop::collection::btree_set(0..Doc::try_from(LEN).unwrap(), 0..50)
    }

    proptest! {
        #[test]
        fn sets_behave_like_sets(left in set(), right in set()) {
            let listed = |bits: &Bits| bits.iter().collect::<BTreeSet<_>>();
            let combined = |combine: fn(&mut Bits, &Bits)| {
                let mut both = bits(&left);
                combine(&mut both, &bits(&right));
                listed(&both)
            };
            prop_assert_eq!(combined(Bits::intersect), &left & &right);
            prop_assert_eq!(combined(Bits::unite), &left | &right);
            prop_assert_eq!(combined(Bits::subtract), &left - &right);
            prop_assert_eq!(bits(&left).count(), left.len());
            let mut copy = Bits::none(LEN);
            copy.insert_bytes(0, &bits(&left).to_bytes()).unwrap();
            prop_assert_eq!(listed(&copy), left);
        }
    }

    #[test]
    fn documents_beyond_the_end_are_damage() {
        for len in [0, 1, 63, 64, 65, 130] {
            let end = Doc::try_from(len).unwrap();
            assert_eq!(Bits::all(len).count(), len);
            assert_eq!(Bits::none(len).insert(end), Err(Damaged));
            assert_eq!(Bits::none(len).insert_bytes(end, &[1]), Err(Damaged));
            assert!(!Bits::all(len).contains(end));
        }
    }
}
