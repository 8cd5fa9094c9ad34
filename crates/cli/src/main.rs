//! The `quipu` binary: reads settings, opens the data directory, runs one command.

mod args;
mod authors;
mod commands;
mod context;
mod encoder;
mod failure;
mod log;
mod pager;
mod print;
mod settings;
mod stop;
mod uses;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::Arguments;
use context::Context;

fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let command = matches.subcommand_name().unwrap_or_default();
    let context = match Context::new(arguments.global, command) {
        Ok(context) => context,
        Err(failure) => return failure.report(None),
    };
    let done = commands::run(&context, arguments.command);
    context.end();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(Some(&context.settings.data)),
    }
}
