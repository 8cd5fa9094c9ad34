//! Encoding of numbers and byte strings.
//!
//! Blobs are read from a disk that may be damaged, so decoding can fail, but never panics, and
//! never allocates more than the blob could hold.

/// A blob of the index is malformed. The index is derived, so the remedy is always to rebuild it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Appends a number as a varint: groups of 7 bits, the lowest first.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Appends a length-prefixed value.
pub(crate) fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    put_varint(bytes, u64::try_from(value.len()).unwrap_or(u64::MAX));
    bytes.extend_from_slice(value);
}

/// A cursor over a blob.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of bytes left, which bounds what they can hold.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Damaged> {
        let (first, rest) = self.0.split_first().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Damaged> {
        // Most numbers fit into one byte, so the common case has no loop.
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(shift).filter(|it| it >> shift == bits).ok_or(Damaged)?;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    /// Skips numbers without decoding them.
    pub(crate) fn skip_varints(&mut self, count: usize) -> Result<(), Damaged> {
        if count == 0 {
            return Ok(());
        }
        let ends = self.0.iter().zip(1..).filter(|(byte, _)| **byte < 0x80);
        let (_, end) = ends.into_iter().nth(count - 1).ok_or(Damaged)?;
        self.take(end).map(drop)
    }

    pub(crate) fn varint_u32(&mut self) -> Result<u32, Damaged> {
        u32::try_from(self.varint()?).ok().ok_or(Damaged)
    }

    pub(crate) fn varint_usize(&mut self) -> Result<usize, Damaged> {
        usize::try_from(self.varint()?).ok().ok_or(Damaged)
    }

    /// Takes the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes a length-prefixed value, as written by [`put_bytes`].
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Damaged> {
        let count = self.varint_usize()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Damaged> {
        str::from_utf8(self.bytes()?).ok().ok_or(Damaged)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            for number in &numbers {
                put_varint(&mut bytes, *number);
            }
            let mut input = Input::new(&bytes);
            for number in numbers {
                prop_assert_eq!(input.varint(), Ok(number));
            }
            prop_assert!(input.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut input = Input::new(&bytes);
            while input.varint().is_ok() {}
            let mut input = Input::new(&bytes);
            while input.text().is_ok() {}
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let mut too_long = vec![0xff; 9];
        too_long.push(0x02);
        assert_eq!(Input::new(&too_long).varint(), Err(Damaged));
        assert_eq!(Input::new(&[0xff; 11]).varint(), Err(Damaged));
        assert_eq!(Input::new(&[0x80]).varint(), Err(Damaged));
        assert_eq!(Input::new(&[5, 1, 2]).bytes(), Err(Damaged));
    }
}
