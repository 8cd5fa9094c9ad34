//! Sources of imports, and the items that they yield.

use std::path::{Path, PathBuf};

use quipu_core::model::Content;
use quipu_mount::sync::DataDirectory;
use serde::Serialize;

use crate::args::ImportKind;
use crate::failure::Failure;

use super::dates::{Dates, FileDates};
use super::detection::export_files;
use super::json::JsonFile;
use super::{archive, chatgpt, claude, folder, graph, name_of};

/// How many characters of a hash tell a few things apart.
const SHORT_HASH_CHARS: usize = 8;

/// The contents of a source.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// The name of the source, which a new store gets.
    pub(super) name: String,
    /// The directory of the store to import into: empty, or without a trailing slash.
    pub(super) directory: String,
    /// Identifies the source in later imports.
    pub(super) origin: String,
    pub(super) items: Vec<Item>,
    pub(super) skipped: Vec<Skipped>,
}

/// A text to import.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it comes from, for messages.
    pub(super) source: String,
    /// The path that it is to have.
    pub(super) path: String,
    /// Identifies it if its name changes.
    pub(super) stable_id: Option<StableId>,
    /// The dates to add to its text.
    pub(super) dates: Option<Dates>,
    pub(super) body: Body,
}

/// Identifies an item whose name may change between exports.
#[derive(Debug)]
pub(super) enum StableId {
    /// Its file name has one of these endings, and its text the mark.
    Name { endings: Vec<String>, mark: Mark },
    /// Its folder's name has this ending, and the given file in it has the mark.
    Folder { ending: String, file: &'static str, mark: Mark },
}

/// A frontmatter field that proves the identity, since other names may have the same ending.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) field: &'static str,
    pub(super) value: String,
}

/// The frontmatter field with the title.
pub(super) const TITLE_FIELD: &str = "title";

/// Where the text of an item is.
#[derive(Debug)]
pub(super) enum Body {
    Text(String),
    File(PathBuf),
}

/// Something that is not imported.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Skipped {
    pub(super) kind: SkippedKind,
    pub(super) source: String,
    pub(super) reason: String,
}

/// Whether a skipped file should have been imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SkippedKind {
    /// It should have been imported.
    Note,
    /// It is not a note, so it was left alone.
    File,
}

impl Collected {
    /// Adds a text.
    pub(super) fn add(&mut self, source: impl Into<String>, path: impl Into<String>, text: String) {
        let (source, path) = (source.into(), path.into());
        self.items.push(Item {
            source,
            path,
            stable_id: None,
            dates: None,
            body: Body::Text(text),
        });
    }

    /// Adds a text whose name may change between exports.
    pub(super) fn add_stable(
        &mut self,
        source: impl Into<String>,
        path: impl Into<String>,
        stable_id: Option<StableId>,
        text: String,
    ) {
        let (source, path) = (source.into(), path.into());
        self.items.push(Item { source, path, stable_id, dates: None, body: Body::Text(text) });
    }

    /// Records a file that is left alone on purpose.
    pub(super) fn skip(&mut self, source: impl Into<String>, reason: impl Into<String>) {
        let (source, reason) = (source.into(), reason.into());
        self.skipped.push(Skipped { kind: SkippedKind::File, source, reason });
    }

    /// Records a note that cannot be imported.
    pub(super) fn miss(&mut self, source: impl Into<String>, reason: impl Into<String>) {
        let (source, reason) = (source.into(), reason.into());
        self.skipped.push(Skipped { kind: SkippedKind::Note, source, reason });
    }

    /// Prefixes all paths with the directory.
    fn placed(mut self) -> Self {
        for item in &mut self.items {
            item.path = format!("{}{}", self.directory, item.path);
        }
        self
    }
}

/// Which source to read, and how.
pub(super) struct Request<'a> {
    pub(super) kind: ImportKind,
    pub(super) source: &'a Path,
    /// The directory of the store, as typed.
    pub(super) directory: &'a str,
    pub(super) data: &'a DataDirectory,
    /// The maximum size of a memory in bytes.
    pub(super) size_max: u64,
    /// Which texts of a folder to import.
    pub(super) texts: folder::FileSelection,
    pub(super) dates: FileDates,
}

/// Reads a source.
pub(super) fn collect(request: &Request<'_>) -> Result<Collected, Failure> {
    let Request { kind, source, data, size_max, .. } = *request;
    let directory = match request.directory.trim_matches('/') {
        "" => String::new(),
        directory => crate::context::path(directory)?.to_string(),
    };
    let (name, origin) = (default_store_name(source), origin(kind, source));
    let mut collected = Collected { name, directory, origin, ..Collected::default() };
    let into = &mut collected;
    match kind {
        ImportKind::Folder | ImportKind::Obsidian | ImportKind::BasicMemory => {
            folder::collect(source, (request.texts, request.dates), data, into)?;
        }
        ImportKind::ClaudeCode => {
            folder::collect(
                source,
                (folder::FileSelection::ClaudeCode, request.dates),
                data,
                into,
            )?;
        }
        ImportKind::McpMemory => graph::collect(&JsonFile::read(source)?, size_max, into)?,
        ImportKind::Chatgpt => {
            for file in export_files(kind, source, into)? {
                chatgpt::collect(&JsonFile::read(&file)?, size_max, into)?;
            }
        }
        ImportKind::Claude => {
            for file in export_files(kind, source, into)? {
                claude::collect(&JsonFile::read(&file)?, size_max, into)?;
            }
        }
        ImportKind::Archive => archive::collect(&JsonFile::read(source)?, into)?,
    }
    Ok(collected.placed())
}

/// Returns the identity of a source. Conversations have ids, so all exports of such a program are
/// one source. Everything else is identified by its location.
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

/// Returns the first characters of a text's hash.
pub(super) fn short_hash(text: &str) -> String {
    let hash = Content::new(text.replace('\0', " ")).map(|content| content.hash().to_string());
    hash.unwrap_or_default().chars().take(SHORT_HASH_CHARS).collect()
}

/// Fails if the source is the data directory or one of its files.
pub(super) fn refuse_own_data(source: &Path, data: &DataDirectory) -> Result<(), Failure> {
    let is_inside = !source.is_dir()
        && source.canonicalize().is_ok_and(|file| file.parent().is_some_and(|it| data.is(it)));
    if !is_inside && !data.is(source) {
        return Ok(());
    }
    Err(Failure::usage(format!("{} belongs to Quipu's data directory", source.display()))
        .with_hint("copy what is to be imported to another folder"))
}

/// Returns the default name of a store for a source.
fn default_store_name(source: &Path) -> String {
    let name = name_of(source);
    let stem = Path::new(&name)
        .file_stem()
        .map_or(name.clone(), |stem| stem.to_string_lossy().into_owned());
    if source.is_dir() { name } else { stem }
}
