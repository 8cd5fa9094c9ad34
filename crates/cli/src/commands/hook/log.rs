//! The log of hooks, one JSON object per line. A decision is also put aside for the database.
//!
//! It takes no lock of the database, so that a hook can write down that the database is locked.

use std::path::Path;

use quipu_core::clock::{Clock as _, SystemClock};
use quipu_rules::{Cause, Match};
use serde_json::{Value, json};

use super::Hook;
use super::input::Input;
use super::loading::LoadedRules;
use super::recording;
use crate::args::HookLogArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::hook_files::HookFiles;
use crate::print::{Form, note, raw};

/// How much of a call is written down, and in how much of it credentials are looked for.
const SUBJECT_CHARS_MAX: usize = 300;
const SUBJECT_CHARS_SCREENED: usize = 10_000;

/// Writes down why a hook did nothing.
pub(super) fn failure(data: &Path, input: Option<&Input>, failure: &Failure) {
    let line = json!({
        "at": SystemClock.now().to_string(),
        "host": input.map(Input::host_name),
        "session": input.map(|input| input.session.as_str()),
        "event": input.map(|input| input.event.as_str()),
        "failed": failure.to_string(),
    });
    // A hook must not fail because its log does.
    HookFiles::of(data).log(&line).unwrap_or_default();
}

/// Writes down what rules have decided about a call.
pub(super) fn decision(hook: &Hook<'_>, input: &Input, matches: &[Match], loaded: &LoadedRules) {
    let files = HookFiles::of(&hook.context.settings.data);
    let line = decided(input, matches, loaded);
    files.log(&line).unwrap_or_default();
    recording::spool(hook, &files, &line);
}

fn decided(input: &Input, matches: &[Match], loaded: &LoadedRules) -> Value {
    let rules = matches.iter().map(|found| {
        let cause = match &found.cause {
            Cause::Matched => "matched".to_owned(),
            Cause::Broken(message) => format!("broken: {message}"),
            Cause::Unreadable => "not readable to its end".to_owned(),
        };
        json!({
            "rule": found.rule,
            "version": loaded.version(&found.rule).map(|version| version.to_string()),
            "decision": found.decision.to_string(),
            "cause": cause,
        })
    });
    json!({
        "at": SystemClock.now().to_string(),
        "host": input.host_name(),
        "session": input.session,
        "event": input.event,
        "tool": input.tool,
        "call": subject(input),
        "decision": matches.first().map(|found| found.decision.to_string()),
        "rules": rules.collect::<Vec<_>>(),
    })
}

/// Returns what a call is about, without credentials. They are looked for in more than is written down, and
/// words are not cut: half of something secret would not be recognized, by nobody.
fn subject(input: &Input) -> String {
    let text = input.command.clone().unwrap_or_else(|| input.paths.join(" "));
    let text: String = text.chars().take(SUBJECT_CHARS_SCREENED).collect();
    let text = quipu_screen::redacted(&text, &quipu_screen::findings(&text));
    let Some((end, _)) = text.char_indices().nth(SUBJECT_CHARS_MAX) else { return text };
    let head = text.get(..end).unwrap_or_default();
    let whole = head.rfind(char::is_whitespace).and_then(|space| head.get(..space));
    format!("{} …", whole.unwrap_or_default())
}

/// `quipu hook log`.
pub(super) fn show(context: &Context, arguments: &HookLogArguments) -> Result<(), Failure> {
    let lines = HookFiles::of(&context.settings.data).logged();
    let shown = lines.len().saturating_sub(arguments.limit);
    let mut out = String::new();
    for line in lines.iter().skip(shown) {
        match context.form {
            Form::Json => out.push_str(&format!("{line}\n")),
            Form::Text => out.push_str(&described(line)),
        }
    }
    if lines.is_empty() {
        note("no decisions or failures logged yet");
    }
    raw(&out)
}

fn described(line: &Value) -> String {
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or("-").escape_debug().to_string()
    };
    let head = format!("{} {} {}", text(line, "at"), text(line, "host"), text(line, "event"));
    if line.get("failed").is_some() {
        return format!("{head} failed: {}\n", text(line, "failed"));
    }
    let mut described = format!(
        "{head} {} {}: {}\n",
        text(line, "decision"),
        text(line, "tool"),
        text(line, "call")
    );
    for rule in line.get("rules").and_then(Value::as_array).into_iter().flatten() {
        let parts = ["decision", "rule", "version", "cause"].map(|key| text(rule, key));
        described.push_str(&format!("    {}\n", parts.join(" ")));
    }
    described
}
