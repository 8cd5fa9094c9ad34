//! What rules decide about a call.

use std::cell::OnceCell;

use crate::matcher::{CommandPattern, PathPattern, SeenPath, TEXT_SIZE_BYTES_MAX, TextPattern};
use crate::path::{normalized, resolved};
use crate::rule::{Failing, ParsedRule, RuleError, StoreDefault};
use crate::shell::{PATHS_MAX, Script};
use crate::{Call, Decision, Event, Rule};

/// Rules that are applied together.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    /// The rules, in order.
    pub rules: Vec<Rule>,
    /// Notes with an invalid `rule`.
    pub broken: Vec<RuleError>,
    /// What happens where neither a rule nor its store says.
    pub failing: Failing,
    /// What stores say about their rules.
    pub defaults: Vec<StoreDefault>,
}

/// What rules decide about a call.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The strongest decision; `None` if no rule applies.
    pub decision: Option<Decision>,
    /// The rules that apply, the strongest first.
    pub matches: Vec<Match>,
}

/// A rule that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The name of the rule.
    pub rule: String,
    /// What it decides.
    pub decision: Decision,
    /// What the model reads.
    pub reason: String,
    /// Why it applies.
    pub cause: Cause,
}

/// Why a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its patterns match.
    Matched,
    /// It is broken, and fails closed.
    Broken(String),
    /// The call could not be read to its end, and the rule fails closed.
    Unreadable,
}

/// A call as patterns see it. Each part is computed by its first use.
struct Seen<'c> {
    call: &'c Call,
    roots: Vec<String>,
    home: String,
    script: OnceCell<Script>,
    paths: OnceCell<(Vec<SeenPath>, Read)>,
}

/// Whether a field of a rule fits a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    /// Not in what was read, and there is more.
    Unknown,
}

/// Whether all of a call was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Whole,
    Partly,
}

impl Read {
    /// Returns what it means that nothing was found.
    fn without_a_match(self) -> Fit {
        match self {
            Self::Whole => Fit::No,
            Self::Partly => Fit::Unknown,
        }
    }
}

impl RuleSet {
    /// Adds what a note says.
    pub fn add(&mut self, parsed: ParsedRule) {
        match parsed {
            ParsedRule::Other => {}
            ParsedRule::Rule(rule) => self.rules.push(*rule),
            ParsedRule::Broken(error) => self.broken.push(error),
            ParsedRule::Default(default) => self.defaults.push(default),
        }
    }

    /// Adds what all notes of a store say. A rule that does not say how it fails does so as its store says; of
    /// two notes that say it, the stricter one counts.
    pub fn add_store(&mut self, notes: Vec<ParsedRule>) {
        let said = notes.iter().filter_map(|note| match note {
            ParsedRule::Default(default) => Some(default.failing),
            ParsedRule::Other | ParsedRule::Rule(_) | ParsedRule::Broken(_) => None,
        });
        let said = said.max();
        for mut note in notes {
            match &mut note {
                ParsedRule::Rule(rule) => rule.failing = rule.failing.or(said),
                ParsedRule::Broken(error) => error.failing = error.failing.or(said),
                ParsedRule::Other | ParsedRule::Default(_) => {}
            }
            self.add(note);
        }
    }

    /// Decides about a call. Equal calls get equal answers.
    pub fn decide(&self, call: &Call) -> Verdict {
        let seen = Seen::new(call);
        let broken = self.broken.iter().filter_map(|error| self.broken_match(error, call.event));
        let mut matches: Vec<_> = broken.collect();
        matches.extend(self.rules.iter().filter_map(|rule| self.apply(rule, &seen)));
        // Stable: of equal decisions the first rule is named first.
        matches.sort_by_key(|found| std::cmp::Reverse(found.decision));
        Verdict { decision: matches.first().map(|found| found.decision), matches }
    }

    /// Returns what happens where a rule or its reading has failed. What a person has written is never refused
    /// for that: nobody would hear them.
    fn failing(&self, own: Option<Failing>, event: Event) -> Failing {
        match event {
            Event::Prompt => Failing::Open,
            Event::BeforeTool => own.unwrap_or(self.failing),
        }
    }

    fn broken_match(&self, error: &RuleError, event: Event) -> Option<Match> {
        match self.failing(error.failing, event) {
            Failing::Open => None,
            Failing::Closed => Some(Match {
                rule: error.name.clone(),
                decision: Decision::Deny,
                reason: "a rule is broken, so nothing may happen until a person has repaired it"
                    .to_owned(),
                cause: Cause::Broken(error.message.clone()),
            }),
        }
    }

    fn apply(&self, rule: &Rule, seen: &Seen<'_>) -> Option<Match> {
        let call = seen.call;
        if rule.event != call.event || !rule.tools.iter().any(|tool| call.is_of(tool)) {
            return None;
        }
        let fits = [Ok(rule.path_fit(seen)), rule.command_fit(seen), rule.content_fit(call)];
        let mut cause = Cause::Matched;
        for fit in fits {
            match fit {
                Ok(Fit::Yes) => {}
                Ok(Fit::No) => return None,
                Ok(Fit::Unknown) => cause = Cause::Unreadable,
                Err(message) => cause = Cause::Broken(message),
            }
        }
        let failing = self.failing(rule.failing, call.event);
        // What is only suspected is decided like what is seen: a rule that asks must not deny.
        let decision = match (&cause, failing) {
            (Cause::Broken(_) | Cause::Unreadable, Failing::Open) => return None,
            (Cause::Matched, _) | (_, Failing::Closed) => rule.decision,
        };
        Some(Match { rule: rule.name.clone(), decision, reason: rule.reason.clone(), cause })
    }

    /// Returns whether one rule applies to a call, whatever the others say.
    pub fn applies(&self, rule: &Rule, call: &Call) -> Option<Match> {
        self.apply(rule, &Seen::new(call))
    }
}

impl Rule {
    fn path_fit(&self, seen: &Seen<'_>) -> Fit {
        if self.paths.is_empty() {
            return Fit::Yes;
        }
        let (paths, read) = seen.paths();
        let is_match = paths.iter().any(|path| PathPattern::any_matches(&self.paths, path));
        if is_match { Fit::Yes } else { read.without_a_match() }
    }

    fn command_fit(&self, seen: &Seen<'_>) -> Result<Fit, String> {
        if self.commands.is_empty() {
            return Ok(Fit::Yes);
        }
        let Some(text) = &seen.call.command else { return Ok(Fit::No) };
        let script = seen.script();
        let mut problem = None;
        for pattern in &self.commands {
            let found = match pattern {
                CommandPattern::Words(words) => {
                    Ok(script.commands.iter().any(|command| words.matches(command)))
                }
                CommandPattern::Expression(expression) => is_in_command(expression, text, script),
            };
            match found {
                Ok(true) => return Ok(Fit::Yes),
                Ok(false) => {}
                Err(error) => problem = Some(error),
            }
        }
        let read = if script.is_complete { Read::Whole } else { Read::Partly };
        problem.map_or(Ok(read.without_a_match()), Err)
    }

    fn content_fit(&self, call: &Call) -> Result<Fit, String> {
        if self.contents.is_empty() {
            return Ok(Fit::Yes);
        }
        let Some(text) = &call.content else { return Ok(Fit::No) };
        let mut problem = None;
        for pattern in &self.contents {
            match pattern.is_in(text) {
                Ok(true) => return Ok(Fit::Yes),
                Ok(false) => {}
                Err(error) => problem = Some(error),
            }
        }
        let read = if text.len() <= TEXT_SIZE_BYTES_MAX { Read::Whole } else { Read::Partly };
        problem.map_or(Ok(read.without_a_match()), Err)
    }
}

/// Returns whether an expression matches the whole command as written, or one of its commands without
/// quotes.
fn is_in_command(expression: &TextPattern, text: &str, script: &Script) -> Result<bool, String> {
    if expression.is_in(text)? {
        return Ok(true);
    }
    for command in &script.commands {
        if expression.is_in(&command.words.join(" "))? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl<'c> Seen<'c> {
    fn new(call: &'c Call) -> Self {
        let mut roots: Vec<_> = call.roots.iter().map(|root| normalized(root)).collect();
        if roots.is_empty() {
            roots.push(normalized(&call.directory));
        }
        roots.retain(|root| root.starts_with('/'));
        roots.sort();
        roots.dedup();
        Self {
            call,
            roots,
            home: normalized(&call.home),
            script: OnceCell::new(),
            paths: OnceCell::new(),
        }
    }

    fn script(&self) -> &Script {
        self.script.get_or_init(|| self.call.script())
    }

    /// Returns the paths that the call names, and whether these are all.
    fn paths(&self) -> &(Vec<SeenPath>, Read) {
        self.paths.get_or_init(|| {
            let (script, home) = (self.script(), self.call.home.as_str());
            let directories = std::iter::once(&self.call.directory).chain(&self.call.elsewhere);
            let named = self.call.paths.iter().flat_map(|path| {
                directories.clone().map(|directory| resolved(path, directory, home))
            });
            let in_commands = script.paths(home);
            let is_whole = script.is_complete && in_commands.len() <= PATHS_MAX;
            let mut found: Vec<_> = named.chain(in_commands).collect();
            found.sort();
            found.dedup();
            let seen = found.iter().map(|path| SeenPath::new(path, &self.roots, &self.home));
            (seen.collect(), if is_whole { Read::Whole } else { Read::Partly })
        })
    }
}
