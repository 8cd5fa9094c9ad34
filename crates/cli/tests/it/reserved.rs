//! A store that is reserved for people, at every door that an agent has.

#![expect(clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::fs;

use serde_json::{Value, json};

use crate::mcp::Host;
use crate::server::{KEY, Server, id};
use crate::support::Quipu;

const REFUSAL: &str = "can only be changed by people";

/// Returns a home with the reserved store `rules`, which has one rule.
fn prepared() -> Quipu {
    let quipu = Quipu::empty();
    quipu.ok(&["store", "create", "rules", "--writers", "people"]);
    quipu.put("/r.md", "the rule");
    quipu
}

/// Fails if anything has changed.
#[track_caller]
fn require_unchanged(quipu: &Quipu) {
    assert_eq!(quipu.ok(&["-s", "rules", "cat", "/r.md"]), "the rule");
    assert_eq!(quipu.ok(&["-s", "rules", "ls"]).trim(), "/r.md");
    assert_eq!(quipu.json(&["-s", "rules", "log"])["data"].as_array().expect("a list").len(), 1);
    assert!(quipu.ok(&["store", "show", "rules"]).contains("Writers:     people"));
}

#[test]
fn the_command_line_refuses_a_session() {
    let quipu = prepared();
    let session = id(&quipu.json(&["session", "create", "--store", "rules"]));
    let as_session = |arguments: &[&str], input: &[u8]| {
        let mut command = quipu.command(arguments);
        command.env("QUIPU_SESSION", &session);
        crate::support::run(command, input)
    };
    let version =
        quipu.json(&["-s", "rules", "log"])["data"][0]["id"].as_str().expect("an id").to_owned();
    for arguments in [
        vec!["put", "/r.md"],
        vec!["put", "/new.md"],
        vec!["rm", "/r.md"],
        vec!["mv", "/r.md", "/s.md"],
    ] {
        let ran = as_session(&arguments, b"another");
        assert_eq!(ran.code, 6, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(REFUSAL), "{ran:?}");
    }
    // It cannot open the store to itself either, or become somebody who may.
    for arguments in [
        vec!["store", "update", "rules", "--writers", "everyone"],
        vec!["store", "archive", "rules"],
        vec!["key", "create", "--name", "mine", "--role", "admin"],
        vec!["session", "create", "--store", "rules"],
        vec!["rules", "init"],
        vec!["redact", "--matching", "rule"],
    ] {
        let ran = as_session(&arguments, b"");
        assert_eq!(ran.code, 6, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains("cannot run administrative commands"), "{ran:?}");
    }
    quipu.put("/r.md", "the rule, changed");
    let ran = as_session(&["restore", "/r.md", &version], b"");
    assert!(ran.code != 0, "{ran:?}");
    quipu.ok(&["-s", "rules", "restore", "/r.md"]);
    assert_eq!(quipu.ok(&["cat", "/r.md"]), "the rule");
}

#[test]
fn the_memory_tool_refuses_an_agent() {
    let quipu = prepared();
    let commands = [
        json!({"command": "create", "path": "/memories/r.md", "file_text": "mine"}),
        json!({"command": "create", "path": "/memories/new.md", "file_text": "mine"}),
        json!({"command": "str_replace", "path": "/memories/r.md", "old_str": "the", "new_str": "my"}),
        json!({"command": "insert", "path": "/memories/r.md", "insert_line": 0, "insert_text": "x"}),
        json!({"command": "rename", "old_path": "/memories/r.md", "new_path": "/memories/s.md"}),
        json!({"command": "delete", "path": "/memories/r.md"}),
    ];
    let input = commands.map(|command| command.to_string()).join("\n");
    let ran = quipu.run_with(&["-s", "rules", "tool"], input.as_bytes());
    for line in ran.out.lines() {
        assert!(line.contains("\"is_error\":true"), "{line}");
    }
    assert_eq!(ran.out.lines().count(), 6);
    require_unchanged(&quipu);
}

#[test]
fn mcp_refuses_an_agent() {
    let quipu = prepared();
    let mut host = Host::new(&quipu, &["--tools", "all,admin"]);
    let replaced = json!({"identifier": "r", "operation": "find_replace", "find_text": "the", "content": "my", "project": "rules"});
    for (tool, arguments) in [
        (
            "write_note",
            json!({"title": "new", "directory": "/", "content": "mine", "project": "rules"}),
        ),
        ("edit_note", replaced),
        ("delete_note", json!({"identifier": "r", "project": "rules"})),
        ("move_note", json!({"identifier": "r", "destination_path": "s.md", "project": "rules"})),
        ("delete_project", json!({"project_name": "rules"})),
    ] {
        let text = host.refusal(tool, arguments);
        assert!(text.contains("by people"), "{tool}: {text}");
    }
    drop(host);
    require_unchanged(&quipu);
}

#[test]
fn rest_refuses_sessions_and_keys_that_do_not_administer() {
    let quipu = prepared();
    let server = Server::start(&quipu);
    let store = id(&quipu.json(&["store", "show", "rules"]));
    let key = quipu.json(&["key", "create", "--role", "read_write"]);
    let key = key["key"].as_str().or(key["secret"].as_str()).expect("a secret").to_owned();
    let title = json!({"title": "an agent"});
    let (_, session) = server.post(KEY, &format!("/quipu/stores/{store}/tool/session"), &title);
    let token = session["token"].as_str().expect("a token").to_owned();
    let memories = format!("/v1/memory_stores/{store}/memories");
    let (_, listed) = server.get(KEY, &memories);
    let memory = format!("{memories}/{}", id(&listed["data"][0]));
    for secret in [&token, &key] {
        let new = json!({"path": "/new.md", "content": "mine"});
        for (path, body) in [
            (&memories, new),
            (&memory, json!({"content": "mine"})),
            (&memory, json!({"path": "/s.md"})),
        ] {
            let (status, answer) = server.post(secret, path, &body);
            assert_eq!(status, 403, "{path}: {answer}");
            assert!(answer.to_string().contains(REFUSAL), "{answer}");
        }
        let call = json!({"command": "create", "path": "/memories/r.md", "file_text": "mine"});
        let (_, answer) = server.post(secret, &format!("/quipu/stores/{store}/tool"), &call);
        assert_ne!(answer["is_error"], false, "{answer}");
        for (path, body) in [
            (format!("/quipu/stores/{store}/policy"), json!({"writers": "everyone"})),
            (format!("/v1/memory_stores/{store}"), json!({"name": "harmless"})),
            (format!("/v1/memory_stores/{store}/archive"), json!({})),
        ] {
            let (status, answer) = server.post(secret, &path, &body);
            assert!((400..500).contains(&status), "{path}: {status} {answer}");
        }
    }
    require_unchanged(&quipu);
    // An administrator is a person's tool.
    let (status, answer) = server.post(KEY, &memory, &json!({"content": "by an administrator"}));
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn a_synced_folder_changes_nothing() {
    let quipu = prepared();
    let folder = quipu.home.path().join("folder");
    fs::create_dir(&folder).expect("it can be made");
    quipu.run(&["-s", "rules", "sync", folder.to_str().expect("text")]);
    assert_eq!(fs::read_to_string(folder.join("r.md")).expect("it was synced"), "the rule");
    fs::write(folder.join("r.md"), "mine").expect("it can be written");
    fs::write(folder.join("new.md"), "mine").expect("it can be written");
    let ran = quipu.run(&["-s", "rules", "sync", folder.to_str().expect("text")]);
    assert_ne!(ran.code, 0, "{ran:?}");
    require_unchanged(&quipu);
}

#[test]
fn people_can_change_it_and_open_it_for_everyone() {
    let quipu = prepared();
    quipu.put("/r.md", "a better rule");
    assert_eq!(quipu.json(&["store", "show", "rules"])["writers"], Value::from("people"));
    quipu.ok(&["store", "update", "rules", "--writers", "everyone"]);
    let call = json!({"command": "create", "path": "/memories/new.md", "file_text": "mine"});
    let ran = quipu.run_with(&["-s", "rules", "tool"], call.to_string().as_bytes());
    assert!(ran.out.contains("\"is_error\":false"), "{ran:?}");
}
