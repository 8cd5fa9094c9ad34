//! What is wrong with rules that are valid one by one.

use quipu_rules::RuleFindingKind;

use crate::support::rules;

fn findings(fields: &[&str]) -> Vec<(String, RuleFindingKind)> {
    let found = rules(fields).findings();
    found.into_iter().map(|finding| (finding.rule, finding.kind)).collect()
}

#[test]
fn rules_that_say_the_same_are_fine_once() {
    assert_eq!(findings(&["path: a\ndecision: deny", "path: b\ndecision: deny"]), []);
    let twice = findings(&["path: a\ndecision: deny", "path: a\ndecision: deny"]);
    assert_eq!(twice, [("/1.md".to_owned(), RuleFindingKind::Dead)]);
}

#[test]
fn a_rule_behind_a_broader_and_stronger_one_is_dead() {
    let found = findings(&["path: [a, b]\ndecision: deny", "tool: edit\npath: a\ndecision: warn"]);
    assert_eq!(found, [("/1.md".to_owned(), RuleFindingKind::Dead)]);
    // The narrower one is stronger, so both count.
    assert_eq!(findings(&["path: a\ndecision: warn", "tool: edit\npath: a\ndecision: deny"]), []);
    // A list that excludes is not broader because it is longer.
    assert_eq!(findings(&["path: [a, '!b']\ndecision: deny", "path: [a]\ndecision: warn"]), []);
}

#[test]
fn different_decisions_about_the_same_calls_are_a_conflict() {
    let found = findings(&[
        "tool: shell\ncommand: rm\ndecision: ask",
        "command: rm\ntool: shell\ndecision: deny",
    ]);
    let conflict = |name: &str| (name.to_owned(), RuleFindingKind::Conflict);
    assert_eq!(found, [conflict("/0.md"), conflict("/1.md")]);
}

#[test]
fn a_rule_that_no_call_can_match_is_dead() {
    let dead = vec![("/0.md".to_owned(), RuleFindingKind::Dead)];
    for fields in [
        "tool: edit\ncommand: rm\ndecision: deny",
        "tool: [shell, read]\ncontent: x\ndecision: deny",
        "event: prompt\npath: a\ndecision: deny",
        "event: prompt\ntool: shell\ndecision: deny",
    ] {
        assert_eq!(findings(&[fields]), dead, "{fields}");
    }
    assert_eq!(findings(&["tool: [edit, shell]\ncommand: rm\ndecision: deny"]), []);
}

#[test]
fn broken_rules_come_first_with_what_they_do() {
    let set = rules(&[
        "path: a\ndecision: deny",
        "path: a\ndecision: deny",
        "decision: x\nfail: closed",
        "content: '('\ndecision: deny",
    ]);
    let messages: Vec<_> = set.findings().into_iter().map(|finding| finding.message).collect();
    assert!(messages.first().unwrap().ends_with("it fails closed"), "{messages:?}");
    assert!(messages.get(1).unwrap().ends_with("it fails open"), "{messages:?}");
    assert_eq!(messages.len(), 3);
}
