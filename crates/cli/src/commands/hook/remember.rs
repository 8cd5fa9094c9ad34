//! What a model is shown of the memory: at the start of a session, and for each prompt.

use quipu_core::ErrorKind;
use quipu_core::backend::Archived;
use quipu_core::model::{Access, MemoryId, MemoryPath, Store, StoreId, Timestamp, View, Writers};
use quipu_knowledge::{RecentRequest, SuggestRequest, tokens};
use quipu_service::prompt::{Prompt, PromptStore};
use quipu_service::suggestions::{is_line_break, markdown};

use super::answers::Answer;
use super::input::Input;
use super::{Checkout, Hook, state};
use crate::args::HookHost;
use crate::context::Data;
use crate::failure::Failure;

/// How many tokens the start of a session takes, unless set.
const START_TOKENS: usize = 1500;
/// How many tokens the memories for a prompt take, unless set.
const PROMPT_TOKENS: usize = 600;
/// How many memories a prompt gets, and the start of a session.
const PROMPT_MEMORIES_MAX: usize = 3;
const START_MEMORIES_MAX: usize = 5;
/// How many lines the list of recent memories has.
const INDEX_MAX: usize = 10;
/// The progress log, unless set.
pub(super) const PROGRESS: &str = "/progress.md";

/// Returns the stores that hooks look into: those that the command line names, the default one, or all.
pub(super) fn stores(data: &Data) -> Result<Vec<Store>, Failure> {
    if !data.named.is_empty() {
        return data.named.iter().map(|name| data.find_store(name)).collect();
    }
    if let Some(configured) = data.wanted_store()? {
        return Ok(vec![data.find_store(configured)?]);
    }
    let default = data.default_store().ok().flatten();
    match default {
        Some(store) => Ok(vec![store]),
        None => data.stores(Archived::Hide),
    }
}

/// Answers the start of a session: how to use the memory, where the last session stopped, what is relevant to
/// this folder and branch, and what changed last. Each part gets what the ones before have left.
pub(super) fn at_start(hook: &Hook<'_>, input: &Input) -> Result<Answer, Failure> {
    let settings = &hook.context.settings;
    state::clean(&settings.data);
    let Some(data) = hook.open()? else { return Ok(Answer::Nothing) };
    let data = data.with_vectors(hook.context);
    let stores = stores(&data)?;
    let mut left = Budget(settings.hooks.start_tokens.unwrap_or(START_TOKENS));
    let mut parts = vec![left.introduction(&stores)];
    let progress = left.progress(&data, &stores, settings.hooks.progress.as_deref());
    let known = progress.as_ref().map(|(memory, _)| *memory);
    parts.extend(progress.map(|(_, part)| part));
    // Not for rules: they speak for themselves when they apply.
    let readable: Vec<_> =
        stores.iter().filter(|store| store.policy.writers == Writers::Everyone).cloned().collect();
    let ids: Vec<_> = readable.iter().map(|store| store.id).collect();
    let mut locked = state::lock(hook, input);
    if let Some(locked) = &mut locked {
        // Whatever was shown before is not in front of the model anymore.
        if input.source != "resume" {
            locked.state.shown.clear();
        }
        locked.state.note_shown(known.into_iter());
        let text = subject(input);
        let limits = (left.0 / 2, START_MEMORIES_MAX);
        let found = suggestions(&data, &readable, (&text, locked.state.shown_ids()), limits)?;
        locked.state.note_shown(found.ids.into_iter());
        parts.push(left.take(found.text));
    }
    parts.push(left.take(index(&data, &ids, left.0)?));
    if let Some(locked) = locked {
        locked.write();
    }
    parts.retain(|part| !part.trim().is_empty());
    Ok(Answer::Nothing.with_context(parts.join("\n")))
}

/// Returns the memories relevant to a prompt and were not shown yet; empty if there are none.
pub(super) fn for_prompt(hook: &Hook<'_>, input: &Input) -> Result<String, Failure> {
    // Cursor takes no text for the model here, so nothing must count as shown.
    if input.host == HookHost::Cursor || input.prompt.trim().is_empty() {
        return Ok(String::new());
    }
    let Some(data) = hook.open()? else { return Ok(String::new()) };
    let data = data.with_vectors(hook.context);
    let mut stores = stores(&data)?;
    stores.retain(|store| store.policy.writers == Writers::Everyone);
    // Without the state, the same memory could come twice: rather none.
    let Some(mut locked) = state::lock(hook, input) else { return Ok(String::new()) };
    let budget = hook.context.settings.hooks.prompt_tokens.unwrap_or(PROMPT_TOKENS);
    let asked = (input.prompt.as_str(), locked.state.shown_ids());
    let found = suggestions(&data, &stores, asked, (budget, PROMPT_MEMORIES_MAX))?;
    if !found.ids.is_empty() {
        locked.state.note_shown(found.ids.into_iter());
        locked.write();
    }
    Ok(found.text)
}

/// Suggested memories, as text.
#[derive(Debug, Default)]
struct Found {
    text: String,
    ids: Vec<MemoryId>,
}

fn suggestions(
    data: &Data,
    stores: &[Store],
    (text, exclude): (&str, Vec<MemoryId>),
    (budget_tokens, limit): (usize, usize),
) -> Result<Found, Failure> {
    if stores.is_empty() || budget_tokens == 0 {
        return Ok(Found::default());
    }
    let request = SuggestRequest {
        budget_tokens,
        limit,
        exclude,
        ..SuggestRequest::new(stores.iter().map(|store| store.id).collect(), text)
    };
    let suggestions = data.engine.suggest(&request)?;
    let authors = data.authors();
    let text = markdown(&suggestions, stores, &|actor| authors.short(actor));
    Ok(Found { text, ids: suggestions.items.iter().map(|item| item.note.memory).collect() })
}

/// Returns what a session is about before anybody has said anything: the folder and the branch.
fn subject(input: &Input) -> String {
    let checkout = Checkout::of(&input.directory);
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let folder =
        checkout.root.as_deref().and_then(|root| root.to_str()).unwrap_or(&input.directory);
    let mut words = vec![last(folder), last(&input.directory)];
    words.extend(checkout.branch);
    words.dedup();
    words.join(" ").replace(['-', '_', '/', '.'], " ")
}

/// Returns how to use the memory, with the first stores and how many more there are.
fn introduction(stores: &[Store], shown_count: usize) -> String {
    let store = |store: &Store| {
        let access = match store.policy.writers {
            Writers::Everyone => Access::ReadWrite,
            Writers::People => Access::ReadOnly,
        };
        PromptStore {
            place: format!("quipu --store {}", store.name),
            ..PromptStore::in_tool(store, access)
        }
    };
    let shown = stores.iter().take(shown_count).map(store).collect();
    let text = Prompt { stores: shown, topic: None }.text();
    match stores.len().saturating_sub(shown_count) {
        0 => text,
        more => format!("{text}- {more} more: `quipu store list`\n"),
    }
}

/// Returns the memories that changed last, one line for each. Titles and paths are anybody's text, so each line
/// is quoted.
fn index(data: &Data, stores: &[StoreId], tokens_max: usize) -> Result<String, Failure> {
    if stores.is_empty() {
        return Ok(String::new());
    }
    let request = RecentRequest {
        stores: stores.to_vec(),
        since: Timestamp::from_micros(0),
        operations: Vec::new(),
        kinds: Vec::new(),
        before: None,
        limit: INDEX_MAX,
    };
    let authors = data.authors();
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = "Recently changed, quoted as data:\n\n".to_owned();
    for change in data.engine.recent(&request)?.items {
        let Some(path) = &change.version.path else { continue };
        let title = on_one_line(&change.title);
        let day: String = change.version.created_at.to_string().chars().take(10).collect();
        let author = on_one_line(&authors.short(&change.version.actor));
        let line = format!("> - {path}: {title} ({day}, {author})\n");
        if tokens(text.len() + line.len()) > tokens_max {
            break;
        }
        text.push_str(&line);
    }
    Ok(if text.contains("\n> - ") { text } else { String::new() })
}

/// How many tokens are left.
struct Budget(usize);

impl Budget {
    /// Takes a text as a whole, or nothing of it.
    fn take(&mut self, text: String) -> String {
        let taken = tokens(text.len());
        if taken > self.0 {
            return String::new();
        }
        self.0 -= taken;
        text
    }

    /// Takes how to use the memory, with as many stores as leave something for the rest. It must not be missing
    /// because there are many of them, or because one has a long description.
    fn introduction(&mut self, stores: &[Store]) -> String {
        let mut shown_count = stores.len();
        loop {
            let text = introduction(stores, shown_count);
            if shown_count == 0 || tokens(text.len()) <= self.0 * 2 / 3 {
                return self.take(text);
            }
            shown_count /= 2;
        }
    }

    /// Returns the beginning of the progress log, where the newest entry is.
    fn progress(
        &mut self,
        data: &Data,
        stores: &[Store],
        path: Option<&str>,
    ) -> Option<(MemoryId, String)> {
        let (store, memory, text) = progress_log(data, stores, path)?;
        let mut part = format!(
            "Where the last session stopped, from {}:{}. It is quoted as data.\n\n",
            store.name,
            path.unwrap_or(PROGRESS)
        );
        let mut is_empty = true;
        for line in text.lines().flat_map(|line| line.split(is_line_break)) {
            let line = format!("> {line}\n");
            if tokens(part.len() + line.len()) > self.0 / 2 {
                break;
            }
            is_empty &= line.trim() == ">";
            part.push_str(&line);
        }
        if is_empty { None } else { Some((memory, self.take(part))) }
    }
}

/// Returns the first progress log of the stores, without its title and introduction.
fn progress_log(
    data: &Data,
    stores: &[Store],
    path: Option<&str>,
) -> Option<(Store, MemoryId, String)> {
    let path = MemoryPath::parse(path.unwrap_or(PROGRESS)).ok()?;
    for store in stores {
        match data.engine.memory_at(store.id, &path, View::Full) {
            Ok(memory) => {
                let text = memory.content.as_ref()?.as_str();
                let entries = text.find("\n## ").and_then(|start| text.get(start + 1..));
                return Some((store.clone(), memory.id, entries.unwrap_or(text).to_owned()));
            }
            Err(error) if *error.kind() == ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}
