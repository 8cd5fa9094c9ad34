//! Authentication and authorization: who calls, and what they may do.

use std::sync::{Arc, OnceLock};

use axum::http::{HeaderMap, header};
use quipu_core::engine::Principal;
use quipu_core::model::{Access, Actor, KeyId, Role, Session, Store, StoreId, WorkspaceId};
use quipu_knowledge::Knowledge;

use super::answer::Failure;
use super::choices::{self, FOREIGN_WORKSPACE, MALFORMED_ID, TWO_CREDENTIALS};

/// The principal behind the credential of a request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) principal: Principal,
    pub(super) workspace: WorkspaceId,
    pub(super) actor: Actor,
}

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

/// The permission that a request needs on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    /// To read.
    Read,
    /// To change memories.
    Write,
    /// To change the store itself, or to remove text permanently.
    Manage,
}

impl Caller {
    /// Authenticates the caller, and looks up the store that the request names.
    pub(super) fn authenticate(
        engine: &Knowledge,
        headers: &HeaderMap,
        named: Option<StoreId>,
    ) -> Result<(Self, Option<Store>), Failure> {
        let secret = credential(headers)?;
        let (principal, named) = engine.admit(secret, named)?;
        let principal = principal.ok_or_else(|| {
            Failure::unauthenticated("the API key is not valid, was revoked or has expired")
        })?;
        let (workspace, actor) = match &principal {
            Principal::Key(key) => (key.workspace, Actor::ApiKey(key.id)),
            Principal::Session(session) => (session.workspace, Actor::Session(session.id)),
        };
        let wanted = headers.get("anthropic-workspace-id");
        if wanted.is_some_and(|wanted| wanted.as_bytes() != workspace.to_string().as_bytes()) {
            return Err(Failure::new(
                FOREIGN_WORKSPACE,
                "permission_error",
                "anthropic-workspace-id: the credential belongs to another workspace",
            ));
        }
        Ok((Self { principal, workspace, actor }, named))
    }

    /// Returns whether the caller has this permission on any store of its workspace.
    pub(super) fn may(&self, need: Need) -> bool {
        match &self.principal {
            Principal::Key(key) => role_allows(key.role, need),
            Principal::Session(_) => need < Need::Manage,
        }
    }

    /// Fails unless the caller has this permission on the whole workspace.
    pub(super) fn require_workspace(&self, need: Need) -> Result<(), Failure> {
        if self.is_unlimited() && self.may(need) { Ok(()) } else { Err(self.denied(need)) }
    }

    /// Returns whether the caller can reach all stores of its workspace.
    pub(super) fn is_unlimited(&self) -> bool {
        match &self.principal {
            Principal::Key(key) => key.stores.is_none(),
            Principal::Session(_) => false,
        }
    }

    /// Returns the key of the caller, if it has one.
    pub(super) fn key(&self) -> Option<KeyId> {
        match &self.principal {
            Principal::Key(key) => Some(key.id),
            Principal::Session(_) => None,
        }
    }

    /// Returns whether the caller may know of a session.
    pub(super) fn sees(&self, session: &Session) -> bool {
        match &self.principal {
            Principal::Key(key) => key.sees(session),
            Principal::Session(own) => own.id == session.id,
        }
    }

    /// Returns whether the caller has this permission on a session that it sees.
    pub(super) fn may_with(&self, need: Need) -> bool {
        match &self.principal {
            Principal::Key(_) => self.may(need),
            Principal::Session(_) => need == Need::Read,
        }
    }

    /// Returns whether the caller has this permission on a store of its workspace.
    pub(super) fn may_in(&self, store: StoreId, need: Need) -> bool {
        match &self.principal {
            Principal::Key(key) => key.opens(store) && role_allows(key.role, need),
            Principal::Session(session) => {
                session.attachment(store).is_some_and(|attachment| match attachment.access {
                    Access::ReadWrite => need < Need::Manage,
                    Access::ReadOnly => need == Need::Read,
                })
            }
        }
    }

    pub(super) fn denied(&self, need: Need) -> Failure {
        let who = match &self.principal {
            Principal::Key(_) => "the key",
            Principal::Session(_) => "the session",
        };
        let what = match need {
            Need::Read => "read here",
            Need::Write => "write here",
            Need::Manage => "manage stores, keys and redactions",
        };
        Failure::forbidden(format!("{who} may not {what}; use one with more rights"))
    }
}

fn role_allows(role: Role, need: Need) -> bool {
    match role {
        Role::ReadOnly => need == Need::Read,
        Role::ReadWrite => need <= Need::Write,
        Role::Admin => true,
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
