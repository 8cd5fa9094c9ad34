//! What can be imported, and how it is told apart.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_core::model::Content;
use quipu_mount::sync::DataDirectory;
use serde::Serialize;
use serde_json::Value;

use crate::args::ImportKind;
use crate::failure::Failure;

use super::{archive, chatgpt, claude, folder, graph, name_of};

/// How much of a hash is enough to tell a few things apart.
const SHORT_HASH_CHARS: usize = 8;

/// What a source holds.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// What people call the source.
    pub(super) name: String,
    /// Which source it is, for later imports: what comes from it again has the same.
    pub(super) origin: String,
    pub(super) items: Vec<Item>,
    pub(super) skipped: Vec<Skipped>,
}

/// A text on its way into the store.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it comes from, for people.
    pub(super) source: String,
    /// The path that it should get.
    pub(super) path: String,
    /// How the name at the end of the path ends even if the rest of it changes.
    pub(super) ending: Option<String>,
    pub(super) body: Body,
}

/// Where the text of an item is.
#[derive(Debug)]
pub(super) enum Body {
    Text(String),
    File(PathBuf),
}

/// Something that is not imported.
#[derive(Debug, Serialize)]
pub(super) struct Skipped {
    pub(super) source: String,
    pub(super) reason: String,
}

impl Collected {
    /// Adds a text.
    pub(super) fn add(&mut self, source: impl Into<String>, path: impl Into<String>, text: String) {
        let (source, path) = (source.into(), path.into());
        self.items.push(Item { source, path, ending: None, body: Body::Text(text) });
    }

    /// Adds a text whose name may change from time to time, but always ends the same way.
    pub(super) fn add_ending(
        &mut self,
        source: impl Into<String>,
        path: impl Into<String>,
        ending: Option<String>,
        text: String,
    ) {
        let (source, path) = (source.into(), path.into());
        self.items.push(Item { source, path, ending, body: Body::Text(text) });
    }

    /// Notes that something is left out.
    pub(super) fn skip(&mut self, source: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push(Skipped { source: source.into(), reason: reason.into() });
    }

    /// Puts everything into a directory of the store.
    pub(super) fn into_directory(mut self, directory: &str) -> Result<Self, Failure> {
        let directory = directory.trim_matches('/');
        if directory.is_empty() {
            return Ok(self);
        }
        let directory = crate::context::path(directory)?;
        for item in &mut self.items {
            item.path = format!("{directory}{}", item.path);
        }
        Ok(self)
    }
}

/// Reads a source.
pub(super) fn collect(
    kind: ImportKind,
    source: &Path,
    data: &DataDirectory,
    size_max: u64,
) -> Result<Collected, Failure> {
    let (name, origin) = (default_store_name(source), origin(kind, source));
    let mut collected = Collected { name, origin, ..Collected::default() };
    let into = &mut collected;
    match kind {
        ImportKind::Folder | ImportKind::Obsidian | ImportKind::BasicMemory => {
            folder::collect(source, folder::Choice::Texts, data, into)?;
        }
        ImportKind::ClaudeCode => {
            folder::collect(source, folder::Choice::ClaudeCode, data, into)?;
        }
        ImportKind::McpMemory => graph::collect(&read(source)?, into)?,
        ImportKind::Chatgpt => {
            for file in files_of(source, &["conversations.json"])? {
                chatgpt::collect(&read(&file)?, size_max, into)?;
            }
        }
        ImportKind::Claude => {
            let names = ["conversations.json", "projects.json", "memories.json"];
            for file in files_of(source, &names)? {
                claude::collect(&read(&file)?, size_max, into)?;
            }
        }
        ImportKind::Archive => archive::collect(&read(source)?, into)?,
    }
    Ok(collected)
}

/// Returns which source it is. Names of conversations hold ids, so every export of such a program is
/// the same source; an archive tells its store; all else goes by its place.
fn origin(kind: ImportKind, source: &Path) -> String {
    let family = match kind {
        ImportKind::Folder
        | ImportKind::Obsidian
        | ImportKind::BasicMemory
        | ImportKind::ClaudeCode => "folder",
        ImportKind::Chatgpt | ImportKind::Claude => return kind.as_str().to_owned(),
        ImportKind::McpMemory | ImportKind::Archive => kind.as_str(),
    };
    let place = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    format!("{family} {}", short_hash(&place.to_string_lossy()))
}

/// Returns a few signs that are different for different texts.
pub(super) fn short_hash(text: &str) -> String {
    let hash = Content::new(text.replace('\0', " ")).map(|content| content.hash().to_string());
    hash.unwrap_or_default().chars().take(SHORT_HASH_CHARS).collect()
}

/// Refuses to read the data directory or one of its files.
pub(super) fn refuse_own_data(source: &Path, data: &DataDirectory) -> Result<(), Failure> {
    let is_inside = !source.is_dir()
        && source.canonicalize().is_ok_and(|file| file.parent().is_some_and(|it| data.is(it)));
    if !is_inside && !data.is(source) {
        return Ok(());
    }
    Err(Failure::usage(format!("{} belongs to Quipu's data directory", source.display()))
        .with_hint("copy what is to be imported to another folder"))
}

/// Finds out what a source is.
pub(super) fn detect(source: &Path) -> Result<ImportKind, Failure> {
    let holds = |name: &str| source.join(name).exists();
    if source.is_dir() {
        let conversations = source.join("conversations.json");
        return match () {
            () if conversations.is_file() => detect_file(&conversations),
            () if holds(".obsidian") => Ok(ImportKind::Obsidian),
            () if holds("MEMORY.md") || holds("CLAUDE.md") => Ok(ImportKind::ClaudeCode),
            () => Ok(ImportKind::Folder),
        };
    }
    detect_file(source)
}

fn detect_file(file: &Path) -> Result<ImportKind, Failure> {
    if file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) {
        return Err(Failure::usage(format!("{} is packed", file.display()))
            .with_hint("unpack it and import the folder"));
    }
    let text = read(file)?;
    let first = first_document(&text);
    let has = |key: &str| first.get(key).is_some();
    let kind = first.get("type").and_then(Value::as_str);
    match () {
        () if has("mapping") => Ok(ImportKind::Chatgpt),
        () if ["chat_messages", "docs", "prompt_template", "conversations_memory"]
            .iter()
            .any(|key| has(key)) =>
        {
            Ok(ImportKind::Claude)
        }
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

/// Returns the first document of a file: of a list its first element.
fn first_document(text: &str) -> Value {
    let text = text.trim_start();
    let text = text.strip_prefix('[').unwrap_or(text);
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    documents.next().and_then(Result::ok).unwrap_or(Value::Null)
}

/// Returns the elements of a file that holds a list, or one document.
pub(super) fn documents(text: &str) -> Result<Vec<Value>, Failure> {
    let wrong = |error| Failure::usage(format!("the file is no JSON: {error}"));
    let document: Value = serde_json::from_str(text).map_err(wrong)?;
    Ok(if let Value::Array(documents) = document { documents } else { vec![document] })
}

/// Returns the file itself, or the files of these names in the folder.
fn files_of(source: &Path, names: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    if !source.is_dir() {
        return Ok(vec![source.to_owned()]);
    }
    let found: Vec<_> =
        names.iter().map(|name| source.join(name)).filter(|file| file.is_file()).collect();
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "{} holds no `{}`",
            source.display(),
            names.join("`, `")
        )));
    }
    Ok(found)
}

fn read(file: &Path) -> Result<String, Failure> {
    let shown = |error| Failure::usage(format!("{} cannot be read: {error}", file.display()));
    fs::read_to_string(file).map_err(shown)
}

/// Returns the name of a store for a source.
fn default_store_name(source: &Path) -> String {
    let name = name_of(source);
    let stem = Path::new(&name)
        .file_stem()
        .map_or(name.clone(), |stem| stem.to_string_lossy().into_owned());
    if source.is_dir() { name } else { stem }
}
