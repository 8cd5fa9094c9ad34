//! Settings: a TOML file, then `QUIPU_*` variables, then flags.
//!
//! This is the only place that reads the environment.

mod database;
mod hooks;
mod limits;
mod platform;
mod upstream;
mod vectors;

use std::collections::BTreeMap;
use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quipu_core::model::{PrincipalName, SessionId};
use quipu_core::settings::Limits;
use quipu_mount::NameRules;
use serde::Deserialize;

pub(crate) use hooks::{HooksTable, RulesTable};

use crate::failure::Failure;
pub(crate) use upstream::{Auth, UpstreamTable};
pub(crate) use vectors::VectorsTable;

use database::DatabaseTable;
pub(crate) use database::{DatabaseSettings, has_password, is_url, without_passwords};
use limits::LimitsTable;
use platform::{browser, config_home, default_data, home};

/// What commands need to know about their environment.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The data directory.
    pub(crate) data: PathBuf,
    /// The data directory, if a flag or variable names it.
    pub(crate) chosen_data: Option<PathBuf>,
    /// The database that has the data, if that is not in the data directory.
    pub(crate) database: Option<DatabaseSettings>,
    /// How to reach other databases.
    pub(crate) databases: DatabaseSettings,
    /// The store that commands use when none is named.
    pub(crate) store: Option<String>,
    /// The user of the command line.
    pub(crate) user: PrincipalName,
    /// The session that commands write as, if a variable names one.
    pub(crate) session: Option<SessionId>,
    /// The pager for long output on a terminal; empty for none.
    pub(crate) pager: String,
    /// The limits of the engine.
    pub(crate) limits: Limits,
    /// How long a write waits for the write lock.
    pub(crate) lock_timeout: Duration,
    /// The directory below which stores are mounted.
    pub(crate) mount_root: String,
    /// Which file names are special wherever memories are files.
    pub(crate) names: NameRules,
    /// The maximum number of characters in a view of the memory tool.
    pub(crate) view_max_chars: Option<usize>,
    /// Settings of `quipu mcp`, and of `/mcp` in `quipu serve`.
    pub(crate) mcp: McpTable,
    /// Settings of `quipu serve`.
    pub(crate) serve: ServeTable,
    /// What the hooks of hosts do, and how rules are applied.
    pub(crate) hooks: HooksTable,
    pub(crate) rules: RulesTable,
    /// Where requests are forwarded that the server does not serve.
    pub(crate) upstream: UpstreamTable,
    /// The key of the upstream, if a variable holds it.
    pub(crate) upstream_key: Option<String>,
    /// Receivers of store events.
    pub(crate) webhooks: Vec<WebhookTable>,
    /// What makes vectors, if anything does.
    pub(crate) vectors: VectorsTable,
    /// The key of the endpoint that makes vectors, if a variable holds it.
    pub(crate) endpoint_key: Option<String>,
    /// Whether a variable names the model.
    pub(crate) is_model_overridden: bool,
    /// The settings file, which may be missing.
    pub(crate) file: PathBuf,
    /// The admin key from the environment.
    pub(crate) admin_key: Option<String>,
    /// The editor that `quipu edit` starts.
    pub(crate) editor: String,
    /// The command that opens a URL in a browser, if there is one to be seen.
    pub(crate) browser: Option<String>,
    /// The user's home directory.
    pub(crate) home: Option<PathBuf>,
    /// The directory for configuration of programs.
    pub(crate) config_home: Option<PathBuf>,
    /// The directories of hosts that variables of theirs name.
    pub(crate) host_directories: HostDirectories,
}

/// Where hosts keep their settings, if not below the home directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostDirectories {
    /// `CLAUDE_CONFIG_DIR`, in place of `~/.claude`.
    pub(crate) claude: Option<PathBuf>,
    /// `CODEX_HOME`, in place of `~/.codex`.
    pub(crate) codex: Option<PathBuf>,
}

/// The settings file, and its keys as environment variables: `limits.content_size_bytes_max` is
/// `QUIPU_LIMITS_CONTENT_SIZE_BYTES_MAX`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    store: Option<String>,
    user: Option<String>,
    mount_root: Option<String>,
    storage: StorageTable,
    database: DatabaseTable,
    limits: LimitsTable,
    tool: ToolTable,
    #[serde(alias = "mount")]
    names: NamesTable,
    mcp: McpTable,
    serve: ServeTable,
    upstream: UpstreamTable,
    webhooks: Vec<WebhookTable>,
    vectors: VectorsTable,
    hooks: HooksTable,
    rules: RulesTable,
}

/// Which file names are special; see `docs/mount.md`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct NamesTable {
    scratch: Option<Vec<String>>,
    temporary: Option<Vec<String>>,
    backup: Option<Vec<String>>,
}

/// Settings of the MCP server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct McpTable {
    pub(crate) instructions: Option<String>,
    pub(crate) tools: Option<String>,
}

/// Settings of `quipu serve`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServeTable {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) tls_certificate: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) allow_plain_http: bool,
    pub(crate) strict_headers: bool,
    pub(crate) hosts: Vec<String>,
    pub(crate) requests_per_minute_max: Option<u32>,
    pub(crate) requests_max: Option<usize>,
    pub(crate) connections_max: Option<usize>,
    pub(crate) body_size_bytes_max: Option<usize>,
    pub(crate) request_timeout_seconds: Option<u64>,
    pub(crate) write_timeout_seconds: Option<u64>,
    pub(crate) lock_held_seconds_max: Option<u64>,
    pub(crate) disk_free_bytes_min: Option<u64>,
    pub(crate) prune_every_minutes: Option<u64>,
    pub(crate) session_token_days: Option<u64>,
    pub(crate) metrics_open: bool,
    pub(crate) public_url: Option<String>,
}

/// A receiver of store events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookTable {
    pub(crate) url: String,
    pub(crate) secret: String,
}

/// Settings of the data directory.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StorageTable {
    lock_timeout_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolTable {
    view_max_chars: Option<usize>,
}

/// Exits if everything fits on the screen, shows colors, and leaves the text there.
const PAGER: &str = "less -FRX";

/// The keys that environment variables can set, with their table.
const KEYS: [(&str, &str); 65] = [
    ("", "store"),
    ("", "user"),
    ("", "mount_root"),
    ("storage", "lock_timeout_seconds"),
    ("database", "url"),
    ("database", "password_file"),
    ("database", "schema"),
    ("database", "listen_url"),
    ("database", "listen"),
    ("database", "connections_max"),
    ("database", "prepared_statements"),
    ("database", "cache_directory"),
    ("database", "cache_size_bytes_max"),
    ("limits", "content_size_bytes_max"),
    ("limits", "memories_per_store_max"),
    ("limits", "store_size_bytes_max"),
    ("limits", "stores_per_workspace_max"),
    ("limits", "stores_per_session_max"),
    ("limits", "sessions_per_workspace_max"),
    ("limits", "sessions_kept_days"),
    ("limits", "definitions_per_workspace_max"),
    ("limits", "workspace_definitions_size_bytes_max"),
    ("limits", "versions_per_agent_max"),
    ("limits", "definition_size_bytes_max"),
    ("limits", "event_size_bytes_max"),
    ("limits", "events_per_session_max"),
    ("limits", "session_events_size_bytes_max"),
    ("limits", "workspace_events_size_bytes_max"),
    ("limits", "events_kept_days"),
    ("limits", "versions_kept_days"),
    ("limits", "versions_kept_min"),
    ("limits", "clock_ahead_days_max"),
    ("limits", "deleted_stores_kept_days"),
    ("tool", "view_max_chars"),
    ("mcp", "instructions"),
    ("mcp", "tools"),
    ("serve", "listen"),
    ("serve", "tls_certificate"),
    ("serve", "tls_key"),
    ("serve", "allow_plain_http"),
    ("serve", "strict_headers"),
    ("serve", "requests_per_minute_max"),
    ("serve", "requests_max"),
    ("serve", "connections_max"),
    ("serve", "body_size_bytes_max"),
    ("serve", "request_timeout_seconds"),
    ("serve", "write_timeout_seconds"),
    ("serve", "lock_held_seconds_max"),
    ("serve", "disk_free_bytes_min"),
    ("serve", "prune_every_minutes"),
    ("serve", "session_token_days"),
    ("serve", "metrics_open"),
    ("serve", "public_url"),
    ("hooks", "transcript"),
    ("hooks", "progress"),
    ("hooks", "start_tokens"),
    ("hooks", "prompt_tokens"),
    ("rules", "fail"),
    ("rules", "memories_max"),
    ("vectors", "model"),
    ("vectors", "endpoint"),
    ("vectors", "endpoint_model"),
    ("vectors", "endpoint_key_file"),
    ("vectors", "question_prefix"),
    ("vectors", "passage_prefix"),
];

fn all_keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    KEYS.into_iter().chain(upstream::KEYS)
}

/// The prefix of Quipu's environment variables.
const PREFIX: &str = "QUIPU_";
const FILE_NAME: &str = "quipu.toml";

/// Variables that are not keys of the file: of this program, of clients that locate a server by them,
/// and of `./test`.
const OTHER_VARIABLES: [&str; 19] = [
    "QUIPU_ADMIN_KEY",
    "QUIPU_API_KEY",
    "QUIPU_BINARY",
    "QUIPU_CASES",
    "QUIPU_COMMANDS",
    "QUIPU_CONFIG",
    "QUIPU_DATA",
    "QUIPU_DATABASE",
    "QUIPU_EXAMPLES",
    "QUIPU_KILLS",
    "QUIPU_MOUNT_CALLS",
    "QUIPU_MOUNT_DOORS",
    "QUIPU_MOUNT_KILLS",
    "QUIPU_MOUNT_NAMES",
    "QUIPU_MOUNT_STEPS",
    "QUIPU_SEED",
    "QUIPU_SESSION",
    "QUIPU_URL",
    "QUIPU_VECTORS_ENDPOINT_KEY",
];
const OTHER_PREFIXES: [&str; 2] = ["QUIPU_FAULT_", "QUIPU_TEST_"];
const LOCK_TIMEOUT_SECONDS: u64 = 10;
const MOUNT_ROOT: &str = "/mnt/memory";

/// Settings that the command line overrides.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    pub(crate) data: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) database: Option<String>,
}

impl Settings {
    /// Reads the settings of this process.
    pub(crate) fn read(flags: Flags) -> Result<Self, Failure> {
        let mut variables = BTreeMap::new();
        for (name, value) in env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => drop(variables.insert(name, value)),
                Err(_) if name.starts_with(PREFIX) => {
                    return Err(Failure::usage(format!("the variable {name} is not UTF-8"))
                        .with_hint("`--data` and `--config` accept any path"));
                }
                Err(_) => {}
            }
        }
        Self::from_sources(flags, &variables)
    }

    fn from_sources(flags: Flags, variables: &BTreeMap<String, String>) -> Result<Self, Failure> {
        refuse_unknown(variables.keys())?;
        let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty());
        let chosen_data = flags.data.or_else(|| variable("QUIPU_DATA").map(PathBuf::from));
        let data = match &chosen_data {
            Some(data) => data.clone(),
            None => default_data(&variable)?,
        };
        let named = flags.config.or_else(|| variable("QUIPU_CONFIG").map(PathBuf::from));
        let path = named.clone().unwrap_or_else(|| data.join(FILE_NAME));
        let mut table = read_file(named.as_deref(), &data)?;
        database::override_url(&mut table, variable("QUIPU_DATABASE"), flags.database)?;
        let file = overridden(table, &variable)?;
        let lock_timeout =
            Duration::from_secs(file.storage.lock_timeout_seconds.unwrap_or(LOCK_TIMEOUT_SECONDS));
        let databases =
            file.database.settings(&data, chosen_data.as_deref(), lock_timeout, &variable);
        let user = file.user.or_else(|| {
            ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| variable(name)).cloned()
        });
        let session = variable("QUIPU_SESSION").map(|text| session(text)).transpose()?;
        let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| variable(name)).cloned();
        Ok(Self {
            data,
            chosen_data,
            database: Some(databases.clone()).filter(|database| !database.url.is_empty()),
            databases,
            store: file.store,
            user: PrincipalName::from_host(user.as_deref().unwrap_or_default()),
            session,
            lock_timeout,
            pager: variables.get("PAGER").map_or(PAGER, String::as_str).to_owned(),
            limits: limits::read(&file.limits, &file.serve),
            mount_root: file.mount_root.unwrap_or_else(|| MOUNT_ROOT.to_owned()),
            names: name_rules(file.names),
            view_max_chars: file.tool.view_max_chars,
            mcp: file.mcp,
            serve: file.serve,
            hooks: file.hooks,
            rules: file.rules,
            upstream_key: file.upstream.named_key(&variable),
            upstream: file.upstream,
            webhooks: file.webhooks,
            vectors: file.vectors,
            endpoint_key: variable("QUIPU_VECTORS_ENDPOINT_KEY").cloned(),
            is_model_overridden: variable("QUIPU_VECTORS_MODEL").is_some(),
            file: path,
            admin_key: variable("QUIPU_ADMIN_KEY").cloned(),
            editor: editor.unwrap_or_else(|| "vi".to_owned()),
            browser: browser(&variable),
            home: home(&variable),
            config_home: config_home(&variable),
            host_directories: HostDirectories {
                claude: variable("CLAUDE_CONFIG_DIR").map(PathBuf::from),
                codex: variable("CODEX_HOME").map(PathBuf::from),
            },
        })
    }
}

impl Settings {
    /// Returns the directory of Claude Code.
    pub(crate) fn claude_directory(&self) -> Option<PathBuf> {
        let usual = || self.home.as_ref().map(|home| home.join(".claude"));
        self.host_directories.claude.clone().or_else(usual)
    }

    /// Returns the directory of Codex.
    pub(crate) fn codex_directory(&self) -> Option<PathBuf> {
        let usual = || self.home.as_ref().map(|home| home.join(".codex"));
        self.host_directories.codex.clone().or_else(usual)
    }
}

fn session(text: &str) -> Result<SessionId, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("QUIPU_SESSION: `{text}`: {error}")))
}

/// Fails if a variable looks like a setting but is unknown: ignoring a typo would be worse.
fn refuse_unknown<'v>(names: impl Iterator<Item = &'v String>) -> Result<(), Failure> {
    let known: Vec<_> = all_keys().map(|(group, key)| variable_name(group, key)).collect();
    for name in names.filter(|name| name.starts_with(PREFIX)) {
        let is_other = OTHER_VARIABLES.contains(&name.as_str())
            || OTHER_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if !is_other && !known.contains(name) {
            let near = known.iter().min_by_key(|known| strsim::levenshtein(known, name));
            let failure = Failure::usage(format!("unknown environment variable {name}"));
            return Err(match near {
                Some(near) => failure.with_hint(format!("did you mean {near}?")),
                None => failure,
            });
        }
    }
    Ok(())
}

/// Returns the name of the variable that sets a key.
fn variable_name(group: &str, key: &str) -> String {
    let name = if group.is_empty() { key.to_owned() } else { format!("{group}_{key}") };
    format!("{PREFIX}{}", name.to_uppercase())
}

fn name_rules(table: NamesTable) -> NameRules {
    let default = NameRules::default();
    NameRules {
        scratch: table.scratch.unwrap_or(default.scratch),
        temporary: table.temporary.unwrap_or(default.temporary),
        backup: table.backup.unwrap_or(default.backup),
    }
}

/// Reads the settings file; unless it was named explicitly, it may be missing.
fn read_file(named: Option<&Path>, data: &Path) -> Result<toml::Table, Failure> {
    let path = named.map_or_else(|| data.join(FILE_NAME), Path::to_owned);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // If the data directory itself is missing or closed, opening it explains what is wrong.
        Err(_) if named.is_none() && is_out_of_reach(&path) => return Ok(toml::Table::new()),
        Err(error) => {
            let message = format!("cannot read the settings file {}: {error}", path.display());
            return Err(Failure::usage(message));
        }
    };
    let parsed = text.parse::<toml::Table>();
    parsed.map_err(|error| {
        let error = without_passwords(&error.to_string());
        Failure::usage(format!("in {}: {error}", path.display()))
    })
}

/// Returns whether a file does not exist, or its directory does not let us find out.
fn is_out_of_reach(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    path.metadata()
        .is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory | PermissionDenied))
}

/// Returns the settings of the file, overridden by the variables.
fn overridden<'v>(
    mut table: toml::Table,
    variable: &impl Fn(&str) -> Option<&'v String>,
) -> Result<File, Failure> {
    for (group, key) in all_keys() {
        let Some(value) = variable(&variable_name(group, key)) else { continue };
        let value = match (value.parse::<i64>(), value.as_str()) {
            (Ok(number), _) if !group.is_empty() => toml::Value::Integer(number),
            (_, "true") if !group.is_empty() => toml::Value::Boolean(true),
            (_, "false") if !group.is_empty() => toml::Value::Boolean(false),
            _ => toml::Value::String(value.clone()),
        };
        let target = if group.is_empty() {
            Some(&mut table)
        } else {
            let group = table.entry(group).or_insert_with(|| toml::Table::new().into());
            group.as_table_mut()
        };
        if let Some(target) = target {
            target.insert(key.to_owned(), value);
        }
    }
    let parsed = table.try_into();
    parsed.map_err(|error| {
        let error = without_passwords(&error.to_string());
        Failure::usage(format!("invalid settings: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: Flags, variables: &[(&str, &str)]) -> Result<Settings, Failure> {
        let mut all = BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]);
        all.extend(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        Settings::from_sources(flags, &all)
    }

    fn with_file(text: &str) -> (tempfile::TempDir, Flags) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE_NAME), text).unwrap();
        let flags = Flags { data: Some(directory.path().to_owned()), ..Flags::default() };
        (directory, flags)
    }

    #[test]
    fn variables_override_the_file() {
        let (_kept, flags) = with_file("store = 'file'\n[limits]\nversions_kept_min = 1\n");
        let settings = read(flags, &[]).unwrap();
        assert_eq!(settings.store.as_deref(), Some("file"));
        assert_eq!(settings.limits.versions_kept_min, 1);

        let variables = [("QUIPU_STORE", "variable"), ("QUIPU_LIMITS_VERSIONS_KEPT_MIN", "2")];
        let (_kept, flags) = with_file("store = 'file'\n[limits]\nversions_kept_min = 1\n");
        let settings = read(flags, &variables).unwrap();
        assert_eq!(settings.store.as_deref(), Some("variable"));
        assert_eq!(settings.limits.versions_kept_min, 2);
    }

    #[test]
    fn defaults_apply_without_file_and_variables() {
        let settings = read(Flags::default(), &[]).unwrap();
        assert_eq!(settings.limits, Limits::default());
        assert_eq!(settings.user.as_str(), "local");
        if cfg!(target_os = "linux") {
            assert_eq!(settings.data, Path::new("/home/ada/.local/share/quipu"));
        }
    }

    #[test]
    fn every_limit_can_be_set() {
        let names = KEYS.iter().filter(|(group, _)| *group == "limits");
        let text: Vec<_> = names.map(|(_, key)| format!("{key} = 1")).collect();
        let (_kept, flags) = with_file(&format!("[limits]\n{}", text.join("\n")));
        let limits = read(flags, &[]).unwrap().limits;
        let expected = Limits {
            content_size_bytes_max: 1,
            memories_per_store_max: 1,
            store_size_bytes_max: 1,
            stores_per_workspace_max: 1,
            stores_per_session_max: 1,
            sessions_per_workspace_max: 1,
            sessions_kept_for: Duration::from_hours(24),
            definitions_per_workspace_max: 1,
            workspace_definitions_size_bytes_max: 1,
            versions_per_agent_max: 1,
            definition_size_bytes_max: 1,
            event_size_bytes_max: 1,
            events_per_session_max: 1,
            session_events_size_bytes_max: 1,
            workspace_events_size_bytes_max: 1,
            events_kept_for: Duration::from_hours(24),
            session_token_valid_for: Limits::default().session_token_valid_for,
            versions_kept_for: Duration::from_hours(24),
            versions_kept_min: 1,
            clock_ahead_max: Duration::from_hours(24),
            deleted_stores_kept_for: Duration::from_hours(24),
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn the_key_of_the_upstream_is_that_of_the_variable_with_the_chosen_name() {
        let text =
            "[upstream]\nbase_url = 'https://api.example.org'\napi_key_variable = 'THE_KEY'\n";
        let (_kept, flags) = with_file(text);
        let variables = [("THE_KEY", "sk-1"), ("QUIPU_UPSTREAM_AUTH", "bearer")];
        let settings = read(flags, &variables).unwrap();
        assert_eq!(settings.upstream_key.as_deref(), Some("sk-1"));
        assert!(matches!(settings.upstream.auth, Auth::Bearer));
        let (_kept, flags) = with_file(text);
        assert_eq!(read(flags, &[]).unwrap().upstream_key, None);
    }

    #[test]
    fn invalid_settings_are_rejected() {
        for text in ["stroe = 'x'", "limits = 3", "[limits]\nversions_kept_min = 'many'", "= x"] {
            let (_kept, flags) = with_file(text);
            assert!(read(flags, &[]).is_err(), "{text}");
        }
        let missing = Flags { config: Some("/nonexistent/quipu.toml".into()), ..Flags::default() };
        assert!(read(missing, &[]).is_err());
    }
}
