//! Detects what kind of source it is, and which of its files to read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::args::ImportKind;
use crate::failure::Failure;

use super::archive;
use super::json::JsonFile;
use super::source::Collected;

/// The programs whose exports are folders of JSON.
const EXPORTS: [ImportKind; 2] = [ImportKind::Chatgpt, ImportKind::Claude];

/// The prefix of uploaded files in exports of ChatGPT.
const UPLOADS: [&str; 2] = ["file-", "file_"];

/// Detects the kind of a source. A folder counts as an export only if no notes would be missed.
pub(super) fn detect(source: &Path) -> Result<ImportKind, Failure> {
    if !source.is_dir() {
        return detect_file(source);
    }
    if is_vault(source) {
        return Ok(ImportKind::Obsidian);
    }
    let holds = |name: &str| source.join(name).exists();
    if ["MEMORY.md", "CLAUDE.md"].into_iter().any(holds) || holds_memories(source) {
        return Ok(ImportKind::ClaudeCode);
    }
    let projects = source.join("projects");
    if visible(source).iter().chain(&visible(&projects)).any(|file| is_note(file)) {
        return Ok(ImportKind::Folder);
    }
    for file in json_files(source).into_iter().chain(json_files(&projects)) {
        let is_known = EXPORTS.iter().any(|kind| is_read(*kind, source, &file));
        // The name alone proves nothing, and the file may be empty.
        let kind = is_known.then(|| detect_file(&file).ok()).flatten();
        let is_export = |kind: &ImportKind| EXPORTS.contains(kind) && is_read(*kind, source, &file);
        if let Some(kind) = kind.filter(is_export) {
            return Ok(kind);
        }
    }
    Ok(ImportKind::Folder)
}

/// Returns whether a folder is an Obsidian vault.
pub(super) fn is_vault(source: &Path) -> bool {
    source.join(".obsidian").is_dir()
}

/// Returns whether a folder is synced with a store, where a file and its memory are the same text.
pub(super) fn is_synced(source: &Path) -> bool {
    source.join(".quipu").is_dir()
}

/// Returns whether a file is markdown that is not hidden.
fn is_note(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    has_ending(file, "md") && !UPLOADS.iter().any(|beginning| name.starts_with(beginning))
}

/// Returns whether a folder, or one in it, is Claude Code's record of a project: its memory, and
/// beside it only transcripts of runs, which are not notes.
fn holds_memories(folder: &Path) -> bool {
    let entries = visible(folder);
    let is_record = |file: &PathBuf| file.is_dir() || has_ending(file, "jsonl");
    let is_project = |place: &PathBuf| {
        place.join("memory/MEMORY.md").is_file() && visible(place).iter().all(is_record)
    };
    entries.iter().all(is_record) && entries.iter().chain([&folder.to_owned()]).any(is_project)
}

fn detect_file(file: &Path) -> Result<ImportKind, Failure> {
    if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) {
        return Err(Failure::usage(format!("{} is packed", file.display()))
            .with_hint("unpack it and import the folder"));
    }
    let first = JsonFile::read_first_document(file)?;
    let has = |key: &str| first.get(key).is_some();
    let kind = first.get("type").and_then(Value::as_str);
    match () {
        () if is_chatgpt(&first) => Ok(ImportKind::Chatgpt),
        () if is_claude(&first) => Ok(ImportKind::Claude),
        () if first.get("format").and_then(Value::as_str) == Some(archive::FORMAT) => {
            Ok(ImportKind::Archive)
        }
        () if has("entities") || matches!(kind, Some("entity" | "relation")) => {
            Ok(ImportKind::McpMemory)
        }
        () => Err(Failure::usage(format!("{} is of no known kind", file.display()))
            .with_hint("`--from` says what it is; `quipu put` stores a single file")),
    }
}

/// Returns whether a document is a conversation with ChatGPT.
fn is_chatgpt(document: &Value) -> bool {
    let is_named = ["current_node", "title"].iter().any(|key| document.get(key).is_some());
    is_named && document.get("mapping").is_some_and(Value::is_object)
}

/// Returns whether a document is a conversation, a project or a memory of Claude.
fn is_claude(document: &Value) -> bool {
    let list = |key: &str| document.get(key).and_then(Value::as_array);
    let is_file = |it: &Value| ["filename", "content"].iter().all(|key| it.get(key).is_some());
    let has_files = || list("docs").is_some_and(|docs| docs.iter().all(is_file));
    let has_instructions = || document.get("prompt_template").is_some_and(Value::is_string);
    let is_identified = document.get("uuid").is_some_and(Value::is_string);
    match is_identified {
        true if list("chat_messages").is_some() => true,
        true if has_files() || (list("docs").is_none() && has_instructions()) => true,
        _ => document.get("conversations_memory").is_some_and(Value::is_string),
    }
}

/// Returns whether a file of an export is read, by its name.
fn is_read(kind: ImportKind, export: &Path, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_conversations = name == "conversations.json";
    if kind == ImportKind::Chatgpt {
        // A long history is split into several files.
        return is_conversations || name.starts_with("conversations-");
    }
    let is_project = file.parent() != Some(export);
    is_conversations || is_project || name == "projects.json" || name == "memories.json"
}

/// Returns the file itself, or the files of an export that are read. Its other files are reported.
pub(super) fn export_files(
    kind: ImportKind,
    source: &Path,
    into: &mut Collected,
) -> Result<Vec<PathBuf>, Failure> {
    if !source.is_dir() {
        return Ok(vec![source.to_owned()]);
    }
    let mut found = visible(source);
    if kind == ImportKind::Claude {
        let projects = source.join("projects");
        found.retain(|file| *file != projects || !projects.is_dir());
        found.extend(visible(&projects));
    }
    let (read, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|file| is_json(file) && is_read(kind, source, file));
    if read.is_empty() {
        let message = format!("{} holds no file of such an export", source.display());
        return Err(Failure::usage(message)
            .with_hint("name the folder in which `conversations.json` or the like is"));
    }
    for other in others {
        let what = if other.is_dir() { "a folder" } else { "a file" };
        let name = other.strip_prefix(source).unwrap_or(&other).to_string_lossy().into_owned();
        into.skip(name, format!("{what} of this name is not read"));
    }
    Ok(read)
}

/// Returns the JSON files of a folder, sorted by name.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    visible(folder).into_iter().filter(|file| is_json(file)).collect()
}

fn is_json(file: &Path) -> bool {
    has_ending(file, "json") && file.is_file()
}

fn has_ending(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|it| it.eq_ignore_ascii_case(ending))
}

/// Returns the entries of a folder that are not hidden, sorted by name.
fn visible(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    let mut files: Vec<_> =
        entries.filter(|entry| !is_hidden(entry)).map(|entry| entry.path()).collect();
    files.sort();
    files
}
