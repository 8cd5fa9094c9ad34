//! `quipu rules`: for the people who write rules.

use std::fs;

use serde_json::json;

use crate::support::Quipu;

#[test]
fn init_creates_a_reserved_store_whose_rules_protect_it() {
    let quipu = Quipu::empty();
    quipu.ok(&["rules", "init"]);
    assert!(quipu.ok(&["store", "show", "rules"]).contains("Writers:     people"));
    assert_eq!(quipu.ok(&["rules", "list"]).lines().count(), 3);
    assert!(quipu.ok(&["rules", "check"]).contains("3 rules, 0 findings"));
    for (arguments, decision) in [
        (["--path", "~/.claude/settings.json"], "deny"),
        (["--command", "sqlite3 ~/.local/share/quipu/quipu.db"], "deny"),
        (["--command", "quipu put --store rules /a.md"], "ask"),
        (["--command", "quipu store update x --writers everyone"], "ask"),
        (["--command", "quipu put /a.md"], "none"),
        (["--path", "src/main.rs"], "none"),
    ] {
        let all: Vec<_> = ["rules", "check"].into_iter().chain(arguments).collect();
        let shown = quipu.ok(&all);
        assert!(shown.starts_with(&format!("decision: {decision}\n")), "{arguments:?}: {shown}");
    }
    // Under whatever name, the store is protected, and by tools of MCP, too.
    for name in ["policy", "team-rules.2", "Règles d'or"] {
        let named = Quipu::empty();
        named.ok(&["rules", "init", name]);
        let checked = |arguments: &[&str]| {
            let shown = named.ok(&[&["rules", "check"][..], arguments].concat());
            shown.lines().next().unwrap_or_default().to_owned()
        };
        for command in [
            format!("quipu -s \"{name}\" put /hooks-stay.md"),
            format!("QUIPU_STORE=\"{name}\" quipu put /hooks-stay.md"),
            "quipu rules init other".to_owned(),
            "quipu -s memstore_01 rm /hooks-stay.md".to_owned(),
        ] {
            assert_eq!(checked(&["--command", &command]), "decision: ask", "{command}");
        }
        assert_eq!(checked(&["--command", "quipu -s notes put /a.md"]), "decision: none");
        let moved = json!({
            "hook_event_name": "PreToolUse",
            "cwd": "/tmp",
            "tool_name": "mcp__filesystem__move_file",
            "tool_input": {"source": "a", "destination": "/tmp/.claude/settings.json"},
        });
        let ran = named.run_with(&["rules", "check", "--input", "-"], moved.to_string().as_bytes());
        assert!(ran.out.starts_with("decision: deny\n"), "{ran:?}");
    }
    // Again, what is there stays.
    let again = quipu.run(&["rules", "init"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.err.contains("left unchanged"), "{again:?}");
    let open = Quipu::with_store();
    let refused = open.run(&["rules", "init", "notes"]);
    assert!(refused.err.contains("--writers people"), "{refused:?}");
}

#[test]
fn check_lists_what_is_wrong_and_fails_for_broken_rules() {
    let quipu = Quipu::empty();
    quipu.ok(&["store", "create", "rules", "--writers", "people"]);
    let rule = |path: &str, fields: &str| {
        let text = format!("---\nrule: {{ {fields} }}\n---\nBecause.\n");
        assert_eq!(quipu.run_with(&["put", path], text.as_bytes()).code, 0);
    };
    rule("/one.md", "tool: shell, command: rm, decision: deny");
    rule("/two.md", "tool: shell, command: rm, decision: ask");
    rule("/three.md", "tool: edit, command: rm, decision: deny");
    let shown = quipu.ok(&["rules", "check"]);
    for part in ["conflict rules:/one.md", "conflict rules:/two.md", "dead     rules:/three.md"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    rule("/four.md", "decision: perhaps");
    let ran = quipu.run(&["rules", "check"]);
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(
        ran.out.contains("broken   rules:/four.md") && ran.out.contains("it fails open"),
        "{ran:?}"
    );
    fs::write(quipu.data().join("quipu.toml"), "[rules]\nfail = \"closed\"\n")
        .expect("it is written");
    assert!(quipu.run(&["rules", "check"]).out.contains("it fails closed"));
    assert!(quipu.ok(&["rules", "check", "--path", "x"]).starts_with("decision: deny"));
    let input =
        json!({"hook_event_name": "beforeShellExecution", "command": "rm x", "cwd": "/tmp"});
    let ran = quipu.run_with(
        &["rules", "check", "--host", "cursor", "--input", "-"],
        input.to_string().as_bytes(),
    );
    assert!(ran.out.contains("deny  rules:/one.md  matches"), "{ran:?}");
}
