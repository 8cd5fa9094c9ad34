//! The sessions that models write as: one for each key, store and app, until it is archived or forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use quipu_core::ErrorKind;
use quipu_core::model::KeyId;
use quipu_knowledge::Knowledge;
use quipu_service::DraftedSession;

use super::opened::Scope;
use crate::answer::Failure;

/// How many sessions are known, of all keys and of one. An app whose session was forgotten goes on in a new one.
const SESSIONS_MAX: usize = 4096;
const SESSIONS_PER_KEY_MAX: usize = 256;

type Whose = (Scope, String);

/// The sessions in use.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Sessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    sessions: HashMap<Whose, (Arc<DraftedSession>, u64)>,
    uses_count: u64,
}

impl Sessions {
    /// Returns the session of an app, which is drafted if there is none.
    pub(super) fn get(
        &self,
        engine: &Knowledge,
        whose: Whose,
        draft: impl FnOnce() -> Result<DraftedSession, Failure>,
    ) -> Result<Arc<DraftedSession>, Failure> {
        if let Some(known) = self.known(&whose)
            && is_open(engine, &known)?
        {
            return Ok(known);
        }
        let new = Arc::new(draft()?);
        self.add(whose, Arc::clone(&new));
        Ok(new)
    }

    fn known(&self, whose: &Whose) -> Option<Arc<DraftedSession>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses_count += 1;
        let now = table.uses_count;
        let (session, used_at) = table.sessions.get_mut(whose)?;
        *used_at = now;
        Some(Arc::clone(session))
    }

    fn add(&self, whose: Whose, session: Arc<DraftedSession>) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.sessions.contains_key(&whose) {
            table.make_room(whose.0.key);
        }
        table.uses_count += 1;
        let now = table.uses_count;
        table.sessions.insert(whose, (session, now));
    }
}

impl Table {
    /// Forgets the session that was used least recently of the key, if it has too many, or of the key that has
    /// most: whoever names many apps must not make those of others start again.
    fn make_room(&mut self, key: KeyId) {
        let mut counts: HashMap<KeyId, usize> = HashMap::new();
        for (scope, _) in self.sessions.keys() {
            *counts.entry(scope.key).or_default() += 1;
        }
        let own_count = counts.get(&key).copied().unwrap_or_default();
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(key, _)| key);
        let crowded = match most {
            _ if own_count >= SESSIONS_PER_KEY_MAX => Some(key),
            most if self.sessions.len() >= SESSIONS_MAX => most,
            _ => None,
        };
        let Some(crowded) = crowded else { return };
        let of_key = self.sessions.iter().filter(|((scope, _), _)| scope.key == crowded);
        let oldest = of_key.min_by_key(|(_, (_, used_at))| *used_at);
        if let Some(oldest) = oldest.map(|(whose, _)| whose.clone()) {
            self.sessions.remove(&oldest);
        }
    }
}

/// Returns whether a session may still be written as: it is not recorded yet, or not archived.
fn is_open(engine: &Knowledge, session: &DraftedSession) -> Result<bool, Failure> {
    if !session.is_recorded() {
        return Ok(true);
    }
    match engine.session(session.session().id) {
        Ok(session) => Ok(session.archived_at.is_none()),
        Err(error) if *error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}
