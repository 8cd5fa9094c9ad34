//! `quipu hook`: what hosts start when something happens in their sessions.
//!
//! A hook stands in the way of somebody's work, so its first rule is to let the host go on: it answers
//! within a deadline that is well below that of any host, exits with 0, and says that it has nothing to say
//! if anything went wrong. Only a decision about a call may fail otherwise, if its owner has said so.

mod answers;
mod call;
mod codex;
mod deadline;
mod ending;
mod input;
mod install;
mod loading;
mod log;
mod memory_folder;
mod recording;
mod remember;
mod rules;
mod state;
mod transcript;

use std::io::Read as _;
use std::process::Command;
use std::time::Duration;

use quipu_rules::{Event, Failing};

use crate::args::{HookCommand, HookFailing, HookHost, HookRunArguments};
use crate::context::{Context, Data};
use crate::failure::Failure;

pub(super) use call::{Checkout, call_of};
pub(crate) use deadline::start_if_hook;
pub(super) use input::{Input, Kind};
pub(super) use loading::{LoadedRules, Loader, Reading};

use answers::{Answer, Asked, Verb};
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
        HookCommand::Record => recording::record(context),
        HookCommand::Run(arguments) => {
            context.settings.lock_timeout = LOCK_TIMEOUT;
            Hook { context, arguments }.answer(Verb::Run)
        }
        HookCommand::Decide(arguments) => {
            context.settings.lock_timeout = LOCK_TIMEOUT;
            Hook { context, arguments }.answer(Verb::Decide)
        }
    }
}

/// Answers a hook whose settings cannot be read. Its log is in the data directory that they name, so the
/// reason goes to standard error, which hosts keep.
pub(crate) fn without_settings(failure: &Failure) -> std::process::ExitCode {
    let printed = deadline::without_an_answer(&failure.to_string());
    let err = format!("quipu: {failure}\n");
    deadline::finish(&Printed { err, ..printed })
}

/// Answers a hook whose command line this version cannot read, and that has said why.
pub(crate) fn without_arguments() -> std::process::ExitCode {
    let printed = deadline::without_an_answer("this version does not know the command line");
    // Hosts show what a hook has said if it fails, and go on.
    let has_answer = printed.code != 0 || !printed.out.is_empty();
    deadline::finish(&Printed { code: if has_answer { printed.code } else { 1 }, ..printed })
}

/// One event of a host.
struct Hook<'a> {
    context: &'a Context,
    arguments: &'a HookRunArguments,
}

impl Hook<'_> {
    /// Reads the input, prints the answer and ends the process.
    fn answer(&self, verb: Verb) -> ! {
        let failing = self.failing().unwrap_or(Failing::Closed);
        deadline::set_data(&self.context.settings.data);
        let mut asked = Asked::by(self.arguments.host, verb);
        deadline::set(&asked, failing);
        let input = self.input();
        if let Ok(input) = &input {
            asked = asked.with(input);
            deadline::set(&asked, failing);
        }
        let answer = match (&input, verb) {
            (Ok(input), Verb::Run) => self.remember(input),
            (Ok(input), Verb::Decide) => self.decide(input),
            (Err(failure), _) => Err(Failure::other(failure.to_string())),
        };
        let answer = answer.unwrap_or_else(|failure| {
            log::failure(&self.context.settings.data, input.as_ref().ok(), &failure);
            Answer::failed(&asked, failing, &failure.to_string())
        });
        // Closing the data directory may have to wait; nothing is lost without.
        deadline::finish(&answer.print(&asked))
    }

    fn input(&self) -> Result<Input, Failure> {
        let mut text = Vec::new();
        std::io::stdin().lock().take(INPUT_SIZE_BYTES_MAX + 1).read_to_end(&mut text)?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > INPUT_SIZE_BYTES_MAX {
            return Err(Failure::other("the input is too large"));
        }
        Input::parse(self.arguments.host, &text)
    }

    /// Returns what happens to a call if the rules cannot be applied. A word that is none of the two must not
    /// be taken for the weaker one: whoever has written it wanted something.
    fn failing(&self) -> Result<Failing, Failure> {
        match self.arguments.fail {
            Some(HookFailing::Closed) => Ok(Failing::Closed),
            Some(HookFailing::Open) => Ok(Failing::Open),
            None => self.context.settings.rules.failing(),
        }
    }

    /// Returns whether the host runs another hook of ours for the same event.
    ///
    /// Cursor runs its own hooks and those that it finds in the settings of Claude Code.
    fn is_second(&self, input: &Input) -> bool {
        input.host == HookHost::Cursor
            && self.arguments.host != HookHost::Cursor
            && install::is_installed(self.context, input)
    }

    fn remember(&self, input: &Input) -> Result<Answer, Failure> {
        if self.is_second(input) && !matches!(input.kind, Kind::Prompt | Kind::BeforeTool) {
            return Ok(Answer::Nothing);
        }
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
                recording::move_spooled(self, input);
                transcript::record(self, input);
                memory_folder::sync(self, input);
                Ok(Answer::Nothing)
            }
            Kind::Stop => {
                recording::move_spooled(self, input);
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
        match input.kind {
            Kind::BeforeTool => rules::decide(self, input),
            Kind::SessionStart
            | Kind::Prompt
            | Kind::AfterEdit
            | Kind::BeforeCompaction
            | Kind::Stop
            | Kind::SessionEnd
            | Kind::Other => Ok(Answer::Nothing),
        }
    }

    /// Opens the data directory; `None` if there is none.
    fn open(&self) -> Result<Option<Data>, Failure> {
        if !self.context.has_data() {
            return Ok(None);
        }
        self.context.open().map(Some)
    }
}

/// Takes a command out of the process group of this one, which hosts end as a whole.
fn detached(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Returns the event that rules are asked about.
fn rule_event(kind: Kind) -> Event {
    if kind == Kind::Prompt { Event::Prompt } else { Event::BeforeTool }
}
