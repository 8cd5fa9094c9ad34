//! Formatting of answers.

use std::cell::RefCell;
use std::collections::HashMap;

use quipu_core::diff::Diff;
use quipu_core::engine::Written;
use quipu_core::model::{Actor, SecretPolicy, SessionId, Store};
use quipu_knowledge::Knowledge;
use quipu_notes::Observation;
use quipu_screen::Finding;
use serde_json::{Value, json};

/// The maximum number of lines of a diff.
const DIFF_LINES_MAX: usize = 80;
const DIFF_CONTEXT: usize = 2;

/// Names actors for people: a session by the name of its host.
#[derive(Debug)]
pub(super) struct Actors<'e> {
    engine: &'e Knowledge,
    titles: RefCell<HashMap<SessionId, String>>,
}

impl<'e> Actors<'e> {
    pub(super) fn new(engine: &'e Knowledge) -> Self {
        Self { engine, titles: RefCell::default() }
    }

    /// Returns the title of the actor's session; empty for others and for deleted sessions.
    pub(super) fn title(&self, actor: &Actor) -> String {
        let Actor::Session(id) = actor else { return String::new() };
        let title = || self.engine.session(*id).map(|session| session.title).unwrap_or_default();
        self.titles.borrow_mut().entry(*id).or_insert_with(title).clone()
    }

    /// Returns the name for people: `Claude Code 2.1 (sesn_…)`, or the id alone.
    pub(super) fn name(&self, actor: &Actor) -> String {
        match self.title(actor).as_str() {
            "" => actor.to_string(),
            title => format!("{title} ({actor})"),
        }
    }

    /// Returns the actor as data.
    pub(super) fn data(&self, actor: &Actor) -> Value {
        match self.title(actor).as_str() {
            "" => json!({"id": actor.to_string()}),
            title => json!({"id": actor.to_string(), "title": title}),
        }
    }
}

/// Returns an observation as data.
pub(super) fn observation(observation: &Observation) -> Value {
    json!({
        "category": observation.category,
        "content": observation.text,
        "times": observation.written_times(),
        "tags": observation.tags,
        "context": observation.context,
        "line": observation.line,
    })
}

/// Returns a count with its noun.
pub(super) fn counted(count: impl Into<u64>, what: &str) -> String {
    match count.into() {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Returns a short unified diff of two texts.
pub(super) fn diff(old: &str, new: &str) -> String {
    let diff = Diff::new(old, new);
    let mut lines = Vec::new();
    for hunk in diff.hunks(DIFF_CONTEXT) {
        lines.push(hunk.header());
        lines.extend(hunk.lines.iter().map(ToString::to_string));
    }
    let left_out = lines.len().saturating_sub(DIFF_LINES_MAX);
    lines.truncate(DIFF_LINES_MAX);
    if left_out > 0 {
        lines.push(format!("… {left_out} more lines"));
    }
    lines.join("\n")
}

/// Returns a warning for each credential that was found in a text, and for redacted text that came back;
/// empty if there is none.
pub(super) fn findings(written: &Written, store: &Store) -> String {
    let what = match store.policy.secrets {
        SecretPolicy::Redact => "held a credential, which was replaced before it was stored",
        SecretPolicy::Warn | SecretPolicy::Reject | SecretPolicy::Off => "holds a credential",
    };
    let warning = |finding: &Finding| {
        if finding.is_forgotten() {
            let place = finding.place();
            return format!("\nNote: {place} brings back {}. Take it out again.", finding.kind);
        }
        format!(
            "\nNote: line {} of the text {what} ({}). Memory is read by many; keep credentials out \
             of it.",
            finding.line, finding.kind
        )
    };
    written.findings.iter().map(warning).collect()
}

/// Returns the credentials that were found in a text, as data: where they are, never what they are.
pub(super) fn findings_data(written: &Written) -> Value {
    let finding = |it: &Finding| json!({"line": it.line, "kind": it.kind.to_string()});
    written.findings.iter().map(finding).collect()
}
