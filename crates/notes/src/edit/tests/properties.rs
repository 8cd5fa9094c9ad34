//! Properties of every edit.

use proptest::prelude::*;

use super::*;
use crate::Note;

/// A value of the frontmatter, nested a little.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        "[a-z :#'\"\\\\\n\t\\[{&*!|>%@`,-]{0,12}".prop_map(Value::Text),
        "\\PC{0,8}".prop_map(Value::Text),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::List),
            prop::collection::vec(("[a-z: ]{1,5}", inner), 0..3).prop_map(|mut entries| {
                entries.sort_by(|left, right| left.0.cmp(&right.0));
                entries.dedup_by(|left, right| left.0 == right.0);
                Value::Map(entries)
            }),
        ]
    })
}

/// The lines of a note with sections.
fn note() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "# A\n",
        "## B\n",
        "### C c\n",
        "text\n",
        "- [k] x\n",
        "\n",
        "```\n",
        "D\n===\n",
        "é\n",
    ]);
    prop::collection::vec(line, 0..16).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn a_value_that_is_set_is_read_back(value in value(), body in note()) {
        let edited = set(&body, "field", Some(value.clone())).unwrap();
        let note = Note::parse("/x.md", &edited);
        let found = note.metadata.into_iter().find(|(key, _)| key == "field");
        prop_assert_eq!(found.map(|(_, value)| value), Some(value));
        prop_assert_eq!(edited.get(note.body), Some(body.as_str()));
    }

    #[test]
    fn setting_and_removing_a_field_restores_the_text(value in value(), kept in value(), body in note()) {
        let before = set(&body, "kept", Some(kept)).unwrap();
        let with = set(&before, "field", Some(value)).unwrap();
        prop_assert_eq!(set(&with, "field", None), Ok(before));
    }

    #[test]
    fn setting_a_field_twice_is_setting_it_once(value in value(), body in note()) {
        let once = set(&body, "field", Some(value.clone())).unwrap();
        prop_assert_eq!(set(&once, "field", Some(value)), Ok(once));
    }

    #[test]
    fn replacing_a_section_changes_no_other(text in note(), section in prop::sample::select(vec!["A", "B", "C c", "D"])) {
        let Ok(edited) = replace_section(&text, section, "new") else { return Ok(()) };
        let titles = |text: &str| -> Vec<_> {
            Note::parse("/x.md", text).headings.into_iter().map(|it| (it.level, it.text)).collect()
        };
        let has_fence = text.contains("```");
        prop_assert!(has_fence || titles(&edited) == titles(&text), "{edited:?}");
        let again = replace_section(&edited, section, "new");
        prop_assert!(has_fence || again == Ok(edited.clone()), "{edited:?} {again:?}");
    }

    #[test]
    fn inserting_keeps_every_byte(text in note(), section in prop::sample::select(vec!["A", "B", "C c"])) {
        for edited in [
            insert_before_section(&text, section, "new"),
            insert_after_section(&text, section, "new"),
        ].into_iter().flatten() {
            let (before, after) = edited.split_once("new").unwrap();
            prop_assert!(text.starts_with(before.trim_end_matches('\n')));
            prop_assert!(text.ends_with(after.trim_start_matches('\n')));
        }
    }

    #[test]
    fn find_and_replace_agrees_with_str_replace(text in "[ab]{0,20}", find in "[ab]{1,3}", expected in 0..5_usize) {
        let count = text.matches(&find).count();
        let edited = find_replace(&text, &find, "c", expected);
        if count == expected && count > 0 {
            prop_assert_eq!(edited, Ok(text.replace(&find, "c")));
        } else {
            prop_assert_eq!(edited, Err(EditError::WrongCount { found: count, expected }));
        }
    }
}
