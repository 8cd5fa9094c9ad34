//! What is read out of a note: its fields, its facts, its links.

use maud::{Markup, html};
use quipu_core::model::{Memory, Store};
use quipu_knowledge::NoteLink;
use quipu_notes::{LINKS_TO, LinkTarget, Note, Value};

use crate::form::address;
use crate::reply::Trouble;
use crate::visible;
use crate::visit::Visit;

use super::scope;

/// How many links, backlinks and observations are listed.
const LISTED_MAX: usize = 50;

/// Shows the fields at the head of a note.
pub(super) fn frontmatter(note: &Note, content: &str) -> Markup {
    let head = content.get(..note.body.start).unwrap_or_default();
    if head.trim().is_empty() {
        return html! {};
    }
    // A note without these has a title and a type all the same.
    let is_written = |name: &str| {
        head.lines().any(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    };
    let own = [
        ("title", note.title.clone()),
        ("type", note.kind.clone()),
        ("tags", note.tags.join(", ")),
        ("permalink", note.permalink.clone().unwrap_or_default()),
        ("created", note.created.map_or_else(String::new, |at| at.to_string())),
        ("modified", note.modified.map_or_else(String::new, |at| at.to_string())),
    ];
    html! {
        table.fields {
            caption { "Frontmatter" }
            tbody {
                @for (name, value) in own.iter().filter(|(name, value)| is_written(name) && !value.is_empty()) {
                    tr { th scope="row" { (name) } td { (visible::short(value)) } }
                }
                @for (name, value) in &note.metadata {
                    tr { th scope="row" { (visible::short(name)) } td { (visible::short(&written(value))) } }
                }
            }
        }
        @for remark in &note.remarks {
            p.message { "Line " (remark.line) ": " (remark.text) }
        }
    }
}

/// Returns the value of a field on one line.
fn written(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Text(text) => text.clone(),
        Value::List(items) => items.iter().map(written).collect::<Vec<_>>().join(", "),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| format!("{name}: {}", written(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Shows the facts of a note.
pub(super) fn observations(note: &Note) -> Markup {
    html! {
        @if !note.observations.is_empty() {
            h2 { "Observations" }
            ul.plain {
                @for observation in note.observations.iter().take(LISTED_MAX) {
                    li {
                        span.badge { (visible::short(&observation.category)) } " "
                        @for time in observation.written_times() { (time) " " }
                        (visible::short(&observation.text))
                        @if let Some(context) = &observation.context { " " small { "(" (visible::short(context)) ")" } }
                    }
                }
            }
            (more(note.observations.len()))
        }
    }
}

/// Shows the links of a memory, in both directions.
pub(super) fn links(visit: &Visit<'_>, store: &Store, memory: &Memory) -> Result<Markup, Trouble> {
    let scope = scope(visit, store)?;
    let out = visit.engine.links(&scope, memory.id, LISTED_MAX + 1)?;
    let back = visit.engine.backlinks(&scope, memory.id, LISTED_MAX + 1)?;
    Ok(html! {
        h2 { "Links" }
        @if out.is_empty() { p { "It links to nothing." } }
        ul.plain #links { @for link in out.iter().take(LISTED_MAX) { li { (outgoing(store, memory, link)) } } }
        (more(out.len()))
        h2 { "Linked from" }
        @if back.is_empty() { p { "Nothing links here." } }
        ul.plain #backlinks { @for link in back.iter().take(LISTED_MAX) { li { (incoming(link)) } } }
        (more(back.len()))
    })
}

fn outgoing(store: &Store, memory: &Memory, link: &NoteLink) -> Markup {
    let written = as_written(&link.link.target);
    let resolver = format!("/ui/stores/{}/note", store.id);
    let from = memory.id.to_string();
    html! {
        @if link.link.kind != LINKS_TO { (visible::short(&link.link.kind)) " " }
        @match &link.to {
            Some(to) => a href={ "/ui/stores/" (to.store) "/memories/" (to.memory) } { (visible::short(&to.title)) },
            None => {
                a.unresolved href=(address(&resolver, &[("to", &written), ("from", &from)])) { (visible::short(&written)) }
                " " span.badge { "does not exist" }
            }
        }
        @if let Some(context) = &link.link.context { " " small { "(" (visible::short(context)) ")" } }
    }
}

fn incoming(link: &NoteLink) -> Markup {
    let from = &link.from;
    html! {
        a href={ "/ui/stores/" (from.store) "/memories/" (from.memory) } { (visible::short(&from.title)) }
        @if link.link.kind != LINKS_TO { " " small { (visible::short(&link.link.kind)) } }
        br; small { (from.path) }
    }
}

/// Returns the target of a link as it is written in a wiki link.
pub(crate) fn as_written(target: &LinkTarget) -> String {
    let store = target.store.as_ref().map_or_else(String::new, |store| format!("{store}::"));
    let section = target.section.as_ref().map_or_else(String::new, |section| format!("#{section}"));
    format!("{store}{}{section}", target.name)
}

fn more(count: usize) -> Markup {
    html! {
        @if count > LISTED_MAX {
            p { small { "Only the first " (LISTED_MAX) " are listed." } }
        }
    }
}
