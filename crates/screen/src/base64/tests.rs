//! Decoding, against the encoder of the tests.

use proptest::prelude::*;

use super::*;
use crate::tests::encoded;

#[test]
fn both_alphabets_are_read() {
    assert_eq!(decoded(b"Pj4_Pz8-"), b">>???>");
    assert_eq!(decoded(b"Pj4/Pz8+"), b">>???>");
}

#[test]
fn decoding_stops_at_other_bytes() {
    for (digits, expected) in [
        ("", ""),
        ("YQ", "a"),
        ("YQ==", "a"),
        ("YWI=", "ab"),
        ("YWJj", "abc"),
        ("YWJj YWJj", "abc"),
        ("YWJj.YWJj", "abc"),
        ("é", ""),
    ] {
        assert_eq!(decoded(digits.as_bytes()), expected.as_bytes(), "{digits}");
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_to_the_same(text in any::<String>()) {
        prop_assert_eq!(decoded(encoded(&text).as_bytes()), text.into_bytes());
    }

    #[test]
    fn any_bytes_are_decoded(bytes in any::<Vec<u8>>()) {
        prop_assert!(decoded(&bytes).len() <= bytes.len());
    }
}
