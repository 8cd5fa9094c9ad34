//! Why a command failed: a message, a hint and the exit code.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use quipu_core::{Error, ErrorKind};

use crate::storage::Place;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
    cause: Option<String>,
}

/// Any failure without a code of its own.
const OTHER: u8 = 1;
/// The command line is wrong; the argument parser uses the same code.
const USAGE: u8 = 2;
/// The given name matches nothing, or more than one thing.
const NOT_FOUND: u8 = 3;
/// The storage failed.
const STORAGE: u8 = 7;
/// `quipu check` found problems.
const UNSOUND: u8 = 8;

/// Returns the exit code for an error kind. `docs/errors.md` lists them.
pub(crate) fn exit_code(kind: &ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidInput => USAGE,
        ErrorKind::NotFound | ErrorKind::Ambiguous => NOT_FOUND,
        ErrorKind::PathConflict { .. } | ErrorKind::PreconditionFailed => 4,
        ErrorKind::StoreArchived
        | ErrorKind::ContentTooLarge
        | ErrorKind::LimitReached
        | ErrorKind::SecretRefused
        | ErrorKind::HeadNotRedactable => 5,
        ErrorKind::AccessDenied => 6,
        ErrorKind::EraseIncomplete
        | ErrorKind::StorageFull
        | ErrorKind::StorageBusy
        | ErrorKind::StorageUnavailable
        | ErrorKind::StorageUnusable => STORAGE,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into(), hint: None, cause: None }
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self { code: OTHER, message: message.into(), hint: None, cause: None }
    }

    pub(crate) fn unsound(problems_count: usize) -> Self {
        let message = match problems_count {
            1 => "found 1 problem".to_owned(),
            count => format!("found {count} problems"),
        };
        Self { code: UNSOUND, message, hint: None, cause: None }
    }

    /// Returns a failure that was already reported to the user.
    pub(crate) fn reported(code: u8) -> Self {
        Self { code, message: String::new(), hint: None, cause: None }
    }

    /// Returns whether a named thing does not exist, or is ambiguous.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code == NOT_FOUND
    }

    /// Adds what the command had done before it failed.
    pub(crate) fn after(mut self, done: &str) -> Self {
        self.message = format!("{done}, then: {}", self.message);
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints the failure and returns the exit code. Names where the data is if the failure is about its
    /// content.
    pub(crate) fn report(self, data: Option<&Place>) -> ExitCode {
        if self.message.is_empty() {
            return ExitCode::from(self.code);
        }
        let bold = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
        let mut text = format!("{bold}error{bold:#}: {}\n", self.message);
        if let Some(cause) = self.cause {
            text += &format!("  cause: {cause}\n");
        }
        if let (Some(data), NOT_FOUND | STORAGE) = (data, self.code) {
            text += &format!("   data: {data}\n");
        }
        if let Some(hint) = self.hint {
            let bold = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
            text += &format!("{bold}hint{bold:#}: {hint}\n");
        }
        // If even this cannot be written, only the exit code is left.
        anstream::stderr().write_all(text.as_bytes()).unwrap_or_default();
        ExitCode::from(self.code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // The user of the command line owns the data, so nothing in the cause must be hidden from them.
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        Self {
            code: exit_code(error.kind()),
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
            cause,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // The reader has closed the pipe, as in `quipu log | head`.
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::reported(0);
        }
        Self::other(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_every_kind_with_its_exit_code() {
        let document = include_str!("../../../docs/errors.md");
        for kind in ErrorKind::examples() {
            let row =
                document.lines().find(|line| line.starts_with(&format!("| `{}` |", kind.as_str())));
            let row = row.unwrap_or_else(|| panic!("no row for `{}`", kind.as_str()));
            assert!(row.contains(&format!("| {} |", exit_code(&kind))), "{row}");
        }
    }
}
