//! What a source is, and which of its files are read.

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

/// Finds out what a source is.
pub(super) fn detect(source: &Path) -> Result<ImportKind, Failure> {
    if !source.is_dir() {
        return detect_file(source);
    }
    let holds = |name: &str| source.join(name).exists();
    for file in json_files(source).into_iter().chain(json_files(&source.join("projects"))) {
        let is_known = EXPORTS.iter().any(|kind| is_read(*kind, source, &file));
        // A file may have such a name for other reasons, or be empty.
        let kind = is_known.then(|| detect_file(&file).ok()).flatten();
        if let Some(kind) = kind.filter(|kind| EXPORTS.contains(kind)) {
            return Ok(kind);
        }
    }
    Ok(match () {
        () if holds(".obsidian") => ImportKind::Obsidian,
        () if ["MEMORY.md", "CLAUDE.md"].into_iter().any(holds) || holds_memories(source) => {
            ImportKind::ClaudeCode
        }
        () => ImportKind::Folder,
    })
}

/// Tells whether a folder, or one in it, is what Claude Code keeps of a project: its memory, and
/// beside it records of its runs, which are no notes.
fn holds_memories(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut places = entries.map(|entry| entry.path()).chain([folder.to_owned()]);
    places.any(|place| place.join("memory/MEMORY.md").is_file())
}

fn detect_file(file: &Path) -> Result<ImportKind, Failure> {
    if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) {
        return Err(Failure::usage(format!("{} is packed", file.display()))
            .with_hint("unpack it and import the folder"));
    }
    let first = JsonFile::read(file)?.first_document();
    let has = |key: &str| first.get(key).is_some();
    let kind = first.get("type").and_then(Value::as_str);
    let is_claude = ["chat_messages", "docs", "prompt_template", "conversations_memory"];
    match () {
        () if has("mapping") => Ok(ImportKind::Chatgpt),
        () if is_claude.into_iter().any(has) => Ok(ImportKind::Claude),
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

/// Tells whether a file of a program's export is read, by its name.
fn is_read(kind: ImportKind, export: &Path, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_conversations = name == "conversations.json";
    if kind == ImportKind::Chatgpt {
        // A long history comes in several files.
        return is_conversations || name.starts_with("conversations-");
    }
    let is_project = file.parent() != Some(export);
    is_conversations || is_project || name == "projects.json" || name == "memories.json"
}

/// Returns the file itself, or the files of an export; others of its files are reported.
pub(super) fn export_files(
    kind: ImportKind,
    source: &Path,
    into: &mut Collected,
) -> Result<Vec<PathBuf>, Failure> {
    if !source.is_dir() {
        return Ok(vec![source.to_owned()]);
    }
    let mut found = json_files(source);
    if kind == ImportKind::Claude {
        found.extend(json_files(&source.join("projects")));
    }
    let (read, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|file| is_read(kind, source, file));
    if read.is_empty() {
        let message = format!("{} holds no file of such an export", source.display());
        return Err(Failure::usage(message)
            .with_hint("name the folder in which `conversations.json` or the like is"));
    }
    for other in others {
        let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
        into.skip(name, "a file of this name is not read");
    }
    Ok(read)
}

/// Returns the JSON files of a folder in the order of their names.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let is_json = |file: &PathBuf| {
        file.extension().is_some_and(|it| it.eq_ignore_ascii_case("json")) && file.is_file()
    };
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(is_json).collect();
    files.sort();
    files
}
