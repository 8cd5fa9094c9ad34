//! Any text is a note, and edits of it do not panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_notes::{Identifier, Note, Value, edit};

fuzz_target!(|text: &str| {
    let note = Note::parse("/notes/a.md", text);
    assert!(text.get(note.body.clone()).is_some());
    for link in &note.links {
        assert!(text.get(link.range.clone()).is_some());
        drop(Identifier::from(&link.target));
    }
    for heading in &note.headings {
        drop(edit::replace_section(text, &heading.text, "x"));
    }
    let changes = [("x".to_owned(), Some(Value::Text(text.to_owned())))];
    if let Ok(edited) = edit::set_metadata(text, &changes) {
        assert!(edited.ends_with(&text[note.body.start..]));
    }
});
