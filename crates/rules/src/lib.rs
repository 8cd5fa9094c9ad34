//! Rules about what agents do with their tools.
//!
//! A rule is a note: its frontmatter says which calls it is about and what is decided, its text is the
//! reason that the model reads. [`Rule::parse`] reads one, [`RuleSet::decide`] applies many to a
//! [`Call`], [`RuleSet::findings`] says which can never decide anything.
//!
//! All of it is pure: nothing here opens a store, reads a file or looks at a clock. What a call *does*
//! cannot be known from its text, so a decision is about what is written there; see [`shell`] for what
//! that means for commands, and `docs/rules.md` for what no pattern can see.

mod check;
mod decide;
mod glob;
mod matcher;
mod path;
mod rule;
pub mod shell;

use shell::Script;

pub use check::{RuleFinding, RuleFindingKind};
pub use decide::{Cause, Match, RuleSet, Verdict};
pub use path::{normalized, resolved};
pub use rule::{
    Decision, Event, Failing, PATTERNS_MAX, ParsedRule, Rule, RuleError, StoreDefault, ToolPattern,
    Watched,
};

/// What kind of tool is called, whatever its host calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Runs commands.
    Shell,
    /// Creates, changes or deletes files.
    Edit,
    /// Reads or searches files.
    Read,
    /// A tool of an MCP server.
    Mcp,
    /// Anything else, such as a search of the web.
    Other,
}

/// A call that an agent is about to make, or a prompt that a person has sent.
#[derive(Clone, Debug)]
pub struct Call {
    /// What happens.
    pub event: Event,
    /// The host's name of the tool; empty for a prompt.
    pub tool: String,
    /// Other names of the tool, such as one with the server that it is of.
    pub aliases: Vec<String>,
    /// What kind of tool that is.
    pub kind: ToolKind,
    /// What kind of tool it is as well, such as a shell that is given a patch.
    pub also: Option<ToolKind>,
    /// The paths that it names, as they are written there. Each is resolved against `directory`.
    pub paths: Vec<String>,
    /// The command, of a shell.
    pub command: Option<String>,
    /// The new text of files, or the prompt.
    pub content: Option<String>,
    /// The working directory; empty if the host does not say.
    pub directory: String,
    /// Other directories that a command may run in, if the host does not say which it is.
    pub elsewhere: Vec<String>,
    /// The directories that patterns without a leading slash are relative to, such as the root of the
    /// repository. Without one, it is the working directory.
    pub roots: Vec<String>,
    /// What `~` stands for; empty if unknown.
    pub home: String,
}

impl Call {
    /// Returns a call without any parts, for an event.
    pub fn new(event: Event, tool: &str, kind: ToolKind) -> Self {
        Self {
            event,
            tool: tool.to_owned(),
            aliases: Vec::new(),
            kind,
            also: None,
            paths: Vec::new(),
            command: None,
            content: None,
            directory: String::new(),
            elsewhere: Vec::new(),
            roots: Vec::new(),
            home: String::new(),
        }
    }

    /// Returns the absolute paths that its command names, as far as they are looked at. Any word may be one.
    pub fn paths_in_command(&self) -> Vec<String> {
        self.script().paths(&self.home)
    }

    pub(crate) fn script(&self) -> Script {
        let Some(command) = &self.command else {
            return Script { commands: Vec::new(), is_complete: true };
        };
        let directories = std::iter::once(&self.directory).chain(&self.elsewhere);
        Script::parse(command, &directories.map(String::as_str).collect::<Vec<_>>(), &self.home)
    }

    /// Returns whether a pattern covers its tool.
    pub(crate) fn is_of(&self, pattern: &ToolPattern) -> bool {
        let names = std::iter::once(&self.tool).chain(&self.aliases);
        let kinds = [Some(self.kind), self.also];
        names.into_iter().any(|name| kinds.iter().flatten().any(|kind| pattern.covers(name, *kind)))
    }
}
