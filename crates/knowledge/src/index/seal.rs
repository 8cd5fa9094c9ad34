//! Seals: checksums of rows.
//!
//! SQLite detects a malformed page, but not a changed byte inside of a blob. A posting list with a
//! changed byte is often a valid list of other documents, so it would be trusted. Every row
//! therefore ends with a four-byte checksum of its contents and its key: a row that was changed, or
//! that is read in place of another one, is damage.
//!
//! This detects accidents, not attackers: anyone who can write the file can compute seals too.

use super::codec::Damaged;

/// Any odd number with about as many ones as zeros will do.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Accumulates the key of a row, and then seals its blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal(u64);

impl Seal {
    /// The size of a seal.
    pub(crate) const SIZE_BYTES: usize = 4;

    /// Starts with the name of the table, so that no row passes for one of another table.
    pub(crate) fn new(table: &str) -> Self {
        Self(FACTOR).with(table.as_bytes())
    }

    /// Adds a number.
    pub(crate) fn with_number(self, number: i64) -> Self {
        Self(mixed(self.0, u64::from_le_bytes(number.to_le_bytes())))
    }

    /// Adds a text or a blob.
    ///
    /// Eight bytes are mixed at a time: byte by byte, checksums would cost more than ranking.
    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut sum = self.0;
        for word in words {
            sum = mixed(sum, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        sum = mixed(sum, u64::from_le_bytes(last));
        // Without the length, trailing zeros would not count.
        Self(mixed(sum, u64::try_from(bytes.len()).unwrap_or(u64::MAX)))
    }

    /// Returns the blob followed by its seal.
    pub(crate) fn append_to(self, blob: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::with_capacity(blob.len() + Self::SIZE_BYTES);
        sealed.extend_from_slice(blob);
        sealed.extend_from_slice(&self.with(blob).bytes());
        sealed
    }

    /// Returns the blob without its seal, if the seal is valid.
    pub(crate) fn verify(self, sealed: &[u8]) -> Result<&[u8], Damaged> {
        let (blob, seal) = sealed.split_last_chunk::<{ Self::SIZE_BYTES }>().ok_or(Damaged)?;
        if self.with(blob).bytes() == *seal { Ok(blob) } else { Err(Damaged) }
    }

    /// Returns the seal of a row that has no blob.
    pub(crate) fn number(self) -> i64 {
        i64::from(u32::from_le_bytes(self.bytes()))
    }

    /// Returns all bits of the checksum.
    pub(crate) fn whole(self) -> u64 {
        self.0
    }

    fn bytes(self) -> [u8; Self::SIZE_BYTES] {
        let [a, b, c, d, ..] = self.0.to_be_bytes();
        [a, b, c, d]
    }
}

/// Multiplies to twice the width and folds the halves, so that every bit of both inputs counts.
fn mixed(sum: u64, word: u64) -> u64 {
    let product = u128::from(sum ^ word).wrapping_mul(u128::from(FACTOR));
    let half = |shift: u32| u64::try_from((product >> shift) & u128::from(u64::MAX)).unwrap_or(0);
    // The sum is added again: otherwise a word equal to it would erase everything before.
    (half(0) ^ half(64)).wrapping_add(sum.rotate_left(23))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seal(key: i64) -> Seal {
        Seal::new("tests").with_number(key)
    }

    proptest! {
        #[test]
        fn sealed_blobs_round_trip(blob in prop::collection::vec(any::<u8>(), 0..100), key: i64) {
            let sealed = seal(key).append_to(&blob);
            prop_assert_eq!(seal(key).verify(&sealed), Ok(blob.as_slice()));
        }

        #[test]
        fn a_changed_bit_is_damage(
            blob in prop::collection::vec(any::<u8>(), 0..100),
            bit in any::<prop::sample::Index>(),
        ) {
            let mut sealed = seal(7).append_to(&blob);
            let bit = bit.index(sealed.len() * 8);
            sealed[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(seal(7).verify(&sealed), Err(Damaged));
        }

        #[test]
        fn a_truncated_or_zeroed_blob_is_damage(
            blob in prop::collection::vec(any::<u8>(), 1..100),
            size in any::<prop::sample::Index>(),
        ) {
            let sealed = seal(7).append_to(&blob);
            let cut = size.index(sealed.len());
            prop_assert_eq!(seal(7).verify(&sealed[..cut]), Err(Damaged));
            let mut torn = sealed.clone();
            torn[cut..].fill(0);
            prop_assert!(torn == sealed || seal(7).verify(&torn).is_err());
        }
    }

    #[test]
    fn a_row_in_place_of_another_is_damage() {
        let sealed = seal(7).append_to(b"tea");
        assert_eq!(seal(8).verify(&sealed), Err(Damaged));
        assert_eq!(Seal::new("others").with_number(7).verify(&sealed), Err(Damaged));
        assert_ne!(Seal::new("a").with(b"bc").number(), Seal::new("ab").with(b"c").number());
    }
}
