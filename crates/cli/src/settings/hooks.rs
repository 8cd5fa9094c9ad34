//! Settings of `quipu hook` and `quipu rules`.

use quipu_rules::Failing;
use serde::Deserialize;

use crate::failure::Failure;

/// What the hooks of hosts do; see `docs/hooks.md`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HooksTable {
    /// Whether transcripts are recorded.
    pub(crate) transcript: bool,
    /// The path of the progress log in each store.
    pub(crate) progress: Option<String>,
    /// How many tokens the start of a session may take.
    pub(crate) start_tokens: Option<usize>,
    /// How many tokens the memories for a prompt may take.
    pub(crate) prompt_tokens: Option<usize>,
}

/// How rules are applied; see `docs/rules.md`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RulesTable {
    /// `open` or `closed`: what happens if rules cannot be applied.
    pub(crate) fail: Option<String>,
    /// How many memories of reserved stores are looked at for rules.
    pub(crate) memories_max: Option<u64>,
}

impl RulesTable {
    /// Returns what happens if rules cannot be applied, unless something else is said.
    pub(crate) fn failing(&self) -> Result<Failing, Failure> {
        let Some(word) = &self.fail else { return Ok(Failing::Open) };
        word.parse().map_err(|_unknown: String| {
            Failure::usage(format!("the setting `rules.fail` is `open` or `closed`, not `{word}`"))
        })
    }
}
