//! Predicates on frontmatter fields.

mod order;

use proptest::prelude::*;

use super::*;

fn check(predicate: Predicate, values: &[&str]) -> bool {
    FieldFilter { key: "k".to_owned(), predicate }.accepts(values.iter().copied())
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn numbers_compare_as_numbers_and_the_rest_as_text() {
    let greater = |than: &str| Predicate::Is(Comparison::Greater, than.to_owned());
    assert!(check(greater("9"), &["10"]));
    assert!(!check(greater("9"), &["10 apples"]));
    assert!(check(greater("2026-01-31"), &["2026-02-01"]));
    assert!(check(Predicate::Is(Comparison::Equal, "1.0".to_owned()), &["1"]));
    assert!(check(Predicate::Is(Comparison::Equal, "Done".to_owned()), &["done"]));
}

#[test]
fn a_moment_is_on_its_day() {
    let is = |comparison| Predicate::Is(comparison, "2026-11-15".to_owned());
    let moment = ["2026-11-15T10:00:00.000000Z"];
    assert!(check(is(Comparison::Equal), &moment));
    assert!(check(is(Comparison::LessOrEqual), &["2026-11-15 23:59"]));
    assert!(!check(is(Comparison::Greater), &moment));
    assert!(check(is(Comparison::Greater), &["2026-11-16T00:00:00Z"]));
    assert!(!check(is(Comparison::Equal), &["2026-11-15 tea"]));
}

#[test]
fn one_value_of_a_list_is_enough() {
    assert!(check(Predicate::In(texts(&["b", "c"])), &["a", "b"]));
    assert!(check(Predicate::Between("2".to_owned(), "3".to_owned()), &["1", "3"]));
    assert!(!check(Predicate::Between("2".to_owned(), "3".to_owned()), &["1", "4"]));
}

#[test]
fn contains_requires_every_substring() {
    assert!(check(Predicate::Contains(texts(&["a", "b"])), &["b", "A"]));
    assert!(!check(Predicate::Contains(texts(&["a", "x"])), &["b", "a"]));
    assert!(check(Predicate::Contains(texts(&["ea ho"])), &["Tea House"]));
}

#[test]
fn absence_is_a_predicate() {
    assert!(check(Predicate::Absent, &[]));
    assert!(check(Predicate::Is(Comparison::NotEqual, "x".to_owned()), &[]));
    assert!(!check(Predicate::Exists, &[]));
    assert!(check(Predicate::Exists, &[""]));
}

#[test]
fn every_comparison_against_every_order() {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    for (comparison, less, equal, greater) in [
        (Equal, false, true, false),
        (NotEqual, true, false, true),
        (Greater, false, false, true),
        (GreaterOrEqual, false, true, true),
        (Less, true, false, false),
        (LessOrEqual, true, true, false),
    ] {
        for (values, wanted) in [(["1", "2", "3"], "2"), (["a", "b", "c"], "B")] {
            let found = values.map(|it| check(Predicate::Is(comparison, wanted.to_owned()), &[it]));
            assert_eq!(found, [less, equal, greater], "{comparison:?} {wanted}");
        }
    }
}

#[test]
fn what_counts_as_a_number() {
    let equals = |left: &str, right: &str| {
        check(Predicate::Is(Comparison::Equal, right.to_owned()), &[left])
    };
    for (left, right) in
        [("1", "1.0"), (" 2 ", "2"), ("1e3", "1000"), ("-0.5", "-.5"), ("007", "7")]
    {
        assert!(equals(left, right), "{left} {right}");
    }
    // Infinity and NaN are texts here: a title may well be one.
    for (left, right) in
        [("inf", "infinity"), ("nan", "NaN "), ("1,0", "1"), ("0x10", "16"), ("", "0")]
    {
        assert!(!equals(left, right), "{left} {right}");
    }
    assert!(equals("NaN", "nan"));
}

#[test]
fn only_a_day_makes_a_timestamp_a_day() {
    let is = |wanted: &str, value: &str| {
        check(Predicate::Is(Comparison::Equal, wanted.to_owned()), &[value])
    };
    assert!(is("2026-11-15", "2026-11-15t10:00:00Z"));
    assert!(is("2026-11-15", "2026-11-15 10:00"));
    assert!(!is("2026-11-15T10:00", "2026-11-15T10:00:00Z"));
    assert!(!is("2026-11", "2026-11-15T10:00:00Z"));
    assert!(!is("2026-11-15", "2026-11-15Tea"));
    assert!(!is("2026/11/15", "2026-11-15"));
}

#[test]
fn a_field_without_values_matches_only_absence() {
    let filter = |predicate| FieldFilter { key: "k".to_owned(), predicate };
    for (predicate, expected) in [
        (Predicate::Exists, false),
        (Predicate::Absent, true),
        (Predicate::Is(Comparison::Equal, String::new()), false),
        (Predicate::Is(Comparison::NotEqual, String::new()), true),
        (Predicate::In(texts(&["a"])), false),
        (Predicate::Between("a".to_owned(), "b".to_owned()), false),
        (Predicate::Contains(texts(&["a"])), false),
        (Predicate::Contains(Vec::new()), true),
    ] {
        assert_eq!(filter(predicate.clone()).accepts_absence(), expected, "{predicate:?}");
    }
}

/// A number, a date or a word, as people write them.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (-50..50_i32).prop_map(|it| it.to_string()),
        (1..28_u8).prop_map(|day| format!("2026-01-{day:02}")),
        "[a-cA-Cé]{1,3}",
    ]
}

proptest! {
    #[test]
    fn comparisons_agree_with_each_other(left in value(), right in value()) {
        let is = |comparison| check(Predicate::Is(comparison, right.clone()), &[&left]);
        prop_assert_eq!(is(Comparison::Equal), !is(Comparison::NotEqual));
        prop_assert_eq!(is(Comparison::Greater), !is(Comparison::LessOrEqual));
        prop_assert_eq!(is(Comparison::Less), !is(Comparison::GreaterOrEqual));
        prop_assert_eq!(is(Comparison::Equal), is(Comparison::GreaterOrEqual) && is(Comparison::LessOrEqual));
        prop_assert_eq!(is(Comparison::Equal), check(Predicate::In(vec![right.clone()]), &[&left]));
    }

    #[test]
    fn between_is_both_bounds_at_once(value in value(), low in value(), high in value()) {
        let is = |comparison, wanted: &String| check(Predicate::Is(comparison, wanted.clone()), &[&value]);
        let expected = is(Comparison::GreaterOrEqual, &low) && is(Comparison::LessOrEqual, &high);
        prop_assert_eq!(check(Predicate::Between(low, high), &[&value]), expected);
    }

    #[test]
    fn a_list_matches_if_one_of_its_values_does(values in prop::collection::vec(value(), 0..4), wanted in value()) {
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        for comparison in [Comparison::Equal, Comparison::Greater, Comparison::LessOrEqual] {
            let is = |values: &[&str]| check(Predicate::Is(comparison, wanted.clone()), values);
            prop_assert_eq!(is(&values), values.iter().any(|value| is(&[value])));
        }
    }
}
