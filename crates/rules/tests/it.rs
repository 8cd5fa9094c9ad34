//! What rules decide, and what they see of a command.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

#[path = "it/check.rs"]
mod check;
#[path = "it/decide.rs"]
mod decide;
#[path = "it/reference.rs"]
mod reference;
#[path = "it/shell.rs"]
mod shell;
#[path = "it/support.rs"]
mod support;
