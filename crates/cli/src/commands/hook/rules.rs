//! What rules decide about an event of a host.

use quipu_rules::{Decision, Failing, ToolKind, Verdict};

use super::answers::Answer;
use super::input::Input;
use super::loading::{LoadedRules, Loader, Reading};
use super::{Hook, call_of, log, state};
use crate::args::HookHost;
use crate::failure::Failure;

/// Decides about a call.
pub(super) fn decide(hook: &Hook<'_>, input: &Input) -> Result<Answer, Failure> {
    let failing = hook.failing()?;
    let Some(data) = hook.open()? else {
        return match failing {
            Failing::Open => Ok(Answer::Nothing),
            Failing::Closed => Err(Failure::other("there is no data directory")),
        };
    };
    let loaded = Loader::new(&hook.context.settings, failing, Reading::Kept).load(&data)?;
    let verdict = loaded.set.decide(&call_of(input, &hook.context.settings));
    let is_denied = verdict.decision == Some(Decision::Deny);
    // Cursor asks about commands and MCP tools a second time, by events that can also ask a person. What is
    // denied is denied at once: where it runs in the cloud, there is no second time for MCP tools.
    let comes_again = hook.arguments.host == HookHost::Cursor
        && input.event == "preToolUse"
        && matches!(input.tool_kind, ToolKind::Shell | ToolKind::Mcp);
    if comes_again && !is_denied {
        return Ok(Answer::Nothing);
    }
    log_decision(hook, input, &verdict, &loaded);
    if !is_denied && input.tool_kind == ToolKind::Edit {
        state::change(hook, input, |state| state.note_edit(&input.paths));
    }
    Ok(Answer::of_call(&verdict))
}

fn log_decision(hook: &Hook<'_>, input: &Input, verdict: &Verdict, loaded: &LoadedRules) {
    if !verdict.matches.is_empty() && !hook.is_second(input) {
        log::decision(hook, input, &verdict.matches, loaded);
    }
}

/// Decides about a prompt. It fails open: a person has written it, and would not be heard.
pub(super) fn decide_prompt(hook: &Hook<'_>, input: &Input) -> Result<Answer, Failure> {
    let Some(data) = hook.open()? else { return Ok(Answer::Nothing) };
    let loaded = Loader::new(&hook.context.settings, Failing::Open, Reading::Kept).load(&data)?;
    let verdict = loaded.set.decide(&call_of(input, &hook.context.settings));
    log_decision(hook, input, &verdict, &loaded);
    Ok(Answer::of_prompt(&verdict))
}
