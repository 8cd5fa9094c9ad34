//! `quipu mcp install`: this server in the configuration of a host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use quipu_core::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value, json};

use super::json;
use crate::args::{Host, McpInstallArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::print::raw;

/// What the server is called in configurations.
const NAME: &str = "quipu";

pub(super) fn run(context: &Context, arguments: &McpInstallArguments) -> Result<(), Failure> {
    let file = target(file(context, arguments)?);
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

/// Returns the file that a link stands for, so that the link stays.
fn target(file: PathBuf) -> PathBuf {
    match fs::canonicalize(&file) {
        Ok(target) if file.is_symlink() => target,
        Ok(_) | Err(_) => file,
    }
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

    /// Returns what is ours in the entry of the server.
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
        configured(host, "", self).unwrap_or_default()
    }
}

/// Returns the configuration with the server in it; `None` if it cannot be understood.
fn configured(host: Host, old: &str, launch: &Launch) -> Option<String> {
    let group = match host {
        Host::ClaudeDesktop | Host::ClaudeCode | Host::Cursor => "mcpServers",
        Host::Vscode => "servers",
        Host::Codex => return with_table(old, &launch.fields(host)),
    };
    let fields = launch.fields(host);
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let mut new = if json::has_object(old, &[group, NAME]) {
        // Whatever else is said there of the server stays.
        fields.iter().try_fold(old.to_owned(), |text, (name, value)| {
            json::with_entry(&text, &[group, NAME, name], &pretty(value))
        })?
    } else {
        json::with_entry(old, &[group, NAME], &pretty(&Value::Object(fields)))?
    };
    if !new.ends_with('\n') {
        new.push('\n');
    }
    Some(new)
}

/// Returns a TOML text with these fields in the server's table, in place of those that were there.
fn with_table(old: &str, fields: &Map<String, Value>) -> Option<String> {
    let before: toml::Table = old.parse().ok()?;
    let header = format!("[mcp_servers.{NAME}]");
    // Texts and lists of texts are written the same in JSON and in TOML.
    let ours: Vec<_> = fields.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    let ours = ours.concat();
    let mut lines = old.split_inclusive('\n');
    let mut new: String = lines.by_ref().take_while(|line| line.trim() != header).collect();
    let rest: Vec<_> = lines.collect();
    let is_there = old.lines().any(|line| line.trim() == header);
    if is_there {
        new += &format!("{header}\n{ours}{}", without(&rest, fields));
    } else {
        let gap = if new.trim().is_empty() { "" } else { "\n\n" };
        new = format!("{}{gap}{header}\n{ours}", new.trim_end());
    }
    let after: toml::Table = new.parse().ok()?;
    (others(&before, fields) == others(&after, fields)).then_some(new)
}

/// Returns the rest of a text that begins in a table, without these fields of that table.
fn without(lines: &[&str], fields: &Map<String, Value>) -> String {
    let mut kept = String::new();
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        if line.trim_start().starts_with('[') {
            break;
        }
        // A value may go on over several lines.
        let is_whole = |count: &usize| {
            rest.get(..*count).is_some_and(|it| it.concat().parse::<toml::Table>().is_ok())
        };
        let count = (1..=rest.len()).find(is_whole).unwrap_or(1);
        let name = line.split('=').next().unwrap_or_default().trim().trim_matches('"');
        let (value, next) = rest.split_at_checked(count).unwrap_or((&[], after));
        if !fields.contains_key(name) {
            kept.extend(value.iter().copied());
        }
        rest = next;
    }
    kept + &rest.concat()
}

/// Returns everything in a configuration but these fields of the server.
fn others(table: &toml::Table, fields: &Map<String, Value>) -> toml::Table {
    let mut others = table.clone();
    if let Some(servers) = others.get_mut("mcp_servers").and_then(toml::Value::as_table_mut) {
        if let Some(server) = servers.get_mut(NAME).and_then(toml::Value::as_table_mut) {
            server.retain(|name, _| !fields.contains_key(name));
            if server.is_empty() {
                servers.remove(NAME);
            }
        }
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
