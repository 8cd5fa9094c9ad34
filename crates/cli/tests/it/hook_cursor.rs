//! What Cursor is answered: always JSON, and for what it asks, since it takes silence for a denial.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hook::Home;

/// The fields that Cursor's schema has for the answer to an event.
fn known_fields(event: &str) -> &'static [&'static str] {
    match event {
        "preToolUse" | "beforeShellExecution" | "beforeMCPExecution" => {
            &["permission", "user_message", "agent_message"]
        }
        "beforeSubmitPrompt" => &["continue", "user_message"],
        "sessionStart" => &["additional_context"],
        "stop" => &["followup_message"],
        _ => &[],
    }
}

#[track_caller]
fn require_valid(event: &str, answer: &Value) {
    let fields = answer.as_object().expect("an object");
    for (name, value) in fields {
        assert!(known_fields(event).contains(&name.as_str()), "{event}: {answer}");
        assert!(value.is_string() || value.is_boolean(), "{event}: {answer}");
    }
    match event {
        "preToolUse" | "beforeShellExecution" | "beforeMCPExecution" => {
            let word = answer["permission"].as_str().expect("a permission");
            assert!(["allow", "deny", "ask"].contains(&word), "{event}: {answer}");
        }
        "beforeSubmitPrompt" => assert!(answer["continue"].is_boolean(), "{event}: {answer}"),
        _ => {}
    }
}

#[test]
fn every_event_gets_an_answer_of_its_schema_whatever_rules_say() {
    let home = Home::new();
    home.quipu.put("/progress.md", "# Progress\n\n## One\n\n- Learned: nothing.\n");
    let tools = "tool: [edit, shell, mcp]\n  path: migrations/**\n  decision";
    for decision in ["deny", "ask", "warn"] {
        home.rule("/migrations.md", &format!("---\nrule:\n  {tools}: {decision}\n---\nNo.\n"));
        home.rule(
            "/prompt.md",
            &format!(
                "---\nrule:\n  event: prompt\n  content: tea\n  decision: {decision}\n---\nNo.\n"
            ),
        );
        for (verb, name) in Home::fixtures("cursor") {
            let input = home.fixture("cursor", &name);
            let event = input["hook_event_name"].as_str().expect("an event").to_owned();
            require_valid(&event, &home.answer(verb, "cursor", &input));
        }
    }
    home.quipu.ok(&["-s", "rules", "rm", "/migrations.md", "/prompt.md"]);
    for (verb, name) in Home::fixtures("cursor") {
        let input = home.fixture("cursor", &name);
        let event = input["hook_event_name"].as_str().expect("an event").to_owned();
        let answer = home.answer(verb, "cursor", &input);
        require_valid(&event, &answer);
        let is_context = answer["additional_context"].is_string();
        assert!(is_context || answer == home.silence("cursor", &name), "{name}: {answer}");
    }
}

#[test]
fn a_failure_is_an_answer_too() {
    let home = Home::new();
    fs::write(home.quipu.data().join("quipu.toml"), "colour = 7").expect("it can be written");
    for (verb, name) in Home::fixtures("cursor") {
        let input = home.fixture("cursor", &name).to_string();
        for (more, code) in [(vec![], 0), (vec!["--new"], 0), (vec!["--fail", "open"], 0)] {
            let all = [&["hook", verb, "--host", "cursor"][..], &more].concat();
            let ran = home.quipu.run_with(&all, input.as_bytes());
            assert_eq!(ran.code, code, "{all:?}: {ran:?}");
            let expected = if verb == "decide" {
                json!({"permission": "allow"})
            } else {
                json!({"continue": true})
            };
            assert_eq!(serde_json::from_str::<Value>(&ran.out).expect("JSON"), expected, "{ran:?}");
        }
        if verb == "decide" {
            let all = ["hook", verb, "--host", "cursor", "--fail", "closed"];
            let ran = home.quipu.run_with(&all, input.as_bytes());
            assert_eq!(ran.code, 2, "{ran:?}");
            let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
            assert_eq!(answer["permission"], "deny", "{ran:?}");
        }
    }
}

#[test]
fn an_input_that_never_ends_is_answered_at_the_deadline() {
    let home = Home::new();
    let started = [
        (vec!["hook", "run", "--host", "cursor"], "{\"continue\":true}\n"),
        (vec!["hook", "decide", "--host=cursor"], "{\"permission\":\"allow\"}\n"),
    ];
    let started = started.map(|(arguments, out)| {
        let mut command = home.quipu.command(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        (command.spawn().expect("it starts"), out)
    });
    for (mut child, out) in started {
        let input = child.stdin.take();
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), out.as_bytes()));
        drop(input);
    }
}

#[test]
fn it_is_answered_in_its_own_words_by_the_hooks_of_claude_code() {
    let home = Home::new();
    home.quipu.put("/progress.md", "# Progress\n\n## One\n\n- Learned: nothing.\n");
    let imported = |name: &str, event: &str| {
        let mut input = home.fixture("cursor", name);
        input["hook_event_name"] = json!(event);
        let verb = if event.to_lowercase() == "pretooluse" { "decide" } else { "run" };
        home.answer(verb, "claude-code", &input)
    };
    // Whichever name of the event Cursor passes on.
    for event in ["preToolUse", "PreToolUse"] {
        // There is no second event here, so a command is decided about at once.
        assert_eq!(imported("pre-tool-use-shell", event)["permission"], "deny");
        assert_eq!(imported("pre-tool-use-read", event), json!({"permission": "allow"}));
    }
    assert_eq!(imported("before-submit-prompt", "UserPromptSubmit"), json!({"continue": true}));
    assert!(imported("session-start", "SessionStart")["additional_context"].is_string());
    assert_eq!(imported("stop", "Stop"), json!({}));
    assert_eq!(home.log().len(), 2);
    assert!(home.log().iter().all(|line| line["host"] == "cursor"));
}

#[test]
fn with_hooks_of_both_it_is_told_and_reminded_once() {
    let home = Home::new();
    home.quipu.put("/progress.md", "# Progress\n\n## One\n\n- Learned: nothing.\n");
    let mut install = home.quipu.command(&["hook", "install", "cursor"]);
    install.env("HOME", home.path());
    assert_eq!(crate::support::run(install, b"").code, 0);
    let both = |verb: &str, name: &str| {
        let input = home.fixture("cursor", name);
        ["cursor", "claude-code"].map(|host| home.answer(verb, host, &input))
    };
    let [own, imported] = both("run", "session-start");
    assert!(own["additional_context"].is_string(), "{own}");
    assert_eq!(imported, json!({}));
    both("run", "after-file-edit");
    let [own, imported] = both("run", "stop");
    assert!(own["followup_message"].is_string(), "{own}");
    assert_eq!(imported, json!({}));
    // Both decide, since an entry in a file is no proof that the other one does; one of them logs.
    let [own, imported] = both("decide", "before-shell-execution");
    assert_eq!((&own["permission"], &imported["permission"]), (&json!("deny"), &json!("deny")));
    assert_eq!(home.log().len(), 1, "{:?}", home.log());
}
