//! Who may change the memories of a store.

use crate::backend::Reader;
use crate::model::{Actor, KeyId, Role, Store, Writers};
use crate::{Engine, Error, ErrorKind};

impl Engine {
    /// Returns whether the policy of a store lets an author change its memories.
    pub fn may_change(&self, store: &Store, actor: &Actor) -> Result<bool, Error> {
        self.read(|reader| may_change(reader, store, actor))
    }
}

/// Fails if a store is reserved for people and the actor is none.
///
/// What an attachment or a role allows is decided at the doors; this holds whatever a door has decided.
pub(super) fn require_writer(
    reader: &dyn Reader,
    store: &Store,
    actor: &Actor,
) -> Result<(), Error> {
    if may_change(reader, store, actor)? {
        return Ok(());
    }
    let message = format!("the store `{}` can only be changed by people", store.name);
    Err(Error::new(ErrorKind::AccessDenied, message)
        .with_hint("tell a person what should be changed there, and why"))
}

fn may_change(reader: &dyn Reader, store: &Store, actor: &Actor) -> Result<bool, Error> {
    match store.policy.writers {
        Writers::Everyone => Ok(true),
        Writers::People => is_person(reader, actor),
    }
}

fn is_person(reader: &dyn Reader, actor: &Actor) -> Result<bool, Error> {
    match actor {
        // This program itself, which expires what the store's policy says.
        Actor::ServiceAccount(_) => Ok(true),
        Actor::Session(_) => Ok(false),
        Actor::ApiKey(id) => is_administrators(reader, *id),
        // The name that was typed at a sign-in proves nothing: anybody with any key can sign in. What
        // counts is the key. A user without one is whoever owns the data.
        Actor::User(_) => match actor.signed_in() {
            Some((_, key)) => is_administrators(reader, key),
            None => Ok(true),
        },
    }
}

fn is_administrators(reader: &dyn Reader, id: KeyId) -> Result<bool, Error> {
    Ok(reader.key(id)?.is_some_and(|key| key.role == Role::Admin))
}
