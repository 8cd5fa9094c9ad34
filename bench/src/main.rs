//! Measures Quipu against its peers, side by side in one run.
//!
//! Absolute times depend on the machine and its load, so each table shows ratios to a peer that
//! did the same work in the same run.

#![expect(clippy::print_stdout, reason = "a benchmark prints its tables")]

mod bare;
mod engine;
mod table;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Measures Quipu against its peers, side by side in one run")]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// The engine and its embedded storage against bare SQLite.
    Engine(engine::Arguments),
}

fn main() {
    match Arguments::parse().subject {
        Subject::Engine(arguments) => engine::run(&arguments),
    }
}
