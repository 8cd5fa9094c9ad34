//! What can be imported, and how it is told apart.

use std::path::{Path, PathBuf};

use quipu_core::model::Content;
use quipu_mount::sync::DataDirectory;
use serde::Serialize;

use crate::args::ImportKind;
use crate::failure::Failure;

use super::dates::{Dates, FileDates};
use super::detecting::export_files;
use super::json::JsonFile;
use super::{archive, chatgpt, claude, folder, graph, name_of};

/// How much of a hash is enough to tell a few things apart.
const SHORT_HASH_CHARS: usize = 8;

/// What a source holds.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// What people call the source.
    pub(super) name: String,
    /// The directory of the store that everything goes to: empty, or without a final slash.
    pub(super) directory: String,
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
    /// What stays the same if its name changes.
    pub(super) lasting: Option<Lasting>,
    /// The dates to add to its text.
    pub(super) dates: Option<Dates>,
    pub(super) body: Body,
}

/// What tells a thing apart whose name may change from export to export.
#[derive(Debug)]
pub(super) enum Lasting {
    /// The name at the end of its path ends in one of these ways, and its own text has the mark.
    Name { endings: Vec<String>, mark: Mark },
    /// The name of its folder ends so, and the text of this file in it has the mark.
    Folder { ending: String, file: &'static str, mark: Mark },
}

/// A field of the frontmatter by which a thing is known, since names of other things may end the
/// same way.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) field: &'static str,
    pub(super) value: String,
}

/// The field of the frontmatter that holds the title.
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

/// What is not imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SkippedKind {
    /// It should have been imported.
    Note,
    /// It is nothing that an import takes.
    File,
}

impl Collected {
    /// Adds a text.
    pub(super) fn add(&mut self, source: impl Into<String>, path: impl Into<String>, text: String) {
        let (source, path) = (source.into(), path.into());
        self.items.push(Item { source, path, lasting: None, dates: None, body: Body::Text(text) });
    }

    /// Adds a text whose name may change from time to time.
    pub(super) fn add_lasting(
        &mut self,
        source: impl Into<String>,
        path: impl Into<String>,
        lasting: Option<Lasting>,
        text: String,
    ) {
        let (source, path) = (source.into(), path.into());
        self.items.push(Item { source, path, lasting, dates: None, body: Body::Text(text) });
    }

    /// Notes that something is left alone, as it should be.
    pub(super) fn skip(&mut self, source: impl Into<String>, reason: impl Into<String>) {
        let (source, reason) = (source.into(), reason.into());
        self.skipped.push(Skipped { kind: SkippedKind::File, source, reason });
    }

    /// Notes that something is not imported that should have been.
    pub(super) fn miss(&mut self, source: impl Into<String>, reason: impl Into<String>) {
        let (source, reason) = (source.into(), reason.into());
        self.skipped.push(Skipped { kind: SkippedKind::Note, source, reason });
    }

    /// Puts everything into the directory.
    fn placed(mut self) -> Self {
        for item in &mut self.items {
            item.path = format!("{}{}", self.directory, item.path);
        }
        self
    }
}

/// What is to be read.
pub(super) struct Request<'a> {
    pub(super) kind: ImportKind,
    pub(super) source: &'a Path,
    /// The directory of the store, as people type it.
    pub(super) directory: &'a str,
    pub(super) data: &'a DataDirectory,
    /// How long a memory may be.
    pub(super) size_max: u64,
    /// Which texts of a folder are wanted.
    pub(super) texts: folder::Choice,
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
            folder::collect(source, (folder::Choice::ClaudeCode, request.dates), data, into)?;
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

/// Returns the name of a store for a source.
fn default_store_name(source: &Path) -> String {
    let name = name_of(source);
    let stem = Path::new(&name)
        .file_stem()
        .map_or(name.clone(), |stem| stem.to_string_lossy().into_owned());
    if source.is_dir() { name } else { stem }
}
