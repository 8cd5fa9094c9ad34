//! The tests of the command line, in one binary.

#[path = "it/commands.rs"]
mod commands;
#[path = "it/errors.rs"]
mod errors;
#[path = "it/events.rs"]
mod events;
#[path = "it/expiry.rs"]
mod expiry;
#[path = "it/forgetting.rs"]
mod forgetting;
#[path = "it/help.rs"]
mod help;
#[path = "it/hook.rs"]
mod hook;
#[path = "it/hook_calls.rs"]
mod hook_calls;
#[path = "it/hook_cursor.rs"]
mod hook_cursor;
#[path = "it/hook_files.rs"]
mod hook_files;
#[path = "it/hook_install.rs"]
mod hook_install;
#[path = "it/hook_memory.rs"]
mod hook_memory;
#[path = "it/hook_rules.rs"]
mod hook_rules;
#[path = "it/hook_session.rs"]
mod hook_session;
#[path = "it/hook_slow.rs"]
mod hook_slow;
#[path = "it/incidents.rs"]
mod incidents;
#[path = "it/keys.rs"]
mod keys;
#[path = "it/knowledge.rs"]
mod knowledge;
#[path = "it/logging.rs"]
mod logging;
#[path = "it/mcp.rs"]
mod mcp;
#[path = "it/meaning.rs"]
mod meaning;
#[path = "it/model.rs"]
mod model;
#[path = "../../vectors/src/fixture.rs"]
mod model_fixture;
#[path = "it/packaging.rs"]
mod packaging;
#[path = "it/past.rs"]
mod past;
#[path = "it/readiness.rs"]
mod readiness;
#[path = "it/reserved.rs"]
mod reserved;
#[path = "it/reverting.rs"]
mod reverting;
#[path = "it/rogue.rs"]
mod rogue;
#[path = "it/rules.rs"]
mod rules;
#[path = "it/serve.rs"]
mod serve;
#[path = "it/server.rs"]
mod server;
#[path = "it/standing.rs"]
mod standing;
#[path = "it/starting.rs"]
mod starting;
#[path = "it/stopped.rs"]
mod stopped;
#[path = "it/storage.rs"]
mod storage;
#[path = "it/support.rs"]
mod support;
#[path = "it/sync.rs"]
mod sync;
#[path = "it/tidy.rs"]
mod tidy;
#[path = "it/tool.rs"]
mod tool;
#[path = "it/transfer.rs"]
mod transfer;
#[path = "it/ui.rs"]
mod ui;
#[path = "it/upstream.rs"]
mod upstream;
#[path = "it/walks.rs"]
mod walks;
#[path = "it/webhooks.rs"]
mod webhooks;
