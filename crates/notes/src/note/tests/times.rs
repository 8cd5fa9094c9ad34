//! Time qualifiers of observations.

use std::ops::Bound;

use super::note;
use crate::TimeKind;

/// Returns a qualifier as `kind from until`, and the text after it.
fn qualifier(text: &str) -> Option<(String, String)> {
    let observation = note(&format!("- [k] {text} fact")).observations.remove(0);
    let time = observation.times.first()?;
    let bound = |bound: &Bound<String>, included: &str, excluded: &str| match bound {
        Bound::Included(date) => format!("{included}{date}"),
        Bound::Excluded(date) => format!("{excluded}{date}"),
        Bound::Unbounded => "..".to_owned(),
    };
    let (from, until) = (bound(&time.from, ">=", ">"), bound(&time.until, "<=", "<"));
    Some((format!("{} {from} {until}", time.kind.as_str()), observation.text))
}

#[test]
fn points_and_spans() {
    for (text, expected) in [
        ("@2026", "valid >=2026 <=2026"),
        ("@2026-06", "valid >=2026-06 <=2026-06"),
        ("@2026-06-10", "valid >=2026-06-10 <=2026-06-10"),
        ("@2026-06-10T08:30", "valid >=2026-06-10T08:30 <=2026-06-10T08:30"),
        (
            "@2026-06-10T08:30:00+02:00",
            "valid >=2026-06-10T08:30:00+02:00 <=2026-06-10T08:30:00+02:00",
        ),
        ("@due:2026-06", "due >=2026-06 <=2026-06"),
        ("@occurred:2026-06-10", "occurred >=2026-06-10 <=2026-06-10"),
        ("@[2026,2027]", "valid >=2026 <=2027"),
        ("@(2026,2027)", "valid >2026 <2027"),
        ("@[2026, 2027)", "valid >=2026 <2027"),
        ("@[ 2026 ,2027]", "valid >=2026 <=2027"),
        ("@[2026,]", "valid >=2026 .."),
        ("@(,2027)", "valid .. <2027"),
        ("@effective[2026-06-10,2026-07-27)", "effective >=2026-06-10 <2026-07-27"),
        ("@mentioned(2026,]", "mentioned >2026 .."),
    ] {
        assert_eq!(qualifier(text), Some((expected.to_owned(), "fact".to_owned())), "{text}");
    }
}

#[test]
fn malformed_dates_are_text() {
    for text in [
        "@",
        "@you",
        "@2026x",
        "@26",
        "@202",
        "@20260",
        "@2026-1",
        "@2026-00",
        "@2026-13",
        "@2026-02-30",
        "@2026-06-10T25:00",
        "@due",
        "@due:",
        "@due:soon",
        "@due2026",
        "@Due:2026",
        "@later:2026",
        "@[2026]",
        "@[,]",
        "@[2026,x]",
        "@[2026,2027",
        "@[2026,2027]x",
        "@{2026,2027}",
        "@-2026",
        "@2026-",
        "@２０２６",
    ] {
        assert_eq!(qualifier(text), None, "{text}");
        let found = note(&format!("- [k] {text} fact")).observations;
        assert_eq!(found[0].text, format!("{text} fact"));
    }
}

#[test]
fn several_qualifiers_stand_before_the_fact() {
    let found = note("- [k] @2026 @due:2027 @mentioned:2028-01 fact @2029 #tag").observations;
    let kinds: Vec<_> = found[0].times.iter().map(|time| time.kind).collect();
    assert_eq!(kinds, [TimeKind::Valid, TimeKind::Due, TimeKind::Mentioned]);
    assert_eq!(found[0].text, "fact @2029 #tag");
    assert_eq!(found[0].written_times(), ["@2026", "@due:2027", "@mentioned:2028-01"]);
}

#[test]
fn every_kind_has_its_keyword() {
    for kind in [
        TimeKind::Effective,
        TimeKind::Valid,
        TimeKind::Occurred,
        TimeKind::Due,
        TimeKind::Mentioned,
    ] {
        let found = note(&format!("- [k] @{}:2026 fact", kind.as_str())).observations;
        assert_eq!(found[0].times[0].kind, kind);
    }
}
