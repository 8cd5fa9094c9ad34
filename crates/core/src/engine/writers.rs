//! Who may change the memories of a store.

use crate::backend::Reader;
use crate::model::{Actor, Role, Store, Writers};
use crate::{Error, ErrorKind};

/// Fails if a store is reserved for people and the actor is none.
///
/// What an attachment or a role allows is decided at the doors; this holds whatever a door has decided.
pub(super) fn require_writer(
    reader: &dyn Reader,
    store: &Store,
    actor: &Actor,
) -> Result<(), Error> {
    let may_write = match (store.policy.writers, actor) {
        // A service account is this program itself, which expires what the store's policy says.
        (Writers::Everyone, _) | (Writers::People, Actor::User(_) | Actor::ServiceAccount(_)) => {
            true
        }
        (Writers::People, Actor::Session(_)) => false,
        (Writers::People, Actor::ApiKey(id)) => {
            reader.key(*id)?.is_some_and(|key| key.role == Role::Admin)
        }
    };
    if may_write {
        return Ok(());
    }
    let message = format!("the store `{}` can only be changed by people", store.name);
    Err(Error::new(ErrorKind::AccessDenied, message)
        .with_hint("tell a person what should be changed there, and why"))
}
