//! Rules as notes.

use std::fmt;

use quipu_notes::{Note, Value};

use crate::ToolKind;
use crate::glob::{Dialect, Glob};
use crate::matcher::{CommandPattern, PathPattern, TextPattern};
use crate::path::normalized;

/// How many patterns a field of a rule may have.
pub const PATTERNS_MAX: usize = 64;

/// How long a pattern may be.
const PATTERN_SIZE_BYTES_MAX: usize = 1000;

/// How much of a rule's text a model is shown.
const REASON_CHARS_MAX: usize = 2000;

/// What a rule is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Event {
    /// An agent is about to call a tool.
    #[default]
    BeforeTool,
    /// A person has sent a prompt.
    Prompt,
}

/// What a rule decides, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// It may happen; the model reads the reason.
    Warn,
    /// A person decides.
    Ask,
    /// It must not happen.
    Deny,
}

/// What happens if a rule cannot be applied: it is broken, or a call is too large to be looked at. From weak to
/// strong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failing {
    /// The call goes on.
    #[default]
    Open,
    /// The call is denied.
    Closed,
}

/// Which tools a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolPattern {
    /// Every tool.
    Any,
    /// All of a kind.
    Kind(ToolKind),
    /// Tools by the name that their host gives them.
    Name(NamePattern),
}

/// A glob for names of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    written: String,
    glob: Glob,
}

/// A rule, parsed.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What to call it, such as `rules:/no-force-push.md`.
    pub name: String,
    /// What it is asked about.
    pub event: Event,
    /// The tools; any of them.
    pub tools: Vec<ToolPattern>,
    /// What it decides.
    pub decision: Decision,
    /// What happens if it cannot be applied, if it says so.
    pub failing: Option<Failing>,
    /// What the model reads.
    pub reason: String,
    pub(crate) paths: Vec<PathPattern>,
    pub(crate) commands: Vec<CommandPattern>,
    pub(crate) contents: Vec<TextPattern>,
}

/// What of a call a rule looks at, to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// `path`, `command` or `content`.
    pub field: &'static str,
    /// The patterns as written.
    pub patterns: Vec<String>,
}

/// A note of a store of rules.
#[derive(Clone, Debug)]
pub enum ParsedRule {
    /// It is not a rule.
    Other,
    /// It is a rule.
    Rule(Box<Rule>),
    /// It says how the rules of its store fail.
    Default(StoreDefault),
    /// Has a `rule` or `rules` field that is invalid.
    Broken(RuleError),
}

/// How the rules of a store fail, unless they say so themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDefault {
    /// What to call the note that says so.
    pub name: String,
    /// What happens.
    pub failing: Failing,
}

impl fmt::Display for StoreDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unless they say otherwise, the rules of this store fail {}: {}",
            self.failing, self.name
        )
    }
}

/// Why a note is not a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// What to call the rule.
    pub name: String,
    /// What is wrong.
    pub message: String,
    /// What happens meanwhile, if the rule says so.
    pub failing: Option<Failing>,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RuleError {}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Warn => "warn",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "open",
            Self::Closed => "closed",
        })
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Any => "any",
            Self::Kind(ToolKind::Shell) => "shell",
            Self::Kind(ToolKind::Edit) => "edit",
            Self::Kind(ToolKind::Read) => "read",
            Self::Kind(ToolKind::Mcp) => "mcp",
            Self::Kind(ToolKind::Other) => "other",
            Self::Name(name) => &name.written,
        })
    }
}

impl std::str::FromStr for Failing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "open" => Ok(Self::Open),
            "closed" => Ok(Self::Closed),
            other => Err(format!("`fail` is `open` or `closed`, not `{other}`")),
        }
    }
}

impl ToolPattern {
    fn parse(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "any" | "*" => Self::Any,
            "shell" => Self::Kind(ToolKind::Shell),
            "edit" => Self::Kind(ToolKind::Edit),
            "read" => Self::Kind(ToolKind::Read),
            "mcp" => Self::Kind(ToolKind::Mcp),
            _ => {
                let glob = Glob::new(&normalized(text), Dialect::Word);
                Self::Name(NamePattern { written: text.to_owned(), glob })
            }
        }
    }

    /// Returns whether it covers a tool. `edit` is a kind and not the tool `Edit`, which it covers.
    pub fn covers(&self, tool: &str, kind: ToolKind) -> bool {
        match self {
            Self::Any => true,
            Self::Kind(own) => *own == kind,
            Self::Name(name) => name.glob.matches(&normalized(tool)),
        }
    }
}

impl Rule {
    /// Parses a note. `name` is what to call the rule.
    ///
    /// Expressions are compiled by their first use, since most calls need none of them.
    pub fn parse(name: &str, text: &str) -> ParsedRule {
        let broken = |message: String, failing| {
            ParsedRule::Broken(RuleError { name: name.to_owned(), message, failing })
        };
        if !Self::concerns(text) {
            return ParsedRule::Other;
        }
        let (field, body_start) = match Note::field(text, "rule") {
            Ok((Some(field), body_start)) => (field, body_start),
            Ok((None, _)) => {
                return match default(text) {
                    Ok(None) => ParsedRule::Other,
                    Ok(Some(failing)) => {
                        ParsedRule::Default(StoreDefault { name: name.to_owned(), failing })
                    }
                    Err(message) => broken(message, None),
                };
            }
            // A note about something else may have a frontmatter that is not valid.
            Err(_) if !mentions_rules(text) => return ParsedRule::Other,
            Err(remark) => return broken(format!("line {}: {}", remark.line, remark.text), None),
        };
        let failing = field.at("fail").and_then(Value::as_text).and_then(|text| text.parse().ok());
        match Self::from_field(name, &field, text.get(body_start..).unwrap_or_default()) {
            Ok(rule) => ParsedRule::Rule(Box::new(rule)),
            Err(message) => broken(message, failing),
        }
    }

    /// Returns whether a note may say something about rules. Quick, and says so of every note that does.
    pub fn concerns(text: &str) -> bool {
        frontmatter(text).any(|line| line.contains("rule"))
    }

    fn from_field(name: &str, field: &Value, body: &str) -> Result<Self, String> {
        let Value::Map(entries) = field else {
            return Err("`rule` is a mapping, such as `rule: { tool: shell, … }`".to_owned());
        };
        let mut rule = Self {
            name: name.to_owned(),
            event: Event::default(),
            tools: vec![ToolPattern::Any],
            decision: Decision::Deny,
            failing: None,
            reason: reason(body),
            paths: Vec::new(),
            commands: Vec::new(),
            contents: Vec::new(),
        };
        let mut has_decision = false;
        for (key, value) in entries {
            match key.as_str() {
                "event" => rule.event = event(single(key, value)?)?,
                "tool" => {
                    rule.tools =
                        texts(key, value)?.iter().map(|it| ToolPattern::parse(it)).collect();
                }
                "path" => rule.paths = PathPattern::all(&texts(key, value)?)?,
                "command" => {
                    rule.commands =
                        texts(key, value)?.iter().map(|it| CommandPattern::new(it)).collect();
                }
                "content" => {
                    rule.contents =
                        texts(key, value)?.iter().map(|it| TextPattern::new(it)).collect();
                }
                "decision" => {
                    rule.decision = decision(single(key, value)?)?;
                    has_decision = true;
                }
                "fail" => rule.failing = Some(single(key, value)?.parse()?),
                other => {
                    return Err(format!(
                        "`{other}` is not a field of a rule; there are event, tool, path, command, content, \
                         decision and fail"
                    ));
                }
            }
        }
        // A rule that denies everything because a line is missing would be a surprise.
        if !has_decision {
            return Err("`decision` is missing: deny, ask or warn".to_owned());
        }
        if rule.reason.is_empty() {
            return Err("the note has no text, which is the reason that the model reads".to_owned());
        }
        Ok(rule)
    }

    /// Returns what of a call it looks at.
    pub fn watched(&self) -> Vec<Watched> {
        let written = |patterns: Vec<&str>| patterns.into_iter().map(str::to_owned).collect();
        let fields = [
            Watched {
                field: "path",
                patterns: written(self.paths.iter().map(PathPattern::written).collect()),
            },
            Watched {
                field: "command",
                patterns: written(self.commands.iter().map(CommandPattern::written).collect()),
            },
            Watched {
                field: "content",
                patterns: written(self.contents.iter().map(TextPattern::written).collect()),
            },
        ];
        fields.into_iter().filter(|watched| !watched.patterns.is_empty()).collect()
    }

    /// Returns the first expression that cannot be compiled, with the reason.
    pub fn broken_expression(&self) -> Option<String> {
        let commands = self.commands.iter().filter_map(CommandPattern::problem);
        commands.chain(self.contents.iter().filter_map(TextPattern::problem)).next()
    }
}

/// Returns the lines of a note's frontmatter, whether or not it is valid.
fn frontmatter(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_start_matches('\u{feff}');
    let block = if text.starts_with("---") { text } else { "" };
    block.lines().skip(1).take_while(|line| !matches!(line.trim_end(), "---" | "..."))
}

/// Returns whether a frontmatter that is not valid has a field about rules.
fn mentions_rules(text: &str) -> bool {
    frontmatter(text).any(|line| line.starts_with("rule:") || line.starts_with("rules:"))
}

/// Returns how the rules of the store of a note fail, if its field `rules` says so.
fn default(text: &str) -> Result<Option<Failing>, String> {
    // The frontmatter was parsed before, so it is valid.
    let Ok((Some(field), _)) = Note::field(text, "rules") else { return Ok(None) };
    let Value::Map(entries) = &field else {
        return Err("`rules` is a mapping: `rules: { fail: closed }`".to_owned());
    };
    let mut failing = None;
    for (key, value) in entries {
        match key.as_str() {
            "fail" => failing = Some(single(key, value)?.parse()?),
            other => return Err(format!("`{other}` is not a field of `rules`; there is fail")),
        }
    }
    failing.map(Some).ok_or_else(|| "`rules` says nothing; there is fail".to_owned())
}

/// Returns the text of a note as a reason: without blank lines around it, and not too long.
fn reason(body: &str) -> String {
    let body = body.trim();
    match body.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{} …", body.get(..end).unwrap_or_default()),
        None => body.to_owned(),
    }
}

fn single<'v>(key: &str, value: &'v Value) -> Result<&'v str, String> {
    value.as_text().ok_or_else(|| format!("`{key}` is one word"))
}

/// Returns the texts of a field: one, or a list of them.
fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` is a text or a list of texts");
    let texts = match value {
        Value::Text(text) => vec![text.clone()],
        Value::List(items) => {
            let text = |item: &Value| item.as_text().map(str::to_owned).ok_or_else(wrong);
            items.iter().map(text).collect::<Result<_, _>>()?
        }
        Value::Null | Value::Map(_) => return Err(wrong()),
    };
    // An empty list would match nothing, or everything; whoever wrote it meant one of the two.
    if texts.is_empty() || texts.iter().any(|text| text.trim().is_empty()) {
        return Err(format!("`{key}` is empty"));
    }
    if texts.len() > PATTERNS_MAX {
        return Err(format!(
            "`{key}` has {} patterns, at most {PATTERNS_MAX} are read",
            texts.len()
        ));
    }
    if texts.iter().any(|text| text.len() > PATTERN_SIZE_BYTES_MAX) {
        return Err(format!("a pattern of `{key}` is longer than {PATTERN_SIZE_BYTES_MAX} bytes"));
    }
    Ok(texts)
}

fn event(word: &str) -> Result<Event, String> {
    match word {
        "before_tool" => Ok(Event::BeforeTool),
        "prompt" => Ok(Event::Prompt),
        other => Err(format!("`event` is `before_tool` or `prompt`, not `{other}`")),
    }
}

fn decision(word: &str) -> Result<Decision, String> {
    match word {
        "deny" => Ok(Decision::Deny),
        "ask" => Ok(Decision::Ask),
        "warn" => Ok(Decision::Warn),
        other => Err(format!("`decision` is `deny`, `ask` or `warn`, not `{other}`")),
    }
}
