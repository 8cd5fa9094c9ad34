//! What a call looks like to rules: the input of a host, and what the file system says about its paths.

use std::fs;
use std::path::{Path, PathBuf};

use quipu_rules::{Call, ToolKind, resolved};

use super::input::Input;
use super::{codex, rule_event};
use crate::args::HookHost;
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

    /// Returns the root of the repository, also for one of its worktrees.
    pub(in crate::commands) fn main_root(&self) -> Option<PathBuf> {
        let root = self.root.as_ref()?;
        let Some(directory) = worktree(&root.join(".git")) else { return Some(root.clone()) };
        // A submodule has no such file: it is a repository of its own.
        let Ok(common) = fs::read_to_string(directory.join("commondir")) else {
            return Some(root.clone());
        };
        let common = fs::canonicalize(directory.join(common.trim())).ok()?;
        common.parent().map(Path::to_owned)
    }
}

/// Returns the directory that the file `.git` of a worktree names; `None` if that is a directory itself.
fn worktree(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return None;
    }
    let text = fs::read_to_string(git).ok()?;
    Some(git.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Returns the branch that is checked out, from `HEAD`.
fn branch(git: &Path) -> Option<String> {
    let directory = worktree(git).unwrap_or_else(|| git.to_owned());
    let text = fs::read_to_string(directory.join("HEAD")).ok()?;
    Some(text.strip_prefix("ref: refs/heads/")?.trim().to_owned())
}

/// Returns an event as rules see it.
pub(in crate::commands) fn call_of(input: &Input, settings: &Settings) -> Call {
    let event = rule_event(input.kind);
    let is_prompt = event == quipu_rules::Event::Prompt;
    let (directory, elsewhere) = directories(input);
    let mut call = Call {
        paths: input.paths.clone(),
        aliases: input.full_name.iter().cloned().collect(),
        also: input.also,
        command: input.command.clone(),
        content: if is_prompt { Some(input.prompt.clone()) } else { input.content.clone() },
        directory,
        elsewhere,
        home: settings.home.as_deref().map(text).unwrap_or_default(),
        ..Call::new(event, &input.tool, if is_prompt { ToolKind::Other } else { input.tool_kind })
    };
    let named = named(&call);
    let real: Vec<_> =
        named.iter().filter_map(|path| real_path(path)).map(|path| text(&path)).collect();
    // A rule holds in every repository around what is touched: the working directory may be in another one
    // inside of it, or somewhere else.
    let mut roots = input.roots.clone();
    for path in [&call.directory].into_iter().chain(&call.elsewhere).chain(&named).chain(&real) {
        let repositories = Path::new(path).ancestors().take(LEVELS_MAX);
        roots.extend(repositories.filter(|it| it.join(".git").exists()).map(text));
    }
    if roots.is_empty() {
        roots.push(call.directory.clone());
    }
    roots.sort_unstable();
    roots.dedup();
    let real_roots: Vec<_> = roots
        .iter()
        .filter_map(|root| fs::canonicalize(root).ok())
        .map(|root| text(&root))
        .collect();
    call.paths.extend(real);
    roots.extend(real_roots);
    call.roots = roots;
    add_home_aliases(&mut call, &named);
    call
}

fn text(path: &Path) -> String {
    path.to_str().unwrap_or_default().to_owned()
}

/// Returns the first absolute paths that a call names.
fn named(call: &Call) -> Vec<String> {
    let paths = call.paths.iter().take(LINKS_MAX);
    let mut named: Vec<_> = paths.map(|path| resolved(path, &call.directory, &call.home)).collect();
    let mut in_command = call.paths_in_command();
    in_command.sort_unstable();
    in_command.dedup();
    // What exists says more than what is only a word.
    in_command.sort_by_key(|path| !Path::new(path).exists());
    named.extend(in_command.into_iter().take(LINKS_MAX));
    named
}

/// Adds the paths below the home directory as they are written with `~`, where hosts send them resolved and the
/// home directory is a link.
fn add_home_aliases(call: &mut Call, named: &[String]) {
    let real_home = fs::canonicalize(&call.home).map(|home| text(&home)).unwrap_or_default();
    if real_home.is_empty() || real_home == call.home {
        return;
    }
    let aliases = named.iter().filter_map(|path| {
        let rest = path.strip_prefix(&real_home)?;
        rest.starts_with('/').then(|| format!("{}{rest}", call.home))
    });
    let aliases: Vec<_> = aliases.collect();
    call.paths.extend(aliases);
}

/// Returns the directory that a call runs in, and others that it may run in.
///
/// Codex lets the model choose a directory for each command, and does not send it to hooks. It is in the
/// transcript, which Codex has written before it asks. Where the model writes programs that call tools, all
/// directories that it has chosen lately are tried.
fn directories(input: &Input) -> (String, Vec<String>) {
    let (HookHost::Codex, ToolKind::Shell, Some(transcript)) =
        (input.host, input.tool_kind, &input.transcript)
    else {
        return (input.directory.clone(), Vec::new());
    };
    match codex::directories(transcript, &input.call_id) {
        codex::Chosen::One(directory) => (resolved(&directory, &input.directory, ""), Vec::new()),
        codex::Chosen::OneOf(directories) => {
            let all = directories.iter().map(|it| resolved(it, &input.directory, ""));
            (input.directory.clone(), all.collect())
        }
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
