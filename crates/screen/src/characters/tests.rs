//! Character classes and borders.

use super::*;

const CLASSES: [(Class, &str, &str); 9] = [
    (Class::Digit, "09", "aA_-+"),
    (Class::Hex, "09af", "gAF_-"),
    (Class::AnyHex, "09afAF", "gG_-"),
    (Class::Upper, "09AZ", "az_-"),
    (Class::Alnum, "09azAZ", "_-+/"),
    (Class::Word, "09azAZ_-", "+/.="),
    (Class::Base64, "09azAZ+/", "_-=."),
    (Class::Bearer, "09azAZ_-.~+/", "=:; "),
    (Class::Value, "09azAZ_-.~+/!@#$%^*", "=:;()[]{}<>\"'`, "),
];

#[test]
fn classes_hold_their_characters_and_no_others() {
    for (class, inside, outside) in CLASSES {
        assert!(inside.bytes().all(|byte| class.holds(byte)), "{class:?}");
        assert!(!outside.bytes().any(|byte| class.holds(byte)), "{class:?}");
        assert!(!(0x80..=0xff).any(|byte| class.holds(byte)), "{class:?}");
        assert!(!(0..0x20).any(|byte| class.holds(byte)), "{class:?}");
    }
}

#[test]
fn a_run_ends_at_the_first_other_byte() {
    assert_eq!(Class::Digit.run_end(b"x123y", 1), 4);
    assert_eq!(Class::Digit.run_end(b"x123y", 0), 0);
    assert_eq!(Class::Digit.run_end(b"123", 0), 3);
    assert_eq!(Class::Digit.run_end(b"123", 9), 9);
}

#[test]
fn padding_is_at_most_two_signs() {
    for (text, end) in [("", 0), ("x", 0), ("=", 1), ("==", 2), ("===", 2), ("=x=", 1)] {
        assert_eq!(padding_end(text.as_bytes(), 0), end, "{text}");
    }
}

#[test]
fn where_a_token_may_begin() {
    for (before, expected) in [
        ("", true),
        (" ", true),
        ("=", true),
        ("\"", true),
        ("(", true),
        (".", true),
        ("/", true),
        ("é", true),
        ("\\n", true),
        ("\\t", true),
        ("%3D", true),
        ("%20", true),
        ("${T:-", true),
        (" -", true),
        ("\"_", true),
        ("a", false),
        ("7", false),
        ("a-", false),
        ("a_", false),
        ("]", false),
        ("3D", false),
        ("n", false),
    ] {
        let text = format!("{before}token");
        assert_eq!(begins_token(text.as_bytes(), before.len()), expected, "{before}");
    }
}

#[test]
fn where_a_token_may_end() {
    for (after, expected) in [
        ("", true),
        (" ", true),
        (".", true),
        ("=", true),
        ("é", true),
        ("a", false),
        ("-", false),
        ("[", false),
    ] {
        let text = format!("token{after}");
        assert_eq!(ends_token(text.as_bytes(), "token".len()), expected, "{after}");
    }
}

#[test]
fn bytes_before_a_place() {
    assert_eq!(before(b"abc", 2, 1), Some(b'b'));
    assert_eq!(before(b"abc", 2, 2), Some(b'a'));
    assert_eq!(before(b"abc", 2, 3), None);
    assert_eq!(before(b"abc", 9, 1), None);
}
