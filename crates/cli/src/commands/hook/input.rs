//! What hosts send to their hooks, in one form.
//!
//! Each host has names of its own for events, tools and their arguments, and adds to them with every
//! version. So nothing but the name of the event is required, and what is unknown is left alone.

use quipu_rules::{ToolKind, resolved};
use serde_json::Value;

use crate::args::HookHost;
use crate::failure::Failure;

/// What has happened in a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Kind {
    SessionStart,
    Prompt,
    BeforeTool,
    AfterEdit,
    BeforeCompaction,
    Stop,
    SessionEnd,
    Other,
}

/// An event of a host.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Input {
    pub(in crate::commands) host: HookHost,
    pub(in crate::commands) kind: Kind,
    /// The host's name of the event.
    pub(in crate::commands) event: String,
    /// The host's id of the session; empty if it does not say.
    pub(in crate::commands) session: String,
    /// The working directory; empty if it does not say.
    pub(in crate::commands) directory: String,
    /// The directories that the host works in, if it says so.
    pub(in crate::commands) roots: Vec<String>,
    /// The file with the transcript so far.
    pub(in crate::commands) transcript: Option<String>,
    /// Why a session starts, such as `compact`.
    pub(in crate::commands) source: String,
    /// Whether the agent goes on because a hook has asked for it.
    pub(in crate::commands) is_continued: bool,
    pub(in crate::commands) prompt: String,
    pub(in crate::commands) tool: String,
    /// The tool with the name of its server, where the host sends them apart.
    pub(in crate::commands) full_name: Option<String>,
    pub(in crate::commands) tool_kind: ToolKind,
    /// What kind of tool it is as well.
    pub(in crate::commands) also: Option<ToolKind>,
    /// The host's id of the call.
    pub(in crate::commands) call_id: String,
    pub(in crate::commands) paths: Vec<String>,
    pub(in crate::commands) command: Option<String>,
    pub(in crate::commands) content: Option<String>,
}

/// How many directories of a host are looked at.
const ROOTS_MAX: usize = 32;

/// The arguments of tools that are paths.
const PATH_KEYS: [&str; 17] = [
    "file_path",
    "notebook_path",
    "path",
    "target_file",
    "relative_workspace_path",
    "filePath",
    "directory",
    "file",
    "filename",
    "source",
    "destination",
    "target",
    "old_path",
    "new_path",
    "from",
    "to",
    "uri",
];

/// How many texts among the arguments of a tool are looked at for paths, and how long one may be.
const PATHS_MAX: usize = 1000;
const PATH_SIZE_BYTES_MAX: usize = 4096;

/// The arguments of tools that are new text.
const CONTENT_KEYS: [&str; 6] =
    ["content", "contents", "new_string", "new_source", "code_edit", "new_text"];

/// Returns JSON in which escapes of half a surrogate pair stand for the replacement character.
fn whole_pairs(json: &[u8]) -> Vec<u8> {
    let unit = |at: usize| -> Option<u16> {
        let escape = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(escape).ok()?, 16).ok()
    };
    let mut whole = Vec::with_capacity(json.len());
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        let count = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.extend(b"\\ufffd");
                at += 6;
                continue;
            }
            // The backslash of an escape begins no other one.
            _ if *byte == b'\\' => 2,
            _ => 1,
        };
        whole.extend(json.iter().skip(at).take(count));
        at += count;
    }
    whole
}

impl Input {
    /// Parses the input of a hook that was installed for `host`.
    pub(in crate::commands) fn parse(host: HookHost, bytes: &[u8]) -> Result<Self, Failure> {
        // A model can write half of a surrogate pair, which hosts pass on and which is no JSON. It must not
        // keep rules from being asked.
        let parsed = serde_json::from_slice(bytes)
            .or_else(|error| serde_json::from_slice(&whole_pairs(bytes)).map_err(|_again| error));
        let value: Value =
            parsed.map_err(|error| Failure::other(format!("the input is not JSON: {error}")))?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let event = text("hook_event_name");
        if event.is_empty() {
            return Err(Failure::other("the input has no `hook_event_name`"));
        }
        // Cursor also runs the hooks of Claude Code, with its own input and in want of its own answers.
        let is_of_cursor =
            ["cursor_version", "conversation_id"].iter().any(|key| !text(key).is_empty());
        let host = if is_of_cursor { HookHost::Cursor } else { host };
        let roots = value.get("workspace_roots").and_then(Value::as_array).into_iter().flatten();
        let roots: Vec<_> =
            roots.filter_map(Value::as_str).take(ROOTS_MAX).map(str::to_owned).collect();
        let root = roots.first().map(String::as_str);
        let directory = [text("cwd"), root.unwrap_or_default()];
        let session = [text("session_id"), text("conversation_id")];
        let first = |texts: [&str; 2]| {
            texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned()
        };
        let loops = value.get("loop_count").and_then(Value::as_u64).unwrap_or_default();
        let mut input = Self {
            host,
            kind: kind(event),
            event: event.to_owned(),
            session: first(session),
            directory: first(directory),
            roots,
            transcript: Some(text("transcript_path"))
                .filter(|path| !path.is_empty())
                .map(str::to_owned),
            source: text("source").to_owned(),
            is_continued: value.get("stop_hook_active") == Some(&Value::Bool(true)) || loops > 0,
            prompt: text("prompt").to_owned(),
            tool: text("tool_name").to_owned(),
            full_name: None,
            tool_kind: ToolKind::Other,
            also: None,
            call_id: text("tool_use_id").to_owned(),
            paths: Vec::new(),
            command: None,
            content: None,
        };
        input.take_call(&value);
        Ok(input)
    }

    /// Takes what a tool is called with.
    fn take_call(&mut self, value: &Value) {
        let arguments = value.get("tool_input").unwrap_or(&Value::Null);
        // Cursor sends those of MCP tools as a text of JSON, and its own events without a name of a tool.
        let parsed = arguments.as_str().and_then(|text| serde_json::from_str(text).ok());
        let arguments = parsed.as_ref().unwrap_or(arguments);
        match self.event.as_str() {
            "beforeShellExecution" => {
                "Shell".clone_into(&mut self.tool);
                self.tool_kind = ToolKind::Shell;
                self.command = value.get("command").and_then(Value::as_str).map(str::to_owned);
            }
            "beforeReadFile" => {
                "Read".clone_into(&mut self.tool);
                self.tool_kind = ToolKind::Read;
                self.paths = paths_in(value);
            }
            "afterFileEdit" => {
                "Edit".clone_into(&mut self.tool);
                self.tool_kind = ToolKind::Edit;
                self.paths = paths_in(value);
            }
            "beforeMCPExecution" => {
                self.tool_kind = ToolKind::Mcp;
                self.take_arguments(arguments);
                // Its `command` is that of the server.
                self.command = None;
            }
            _ => {
                self.tool_kind = tool_kind(&self.tool);
                self.take_arguments(arguments);
            }
        }
        // Cursor sends the server apart, Claude Code and Codex in the name of the tool.
        let server = value.get("mcp_server_name").and_then(Value::as_str);
        self.full_name = server.map(|server| {
            let bare = self.tool.trim_start_matches("MCP:");
            format!("mcp__{server}__{bare}")
        });
        if let Some(command) = self.command.as_ref().filter(|text| text.contains("*** Begin Patch"))
        {
            let patch = Patch::parse(command);
            self.paths.extend(patch.paths);
            self.content = Some(patch.added);
            self.also = Some(ToolKind::Edit);
        }
        if self.tool == "apply_patch" {
            self.command = None;
        }
    }

    fn take_arguments(&mut self, arguments: &Value) {
        let command = arguments.get("command");
        self.command = match command {
            Some(Value::String(command)) => Some(command.clone()),
            // A vector of arguments, as for `exec`. Quoted, so that it is read as these words.
            Some(Value::Array(words)) => {
                let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
                Some(
                    words
                        .iter()
                        .filter_map(Value::as_str)
                        .map(quoted)
                        .collect::<Vec<_>>()
                        .join(" "),
                )
            }
            _ => None,
        };
        if self.command.is_some() && self.tool_kind == ToolKind::Other {
            self.tool_kind = ToolKind::Shell;
        }
        self.paths = paths_in(arguments);
        if matches!(self.tool_kind, ToolKind::Mcp | ToolKind::Other) {
            self.paths.extend(path_like_in(arguments));
        }
        let directory = ["workdir", "working_directory"].iter().find_map(|key| arguments.get(*key));
        if let Some(directory) = directory.and_then(Value::as_str).filter(|it| !it.is_empty()) {
            self.directory = resolved(directory, &self.directory, "");
        }
        self.content = match self.tool_kind {
            ToolKind::Edit => Some(content_in(arguments)),
            // Whatever such a tool does is in its arguments.
            ToolKind::Mcp | ToolKind::Other => {
                Some(arguments.to_string()).filter(|_| !arguments.is_null())
            }
            ToolKind::Shell | ToolKind::Read => None,
        };
    }

    pub(in crate::commands) fn host_name(&self) -> &'static str {
        match self.host {
            HookHost::ClaudeCode => "claude-code",
            HookHost::Codex => "codex",
            HookHost::Cursor => "cursor",
        }
    }
}

fn kind(event: &str) -> Kind {
    match event {
        "SessionStart" | "sessionStart" => Kind::SessionStart,
        "UserPromptSubmit" | "beforeSubmitPrompt" => Kind::Prompt,
        "PreToolUse"
        | "preToolUse"
        | "beforeShellExecution"
        | "beforeMCPExecution"
        | "beforeReadFile" => Kind::BeforeTool,
        "afterFileEdit" => Kind::AfterEdit,
        "PreCompact" | "preCompact" => Kind::BeforeCompaction,
        "Stop" | "stop" => Kind::Stop,
        "SessionEnd" | "sessionEnd" => Kind::SessionEnd,
        _ => Kind::Other,
    }
}

pub(super) fn tool_kind(tool: &str) -> ToolKind {
    match tool {
        "Bash" | "PowerShell" | "Shell" | "shell" | "exec_command" | "local_shell" => {
            ToolKind::Shell
        }
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" | "apply_patch" | "Delete"
        | "StrReplace" => ToolKind::Edit,
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" => ToolKind::Read,
        tool if tool.starts_with("mcp__") || tool.starts_with("MCP:") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// Returns the paths among the arguments of a tool.
fn paths_in(arguments: &Value) -> Vec<String> {
    let one = PATH_KEYS.iter().filter_map(|key| arguments.get(*key)).filter_map(Value::as_str);
    let many =
        ["paths", "files"].iter().filter_map(|key| arguments.get(*key)).filter_map(Value::as_array);
    let many = many.flatten().filter_map(Value::as_str);
    one.chain(many).map(|path| bare(path).to_owned()).collect()
}

/// Returns a path without the scheme of a URI.
fn bare(path: &str) -> &str {
    path.strip_prefix("file://").unwrap_or(path)
}

/// Returns what looks like a path among the arguments of a tool that is not known, however deep: what it does
/// with them is its own affair.
fn path_like_in(arguments: &Value) -> Vec<String> {
    let (mut found, mut queue, mut left) = (Vec::new(), vec![arguments], PATHS_MAX);
    while let Some(value) = queue.pop() {
        match value {
            Value::String(text) => {
                let path = bare(text);
                let is_path = text.len() <= PATH_SIZE_BYTES_MAX
                    && (path.contains('/') || path.starts_with('~'))
                    && !path.contains("://")
                    && !path.contains(char::is_whitespace);
                if is_path {
                    found.push(path.to_owned());
                }
            }
            Value::Array(items) => queue.extend(items.iter().take(left)),
            Value::Object(fields) => queue.extend(fields.values().take(left)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        left = left.saturating_sub(1);
        if left == 0 {
            break;
        }
    }
    found
}

/// Returns the new texts among the arguments of a tool, one below the other.
fn content_in(arguments: &Value) -> String {
    let edits = arguments.get("edits").and_then(Value::as_array).into_iter().flatten();
    let all = std::iter::once(arguments).chain(edits);
    let texts = all.flat_map(|it| {
        CONTENT_KEYS.iter().filter_map(|key| it.get(*key)).filter_map(Value::as_str)
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A patch as models write it for `apply_patch`.
struct Patch {
    paths: Vec<String>,
    added: String,
}

impl Patch {
    fn parse(text: &str) -> Self {
        let (mut paths, mut added) = (Vec::new(), String::new());
        let heads = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
        for line in text.lines() {
            if let Some(path) = heads.iter().find_map(|head| line.trim_start().strip_prefix(head)) {
                paths.push(path.trim().to_owned());
            } else if let Some(line) = line.strip_prefix('+') {
                added.push_str(line);
                added.push('\n');
            }
        }
        Self { paths, added }
    }
}
