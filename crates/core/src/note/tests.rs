//! The rules of notes, one by one.

mod observations;

use super::*;

/// Reads a text as the note at `/notes/tea.md`.
fn note(text: &str) -> Note {
    Note::parse(&MemoryPath::parse("/notes/tea.md").unwrap(), text)
}
