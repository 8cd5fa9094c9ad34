//! Logging of long-running commands to standard error.

use std::io::IsTerminal as _;

use quipu_service::log::{self, LogGuard};
use tracing::Level;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogForm {
    /// Text, colored on a terminal.
    Text,
    /// Text without colors.
    Plain,
    /// One JSON object per line.
    Json,
}

/// Installs the logger. The guard flushes it and must live as long as the command.
#[must_use]
pub(crate) fn start(level: Level, form: LogForm) -> LogGuard {
    let (writer, guard) = log::to_stderr();
    let is_colored = form == LogForm::Text && std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(writer)
        .with_ansi(is_colored)
        .with_target(false);
    match form {
        LogForm::Json => builder.json().init(),
        LogForm::Text | LogForm::Plain => builder.init(),
    }
    guard
}
