//! Folders: every text becomes a memory at the same path.

use std::fs;
use std::path::Path;

use quipu_mount::sync::DataDirectory;

use crate::failure::Failure;

use super::dates::{Dates, FileDates};
use super::source::{Body, Collected, Item};

/// A directory of third-party packages, whose markdown is not the user's own.
const PACKAGES: &str = "node_modules";

/// Why code is not imported.
const CODE_REASON: &str = "it is code or a board; `--all-texts` imports it";

/// The extensions of files that are text, but not notes.
const CODE_EXTENSIONS: [&str; 44] = [
    "base",
    "canvas",
    "excalidraw", //
    "bash",
    "bat",
    "c",
    "cc",
    "cjs",
    "cpp",
    "cs",
    "css",
    "dart",
    "ex",
    "exs",
    "fish",
    "go",
    "h",
    "hpp",
    "hs",
    "java",
    "jl",
    "js",
    "jsx",
    "kt",
    "less",
    "lua",
    "m",
    "mjs",
    "ml",
    "php",
    "pl",
    "ps1",
    "py",
    "rb",
    "rs",
    "scala",
    "scss",
    "sh",
    "sql",
    "swift",
    "ts",
    "tsx",
    "vue",
    "zsh",
];

/// Which files of a folder to import.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSelection {
    /// Every file that is not hidden. Binary files are skipped when they are read.
    Texts,
    /// The same without code and Obsidian's boards.
    Notes,
    /// Markdown only, including that in `.claude`.
    ClaudeCode,
}

/// Adds the files of a folder, sorted by path, except hidden files, symbolic links and the data
/// directory.
pub(super) fn collect(
    root: &Path,
    (selection, dates): (FileSelection, FileDates),
    data: &DataDirectory,
    into: &mut Collected,
) -> Result<(), Failure> {
    if !root.is_dir() {
        let message = format!("{} is not a folder", root.display());
        return Err(Failure::usage(message).with_hint("`quipu put` stores a single file"));
    }
    let mut waiting = vec![(root.to_owned(), String::new())];
    while let Some((folder, place)) = waiting.pop() {
        let entries = fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) if place.is_empty() => {
                return Err(Failure::usage(format!("{} cannot be read: {error}", root.display())));
            }
            Err(error) => {
                into.miss(place, error.to_string());
                continue;
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else {
                into.miss(entry.path().display().to_string(), "its name is not UTF-8");
                continue;
            };
            let place = if place.is_empty() { name.clone() } else { format!("{place}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => into.skip(place, "it is a symbolic link"),
                Ok(kind) if kind.is_dir() && data.is(&entry.path()) => {
                    into.skip(place, "it is Quipu's data directory");
                }
                Ok(kind)
                    if kind.is_dir()
                        && selection == FileSelection::ClaudeCode
                        && name == PACKAGES =>
                {
                    into.skip(place, "it holds third-party packages");
                }
                Ok(kind) if kind.is_dir() && is_entered(&name, selection) => {
                    waiting.push((entry.path(), place));
                }
                Ok(kind) if kind.is_file() && !name.starts_with('.') => {
                    let dates = match dates {
                        FileDates::Added => dates_of(&entry),
                        FileDates::Ignored => None,
                    };
                    add(&entry.path(), (place, dates), selection, into);
                }
                // Hidden files are not worth a line in the summary.
                Ok(kind) if kind.is_dir() || kind.is_file() => {}
                Ok(_) => into.skip(place, "it is not a regular file"),
                Err(error) => into.miss(place, error.to_string()),
            }
        }
    }
    into.items.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(())
}

fn is_entered(name: &str, selection: FileSelection) -> bool {
    !name.starts_with('.') || (selection == FileSelection::ClaudeCode && name == ".claude")
}

fn is_code(file: &Path) -> bool {
    let extension = file.extension().unwrap_or_default();
    CODE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn dates_of(entry: &fs::DirEntry) -> Option<Dates> {
    Dates::of_file(&entry.path(), &entry.metadata().ok()?)
}

fn add(
    file: &Path,
    (place, dates): (String, Option<Dates>),
    selection: FileSelection,
    into: &mut Collected,
) {
    let is_markdown = file.extension().is_some_and(|it| it.eq_ignore_ascii_case("md"));
    if selection == FileSelection::ClaudeCode && !is_markdown {
        return into.skip(place, "it is not markdown");
    }
    if selection == FileSelection::Notes && is_code(file) {
        return into.skip(place, CODE_REASON);
    }
    into.items.push(Item {
        path: format!("/{place}"),
        source: place,
        stable_id: None,
        dates,
        body: Body::File(file.to_owned()),
    });
}
