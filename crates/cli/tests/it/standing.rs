//! What a session may do at the command line: every command, with `QUIPU_SESSION`.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs;
use std::sync::OnceLock;

use quipu_core::backend::{Archived, Order, SessionQuery, Span};
use serde_json::Value;

use crate::support::{Quipu, Ran, run};

/// What is expected of a command that a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It runs, and changes nothing.
    Reads,
    /// It writes as the session.
    Writes,
    /// It writes as a session of its own.
    WritesApart,
    /// It is refused.
    Refused,
}

use Standing::{Reads, Refused, Writes, WritesApart};

/// Each command, the rest of its command line, and its input. `{store}` is a store that it may write to, or
/// not.
const ROWS: [(&str, &str, Standing, &str); 77] = [
    ("serve", "--listen 127.0.0.1:0", Refused, ""),
    ("ui", "--print", Refused, ""),
    ("mcp", "--store {store}", WritesApart, MCP),
    ("mcp install", "claude-code", Refused, ""),
    ("mcp uninstall", "claude-code", Refused, ""),
    ("tool", "--store {store}", WritesApart, TOOL),
    ("sync", "{folder} --store {store}", WritesApart, ""),
    ("mount", "--store {store}", WritesApart, ""),
    ("unmount", "{folder}", Reads, ""),
    ("init-project", "{store}", Writes, ""),
    ("hook install", "claude-code", Refused, ""),
    ("hook uninstall", "claude-code", Refused, ""),
    ("hook run", "--host codex", Reads, PROMPT),
    ("hook decide", "--host codex", Reads, CALL),
    ("hook log", "", Reads, ""),
    ("hook record", "", Refused, ""),
    ("rules init", "policy", Refused, ""),
    ("rules list", "", Reads, ""),
    ("rules check", "", Reads, ""),
    ("store create", "mine", Refused, ""),
    ("store list", "", Reads, ""),
    ("store show", "rules", Reads, ""),
    ("store update", "rules --writers everyone", Refused, ""),
    ("store archive", "rules", Refused, ""),
    ("store delete", "rules --yes", Refused, ""),
    ("store restore", "gone", Refused, ""),
    ("store copy", "rules mine", Refused, ""),
    ("store default", "other", Refused, ""),
    ("ls", "", Reads, ""),
    ("cat", "/a.md", Reads, ""),
    ("put", "/new.md --store {store}", Writes, "new"),
    ("edit", "/a.md --store {store}", Writes, ""),
    ("mv", "/a.md /b.md --store {store}", Writes, ""),
    ("rm", "/a.md --store {store}", Writes, ""),
    ("log", "", Reads, ""),
    ("show", "{version}", Reads, ""),
    ("diff", "{version}", Reads, ""),
    ("blame", "/a.md", Reads, ""),
    ("restore", "/a.md --store {store}", Writes, ""),
    ("revert", "--actor user_ada --store {store}", Writes, ""),
    ("redact", "--matching one --yes", Refused, ""),
    ("receipts", "", Reads, ""),
    ("search", "one", Reads, ""),
    ("suggest", "one", Reads, ""),
    ("recent", "", Reads, ""),
    ("context", "/a.md", Reads, ""),
    ("links", "", Reads, ""),
    ("graph", "", Reads, ""),
    ("import", "{folder} --store {store}", WritesApart, ""),
    ("export", "{copy}", Reads, ""),
    ("session create", "--store rules", Refused, ""),
    ("session list", "", Reads, ""),
    ("session show", "{session}", Reads, ""),
    ("session archive", "{session}", Refused, ""),
    ("session delete", "{session}", Refused, ""),
    ("events", "{session}", Reads, ""),
    ("key create", "--name mine --role admin", Refused, ""),
    ("key list", "", Reads, ""),
    ("key revoke", "{key}", Refused, ""),
    ("model install", "{folder}", Refused, ""),
    ("model list", "", Reads, ""),
    ("model use", "none", Refused, ""),
    ("model remove", "x", Refused, ""),
    ("model embed", "", Reads, ""),
    ("model check", "x", Reads, ""),
    ("prompt", "", Reads, ""),
    ("check", "", Reads, ""),
    ("prune", "", Refused, ""),
    ("backup", "{copy}", Refused, ""),
    ("restore-backup", "{copy}", Refused, ""),
    ("migrate", "", Refused, ""),
    ("move", "--to {copy}", Refused, ""),
    ("completions", "bash", Reads, ""),
    ("man", "", Reads, ""),
    // Again, in other ways.
    ("init-project", "{store} --template other", Writes, ""),
    ("restore", "--at {version} --store {store}", Writes, ""),
    ("mcp", "", Reads, MCP_READS),
];

const TOOL: &str = r#"{"command": "create", "path": "/memories/new.md", "file_text": "x"}"#;
const PROMPT: &str =
    r#"{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "one"}"#;
const CALL: &str = r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
    "tool_input": {"command": "ls"}}"#;
const MCP: &str = concat!(
    r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}"#,
    "\n",
    r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "write_note", "arguments": {"title": "New", "directory": "/", "content": "x"}}}"#,
    "\n",
);
const MCP_READS: &str = concat!(
    r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}"#,
    "\n",
    r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "write_note", "arguments": {"title": "New", "directory": "/", "content": "x", "project": "other"}}}"#,
    "\n",
);

/// A home with a session that may write to `notes` and, as far as its attachments say, to the reserved store
/// `rules`; it may read `read`, and `other` is not attached.
struct World {
    quipu: Quipu,
    session: String,
    key: String,
    /// The first version of `/a.md` in each store.
    versions: Vec<(&'static str, String)>,
}

impl World {
    /// Returns a new copy; it is made once.
    fn new() -> Self {
        static FIRST: OnceLock<World> = OnceLock::new();
        let first = FIRST.get_or_init(Self::made);
        let quipu = Quipu::empty();
        fs::create_dir(quipu.data()).expect("it can be made");
        for entry in fs::read_dir(first.quipu.data()).expect("it is listed") {
            let file = entry.expect("an entry").path();
            if file.is_file() {
                let name = file.file_name().expect("a name");
                fs::copy(&file, quipu.data().join(name)).expect("it can be copied");
            }
        }
        let (session, key) = (first.session.clone(), first.key.clone());
        Self { quipu, session, key, versions: first.versions.clone() }
    }

    fn made() -> Self {
        let quipu = Quipu::empty();
        quipu.ok(&["store", "create", "rules", "--writers", "people"]);
        for store in ["notes", "read", "other"] {
            quipu.ok(&["store", "create", store]);
        }
        let put = |store: &str, path: &str, text: &str| {
            let ran = quipu.run_with(&["put", path, "--store", store], text.as_bytes());
            assert_eq!(ran.code, 0, "{ran:?}");
        };
        for store in ["rules", "notes", "read", "other"] {
            put(store, "/a.md", "one");
            put(store, "/a.md", "two");
        }
        put("other", "/template.md", "of other");
        quipu.ok(&["store", "default", "notes"]);
        let stores = ["notes", "rules", "read:ro"].map(|store| ["--store", store]).concat();
        let created = quipu.json(&[&["session", "create"][..], &stores].concat());
        let session = created["id"].as_str().expect("an id").to_owned();
        let key = quipu.json(&["key", "create", "--role", "admin"]);
        let key = key["id"].as_str().expect("an id").to_owned();
        let version = |store| {
            let log = quipu.json(&["log", "/a.md", "--store", store]);
            (store, log["data"][1]["id"].as_str().expect("an id").to_owned())
        };
        let versions = ["rules", "notes", "read", "other"].map(version).to_vec();
        Self { quipu, session, key, versions }
    }

    fn run(&self, (command, rest, _, input): (&str, &str, Standing, &str), store: &str) -> Ran {
        let home = self.quipu.home.path().to_str().expect("a text");
        // A folder is synced with one store.
        let folder = format!("{home}/folder-{store}");
        fs::create_dir_all(&folder).expect("it can be made");
        fs::write(format!("{folder}/file.md"), "from a file").expect("it can be written");
        let version = self.versions.iter().find(|(name, _)| *name == store).expect("a store");
        let rest = rest
            .replace("{store}", store)
            .replace("{session}", &self.session)
            .replace("{key}", &self.key)
            .replace("{version}", &version.1)
            .replace("{folder}", &folder)
            .replace("{copy}", &format!("{home}/copy"));
        let arguments: Vec<_> = command.split(' ').chain(rest.split_whitespace()).collect();
        let mut process = self.quipu.command(&arguments);
        process.env("QUIPU_SESSION", &self.session).env("QUIPU_ADMIN_KEY", "0123456789abcdef");
        process.env("EDITOR", "sed -i s/two/three/").env("PATH", "/usr/bin:/bin");
        run(process, input.as_bytes())
    }

    /// Returns what tells whether anything was changed: the newest change, what there is beside memories, and
    /// the settings of hosts.
    fn seen(&self) -> String {
        let engine = self.quipu.engine(0);
        let workspace = engine.default_workspace().expect("it is read").id;
        let query = SessionQuery {
            workspace,
            store: None,
            archived: Archived::Show,
            created: Span::default(),
            viewer: None,
            order: Order::NewestFirst,
            after: None,
            limit: 1000,
        };
        let seen = engine.read(|reader| {
            Ok(format!(
                "{:?} {:?} {:?} {:?}",
                reader.newest_change()?,
                reader.sessions(&query)?,
                reader.keys(workspace)?,
                reader.workspaces()?
            ))
        });
        let has_settings = self.quipu.home.path().join(".claude").exists();
        format!("{} {has_settings}", seen.expect("it is read"))
    }

    /// Returns the authors of the newest versions of a store.
    fn newest_author(&self, store: &str) -> String {
        let log = self.quipu.json(&["log", "--store", store]);
        let author: &Value = &log["data"][0]["created_by"];
        let id = ["session_id", "user_id", "api_key_id"].iter().find_map(|it| author[it].as_str());
        id.unwrap_or_default().to_owned()
    }
}

#[test]
fn every_command_has_a_row() {
    let commands = crate::help::commands(&Quipu::empty());
    for command in &commands {
        assert!(
            ROWS.iter().any(|(name, ..)| name == command),
            "`quipu {command}` has no row in `ROWS` of this file: say what a session may do with it"
        );
    }
    for (name, ..) in ROWS {
        assert!(commands.iter().any(|command| command == name), "there is no `quipu {name}`");
    }
}

#[test]
fn what_reads_changes_nothing_and_what_is_for_people_is_refused() {
    let world = World::new();
    let before = world.seen();
    for row in ROWS.into_iter().filter(|row| matches!(row.2, Reads | Refused)) {
        let ran = world.run(row, "notes");
        let is_refused = ran.err.contains("cannot run administrative commands");
        assert_eq!(is_refused, row.2 == Refused, "{row:?}: {ran:?}");
        assert_eq!(ran.code == 6, row.2 == Refused, "{row:?}: {ran:?}");
        assert_eq!(world.seen(), before, "{row:?}: {ran:?}");
    }
}

#[test]
fn what_writes_writes_to_stores_of_the_session_only() {
    for row in ROWS.into_iter().filter(|row| matches!(row.2, Writes | WritesApart)) {
        let world = World::new();
        for store in ["rules", "read", "other"] {
            // What mounts stays until it is told to end; `crates/mount` tests that it changes nothing here.
            if row.0 == "mount" && store == "rules" {
                continue;
            }
            let before = world.seen();
            let ran = world.run(row, store);
            let is_said = [&ran.out, &ran.err].iter().any(|text| {
                text.contains("changed by people")
                    || text.contains("for reading only")
                    || text.contains("is not attached")
            });
            assert!(is_said, "{row:?}, {store}: {ran:?}");
            // A sync or an import that has tried leaves its session, and nothing else.
            if store != "rules" || row.2 == Writes {
                assert_eq!(world.seen(), before, "{row:?}, {store}: {ran:?}");
            }
            assert_eq!(world.newest_author("rules"), "user_ada", "{row:?}, {store}");
            let version = world.quipu.ok(&["cat", "/a.md", "--store", "rules"]);
            assert_eq!(version, "two", "{row:?}, {store}");
        }
        if row.0 == "mount" {
            continue;
        }
        let ran = world.run(row, "notes");
        assert_eq!(ran.code, 0, "{row:?}: {ran:?}");
        let author = world.newest_author("notes");
        assert!(author.starts_with("sesn_"), "{row:?}: {author} {ran:?}");
        assert_eq!(author == world.session, row.2 == Writes, "{row:?}: {author} {ran:?}");
    }
}

#[test]
fn a_session_that_is_archived_writes_nothing() {
    let world = World::new();
    world.quipu.ok(&["session", "archive", &world.session]);
    let before = world.seen();
    for row in ROWS.into_iter().filter(|row| matches!(row.2, Writes | WritesApart)) {
        let ran = world.run(row, "notes");
        assert_eq!(ran.code, 6, "{row:?}: {ran:?}");
        assert_eq!(world.seen(), before, "{row:?}");
    }
}
