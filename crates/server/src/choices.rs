//! Quipu's choices where the contract is silent, in one place.
//!
//! When the contract turns out to say something else, this is the file to change.

use axum::http::StatusCode;
use quipu_core::ErrorKind;

/// The status for an id that is malformed or of another kind: nothing has that id.
pub(super) const MALFORMED_ID: StatusCode = StatusCode::NOT_FOUND;

/// The status for two different credentials in one request.
pub(super) const TWO_CREDENTIALS: StatusCode = StatusCode::UNAUTHORIZED;

/// The status for a workspace header that is not the credential's workspace.
pub(super) const FOREIGN_WORKSPACE: StatusCode = StatusCode::FORBIDDEN;

/// The status for a server without capacity.
pub(super) const OVERLOADED: StatusCode = match StatusCode::from_u16(529) {
    Ok(status) => status,
    Err(_) => StatusCode::SERVICE_UNAVAILABLE,
};
/// The `retry-after` of that answer.
pub(super) const RETRY_AFTER_SECONDS: &str = "1";

/// The default size of a page.
pub(super) const PAGE_DEFAULT: usize = 20;
/// The maximum size of a page.
pub(super) const PAGE_MAX: usize = 100;
/// The maximum size of a page that contains texts.
pub(super) const FULL_PAGE_MAX: usize = 20;

/// The default and the maximum number of events on a page. A page ends earlier if they are long.
pub(super) const EVENTS_PAGE_DEFAULT: usize = 100;
pub(super) const EVENTS_PAGE_MAX: usize = 1_000;

/// How many events may stand in the request that creates a session.
pub(super) const INITIAL_EVENTS_MAX: usize = 50;

/// The maximum length of ids that Quipu only stores and echoes: of agents, environments, models and
/// vaults.
pub(super) const FOREIGN_ID_CHARS_MAX: usize = 256;
/// How many vaults a session may name.
pub(super) const VAULT_IDS_MAX: usize = 50;

/// The status and the type of the error for each kind. `docs/errors.md` lists them.
pub(super) fn status(kind: &ErrorKind) -> (StatusCode, &'static str) {
    const INVALID: &str = "invalid_request_error";
    match kind {
        ErrorKind::InvalidInput
        | ErrorKind::StoreArchived
        | ErrorKind::ContentTooLarge
        | ErrorKind::LimitReached
        | ErrorKind::SecretRefused
        | ErrorKind::HeadNotRedactable => (StatusCode::BAD_REQUEST, INVALID),
        ErrorKind::AccessDenied => (StatusCode::FORBIDDEN, "permission_error"),
        ErrorKind::NotFound => (StatusCode::NOT_FOUND, "not_found_error"),
        ErrorKind::PathConflict { .. } => (StatusCode::CONFLICT, "memory_path_conflict_error"),
        ErrorKind::PreconditionFailed => (StatusCode::CONFLICT, "memory_precondition_failed_error"),
        ErrorKind::Ambiguous => (StatusCode::CONFLICT, "conflict_error"),
        ErrorKind::StorageBusy => (StatusCode::SERVICE_UNAVAILABLE, "api_error"),
        ErrorKind::EraseIncomplete
        | ErrorKind::StorageFull
        | ErrorKind::StorageUnavailable
        | ErrorKind::StorageUnusable => (StatusCode::INTERNAL_SERVER_ERROR, "api_error"),
    }
}

/// The SDKs retry every 409 and every 5xx; neither a conflict of memories nor a full disk goes away
/// by itself, so the answer forbids it.
pub(super) fn forbids_retry(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PathConflict { .. } | ErrorKind::PreconditionFailed | ErrorKind::StorageFull
    )
}

/// The versions of the API that clients may ask for.
pub(super) const API_VERSIONS: [&str; 2] = ["2023-06-01", "2026-10-21"];

/// The betas of the memory endpoints; a request names exactly one of them.
pub(super) const MEMORY_BETAS: [&str; 2] = ["agent-memory-2026-07-22", "managed-agents-2026-04-01"];

/// The beta of the session endpoints.
pub(super) const SESSION_BETA: &str = "managed-agents-2026-04-01";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_that_cannot_succeed_are_forbidden() {
        let conflict = ErrorKind::PreconditionFailed;
        assert!(forbids_retry(&ErrorKind::StorageFull) && forbids_retry(&conflict));
        assert!(!forbids_retry(&ErrorKind::StorageBusy));
    }

    #[test]
    fn the_documentation_lists_every_kind_with_its_status() {
        let document = include_str!("../../../docs/errors.md");
        for kind in ErrorKind::examples() {
            let start = format!("| `{}` |", kind.as_str());
            let row = document.lines().find(|line| line.starts_with(&start));
            let (status, error_type) = status(&kind);
            let cell = format!("| {} `{error_type}` |", status.as_u16());
            assert!(row.is_some_and(|row| row.contains(&cell)), "{start} … {cell}");
        }
    }
}
