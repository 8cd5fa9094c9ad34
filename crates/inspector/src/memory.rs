//! One memory: rendered, as text, as a model sees it, and line by line with its authors.

mod blame;
mod knowledge;
mod resolve;

use maud::{Markup, html};
use quipu_core::backend::{Archived, VersionFilter, VersionQuery};
use quipu_core::model::{
    Directory, Memory, MemoryId, MemoryPath, SecretPolicy, Store, Version, View, slug,
};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Scope;
use quipu_notes::Note;
use quipu_service::caller::Need;

use crate::form::address;
use crate::layout::{Room, page, trail};
use crate::markdown::{self, Place, Rendered};
use crate::reply::{Reply, Trouble};
use crate::visible::{self, Hidden};
use crate::visit::Visit;
use crate::{Page, shows, text};

pub(crate) use knowledge::as_written;

/// The pages of this module.
pub(crate) static PAGES: [Page; 2] = [
    shows("/ui/stores/{store}/memories/{memory}", show),
    shows("/ui/stores/{store}/note", resolve::resolve),
];

/// A way of looking at a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Rendered,
    Source,
    Model,
    Blame,
}

impl Look {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Rendered, "rendered", "Rendered"),
        (Self::Source, "source", "Source"),
        (Self::Model, "model", "As the model sees it"),
        (Self::Blame, "blame", "Blame"),
    ];

    /// Returns the view that the address names, or the one that suits the file: only notes are meant to
    /// be read as markdown.
    fn chosen(name: Option<&str>, path: &MemoryPath) -> Self {
        let known = Self::ALL.into_iter().find(|(_, it, _)| name == Some(*it));
        known.map_or_else(|| Self::usual(path), |(look, ..)| look)
    }

    fn usual(path: &MemoryPath) -> Self {
        match path.file_name().rsplit_once('.') {
            Some((_, extension)) if !["md", "markdown", "txt"].contains(&extension) => Self::Source,
            Some(_) | None => Self::Rendered,
        }
    }
}

/// Returns the address of a memory's page.
pub(crate) fn memory_address(store: &Store, memory: MemoryId) -> String {
    format!("/ui/stores/{}/memories/{memory}", store.id)
}

/// Returns the address of a store's page, at a directory.
pub(crate) fn directory_address(store: &Store, directory: &Directory) -> String {
    let directory = if directory.is_root() { "" } else { directory.as_str() };
    address(&format!("/ui/stores/{}", store.id), &[("dir", directory)])
}

/// Returns the way from all stores to a page of a store that is about no path. `here` is the last step.
pub(crate) fn trail_in(store: &Store, here: &str) -> Markup {
    let root = (store.name.as_str(), directory_address(store, &Directory::root()));
    trail(&[("Stores", "/ui".to_owned()), root], here)
}

/// Returns the way from all stores to a path of a store. `here` is the last step.
pub(crate) fn trail_to(store: &Store, path: &MemoryPath, here: &str) -> Markup {
    let root = (store.name.as_str(), directory_address(store, &Directory::root()));
    let mut steps = vec![("Stores", "/ui".to_owned()), root];
    for above in path.ancestors() {
        let name = above.rsplit('/').next().unwrap_or(above);
        let directory =
            address(&format!("/ui/stores/{}", store.id), &[("dir", &format!("{above}/"))]);
        steps.push((name, directory));
    }
    trail(&steps, here)
}

/// Returns the memory in the path with its text. If it was deleted, returns its last version instead.
pub(crate) fn found(visit: &Visit<'_>, store: &Store) -> Result<Result<Memory, Version>, Trouble> {
    let id = visit.memory()?;
    match visit.engine.memory(store.id, id, View::Full) {
        Ok(memory) => Ok(Ok(memory)),
        Err(error) if *error.kind() == ErrorKind::NotFound => {
            let last = last_version(visit, store, id)?;
            last.map(Err).ok_or_else(|| no_memory(id).into())
        }
        Err(error) => Err(error.into()),
    }
}

fn no_memory(id: MemoryId) -> Error {
    Error::not_found(format!(
        "no memory of this store has the id `{id}`; search for words of its text to find it"
    ))
}

/// Returns the newest version of a memory, which may be deleted.
pub(crate) fn last_version(
    visit: &Visit<'_>,
    store: &Store,
    memory: MemoryId,
) -> Result<Option<Version>, Error> {
    let filter = VersionFilter { memory: Some(memory), ..VersionFilter::default() };
    let query = VersionQuery { filter, before: None, limit: 1, view: View::Basic };
    Ok(visit.engine.versions(store.id, &query)?.items.pop())
}

/// Returns the scope in which the links of a store's notes are resolved: all that the visitor may read.
pub(crate) fn scope(visit: &Visit<'_>, store: &Store) -> Result<Scope, Trouble> {
    let stores = visit.stores(Archived::Show)?;
    Ok(Scope::new(store.id, stores.into_iter().map(|store| store.id)))
}

fn show(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Read)?;
    let memory = match found(visit, &store)? {
        Ok(memory) => memory,
        Err(last) => return Ok(Reply::Page(deleted(visit, &store, &last))),
    };
    let content = memory.content.as_ref().map_or("", |content| content.as_str());
    let note = Note::parse(memory.path.as_str(), content);
    let own = memory_address(&store, memory.id);
    let resolver = format!("/ui/stores/{}/note", store.id);
    let id = memory.id.to_string();
    let place = Place { page: &own, resolver: &resolver, memory: &id };
    // The warnings are about the rendered form, so it is made for every view.
    let rendered = markdown::render(content.get(note.body.clone()).unwrap_or_default(), place);
    let hidden = visible::hidden(content);
    let look = Look::chosen(visit.query.get("view"), &memory.path);
    let body = match look {
        Look::Rendered => html! {
            (knowledge::frontmatter(&note, content))
            article.note aria-label="Rendered text" { (rendered.markup) }
            @if rendered.is_cut {
                p.message { "The rest is not rendered, as its markup would be too long. "
                    a href=(address(&own, &[("view", "source")])) { "Read the source" } "." }
            }
        },
        Look::Source => html! { pre.source { "\n" (content) } },
        Look::Model => html! {
            p { small { "Every character that a model reads. Those that a page does not show are in \
                         boxes, with their code points; HTML comments are marked." } }
            pre.source { "\n" (visible::view(content)) }
        },
        Look::Blame => blame::table(visit, &store, &memory)?,
    };
    let side = html! {
        (facts(visit, &store, &memory)?)
        (commands(visit, &store, &memory.path))
        (knowledge::observations(&note))
        (knowledge::links(visit, &store, &memory)?)
    };
    let content = html! {
        (trail_to(&store, &memory.path, memory.path.file_name()))
        h1 { (memory.path) }
        (saved_message(visit, &store))
        (warning(&own, hidden, &rendered))
        (actions(visit, &store, &memory, &own))
        nav.tabs aria-label="Views" {
            @for (each, name, title) in Look::ALL {
                @let name = if each == Look::usual(&memory.path) { "" } else { name };
                a href=(address(&own, &[("view", name)]))
                    aria-current=[(each == look).then_some("page")] { (title) }
            }
        }
        div.columns {
            section #text aria-label="Text" { (body) }
            aside aria-label="About this memory" { (side) }
        }
    };
    let title = format!("{} · {}", memory.path, store.name);
    Ok(Reply::Page(page(visit, Room::Stores, &title, &content)))
}

/// Says what a person does not see in the rendered view and a model reads.
fn warning(own: &str, hidden: Hidden, rendered: &Rendered) -> Markup {
    let parts = [
        (hidden.characters_count, "hidden character", "hidden characters"),
        (hidden.comments_count, "HTML comment", "HTML comments"),
        (rendered.raw_html_count, "piece of raw HTML", "pieces of raw HTML"),
        (
            rendered.unused_definitions_count,
            "link definition that nothing uses",
            "link definitions that nothing uses",
        ),
        (
            rendered.misleading_links_count,
            "link that claims another host",
            "links that claim another host",
        ),
    ];
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let found: Vec<_> = parts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, many)| text::count(count(number), one, many))
        .collect();
    html! {
        @if !found.is_empty() {
            p.message #differs role="note" {
                strong { "A model reads more than the rendered view shows: " }
                (found.join(", ")) ". "
                a href=(address(own, &[("view", "model")])) { "See it as the model does" } "."
            }
        }
    }
}

/// Says what came of a change that led here.
fn saved_message(visit: &Visit<'_>, store: &Store) -> Markup {
    let lines = |name: &str| -> Vec<u64> {
        let lines = visit.query.get(name).unwrap_or_default().split('.');
        lines.filter_map(|line| line.parse().ok()).collect()
    };
    let (found, redacted) = (lines("found"), lines("redacted"));
    let saved = match visit.query.get("saved") {
        Some("0") => "Nothing changed.",
        _ => "Saved.",
    };
    let is_plain = found.is_empty() && redacted.is_empty();
    html! {
        @if is_plain && visit.query.get("saved").is_some() { p.message role="status" { (saved) } }
        @if !found.is_empty() {
            p.message #credentials role="alert" {
                @match store.policy.secrets {
                    SecretPolicy::Redact => {
                        (saved) " What looked like a credential was taken out: "
                    }
                    SecretPolicy::Off | SecretPolicy::Warn | SecretPolicy::Reject => {
                        (saved) " It holds what looks like a credential, which every reader of this \
                         store can now use: "
                    }
                }
                (places(&found))
                ". If it is real, revoke it where it was issued; redacting the version in the history \
                 removes it from here."
            }
        }
        @if !redacted.is_empty() {
            p.message #redacted role="alert" {
                (saved) " It holds text that was redacted from this store before: " (places(&redacted))
                ". If that was no mistake, redact the new version in the history, too."
            }
        }
    }
}

/// Returns lines as words; line 0 is the path.
fn places(lines: &[u64]) -> String {
    let place = |line: &u64| match line {
        0 => "the path".to_owned(),
        line => format!("line {line}"),
    };
    lines.iter().map(place).collect::<Vec<_>>().join(", ")
}

fn actions(visit: &Visit<'_>, store: &Store, memory: &Memory, own: &str) -> Markup {
    let focus = memory.id.to_string();
    let graph = address(&format!("/ui/stores/{}/graph", store.id), &[("focus", &focus)]);
    html! {
        p.actions {
            @if visit.may_change(store) {
                a.button.primary href={ (own) "/edit" } data-key="e" { "Edit" } " "
                a.button href={ (own) "/rename" } { "Rename" } " "
                a.button href={ (own) "/delete" } { "Delete" } " "
            }
            a.button href={ (own) "/history" } data-key="h" { "History" } " "
            a.button href=(graph) { "Graph" }
        }
    }
}

fn facts(visit: &Visit<'_>, store: &Store, memory: &Memory) -> Result<Markup, Trouble> {
    let version = visit.engine.version(store.id, memory.version, View::Basic)?;
    let now = visit.engine.now();
    let authors = visit.authors();
    Ok(html! {
        h2 { "About" }
        dl {
            dt { "Size" } dd { (text::size(memory.size_bytes)) ", about "
                (text::grouped(text::tokens(memory.size_bytes))) " tokens" }
            dt { "Changed" } dd {
                (text::time(memory.updated_at, now)) " by "
                a href={ "/ui/actors/" (version.actor) } { (visible::short(&authors.short(&version.actor))) }
                @if let Some(reason) = &version.reason { br; small { (reason) } }
            }
            dt { "Created" } dd { (text::time(memory.created_at, now)) }
            dt { "Id" } dd.mono { (memory.id) }
            dt { "Version" } dd.mono { (memory.version) }
            @if store.archived_at.is_some() { dt { "Store" } dd { "archived: read-only" } }
        }
    })
}

/// Shows how to reach the memory from a shell.
fn commands(visit: &Visit<'_>, store: &Store, path: &MemoryPath) -> Markup {
    let store_name = store.name.as_str();
    let read = format!("quipu --store {} cat {}", quoted(store_name), quoted(path.as_str()));
    let file = format!("{}/{}{path}", visit.settings.mount_root, slug(&store.name));
    html! {
        h2 { "From a shell" }
        p { code.copy data-copy { (read) } }
        p { small { "On a mount" } br; code.copy data-copy { (file) } }
    }
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%".contains(&byte);
    if !word.is_empty() && !word.starts_with('-') && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Shows that a memory is no longer there, and where its past is.
fn deleted(visit: &Visit<'_>, store: &Store, last: &Version) -> Markup {
    let own = memory_address(store, last.memory);
    let name = last.path.as_ref().map_or("A redacted memory".to_owned(), MemoryPath::to_string);
    let content = html! {
        @match &last.path {
            Some(path) => (trail_to(store, path, path.file_name())),
            None => (trail_in(store, "redacted")),
        }
        h1 { (name) }
        p.message {
            "This memory was deleted "
            (text::time(last.created_at, visit.engine.now())) " by "
            a href={ "/ui/actors/" (last.actor) } { (visit.authors().short(&last.actor)) }
            ". Its versions are kept for a while, and can be restored from its history."
        }
        p { a.button.primary href={ (own) "/history" } data-key="h" { "History" } " "
            a.button href=(directory_address(store, &Directory::root())) { "All of " (visible::short(store.name.as_str())) } }
    };
    page(visit, Room::Stores, &format!("{name} · deleted · {}", store.name), &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("/notes/tea.md"), "/notes/tea.md");
        assert_eq!(quoted("/a b; rm -rf 'x'.md"), "'/a b; rm -rf '\\''x'\\''.md'");
        assert_eq!(quoted("-rf"), "'-rf'");
        assert_eq!(quoted("$(x)"), "'$(x)'");
        assert_eq!(quoted(""), "''");
    }
}
