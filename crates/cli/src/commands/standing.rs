//! What a session may do at the command line, when `QUIPU_SESSION` names one.
//!
//! This keeps an agent from doing by accident what is not its business. It is no boundary: whoever can set
//! the variable can also unset it, and can open the database with another program.

use quipu_core::{Error, ErrorKind};

use crate::args::{
    Command, HookCommand, KeyCommand, McpArguments, ModelCommand, RulesCommand, SessionCommand,
    StoreCommand,
};
use crate::context::Context;
use crate::failure::Failure;

/// What a session may do with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The command changes no memory, no store, no key and no session.
    Reads,
    /// The command writes as the session, to a store that is attached to it for that.
    Writes,
    /// The command writes as a session of its own, which gets no more than the session has.
    WritesApart,
    /// The command is for people.
    Refused,
}

/// Fails if the command is for people and a session is to run it.
pub(super) fn require(context: &Context, command: &Command) -> Result<(), Failure> {
    let Some(session) = context.settings.session else { return Ok(()) };
    match standing(command) {
        Standing::Reads | Standing::Writes | Standing::WritesApart => Ok(()),
        Standing::Refused => {
            let message = format!("the session `{session}` cannot run administrative commands");
            Err(Failure::from(Error::new(ErrorKind::AccessDenied, message))
                .with_hint("a person runs them, without `QUIPU_SESSION`"))
        }
    }
}

fn standing(command: &Command) -> Standing {
    match command {
        Command::Store(StoreCommand::List(_) | StoreCommand::Show(_))
        | Command::Key(KeyCommand::List)
        | Command::Session(SessionCommand::List(_) | SessionCommand::Show(_))
        | Command::Rules(RulesCommand::List | RulesCommand::Check(_))
        | Command::Hook(HookCommand::Run(_) | HookCommand::Decide(_) | HookCommand::Log(_))
        | Command::Model(ModelCommand::List | ModelCommand::Check(_) | ModelCommand::Embed)
        | Command::Unmount(_)
        | Command::Ls(_)
        | Command::Cat(_)
        | Command::Log(_)
        | Command::Show(_)
        | Command::Diff(_)
        | Command::Blame(_)
        | Command::Receipts(_)
        | Command::Search(_)
        | Command::Suggest(_)
        | Command::Recent(_)
        | Command::Context(_)
        | Command::Links(_)
        | Command::Graph(_)
        | Command::Export(_)
        | Command::Events(_)
        | Command::Prompt(_)
        | Command::Check(_)
        | Command::Completions(_)
        | Command::Man(_) => Standing::Reads,
        Command::Put(_)
        | Command::Edit(_)
        | Command::Mv(_)
        | Command::Rm(_)
        | Command::Restore(_)
        | Command::Revert(_)
        | Command::InitProject(_) => Standing::Writes,
        Command::Tool(_)
        | Command::Sync(_)
        | Command::Mount(_)
        | Command::Import(_)
        | Command::Mcp(McpArguments { command: None, .. }) => Standing::WritesApart,
        Command::Mcp(McpArguments { command: Some(_), .. })
        | Command::Serve(_)
        | Command::Ui(_)
        | Command::Hook(
            HookCommand::Install(_) | HookCommand::Uninstall(_) | HookCommand::Record,
        )
        | Command::Rules(RulesCommand::Init(_))
        | Command::Model(
            ModelCommand::Install(_) | ModelCommand::Use(_) | ModelCommand::Remove(_),
        )
        | Command::Store(
            StoreCommand::Create(_)
            | StoreCommand::Update(_)
            | StoreCommand::Archive(_)
            | StoreCommand::Delete(_)
            | StoreCommand::Restore(_)
            | StoreCommand::Copy(_)
            | StoreCommand::Default(_),
        )
        | Command::Session(
            SessionCommand::Create(_) | SessionCommand::Archive(_) | SessionCommand::Delete(_),
        )
        | Command::Key(KeyCommand::Create(_) | KeyCommand::Revoke(_))
        | Command::Redact(_)
        | Command::Prune(_)
        | Command::Backup(_)
        | Command::RestoreBackup(_)
        | Command::Migrate
        | Command::Move(_) => Standing::Refused,
    }
}
