//! How much of messages with memory may be held at the same time.
//!
//! A request with memory is held as a whole, with all that was said in it, for as long as the model talks;
//! what is only passed on is not. So these have a limit of their own, by the length of their JSON.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_core::model::KeyId;
use quipu_service::pool::PoolError;

use crate::answer::Failure;

/// What all requests with memory may hold together.
#[derive(Clone, Debug)]
pub(in crate::upstream) struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    size_bytes_max: usize,
    held: Mutex<HashMap<KeyId, usize>>,
}

/// What one of them holds, until it is dropped.
#[derive(Debug)]
pub(in crate::upstream) struct Held {
    budget: Budget,
    key: KeyId,
    size_bytes: usize,
}

impl Budget {
    pub(in crate::upstream) fn new(size_bytes_max: usize) -> Self {
        Self(Arc::new(Inner { size_bytes_max, held: Mutex::default() }))
    }

    /// Returns room for this much, if there is any.
    pub(super) fn hold(&self, key: KeyId, size_bytes: usize) -> Result<Held, Failure> {
        let mut held = Held { budget: self.clone(), key, size_bytes: 0 };
        held.grow_to(size_bytes)?;
        Ok(held)
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<KeyId, usize>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what a key holds, if there is room. One key gets no more than half: others must not wait for it.
    fn change(&self, key: KeyId, (before, after): (usize, usize)) -> Result<(), Failure> {
        let mut by_key = self.by_key();
        let all: usize = by_key.values().sum::<usize>() - before;
        let own = by_key.get(&key).copied().unwrap_or_default() - before;
        let size_bytes_max = self.0.size_bytes_max;
        if after > before && (all + after > size_bytes_max || own + after > size_bytes_max / 2) {
            return Err(PoolError::Overloaded.into());
        }
        match own + after {
            0 => drop(by_key.remove(&key)),
            size_bytes => drop(by_key.insert(key, size_bytes)),
        }
        Ok(())
    }
}

impl Held {
    /// Holds this much in all.
    pub(super) fn grow_to(&mut self, size_bytes: usize) -> Result<(), Failure> {
        if size_bytes > self.size_bytes {
            self.budget.change(self.key, (self.size_bytes, size_bytes))?;
            self.size_bytes = size_bytes;
        }
        Ok(())
    }

    /// Gives up what is not needed.
    pub(super) fn shrink_to(&mut self, size_bytes: usize) {
        if size_bytes < self.size_bytes {
            let sizes = (self.size_bytes, size_bytes);
            self.budget.change(self.key, sizes).expect("there is always room for less");
            self.size_bytes = size_bytes;
        }
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::model::Id as _;

    use super::*;

    #[test]
    fn all_have_a_limit_and_one_key_has_half_of_it() {
        let [ada, bob] = [1, 2].map(KeyId::from_bits);
        let budget = Budget::new(100);
        let mut first = budget.hold(ada, 40).unwrap();
        let _second = budget.hold(ada, 10).unwrap();
        assert_eq!(budget.hold(ada, 1).unwrap_err().error_type, "overloaded_error");
        let third = budget.hold(bob, 50).unwrap();
        assert!(first.grow_to(41).is_err());
        assert_eq!(first.size_bytes(), 40);
        drop(third);
        assert!(first.grow_to(41).is_err(), "half of it");
        first.shrink_to(5);
        assert!(budget.hold(ada, 35).is_ok());
        drop(first);
        assert_eq!(budget.by_key().len(), 1);
    }

    #[test]
    fn whoever_is_gone_holds_nothing() {
        let budget = Budget::new(100);
        drop(budget.hold(KeyId::from_bits(1), 50).unwrap());
        assert!(budget.by_key().is_empty());
    }
}
