//! `quipu hook install` and `uninstall`: edits the hooks in the settings of a host.
//!
//! Hooks of others, comments and layout stay. Ours are recognized by what they start, so that a new
//! version finds those of an old one, wherever the program was then.

use std::fs;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};

use super::input::{Input, Kind};
use crate::args::{HookFailing, HookHost, HookInstallArguments, HookPlace};
use crate::commands::mcp::{Edit, inside_project, target};
use crate::context::Context;
use crate::failure::Failure;

/// The time limit that hosts are told, in seconds. Hooks answer within two.
const HOST_TIMEOUT_SECONDS: u32 = 5;

/// Codex waits no longer at the end of a session, and warns at each start about hooks that want it to.
const CODEX_END_TIMEOUT_SECONDS: u32 = 3;

const CURSOR_FILE: &str = ".cursor/hooks.json";

/// What a host starts when something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starts {
    Run,
    Decide,
}

pub(super) fn install(context: &Context, arguments: &HookInstallArguments) -> Result<(), Failure> {
    let place = arguments.place;
    let file = target(file(context, place)?);
    let entries = entries(context, arguments)?;
    let written = |old: &str| edited(place.host, old, &entries);
    let edit = Edit {
        change: &written,
        by_hand: format!("add this to it by hand:\n{}", written("").unwrap_or_default()),
        unchanged: "is already up to date",
        changed: "added the hooks to".to_owned(),
        next: match place.host {
            HookHost::ClaudeCode | HookHost::Cursor => "they apply to new sessions",
            HookHost::Codex => {
                "in the host, review and trust them with `/hooks`; until then they do not run"
            }
        },
        is_dry_run: place.dry_run,
    };
    edit.apply(&file)
}

pub(super) fn uninstall(context: &Context, place: HookPlace) -> Result<(), Failure> {
    let file = target(file(context, place)?);
    let edit = Edit {
        change: &|old| {
            if old.trim().is_empty() { Some(old.to_owned()) } else { edited(place.host, old, &[]) }
        },
        by_hand: "remove the hooks that start `quipu hook` from it by hand".to_owned(),
        unchanged: "has no hooks of this program",
        changed: "removed the hooks from".to_owned(),
        next: "new sessions run without them",
        is_dry_run: place.dry_run,
    };
    edit.apply(&file)
}

/// Returns the settings file of the host.
fn file(context: &Context, place: HookPlace) -> Result<PathBuf, Failure> {
    if place.project {
        return Ok(PathBuf::from(match place.host {
            HookHost::ClaudeCode => ".claude/settings.json",
            HookHost::Codex => ".codex/hooks.json",
            HookHost::Cursor => CURSOR_FILE,
        }));
    }
    let settings = &context.settings;
    let file = match place.host {
        HookHost::ClaudeCode => settings.claude_directory().map(|it| it.join("settings.json")),
        HookHost::Codex => settings.codex_directory().map(|it| it.join("hooks.json")),
        HookHost::Cursor => settings.home.as_ref().map(|home| home.join(CURSOR_FILE)),
    };
    let missing =
        || Failure::usage("there is no home directory to find the settings of the host in");
    file.ok_or_else(missing)
}

/// The events of a host.
fn events(host: HookHost) -> &'static [(&'static str, Starts)] {
    match host {
        HookHost::ClaudeCode | HookHost::Codex => &[
            ("SessionStart", Starts::Run),
            ("UserPromptSubmit", Starts::Run),
            ("PreToolUse", Starts::Decide),
            ("PreCompact", Starts::Run),
            ("Stop", Starts::Run),
            ("SessionEnd", Starts::Run),
        ],
        HookHost::Cursor => &[
            ("sessionStart", Starts::Run),
            ("beforeSubmitPrompt", Starts::Run),
            ("preToolUse", Starts::Decide),
            ("beforeShellExecution", Starts::Decide),
            ("beforeMCPExecution", Starts::Decide),
            ("afterFileEdit", Starts::Run),
            ("preCompact", Starts::Run),
            ("stop", Starts::Run),
            ("sessionEnd", Starts::Run),
        ],
    }
}

/// A hook of ours: the event and its entry.
struct Entry {
    event: &'static str,
    command: String,
    starts: Starts,
    failing: Option<HookFailing>,
}

fn entries(context: &Context, arguments: &HookInstallArguments) -> Result<Vec<Entry>, Failure> {
    let place = arguments.place;
    let entry = |(event, starts): &(&'static str, Starts)| {
        let command = command(context, arguments, *starts)?;
        Ok(Entry { event, command, starts: *starts, failing: arguments.fail })
    };
    events(place.host).iter().map(entry).collect()
}

/// Returns the command line that the host starts, for a shell.
fn command(
    context: &Context,
    arguments: &HookInstallArguments,
    starts: Starts,
) -> Result<String, Failure> {
    let place = arguments.place;
    let unreadable = || Failure::other("the path of this program is not valid UTF-8");
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or_else(unreadable);
    let program = if place.project { "quipu".to_owned() } else { text(&std::env::current_exe()?)? };
    let (verb, host) = match (starts, place.host) {
        (Starts::Run, host) => ("run", host_name(host)),
        (Starts::Decide, host) => ("decide", host_name(host)),
    };
    let mut words = vec![program, "hook".into(), verb.into(), "--host".into(), host.into()];
    match (starts, arguments.fail) {
        (Starts::Decide, Some(HookFailing::Closed)) => {
            words.extend(["--fail".into(), "closed".into()]);
        }
        (Starts::Decide, Some(HookFailing::Open)) => words.extend(["--fail".into(), "open".into()]),
        (Starts::Decide, None) | (Starts::Run, _) => {}
    }
    if arguments.memory_folder && starts == Starts::Run {
        words.push("--memory-folder".into());
    }
    if let Some(data) = &context.settings.chosen_data {
        let data = if place.project { inside_project(data)? } else { std::path::absolute(data)? };
        words.extend(["--data".into(), text(&data)?]);
    }
    for store in context.named() {
        words.extend(["--store".into(), store.clone()]);
    }
    Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

fn host_name(host: HookHost) -> &'static str {
    match host {
        HookHost::ClaudeCode => "claude-code",
        HookHost::Codex => "codex",
        HookHost::Cursor => "cursor",
    }
}

/// Quotes a word for a shell, if it needs to be.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:@".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns whether a command starts a hook of ours.
fn is_ours(command: &str) -> bool {
    command.contains("quipu")
        && [" hook run --host ", " hook decide --host "].iter().any(|part| command.contains(part))
}

/// Returns whether Cursor has a hook of ours for an event in settings of its own.
pub(super) fn is_installed(context: &Context, input: &Input) -> bool {
    let Some(event) = cursor_event(input.kind) else { return false };
    let directories = context.settings.home.iter().cloned();
    let directories = directories.chain(input.roots.iter().map(PathBuf::from));
    let mut files = directories.map(|directory| directory.join(CURSOR_FILE));
    files.any(|file| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let root = CstRootNode::parse(&text, &ParseOptions::default()).ok();
        let list = root
            .and_then(|root| root.object_value())
            .and_then(|object| object.object_value("hooks"))
            .and_then(|hooks| hooks.array_value(event));
        let elements = list.iter().flat_map(CstArray::elements);
        elements.flat_map(|element| commands(&element)).any(|command| is_ours(&command))
    })
}

fn cursor_event(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::SessionStart => Some("sessionStart"),
        Kind::Prompt => Some("beforeSubmitPrompt"),
        Kind::BeforeTool => Some("preToolUse"),
        Kind::AfterEdit => Some("afterFileEdit"),
        Kind::BeforeCompaction => Some("preCompact"),
        Kind::Stop => Some("stop"),
        Kind::SessionEnd => Some("sessionEnd"),
        Kind::Other => None,
    }
}

/// Returns the settings with these hooks of ours and no other; `None` if they cannot be parsed.
fn edited(host: HookHost, old: &str, entries: &[Entry]) -> Option<String> {
    let bare = old.trim_start_matches('\u{feff}');
    let (mark, text) = old.split_at(old.len() - bare.len());
    let root = CstRootNode::parse(
        if text.trim().is_empty() { "{}" } else { text },
        &ParseOptions::default(),
    )
    .ok()?;
    let object = root.object_value()?;
    if host == HookHost::Cursor && object.get("version").is_none() && !entries.is_empty() {
        object.append("version", CstInputValue::Number("1".to_owned()));
    }
    let hooks = match object.get("hooks") {
        Some(property) => property.value()?.as_object()?,
        None if entries.is_empty() => return Some(old.to_owned()),
        None => object.object_value_or_create("hooks")?,
    };
    if is_up_to_date(&hooks, entries)? {
        return Some(old.to_owned());
    }
    for property in hooks.properties() {
        let Some(list) = property.value().and_then(|value| value.as_array()) else { continue };
        let had_ours = remove_ours(&list);
        if had_ours && list.elements().is_empty() {
            property.remove();
        }
    }
    for entry in entries {
        hooks.array_value_or_create(entry.event)?.append(entry.value(host));
    }
    if hooks.properties().is_empty() && entries.is_empty() {
        object.get("hooks")?.remove();
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Some(format!("{mark}{root}{end}"))
}

/// Returns whether the hooks of ours are these.
fn is_up_to_date(hooks: &CstObject, entries: &[Entry]) -> Option<bool> {
    let mut found = Vec::new();
    for property in hooks.properties() {
        let event = property.decoded_name()?;
        let list = property.value().and_then(|value| value.as_array());
        for element in list.iter().flat_map(CstArray::elements) {
            found.extend(
                commands(&element)
                    .into_iter()
                    .filter(|it| is_ours(it))
                    .map(|it| (event.clone(), it)),
            );
        }
    }
    let mut wanted: Vec<_> =
        entries.iter().map(|it| (it.event.to_owned(), it.command.clone())).collect();
    found.sort();
    wanted.sort();
    Some(found == wanted)
}

/// Returns the commands of an element: its own, or those of the hooks in it.
fn commands(element: &CstNode) -> Vec<String> {
    let Some(object) = element.as_object() else { return Vec::new() };
    let inner = object.array_value("hooks");
    let inner = inner.iter().flat_map(CstArray::elements).filter_map(|hook| own_command(&hook));
    own_command(element).into_iter().chain(inner).collect()
}

fn own_command(node: &CstNode) -> Option<String> {
    node.as_object()?.get("command")?.value()?.as_string_lit()?.decoded_value().ok()
}

/// Removes the hooks of ours from the list of an event; returns whether there were any.
fn remove_ours(list: &CstArray) -> bool {
    let is_our_node = |node: &CstNode| own_command(node).is_some_and(|command| is_ours(&command));
    let mut had_ours = false;
    for element in list.elements() {
        if is_our_node(&element) {
            element.remove();
            had_ours = true;
            continue;
        }
        let Some(inner) = element.as_object().and_then(|object| object.array_value("hooks")) else {
            continue;
        };
        let ours: Vec<_> = inner.elements().into_iter().filter(|node| is_our_node(node)).collect();
        had_ours |= !ours.is_empty();
        let is_all = !ours.is_empty() && ours.len() == inner.elements().len();
        ours.into_iter().for_each(CstNode::remove);
        if is_all {
            element.remove();
        }
    }
    had_ours
}

impl Entry {
    fn value(&self, host: HookHost) -> CstInputValue {
        let text = |text: &str| CstInputValue::String(text.to_owned());
        let seconds = match (host, self.event) {
            (HookHost::Codex, "SessionEnd") => CODEX_END_TIMEOUT_SECONDS,
            (HookHost::ClaudeCode | HookHost::Codex | HookHost::Cursor, _) => HOST_TIMEOUT_SECONDS,
        };
        let timeout = CstInputValue::Number(seconds.to_string());
        let field = |name: &str, value| (name.to_owned(), value);
        match host {
            HookHost::ClaudeCode | HookHost::Codex => {
                let hook = vec![
                    field("type", text("command")),
                    field("command", text(&self.command)),
                    field("timeout", timeout),
                ];
                let hooks = CstInputValue::Array(vec![CstInputValue::Object(hook)]);
                let matcher = (self.starts == Starts::Decide).then(|| field("matcher", text("*")));
                CstInputValue::Object(matcher.into_iter().chain([field("hooks", hooks)]).collect())
            }
            HookHost::Cursor => {
                let mut hook =
                    vec![field("command", text(&self.command)), field("timeout", timeout)];
                if (self.starts, self.failing) == (Starts::Decide, Some(HookFailing::Closed)) {
                    hook.push(field("failClosed", CstInputValue::Bool(true)));
                }
                CstInputValue::Object(hook)
            }
        }
    }
}
