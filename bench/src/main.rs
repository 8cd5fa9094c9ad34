//! Measures Quipu against its peers, side by side in one run.
//!
//! Absolute times depend on the machine and its load, so each table shows ratios to a peer that did
//! the same work in the same run.

#![expect(clippy::print_stdout, reason = "a benchmark prints its tables")]

mod bare;
mod engine;
mod followers;
mod hooks;
mod indexing;
mod knowledge;
mod load;
mod mcp;
#[cfg(target_os = "linux")]
mod mount;
mod past;
mod postgres;
mod redaction;
mod rest;
mod retrieval;
mod revert;
mod stores;
#[cfg(target_os = "linux")]
mod sync;
mod table;
mod tool;
mod upstream;

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
    /// The hooks of hosts: prompts, decisions of rules, the start of a session.
    Hooks(hooks::Arguments),
    /// What indexing costs per note, by the number of notes that are indexed at once.
    Indexing(indexing::Arguments),
    /// Search, context and recent activity as the store grows, and what the index costs writers.
    Knowledge(knowledge::Arguments),
    /// The MCP server over stdio: start, memory, notes, searches; against another one if named.
    Mcp(mcp::Arguments),
    /// The mount against a plain directory, other FUSE file systems and bare SQLite.
    #[cfg(target_os = "linux")]
    Mount(mount::Arguments),
    /// Reading a store as it was, against reading it as it is.
    Past(past::Arguments),
    /// PostgreSQL with and without Quipu: creates, reads, round trips, bytes, searches.
    Postgres(postgres::Arguments),
    /// One redaction in a large database, and what other writers notice of it.
    Redaction(redaction::Arguments),
    /// How well search finds the notes that answer questions.
    Retrieval(retrieval::Arguments),
    /// Reverting many changes at once.
    Revert(revert::Arguments),
    /// Search where there are many small stores.
    Stores(stores::Arguments),
    /// Folder sync: one edit among many files.
    #[cfg(target_os = "linux")]
    Sync(sync::Arguments),
    /// The memory tool against the local tools of the official SDKs.
    Tool(tool::Arguments),
    /// The REST API against a bare HTTP handler, and against the engine.
    Rest(rest::Arguments),
    /// Forwarded requests against the upstream itself.
    Upstream(upstream::Arguments),
    /// Serves the standard input over HTTP, as the peer of `rest`.
    #[command(hide = true)]
    BareHttp,
}

fn main() {
    match Arguments::parse().subject {
        Subject::Engine(arguments) => engine::run(&arguments),
        Subject::Hooks(arguments) => hooks::run(&arguments),
        Subject::Indexing(arguments) => indexing::run(&arguments),
        Subject::Knowledge(arguments) => knowledge::run(&arguments),
        Subject::Mcp(arguments) => mcp::run(&arguments),
        #[cfg(target_os = "linux")]
        Subject::Mount(arguments) => mount::run(&arguments),
        Subject::Upstream(arguments) => upstream::run(&arguments),
        Subject::Past(arguments) => past::run(&arguments),
        Subject::Postgres(arguments) => postgres::run(&arguments),
        Subject::Redaction(arguments) => redaction::run(&arguments),
        Subject::Retrieval(arguments) => retrieval::run(&arguments),
        Subject::Revert(arguments) => revert::run(&arguments),
        Subject::Stores(arguments) => stores::run(&arguments),
        #[cfg(target_os = "linux")]
        Subject::Sync(arguments) => sync::run(&arguments),
        Subject::Tool(arguments) => tool::run(&arguments),
        Subject::Rest(arguments) => rest::run(&arguments),
        Subject::BareHttp => rest::bare_http(),
    }
}
