//! The rules of notes, one by one.

mod blocks;
mod corpus;
mod fields;
mod hostile;
mod linking;
mod observations;
mod properties;
mod roundtrip;
mod times;
mod values;

use super::*;

/// Reads a text as the note at `/notes/tea.md`.
fn note(text: &str) -> Note {
    Note::parse("/notes/tea.md", text)
}

/// Returns a note as lines that are easy to compare.
fn shown(note: &Note) -> String {
    let mut lines = vec![
        format!("title: {}", note.title),
        format!("kind: {}", note.kind),
        format!("tags: {}", note.tags.join(", ")),
        format!("permalink: {}", note.permalink.as_deref().unwrap_or("-")),
        format!("created: {}", note.created.map_or("-".to_owned(), |at| format!("{at:.6}"))),
        format!("modified: {}", note.modified.map_or("-".to_owned(), |at| format!("{at:.6}"))),
    ];
    lines.extend(note.metadata.iter().map(|(key, value)| format!("{key} = {value:?}")));
    lines.extend(note.headings.iter().map(|it| format!("{}: h{} {}", it.line, it.level, it.text)));
    lines.extend(note.observations.iter().map(|it| {
        let times: Vec<_> = it.times.iter().map(time).collect();
        let context = it.context.as_deref().unwrap_or("-");
        let (category, text, tags) = (&it.category, &it.text, it.tags.join(" "));
        format!("{}: [{category}] {times:?} {text:?} tags={tags} context={context}", it.line)
    }));
    lines.extend(note.relations.iter().map(|it| {
        let context = it.context.as_deref().unwrap_or("-");
        format!("{}: {:?} -> {} context={context}", it.line, it.kind, target(&it.target))
    }));
    lines.extend(
        note.links.iter().map(|it| format!("{}: {:?} {}", it.line, it.style, target(&it.target))),
    );
    lines.push(format!("body: {:?}", note.body));
    lines.extend(note.remarks.iter().map(|it| format!("{}: remark: {}", it.line, it.text)));
    lines.join("\n")
}

fn time(it: &TimeQualifier) -> String {
    format!("{} {:?} {:?}", it.kind.as_str(), it.from, it.until)
}

/// Returns a target as `store::name#section|alias`.
fn target(it: &LinkTarget) -> String {
    let mut text = it.store.as_ref().map_or(String::new(), |store| format!("{store}::"));
    text.push_str(&it.name);
    text.extend(it.section.iter().map(|section| format!("#{section}")));
    text.extend(it.alias.iter().map(|alias| format!("|{alias}")));
    text
}
