//! Folders: every text becomes a memory at the same place.

use std::fs;
use std::path::Path;

use quipu_mount::sync::DataDirectory;

use crate::failure::Failure;

use super::dates::{Dates, FileDates};
use super::source::{Body, Collected, Item};

/// A folder whose markdown nobody here wrote.
const PACKAGES: &str = "node_modules";

/// Why code is left alone.
const CODE_REASON: &str = "it is code or a board; `--all-texts` imports it";

/// The endings of files that are text, but written for programs.
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

/// Which files of a folder are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Every file that is not hidden; those that are no text are skipped when they are read.
    Texts,
    /// The same without code, and without the boards of Obsidian.
    Notes,
    /// Markdown, also that in `.claude`.
    ClaudeCode,
}

/// Adds the files of a folder, in the order of their names. Hidden ones and links are left out.
/// The data directory is not entered.
pub(super) fn collect(
    root: &Path,
    (choice, dates): (Choice, FileDates),
    data: &DataDirectory,
    into: &mut Collected,
) -> Result<(), Failure> {
    if !root.is_dir() {
        let message = format!("{} is no folder", root.display());
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
                Ok(kind) if kind.is_dir() && choice == Choice::ClaudeCode && name == PACKAGES => {
                    into.skip(place, "it holds packages of others");
                }
                Ok(kind) if kind.is_dir() && is_entered(&name, choice) => {
                    waiting.push((entry.path(), place));
                }
                Ok(kind) if kind.is_file() && !name.starts_with('.') => {
                    let dates = match dates {
                        FileDates::Added => dates_of(&entry),
                        FileDates::Ignored => None,
                    };
                    add(&entry.path(), (place, dates), choice, into);
                }
                // What is hidden is left out without a word.
                Ok(kind) if kind.is_dir() || kind.is_file() => {}
                Ok(_) => into.skip(place, "it is not a regular file"),
                Err(error) => into.miss(place, error.to_string()),
            }
        }
    }
    into.items.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(())
}

fn is_entered(name: &str, choice: Choice) -> bool {
    !name.starts_with('.') || (choice == Choice::ClaudeCode && name == ".claude")
}

fn is_code(file: &Path) -> bool {
    let extension = file.extension().unwrap_or_default();
    CODE_EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn dates_of(entry: &fs::DirEntry) -> Option<Dates> {
    Dates::of_file(&entry.path(), &entry.metadata().ok()?)
}

fn add(file: &Path, (place, dates): (String, Option<Dates>), choice: Choice, into: &mut Collected) {
    let is_markdown = file.extension().is_some_and(|it| it.eq_ignore_ascii_case("md"));
    if choice == Choice::ClaudeCode && !is_markdown {
        return into.skip(place, "it is no markdown");
    }
    if choice == Choice::Notes && is_code(file) {
        return into.skip(place, CODE_REASON);
    }
    into.items.push(Item {
        path: format!("/{place}"),
        source: place,
        lasting: None,
        dates,
        body: Body::File(file.to_owned()),
    });
}
