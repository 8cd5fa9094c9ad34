//! What an agent is told when it stops.

use quipu_core::model::{MemoryPath, View};

use super::answers::Answer;
use super::input::Input;
use super::remember::{PROGRESS, stores};
use super::{Hook, state};
use crate::failure::Failure;

/// Reminds an agent that has changed files, but not its progress log. Once for a session: an agent that
/// has a reason not to write must not be kept from stopping.
pub(super) fn reminder(hook: &Hook<'_>, input: &Input) -> Result<Answer, Failure> {
    if input.is_continued {
        return Ok(Answer::Nothing);
    }
    let Some(data) = hook.open()? else { return Ok(Answer::Nothing) };
    let Some(mut locked) = state::lock(hook, input) else { return Ok(Answer::Nothing) };
    let (Some(edited_at), false) = (locked.state.edited_at, locked.state.is_reminded) else {
        return Ok(Answer::Nothing);
    };
    let name = hook.context.settings.hooks.progress.as_deref().unwrap_or(PROGRESS);
    let path = MemoryPath::parse(name).map_err(|error| Failure::other(error.to_string()))?;
    // Only a project that keeps such a log is reminded of it.
    let logs = stores(&data)?.into_iter().filter_map(|store| {
        let memory = data.engine.memory_at(store.id, &path, View::Basic).ok()?;
        Some((store, memory))
    });
    let logs: Vec<_> = logs.collect();
    let Some((store, _)) = logs.first() else { return Ok(Answer::Nothing) };
    if logs.iter().any(|(_, memory)| memory.updated_at.as_micros() >= edited_at) {
        locked.state.edited_at = None;
        locked.state.edited.clear();
        locked.write();
        return Ok(Answer::Nothing);
    }
    let files = locked.state.edited.join(", ");
    let reason = format!(
        "You have changed files ({files}), but not the progress log `{name}` of the store `{}`. Add an entry to \
         it now: what was done, what was learned, what is broken, what comes next. Whoever continues knows \
         only what is written there.",
        store.name
    );
    locked.state.is_reminded = true;
    locked.write();
    Ok(Answer::GoOn(reason))
}
