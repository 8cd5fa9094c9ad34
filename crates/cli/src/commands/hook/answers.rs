//! What hosts are answered, each in its own words.

use quipu_rules::{Decision, Verdict};
use serde_json::{Value, json};

use super::deadline::Printed;
use crate::args::HookHost;
use crate::failure::Failure;

/// What a hook answers.
#[derive(Debug, Default)]
pub(super) enum Answer {
    /// Nothing: the host goes on.
    #[default]
    Nothing,
    /// Text for the model.
    Context(String),
    /// What rules decide about a call.
    Decided { decision: Decision, reason: String },
    /// What rules decide about a prompt that must not be sent.
    PromptRefused(String),
    /// The agent goes on instead of stopping.
    GoOn(String),
}

/// An exit code that denies a call, for every host.
const DENIED: i32 = 2;

impl Answer {
    /// Returns the answer for a call that could not be checked and is denied for that.
    pub(super) fn refusal(failure: &Failure) -> Self {
        let reason = format!(
            "The rules could not be applied, and what cannot be checked is denied: {failure}. \
             A person has to look into it."
        );
        Self::Decided { decision: Decision::Deny, reason }
    }

    /// Returns the answer for what rules decide about a call.
    pub(super) fn of_call(verdict: &Verdict) -> Self {
        match verdict.decision {
            Some(decision) => Self::Decided { decision, reason: reasons(verdict) },
            None => Self::Nothing,
        }
    }

    /// Returns the answer for what rules decide about a prompt. Nobody can be asked in between.
    pub(super) fn of_prompt(verdict: &Verdict) -> Self {
        match verdict.decision {
            Some(Decision::Deny | Decision::Ask) => Self::PromptRefused(reasons(verdict)),
            Some(Decision::Warn) => Self::Context(reasons(verdict)),
            None => Self::Nothing,
        }
    }

    /// Returns whether nothing can be added to it.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Nothing | Self::Context(_) => false,
            Self::Decided { .. } | Self::PromptRefused(_) | Self::GoOn(_) => true,
        }
    }

    /// Adds text for the model.
    pub(super) fn with_context(self, text: String) -> Self {
        match self {
            _ if text.is_empty() => self,
            Self::Nothing => Self::Context(text),
            Self::Context(before) => Self::Context(format!("{before}\n\n{text}")),
            Self::Decided { .. } | Self::PromptRefused(_) | Self::GoOn(_) => self,
        }
    }

    /// Returns what is printed for an event of a host.
    pub(super) fn print(&self, host: HookHost, event: &str) -> Printed {
        if let (Self::Decided { decision: Decision::Deny, reason }, "") = (self, event) {
            // What asks is unknown, since the input could not be read; an exit code denies everywhere.
            return Printed { out: String::new(), err: format!("{reason}\n"), code: DENIED };
        }
        let body = match host {
            HookHost::ClaudeCode => self.claude_code(event, Asking::Possible),
            HookHost::Codex => self.claude_code(event, Asking::Impossible),
            HookHost::Cursor => self.cursor(event),
        };
        let out = body.map_or_else(String::new, |body| format!("{body}\n"));
        Printed { out, err: String::new(), code: 0 }
    }

    /// Codex has the same contract, but refuses `ask`: the call would go on.
    fn claude_code(&self, event: &str, asking: Asking) -> Option<Value> {
        let specific = |fields: Value| {
            let mut all = json!({ "hookEventName": event });
            if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
                all.extend(fields);
            }
            Some(json!({ "hookSpecificOutput": all }))
        };
        match self {
            Self::Nothing => None,
            Self::Context(text) => specific(json!({ "additionalContext": text })),
            Self::Decided { decision: Decision::Warn, reason } => {
                // Without a decision: to allow would skip the permissions of the host.
                specific(json!({ "additionalContext": reason }))
            }
            Self::Decided { decision, reason } => {
                let (word, reason) = asking.apply(*decision, reason);
                specific(json!({ "permissionDecision": word, "permissionDecisionReason": reason }))
            }
            Self::PromptRefused(reason) | Self::GoOn(reason) => {
                Some(json!({ "decision": "block", "reason": reason }))
            }
        }
    }

    fn cursor(&self, event: &str) -> Option<Value> {
        match self {
            Self::Context(text) if event == "sessionStart" => {
                Some(json!({ "additional_context": text }))
            }
            // No other event of Cursor takes text for the model.
            Self::Nothing | Self::Context(_) => None,
            Self::Decided { decision: Decision::Warn, reason } => {
                Some(json!({ "agent_message": reason }))
            }
            Self::Decided { decision, reason } => {
                let can_ask = matches!(event, "beforeShellExecution" | "beforeMCPExecution");
                let asking = if can_ask { Asking::Possible } else { Asking::Impossible };
                let (word, reason) = asking.apply(*decision, reason);
                Some(json!({ "permission": word, "user_message": reason, "agent_message": reason }))
            }
            Self::PromptRefused(reason) => {
                Some(json!({ "continue": false, "user_message": reason }))
            }
            Self::GoOn(reason) => Some(json!({ "followup_message": reason })),
        }
    }
}

/// Whether a host can ask a person about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    Possible,
    Impossible,
}

impl Asking {
    /// Returns the word and the reason for a decision. What nobody can be asked about is denied.
    fn apply(self, decision: Decision, reason: &str) -> (&'static str, String) {
        match (decision, self) {
            (Decision::Ask, Self::Possible) => ("ask", reason.to_owned()),
            (Decision::Ask, Self::Impossible) => {
                ("deny", format!("{reason}\n\nThis needs a person: ask for it to be done by hand."))
            }
            (Decision::Deny | Decision::Warn, _) => ("deny", reason.to_owned()),
        }
    }
}

/// Returns the reasons of the rules with the strongest decision, each with the name of its rule.
fn reasons(verdict: &Verdict) -> String {
    let strongest = verdict.matches.iter().filter(|found| Some(found.decision) == verdict.decision);
    let reasons: Vec<_> = strongest
        .take(REASONS_MAX)
        .map(|found| format!("Rule {}:\n{}", found.rule, found.reason))
        .collect();
    reasons.join("\n\n")
}

/// How many reasons a model is shown.
const REASONS_MAX: usize = 5;
