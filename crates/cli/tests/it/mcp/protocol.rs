//! The protocol: revisions, sessions, resources, notifications.

use serde_json::{Value, json};

use super::Host;
use crate::support::Quipu;

#[test]
fn every_revision_with_a_handshake_is_spoken() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let quipu = Quipu::empty();
        let mut host = Host::silent(&quipu, &[]);
        let about = host.initialize(revision);
        assert_eq!(about["protocolVersion"], revision);
        assert_eq!(about["serverInfo"]["name"], "quipu");
        assert_eq!(host.tools().len(), 15);
        assert_eq!(host.close(), 0);
    }
}

#[test]
fn invalid_parameters_are_reported_as_such() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    for (method, params, reason) in [
        ("tools/call", json!({"name": "read_note", "arguments": "{}"}), "must be an object"),
        ("tools/call", json!({"name": "read_note", "arguments": []}), "must be an object"),
        ("tools/call", json!({"name": 5}), "expected a string"),
        ("tools/call", Value::Null, "params are missing"),
        ("logging/setLevel", json!({"level": "loud"}), "unknown variant `loud`"),
        ("initialize", json!({}), "missing field `protocolVersion`"),
    ] {
        let answer = host.raw(method, params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().expect("a text");
        assert!(message.starts_with(method) && message.contains(reason), "{message}");
    }
    assert_eq!(host.raw("tools/shout", json!({}))["error"]["code"], -32601);
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let quipu = Quipu::empty();
    let mut host = Host::silent(&quipu, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "Newest", "version": "9"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = host.ask("server/discover", json!({"_meta": meta}));
    let versions = found["supportedVersions"].as_array().expect("a list");
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    assert!(found["instructions"].as_str().unwrap().contains("Look first"), "{found}");

    let arguments = json!({"title": "Tea", "content": "green", "directory": "drinks"});
    let params = json!({"name": "write_note", "arguments": arguments, "_meta": meta});
    assert_eq!(host.ask("tools/call", params)["isError"], false);
    let log = quipu.json(&["--store", "notes", "log"]);
    assert_eq!(log["data"].as_array().unwrap().len(), 1, "{log}");
    let sessions = quipu.json(&["session", "list"]);
    assert_eq!(sessions["data"][0]["title"], "Newest 9");

    // Subscribers are notified of changes.
    let wanted = json!({
        "resourcesListChanged": true,
        "resourceSubscriptions": ["memory://notes/drinks/Tea.md"],
    });
    let listen = json!({"jsonrpc": "2.0", "id": 77, "method": "subscriptions/listen",
        "params": {"notifications": wanted, "_meta": meta}});
    host.send(&listen);
    host.notification("notifications/subscriptions/acknowledged");
    quipu.ok(&["--store", "notes", "mv", "drinks/Tea.md", "drinks/Tee.md"]);
    host.notification("notifications/resources/list_changed");
    let updated = host.notification("notifications/resources/updated");
    assert_eq!(updated["params"]["uri"], "memory://notes/drinks/Tea.md");
}

#[test]
fn the_history_says_which_host_wrote() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("write_note", json!({"title": "Tea", "content": "green"}));
    let history = host.ok("note_history", json!({"identifier": "Tea"}));
    assert_eq!(history.data["versions"][0]["actor"]["title"], "Test Host 1.2");
    assert!(quipu.ok(&["log"]).contains("Actor:  Test Host 1.2 (sesn_"));
    let version = quipu.json(&["log"])["data"][0].clone();
    assert_eq!(version["created_by"]["type"], "session_actor");
}

#[test]
fn two_hosts_on_one_data_directory_see_each_other_at_once() {
    let quipu = Quipu::empty();
    let (mut one, mut two) = (Host::new(&quipu, &[]), Host::new(&quipu, &[]));
    one.ok("write_note", json!({"title": "Tea", "content": "- [fact] green is best\n"}));
    let found = two.ok("search_notes", json!({"query": "green"}));
    assert_eq!(found.data["results"][0]["title"], "Tea");
    two.ok("edit_note", json!({"identifier": "Tea", "operation": "append", "content": "or black"}));
    assert!(one.ok("read_note", json!({"identifier": "Tea"})).text.contains("or black"));
}

#[test]
fn resources_are_listed_read_and_completed() {
    let quipu = Quipu::with_store();
    quipu.put("/drinks/green tea.md", "green");
    quipu.put("/data.json", "{}");
    let mut host = Host::new(&quipu, &[]);
    let listed = host.ask("resources/list", json!({}));
    let uris: Vec<_> =
        listed["resources"].as_array().unwrap().iter().map(|it| &it["uri"]).collect();
    assert_eq!(uris, ["memory://notes/data.json", "memory://notes/drinks/green%20tea.md"]);

    let uri = json!({"uri": "memory://notes/drinks/green%20tea.md"});
    let read = host.ask("resources/read", uri);
    assert_eq!(read["contents"][0]["text"], "green");
    assert_eq!(read["contents"][0]["mimeType"], "text/markdown");
    let missing = host.raw("resources/read", json!({"uri": "memory://notes/none.md"}));
    assert_eq!(missing["error"]["code"], -32002);

    let templates = host.ask("resources/templates/list", json!({}));
    let template = &templates["resourceTemplates"][0]["uriTemplate"];
    let complete = |name: &str, value: &str| {
        json!({
            "ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": name, "value": value},
            "context": {"arguments": {"store": "notes"}},
        })
    };
    let stores = host.ask("completion/complete", complete("store", "no"));
    assert_eq!(stores["completion"]["values"], json!(["notes"]));
    let paths = host.ask("completion/complete", complete("path", "drinks/"));
    assert_eq!(paths["completion"]["values"], json!(["drinks/green tea.md"]));
    let prompt = json!({
        "ref": {"type": "ref/prompt", "name": "recent_activity"},
        "argument": {"name": "timeframe", "value": "y"},
    });
    let words = host.ask("completion/complete", prompt);
    assert_eq!(words["completion"]["values"][0], "yesterday");
}

#[test]
fn resources_are_paginated() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    for number in 0..130 {
        host.ok("write_note", json!({"title": format!("Note {number:03}"), "content": "x"}));
    }
    host.ok("memory", json!({"command": "create", "path": "/memories/a.md", "file_text": "x"}));
    let mut uris = Vec::new();
    let mut params = json!({});
    loop {
        let page = host.ask("resources/list", params);
        let resources = page["resources"].as_array().unwrap();
        assert!(resources.len() <= 100);
        uris.extend(resources.iter().map(|it| it["uri"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!(uris.len(), 131);
    uris.sort();
    uris.dedup();
    assert_eq!(uris.len(), 131);
    let wrong = host.raw("resources/list", json!({"cursor": "elsewhere"}));
    assert_eq!(wrong["error"]["code"], -32602);
}

#[test]
fn changes_through_other_doors_are_told() {
    let quipu = Quipu::with_store();
    quipu.put("/tea.md", "green");
    let mut host = Host::new(&quipu, &[]);
    let uri = json!({"uri": "memory://notes/tea.md"});
    host.ask("resources/subscribe", uri.clone());
    quipu.put("/tea.md", "black");
    let updated = host.notification("notifications/resources/updated");
    assert_eq!(updated["params"]["uri"], "memory://notes/tea.md");
    quipu.put("/new.md", "x");
    host.notification("notifications/resources/list_changed");

    host.ask("resources/unsubscribe", uri);
    quipu.put("/tea.md", "white");
    quipu.ok(&["rm", "/new.md"]);
    host.notification("notifications/resources/list_changed");
    let is_notified =
        host.notifications.iter().any(|it| it["method"] == "notifications/resources/updated");
    assert!(!is_notified);
}

#[test]
fn subscriptions_to_missing_resources_are_refused() {
    let quipu = Quipu::with_store();
    quipu.put("/tea.md", "green");
    let mut host = Host::new(&quipu, &[]);
    for uri in ["memory://notes/tea", "memory://nowhere/tea.md", "file:///etc/passwd"] {
        let answer = host.raw("resources/subscribe", json!({ "uri": uri }));
        assert!(answer["error"]["message"].is_string(), "{uri}: {answer}");
    }

    let mut newest = Host::silent(&quipu, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "Newest", "version": "9"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let listen =
        |urls: &[&str]| json!({"notifications": {"resourceSubscriptions": urls}, "_meta": meta});
    let unknown = listen(&["memory://nowhere/tea.md"]);
    let answer = newest.raw("subscriptions/listen", unknown);
    assert!(answer["error"]["message"].as_str().unwrap().contains("nowhere"), "{answer}");
    newest.notification("notifications/subscriptions/acknowledged");
    let strange = listen(&["file:///etc/passwd", "memory://notes/tea.md"]);
    newest.send(&json!({"jsonrpc": "2.0", "id": 77, "method": "subscriptions/listen",
        "params": strange}));
    let known = newest.notification("notifications/subscriptions/acknowledged");
    let accepted = &known["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*accepted, json!(["memory://notes/tea.md"]), "{known}");
}

#[test]
fn unknown_references_have_no_completions() {
    let quipu = Quipu::with_store();
    quipu.put("/tea.md", "green");
    let mut host = Host::new(&quipu, &[]);
    let template = json!({"type": "ref/resource", "uri": "memory://{store}/{+path}"});
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    for (reference, argument, expected) in [
        (template.clone(), "path", json!([])),
        (prompt("nothing"), "topic", json!([])),
        (prompt("recent_activity"), "topic", json!([])),
        (prompt("continue_conversation"), "topic", json!(["tea"])),
    ] {
        let params = json!({
            "ref": reference,
            "argument": {"name": argument, "value": ""},
            "context": {"arguments": {"store": "nowhere"}},
        });
        let answer = host.ask("completion/complete", params);
        assert_eq!(answer["completion"]["values"], expected, "{reference} {argument}");
    }
}

#[test]
fn a_prompt_names_the_invalid_argument() {
    let quipu = Quipu::with_store();
    let mut host = Host::new(&quipu, &[]);
    for (name, argument) in [("continue_conversation", "topic"), ("search_knowledge_base", "query")]
    {
        let arguments = json!({argument: "tea", "timeframe": "soonish"});
        let answer = host.raw("prompts/get", json!({"name": name, "arguments": arguments}));
        let message = answer["error"]["message"].as_str().expect("a text");
        assert!(message.starts_with("timeframe:"), "{name}: {message}");
    }
}

#[test]
fn a_read_only_store_is_not_created() {
    let quipu = Quipu::with_store();
    for arguments in [&["--read-only", "--store", "typo"][..], &["--store", "typo:ro"]] {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        let output = quipu.command(&all).output().expect("the binary starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains("typo"), "{arguments:?}: {text}");
    }
    let stores = quipu.json(&["store", "list"]);
    assert!(!stores.to_string().contains("typo"), "{stores}");
    let mut host = Host::new(&quipu, &["--read-only", "--store", "notes"]);
    assert!(!host.tools().contains(&"write_note".to_owned()));
}

#[test]
fn progress_and_log_messages_are_sent_on_request() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("write_note", json!({"title": "Tea", "content": "green"}));
    assert!(host.notifications.iter().all(|it| it["method"] != "notifications/message"));
    let params = json!({
        "name": "search_notes",
        "arguments": {"query": "green"},
        "_meta": {"progressToken": "mine"},
    });
    host.ask("tools/call", params);
    let progress = host.notification("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "mine");

    host.ask("logging/setLevel", json!({"level": "debug"}));
    host.ok("read_note", json!({"identifier": "Tea"}));
    let message = host.notification("notifications/message");
    assert_eq!(message["params"]["data"], "read_note: done");
}

#[test]
fn a_cancelled_call_changes_nothing_and_others_go_on() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let call = json!({"jsonrpc": "2.0", "id": 500, "method": "tools/call", "params": {
        "name": "search_notes", "arguments": {"query": "x"}}});
    host.send(&call);
    host.notify("notifications/cancelled", json!({"requestId": 500, "reason": "enough"}));
    host.notify("notifications/cancelled", json!({"requestId": 12345}));
    assert_eq!(host.ask("ping", json!({})), json!({}));
}

#[test]
fn prompts_bring_what_is_known() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    host.ok("write_note", json!({"title": "Tea", "content": "# Tea\n- [fact] green #best\n"}));
    let prompts = host.ask("prompts/list", json!({}));
    let names: Vec<_> =
        prompts["prompts"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    let expected =
        ["memory_guide", "continue_conversation", "recent_activity", "search_knowledge_base"];
    assert_eq!(names, expected);
    let mut text = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        let prompt = host.ask("prompts/get", params);
        prompt["messages"][0]["content"]["text"].as_str().unwrap().to_owned()
    };
    let guide = text("memory_guide", json!({}));
    for word in
        ["Protocol", "/memories/projects/", "build_context", "- [decision]", "relation_type"]
    {
        assert!(guide.contains(word), "{word}");
    }
    assert!(text("continue_conversation", json!({"topic": "green"})).contains("/Tea.md"));
    assert!(text("continue_conversation", json!({})).contains("/Tea.md"));
    assert!(text("recent_activity", json!({"timeframe": "1d"})).contains("created Tea"));
    assert!(text("search_knowledge_base", json!({"query": "green"})).contains("/Tea.md"));
    let missing = host.raw("prompts/get", json!({"name": "search_knowledge_base"}));
    assert_eq!(missing["error"]["code"], -32602);
    let unknown = host.raw("prompts/get", json!({"name": "nothing"}));
    assert_eq!(unknown["error"]["code"], -32602);
}

#[test]
fn instructions_name_only_tools_that_are_offered() {
    let quipu = Quipu::empty();
    for arguments in
        [&["--tools", "memory"][..], &["--read-only"], &["--tools", "read_note,edit_note"], &[]]
    {
        let mut host = Host::silent(&quipu, arguments);
        let about = host.initialize("2025-11-25");
        let text = about["instructions"].as_str().expect("a text");
        let offered = host.tools();
        for tool in
            ["search_notes", "build_context", "recent_activity", "read_note", "note_history"]
        {
            let is_possible = offered.iter().any(|name| name == tool);
            assert!(is_possible || !text.contains(tool), "{arguments:?}: {text}");
        }
        let has_memory = offered.iter().any(|name| name == "memory");
        assert_eq!(text.contains("memory tool"), has_memory, "{arguments:?}: {text}");
        let is_written = !arguments.contains(&"--read-only");
        assert_eq!(text.contains("Record as you go"), is_written, "{arguments:?}: {text}");
        assert_eq!(text.contains("but not change it"), !is_written, "{arguments:?}: {text}");
    }
}

#[test]
fn instructions_tell_the_protocol_and_the_stores() {
    let quipu = Quipu::empty();
    quipu.ok(&["store", "create", "team", "--description", "What the team knows."]);
    let mut host = Host::silent(&quipu, &["--store", "team:ro", "--store", "own"]);
    let about = host.initialize("2025-06-18");
    let text = about["instructions"].as_str().unwrap();
    assert!(text.starts_with("You have a memory"), "{text}");
    assert!(text.contains("- team (default, read only): What the team knows."), "{text}");
    assert!(text.contains("- own (read and write)"), "{text}");

    std::fs::write(quipu.data().join("quipu.toml"), "[mcp]\ninstructions = 'Be brief.'\n").unwrap();
    let about = Host::silent(&quipu, &[]).initialize("2025-06-18");
    assert!(about["instructions"].as_str().unwrap().starts_with("Be brief.\n"));
}

#[test]
fn the_server_exits_at_end_of_input() {
    let quipu = Quipu::empty();
    assert_eq!(Host::silent(&quipu, &[]).close(), 0);
    assert_eq!(Host::new(&quipu, &[]).close(), 0);
}

#[test]
fn nonsense_is_answered_and_the_server_goes_on() {
    let quipu = Quipu::empty();
    let mut host = Host::new(&quipu, &[]);
    let unknown = host.raw("tools/call", json!({"name": "nothing", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    let method = host.raw("nothing/at/all", json!({}));
    assert_eq!(method["error"]["code"], -32601);
    host.send(&json!("not a message"));
    assert_eq!(host.ask("ping", json!({})), json!({}));
    for (tool, arguments) in [
        ("read_note", json!({})),
        ("read_note", json!({"identifier": {"a": 1}})),
        ("write_note", json!({"title": "x"})),
        ("write_note", json!({"title": "x", "content": "y", "directory": "../../etc"})),
        ("search_notes", json!({"query": "x", "page": "many"})),
        ("search_notes", json!({"query": "x", "metadata_filters": {"a": {"$near": 1}}})),
        ("edit_note", json!({"identifier": "x", "operation": "explode"})),
        ("memory", json!({"command": "explode"})),
        ("note_history", json!({"identifier": "x", "project": "none"})),
    ] {
        host.refusal(tool, arguments);
    }
}

/// Hosts show the log to people.
#[test]
fn a_host_that_disconnects_is_not_logged() {
    let quipu = Quipu::empty();
    for _ in 0..5 {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut host = Host::with_log(&quipu, &[], log.reopen().expect("it opens").into());
        host.initialize("2025-11-25");
        host.ok("list_memory_projects", json!({}));
        assert_eq!(host.close(), 0);
        let log = std::fs::read_to_string(log.path()).expect("it can be read");
        assert_eq!(log, "");
    }
}
