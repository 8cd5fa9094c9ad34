//! Log messages for the client, at the level that it chose.

#![expect(deprecated, reason = "the newest revision gives these messages up, older ones have them")]

use std::sync::{Mutex, PoisonError};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

/// The severity of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level {
    Debug,
    Info,
}

/// The level that a client has chosen; warnings until it does.
#[derive(Debug)]
pub(super) struct Log(Mutex<LoggingLevel>);

impl Default for Log {
    fn default() -> Self {
        Self(Mutex::new(LoggingLevel::Warning))
    }
}

impl Log {
    pub(super) fn set_level(&self, level: LoggingLevel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Sends a message to the client, unless it is below the client's level.
    pub(super) async fn send(
        &self,
        context: &RequestContext<RoleServer>,
        level: Level,
        message: &str,
    ) {
        let chosen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = context.meta.log_level().unwrap_or(chosen);
        let level = match level {
            Level::Debug => LoggingLevel::Debug,
            Level::Info => LoggingLevel::Info,
        };
        if rank(level) < rank(wanted) {
            return;
        }
        let param = LoggingMessageNotificationParam::new(level, Value::String(message.to_owned()))
            .with_logger("quipu");
        if let Err(error) = context.peer.notify_logging_message(param).await {
            tracing::debug!(%error, "a log message could not be sent");
        }
    }
}

fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
