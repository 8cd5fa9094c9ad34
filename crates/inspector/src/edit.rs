//! Changing memories: new ones, their text, their path, and deleting them.
//!
//! A form carries the version that its author saw. If others changed the memory since, nothing is saved:
//! the form comes back with both changes merged, to be checked and sent again. Whatever is refused, what
//! was typed is still in the form.

mod delete;
mod endings;
mod kept;
mod merged;
mod rename;

use maud::{Markup, html};
use quipu_core::diff::Diff;
use quipu_core::engine::{Effect, MemoryUpdate, Precondition, Written};
use quipu_core::model::{
    Content, ContentHash, Memory, MemoryPath, Store, Version, VersionId, View,
};
use quipu_core::{Error, ErrorKind};
use quipu_screen::{Finding, SecretKind};
use quipu_service::caller::Need;

use crate::difference::{Arrangement, Room as Space, difference};
use crate::form::address;
use crate::layout::{Room, page};
use crate::memory::{directory_address, found, memory_address, trail_in, trail_to};
use crate::reply::{Reply, Trouble};
use crate::visible;
use crate::visit::Visit;
use crate::{Page, changes, shows, text};

pub(crate) use kept::unsaved;
use merged::Proposal;

/// The pages of this module.
pub(crate) static PAGES: [Page; 8] = [
    shows("/ui/stores/{store}/new", ask_new),
    changes("/ui/stores/{store}/new", create),
    shows("/ui/stores/{store}/memories/{memory}/edit", ask_edit),
    changes("/ui/stores/{store}/memories/{memory}/edit", save),
    shows("/ui/stores/{store}/memories/{memory}/rename", rename::ask),
    changes("/ui/stores/{store}/memories/{memory}/rename", rename::rename),
    shows("/ui/stores/{store}/memories/{memory}/delete", delete::ask),
    changes("/ui/stores/{store}/memories/{memory}/delete", delete::delete),
];

/// How many lines with credentials or redacted text are pointed at.
const FINDINGS_MAX: usize = 20;

/// Returns the store in the path if the visitor may change its memories, and it takes changes.
pub(crate) fn writable_store(visit: &Visit<'_>) -> Result<Store, Trouble> {
    let store = visit.store(Need::Write)?;
    if store.archived_at.is_some() {
        let message =
            format!("The store {} is archived: its memories can be read only.", store.name);
        return Err(Trouble::Invalid(message));
    }
    Ok(store)
}

/// Shows the form for a new memory.
fn ask_new(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let path = visit.query.get("path").unwrap_or("/");
    Ok(Reply::Page(new_page(visit, &store, (path, ""), None)))
}

fn create(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = match writable_store(visit) {
        Ok(store) => store,
        Err(trouble) => return unsaved(visit, trouble, "text"),
    };
    let path = visit.form.get("path").unwrap_or_default().trim();
    let typed = visit.form.text("text").unwrap_or_default();
    // A browser sends every line break as CR LF.
    let typed = typed.replace("\r\n", "\n");
    let written = new_memory(visit, &store, (path, &typed));
    match written {
        Ok(written) => Ok(Reply::SeeOther(after_saving(&store, &written))),
        Err(error) => {
            let trouble = explained(&error);
            Ok(Reply::Page(new_page(visit, &store, (path, &typed), Some(&trouble))))
        }
    }
}

fn new_memory(
    visit: &Visit<'_>,
    store: &Store,
    (path, text): (&str, &str),
) -> Result<Written, Error> {
    let path = MemoryPath::parse(path)?;
    let content = Content::new(text)?;
    visit.engine.create(&visit.caller.actor, store.id, &path, &content)
}

/// Returns the address of a memory that was just written, which reports what came of it: the lines with
/// credentials, and those with text that was redacted before.
fn after_saving(store: &Store, written: &Written) -> String {
    let saved = match written.effect {
        Effect::Created | Effect::Changed => "1",
        Effect::Unchanged => "0",
    };
    let lines = |is_wanted: fn(&Finding) -> bool| {
        let findings = written.findings.iter().filter(|it| is_wanted(it));
        let mut lines: Vec<_> = findings.map(|it| it.line).collect();
        lines.sort_unstable();
        lines.dedup();
        let lines = lines.iter().take(FINDINGS_MAX).map(ToString::to_string);
        lines.collect::<Vec<_>>().join(".")
    };
    let found = lines(|it| it.kind != SecretKind::Forgotten);
    let redacted = lines(|it| it.kind == SecretKind::Forgotten);
    let pairs = [("saved", saved), ("found", &found), ("redacted", &redacted)];
    address(&memory_address(store, written.memory.id), &pairs)
}

/// Returns an error as a sentence with what to do next.
fn explained(error: &Error) -> String {
    let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
    format!("Not saved: {}{hint}.", error.message())
}

fn new_page(
    visit: &Visit<'_>,
    store: &Store,
    (path, typed): (&str, &str),
    trouble: Option<&str>,
) -> Markup {
    let home = directory_address(store, &quipu_core::model::Directory::root());
    let content = html! {
        (trail_in(store, "new memory"))
        h1 { "New memory in " (visible::short(store.name.as_str())) }
        (alert(trouble))
        form method="post" action={ "/ui/stores/" (store.id) "/new" } data-unsaved {
            (visit.token_field())
            label { "Path, such as /notes/tea.md"
                input name="path" required maxlength="1024" value=(path) spellcheck="false"
                    autocomplete="off";
            }
            (text_area(visit, typed))
            p { button.primary { "Create" } " " a href=(home) { "Cancel" } }
        }
    };
    page(visit, Room::Stores, &format!("New memory · {}", store.name), &content)
}

fn alert(trouble: Option<&str>) -> Markup {
    html! { @if let Some(trouble) = trouble { p.message #trouble role="alert" { (trouble) } } }
}

/// The field for the text. A line break after the start tag is not part of it, so that one at the
/// beginning of the text is.
fn text_area(visit: &Visit<'_>, typed: &str) -> Markup {
    let limit = visit.engine.limits().content_size_bytes_max;
    html! {
        label { "Text"
            textarea name="text" spellcheck="false" rows="24" aria-describedby="text-limit" {
                "\n" (typed)
            }
        }
        p #text-limit { small { "At most " (text::size(limit)) "." } }
    }
}

/// Shows the form for the text of a memory.
fn ask_edit(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = writable_store(visit)?;
    let Ok(memory) = found(visit, &store)? else {
        return Ok(Reply::SeeOther(memory_address(&store, visit.memory()?)));
    };
    let Some(seen) = named_version(visit, &store, &memory)? else {
        return Ok(Reply::SeeOther(edit_address(&store, &memory)));
    };
    let explanation = html! {
        @if seen.hash != memory.hash {
            p.message #newer {
                "This is the text that you began with; it was changed since. What you save is merged with the \
                 change, and you see it first. "
                a href=(edit_address(&store, &memory)) { "Begin with the newest text instead" }
            }
        }
    };
    let typed = seen.content.as_ref().map_or("", Content::as_str);
    Ok(Reply::Page(edit_page(visit, &store, &seen, typed, &explanation)))
}

/// Returns the address of the form for the text as it is now.
///
/// It names the version. A browser that goes back to the form asks for it again and then puts in what was
/// typed: if the form named the newest version instead, its text would replace changes that its author
/// has never seen.
fn edit_address(store: &Store, memory: &Memory) -> String {
    let path = format!("{}/edit", memory_address(store, memory.id));
    address(&path, &[("version", memory.version.to_string())])
}

/// Returns the memory as it was in the version that the address names; `None` if that is no version of the
/// memory with a text.
fn named_version(
    visit: &Visit<'_>,
    store: &Store,
    memory: &Memory,
) -> Result<Option<Memory>, Trouble> {
    let Some(Ok(id)) = visit.query.get("version").map(str::parse::<VersionId>) else {
        return Ok(None);
    };
    let version = match visit.engine.version(store.id, id, View::Full) {
        Ok(version) if version.memory == memory.id => version,
        Ok(_) => return Ok(None),
        Err(error) if *error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let seen = version.content.zip(version.hash).map(|(content, hash)| Memory {
        version: id,
        hash,
        content: Some(content),
        ..memory.clone()
    });
    Ok(seen)
}

/// What the author of a change saw.
struct Seen {
    hash: ContentHash,
    /// The version, if it is still kept with its text.
    base: Option<Version>,
}

impl Seen {
    fn read(visit: &Visit<'_>, store: &Store) -> Result<Self, Trouble> {
        let field = |name: &str| visit.form.get(name).unwrap_or_default();
        let incomplete = || {
            let message = "The form is not complete: go back, reload the page and send it again.";
            Trouble::Invalid(message.to_owned())
        };
        let hash = field("hash").parse().map_err(|_malformed| incomplete())?;
        let id: VersionId = field("version").parse().map_err(|_malformed| incomplete())?;
        let memory = visit.memory()?;
        let base = match visit.engine.version(store.id, id, View::Full) {
            Ok(version) if version.memory == memory => Some(version),
            Ok(_) => return Err(incomplete()),
            // It may have been pruned or redacted since.
            Err(error) if *error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { hash, base: base.filter(|version| version.content.is_some()) })
    }

    fn text(&self) -> Option<&str> {
        self.base.as_ref().and_then(|version| version.content.as_ref()).map(Content::as_str)
    }
}

fn save(visit: &Visit<'_>) -> Result<Reply, Trouble> {
    let store = match writable_store(visit) {
        Ok(store) => store,
        Err(trouble) => return unsaved(visit, trouble, "text"),
    };
    let seen = Seen::read(visit, &store)?;
    let typed = visit.form.text("text").unwrap_or_default();
    let now = found(visit, &store)?;
    let current = now.as_ref().ok().and_then(|memory| memory.content.clone());
    let model = seen.text().or(current.as_ref().map(Content::as_str)).unwrap_or_default();
    let mine = endings::restored(model, typed);
    let memory = match now {
        Ok(memory) => memory,
        Err(last) => return Ok(Reply::Conflict(gone_page(visit, &store, &last, &mine))),
    };
    let is_marked = merged::is_marked(&mine) && !merged::is_marked(seen.text().unwrap_or_default());
    if is_marked && visit.form.get("marks") != Some("keep") {
        let seen = Memory { version: seen_version(&seen, &memory), hash: seen.hash, ..memory };
        return Ok(Reply::Page(edit_page(visit, &store, &seen, &mine, &still_marked())));
    }
    let result = Content::new(mine.as_str()).map_err(Error::from).and_then(|content| {
        let precondition = Precondition::ContentIs(seen.hash);
        let update = MemoryUpdate { content: Some(content), path: None, precondition };
        visit.engine.update(&visit.caller.actor, store.id, memory.id, &update)
    });
    let error = match result {
        Ok(written) => return Ok(Reply::SeeOther(after_saving(&store, &written))),
        Err(error) => error,
    };
    if *error.kind() != ErrorKind::PreconditionFailed {
        // The version that was seen stays the one to compare with.
        let seen = Memory { version: seen_version(&seen, &memory), hash: seen.hash, ..memory };
        let message = alert(Some(&explained(&error)));
        return Ok(Reply::Page(edit_page(visit, &store, &seen, &mine, &message)));
    }
    conflict(visit, &store, seen.text(), &mine)
}

/// Warns of the marks of a conflict in a text that is about to be saved. The box belongs to the form of
/// the text, which comes later on the page.
fn still_marked() -> Markup {
    html! {
        p.message #trouble role="alert" {
            "Not saved: the text still has the marking lines of a conflict. Decide, and remove them."
        }
        label.inline {
            input type="checkbox" name="marks" value="keep" form="text-form";
            "They belong to the text: save it as it is"
        }
    }
}

fn seen_version(seen: &Seen, memory: &Memory) -> VersionId {
    seen.base.as_ref().map_or(memory.version, |version| version.id)
}

fn shown_difference(old: &str, new: &str, name: &str) -> Markup {
    difference(&Diff::new(old, new), name, Arrangement::Inline, &mut Space::for_one())
}

/// Shows the form again with both changes merged. It saves over what the others wrote, which its author
/// has then seen; nothing is saved now.
fn conflict(
    visit: &Visit<'_>,
    store: &Store,
    base: Option<&str>,
    mine: &str,
) -> Result<Reply, Trouble> {
    // Read again: the refused write was compared with what is there now, not with what was before it.
    let memory = match found(visit, store)? {
        Ok(memory) => memory,
        Err(last) => return Ok(Reply::Conflict(gone_page(visit, store, &last, mine))),
    };
    let theirs = memory.content.as_ref().map_or("", Content::as_str);
    let proposal = Proposal::new(base.unwrap_or_default(), mine, theirs);
    let version = visit.engine.version(store.id, memory.version, View::Basic)?;
    let who = visible::short(&visit.authors().short(&version.actor));
    let explanation = html! {
        p.message #conflict role="alert" {
            "Nothing is saved yet: " (who) " changed this memory "
            (text::time(version.created_at, visit.engine.now())) ", after you had opened it. "
            @if proposal.is_clean {
                "Both changes are merged below. Please check the text, then save it."
            } @else {
                "Below are both changes. Where they touch the same lines, yours are between "
                code { (merged::MINE) } " and " code { (merged::BETWEEN) } ", theirs between "
                code { (merged::BETWEEN) } " and " code { (merged::THEIRS) }
                ". Keep what is right, remove the three marking lines, then save."
            }
        }
    };
    let differences = html! {
        @if let Some(base) = base {
            div.sides {
                section aria-labelledby="their-change" {
                    h2 #their-change { "What " (who) " changed" }
                    (shown_difference(base, theirs, "What others changed"))
                }
                section aria-labelledby="your-change" {
                    h2 #your-change { "What you changed" }
                    (shown_difference(base, mine, "What you changed"))
                }
            }
        } @else {
            p { "The version that you started from is no longer kept, so the texts are compared as wholes." }
            (shown_difference(theirs, mine, "The text as it is, and yours"))
        }
    };
    let notes = html! { (explanation) (differences) };
    Ok(Reply::Conflict(edit_page(visit, store, &memory, &proposal.text, &notes)))
}

/// Shows the form for a text. `memory` says which version it is based on.
fn edit_page(
    visit: &Visit<'_>,
    store: &Store,
    memory: &Memory,
    typed: &str,
    notes: &Markup,
) -> Markup {
    let own = memory_address(store, memory.id);
    let content = html! {
        (trail_to(store, &memory.path, memory.path.file_name()))
        h1 { "Edit " (memory.path) }
        (notes)
        (hidden_note(&own, typed))
        form #text-form method="post" action={ (own) "/edit" } data-unsaved {
            (visit.token_field())
            (seen_fields(memory))
            (text_area(visit, typed))
            p { button.primary { "Save" } " " a href=(own) { "Cancel" } }
        }
    };
    page(visit, Room::Stores, &format!("{} · edit · {}", memory.path, store.name), &content)
}

/// Says that the field does not show all of its text: whoever changes a line may change what is hidden
/// in it.
fn hidden_note(own: &str, typed: &str) -> Markup {
    let count = u64::try_from(visible::hidden(typed).characters_count).unwrap_or(u64::MAX);
    html! {
        @if count > 0 {
            p.message #hidden {
                "The text has " (text::count(count, "hidden character", "hidden characters"))
                ", which this field does not show. "
                a href=(address(own, &[("view", "model")])) { "See it as a model does" } "."
            }
        }
    }
}

/// The fields that say what the author of a change saw.
fn seen_fields(memory: &Memory) -> Markup {
    html! {
        input type="hidden" name="version" value=(memory.version);
        input type="hidden" name="hash" value=(memory.hash);
    }
}

/// Shows a text whose memory was deleted while it was edited.
fn gone_page(visit: &Visit<'_>, store: &Store, last: &Version, mine: &str) -> Markup {
    let who = visible::plain(&visit.authors().short(&last.actor));
    let path = last.path.as_ref().map_or("/", |path| path.as_str());
    let trouble = format!(
        "Nothing is saved: {who} deleted this memory while you edited it. Create it again with your \
         text here, or restore the old one from its history first."
    );
    new_page(visit, store, (path, mine), Some(&trouble))
}
