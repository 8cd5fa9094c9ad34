//! What rules decide about calls.

use quipu_rules::{Call, Cause, Decision, Event, Failing, ParsedRule, Rule, ToolKind};

use crate::support::{call, closed, decided, edit, message, parsed, rules, shell};

const MIGRATIONS: &str = "tool: edit\npath: migrations/**\ndecision: deny";

#[test]
fn a_path_is_compared_below_the_root() {
    for path in [
        "/work/app/migrations/1.sql",
        "../migrations/1.sql",
        "/work/app/src/../migrations/a/b.sql",
        "/work//app/./migrations/1.sql",
        "/work/app/Migrations/1.SQL",
        "/work/app/migrations",
        "../migrations/1.sql\0.txt",
    ] {
        assert_eq!(decided(MIGRATIONS, &edit(path, "")), Some(Decision::Deny), "{path:?}");
    }
    for path in
        ["/work/app/migrations.md", "/work/other/migrations/1.sql", "/work/app/x/migrations/1.sql"]
    {
        assert_eq!(decided(MIGRATIONS, &edit(path, "")), None, "{path}");
    }
    // Without a slash it is a name, wherever it is.
    let names = "path: '*.pem'\ndecision: ask";
    assert_eq!(decided(names, &edit("/etc/ssl/a.pem", "")), Some(Decision::Ask));
    let whole = "path: ['/etc/**', '~/.ssh/**']\ndecision: deny";
    assert_eq!(decided(whole, &edit("/etc/hosts", "")), Some(Decision::Deny));
    assert_eq!(decided(whole, &edit("~/.ssh/config", "")), Some(Decision::Deny));
    assert_eq!(decided(whole, &edit("/home/ada/.ssh/config", "")), Some(Decision::Deny));
    assert_eq!(decided(whole, &edit("/work/etc/hosts", "")), None);
}

#[test]
fn composed_and_decomposed_names_are_equal() {
    let rule = "path: 'Café/**'\ndecision: deny";
    assert_eq!(decided(rule, &edit("/work/app/cafe\u{301}/a", "")), Some(Decision::Deny));
}

#[test]
fn a_pattern_can_exclude() {
    let rule = "path: ['docs/**', '!docs/drafts/**', '!*.txt']\ndecision: deny";
    assert_eq!(decided(rule, &edit("../docs/a.md", "")), Some(Decision::Deny));
    assert_eq!(decided(rule, &edit("../docs/drafts/a.md", "")), None);
    assert_eq!(decided(rule, &edit("../docs/a.txt", "")), None);
}

#[test]
fn paths_in_commands_are_seen_where_they_are_used() {
    let rule = "tool: shell\npath: migrations/**\ndecision: deny";
    for command in [
        "rm /work/app/migrations/1.sql",
        "cd .. && rm migrations/1.sql",
        "cd /work/app; cat < migrations/1.sql",
        "echo x > ../migrations/1.sql",
        "cp a --target-directory=../migrations",
        "rm -r ../migrations",
        "bash -c 'cd .. ; sed -i s/a/b/ migrations/1.sql'",
        "(cd ../migrations; touch 2.sql)",
        "cd ../migrations && rm ./1.sql",
        "dd of=../migrations/1.sql",
        "scp host:a ../migrations/b",
        "tee '../migra'tions/1.sql",
    ] {
        assert_eq!(decided(rule, &shell(command)), Some(Decision::Deny), "{command}");
    }
    for command in ["ls ..", "rm migrations/1.sql", "echo migrations"] {
        assert_eq!(decided(rule, &shell(command)), None, "{command}");
    }
}

#[test]
fn what_patterns_cannot_see_stays_unseen() {
    // The rows of the table in `docs/rules.md`; a test keeps it honest.
    let by_path = "tool: shell\npath: migrations/**\ndecision: deny";
    let by_command = "tool: shell\ncommand: rm\ndecision: deny";
    for (rule, command) in [
        (by_path, "d=migrations; rm ../$d/1.sql"),
        (by_path, "rm ../migra*/1.sql"),
        (by_path, "rm ../{migrations,x}/1.sql"),
        (by_command, "python -c 'import os; os.remove(\"x\")'"),
        (by_path, "make -C .. clean"),
        (by_path, "git checkout -- ."),
        (by_command, "./cleanup.sh"),
        (by_command, "alias r=rm; r x"),
        (by_command, "echo 'rm x' | sh"),
        (by_command, "x() { r\"\"m_; }; x"),
        (by_path, "cp -t../migrations a"),
        (by_path, "tar -C ../migrations -xf a 1.sql --"),
        (by_path, "rm -r .."),
    ] {
        // `tar -C` names the directory, so that one is seen.
        let expected = command.starts_with("tar").then_some(Decision::Deny);
        assert_eq!(decided(rule, &shell(command)), expected, "{command}");
    }
}

#[test]
fn a_command_is_judged_in_each_directory_that_it_may_run_in() {
    let rule = "tool: shell\npath: migrations/**\ndecision: deny";
    let elsewhere =
        |directory: &str| Call { elsewhere: vec![directory.to_owned()], ..shell("rm 0001.sql") };
    assert_eq!(decided(rule, &elsewhere("/work/app/docs")), None);
    assert_eq!(decided(rule, &elsewhere("/work/app/migrations")), Some(Decision::Deny));
}

#[test]
fn a_tool_can_have_several_names_and_kinds() {
    let patch = Call { also: Some(ToolKind::Edit), ..shell("apply_patch") };
    assert_eq!(decided("tool: edit\ndecision: deny", &patch), Some(Decision::Deny));
    assert_eq!(decided("tool: shell\ndecision: deny", &patch), Some(Decision::Deny));
    assert_eq!(decided("tool: read\ndecision: deny", &patch), None);
    let aliased =
        Call { aliases: vec!["mcp__github__push".to_owned()], ..call("push", ToolKind::Mcp) };
    assert_eq!(decided("tool: 'mcp__github__*'\ndecision: deny", &aliased), Some(Decision::Deny));
    assert_eq!(decided("tool: push\ndecision: deny", &aliased), Some(Decision::Deny));
    assert_eq!(decided("tool: 'mcp__gitlab__*'\ndecision: deny", &aliased), None);
}

#[test]
fn words_of_a_command_are_compared_from_its_beginning() {
    let rule = "command: git push ** --force*\ndecision: deny";
    for command in [
        "git push --force",
        "git push origin main --force-with-lease",
        "/usr/bin/git push -v --force x",
        "cd x && GIT_SSH=y git push --force",
        "bash -c \"git push --force\"",
        "git -C x push --force",
        "git --no-pager -c a=b push --force",
    ] {
        assert_eq!(decided(rule, &shell(command)), Some(Decision::Deny), "{command}");
    }
    for command in ["git push", "git pull --force", "echo git push --force"] {
        assert_eq!(decided(rule, &shell(command)), None, "{command}");
    }
    assert_eq!(
        decided("command: '** drop'\ndecision: deny", &shell("psql -c drop table")),
        Some(Decision::Deny)
    );
    assert_eq!(
        decided("command: ./deploy *\ndecision: ask", &shell("./deploy prod")),
        Some(Decision::Ask)
    );
    assert_eq!(decided("command: ./deploy *\ndecision: ask", &shell("./deploy")), None);
}

#[test]
fn an_expression_sees_the_command_as_written_and_without_quotes() {
    let rule = "command: /(?i)drop +table/\ndecision: deny";
    for command in ["psql -c 'DROP  TABLE x'", "echo \"drop ta\"ble | psql"] {
        assert_eq!(decided(rule, &shell(command)), Some(Decision::Deny), "{command}");
    }
}

#[test]
fn all_fields_must_fit_and_any_pattern_of_one() {
    let rule = "tool: [edit, 'mcp__files__*']\npath: ['*.rs', '*.toml']\ncontent: ['unwrap\\(\\)', 'panic!']\ndecision: warn";
    assert_eq!(decided(rule, &edit("a.rs", "x.unwrap()")), Some(Decision::Warn));
    assert_eq!(decided(rule, &edit("a.toml", "panic!")), Some(Decision::Warn));
    assert_eq!(decided(rule, &edit("a.md", "panic!")), None);
    assert_eq!(decided(rule, &edit("a.rs", "fine")), None);
    let mcp = Call {
        tool: "mcp__files__write".to_owned(),
        kind: ToolKind::Mcp,
        ..edit("a.rs", "panic!")
    };
    assert_eq!(decided(rule, &mcp), Some(Decision::Warn));
    assert_eq!(decided(rule, &Call { tool: "mcp__other__write".to_owned(), ..mcp }), None);
}

#[test]
fn the_strongest_decision_counts_and_all_are_named() {
    let set = rules(&[
        "decision: warn",
        "decision: deny",
        "tool: shell\ndecision: ask",
        "tool: edit\ndecision: deny",
    ]);
    let verdict = set.decide(&shell("ls"));
    assert_eq!(verdict.decision, Some(Decision::Deny));
    let names: Vec<_> = verdict.matches.iter().map(|found| found.rule.as_str()).collect();
    assert_eq!(names, ["/1.md", "/2.md", "/0.md"]);
    assert_eq!(verdict.matches.first().unwrap().reason, "# Rule /1.md\n\nBecause.");
}

#[test]
fn prompts_have_rules_of_their_own() {
    let rule = "event: prompt\ncontent: (?i)password\ndecision: warn";
    let prompt = Call {
        content: Some("my Password".to_owned()),
        ..Call::new(Event::Prompt, "", ToolKind::Other)
    };
    assert_eq!(decided(rule, &prompt), Some(Decision::Warn));
    assert_eq!(decided(rule, &edit("a", "password")), None);
    assert_eq!(decided("decision: deny", &prompt), None);
}

#[test]
fn a_broken_rule_fails_as_it_says_or_as_the_set_does() {
    let broken =
        ["decision: never", "decision: never\nfail: closed", "decision: never\nfail: open"];
    let open = rules(&broken);
    let names = |set: &quipu_rules::RuleSet| -> Vec<String> {
        set.decide(&shell("ls")).matches.into_iter().map(|found| found.rule).collect()
    };
    assert_eq!(names(&open), ["/1.md"]);
    assert_eq!(names(&closed(&broken)), ["/0.md", "/1.md"]);
    let verdict = closed(&broken).decide(&shell("ls"));
    assert!(matches!(verdict.matches.first().unwrap().cause, Cause::Broken(_)));
}

#[test]
fn a_broken_expression_matters_only_where_the_rule_would_need_it() {
    let set = closed(&[
        "tool: shell\ncommand: /(/\ndecision: deny",
        "tool: edit\npath: a.rs\ncontent: '['\ndecision: ask",
    ]);
    assert_eq!(set.decide(&shell("ls")).decision, Some(Decision::Deny));
    assert_eq!(set.decide(&edit("a.rs", "x")).decision, Some(Decision::Ask));
    assert_eq!(set.decide(&edit("b.rs", "x")).decision, None);
    assert_eq!(rules(&["command: /(/\ndecision: deny"]).decide(&shell("ls")).decision, None);
}

#[test]
fn a_call_that_cannot_be_read_to_its_end_fails_as_the_rule_says() {
    let fields = "command: rm\nfail: closed\ndecision: deny";
    let long = format!("echo {} ; rm x", "a".repeat(70_000));
    assert_eq!(rules(&[fields]).decide(&shell(&long)).decision, Some(Decision::Deny));
    assert_eq!(rules(&["command: rm\ndecision: deny"]).decide(&shell(&long)).decision, None);
    let content = "tool: edit\ncontent: secret\nfail: closed\ndecision: ask";
    assert_eq!(decided(content, &edit("a", &"a".repeat(300_000))), Some(Decision::Ask));
}

#[test]
fn notes_that_are_no_rules_are_left_alone() {
    for text in ["", "# Tea", "---\ntitle: Tea\n---\n", "---\n: [\n---\n", "---\nrule"] {
        assert!(matches!(Rule::parse("/a.md", text), ParsedRule::Other), "{text}");
    }
}

#[test]
fn what_means_to_be_a_rule_and_is_none_is_said() {
    assert!(message("decision: maybe").contains("`deny`, `ask` or `warn`, not `maybe`"));
    assert!(message("path: a").contains("`decision` is missing"));
    assert!(message("path: '!a'\ndecision: deny").contains("only excludes"));
    assert!(message("path: []\ndecision: deny").contains("`path` is empty"));
    assert!(message("path: { a: b }\ndecision: deny").contains("a text or a list"));
    assert!(message("paht: a\ndecision: deny").contains("`paht` is not a field"));
    assert!(message("event: after\ndecision: deny").contains("`before_tool` or `prompt`"));
    assert!(message("fail: never\ndecision: deny").contains("`open` or `closed`"));
    let many = format!("path: [{}]\ndecision: deny", "a,".repeat(65));
    assert!(message(&many).contains("at most 64"));
    assert!(
        message(&format!("path: {}\ndecision: deny", "a".repeat(1001))).contains("longer than")
    );
    for text in [
        "---\nrule: deny\n---\ntext",
        "---\nrule:\n  a: [\n---\ntext",
        "---\nrule: {decision: deny}\n---\n",
    ] {
        assert!(matches!(Rule::parse("/a.md", text), ParsedRule::Broken(_)), "{text}");
    }
}

#[test]
fn long_reasons_are_cut() {
    let text = format!("---\nrule: {{decision: deny, fail: closed}}\n---\n{}", "ü".repeat(3000));
    let ParsedRule::Rule(rule) = Rule::parse("/a.md", &text) else { panic!("it is a rule") };
    assert_eq!(rule.reason.chars().count(), 2002);
    assert_eq!(rule.failing, Some(Failing::Closed));
}

#[test]
fn hostile_calls_are_decided() {
    let set = closed(&[
        MIGRATIONS,
        "command: '** ** * ** a'\ndecision: deny",
        "path: '**/*a*/**/*b*'\ndecision: ask",
    ]);
    for text in [
        "a ".repeat(30_000),
        "../".repeat(20_000),
        "\0".repeat(1000),
        "'".to_owned(),
        "\u{202e}".repeat(100),
    ] {
        set.decide(&shell(&text));
        set.decide(&edit(&text, &text));
    }
    let many = Call { paths: vec!["a".repeat(5000); 5000], ..call("x", ToolKind::Other) };
    set.decide(&many);
    assert!(matches!(parsed("/a.md", "decision: deny"), ParsedRule::Rule(_)));
}

#[test]
fn no_prompt_is_refused_because_a_rule_is_broken_or_cannot_read_it() {
    let prompt = Call {
        content: Some("ü".repeat(200_000)),
        ..Call::new(Event::Prompt, "", ToolKind::Other)
    };
    let set = closed(&[
        "decision: never\nfail: closed",
        "event: prompt\ncontent: /(/\nfail: closed\ndecision: deny",
        "event: prompt\ncontent: tea\nfail: closed\ndecision: deny",
    ]);
    assert_eq!(set.decide(&prompt).decision, None);
    // What is there is still seen.
    let prompt = Call { content: Some("green tea".to_owned()), ..prompt };
    assert_eq!(set.decide(&prompt).decision, Some(Decision::Deny));
}
