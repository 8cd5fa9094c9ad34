//! What is done with several memories at once: moving, deleting, exporting.
//!
//! Each begins with a page that lists what it is about, and is conditional on the versions listed there.

use maud::{Markup, html};
use quipu_core::engine::{ListQuery, MemoryUpdate, Precondition};
use quipu_core::model::{
    CopyKind, CopyMade, Directory, Listing, Memory, MemoryId, MemoryPath, Store, VersionId, View,
    slug,
};
use quipu_core::{Error, ErrorKind};
use quipu_service::caller::Need;

use crate::edit::writable_store;
use crate::form::{Form, address};
use crate::layout::{Room, page};
use crate::memory::{memory_address, trail_in};
use crate::reply::{Reply, Trouble};
use crate::text;
use crate::visible;
use crate::visit::Visit;

use super::tar::Tar;

/// How many memories can be selected.
const SELECTED_MAX: usize = 500;

/// The largest export. It is put together in memory; the command line writes larger ones.
const EXPORT_SIZE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Returns the memories that are selected in a form, those that still exist.
fn selected(visit: &Visit<'_>, store: &Store, form: &Form) -> Result<Vec<Memory>, Trouble> {
    let mut memories = Vec::new();
    for field in form.all("memory").take(SELECTED_MAX) {
        let Some(Ok(id)) = field.split(' ').next().map(str::parse::<MemoryId>) else { continue };
        memories.extend(visit.engine.read(|reader| reader.memory(store.id, id, View::Basic))?);
    }
    Ok(memories)
}

fn require_some(memories: &[Memory]) -> Result<(), Trouble> {
    if memories.is_empty() {
        let message = "Nothing is selected: go back and tick the memories that you mean.";
        return Err(Trouble::Invalid(message.to_owned()));
    }
    Ok(())
}

/// Asks where to move what is selected.
pub(super) fn ask_move(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let memories = selected(visit, &store, &visit.query)?;
    require_some(&memories)?;
    let to = visit.query.get("dir").unwrap_or("/");
    Ok(Reply::Page(move_page(visit, &store, &memories, (to, None))))
}

fn move_page(
    visit: &Visit<'_>,
    store: &Store,
    memories: &[Memory],
    (to, trouble): (&str, Option<&str>),
) -> Markup {
    let what = html! {
        @if let Some(trouble) = trouble { p.message #trouble role="alert" { (trouble) } }
        label { "Into the folder, such as /archive/"
            input name="to" required maxlength="1024" value=(to) spellcheck="false" autocomplete="off";
        }
        p { small { "Memories keep their names, ids and histories." } }
        p { button.primary { "Move" } }
    };
    confirmation(visit, store, ("Move", "move"), memories, &what)
}

/// Asks whether to delete what is selected.
pub(super) fn ask_delete(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let memories = selected(visit, &store, &visit.query)?;
    require_some(&memories)?;
    let days = visit.engine.limits().versions_kept_for.as_secs() / (24 * 60 * 60);
    let what = html! {
        p { "Agents no longer see them. Their versions are kept for " (text::count(days, "day", "days"))
            ", and they can be restored until then." }
        p { button.danger { "Delete" } }
    };
    Ok(Reply::Page(confirmation(visit, &store, ("Delete", "delete"), &memories, &what)))
}

/// Shows what would be exported.
pub(super) fn ask_export(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Read)?;
    let memories = selected(visit, &store, &visit.query)?;
    let what = html! {
        p { "You get a tar file with the texts as they are now. For histories, or for a folder that stays \
             in step, use " code { "quipu export" } " or " code { "quipu sync" } "." }
        @if memories.is_empty() {
            @let usage = visit.engine.usage(store.id)?;
            p { "All of the store: " (text::count(usage.memories_count, "memory", "memories")) ", "
                (text::size(usage.size_bytes)) "." }
        }
        p { button.primary { "Export" } }
    };
    Ok(Reply::Page(confirmation(visit, &store, ("Export", "export"), &memories, &what)))
}

/// The page between a selection and what is done with it.
fn confirmation(
    visit: &Visit<'_>,
    store: &Store,
    (verb, action): (&str, &str),
    memories: &[Memory],
    what: &Markup,
) -> Markup {
    let own = format!("/ui/stores/{}", store.id);
    let back = address(
        &own,
        &[("dir", visit.query.get("dir").filter(|dir| *dir != "/").unwrap_or_default())],
    );
    let count = u64::try_from(memories.len()).unwrap_or(u64::MAX);
    let subject = if memories.is_empty() {
        store.name.to_string()
    } else {
        text::count(count, "memory", "memories")
    };
    let now = visit.engine.now();
    let content = html! {
        (trail_in(store, action))
        h1 { (verb) " " (subject) }
        form method="post" action={ (own) "/" (action) } {
            (visit.token_field())
            @if !memories.is_empty() {
                div.wide role="group" tabindex="0" aria-label="Selected memories" { table {
                    thead { tr { th scope="col" { "Path" } th scope="col" { "Size" } th scope="col" { "Changed" } } }
                    tbody { @for memory in memories {
                        tr {
                            th scope="row" {
                                input type="hidden" name="memory" value={ (memory.id) " " (memory.version) };
                                a href=(memory_address(store, memory.id)) { (memory.path) }
                            }
                            td.number { (text::size(memory.size_bytes)) }
                            td { (text::time(memory.updated_at, now)) }
                        }
                    } }
                } }
            }
            (what)
        }
        p { a href=(back) { "Back without doing it" } }
    };
    page(visit, Room::Stores, &format!("{verb} · {}", store.name), &content)
}

/// What became of each memory.
#[derive(Default)]
struct Outcome {
    done_count: u64,
    /// Memories that stayed as they are, with the reason.
    refused: Vec<(MemoryId, String)>,
}

/// Does something with each memory of the form that is still at the version that was listed.
fn each(
    visit: &Visit<'_>,
    store: &Store,
    work: impl Fn(&Memory) -> Result<(), Error>,
) -> Result<Outcome, Trouble> {
    let mut outcome = Outcome::default();
    for field in visit.form.all("memory").take(SELECTED_MAX) {
        let ids = field.split_once(' ').and_then(|(memory, version)| {
            Some((memory.parse::<MemoryId>().ok()?, version.parse::<VersionId>().ok()?))
        });
        let Some((id, version)) = ids else {
            return Err(Trouble::Invalid(
                "The form is not complete: go back and select again.".to_owned(),
            ));
        };
        let found = visit.engine.read(|reader| reader.memory(store.id, id, View::Basic))?;
        let result = match found {
            Some(memory) if memory.version == version => work(&memory),
            Some(memory) => Err(Error::new(
                ErrorKind::PreconditionFailed,
                format!("`{}` has changed since it was listed", memory.path),
            )),
            None => Err(Error::not_found("it was deleted since it was listed")),
        };
        match result {
            Ok(()) => outcome.done_count += 1,
            Err(error) => outcome.refused.push((id, error.message().to_owned())),
        }
    }
    Ok(outcome)
}

/// Moves the memories of the form into a folder.
pub(super) fn move_all(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let to = visit.form.get("to").unwrap_or_default().trim();
    let to = if to.ends_with('/') { to.to_owned() } else { format!("{to}/") };
    let to = match Directory::parse(&to) {
        Ok(directory) => directory,
        Err(error) => {
            let memories = selected(visit, &store, &visit.form)?;
            let trouble = format!("Nothing is moved: `{to}` is not a folder ({error}).");
            return Ok(Reply::Page(move_page(visit, &store, &memories, (&to, Some(&trouble)))));
        }
    };
    let outcome = each(visit, &store, |memory| {
        let path = MemoryPath::parse(&format!("{to}{}", memory.path.file_name()))?;
        let precondition = Precondition::ContentIs(memory.hash);
        let update = MemoryUpdate { content: None, path: Some(path), precondition };
        visit.engine.update(&visit.caller.actor, store.id, memory.id, &update)?;
        Ok(())
    })?;
    Ok(ended(visit, &store, ("moved", &to), &outcome))
}

/// Deletes the memories of the form.
pub(super) fn delete_all(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let outcome = each(visit, &store, |memory| {
        let precondition = Precondition::ContentIs(memory.hash);
        visit.engine.delete(&visit.caller.actor, store.id, memory.id, precondition)?;
        Ok(())
    })?;
    Ok(ended(visit, &store, ("deleted", &Directory::root()), &outcome))
}

/// Leads back to the store, or says what was not done.
fn ended(
    visit: &Visit<'_>,
    store: &Store,
    (done, to): (&str, &Directory),
    outcome: &Outcome,
) -> Reply {
    let own = format!("/ui/stores/{}", store.id);
    if outcome.refused.is_empty() {
        let directory = if to.is_root() { "" } else { to.as_str() };
        let count = outcome.done_count.to_string();
        return Reply::SeeOther(address(&own, &[("dir", directory), (done, &count)]));
    }
    let refused = u64::try_from(outcome.refused.len()).unwrap_or(u64::MAX);
    let content = html! {
        (trail_in(store, done))
        h1 { "Not all were " (done) }
        p.message role="alert" { (text::count(outcome.done_count, "memory was ", "memories were ")) (done) ", "
            (text::count(refused, "was not:", "were not:")) }
        ul { @for (memory, reason) in &outcome.refused {
            li { a href=(memory_address(store, *memory)) { (memory) } ": " (reason) }
        } }
        p { a href=(own) { "All of " (visible::short(store.name.as_str())) } }
    };
    Reply::Conflict(page(
        visit,
        Room::Stores,
        &format!("Not all were {done} · {}", store.name),
        &content,
    ))
}

/// Returns the texts of the memories in the form, or of all, as a tar file.
pub(super) fn export(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = visit.store(Need::Read)?;
    let ids = visit.form.all("memory").take(SELECTED_MAX);
    let ids: Vec<MemoryId> =
        ids.filter_map(|field| field.split(' ').next().and_then(|id| id.parse().ok())).collect();
    let mut tar = Tar::default();
    let folder = slug(&store.name);
    let mut add = |memory: &Memory| {
        let name = format!("{folder}{}", memory.path);
        let changed_at = u64::try_from(memory.updated_at.as_micros() / 1_000_000).unwrap_or(0);
        let content = memory.content.as_ref().map_or("", |content| content.as_str());
        tar.add(&name, changed_at, content.as_bytes());
    };
    if ids.is_empty() {
        if visit.engine.usage(store.id)?.size_bytes > EXPORT_SIZE_BYTES_MAX {
            return Err(Trouble::Invalid(format!(
                "The store is larger than {}, which is too much for a browser: use `quipu export`.",
                text::size(EXPORT_SIZE_BYTES_MAX)
            )));
        }
        all(visit, &store, &mut add)?;
    } else {
        for id in ids {
            let found = visit.engine.read(|reader| reader.memory(store.id, id, View::Full))?;
            found.iter().for_each(&mut add);
        }
    }
    // A redaction names the copies that it does not reach.
    visit.engine.note_copy(&CopyMade {
        workspace: store.workspace,
        at: visit.engine.now(),
        kind: CopyKind::Export,
        store: Some(store.id),
        target: format!("a download by {} in the inspector", visit.caller.actor),
    })?;
    let name = format!("{folder}.tar");
    Ok(Reply::Download { name, kind: "application/x-tar", bytes: tar.finish() })
}

/// How many memories are read at a time.
const PAGE: usize = 500;

fn all(visit: &Visit<'_>, store: &Store, add: &mut dyn FnMut(&Memory)) -> Result<(), Error> {
    let mut query = ListQuery {
        directory: Directory::root(),
        depth: None,
        after: None,
        limit: PAGE,
        view: View::Full,
    };
    loop {
        let page = visit.engine.list(store.id, &query)?;
        for item in &page.items {
            if let Listing::Memory(memory) = item {
                add(memory);
            }
        }
        if page.next.is_none() {
            return Ok(());
        }
        query.after = page.next;
    }
}
