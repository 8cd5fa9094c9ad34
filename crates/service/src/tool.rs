//! The memory tool `memory_20250818` on a store.
//!
//! `docs/memory-tool.md` is the contract. The texts of all answers are in [`strings`], what a model
//! sends is read in [`input`], and paths in [`place`]; here each command becomes one call of the
//! engine, so each is one transaction.

mod edit;
mod input;
mod listing;
mod place;
pub mod stdio;
mod strings;

use std::num::NonZero;

use quipu_core::engine::{PathContents, Written};
use quipu_core::model::{Access, Actor, Content, Memory, MemoryPath, StoreId};
use quipu_core::{Error, ErrorKind};
use quipu_knowledge::Knowledge;
use serde_json::Value;

use input::{Fields, ViewRange};
use place::Place;
pub use strings::Strings;
use strings::{Refusal, Text};

use crate::Author;

/// The name of the store that the tool uses when none is chosen.
pub const MEMORY_STORE: &str = "memories";

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Answer {
    /// What the model reads.
    pub content: String,
    /// Whether the command failed.
    pub is_error: bool,
}

/// The memory tool on one store, for one author.
#[derive(Clone, Debug)]
pub struct MemoryTool {
    engine: Knowledge,
    store: StoreId,
    author: Author,
    settings: ToolSettings,
}

/// The settings of the tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolSettings {
    /// The set of texts that it answers with.
    pub strings: Strings,
    /// `ReadOnly` rejects commands that write.
    pub access: Access,
    /// The maximum number of characters of a view, which is truncated beyond.
    pub view_max_chars: usize,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self { strings: Strings::Doc, access: Access::ReadWrite, view_max_chars: 100_000 }
    }
}

/// Returns whether a command writes.
pub fn writes(command: &str) -> bool {
    command != "view"
}

/// The longest file that can be viewed; the line numbers are this wide.
const LINES_MAX: usize = 999_999;
/// How many levels a listing shows.
const LEVELS: NonZero<usize> = NonZero::new(2).expect("two is not zero");

impl MemoryTool {
    /// Creates the tool for a store.
    pub fn new(
        engine: Knowledge,
        store: StoreId,
        author: impl Into<Author>,
        settings: ToolSettings,
    ) -> Self {
        Self { engine, store, author: author.into(), settings }
    }

    /// Runs one command as the model sent it.
    pub fn call(&self, input: &Value) -> Answer {
        let strings = self.settings.strings;
        match self.run(&Fields::new(input)) {
            Ok(text) => Answer { content: text.render(strings), is_error: false },
            Err(refusal) => Answer { content: refusal.render(strings), is_error: true },
        }
    }

    fn run(&self, fields: &Fields<'_>) -> Result<Text, Refusal> {
        let command = fields.command()?;
        if writes(command) && self.settings.access == Access::ReadOnly {
            input::known(command)?;
            return Err(Refusal::ReadOnly);
        }
        match command {
            "view" => self.view(fields),
            "create" => self.create(fields),
            "str_replace" => self.str_replace(fields),
            "insert" => self.insert(fields),
            "delete" => self.delete(fields),
            "rename" => self.rename(fields),
            other => Err(input::known(other).expect_err("the known ones are above")),
        }
    }

    fn actor(&self) -> Result<Actor, Error> {
        self.author.actor(&self.engine)
    }

    fn view(&self, fields: &Fields<'_>) -> Result<Text, Refusal> {
        let path = fields.path("path")?;
        let place = Place::parse(path)?;
        match self.engine.contents_at(self.store, place.memory_path(), LEVELS)? {
            None => Err(Refusal::ViewMissing { path: path.to_owned() }),
            Some(PathContents::Memory(memory)) => {
                let content = memory.content.expect("a look reads the text");
                self.view_file(path, content.as_str(), fields.view_range()?)
            }
            Some(PathContents::Directory(items)) => {
                let lines = listing::lines(&items, place.depth(), self.settings.strings);
                Ok(Text::Directory { path: path.to_owned(), lines })
            }
        }
    }

    fn view_file(&self, path: &str, text: &str, range: ViewRange) -> Result<Text, Refusal> {
        let lines: Vec<&str> = text.split('\n').collect();
        if lines.len() > LINES_MAX {
            return Err(Refusal::TooManyLines { path: path.to_owned() });
        }
        let shown = range.of(lines.len());
        let first = shown.start + 1;
        let chosen = lines.get(shown).unwrap_or_default();
        let chars_max = match self.settings.strings {
            Strings::Doc => self.settings.view_max_chars,
            Strings::Python => usize::MAX,
        };
        Ok(strings::file(path, (first, chosen), chars_max))
    }

    fn create(&self, fields: &Fields<'_>) -> Result<Text, Refusal> {
        let path = fields.path("path")?;
        let place = Place::parse(path)?;
        let exists = || Refusal::AlreadyExists { path: path.to_owned() };
        let Place::Below(memory_path) = &place else { return Err(exists()) };
        let content = match fields.text("file_text") {
            Ok(text) => Content::new(text).map_err(Error::from)?,
            // In the SDK's order of checks, a path that is taken comes first.
            Err(_) if self.is_taken(memory_path)? => return Err(exists()),
            Err(refusal) => return Err(refusal),
        };
        match self.engine.create(&self.actor()?, self.store, memory_path, &content) {
            Ok(written) => Ok(noting(Text::Created { path: path.to_owned() }, &written)),
            Err(error) => Err(conflict(error, (path, memory_path), exists())),
        }
    }

    fn is_taken(&self, path: &MemoryPath) -> Result<bool, Refusal> {
        Ok(self.engine.contents_at(self.store, Some(path), LEVELS)?.is_some())
    }

    fn str_replace(&self, fields: &Fields<'_>) -> Result<Text, Refusal> {
        let path = fields.path("path")?;
        let place = Place::parse(path)?;
        let strings = self.settings.strings;
        let mut line = 0;
        let mut replaced = |_: &_, text: &str| {
            let old = fields.text("old_str")?;
            let done = strings::replace(strings, text, old, || fields.replacement(strings))
                .map_err(|error| Refusal::replace(error, path, old))?;
            line = done.line;
            Ok(done.text)
        };
        let missing = Refusal::ReplaceMissing { path: path.to_owned() };
        let written = self.edit(path, &place, missing, &mut replaced)?;
        let content = written.memory.content.clone().expect("a write returns the text");
        let snippet = strings::snippet(content.as_str(), line);
        Ok(noting(Text::Replaced { snippet }, &written))
    }

    fn insert(&self, fields: &Fields<'_>) -> Result<Text, Refusal> {
        let path = fields.path("path")?;
        let place = Place::parse(path)?;
        let mut inserted = |_: &_, text: &str| {
            // Like the SDK, report a line that is out of range before a missing text.
            let line = fields.insert_line(edit::lines_count(text))?;
            Ok(edit::insert(text, line, fields.insert_text()?).expect("the line is in range"))
        };
        let missing = Refusal::InsertMissing { path: path.to_owned() };
        let written = self.edit(path, &place, missing, &mut inserted)?;
        Ok(noting(Text::Inserted { path: path.to_owned() }, &written))
    }

    /// Edits the memory at a place in one transaction; fails with `missing` if there is none.
    fn edit(
        &self,
        path: &str,
        place: &Place,
        missing: Refusal,
        work: &mut dyn FnMut(&Memory, &str) -> Result<String, Refusal>,
    ) -> Result<Written, Refusal> {
        let Place::Below(memory_path) = place else {
            return Err(self.not_a_file(path, missing));
        };
        match self.engine.edit(&self.actor()?, self.store, memory_path, work) {
            Err(Refusal::Engine(error)) if *error.kind() == ErrorKind::NotFound => {
                let is_directory = self.is_taken(memory_path)?;
                Err(if is_directory { self.not_a_file(path, missing) } else { missing })
            }
            result => result,
        }
    }

    /// Returns the answer for a directory in place of a file, which the documentation calls missing.
    fn not_a_file(&self, path: &str, missing: Refusal) -> Refusal {
        match self.settings.strings {
            Strings::Doc => missing,
            Strings::Python => Refusal::NotAFile { path: path.to_owned() },
        }
    }

    fn delete(&self, fields: &Fields<'_>) -> Result<Text, Refusal> {
        let path = fields.path("path")?;
        let place = Place::parse(path)?;
        let Place::Below(memory_path) = &place else { return Err(Refusal::DeleteRoot) };
        match self.engine.delete_at(&self.actor()?, self.store, memory_path) {
            Ok(_) => Ok(Text::Deleted { path: path.to_owned() }),
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                Err(Refusal::Missing { path: path.to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn rename(&self, fields: &Fields<'_>) -> Result<Text, Refusal> {
        let old_path = fields.old_path()?;
        let from = Place::parse(old_path)?;
        let new_path = fields.path("new_path")?;
        let to = Place::parse(new_path)?;
        let Place::Below(from) = &from else { return Err(Refusal::RenameRoot) };
        let exists = || Refusal::DestinationExists { path: new_path.to_owned() };
        let Place::Below(to) = &to else {
            return if self.is_taken(from)? {
                Err(exists())
            } else {
                Err(Refusal::Missing { path: old_path.to_owned() })
            };
        };
        match self.engine.rename(&self.actor()?, self.store, from, to) {
            Ok(_) if from == to => Err(exists()),
            Ok(_) => Ok(Text::Renamed { from: old_path.to_owned(), to: new_path.to_owned() }),
            Err(error) if *error.kind() == ErrorKind::NotFound => {
                Err(Refusal::Missing { path: old_path.to_owned() })
            }
            Err(error)
                if *error.kind() == ErrorKind::InvalidInput && from.as_directory().contains(to) =>
            {
                let into_itself = Refusal::IntoItself { path: old_path.to_owned() };
                Err(if self.is_taken(to)? { exists() } else { into_itself })
            }
            Err(error) => Err(conflict(error, (new_path, to), exists())),
        }
    }
}

/// Returns why nothing can be stored at a path: it is taken, a parent of it is a file, or another
/// error.
fn conflict(error: Error, wanted: (&str, &MemoryPath), exists: Refusal) -> Refusal {
    let (sent, wanted) = wanted;
    let ErrorKind::PathConflict { path: occupied, .. } = error.kind() else {
        return error.into();
    };
    if occupied == wanted || wanted.as_directory().contains(occupied) {
        return exists;
    }
    Refusal::BelowAFile { path: sent.to_owned(), file: place::shown(occupied) }
}

fn noting(text: Text, written: &Written) -> Text {
    if written.findings.is_empty() {
        return text;
    }
    Text::WithFindings {
        text: Box::new(text),
        findings: written.findings.clone(),
        policy: written.policy,
    }
}
