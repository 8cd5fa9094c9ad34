//! The sessions that somebody follows in this process.
//!
//! Each follower waits for its own session. When events were recorded anywhere, one thread looks up how far
//! the followed sessions are, on one snapshot, and wakes the followers of those that have moved. If each
//! follower looked for itself, an event in one session would cost a query for every follower of another.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_core::Error;
use quipu_core::engine::SessionState;
use quipu_core::model::SessionId;
use quipu_knowledge::Knowledge;
use tokio::sync::watch;

/// How many followers a session has at most in a process.
pub const FOLLOWERS_PER_SESSION_MAX: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct FollowedSessions(Mutex<HashMap<SessionId, watch::Sender<SessionState>>>);

impl FollowedSessions {
    /// Returns a receiver that changes with the session; `None` if the session has enough of them.
    pub(crate) fn follow(&self, session: SessionId) -> Option<watch::Receiver<SessionState>> {
        let mut sessions = self.lock();
        // What was followed and is not any more leaves here too, or else followers that come and go
        // while nothing is recorded would leave their sessions behind.
        sessions.retain(|_, sender| sender.receiver_count() > 0);
        let new = || watch::Sender::new(SessionState::Open(0));
        let sender = sessions.entry(session).or_insert_with(new);
        (sender.receiver_count() < FOLLOWERS_PER_SESSION_MAX).then(|| sender.subscribe())
    }

    /// Wakes the followers of every session that has moved; returns how many followers there are.
    pub(crate) fn notify(&self, engine: &Knowledge) -> Result<usize, Error> {
        let ids: Vec<_> = {
            let mut sessions = self.lock();
            sessions.retain(|_, sender| sender.receiver_count() > 0);
            sessions.keys().copied().collect()
        };
        if ids.is_empty() {
            return Ok(0);
        }
        // Without the lock: a follower must not wait for the disk.
        let states = engine.session_states(&ids)?;
        let sessions = self.lock();
        let mut followers_count = 0;
        for (id, state) in ids.iter().zip(states) {
            let Some(sender) = sessions.get(id) else { continue };
            followers_count += sender.receiver_count();
            sender.send_if_modified(|known| {
                let has_changed = *known != state;
                *known = state;
                has_changed
            });
        }
        Ok(followers_count)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, watch::Sender<SessionState>>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu_core::engine::{NewSession, NewSessionEvent, SessionToken};
    use quipu_core::model::{Actor, Content, EventType};
    use quipu_testkit::{InMemoryBackend, ManualClock, knowledge_over};

    use super::*;

    #[test]
    fn only_followers_of_a_session_that_has_moved_are_woken() {
        let engine =
            knowledge_over(Arc::new(InMemoryBackend::default()), Arc::new(ManualClock::default()));
        let workspace = engine.default_workspace().unwrap().id;
        let session = || {
            let new = NewSession::titled("run", Vec::new(), SessionToken::None);
            engine.create_session(workspace, &new).unwrap().0.id
        };
        let (moved, still) = (session(), session());
        let followed = FollowedSessions::default();
        let (mut first, mut second) =
            (followed.follow(moved).unwrap(), followed.follow(still).unwrap());
        followed.notify(&engine).unwrap();
        first.mark_unchanged();
        second.mark_unchanged();
        let event = NewSessionEvent {
            kind: EventType::new("user.message").unwrap(),
            body: Content::new("{}").unwrap(),
        };
        engine.record_events(&Actor::Session(moved), moved, &[event]).unwrap();
        assert_eq!(followed.notify(&engine).unwrap(), 2);
        assert!(first.has_changed().unwrap() && !second.has_changed().unwrap());
        assert_eq!(*first.borrow(), SessionState::Open(1));
        drop(first);
        assert_eq!(followed.notify(&engine).unwrap(), 1);
    }

    #[test]
    fn a_session_has_no_more_followers_than_the_limit() {
        let followed = FollowedSessions::default();
        let session = "sesn_011111111111111111111111".parse().unwrap();
        let mut receivers: Vec<_> =
            (0..FOLLOWERS_PER_SESSION_MAX).map(|_| followed.follow(session).unwrap()).collect();
        assert!(followed.follow(session).is_none());
        receivers.pop();
        assert!(followed.follow(session).is_some());
    }
}
