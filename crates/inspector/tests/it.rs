//! The pages, asked for as the HTTP server does, over an engine in memory.

#![expect(
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

#[path = "it/history.rs"]
mod history;
#[path = "it/past.rs"]
mod past;
#[path = "it/redact.rs"]
mod redact;
#[path = "it/sessions.rs"]
mod sessions;
#[path = "it/site.rs"]
mod site;
