//! Random values beside everything that looks like them.

use super::*;
use crate::tests::{ALNUM, BASE64, Dice, HEX, WORD};

/// Values that people, programs and documents write where a credential could be.
const ORDINARY: &[&str] = &[
    "hunter2",
    "password123456789",
    "correct-horse-battery-staple",
    "thisIsALongCamelCaseIdentifier",
    "snake_case_identifier_with_words",
    "DB_PASSWORD_FOR_PRODUCTION",
    "getAccessTokenFromProvider",
    "application_default_credentials",
    "wildcard-tls-cert-2024-eu1",
    "cmp2-qat-1208358",
    "jackson-0.11.2",
    "v1.2.3-rc1.build.4711",
    "your-secret-key-here",
    "REPLACE_WITH_YOUR_KEY_1234",
    "changeme-changeme-changeme",
    "example-token-1234567890abcd",
    "xxxxxxxxxxxxxxxxxxxxxxxx",
    "************************",
    "aaaaaaaaaaaaaaaaaaaaaaaa",
    "1234567890123456789012",
    "0123456789abcdef0123456789abcdef",
    "abcdefghijklmnopqrstuvwxyz",
    "7d444840-9dc0-11d1-b245-5ffdce74fad2",
    "0x6B175474E89094C44Da98b954EedeAC495271d0F",
    "sha256-9f86d081884c7d659a2feaa0c55ad015",
    "md5:5d41402abc4b2a76b9719d911017c592",
    "deadbeefdeadbeefdeadbeefdeadbeef",
    "2026-11-18T10:00:00.000Z",
    "short1A",
    "",
];

#[test]
fn random_values_are_random() {
    let mut dice = Dice::new(5);
    for (alphabet, size, percent_min) in [
        (ALNUM, 20, 90),
        (ALNUM, 32, 95),
        (HEX, 32, 90),
        (HEX, 64, 95),
        (BASE64, 40, 95),
        (WORD, 43, 95),
    ] {
        let count = 500;
        let found = (0..count).filter(|_| is_random_value(dice.text(alphabet, size).as_bytes()));
        let found = found.count();
        assert!(found * 100 >= percent_min * count, "{size}: {found} of {count}");
    }
}

#[test]
fn ordinary_values_are_not() {
    for text in ORDINARY {
        assert!(!is_random_value(text.as_bytes()), "{text}");
    }
}

#[test]
fn values_are_long_and_mixed() {
    let mut dice = Dice::new(6);
    for _ in 0..200 {
        let value = dice.text(ALNUM, VALUE_SIZE_BYTES_MIN - 1);
        assert!(!is_random_value(value.as_bytes()), "{value}");
        let digits = dice.text("0123456789", 24);
        assert!(!is_random_value(digits.as_bytes()), "{digits}");
        let lower = dice.text("abcdefghijklmnopqrstuvwxyz", 24);
        assert!(!is_random_value(lower.as_bytes()), "{lower}");
    }
}

#[test]
fn words_are_wordy_and_random_letters_are_not() {
    for text in [
        "international",
        "configuration",
        "authentication_provider",
        "processEnvironmentVariables",
        "the-quick-brown-fox",
        "productionDatabasePassword",
        "understanding",
    ] {
        assert!(is_wordy(text.as_bytes()), "{text}");
    }
    let mut dice = Dice::new(7);
    let wordy = (0..500).filter(|_| is_wordy(dice.text(ALNUM, 24).as_bytes())).count();
    assert!(wordy <= 10, "{wordy}");
    for text in ["9f86d081884c7d65", "1234567890", "a", "zqxjkvwzqxjkvw"] {
        assert!(!is_wordy(text.as_bytes()), "{text}");
    }
}

#[test]
fn sequences() {
    for text in ["aaaaaaaa", "12345678", "abcdefgh", "aabbccdd", "abcabcabc", "0011223344", ""] {
        assert!(is_sequence(text.as_bytes()), "{text}");
    }
    for text in ["a1b2c3d4", "zyxwvuts", "qwertyui", "13579acegi"] {
        assert!(!is_sequence(text.as_bytes()), "{text}");
    }
}

#[test]
fn placeholders_have_letters_of_one_case() {
    for text in
        ["your-key", "YOUR_KEY", "Your-Key", "xxxx", "XXXX", "a...b", "changeme", "ChangeMe"]
    {
        let expected = text != "ChangeMe";
        assert_eq!(is_left_blank(text.as_bytes()), expected, "{text}");
    }
    // A long random text holds any short word in mixed case.
    assert!(!is_left_blank(b"k3yOuR9x"));
    assert!(has_placeholder(b"an-example-key") && !is_left_blank(b"an-example-key"));
}

#[test]
fn ids_and_names_of_constants() {
    assert!(is_uuid(b"7d444840-9dc0-11d1-b245-5ffdce74fad2"));
    for text in
        ["7d444840-9dc0-11d1-b245", "7d444840-9dc0-11d1-b245-5ffdce74fad2-1", "7d444840", ""]
    {
        assert!(!is_uuid(text.as_bytes()), "{text}");
    }
    assert!(is_constant(b"DB_PASSWORD_V2") && !is_constant(b"DBPASSWORD") && !is_constant(b"Db_x"));
    assert!(is_slug(b"cmp2-qat-1208358") && is_slug(b"a.b.c") && !is_slug(b"plain"));
    assert!(!is_slug(b"a1b2c3d4e5-f6g7h8"));
    assert!(is_named_hash(b"sha512-abc") && is_named_hash(b"md5x") && !is_named_hash(b"hash"));
    assert!(is_ethereum_address(b"0x6B175474E89094C44Da98b954EedeAC495271d0F"));
}

#[test]
fn entropy_is_that_of_shannon() {
    for (text, expected) in [("aaaa", 0.0), ("abab", 1.0), ("abcd", 2.0), ("abcdefgh", 3.0)] {
        let counts = Counts::of(text.as_bytes());
        assert!((counts.entropy_bits() - expected).abs() < 1e-9, "{text}");
    }
    assert_eq!(Counts::of(b"abca").distinct(), 3);
    assert_eq!(Counts::of(b"").distinct(), 0);
}

#[test]
fn a_long_prefix_vouches_for_its_body() {
    // Made up, but nobody writes this prefix by chance.
    assert!(is_body(b"ghp_", b"abcdefghijklmnopqrstuvwxyz0123456789"));
    assert!(!is_body(b"sk-", b"abcdefghijklmnopqrst"));
    assert!(!is_body(b"ghp_", b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    assert!(!is_body(b"sk-ant-", b"your-api-key-goes-here-please"));
    assert!(!is_body(b"glpat-", b"some-words-and-more-words"));
}
