//! `quipu hook`: what hosts start when something happens in their sessions.
//!
//! A hook stands in the way of somebody's work, so its first rule is to let the host go on: it answers
//! within a deadline that is well below that of any host, exits with 0, and prints nothing if anything
//! went wrong. Only a decision about a call may fail otherwise, if its owner has said so.

mod answers;
mod call;
mod deadline;
mod ending;
mod input;
mod install;
mod log;
mod memory_folder;
mod remember;
mod rules;
mod state;
mod transcript;

use std::io::Read as _;
use std::time::Duration;

use quipu_rules::{Event, Failing, ToolKind};

use crate::args::{HookCommand, HookFailing, HookRunArguments};
use crate::context::{Context, Data};
use crate::failure::Failure;

pub(super) use call::{Checkout, call_of};
pub(crate) use deadline::start_if_hook;
pub(super) use input::{Input, Kind};
pub(super) use rules::{LoadedRules, load};

use answers::Answer;
use deadline::Printed;

/// How much of an input is read. A host sends whole files with some calls.
const INPUT_SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a hook waits for a lock: it would rather do without.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);

pub(super) fn run(context: &mut Context, command: &HookCommand) -> Result<(), Failure> {
    match command {
        HookCommand::Install(arguments) => install::install(context, arguments),
        HookCommand::Uninstall(place) => install::uninstall(context, *place),
        HookCommand::Log(arguments) => log::show(context, arguments),
        HookCommand::Run(arguments) => {
            context.settings.lock_timeout = LOCK_TIMEOUT;
            let hook = Hook { context, arguments };
            hook.answer(Hook::remember)
        }
        HookCommand::Decide(arguments) => {
            context.settings.lock_timeout = LOCK_TIMEOUT;
            let hook = Hook { context, arguments };
            hook.answer(Hook::decide)
        }
    }
}

/// Answers a hook whose settings cannot be read. Its log is in the data directory that they name, so the
/// reason goes to standard error, which hosts keep.
pub(crate) fn without_settings(failure: &Failure) -> std::process::ExitCode {
    deadline::finish(&Printed {
        out: String::new(),
        err: format!("quipu: {failure}\n"),
        code: deadline::code_without_an_answer(),
    })
}

/// One event of a host.
struct Hook<'a> {
    context: &'a Context,
    arguments: &'a HookRunArguments,
}

impl Hook<'_> {
    /// Reads the input, prints the answer and ends the process.
    fn answer(&self, work: fn(&Self, &Input) -> Result<Answer, Failure>) -> ! {
        let failing = self.failing();
        deadline::set_failing(failing);
        let input = self.input();
        let answer = match &input {
            Ok(input) => work(self, input),
            Err(failure) => Err(Failure::other(failure.to_string())),
        };
        let answer = answer.unwrap_or_else(|failure| {
            log::failure(&self.context.settings.data, input.as_ref().ok(), &failure);
            // A prompt or a session start has nothing to be denied.
            let is_call = input.as_ref().map_or(true, |input| input.kind == Kind::BeforeTool);
            match (failing, is_call) {
                (Failing::Closed, true) => Answer::refusal(&failure),
                (Failing::Closed, false) | (Failing::Open, _) => Answer::Nothing,
            }
        });
        let event = input.as_ref().map_or("", |input| input.event.as_str());
        // Closing the data directory may have to wait; nothing is lost without.
        deadline::finish(&answer.print(self.arguments.host, event))
    }

    fn input(&self) -> Result<Input, Failure> {
        let mut text = Vec::new();
        std::io::stdin().lock().take(INPUT_SIZE_BYTES_MAX + 1).read_to_end(&mut text)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > INPUT_SIZE_BYTES_MAX {
            return Err(Failure::other("the input is too large"));
        }
        Input::parse(self.arguments.host, &text)
    }

    fn failing(&self) -> Failing {
        match (self.arguments.fail, self.context.settings.rules.fail.as_deref()) {
            (Some(HookFailing::Closed), _) | (None, Some("closed")) => Failing::Closed,
            (Some(HookFailing::Open) | None, _) => Failing::Open,
        }
    }

    fn remember(&self, input: &Input) -> Result<Answer, Failure> {
        match input.kind {
            Kind::SessionStart => {
                let answer = remember::at_start(self, input)?;
                memory_folder::sync(self, input);
                Ok(answer)
            }
            Kind::Prompt => {
                let verdict = rules::decide_prompt(self, input)?;
                if verdict.is_final() {
                    return Ok(verdict);
                }
                Ok(verdict.with_context(remember::for_prompt(self, input)?))
            }
            Kind::BeforeCompaction | Kind::SessionEnd => {
                transcript::record(self, input);
                memory_folder::sync(self, input);
                Ok(Answer::Nothing)
            }
            Kind::Stop => {
                transcript::record(self, input);
                ending::reminder(self, input)
            }
            Kind::BeforeTool => self.decide(input),
            Kind::AfterEdit => {
                state::change(self, input, |state| state.note_edit(&input.paths));
                Ok(Answer::Nothing)
            }
            Kind::Other => Ok(Answer::Nothing),
        }
    }

    fn decide(&self, input: &Input) -> Result<Answer, Failure> {
        // Cursor asks about commands and MCP tools a second time, by events that can also ask a person.
        let comes_again = input.event == "preToolUse"
            && matches!(input.tool_kind, ToolKind::Shell | ToolKind::Mcp);
        if input.kind != Kind::BeforeTool || comes_again {
            return Ok(Answer::Nothing);
        }
        rules::decide(self, input)
    }

    /// Opens the data directory; `None` if there is none.
    fn open(&self) -> Result<Option<Data>, Failure> {
        if !self.context.has_data() {
            return Ok(None);
        }
        self.context.open().map(Some)
    }
}

/// Returns the event that rules are asked about.
fn rule_event(kind: Kind) -> Event {
    if kind == Kind::Prompt { Event::Prompt } else { Event::BeforeTool }
}
