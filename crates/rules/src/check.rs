//! What is wrong with rules that are valid one by one.

use std::fmt;

use crate::rule::{Event, ToolPattern};
use crate::{Rule, RuleSet, ToolKind};

/// Something that a person should know about a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFinding {
    /// The rule.
    pub rule: String,
    /// What it is.
    pub kind: RuleFindingKind,
    /// What about it.
    pub message: String,
}

/// What kind of finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleFindingKind {
    /// It is not a rule, or one of its expressions is not valid.
    Broken,
    /// Another rule about the same calls decides otherwise.
    Conflict,
    /// It can never decide anything.
    Dead,
}

impl fmt::Display for RuleFindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Broken => "broken",
            Self::Conflict => "conflict",
            Self::Dead => "dead",
        })
    }
}

impl RuleSet {
    /// Returns what is wrong with the rules, as far as it can be told without a call: rules are compared by
    /// their patterns as written, so of two that match the same calls in different words nothing is said.
    pub fn findings(&self) -> Vec<RuleFinding> {
        let broken = self.broken.iter().map(|error| RuleFinding {
            rule: error.name.clone(),
            kind: RuleFindingKind::Broken,
            message: format!("{error}; it fails {}", error.failing.unwrap_or(self.failing)),
        });
        let mut findings: Vec<_> = broken.collect();
        for (place, rule) in self.rules.iter().enumerate() {
            findings.extend(self.finding(place, rule));
        }
        findings.sort_by(|one, other| (one.kind, &one.rule).cmp(&(other.kind, &other.rule)));
        findings
    }

    fn finding(&self, place: usize, rule: &Rule) -> Option<RuleFinding> {
        let of = |kind, message| Some(RuleFinding { rule: rule.name.clone(), kind, message });
        if let Some(problem) = rule.broken_expression() {
            let failing = rule.failing.unwrap_or(self.failing);
            return of(RuleFindingKind::Broken, format!("{problem}; it fails {failing}"));
        }
        if let Some(message) = impossible(rule) {
            return of(RuleFindingKind::Dead, message);
        }
        let others = self.rules.iter().enumerate().filter(|(other, _)| *other != place);
        for (other_place, other) in others {
            if !other.covers(rule) {
                continue;
            }
            let is_same = rule.covers(other);
            if is_same && other.decision != rule.decision {
                let message = format!(
                    "`{}` decides {} about the same calls; the stronger one counts",
                    other.name, other.decision
                );
                return of(RuleFindingKind::Conflict, message);
            }
            let is_shadowed = other.decision >= rule.decision && (!is_same || other_place < place);
            if is_shadowed {
                let message =
                    format!("`{}` decides {} about all of its calls", other.name, other.decision);
                return of(RuleFindingKind::Dead, message);
            }
        }
        None
    }
}

/// Returns why no call can match, if none can.
fn impossible(rule: &Rule) -> Option<String> {
    if rule.event == Event::Prompt {
        let needs_tool = !rule.paths.is_empty()
            || !rule.commands.is_empty()
            || rule.tools.iter().any(|tool| *tool != ToolPattern::Any);
        return needs_tool.then(|| "a prompt has no tool, path or command".to_owned());
    }
    let only = |has: fn(ToolKind) -> bool| {
        rule.tools.iter().all(|tool| match tool {
            ToolPattern::Any | ToolPattern::Name(_) => false,
            ToolPattern::Kind(kind) => !has(*kind),
        })
    };
    if !rule.commands.is_empty() && only(|kind| kind == ToolKind::Shell) {
        return Some("only `shell` has a command".to_owned());
    }
    if !rule.contents.is_empty()
        && only(|kind| matches!(kind, ToolKind::Edit | ToolKind::Mcp | ToolKind::Other))
    {
        return Some("only `edit` has new content".to_owned());
    }
    None
}

impl Rule {
    /// Returns whether it matches every call that another rule matches, as far as their texts show.
    fn covers(&self, other: &Self) -> bool {
        let includes = |own: &[&str], others: &[&str]| {
            own.is_empty() || (!others.is_empty() && others.iter().all(|it| own.contains(it)))
        };
        let fields = |rule: &Self| {
            rule.watched()
                .into_iter()
                .map(|it| (it.field, it.patterns))
                .collect::<std::collections::BTreeMap<_, _>>()
        };
        let (own, others) = (fields(self), fields(other));
        // A pattern that excludes makes a longer list match less.
        let excludes = |patterns: &[String]| patterns.iter().any(|it| it.starts_with('!'));
        let nothing = Vec::new();
        let all_fields = ["path", "command", "content"].iter().all(|field| {
            let (own, others) =
                (own.get(field).unwrap_or(&nothing), others.get(field).unwrap_or(&nothing));
            let texts = |patterns: &'_ [String]| -> Vec<String> { patterns.to_vec() };
            if *field == "path" && (excludes(own) || excludes(others)) {
                return own.is_empty() || texts(own) == texts(others);
            }
            let own: Vec<_> = own.iter().map(String::as_str).collect();
            let others: Vec<_> = others.iter().map(String::as_str).collect();
            includes(&own, &others)
        });
        let has_tools = self.tools.contains(&ToolPattern::Any)
            || other.tools.iter().all(|tool| self.tools.contains(tool));
        self.event == other.event && has_tools && all_fields
    }
}
