//! The log of hooks: a file in the data directory, one JSON object per line.
//!
//! It takes no lock of the database, so that a hook can write down that the database is locked.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use quipu_core::clock::{Clock as _, SystemClock};
use quipu_rules::{Cause, Match};
use serde_json::{Value, json};

use super::input::Input;
use super::rules::LoadedRules;
use super::{Hook, state};
use crate::args::HookLogArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{Form, note, raw};

/// The directory of what hooks keep, in the data directory.
pub(super) const DIRECTORY: &str = "hooks";
const FILE: &str = "log.jsonl";
const OLD_FILE: &str = "log.old.jsonl";

/// A file that is larger becomes the old one, which replaces the one before.
const FILE_SIZE_BYTES_MAX: u64 = 1024 * 1024;

/// How much of a call is written down, and in how much of it credentials are looked for.
const SUBJECT_CHARS_MAX: usize = 300;
const SUBJECT_CHARS_SCREENED: usize = 10_000;

/// Writes down why a hook did nothing.
pub(super) fn failure(data: &Path, input: Option<&Input>, failure: &Failure) {
    append(
        data,
        &json!({
            "at": SystemClock.now().to_string(),
            "host": input.map(Input::host_name),
            "session": input.map(|input| input.session.as_str()),
            "event": input.map(|input| input.event.as_str()),
            "failed": failure.to_string(),
        }),
    );
}

/// Writes down what rules have decided about a call.
pub(super) fn decision(hook: &Hook<'_>, input: &Input, matches: &[Match], loaded: &LoadedRules) {
    let line = decided(input, matches, loaded);
    append(&hook.context.settings.data, &line);
    if hook.context.settings.hooks.transcript {
        state::change(hook, input, |state| state.note_decision(line));
    }
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

/// Adds a line. A hook must not fail because its log does.
fn append(data: &Path, line: &Value) {
    let directory = data.join(DIRECTORY);
    // A data directory that does not exist is not created by a hook.
    if !data.is_dir() || fs::create_dir_all(&directory).is_err() {
        return;
    }
    let path = directory.join(FILE);
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > FILE_SIZE_BYTES_MAX) {
        // If two do this at the same time, the second moves a short file: lines are lost, none is torn.
        fs::rename(&path, directory.join(OLD_FILE)).unwrap_or_default();
    }
    // Whoever can write here could put a pipe in place of the file, which would wait for its reader.
    if fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        return;
    }
    // One write, so that lines of several processes are not mixed.
    let line = format!("{line}\n");
    let file = File::options().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap_or_default();
}

/// `quipu hook log`.
pub(super) fn show(context: &Context, arguments: &HookLogArguments) -> Result<(), Failure> {
    let directory = context.settings.data.join(DIRECTORY);
    let text = [OLD_FILE, FILE].map(|name| read_end(&directory.join(name))).concat();
    let lines: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
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

/// Returns the end of a file, from the beginning of a line.
fn read_end(path: &PathBuf) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let start = file.metadata()?.len().saturating_sub(2 * FILE_SIZE_BYTES_MAX);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(2 * FILE_SIZE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
