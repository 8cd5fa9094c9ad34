//! Where a link of a note leads.

use maud::html;
use quipu_core::model::{MemoryId, MemoryPath, Store, View};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Scope;
use quipu_notes::LinkTarget;
use quipu_service::caller::Need;

use crate::form::address;
use crate::layout::{Room, page};
use crate::reply::{Reply, Trouble};
use crate::visible;
use crate::visit::Visit;

use super::{directory_address, scope, trail_in};

/// How many links of the note are looked at.
const LINKS_MAX: usize = 10_000;

/// Leads to the note that a link means, or says that there is none.
pub(super) fn resolve(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Read)?;
    let link = visit.query.get("to").unwrap_or_default();
    if link.trim().is_empty() {
        return Err(Trouble::Invalid("The link names no note.".to_owned()));
    }
    let scope = scope(visit, &store)?;
    if let Some((store, memory)) = seen_from_note(visit, &scope, link)? {
        return Ok(Reply::SeeOther(format!("/ui/stores/{store}/memories/{memory}")));
    }
    match visit.engine.resolve(&scope, link, View::Basic) {
        Ok(memory) => {
            let to = format!("/ui/stores/{}/memories/{}", memory.store, memory.id);
            Ok(Reply::SeeOther(to))
        }
        Err(error) => {
            let names = [ErrorKind::NotFound, ErrorKind::Ambiguous, ErrorKind::InvalidInput];
            if !names.contains(error.kind()) {
                return Err(error.into());
            }
            Ok(Reply::Page(missing(visit, &store, link, &error)))
        }
    }
}

/// Resolves a link as the note that contains it does: relative to where it is, and to the nearest of
/// several notes with one title.
fn seen_from_note(
    visit: &Visit<'_>,
    scope: &Scope,
    link: &str,
) -> Result<Option<(quipu_core::model::StoreId, MemoryId)>, Trouble> {
    let Some(from) = visit.query.get("from").and_then(|from| from.parse::<MemoryId>().ok()) else {
        return Ok(None);
    };
    let Some(wanted) = LinkTarget::parse(link) else { return Ok(None) };
    let links = match visit.engine.links(scope, from, LINKS_MAX) {
        Ok(links) => links,
        // The note may have been deleted since the page was loaded.
        Err(error) if *error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let is_meant =
        |target: &LinkTarget| (&target.store, &target.name) == (&wanted.store, &wanted.name);
    let found = links.into_iter().find(|it| is_meant(&it.link.target));
    Ok(found.and_then(|it| it.to).map(|to| (to.store, to.memory)))
}

fn missing(visit: &Visit<'_>, store: &Store, link: &str, error: &Error) -> maud::Markup {
    let root = directory_address(store, &quipu_core::model::Directory::root());
    let is_free = *error.kind() == ErrorKind::NotFound;
    let path = new_path(link);
    let new = address(&format!("/ui/stores/{}/new", store.id), &[("path", &path)]);
    let content = html! {
        (trail_in(store, "a link"))
        h1 { (visible::short(link)) }
        p.message { @if is_free { "No note has this name, path or id." } @else { (error.message()) }
            @if let Some(hint) = error.hint() { " " (hint) } }
        p {
            @if is_free && visit.may_change(store) { a.button.primary href=(new) { "Create it" } " " }
            a.button href=(address("/ui/search", &[("q", link)])) { "Search for it" } " "
            a.button href=(root) { "All of " (visible::short(store.name.as_str())) }
        }
    };
    page(visit, Room::Stores, &format!("{link} · {}", store.name), &content)
}

/// Returns where a note of this name could be created.
fn new_path(link: &str) -> String {
    let name = LinkTarget::parse(link).map_or_else(|| link.to_owned(), |target| target.name);
    let name = name.strip_prefix("memory://").unwrap_or(&name);
    let segments = name.split('/').filter(|it| !matches!(*it, "" | "." | ".."));
    let path = segments.fold(String::new(), |path, segment| path + "/" + segment);
    if path.is_empty() {
        return "/".to_owned();
    }
    let has_extension = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let path = if has_extension { path } else { path + ".md" };
    MemoryPath::parse(&path).map_or_else(|_| "/".to_owned(), |path| path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_note_has_a_place_to_be_created() {
        assert_eq!(new_path("Green Tea"), "/Green Tea.md");
        assert_eq!(new_path("../notes/tea.md"), "/notes/tea.md");
        assert_eq!(new_path("memory://notes/tea"), "/notes/tea.md");
        assert_eq!(new_path("store::Tea#Section"), "/Tea.md");
        assert_eq!(new_path(".."), "/");
        assert_eq!(new_path("a\u{200b}b"), "/");
    }
}
