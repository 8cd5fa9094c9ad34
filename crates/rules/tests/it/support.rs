//! Rules and calls for tests.

use quipu_rules::{Call, Decision, Event, Failing, ParsedRule, Rule, RuleSet, ToolKind};

/// Returns a set of rules, each given as the lines of its `rule` field.
pub(crate) fn rules(fields: &[&str]) -> RuleSet {
    let mut set = RuleSet::default();
    for (number, fields) in fields.iter().enumerate() {
        set.add(parsed(&format!("/{number}.md"), fields));
    }
    set
}

pub(crate) fn parsed(name: &str, fields: &str) -> ParsedRule {
    let fields = fields.replace('\n', "\n  ");
    Rule::parse(name, &format!("---\nrule:\n  {fields}\n---\n# Rule {name}\n\nBecause.\n"))
}

pub(crate) fn message(fields: &str) -> String {
    match parsed("/r.md", fields) {
        ParsedRule::Broken(error) => error.message,
        ParsedRule::Other | ParsedRule::Rule(_) | ParsedRule::Default(_) => {
            panic!("{fields} is not broken")
        }
    }
}

pub(crate) fn shell(command: &str) -> Call {
    Call { command: Some(command.to_owned()), ..call("Bash", ToolKind::Shell) }
}

pub(crate) fn edit(path: &str, content: &str) -> Call {
    Call {
        paths: vec![path.to_owned()],
        content: Some(content.to_owned()),
        ..call("Edit", ToolKind::Edit)
    }
}

pub(crate) fn call(tool: &str, kind: ToolKind) -> Call {
    Call {
        directory: "/work/app/src".to_owned(),
        roots: vec!["/work/app".to_owned()],
        home: "/home/ada".to_owned(),
        ..Call::new(Event::BeforeTool, tool, kind)
    }
}

/// Returns what one rule decides about a call.
pub(crate) fn decided(fields: &str, call: &Call) -> Option<Decision> {
    let set = rules(&[fields]);
    assert_eq!(set.broken, [], "{fields}");
    set.decide(call).decision
}

pub(crate) fn closed(fields: &[&str]) -> RuleSet {
    RuleSet { failing: Failing::Closed, ..rules(fields) }
}
