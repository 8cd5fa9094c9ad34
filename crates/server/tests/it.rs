//! The tests of the doors, in one binary.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking")]

#[path = "it/openapi.rs"]
mod openapi;
#[path = "it/rest.rs"]
mod rest;
#[path = "it/tool.rs"]
mod tool;
#[path = "it/tool_golden.rs"]
mod tool_golden;
#[path = "it/webhooks.rs"]
mod webhooks;
