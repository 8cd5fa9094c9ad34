//! `quipu mcp install` and `uninstall`: edits the configuration of an MCP host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quipu_core::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value, json};

use super::configuration::{self, NAME};
use crate::args::{Host, McpInstallArguments, McpPlace};
use crate::context::Context;
use crate::failure::Failure;
use crate::print::raw;

pub(super) fn run(context: &Context, arguments: &McpInstallArguments) -> Result<(), Failure> {
    let file = target(file(context, arguments.place)?);
    let launch = Launch::new(context, arguments)?;
    let fields = launch.fields(arguments.place.host);
    let edit = Edit {
        change: &|old| configuration::with_server(arguments.place.host, old, &fields),
        by_hand: format!("add this to it by hand:\n{}", launch.snippet(arguments.place.host)),
        unchanged: "is already up to date",
        changed: format!("added `{NAME}` to"),
        next: "restart the host to use it",
        is_dry_run: arguments.place.dry_run,
    };
    edit.apply(&file)
}

pub(super) fn uninstall(context: &Context, place: McpPlace) -> Result<(), Failure> {
    let file = target(file(context, place)?);
    let edit = Edit {
        change: &|old| configuration::without_server(place.host, old),
        by_hand: format!("remove `{NAME}` from it by hand"),
        unchanged: "does not name this server",
        changed: format!("removed `{NAME}` from"),
        next: "restart the host to apply the change",
        is_dry_run: place.dry_run,
    };
    edit.apply(&file)
}

/// A change to a configuration, and how to report it.
pub(in crate::commands) struct Edit<'a> {
    /// Returns the new text, or `None` if the old one cannot be parsed.
    pub(in crate::commands) change: &'a dyn Fn(&str) -> Option<String>,
    pub(in crate::commands) by_hand: String,
    pub(in crate::commands) unchanged: &'static str,
    pub(in crate::commands) changed: String,
    pub(in crate::commands) next: &'static str,
    pub(in crate::commands) is_dry_run: bool,
}

impl Edit<'_> {
    pub(in crate::commands) fn apply(&self, file: &Path) -> Result<(), Failure> {
        let shown = file.display();
        let old = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::other(format!("cannot read {shown}: {error}"))),
        };
        let new = (self.change)(&old).ok_or_else(|| {
            Failure::other(format!("cannot parse {shown}")).with_hint(&self.by_hand)
        })?;
        if self.is_dry_run {
            return raw(&format!("# {shown}\n{new}"));
        }
        if new == old {
            return raw(&format!("{shown} {}\n", self.unchanged));
        }
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let backup = backup(file, &old)?;
        replace(file, &new)?;
        let kept = backup.map_or_else(String::new, |backup| {
            format!("the old configuration is in {}\n", backup.display())
        });
        raw(&format!("{} {shown}\n{kept}{}\n", self.changed, self.next))
    }
}

/// Returns the target of a symbolic link, so that replacing the file keeps the link.
pub(in crate::commands) fn target(file: PathBuf) -> PathBuf {
    match fs::canonicalize(&file) {
        Ok(target) if file.is_symlink() => target,
        Ok(_) | Err(_) => file,
    }
}

/// Returns the configuration file of the host.
fn file(context: &Context, place: McpPlace) -> Result<PathBuf, Failure> {
    if place.project {
        return match place.host {
            Host::ClaudeCode => Ok(PathBuf::from(".mcp.json")),
            Host::Vscode => Ok(PathBuf::from(".vscode/mcp.json")),
            Host::Cursor => Ok(PathBuf::from(".cursor/mcp.json")),
            Host::Codex => Ok(PathBuf::from(".codex/config.toml")),
            Host::ClaudeDesktop => {
                Err(Failure::usage("Claude Desktop has no per-project configuration"))
            }
        };
    }
    let settings = &context.settings;
    let missing =
        || Failure::usage("there is no home directory to find the configuration of the host in");
    let home = || settings.home.clone().ok_or_else(missing);
    let config = || settings.config_home.clone().ok_or_else(missing);
    Ok(match place.host {
        Host::ClaudeDesktop => config()?.join("Claude/claude_desktop_config.json"),
        Host::ClaudeCode => match &settings.host_directories.claude {
            Some(directory) => directory.join(".claude.json"),
            None => home()?.join(".claude.json"),
        },
        Host::Vscode => config()?.join("Code/User/mcp.json"),
        Host::Cursor => home()?.join(".cursor/mcp.json"),
        Host::Codex => settings.codex_directory().ok_or_else(missing)?.join("config.toml"),
    })
}

/// How a host starts the server.
struct Launch {
    command: String,
    arguments: Vec<String>,
}

impl Launch {
    fn new(context: &Context, install: &McpInstallArguments) -> Result<Self, Failure> {
        let unreadable = || Failure::other("the path of this program is not valid UTF-8");
        let text = |path: &Path| path.to_str().map(str::to_owned).ok_or_else(unreadable);
        let is_shared = install.place.project;
        let command = if is_shared { NAME.to_owned() } else { text(&std::env::current_exe()?)? };
        let mut arguments = vec!["mcp".to_owned()];
        match &context.settings.chosen_data {
            Some(data) if is_shared => {
                let inside = inside_project(data)?;
                arguments.extend(["--data".to_owned(), text(&inside)?]);
            }
            Some(data) => {
                arguments.extend(["--data".to_owned(), text(&std::path::absolute(data)?)?]);
            }
            None => {}
        }
        for store in context.named() {
            arguments.extend(["--store".to_owned(), store.clone()]);
        }
        if install.offer.read_only {
            arguments.push("--read-only".to_owned());
        }
        if let Some(tools) = &install.offer.tools {
            arguments.extend(["--tools".to_owned(), tools.to_string()]);
        }
        Ok(Self { command, arguments })
    }

    /// Returns the fields of the server's entry that this command sets.
    fn fields(&self, host: Host) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("command".to_owned(), json!(self.command));
        fields.insert("args".to_owned(), json!(self.arguments));
        if matches!(host, Host::ClaudeCode | Host::Vscode) {
            fields.insert("type".to_owned(), json!("stdio"));
        }
        fields
    }

    fn snippet(&self, host: Host) -> String {
        configuration::with_server(host, "", &self.fields(host)).unwrap_or_default()
    }
}

/// Returns the path of a data directory relative to the project: its configuration may be committed, and
/// other machines do not have the directories of this one.
pub(in crate::commands) fn inside_project(data: &Path) -> Result<PathBuf, Failure> {
    let project = std::env::current_dir()?;
    let absolute = std::path::absolute(data)?;
    absolute.strip_prefix(&project).map(Path::to_owned).ok().ok_or_else(|| {
        Failure::usage(format!(
            "{} is outside of the project, so the configuration would not work on other machines",
            data.display()
        ))
        .with_hint(
            "omit `--data` and `QUIPU_DATA` to use each user's default directory, or choose one inside \
             the project",
        )
    })
}

/// Copies the old configuration to a file beside it.
fn backup(file: &Path, old: &str) -> Result<Option<PathBuf>, Failure> {
    if old.is_empty() {
        return Ok(None);
    }
    let now = SystemClock.now().to_string().replace(':', "-");
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let backup = file.with_file_name(format!("{}.{now}.bak", name.unwrap_or_default()));
    fs::copy(file, &backup)?;
    Ok(Some(backup))
}

/// Replaces a file atomically, so that no reader sees a partial one.
pub(in crate::commands) fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut new = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    io::Write::write_all(&mut new, text.as_bytes())?;
    if let Ok(old) = fs::metadata(file) {
        fs::set_permissions(new.path(), old.permissions())?;
    }
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}
