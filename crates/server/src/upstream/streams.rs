//! How many requests are being forwarded, in all and of each key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use quipu_core::model::KeyId;
use quipu_service::pool::PoolError;

use crate::answer::Failure;

/// The requests that are being forwarded.
#[derive(Clone, Debug)]
pub(super) struct Streams(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    count_max: usize,
    per_key_max: usize,
    /// How many there are of each key that has any, so there are at most `count_max` entries.
    by_key: Mutex<HashMap<KeyId, usize>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct StreamPermit {
    streams: Streams,
    key: KeyId,
}

impl Streams {
    pub(super) fn new(count_max: usize, per_key_max: usize) -> Self {
        Self(Arc::new(Inner { count_max, per_key_max, by_key: Mutex::default() }))
    }

    /// Counts another request of a key, if there is room for it.
    pub(super) fn begin(&self, key: KeyId) -> Result<StreamPermit, Failure> {
        let mut by_key = self.by_key();
        let own = by_key.get(&key).copied().unwrap_or_default();
        if own >= self.0.per_key_max {
            let message = format!(
                "the key already has {own} forwarded requests in flight, its limit; wait for one to end"
            );
            let status = StatusCode::TOO_MANY_REQUESTS;
            let failure = Failure::new(status, "rate_limit_error", message);
            return Err(failure.with_header("retry-after", "1"));
        }
        if by_key.values().sum::<usize>() >= self.0.count_max {
            return Err(PoolError::Overloaded.into());
        }
        by_key.insert(key, own + 1);
        drop(by_key);
        Ok(StreamPermit { streams: self.clone(), key })
    }

    pub(super) fn count(&self) -> usize {
        self.by_key().values().sum()
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<KeyId, usize>> {
        self.0.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut by_key = self.streams.by_key();
        if let Some(count) = by_key.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                by_key.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::model::Id as _;

    use super::*;

    #[test]
    fn a_key_and_all_keys_have_a_limit_and_what_ends_makes_room() {
        let [ada, bob] = [1, 2].map(KeyId::from_bits);
        let streams = Streams::new(3, 2);
        let first = streams.begin(ada).unwrap();
        let _second = streams.begin(ada).unwrap();
        assert_eq!(streams.begin(ada).unwrap_err().status, StatusCode::TOO_MANY_REQUESTS);
        let third = streams.begin(bob).unwrap();
        assert_eq!(streams.begin(bob).unwrap_err().error_type, "overloaded_error");
        drop(third);
        drop(first);
        assert_eq!(streams.count(), 1);
        assert!(streams.begin(ada).is_ok());
        assert_eq!(streams.by_key().len(), 1, "keys without streams are forgotten");
    }
}
