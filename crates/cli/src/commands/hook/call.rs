//! What a call looks like to rules: the input of a host, and what the file system says about its paths.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_rules::{Call, ToolKind, resolved};

use super::input::Input;
use super::rule_event;
use crate::settings::Settings;

/// How many directories upwards the root of a repository is looked for.
const LEVELS_MAX: usize = 64;

/// How many paths of a call are looked up in the file system.
const LINKS_MAX: usize = 32;

/// The root of a repository, and its branch.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Checkout {
    pub(in crate::commands) root: Option<PathBuf>,
    pub(in crate::commands) branch: Option<String>,
}

impl Checkout {
    /// Finds the repository that a directory is in, without running `git`.
    pub(in crate::commands) fn of(directory: &str) -> Self {
        let start = Path::new(directory);
        if !start.is_absolute() {
            return Self::default();
        }
        let mut above = start.ancestors().take(LEVELS_MAX);
        let Some(root) = above.find(|directory| directory.join(".git").exists()) else {
            return Self::default();
        };
        Self { root: Some(root.to_owned()), branch: branch(&root.join(".git")) }
    }
}

/// Returns the branch that is checked out, from `HEAD`.
fn branch(git: &Path) -> Option<String> {
    let head = if git.is_dir() {
        git.join("HEAD")
    } else {
        // A worktree has a file that names the directory.
        let text = fs::read_to_string(git).ok()?;
        git.parent()?.join(text.strip_prefix("gitdir:")?.trim()).join("HEAD")
    };
    let text = fs::read_to_string(head).ok()?;
    Some(text.strip_prefix("ref: refs/heads/")?.trim().to_owned())
}

/// Returns an event as rules see it.
pub(in crate::commands) fn call_of(input: &Input, settings: &Settings) -> Call {
    let event = rule_event(input.kind);
    let text = |path: &Path| path.to_str().unwrap_or_default().to_owned();
    // A rule holds in every repository around what is touched: the working directory may be in another one
    // inside of it, or somewhere else.
    let mut roots = input.roots.clone();
    let around = [&input.directory].into_iter().chain(input.paths.iter().take(LINKS_MAX));
    for path in around {
        let repositories = Path::new(path).ancestors().take(LEVELS_MAX);
        roots.extend(repositories.filter(|it| it.join(".git").exists()).map(text));
    }
    if roots.is_empty() {
        roots.push(input.directory.clone());
    }
    roots.sort_unstable();
    roots.dedup();
    let real_roots: Vec<_> = roots
        .iter()
        .filter_map(|root| fs::canonicalize(root).ok())
        .map(|root| text(&root))
        .collect();
    let home = settings.home.as_deref().map(text).unwrap_or_default();
    let mut paths = input.paths.clone();
    for path in input.paths.iter().take(LINKS_MAX) {
        paths.extend(real_path(&resolved(path, &input.directory, &home)).map(|path| text(&path)));
    }
    roots.extend(real_roots);
    let is_prompt = event == quipu_rules::Event::Prompt;
    Call {
        paths,
        command: input.command.clone(),
        content: if is_prompt { Some(input.prompt.clone()) } else { input.content.clone() },
        directory: input.directory.clone(),
        roots,
        home,
        ..Call::new(event, &input.tool, if is_prompt { ToolKind::Other } else { input.tool_kind })
    }
}

/// Returns where a path leads, of a file that may not exist yet: links in the part that exists are
/// followed. `None` if nothing changes.
fn real_path(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let existing = path.ancestors().take(LEVELS_MAX).find(|ancestor| ancestor.exists())?;
    let rest = path.strip_prefix(existing).ok()?;
    let real = fs::canonicalize(existing).ok()?;
    let real = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
    (real != path).then_some(real)
}
