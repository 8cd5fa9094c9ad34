//! What the tests of names, links and context share.

use std::sync::Arc;

use quipu_core::ErrorKind;
use quipu_core::engine::Precondition;
use quipu_core::model::{Actor, Content, Memory, MemoryPath, PrincipalName, StoreId, View};
use quipu_knowledge::{NoteLink, Scope};
use quipu_testkit::InMemoryBackend;
use quipu_testkit::knowledge::Library;

pub(crate) fn actor() -> Actor {
    Actor::User(PrincipalName::from_host("ada"))
}

pub(crate) fn at(path: &str) -> MemoryPath {
    MemoryPath::parse(path).expect("a valid path")
}

pub(crate) fn library() -> Library {
    Library::new(Arc::new(InMemoryBackend::default()))
}

/// Returns a library with these notes.
pub(crate) fn with(notes: &[(&str, &str)]) -> Library {
    let library = library();
    for (path, text) in notes {
        library.put(path, text);
    }
    library
}

pub(crate) fn put(library: &Library, store: StoreId, path: &str, text: &str) -> Memory {
    let content = Content::new(text).expect("valid content");
    let written = library.engine.put(&actor(), store, (&at(path), &content), Precondition::None);
    written.expect("it is written").memory
}

pub(crate) fn rename(library: &Library, from: &str, to: &str) {
    let moved = library.engine.rename(&actor(), library.store, &at(from), &at(to));
    moved.expect("it moves");
}

pub(crate) fn memory(library: &Library, path: &str) -> Memory {
    let found = library.engine.memory_at(library.store, &at(path), View::Basic);
    found.expect("it exists")
}

pub(crate) fn scope(library: &Library) -> Scope {
    Scope::only(library.store)
}

/// Returns the path that a name means.
pub(crate) fn resolved(library: &Library, scope: &Scope, name: &str) -> Result<String, ErrorKind> {
    let found = library.engine.resolve(scope, name, View::Basic);
    found.map(|memory| memory.path.to_string()).map_err(|error| error.kind().clone())
}

/// Returns the paths that the links of a memory mean, `?` for none.
pub(crate) fn targets(library: &Library, scope: &Scope, path: &str) -> Vec<String> {
    let links = library.engine.links(scope, memory(library, path).id, 1_000).expect("links");
    let to =
        |link: &NoteLink| link.to.as_ref().map_or_else(|| "?".to_owned(), |to| to.path.to_string());
    links.iter().map(to).collect()
}
