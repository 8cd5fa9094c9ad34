//! The memory folder that a host keeps, synced with a store.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;

use super::input::Input;
use super::{Checkout, Hook, log};
use crate::args::HookHost;
use crate::failure::Failure;
use crate::settings::Settings;

/// How long a name of a directory of Claude Code may be; from a longer one it makes another name.
const NAME_CHARS_MAX: usize = 200;

/// Starts a sync of the folder, if it was asked for and there is one. Nobody waits for it: a folder may be
/// large, and what it finds counts from the next event on.
pub(super) fn sync(hook: &Hook<'_>, input: &Input) {
    if !hook.arguments.memory_folder {
        return;
    }
    let Some((folder, name)) = folder(&hook.context.settings, input) else { return };
    if let Err(failure) = start(hook, &folder, &name) {
        let failure = failure.after(&format!("the sync of {} was to start", folder.display()));
        log::failure(&hook.context.settings.data, Some(input), &failure);
    }
}

/// Returns the folder, if the host has one by now, and the name of its store.
fn folder(settings: &Settings, input: &Input) -> Option<(PathBuf, String)> {
    let (folder, name) = match input.host {
        HookHost::ClaudeCode => of_claude_code(settings, input)?,
        // One folder for all projects, if the feature is switched on.
        HookHost::Codex => (settings.codex_directory()?.join("memories"), "codex".to_owned()),
        HookHost::Cursor => return None,
    };
    folder.is_dir().then(|| (folder, format!("memory of {name}")))
}

/// Returns the folder of a project and the name of the project.
///
/// All directories and worktrees of a repository share one, which is named by the path of the repository and
/// lies beside the transcripts. These are elsewhere only for sessions in a directory of the repository, so
/// the folder beside a transcript is a guess for projects that are no repositories.
fn of_claude_code(settings: &Settings, input: &Input) -> Option<(PathBuf, String)> {
    let checkout = Checkout::of(&input.directory);
    let repository = checkout.main_root();
    if let Some(folder) = configured(settings, repository.as_deref(), &input.directory) {
        let name = repository.as_deref().unwrap_or(Path::new(&input.directory));
        return Some((folder, name_of(name)));
    }
    let beside = Path::new(input.transcript.as_deref()?).parent()?;
    let own = || Some((beside.join("memory"), beside.file_name()?.to_str()?.to_owned()));
    let Some(repository) = repository else { return own() };
    let name = name_of(&repository);
    let folder = beside.parent()?.join(&name).join("memory");
    if name.len() <= NAME_CHARS_MAX && folder.is_dir() { Some((folder, name)) } else { own() }
}

/// Returns the name of a directory that Claude Code makes of a path.
fn name_of(path: &Path) -> String {
    let letter = |it: char| if it.is_ascii_alphanumeric() { it } else { '-' };
    path.to_string_lossy().chars().map(letter).collect()
}

/// Returns the folder that the settings of Claude Code name, those of the project before those of the user.
fn configured(settings: &Settings, repository: Option<&Path>, directory: &str) -> Option<PathBuf> {
    let project = repository.unwrap_or(Path::new(directory));
    let files = ["settings.local.json", "settings.json"];
    let files = files.map(|name| project.join(".claude").join(name));
    let user = settings.claude_directory().map(|directory| directory.join("settings.json"));
    let named = files.into_iter().chain(user).find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let settings = CstRootNode::parse(&text, &ParseOptions::default()).ok()?.object_value()?;
        let value = settings.get("autoMemoryDirectory")?.value()?;
        value.as_string_lit()?.decoded_value().ok()
    })?;
    let path = match named.strip_prefix("~/") {
        Some(rest) => settings.home.as_ref()?.join(rest),
        None => PathBuf::from(named),
    };
    let is_plain =
        path.is_absolute() && path.components().all(|part| !matches!(part, Component::ParentDir));
    is_plain.then_some(path)
}

/// Starts a process of its own, which goes on when this one has ended.
fn start(hook: &Hook<'_>, folder: &Path, store: &str) -> Result<(), Failure> {
    let Some(data) = hook.open()? else { return Ok(()) };
    // The folder is the host's, whichever session its agent writes as.
    let store = data.engine.find_or_create_store(data.workspace, store)?.id.to_string();
    let mut sync = Command::new(std::env::current_exe()?);
    sync.env_remove("QUIPU_SESSION");
    sync.arg("--data").arg(std::path::absolute(&hook.context.settings.data)?);
    sync.args(["--store", &store, "sync"]).arg(folder);
    sync.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    super::detached(&mut sync).spawn()?;
    Ok(())
}
