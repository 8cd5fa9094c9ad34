//! The result of a timed call is delivered to one caller, or dropped.

use std::time::Duration;

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

use crate::timed_call::TimedCall;
use crate::sync::Instant;

/// The result of a call: a lock that others may hold.
struct Lock(Arc<AtomicBool>);

impl Lock {
    /// Waits for the lock without a deadline, as the kernel does.
    fn new(is_held: &Arc<AtomicBool>) -> Self {
        while is_held.swap(true, Ordering::SeqCst) {
            thread::yield_now();
        }
        Self(Arc::clone(is_held))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        assert!(self.0.swap(false, Ordering::SeqCst), "the lock was released twice");
    }
}

#[test]
fn a_lock_is_held_by_one_caller_and_released_after_the_deadline() {
    crate::check(|| {
        let is_held = Arc::new(AtomicBool::new(false));
        let gate = TimedCall::default();
        for _ in 0..3 {
            let other = Lock::new(&is_held);
            let holder = thread::spawn(move || drop(other));
            let deadline = Instant::now() + Duration::from_secs(1);
            let lock = Arc::clone(&is_held);
            let locked = gate.wait_until(deadline, move || Ok(Lock::new(&lock)));
            if locked.is_some() {
                assert!(is_held.load(Ordering::SeqCst), "whoever has the lock holds it");
            }
            holder.join().unwrap();
        }
        // A lock that is delivered to nobody is released.
        drop(Lock::new(&is_held));
    });
}
