//! The `quipu` binary: reads settings, opens the data directory, does one command.

mod args;
mod commands;
mod context;
mod failure;
mod log;
mod print;
mod settings;

use std::process::ExitCode;

use clap::Parser as _;

use args::Arguments;
use context::Context;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let context = Context::new(arguments.global);
    let done = context.and_then(|context| commands::run(&context, arguments.command));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
