//! The `quipu` binary: reads settings, opens the data directory, runs one command.

mod args;
mod authors;
mod commands;
mod context;
mod encoder;
mod failure;
mod granted;
mod hook_files;
mod log;
mod pager;
mod print;
mod settings;
mod stop;
mod storage;
mod uses;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::Arguments;
use context::Context;

fn main() -> ExitCode {
    let is_hook = commands::start_if_hook(std::env::args_os());
    let parsed = Arguments::command().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        // For hosts, the exit code of a usage error denies what their agent is about to do. Settings that
        // were written by another version must not.
        Err(error) if is_hook && error.use_stderr() => {
            error.print().unwrap_or_default();
            return commands::hook_without_arguments();
        }
        Err(error) => error.exit(),
    };
    let command = matches.subcommand_name().unwrap_or_default();
    let mut context = match Context::new(arguments.global, command) {
        Ok(context) => context,
        Err(failure) if is_hook => return commands::hook_without_settings(&failure),
        Err(failure) => return failure.report(None),
    };
    let done = commands::run(&mut context, arguments.command);
    context.end();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(Some(&context.place())),
    }
}
