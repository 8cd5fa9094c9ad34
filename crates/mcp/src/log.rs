//! Log messages for the client, at the level that it chose.

#![expect(deprecated, reason = "the newest revision gives these messages up, older ones have them")]

use std::sync::{Mutex, PoisonError};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

/// How much a message matters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Level {
    Debug,
    Info,
}

/// What a client wants to hear; nothing below warnings until it asks.
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

    /// Tells the client something, if it wants to hear it.
    pub(super) async fn tell(
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
            tracing::debug!(%error, "a client does not listen");
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
