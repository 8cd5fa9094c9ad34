//! Authentication: the credential of a request, and what its headers must say.

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, header};
use quipu_core::model::{Store, StoreId, WorkspaceId};
use quipu_knowledge::Knowledge;
use quipu_service::caller::{Caller, Denied};

use super::answer::Failure;
use super::choices::{self, FOREIGN_WORKSPACE, MALFORMED_ID, TWO_CREDENTIALS};

/// The workspace of a request's caller, once it is known. It is for the header that every answer to
/// a known caller carries, including errors.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkspaceSlot(Arc<OnceLock<WorkspaceId>>);

impl WorkspaceSlot {
    /// Sets the workspace. A request has one caller, so later calls change nothing.
    pub(super) fn fill(&self, workspace: WorkspaceId) {
        self.0.get_or_init(|| workspace);
    }

    pub(super) fn get(&self) -> Option<WorkspaceId> {
        self.0.get().copied()
    }
}

/// Authenticates the caller, and looks up the store that the request names.
pub(super) fn authenticate(
    engine: &Knowledge,
    headers: &HeaderMap,
    named: Option<StoreId>,
) -> Result<(Caller, Option<Store>), Failure> {
    let secret = credential(headers)?;
    let (principal, named) = engine.admit(secret, named)?;
    let principal = principal.ok_or_else(|| {
        Failure::unauthenticated("the API key is not valid, was revoked or has expired")
    })?;
    let caller = Caller::new(principal);
    let wanted = headers.get("anthropic-workspace-id");
    if wanted.is_some_and(|wanted| wanted.as_bytes() != caller.workspace.to_string().as_bytes()) {
        return Err(Failure::new(
            FOREIGN_WORKSPACE,
            "permission_error",
            "anthropic-workspace-id: the credential belongs to another workspace",
        ));
    }
    Ok((caller, named))
}

impl From<Denied> for Failure {
    fn from(Denied(message): Denied) -> Self {
        Self::forbidden(message)
    }
}

/// Returns the secret of a request, from either of the two headers.
pub(super) fn credential(headers: &HeaderMap) -> Result<&str, Failure> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, secret) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(secret.trim())
    });
    match (text("x-api-key"), bearer) {
        (Some(key), Some(bearer)) if key != bearer => Err(Failure::new(
            TWO_CREDENTIALS,
            "authentication_error",
            "x-api-key and Authorization carry different keys; send one of them",
        )),
        (Some(secret), _) | (None, Some(secret)) => Ok(secret),
        (None, None) => Err(Failure::unauthenticated(
            "no API key: send it as `Authorization: Bearer …` or `x-api-key: …`",
        )),
    }
}

/// Parses an id from a path. A malformed one is not found, like one that does not exist.
pub(super) fn parse_id<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, Failure> {
    match text.parse() {
        Ok(id) => Ok(id),
        Err(_) => Err(no_such(what, text)),
    }
}

pub(super) fn no_such(what: &str, id: &str) -> Failure {
    Failure::new(MALFORMED_ID, "not_found_error", format!("no {what} has the id `{id}`"))
}

/// Checks the version and beta headers.
pub(super) fn check_headers(headers: &HeaderMap, path: &str) -> Result<(), Failure> {
    let text = |name: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.collect::<Vec<_>>().join(",")
    };
    let version = text("anthropic-version");
    let betas = text("anthropic-beta");
    let betas: Vec<_> = betas.split(',').map(str::trim).filter(|beta| !beta.is_empty()).collect();
    if version.is_empty() {
        return Err(Failure::invalid("anthropic-version: header is required"));
    }
    if !choices::API_VERSIONS.contains(&version.as_str()) {
        return Err(Failure::invalid(format!("anthropic-version: `{version}` is not known")));
    }
    let known: &[&str] = if path.starts_with("/v1/memory_stores") {
        &choices::MEMORY_BETAS
    } else {
        &[choices::SESSION_BETA]
    };
    let unknown: Vec<_> = betas
        .iter()
        .filter(|beta| !known.contains(*beta))
        .map(|beta| format!("`{beta}`"))
        .collect();
    if !unknown.is_empty() {
        return Err(Failure::invalid(format!(
            "Unexpected value(s) {} for the `anthropic-beta` header. Please consult our \
             documentation at platform.claude.com/docs or try again without the header.",
            unknown.join(", ")
        )));
    }
    if known.iter().filter(|beta| betas.contains(*beta)).count() != 1 {
        return Err(Failure::invalid(format!(
            "anthropic-beta: exactly one of {} is required",
            known.join(", ")
        )));
    }
    Ok(())
}
