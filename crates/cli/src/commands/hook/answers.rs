//! What hosts are answered, each in its own words.

use quipu_rules::{Decision, Failing, Verdict};
use serde_json::{Value, json};

use super::deadline::Printed;
use super::input::{Input, Kind};
use crate::args::HookHost;

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

/// What a hook was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// To say what the memory has to say about an event.
    Run,
    /// To decide about a call.
    Decide,
}

/// Who asks, and what, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    host: HookHost,
    verb: Verb,
    /// The event, in general and as the host calls it; `None` until the input was read.
    event: Option<(Kind, String)>,
}

/// An exit code that denies a call, for every host.
pub(super) const DENIED: i32 = 2;

impl Asked {
    /// Returns what is known from the command line.
    pub(super) fn by(host: HookHost, verb: Verb) -> Self {
        Self { host, verb, event: None }
    }

    /// Returns what is known once the input was read.
    pub(super) fn with(self, input: &Input) -> Self {
        Self { host: input.host, event: Some((input.kind, input.event.clone())), ..self }
    }

    /// Returns whether the answer decides about a call.
    fn is_call(&self) -> bool {
        match &self.event {
            Some((kind, _)) => *kind == Kind::BeforeTool,
            None => self.verb == Verb::Decide,
        }
    }
}

impl Answer {
    /// Returns the answer of a hook that has failed. A prompt or a session start has nothing to be denied,
    /// and an agent that cannot stop harms its user.
    pub(super) fn failed(asked: &Asked, failing: Failing, why: &str) -> Self {
        match failing {
            Failing::Closed if asked.is_call() => {
                let reason = format!(
                    "The rules could not be applied, and what cannot be checked is denied: {why}. \
                     Ask the user to repair that."
                );
                Self::Decided { decision: Decision::Deny, reason }
            }
            Failing::Closed | Failing::Open => Self::Nothing,
        }
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

    /// Returns what is printed.
    pub(super) fn print(&self, asked: &Asked) -> Printed {
        let body = match (asked.host, &asked.event) {
            (HookHost::Cursor, _) => Some(self.cursor(asked)),
            (HookHost::ClaudeCode, Some((_, event))) => self.claude_code(event, Asking::Possible),
            (HookHost::Codex, Some((_, event))) => self.claude_code(event, Asking::Impossible),
            (HookHost::ClaudeCode | HookHost::Codex, None) => None,
        };
        let out = body.map_or_else(String::new, |body| format!("{body}\n"));
        match self {
            // What asks is unknown, since the input could not be read; an exit code denies everywhere.
            Self::Decided { decision: Decision::Deny, reason } if asked.event.is_none() => {
                Printed { out, err: format!("{reason}\n"), code: DENIED }
            }
            Self::Decided { .. }
            | Self::Nothing
            | Self::Context(_)
            | Self::PromptRefused(_)
            | Self::GoOn(_) => Printed { out, err: String::new(), code: 0 },
        }
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
                let mut fields =
                    json!({ "permissionDecision": word, "permissionDecisionReason": reason });
                if let (ASK, Some(fields)) = (word, fields.as_object_mut()) {
                    // The reason of a question is shown to the person who is asked, and to nobody else.
                    fields.insert("additionalContext".to_owned(), json!(reason));
                }
                specific(fields)
            }
            Self::PromptRefused(reason) | Self::GoOn(reason) => {
                Some(json!({ "decision": "block", "reason": reason }))
            }
        }
    }

    /// Returns the answer for Cursor, which there always is: before a call, it takes silence and whatever does
    /// not fit its schema for a denial, and a hook that was installed to fail closed denies by silence at
    /// every event. To allow is not to approve: of several hooks the strictest counts, and what a hook allows
    /// still has to pass Cursor's own permissions.
    fn cursor(&self, asked: &Asked) -> Value {
        // Without an event, the verb says it: `decide` is started before calls only, and of the events that
        // `run` is started for, one can block.
        let kind = match (&asked.event, asked.verb) {
            (Some((kind, _)), _) => *kind,
            (None, Verb::Decide) => Kind::BeforeTool,
            (None, Verb::Run) => Kind::Prompt,
        };
        match (self, kind) {
            (Self::Decided { decision: Decision::Warn, reason }, _) => {
                json!({ "permission": "allow", "agent_message": reason })
            }
            (Self::Decided { decision, reason }, _) => {
                let event = asked.event.as_ref().map_or("", |(_, event)| event);
                let can_ask = matches!(event, "beforeShellExecution" | "beforeMCPExecution");
                let asking = if can_ask { Asking::Possible } else { Asking::Impossible };
                let (word, reason) = asking.apply(*decision, reason);
                json!({ "permission": word, "user_message": reason, "agent_message": reason })
            }
            (Self::PromptRefused(reason), _) => {
                json!({ "continue": false, "user_message": reason })
            }
            (Self::GoOn(reason), _) => json!({ "followup_message": reason }),
            (Self::Context(text), Kind::SessionStart) => json!({ "additional_context": text }),
            // No other event of Cursor takes text for the model.
            (Self::Nothing | Self::Context(_), Kind::BeforeTool) => {
                json!({ "permission": "allow" })
            }
            (Self::Nothing | Self::Context(_), Kind::Prompt) => json!({ "continue": true }),
            (Self::Nothing | Self::Context(_), _) => json!({}),
        }
    }
}

/// Whether a host can ask a person about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    Possible,
    Impossible,
}

const ASK: &str = "ask";

impl Asking {
    /// Returns the word and the reason for a decision. What nobody can be asked about is denied.
    fn apply(self, decision: Decision, reason: &str) -> (&'static str, String) {
        match (decision, self) {
            (Decision::Ask, Self::Possible) => (ASK, reason.to_owned()),
            (Decision::Ask, Self::Impossible) => (
                "deny",
                format!(
                    "{reason}\n\nThis needs approval, which this host cannot ask for. Ask the user to do it."
                ),
            ),
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
