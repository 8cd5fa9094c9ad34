//! A call that is waited for with a deadline brings its result to one who waits, or to nobody.

use std::time::Duration;

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

use crate::patience::Patience;
use crate::sync::Instant;

/// What a call brings: a lock that others may hold.
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
        assert!(self.0.swap(false, Ordering::SeqCst), "the lock was given back twice");
    }
}

#[test]
fn a_lock_is_held_by_one_and_given_back_by_those_who_gave_up() {
    crate::check(|| {
        let is_held = Arc::new(AtomicBool::new(false));
        let gate = Patience::default();
        for _ in 0..3 {
            let other = Lock::new(&is_held);
            let holder = thread::spawn(move || drop(other));
            let deadline = Instant::now() + Duration::from_secs(1);
            let lock = Arc::clone(&is_held);
            let brought = gate.wait_until(deadline, move || Ok(Lock::new(&lock)));
            if brought.is_some() {
                assert!(is_held.load(Ordering::SeqCst), "whoever has the lock holds it");
            }
            holder.join().unwrap();
        }
        // Whatever is brought to nobody is given back.
        drop(Lock::new(&is_held));
    });
}
