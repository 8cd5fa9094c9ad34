//! The memory folder that a host keeps for each project, synced with a store.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::input::Input;
use super::{Hook, log};
use crate::args::HookHost;
use crate::failure::Failure;

/// Starts a sync of the folder, if it was asked for and there is one. Nobody waits for it: a folder may be
/// large, and what it finds counts from the next event on.
pub(super) fn sync(hook: &Hook<'_>, input: &Input) {
    if !hook.arguments.memory_folder {
        return;
    }
    let Some((folder, name)) = folder(hook, input) else { return };
    if let Err(failure) = start(hook, &folder, &name) {
        let failure = failure.after(&format!("the sync of {} was to start", folder.display()));
        log::failure(&hook.context.settings.data, Some(input), &failure);
    }
}

/// Returns the folder of the project and the name of its store.
///
/// Claude Code keeps it beside the transcripts of the project, in a directory that is named by the path of
/// the project. Other hosts have no such folder.
fn folder(hook: &Hook<'_>, input: &Input) -> Option<(PathBuf, String)> {
    if hook.arguments.host != HookHost::ClaudeCode {
        return None;
    }
    let project = Path::new(input.transcript.as_deref()?).parent()?;
    let folder = project.join("memory");
    // The path of the project as one name: two projects of one name have two stores.
    let name = project.file_name()?.to_str()?;
    folder.is_dir().then(|| (folder, format!("memory of {name}")))
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
