//! Rules out of the stores that only people can change.

use std::collections::BTreeMap;

use quipu_core::backend::Archived;
use quipu_core::engine::ListQuery;
use quipu_core::model::{Directory, Listing, Store, VersionId, View, Writers};
use quipu_rules::{Decision, Failing, Rule, RuleSet, ToolKind, Verdict};

use super::answers::Answer;
use super::input::Input;
use super::{Hook, call_of, log, state};
use crate::args::HookHost;
use crate::context::Data;
use crate::failure::Failure;

/// How many memories are read for rules. Each call waits for them.
const MEMORIES_MAX: usize = 1000;

/// The rules that apply now.
#[derive(Debug, Default)]
pub(in crate::commands) struct LoadedRules {
    pub(in crate::commands) set: RuleSet,
    /// The versions of the memories, by the names of the rules.
    versions: BTreeMap<String, VersionId>,
    /// The stores that they are from.
    pub(in crate::commands) stores: Vec<Store>,
    /// Whether there are more memories than are read.
    pub(in crate::commands) is_cut: bool,
}

impl LoadedRules {
    pub(in crate::commands) fn version(&self, rule: &str) -> Option<VersionId> {
        self.versions.get(rule).copied()
    }
}

/// Reads the rules of all stores that only people can change.
///
/// A note with a `rule` in another store is none: an agent could have written it, or could rewrite it.
/// Which stores count does not depend on their names, so that nobody can put one in the place of another.
pub(in crate::commands) fn load(data: &Data, failing: Failing) -> Result<LoadedRules, Failure> {
    let mut loaded = LoadedRules::default();
    loaded.set.failing = failing;
    let mut stores = data.stores(Archived::Hide)?;
    stores.retain(|store| store.policy.writers == Writers::People);
    stores.sort_by_key(|store| store.id);
    let mut left = MEMORIES_MAX;
    for store in &stores {
        let query = ListQuery {
            directory: Directory::root(),
            depth: None,
            after: None,
            limit: left,
            view: View::Full,
        };
        let page = data.engine.list(store.id, &query)?;
        loaded.is_cut |= page.next.is_some();
        left -= page.items.len().min(left);
        for item in page.items {
            let Listing::Memory(memory) = item else { continue };
            let Some(content) = memory.content else { continue };
            let name = format!("{}:{}", store.name, memory.path);
            loaded.set.add(Rule::parse(&name, content.as_str()));
            loaded.versions.insert(name, memory.version);
        }
    }
    loaded.stores = stores;
    Ok(loaded)
}

/// Decides about a call.
pub(super) fn decide(hook: &Hook<'_>, input: &Input) -> Result<Answer, Failure> {
    let failing = hook.failing()?;
    let Some(data) = hook.open()? else {
        return match failing {
            Failing::Open => Ok(Answer::Nothing),
            Failing::Closed => Err(Failure::other("there is no data directory")),
        };
    };
    let loaded = load(&data, failing)?;
    if loaded.is_cut && failing == Failing::Closed {
        return Err(Failure::other(format!(
            "there are more than {MEMORIES_MAX} memories of rules"
        )));
    }
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
    let loaded = load(&data, Failing::Open)?;
    let verdict = loaded.set.decide(&call_of(input, &hook.context.settings));
    log_decision(hook, input, &verdict, &loaded);
    Ok(Answer::of_prompt(&verdict))
}
