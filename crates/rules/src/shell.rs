//! What a shell command is made of, as far as its text shows.
//!
//! [`Script::parse`] returns the simple commands of a command line: those between `;`, `&&`, `||`, `|`,
//! `&` and newlines, in subshells, in `$(…)` and backticks, behind `sudo`, `env`, `xargs` and the like,
//! and in the argument of `bash -c` and `eval`. Quotes and backslashes are taken off, and assignments in
//! front are dropped. `cd` is followed, so that a relative path is resolved where it is used.
//!
//! It is a reader and not a shell. Variables, braces and wildcards are left as they are written, aliases
//! and functions are unknown, and what another program makes of its arguments (`python -c`, `make`, a
//! script in a file) is not looked at. Parsing is linear in the text; what exceeds a limit or cannot be
//! read makes [`Script::is_complete`] false, and rules that fail closed then apply.

mod expand;
mod lexer;

use std::collections::VecDeque;

use crate::path::resolved;
use expand::InnerCommand;

/// How much of a command is read.
pub const COMMAND_SIZE_BYTES_MAX: usize = 64 * 1024;

/// How many simple commands are kept.
pub const COMMANDS_MAX: usize = 1000;

/// How deep substitutions and nested shells are followed.
pub const DEPTH_MAX: usize = 8;

/// How many working directories a command may be in; `cd` may or may not have happened.
pub const DIRECTORIES_MAX: usize = 32;

/// How many paths of a command are looked at.
pub const PATHS_MAX: usize = 4000;

/// The simple commands of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The commands in the order in which they end.
    pub commands: Vec<SimpleCommand>,
    /// Whether everything was read.
    pub is_complete: bool,
}

/// A command with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The command and its arguments, without quotes.
    pub words: Vec<String>,
    /// The files of redirections.
    pub files: Vec<String>,
    /// The directories that it may run in.
    pub directories: Vec<String>,
}

/// What is collected while a script is read.
struct Reading<'a> {
    script: Script,
    /// Nested scripts to be read, with their depth.
    nested: VecDeque<(String, usize)>,
    directories: Vec<String>,
    home: &'a str,
}

impl Script {
    /// Reads a command line that is run in one of some directories.
    pub fn parse(text: &str, directories: &[&str], home: &str) -> Self {
        let is_complete = directories.len() <= DIRECTORIES_MAX;
        let directories = directories.iter().take(DIRECTORIES_MAX);
        let mut reading = Reading {
            script: Self { commands: Vec::new(), is_complete },
            nested: VecDeque::from([(text.to_owned(), 0)]),
            directories: directories.map(|directory| (*directory).to_owned()).collect(),
            home,
        };
        let mut left_bytes = COMMAND_SIZE_BYTES_MAX;
        while let Some((text, depth)) = reading.nested.pop_front() {
            let cut = text.floor_char_boundary(left_bytes);
            reading.script.is_complete &= cut == text.len() && depth <= DEPTH_MAX;
            left_bytes -= cut;
            if depth > DEPTH_MAX {
                continue;
            }
            // A shell drops NUL bytes.
            let text = text.get(..cut).unwrap_or_default().replace('\0', "");
            lexer::read(&text, depth, &mut reading);
        }
        reading.script
    }

    /// Returns the absolute paths that the commands name; one more than [`PATHS_MAX`] if there are more. Every
    /// word may be one, and what follows the `=` of an option.
    pub(crate) fn paths(&self, home: &str) -> Vec<String> {
        let paths = self.commands.iter().flat_map(|command| {
            let words = command.words.iter().skip(1).chain(&command.files);
            words.flat_map(|word| candidates(word)).flat_map(|word| {
                command.directories.iter().map(|directory| resolved(word, directory, home))
            })
        });
        paths.take(PATHS_MAX + 1).collect()
    }
}

/// Returns what of a word may be a path.
fn candidates(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    // As in `scp host:file` and `@file` of curl.
    let behind = word.rsplit_once(':').map(|(_, rest)| rest).or_else(|| word.strip_prefix('@'));
    [Some(word).filter(|word| !word.starts_with('-') || word.contains('/')), value, behind]
        .into_iter()
        .flatten()
        .filter(|it| !it.is_empty())
}

impl Reading<'_> {
    /// Keeps a command and what it runs.
    fn finish(&mut self, words: Vec<String>, files: &[String], depth: usize) {
        let words = expand::without_prefix(words);
        if words.is_empty() && files.is_empty() {
            return;
        }
        let inner = expand::inner(&words);
        self.script.is_complete &= !inner.is_cut;
        for script in inner.scripts {
            self.nested.push_back((script, depth + 1));
        }
        let before = self.directories.clone();
        let own = InnerCommand { words, directory: None };
        for InnerCommand { words, directory } in std::iter::once(own).chain(inner.commands) {
            self.change_directory(&words);
            if self.script.commands.len() >= COMMANDS_MAX {
                self.script.is_complete = false;
                return;
            }
            let directories = match directory {
                Some(it) => before.iter().map(|from| resolved(&it, from, self.home)).collect(),
                None => before.clone(),
            };
            self.script.commands.push(SimpleCommand { words, files: files.to_vec(), directories });
        }
    }

    /// Adds the directory that a `cd` goes to. The old ones are kept: it may fail, or be in a subshell.
    fn change_directory(&mut self, words: &[String]) {
        let [name, arguments @ ..] = words else { return };
        if !matches!(name.as_str(), "cd" | "pushd" | "chdir") {
            return;
        }
        let target = arguments.iter().find(|word| !word.starts_with('-') || word.len() == 1);
        let target = target.map_or("~", String::as_str);
        for directory in self.directories.clone() {
            let directory = resolved(target, &directory, self.home);
            if self.directories.len() < DIRECTORIES_MAX {
                if !self.directories.contains(&directory) {
                    self.directories.push(directory);
                }
            } else if !self.directories.contains(&directory) {
                self.script.is_complete = false;
            }
        }
    }
}

/// Returns the name of a command without its directory.
pub(crate) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
