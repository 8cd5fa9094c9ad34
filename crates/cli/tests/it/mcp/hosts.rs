//! Configuring hosts: the snippets in the documentation, and `quipu mcp install`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Host;
use crate::support::{Quipu, root};

/// How a host starts the server.
#[derive(Debug, PartialEq)]
struct Launch {
    command: String,
    arguments: Vec<String>,
}

impl Launch {
    fn from_json(server: &Value) -> Self {
        let arguments = server["args"].as_array().expect("arguments").iter();
        Self {
            command: server["command"].as_str().expect("a command").to_owned(),
            arguments: arguments.map(|it| it.as_str().expect("a text").to_owned()).collect(),
        }
    }

    fn from_toml(server: &toml::Value) -> Self {
        Self::from_json(&serde_json::to_value(server).expect("both are data"))
    }

    /// Starts the server as the host does, but on a data directory of the test.
    fn starts(&self) {
        assert_eq!(self.command, "quipu");
        assert_eq!(self.arguments.first().map(String::as_str), Some("mcp"));
        let arguments: Vec<_> = self.arguments.iter().skip(1).map(String::as_str).collect();
        let quipu = Quipu::empty();
        let mut host = Host::new(&quipu, &arguments);
        assert!(!host.tools().is_empty(), "{self:?}");
    }
}

/// Returns the code blocks of the documentation in one language.
fn snippets(language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/mcp.md")).expect("it can be read");
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_owned).collect()
}

#[test]
fn every_snippet_of_the_documentation_starts_a_server() {
    let mut started_count = 0;
    for snippet in snippets("json") {
        let config: Value =
            serde_json::from_str(&snippet).unwrap_or_else(|it| panic!("{it}: {snippet}"));
        let servers = config.get("mcpServers").or_else(|| config.get("servers"));
        let server = &servers.expect("a list of servers")["quipu"];
        if let Some(url) = server["url"].as_str() {
            assert_eq!(url, "http://127.0.0.1:8420/mcp");
            let header = server["headers"]["Authorization"].as_str().expect("a key");
            assert!(header.starts_with("Bearer "), "{header}");
        } else {
            Launch::from_json(server).starts();
            started_count += 1;
        }
    }
    for snippet in snippets("toml") {
        let config: toml::Table = snippet.parse().unwrap_or_else(|it| panic!("{it}: {snippet}"));
        if let Some(servers) = config.get("mcp_servers") {
            Launch::from_toml(&servers["quipu"]).starts();
            started_count += 1;
        }
    }
    for line in snippets("sh").iter().flat_map(|snippet| snippet.lines()) {
        if let Some((_, launch)) = line.split_once(" -- ") {
            let mut words = launch.split_whitespace().map(str::to_owned);
            let command = words.next().expect("a command");
            Launch { command, arguments: words.collect() }.starts();
            started_count += 1;
        }
    }
    assert!(started_count >= 6, "{started_count}");
}

fn installed(quipu: &Quipu, file: &str) -> String {
    fs::read_to_string(quipu.home.path().join(file)).expect("the file is there")
}

/// Returns the number of backups in a directory.
fn backups(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).expect("it can be listed");
    entries
        .filter(|it| {
            it.as_ref().expect("an entry").path().extension().is_some_and(|it| it == "bak")
        })
        .count()
}

#[test]
fn the_server_is_added_to_the_configuration_of_each_host() {
    let hosts = [
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
        ("claude-code", ".claude.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
    ];
    if !cfg!(target_os = "linux") {
        return;
    }
    let quipu = Quipu::empty();
    for (host, file, group) in hosts {
        quipu.ok(&["mcp", "install", host, "--read-only", "--store", "work"]);
        let config: Value = serde_json::from_str(&installed(&quipu, file)).unwrap();
        let launch = Launch::from_json(&config[group]["quipu"]);
        assert!(launch.command.ends_with("quipu"), "{launch:?}");
        let data = quipu.data();
        let expected = ["mcp", "--data", data.to_str().unwrap(), "--store", "work", "--read-only"];
        assert_eq!(launch.arguments, expected);
    }
    quipu.ok(&["mcp", "install", "codex"]);
    let config: toml::Table = installed(&quipu, ".codex/config.toml").parse().unwrap();
    let launch = Launch::from_toml(&config["mcp_servers"]["quipu"]);
    assert_eq!(launch.arguments.first().map(String::as_str), Some("mcp"));
}

#[test]
fn other_settings_are_preserved_and_a_backup_is_kept() {
    let quipu = Quipu::empty();
    let directory = quipu.home.path().join(".cursor");
    fs::create_dir_all(&directory).unwrap();
    let old = "{\n  // mine\n  \"mcpServers\": {\"other\": {\"command\": \"x\"}},\n  \"z\": 1\n}\n";
    fs::write(directory.join("mcp.json"), old).unwrap();

    let shown = quipu.ok(&["mcp", "install", "cursor", "--dry-run"]);
    assert!(shown.contains("\"quipu\"") && shown.contains("// mine"), "{shown}");
    assert_eq!(installed(&quipu, ".cursor/mcp.json"), old);
    assert_eq!(backups(&directory), 0);

    quipu.ok(&["mcp", "install", "cursor"]);
    let new = installed(&quipu, ".cursor/mcp.json");
    assert!(new.contains("// mine") && new.contains("\"other\": {\"command\": \"x\"}"), "{new}");
    assert_eq!(backups(&directory), 1);
    let again = quipu.ok(&["mcp", "install", "cursor"]);
    assert!(again.contains("already"), "{again}");
    assert_eq!(installed(&quipu, ".cursor/mcp.json"), new);
}

#[test]
fn other_fields_of_the_server_are_preserved() {
    let quipu = Quipu::empty();
    let cursor = quipu.home.path().join(".cursor");
    fs::create_dir_all(&cursor).unwrap();
    let old =
        r#"{"mcpServers": {"quipu": {"args": ["old"], "env": {"A": "b"}, "disabled": true}}}"#;
    fs::write(cursor.join("mcp.json"), old).unwrap();
    quipu.ok(&["mcp", "install", "cursor"]);
    let config: Value = serde_json::from_str(&installed(&quipu, ".cursor/mcp.json")).unwrap();
    let server = &config["mcpServers"]["quipu"];
    assert_eq!((&server["env"], &server["disabled"]), (&json!({"A": "b"}), &json!(true)));
    assert_eq!(Launch::from_json(server).arguments[0], "mcp");

    let codex = quipu.home.path().join(".codex");
    fs::create_dir_all(&codex).unwrap();
    let old = "model = \"x\"\n\n# Mine.\n[mcp_servers.quipu]\nargs = [\n  \"old\", # why\n]\n\
               # Slow.\ncommand = \"old\"\nstartup_timeout_sec = 20\n\n# The next.\n[next]\na = 1\n";
    fs::write(codex.join("config.toml"), old).unwrap();
    quipu.ok(&["mcp", "install", "codex"]);
    let new = installed(&quipu, ".codex/config.toml");
    for kept in ["# Mine.\n[mcp_servers.quipu]", "# Slow.", "= 20\n\n# The next.\n[next]\na = 1\n"]
    {
        assert!(new.contains(kept), "{new}");
    }
    let config: toml::Table = new.parse().unwrap();
    assert_eq!(Launch::from_toml(&config["mcp_servers"]["quipu"]).arguments[0], "mcp");
    assert!(!new.contains("old"), "{new}");
    let again = quipu.ok(&["mcp", "install", "codex"]);
    assert!(again.contains("already"), "{again}");
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_to_the_configuration_is_preserved() {
    let quipu = Quipu::empty();
    let home = quipu.home.path();
    fs::create_dir_all(home.join("dotfiles")).unwrap();
    fs::write(home.join("dotfiles/claude.json"), "{}\n").unwrap();
    std::os::unix::fs::symlink("dotfiles/claude.json", home.join(".claude.json")).unwrap();
    quipu.ok(&["mcp", "install", "claude-code"]);
    assert!(home.join(".claude.json").is_symlink());
    assert!(installed(&quipu, "dotfiles/claude.json").contains("\"quipu\""));
}

#[test]
fn a_configuration_that_cannot_be_parsed_is_left_alone() {
    let quipu = Quipu::empty();
    fs::create_dir_all(quipu.home.path().join(".codex")).unwrap();
    for (host, file, old) in [
        ("claude-code", ".claude.json", "{\"mcpServers\": 3}"),
        ("codex", ".codex/config.toml", "= x"),
    ] {
        fs::write(quipu.home.path().join(file), old).unwrap();
        let ran = quipu.run(&["mcp", "install", host]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("add this to it by hand"), "{ran:?}");
        assert_eq!(installed(&quipu, file), old);
    }
}

#[test]
fn a_toml_table_is_updated_and_the_rest_preserved() {
    let quipu = Quipu::empty();
    fs::create_dir_all(quipu.home.path().join(".codex")).unwrap();
    let old = "# mine\nmodel = 'x'\n\n[mcp_servers.quipu]\ncommand = 'old'\n\n[mcp_servers.other]\ncommand = 'y'\n";
    fs::write(quipu.home.path().join(".codex/config.toml"), old).unwrap();
    quipu.ok(&["mcp", "install", "codex"]);
    let new = installed(&quipu, ".codex/config.toml");
    assert!(new.starts_with("# mine\nmodel = 'x'\n"), "{new}");
    let config: toml::Table = new.parse().unwrap();
    assert_eq!(config["mcp_servers"]["other"]["command"].as_str(), Some("y"));
    assert_ne!(config["mcp_servers"]["quipu"]["command"].as_str(), Some("old"));
}

#[test]
fn a_project_has_a_configuration_of_its_own() {
    let quipu = Quipu::empty();
    let project = quipu.home.path().join("project");
    fs::create_dir(&project).unwrap();
    let install = |data: Option<&Path>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quipu"));
        command.env_clear().env("HOME", quipu.home.path()).current_dir(&project);
        command.args(["mcp", "install", "claude-code", "--project"]);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        crate::support::run(command, b"")
    };
    let ran = install(None);
    assert_eq!(ran.code, 0, "{ran:?}");
    let config: Value = serde_json::from_str(&installed(&quipu, "project/.mcp.json")).unwrap();
    let expected = json!({"type": "stdio", "command": "quipu", "args": ["mcp"]});
    assert_eq!(config["mcpServers"]["quipu"], expected);

    // A directory of this machine does not get into a file that is shared.
    let outside = install(Some(&quipu.data()));
    assert_eq!(outside.code, 2, "{outside:?}");
    assert!(outside.err.contains("outside of the project"), "{outside:?}");
    assert_eq!(install(Some(&project.join("memory"))).code, 0);
    let config: Value = serde_json::from_str(&installed(&quipu, "project/.mcp.json")).unwrap();
    assert_eq!(config["mcpServers"]["quipu"]["args"], json!(["mcp", "--data", "memory"]));
    assert_eq!(quipu.run(&["mcp", "install", "claude-desktop", "--project"]).code, 2);
}

#[test]
fn uninstall_removes_what_install_added() {
    let quipu = Quipu::empty();
    let directories = [".cursor", ".codex"].map(|name| quipu.home.path().join(name));
    for directory in &directories {
        fs::create_dir_all(directory).unwrap();
    }
    let json = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n";
    let toml = "# mine\nmodel = 'x'\n\n[mcp_servers.other]\ncommand = 'y'\n";
    for (host, file, old) in
        [("cursor", ".cursor/mcp.json", json), ("codex", ".codex/config.toml", toml)]
    {
        fs::write(quipu.home.path().join(file), old).unwrap();
        quipu.ok(&["mcp", "install", host]);
        assert!(installed(&quipu, file).contains("quipu"));
        let removed = quipu.ok(&["mcp", "uninstall", host]);
        assert!(removed.ends_with("restart the host to apply the change\n"), "{removed}");
        let new = installed(&quipu, file);
        assert!(!new.contains("quipu"), "{new}");
        assert!(new.contains("mine") && new.contains("other"), "{new}");
        let again = quipu.ok(&["mcp", "uninstall", host]);
        assert!(again.contains("does not name this server"), "{again}");
    }
    let nothing = quipu.ok(&["mcp", "uninstall", "vscode"]);
    assert!(nothing.contains("does not name"), "{nothing}");
}

#[test]
fn the_checklist_names_tests_that_exist() {
    let list =
        fs::read_to_string(root().join("docs/internals/spec-18.md")).expect("it can be read");
    let rows = list.lines().filter(|line| line.starts_with("| ") && !line.contains("shown by"));
    let code = crate::tidy::files(root(), ".rs")
        .iter()
        .map(|file| fs::read_to_string(file).expect("it can be read"))
        .collect::<String>();
    let mut names_count = 0;
    for row in rows {
        let shown_by = row.trim_end_matches(" |").rsplit(" | ").next().expect("a last column");
        let names: Vec<_> = shown_by.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || shown_by.contains("](../../tests/"), "{row}");
        for name in names {
            assert!(code.contains(&format!("fn {name}()")), "{name} is not a test");
            names_count += 1;
        }
    }
    assert!(names_count > 40, "{names_count}");
}
