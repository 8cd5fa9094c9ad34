//! `quipu rules`: the rules that hosts ask before their agents act, for the people who write them.

use std::io::Read as _;

use quipu_core::engine::NewStore;
use quipu_core::model::{Content, Description, MemoryPath, Name, StorePolicy, Writers};
use quipu_core::{Error, ErrorKind};
use quipu_rules::{Call, Cause, Rule, RuleFindingKind, ToolKind, ToolPattern};
use serde_json::{Value, json};

use super::hook::{Input, LoadedRules, Loader, Reading, call_of};
use crate::args::{RulesCheckArguments, RulesCommand, RulesInitArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::print::{answer, note};

/// How much of an input is read.
const INPUT_SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(super) fn run(context: &Context, command: &RulesCommand) -> Result<(), Failure> {
    match command {
        RulesCommand::Init(arguments) => init(context, arguments),
        RulesCommand::List => list(context),
        RulesCommand::Check(arguments) => check(context, arguments),
    }
}

fn loaded(context: &Context) -> Result<LoadedRules, Failure> {
    let failing = context.settings.rules.failing()?;
    let loader = Loader::new(&context.settings, failing, Reading::Fresh);
    let loaded = loader.load(&context.open()?)?;
    if loaded.stores.is_empty() {
        note("no store is reserved for people; `quipu rules init` creates one");
    }
    Ok(loaded)
}

/// Creates a store that only people can change, with rules that keep an agent from going around it.
fn init(context: &Context, arguments: &RulesInitArguments) -> Result<(), Failure> {
    let data = context.open_or_create()?;
    let new = NewStore {
        description: Description::new(DESCRIPTION).map_err(Error::from)?,
        policy: StorePolicy { writers: Writers::People, ..StorePolicy::default() },
        ..NewStore::named(Name::new(arguments.name.as_str()).map_err(Error::from)?)
    };
    let store = match data.engine.find_store(data.workspace, &arguments.name) {
        Err(error) if *error.kind() == ErrorKind::NotFound => {
            data.engine.ensure_store(data.workspace, &new)?
        }
        found => found?,
    };
    if store.policy.writers != Writers::People {
        let message = format!("the store `{}` exists, and everyone can change it", store.name);
        return Err(Failure::from(Error::invalid(message)).with_hint(format!(
            "`quipu store update {} --writers people` reserves it",
            store.name
        )));
    }
    let mut created = Vec::new();
    for (path, text) in STARTERS {
        let path = MemoryPath::parse(path).map_err(Error::from)?;
        let text = text.replace("{store}", &pattern_of(store.name.as_str()));
        let content = Content::new(text).map_err(Error::from)?;
        match data.engine.create(&data.actor, store.id, &path, &content) {
            Ok(written) => created.push(written.memory.path.to_string()),
            Err(error) if matches!(error.kind(), ErrorKind::PathConflict { .. }) => {
                note(&format!("`{path}` was left unchanged: {}", error.message()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let body = json!({ "store": store.id.to_string(), "created": created });
    answer(context.form, &body, |out| {
        for path in &created {
            writeln!(out, "{path}")?;
        }
        writeln!(
            out,
            "only people can change `{}`; every note in it with a `rule` field is a rule",
            store.name
        )?;
        writeln!(
            out,
            "`quipu hook install HOST` makes a host ask them, `quipu rules check` tries them out"
        )
    })
}

/// Returns an expression that matches a name as a word, for the single quotes of YAML.
fn pattern_of(name: &str) -> String {
    let mut pattern = String::new();
    for letter in name.chars() {
        if !letter.is_alphanumeric() && !letter.is_whitespace() {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.replace('\'', "''")
}

fn list(context: &Context) -> Result<(), Failure> {
    let loaded = loaded(context)?;
    let body: Vec<Value> = loaded.set.rules.iter().map(|rule| described(rule, &loaded)).collect();
    answer(context.form, &body, |out| {
        for rule in &loaded.set.rules {
            writeln!(out, "{:5} {}  {}", rule.decision, rule.name, summary(rule))?;
        }
        for broken in &loaded.set.broken {
            writeln!(out, "broken {}  {broken}", broken.name)?;
        }
        for default in &loaded.set.defaults {
            writeln!(out, "{default}")?;
        }
        Ok(())
    })
}

fn described(rule: &Rule, loaded: &LoadedRules) -> Value {
    let watched = rule.watched().into_iter().map(|it| (it.field.to_owned(), json!(it.patterns)));
    json!({
        "rule": rule.name,
        "version": loaded.version(&rule.name).map(|version| version.to_string()),
        "tools": rule.tools.iter().map(ToolPattern::to_string).collect::<Vec<_>>(),
        "patterns": watched.collect::<serde_json::Map<_, _>>(),
        "decision": rule.decision.to_string(),
        "fail": rule.failing.map(|failing| failing.to_string()),
        "reason": rule.reason,
    })
}

/// Returns what a rule is about, on one line.
fn summary(rule: &Rule) -> String {
    let tools: Vec<_> = rule.tools.iter().map(ToolPattern::to_string).collect();
    let mut parts = vec![tools.join("|")];
    for watched in rule.watched() {
        parts.push(format!("{} {}", watched.field, watched.patterns.join(" | ")));
    }
    parts.extend(rule.failing.map(|failing| format!("fails {failing}")));
    parts.join(", ")
}

fn check(context: &Context, arguments: &RulesCheckArguments) -> Result<(), Failure> {
    let loaded = loaded(context)?;
    match call(context, arguments)? {
        Some(call) => explain(context, &loaded, &call),
        None => find(context, &loaded),
    }
}

/// Prints what is wrong with the rules.
fn find(context: &Context, loaded: &LoadedRules) -> Result<(), Failure> {
    let findings = loaded.set.findings();
    let body: Vec<_> = findings
        .iter()
        .map(|it| json!({"rule": it.rule, "kind": it.kind.to_string(), "message": it.message}))
        .collect();
    answer(context.form, &body, |out| {
        for finding in &findings {
            writeln!(out, "{:8} {}  {}", finding.kind, finding.rule, finding.message)?;
        }
        for default in &loaded.set.defaults {
            writeln!(out, "{default}")?;
        }
        let count = loaded.set.rules.len();
        writeln!(out, "{count} rules, {} findings", findings.len())
    })?;
    let broken_count = findings.iter().filter(|it| it.kind == RuleFindingKind::Broken).count();
    if broken_count > 0 { Err(Failure::unsound(broken_count)) } else { Ok(()) }
}

/// Prints what rules decide about a call, and why.
fn explain(context: &Context, loaded: &LoadedRules, call: &Call) -> Result<(), Failure> {
    let verdict = loaded.set.decide(call);
    let decision =
        verdict.decision.map_or_else(|| "none".to_owned(), |decision| decision.to_string());
    let cause = |cause: &Cause| match cause {
        Cause::Matched => "matches".to_owned(),
        Cause::Broken(message) => format!("is broken and fails closed: {message}"),
        Cause::Unreadable => "the call cannot be read to its end, and it fails closed".to_owned(),
    };
    let matches: Vec<_> = verdict
        .matches
        .iter()
        .map(|it| {
            json!({
                "rule": it.rule, "decision": it.decision.to_string(), "cause": cause(&it.cause),
                "version": loaded.version(&it.rule).map(|version| version.to_string()),
            })
        })
        .collect();
    let body = json!({ "decision": decision, "matches": matches });
    answer(context.form, &body, |out| {
        writeln!(out, "decision: {decision}")?;
        for found in &verdict.matches {
            writeln!(out, "{:5} {}  {}", found.decision, found.rule, cause(&found.cause))?;
        }
        if let Some(first) = verdict.matches.first() {
            writeln!(out, "\n{}", first.reason)?;
        }
        Ok(())
    })
}

/// Returns the call that the command line describes, if it does.
fn call(context: &Context, arguments: &RulesCheckArguments) -> Result<Option<Call>, Failure> {
    let directory = std::env::current_dir()?.to_string_lossy().into_owned();
    let input = if let Some(file) = &arguments.input {
        let mut bytes = Vec::new();
        if file.as_os_str() == "-" {
            std::io::stdin().lock().take(INPUT_SIZE_BYTES_MAX).read_to_end(&mut bytes)?;
        } else {
            let failed = |error| Failure::usage(format!("cannot read {}: {error}", file.display()));
            let opened = std::fs::File::open(file).map_err(failed)?;
            opened.take(INPUT_SIZE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        }
        Input::parse(arguments.host, &bytes)?
    } else {
        let parts = [&arguments.tool, &arguments.command, &arguments.path, &arguments.content];
        if parts.iter().all(|part| part.is_none()) {
            return Ok(None);
        }
        let default = if arguments.command.is_some() { "Bash" } else { "Edit" };
        let tool = arguments.tool.as_deref().unwrap_or(default);
        let input = json!({
            "hook_event_name": "PreToolUse",
            "cwd": directory,
            "tool_name": tool,
            "tool_input": {
                "command": arguments.command, "file_path": arguments.path, "content": arguments.content,
            },
        });
        Input::parse(arguments.host, input.to_string().as_bytes())?
    };
    let mut call = call_of(&input, &context.settings);
    // What was not given is not there, although a tool of this kind would have it.
    if arguments.input.is_none() && call.kind != ToolKind::Edit {
        call.content.clone_from(&arguments.content);
    }
    Ok(Some(call))
}

const DESCRIPTION: &str = "\
Rules about what agents may do. Notes with a `rule` in their frontmatter are applied before each call of a tool.";

/// The first rules: they keep an agent from changing rules by another way than memory.
const STARTERS: [(&str, &str); 3] = [
    (
        "/hooks-stay.md",
        "\
---
rule:
  tool: [edit, shell, mcp]
  path: ['~/.claude/settings*.json', '.claude/settings*.json', '~/.codex/**', '.codex/**', '~/.cursor/hooks.json', '.cursor/hooks.json']
  decision: deny
---
# The settings of hooks stay as they are

They make sure that rules are asked. If they are in the way, say so and let a person change them.
",
    ),
    (
        "/memory-files-stay.md",
        "\
---
rule:
  tool: [edit, shell, mcp]
  path: ['quipu.db*', 'quipu.toml', 'index.db*']
  decision: deny
---
# The files of the memory are not edited

Use the tools of the memory, or the command `quipu` as your session.
",
    ),
    (
        "/rules-stay.md",
        "\
---
rule:
  tool: shell
  command:
    - quipu ** store **
    - quipu ** key **
    - quipu ** hook **
    - quipu ** restore-backup **
    - quipu ** move **
    - quipu ** migrate **
    - quipu ** ui **
    - quipu ** serve **
    - quipu ** rules **
    - '/quipu\\b.*\\bmemstore_/'
    - '/quipu\\b.*\\W{store}(\\W|$)/'
    - '/(^|\\W){store}\\W.*\\bquipu\\b/'
  decision: ask
---
# A person changes stores, keys, hooks and rules

On this machine, the command `quipu` acts for the person who has signed in.
",
    ),
];
