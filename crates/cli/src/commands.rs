//! The commands, one file per group.

mod blame;
mod diff;
mod events;
mod export;
mod history;
mod hook;
mod import;
mod keys;
mod knowledge;
mod mcp;
mod memories;
mod migrate;
mod model;
#[cfg_attr(not(target_os = "linux"), path = "commands/mount_elsewhere.rs")]
mod mount;
mod moving;
mod project;
mod redact;
mod revert;
mod rules;
mod serve;
mod sessions;
mod standing;
mod stores;
mod suggest;
mod sync;
mod tool;
mod ui;
mod upkeep;

use crate::args::Command;
use crate::context::Context;
use crate::failure::Failure;

pub(crate) use hook::{
    start_if_hook, without_arguments as hook_without_arguments,
    without_settings as hook_without_settings,
};

/// Runs the command that was given.
pub(crate) fn run(context: &mut Context, command: Command) -> Result<(), Failure> {
    standing::require(context, &command)?;
    match command {
        Command::Serve(arguments) => serve::run(context, &arguments),
        Command::Ui(arguments) => ui::run(context, &arguments),
        Command::Mcp(arguments) => mcp::run(context, &arguments),
        Command::Tool(arguments) => tool::run(context, &arguments),
        Command::Sync(arguments) => sync::run(context, &arguments),
        Command::Mount(arguments) => mount::run(context, &arguments),
        Command::Unmount(arguments) => mount::unmount(context, &arguments),
        Command::InitProject(arguments) => project::init(context, &arguments),
        Command::Hook(command) => hook::run(context, &command),
        Command::Rules(command) => rules::run(context, &command),
        Command::Store(command) => stores::run(context, command),
        Command::Ls(arguments) => memories::ls(context, &arguments),
        Command::Cat(arguments) => memories::cat(context, &arguments),
        Command::Put(arguments) => memories::put(context, &arguments),
        Command::Edit(arguments) => memories::edit(context, &arguments),
        Command::Mv(arguments) => memories::mv(context, &arguments),
        Command::Rm(arguments) => memories::rm(context, &arguments),
        Command::Log(arguments) => history::log(context, &arguments),
        Command::Show(arguments) => history::show(context, &arguments),
        Command::Diff(arguments) => diff::run(context, &arguments),
        Command::Blame(arguments) => blame::run(context, &arguments),
        Command::Restore(arguments) => history::restore(context, &arguments),
        Command::Revert(arguments) => revert::run(context, &arguments),
        Command::Redact(arguments) => redact::redact(context, &arguments),
        Command::Receipts(arguments) => redact::receipts(context, &arguments),
        Command::Search(arguments) => knowledge::search(context, &arguments),
        Command::Suggest(arguments) => suggest::run(context, &arguments),
        Command::Recent(arguments) => knowledge::recent(context, &arguments),
        Command::Context(arguments) => knowledge::context(context, &arguments),
        Command::Links(arguments) => knowledge::links(context, &arguments),
        Command::Graph(arguments) => knowledge::graph(context, &arguments),
        Command::Import(arguments) => import::run(context, &arguments),
        Command::Export(arguments) => export::run(context, &arguments),
        Command::Session(command) => sessions::run(context, command),
        Command::Events(arguments) => events::run(context, &arguments),
        Command::Key(command) => keys::run(context, command),
        Command::Model(command) => model::run(context, &command),
        Command::Prompt(arguments) => sessions::prompt(context, arguments),
        Command::Check(arguments) => upkeep::check(context, &arguments),
        Command::Prune(arguments) => upkeep::prune(context, &arguments),
        Command::Backup(arguments) => upkeep::backup(context, &arguments),
        Command::RestoreBackup(arguments) => upkeep::restore_backup(context, &arguments),
        Command::Migrate => migrate::run(context),
        Command::Move(arguments) => moving::run(context, &arguments),
        Command::Completions(arguments) => upkeep::completions(&arguments),
        Command::Man(arguments) => upkeep::man(&arguments),
    }
}
