//! `quipu mcp install`: this server in the configuration of a host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quipu_core::clock::{Clock as _, SystemClock};
use serde_json::json;

use super::json;
use crate::args::{Host, McpInstallArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::print::raw;

/// What the server is called in configurations.
const NAME: &str = "quipu";

pub(super) fn run(context: &Context, arguments: &McpInstallArguments) -> Result<(), Failure> {
    let file = file(context, arguments)?;
    let old = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(Failure::other(format!("{} cannot be read: {error}", file.display())));
        }
    };
    let launch = Launch::new(context, arguments)?;
    let new = configured(arguments.host, &old, &launch).ok_or_else(|| {
        Failure::other(format!("{} is not written as expected", file.display()))
            .with_hint(format!("add this to it yourself:\n{}", launch.snippet(arguments.host)))
    })?;
    if arguments.dry_run {
        return raw(&format!("# {}\n{new}", file.display()));
    }
    if new == old {
        return raw(&format!("{} is as it should be already\n", file.display()));
    }
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let backup = backup(&file, &old)?;
    replace(&file, &new)?;
    let kept = backup.map_or_else(String::new, |backup| {
        format!("what was there before is in {}\n", backup.display())
    });
    raw(&format!("added `{NAME}` to {}\n{kept}start the host again to use it\n", file.display()))
}

/// Returns the file that the host reads.
fn file(context: &Context, arguments: &McpInstallArguments) -> Result<PathBuf, Failure> {
    if arguments.project {
        return match arguments.host {
            Host::ClaudeCode => Ok(PathBuf::from(".mcp.json")),
            Host::Vscode => Ok(PathBuf::from(".vscode/mcp.json")),
            Host::Cursor => Ok(PathBuf::from(".cursor/mcp.json")),
            Host::Codex => Ok(PathBuf::from(".codex/config.toml")),
            Host::ClaudeDesktop => {
                Err(Failure::usage("Claude Desktop has no configuration for single projects"))
            }
        };
    }
    let settings = &context.settings;
    let missing = || Failure::usage("there is no home directory to look for the host in");
    let home = || settings.home.clone().ok_or_else(missing);
    let config = || settings.config_home.clone().ok_or_else(missing);
    Ok(match arguments.host {
        Host::ClaudeDesktop => config()?.join("Claude/claude_desktop_config.json"),
        Host::ClaudeCode => home()?.join(".claude.json"),
        Host::Vscode => config()?.join("Code/User/mcp.json"),
        Host::Cursor => home()?.join(".cursor/mcp.json"),
        Host::Codex => home()?.join(".codex/config.toml"),
    })
}

/// How a host starts the server.
struct Launch {
    command: String,
    arguments: Vec<String>,
}

impl Launch {
    fn new(context: &Context, install: &McpInstallArguments) -> Result<Self, Failure> {
        let unreadable = || Failure::other("the path of this program is not plain text");
        let command = std::env::current_exe()?.to_str().ok_or_else(unreadable)?.to_owned();
        let mut arguments = vec!["mcp".to_owned()];
        if let Some(data) = &context.settings.chosen_data {
            let data = std::path::absolute(data)?;
            arguments
                .extend(["--data".to_owned(), data.to_str().ok_or_else(unreadable)?.to_owned()]);
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

    fn entry(&self, host: Host) -> String {
        let mut entry = json!({"command": self.command, "args": self.arguments});
        if matches!(host, Host::ClaudeCode | Host::Vscode)
            && let Some(fields) = entry.as_object_mut()
        {
            fields.insert("type".to_owned(), json!("stdio"));
        }
        serde_json::to_string_pretty(&entry).unwrap_or_default()
    }

    fn table(&self) -> String {
        // Texts and lists of texts are written the same in JSON and in TOML.
        let (command, arguments) = (json!(self.command), json!(self.arguments));
        format!("[mcp_servers.{NAME}]\ncommand = {command}\nargs = {arguments}\n")
    }

    fn snippet(&self, host: Host) -> String {
        configured(host, "", self).unwrap_or_default()
    }
}

/// Returns the configuration with the server in it; `None` if it cannot be understood.
fn configured(host: Host, old: &str, launch: &Launch) -> Option<String> {
    let group = match host {
        Host::ClaudeDesktop | Host::ClaudeCode | Host::Cursor => "mcpServers",
        Host::Vscode => "servers",
        Host::Codex => return with_table(old, &launch.table()),
    };
    let mut new = json::with_entry(old, &[group, NAME], &launch.entry(host))?;
    if !new.ends_with('\n') {
        new.push('\n');
    }
    Some(new)
}

/// Returns a TOML text with the server's table, in place of the one that was there.
fn with_table(old: &str, table: &str) -> Option<String> {
    let before: toml::Table = old.parse().ok()?;
    let header = format!("[mcp_servers.{NAME}]");
    let mut lines: Vec<&str> = old.lines().collect();
    if let Some(start) = lines.iter().position(|line| line.trim() == header) {
        let rest = lines.iter().skip(start + 1);
        let length = rest.take_while(|line| !line.trim_start().starts_with('[')).count();
        lines.drain(start..=start + length);
    }
    let kept = lines.join("\n");
    let gap = if kept.trim().is_empty() { "" } else { "\n\n" };
    let new = format!("{}{gap}{table}", kept.trim_end());
    let after: toml::Table = new.parse().ok()?;
    (others(&before) == others(&after)).then_some(new)
}

/// Returns everything in a configuration but the server.
fn others(table: &toml::Table) -> toml::Table {
    let mut others = table.clone();
    if let Some(servers) = others.get_mut("mcp_servers").and_then(toml::Value::as_table_mut) {
        servers.remove(NAME);
        if servers.is_empty() {
            others.remove("mcp_servers");
        }
    }
    others
}

/// Keeps a copy of the old configuration beside it.
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

/// Puts a text in place of a file in one step, so that no reader sees half of it.
fn replace(file: &Path, text: &str) -> Result<(), Failure> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut new = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    io::Write::write_all(&mut new, text.as_bytes())?;
    if let Ok(old) = fs::metadata(file) {
        fs::set_permissions(new.path(), old.permissions())?;
    }
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}
