//! The pages, asked for as the HTTP server does, over an engine in memory.

#![expect(
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

#[path = "it/admin.rs"]
mod admin;
#[path = "it/edit.rs"]
mod edit;
#[path = "it/graph.rs"]
mod graph;
#[path = "it/hidden.rs"]
mod hidden;
#[path = "it/history.rs"]
mod history;
#[path = "it/memory.rs"]
mod memory;
#[path = "it/past.rs"]
mod past;
#[path = "it/redact.rs"]
mod redact;
#[path = "it/reserved.rs"]
mod reserved;
#[path = "it/search.rs"]
mod search;
#[path = "it/sessions.rs"]
mod sessions;
#[path = "it/site.rs"]
mod site;
#[path = "it/start.rs"]
mod start;
#[path = "it/store.rs"]
mod store;
#[path = "it/support.rs"]
mod support;
