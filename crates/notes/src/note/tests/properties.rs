//! What holds for every text.

use proptest::prelude::*;

use super::note;
use crate::edit;
use crate::{Identifier, Value, alias_key, path_candidates, permalink};

/// Pieces of which notes are made.
const PIECES: &str = "- |* |1. |[kind] |[ ] |[[|]]|[|]|(|)|![[|#tag|# |## |`|```\n|~~~|\\|\n|\n\n|  |    |> |\
    | uses |A|é|字|::|#|@due:2026-01-01 |@[2026,|)|<!-- |-->|---\n|title: x\n|a: [b\n|: |\"|'|\r\n|\t|\u{feff}\
    |](a.md)|[x](a.md)|<b>|*|**|_|~~|---\na: b\n---\n|===\n|- - - |1) |& |*a |!x |? |\u{2028}|\\|b";

fn text() -> impl Strategy<Value = String> {
    let pieces: Vec<_> = PIECES.split('|').chain(["|"]).collect();
    prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

fn hold_together(text: &str) -> Result<(), TestCaseError> {
    let note = note(text);
    let lines_count = text.matches('\n').count() + 1;
    prop_assert!(!note.title.is_empty() && !note.kind.is_empty());
    prop_assert!(text.get(note.body.clone()).is_some() && note.body.end == text.len());
    let links = note.links.iter().map(|it| (it.line, it.range.clone()));
    let relations = note.relations.iter().map(|it| (it.line, it.range.clone()));
    let headings = note.headings.iter().map(|it| (it.line, it.range.clone()));
    for (line, range) in links.chain(relations).chain(headings) {
        prop_assert!(note.body.start <= range.start && range.start < range.end);
        let before = text.get(..range.start);
        prop_assert!(before.is_some() && text.get(range).is_some());
        prop_assert_eq!(line, before.unwrap_or_default().matches('\n').count() + 1);
    }
    for edge in note.edges() {
        prop_assert!(!edge.target.name.is_empty() && !edge.kind.is_empty());
    }
    for relation in &note.relations {
        let written = text.get(relation.range.clone()).unwrap_or_default();
        prop_assert!(written.starts_with("[[") && written.ends_with("]]"));
    }
    for it in &note.observations {
        prop_assert!(!it.text.is_empty() || !it.times.is_empty());
        prop_assert!(it.written_times().iter().all(|time| text.contains(time)));
        prop_assert!(!it.category.is_empty() && it.line <= lines_count);
        prop_assert!(it.tags.iter().all(|tag| !tag.is_empty() && !tag.contains(['#', ' '])));
    }
    prop_assert!(note.remarks.iter().all(|it| it.line <= lines_count));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn texts_close_to_notes_hold_together(text in text()) {
        hold_together(&text)?;
    }

    #[test]
    fn edits_keep_what_they_do_not_speak_of(text in text(), addition in text()) {
        let body = text.get(note(&text).body).unwrap();
        prop_assert!(edit::append(&text, &addition).starts_with(&text));
        prop_assert!(edit::prepend(&text, &addition).ends_with(body));
        for heading in note(&text).headings {
            if let Ok(edited) = edit::insert_after_section(&text, &heading.text, &addition) {
                prop_assert!(edited.contains(&addition));
            }
            if let Ok(edited) = edit::replace_section(&text, &heading.text, "new") {
                prop_assert!(edited.contains("new"));
            }
        }
        let changes = [("new".to_owned(), Some(Value::Text(addition)))];
        if let Ok(edited) = edit::set_metadata(&text, &changes) {
            prop_assert!(edited.ends_with(body));
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_texts_hold_together(text in any::<String>()) {
        hold_together(&text)?;
    }

    #[test]
    fn names_never_break_anything(text in any::<String>()) {
        let identifier = Identifier::parse(&text);
        identifier.split_store();
        path_candidates(&text, None);
        let key = alias_key(&text);
        prop_assert_eq!(alias_key(&key), key);
    }

    #[test]
    fn a_permalink_is_its_own_slug(text in "(/[a-zA-Z0-9_ é茶'.!-]{1,8}){1,3}") {
        let slug = permalink(&text);
        prop_assert!(!slug.is_empty() && !slug.contains("--") && !slug.starts_with('-'));
        prop_assert_eq!(permalink(&format!("/{slug}")), slug);
    }
}
