//! Parsing what was formatted returns the same.

use proptest::prelude::*;

use super::*;
use crate::TimeQualifier;

fn words() -> impl Strategy<Value = String> {
    "[a-zé茶]{1,6}( [a-zé茶]{1,6}){0,3}"
}

fn time() -> impl Strategy<Value = TimeQualifier> {
    let date = prop_oneof![
        (1970..2100_u16).prop_map(|year| year.to_string()),
        (1970..2100_u16, 1..=12_u8).prop_map(|(year, month)| format!("{year}-{month:02}")),
        (1970..2100_u16, 1..=12_u8, 1..=28_u8)
            .prop_map(|(year, month, day)| format!("{year}-{month:02}-{day:02}")),
    ];
    let kind = prop::sample::select(vec!["", "effective", "valid", "occurred", "due", "mentioned"]);
    let form = prop::sample::select(vec!["point", "[]", "()", "[)"]);
    (kind, form, date.clone(), date).prop_map(|(word, form, from, until)| {
        let written = match form {
            "point" if word.is_empty() => format!("@{from}"),
            "point" => format!("@{word}:{from}"),
            brackets => {
                let (open, close) = brackets.split_at(1);
                format!("@{word}{open}{from},{until}{close}")
            }
        };
        let observation = note(&format!("- [k] {written} x")).observations.remove(0);
        assert_eq!(observation.times.len(), 1, "{written}");
        observation.times.into_iter().next().unwrap()
    })
}

proptest! {
    #[test]
    fn observations(
        category in "[a-z]{2,8}( [a-z]{1,5})?",
        words in words(),
        tags in prop::collection::vec("[a-z]{1,5}", 0..3),
        context in prop::option::of(words()),
        times in prop::collection::vec(time(), 0..3),
    ) {
        let text = tags.iter().fold(words, |text, tag| format!("{text} #{tag}"));
        let mut distinct = tags;
        let mut seen = HashSet::new();
        distinct.retain(|tag| seen.insert(tag.clone()));
        let observation = Observation { category, text, tags: distinct, context, times, line: 1 };
        let parsed = note(&format!("- {observation}\n")).observations;
        prop_assert_eq!(parsed, vec![observation]);
    }

    #[test]
    fn relations(
        kind in "[a-z_]{1,10}",
        name in "[a-zé茶]{1,6}( [a-z]{1,6}){0,2}",
        store in prop::option::of("[a-z]{1,6}"),
        section in prop::option::of("[a-z]{1,6}"),
        alias in prop::option::of(words()),
        context in prop::option::of(words()),
    ) {
        let wanted = LinkTarget { store, name, section, alias };
        let mut text = format!("- {kind} [[{}]]", target(&wanted));
        text.extend(context.iter().map(|context| format!(" ({context})")));
        let is_worded = kind.chars().any(char::is_alphanumeric);
        let found = note(&text).relations;
        prop_assert_eq!(found.len(), usize::from(is_worded), "{}", text);
        if let [relation] = found.as_slice() {
            prop_assert_eq!(&relation.target, &wanted);
            prop_assert_eq!((&relation.kind, &relation.context), (&kind, &context));
        }
    }

    #[test]
    fn links_in_running_text(
        before in words(), after in words(),
        name in "[a-zé]{1,6}( [a-z]{1,6})?",
        embed in prop::sample::select(vec!["", "!"]),
    ) {
        let text = format!("{before} {embed}[[{name}]] {after}");
        let found = note(&text).links;
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(&found[0].target.name, &name);
        prop_assert_eq!(found[0].style == LinkStyle::WikiEmbed, embed == "!");
        prop_assert_eq!(text.get(found[0].range.clone()), Some(&*format!("{embed}[[{name}]]")));
    }

    #[test]
    fn markdown_links_are_decoded(name in "[a-z é茶%#?]{1,12}", section in prop::option::of("[a-z é%]{1,6}")) {
        use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let anchor = section.as_ref().map_or_else(String::new, |it| format!("#{}", encoded(it)));
        let found = note(&format!("[x]({}.md{anchor})", encoded(&name))).links;
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(&found[0].target.name, &format!("{name}.md"));
        let expected = section.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        prop_assert_eq!(&found[0].target.section, &expected);
    }
}
