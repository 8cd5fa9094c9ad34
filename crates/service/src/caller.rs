//! Authorization: who calls, and what they may do.
//!
//! Everything that answers over HTTP asks here, whatever it answers with: there is no second set of
//! rules.

use quipu_core::engine::Principal;
use quipu_core::model::{Access, Actor, Forwarding, KeyId, Role, Session, StoreId, WorkspaceId};

/// The principal behind the credential of a request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who it is.
    pub principal: Principal,
    /// The workspace that it belongs to.
    pub workspace: WorkspaceId,
    /// The author of what it changes.
    pub actor: Actor,
}

/// The permission that a request needs on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// To read.
    Read,
    /// To change memories.
    Write,
    /// To change the store itself, or to remove text permanently.
    Manage,
}

/// Why a caller may not do something, in words for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied(pub String);

impl Caller {
    /// Returns the caller that a principal is.
    pub fn new(principal: Principal) -> Self {
        let (workspace, actor) = match &principal {
            Principal::Key(key) => (key.workspace, key.actor()),
            Principal::Session(session) => (session.workspace, Actor::Session(session.id)),
        };
        Self { principal, workspace, actor }
    }

    /// Returns whether the caller has this permission on any store of its workspace.
    pub fn may(&self, need: Need) -> bool {
        match &self.principal {
            Principal::Key(key) => role_allows(key.role, need),
            Principal::Session(_) => need < Need::Manage,
        }
    }

    /// Fails unless the caller has this permission on the whole workspace.
    pub fn require_workspace(&self, need: Need) -> Result<(), Denied> {
        if self.is_unlimited() && self.may(need) { Ok(()) } else { Err(self.denied(need)) }
    }

    /// Returns whether the caller can reach all stores of its workspace.
    pub fn is_unlimited(&self) -> bool {
        match &self.principal {
            Principal::Key(key) => key.stores.is_none(),
            Principal::Session(_) => false,
        }
    }

    /// Returns the key with which the caller may have requests forwarded to the upstream.
    pub fn forwarding_key(&self) -> Result<KeyId, Denied> {
        match &self.principal {
            Principal::Key(key) => match key.forwarding {
                Forwarding::Allowed => Ok(key.id),
                Forwarding::Denied => Err(Denied(
                    "the key may not forward requests to the upstream; use one that was made \
                     with `quipu key create --forward`"
                        .to_owned(),
                )),
            },
            Principal::Session(_) => Err(Denied(
                "the token of a session may not forward requests to the upstream; use a key that \
                 was made with `quipu key create --forward`"
                    .to_owned(),
            )),
        }
    }

    /// Returns the key of the caller, if it has one.
    pub fn key(&self) -> Option<KeyId> {
        match &self.principal {
            Principal::Key(key) => Some(key.id),
            Principal::Session(_) => None,
        }
    }

    /// Returns whether the caller may know of a session.
    pub fn sees(&self, session: &Session) -> bool {
        match &self.principal {
            Principal::Key(key) => key.sees(session),
            Principal::Session(own) => own.id == session.id,
        }
    }

    /// Returns whether the caller has this permission on a session that it sees.
    pub fn may_with(&self, need: Need) -> bool {
        match &self.principal {
            Principal::Key(_) => self.may(need),
            Principal::Session(_) => need == Need::Read,
        }
    }

    /// Returns whether the caller has this permission on a store of its workspace.
    pub fn may_in(&self, store: StoreId, need: Need) -> bool {
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

    /// Returns the words for a caller that lacks this permission.
    pub fn denied(&self, need: Need) -> Denied {
        let who = match &self.principal {
            Principal::Key(_) => "the key",
            Principal::Session(_) => "the session",
        };
        let what = match need {
            Need::Read => "read here",
            Need::Write => "write here",
            Need::Manage => "manage stores, keys and redactions",
        };
        Denied(format!("{who} may not {what}; use one with more rights"))
    }
}

fn role_allows(role: Role, need: Need) -> bool {
    match role {
        Role::ReadOnly => need == Need::Read,
        Role::ReadWrite => need <= Need::Write,
        Role::Admin => true,
    }
}
