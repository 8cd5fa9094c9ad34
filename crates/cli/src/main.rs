//! The `quipu` binary: reads settings, opens the data directory, does one command.

mod args;
mod commands;
mod context;
mod failure;
mod log;
mod print;
mod settings;
mod uses;

use std::process::ExitCode;

use clap::Parser as _;

use args::Arguments;
use context::Context;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = Context::new(arguments.global).and_then(|context| {
        let done = commands::run(&context, arguments.command);
        context.end();
        done
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
