use proptest::prelude::*;

use super::super::codec::{Damaged, Input, put_bytes, put_varint};

fn encoded(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, number);
    bytes
}

/// Each group of 7 bits takes a byte, and the boundary lies between `2^7n - 1` and `2^7n`.
#[test]
fn varints_grow_by_a_byte_every_seven_bits() {
    for groups in 1..=9_u32 {
        let limit = 1_u64 << (7 * groups);
        assert_eq!(encoded(limit - 1).len(), groups as usize, "{}", limit - 1);
        assert_eq!(encoded(limit).len(), groups as usize + 1, "{limit}");
        for number in [limit - 1, limit, limit + 1] {
            assert_eq!(Input::new(&encoded(number)).varint(), Ok(number));
        }
    }
    assert_eq!(encoded(u64::MAX).len(), 10);
    assert_eq!(Input::new(&encoded(u64::MAX)).varint(), Ok(u64::MAX));
    assert_eq!(encoded(0), [0]);
    assert_eq!(encoded(127), [0x7f]);
    assert_eq!(encoded(128), [0x80, 1]);
}

#[test]
fn numbers_that_exceed_their_type_are_damage() {
    let limit = u64::from(u32::MAX);
    assert_eq!(Input::new(&encoded(limit)).varint_u32(), Ok(u32::MAX));
    assert_eq!(Input::new(&encoded(limit + 1)).varint_u32(), Err(Damaged));
    assert_eq!(Input::new(&encoded(u64::MAX)).varint_usize(), Ok(usize::MAX));
}

#[test]
fn a_truncated_number_is_damage_at_every_length() {
    for number in [128, 1 << 14, 1 << 35, u64::MAX] {
        let bytes = encoded(number);
        for end in 0..bytes.len() {
            assert_eq!(Input::new(&bytes[..end]).varint(), Err(Damaged), "{number} at {end}");
        }
    }
}

#[test]
fn a_failed_read_of_fixed_size_consumes_nothing() {
    let mut input = Input::new(&[1, 2, 3]);
    assert_eq!(input.array::<4>(), Err(Damaged));
    assert_eq!(input.take(4), Err(Damaged));
    assert_eq!(input.len(), 3);
    assert_eq!(input.array::<2>(), Ok([1, 2]));
    assert_eq!(input.take(0), Ok(&[][..]));
    assert_eq!(input.byte(), Ok(3));
    assert!(input.is_empty());
    assert_eq!(input.byte(), Err(Damaged));
    assert_eq!(input.array::<0>(), Ok([]));
}

#[test]
fn a_text_that_is_not_utf8_is_damage() {
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, "日本".as_bytes());
    assert_eq!(Input::new(&bytes).text(), Ok("日本"));
    let mut cut = Vec::new();
    put_bytes(&mut cut, &"日本".as_bytes()[..4]);
    assert_eq!(Input::new(&cut).text(), Err(Damaged));
    assert_eq!(Input::new(&cut).bytes().map(<[u8]>::len), Ok(4));
}

proptest! {
    /// Values of every kind come back in order, and what follows them is untouched.
    #[test]
    fn mixed_values_come_back(
        values in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..200)), 0..8),
        rest in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut bytes = Vec::new();
        for (number, value) in &values {
            put_varint(&mut bytes, u64::from(*number));
            put_bytes(&mut bytes, value);
        }
        bytes.extend(&rest);
        let mut input = Input::new(&bytes);
        for (number, value) in &values {
            prop_assert_eq!(input.varint_u32(), Ok(*number));
            prop_assert_eq!(input.bytes(), Ok(value.as_slice()));
        }
        prop_assert_eq!(input.take(input.len()), Ok(rest.as_slice()));
    }

    /// A list of values that was cut off is a shorter list, or damage: never another list.
    #[test]
    fn truncated_values_are_never_other_values(
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..160), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        for value in &values {
            put_bytes(&mut bytes, value);
        }
        let mut input = Input::new(&bytes[..cut.index(bytes.len())]);
        for value in &values {
            match input.bytes() {
                Ok(found) => prop_assert_eq!(found, value.as_slice()),
                Err(Damaged) => return Ok(()),
            }
        }
        prop_assert!(false, "all values were read from a part of them");
    }
}
