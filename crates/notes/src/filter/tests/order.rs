//! Comparing values is an order, so that ranges mean what they say.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

#[test]
fn zero_has_no_sign() {
    for (left, right) in [("-0", "0"), ("0", "-0.0"), ("-0", "0e5"), ("+0", "-0")] {
        assert_eq!(compare(left, right), Ordering::Equal, "{left} and {right}");
    }
    let none = Predicate::Is(Comparison::Equal, "0".to_owned());
    assert!(check(none, &["-0"]));
    assert!(!check(Predicate::Is(Comparison::Less, "0".to_owned()), &["-0.0"]));
}

#[test]
fn numbers_of_every_form() {
    let ascending = ["-1e9", "-2", "-1.5", "0", "0.1", "1", "1.5", "2", "10", "1e2", "1e300"];
    for (place, left) in ascending.iter().enumerate() {
        for (other, right) in ascending.iter().enumerate() {
            assert_eq!(compare(left, right), place.cmp(&other), "{left} and {right}");
        }
    }
    for same in ["7", " 7 ", "7.0", "07", "+7", "7e0", "0.7e1"] {
        assert_eq!(compare(same, "7"), Ordering::Equal, "{same}");
    }
}

/// `inf` and `nan` are words: as numbers they would compare with nothing.
#[test]
fn infinity_is_a_word() {
    for word in ["inf", "Infinity", "nan", "NaN", "-inf", "1e999"] {
        assert_eq!(compare(word, word), Ordering::Equal, "{word}");
        assert_eq!(compare(word, "5"), word.to_lowercase().as_str().cmp("5"), "{word}");
    }
}

#[test]
fn dates_are_ordered_as_texts() {
    let ascending = ["2025-12-31", "2026-01-01", "2026-01-31", "2026-02-01", "2026-11-15"];
    for pair in ascending.windows(2) {
        assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
    }
    let between = Predicate::Between("2026-01-01".to_owned(), "2026-01-31".to_owned());
    assert!(check(between.clone(), &["2026-01-31T23:59:59Z"]), "the last day counts to its end");
    assert!(check(between.clone(), &["2026-01-01 00:00"]));
    assert!(!check(between.clone(), &["2026-02-01T00:00:00Z"]));
    assert!(!check(between, &["2025-12-31T23:59:59Z"]));
}

#[test]
fn case_does_not_matter_in_any_script() {
    for (left, right) in [("ÄRGER", "ärger"), ("ΣΟΦΌΣ", "σοφός"), ("Чай", "чай"), ("TEA", "tea")]
    {
        assert!(check(Predicate::Is(Comparison::Equal, left.to_owned()), &[right]), "{left}");
        assert!(check(Predicate::In(texts(&[left])), &[right]), "{left}");
        assert!(check(Predicate::Contains(texts(&[left])), &[right]), "{left}");
    }
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        (-50_i32..50).prop_map(|it| it.to_string()),
        (-50_i32..50).prop_map(|it| format!("{it}.5")),
        (-5_i32..5).prop_map(|it| format!(" {it}.0 ")),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-cA-C]{0,3}", "[a-c ]{1,4}", Just("tea".to_owned())]
}

proptest! {
    #[test]
    fn numbers_are_ordered(values in prop::collection::vec(number(), 3)) {
        is_ordered(&values)?;
        let parsed: Vec<f64> = values.iter().map(|it| it.trim().parse().unwrap()).collect();
        prop_assert_eq!(Some(compare(&values[0], &values[1])), parsed[0].partial_cmp(&parsed[1]));
    }

    #[test]
    fn words_are_ordered(values in prop::collection::vec(word(), 3)) {
        is_ordered(&values)?;
    }

    /// A predicate and its opposite share no value.
    #[test]
    fn opposites_exclude_each_other(value in prop_oneof![number(), word()], wanted in prop_oneof![number(), word()]) {
        for (one, other) in [
            (Comparison::Equal, Comparison::NotEqual),
            (Comparison::Less, Comparison::GreaterOrEqual),
            (Comparison::Greater, Comparison::LessOrEqual),
        ] {
            let holds = |comparison| check(Predicate::Is(comparison, wanted.clone()), &[&value]);
            prop_assert_ne!(holds(one), holds(other));
        }
        let is_in = check(Predicate::In(vec![wanted.clone()]), &[&value]);
        let equals = check(Predicate::Is(Comparison::Equal, wanted.clone()), &[&value]);
        prop_assert_eq!(is_in, equals);
        let contains = check(Predicate::Contains(vec![wanted]), &[&value]);
        prop_assert!(contains || !equals, "what equals a value is contained in it");
    }
}

fn is_ordered(values: &[String]) -> Result<(), TestCaseError> {
    let [first, second, third] = values else { panic!("there are three") };
    prop_assert_eq!(compare(first, first), Ordering::Equal);
    prop_assert_eq!(compare(first, second), compare(second, first).reverse());
    if compare(first, second) != Ordering::Greater && compare(second, third) != Ordering::Greater {
        prop_assert_ne!(compare(first, third), Ordering::Greater);
    }
    Ok(())
}
