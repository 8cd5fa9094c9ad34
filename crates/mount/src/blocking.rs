//! A thread pool for calls that wait for the disk.
//!
//! One worker takes the kernel's requests, because several wake each other and make every open
//! slower. A durable write on that worker would stall all other requests, and no two writes could
//! share a group commit. So calls that may block run here.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many calls block at the same time; more are queued.
const THREADS_MAX: usize = 16;

type Call = Box<dyn FnOnce() + Send>;

/// Threads that are started on demand and exit when this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct BlockingPool(Arc<Shared>);

/// A queue with a condition variable: a call wakes exactly one idle thread. With a receiver of a
/// channel behind a lock, which is shorter to write, that thread wakes the next one to wait in its
/// place.
#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signaled when a call is queued, or the pool is dropped.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    threads_count: usize,
    idle_count: usize,
    is_closed: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queue")
            .field("threads_count", &self.threads_count)
            .field("idle_count", &self.idle_count)
            .finish_non_exhaustive()
    }
}

impl BlockingPool {
    /// Runs a call on a thread of the pool.
    pub(crate) fn run(&self, call: impl FnOnce() + Send + 'static) {
        let mut queue = self.0.lock();
        queue.calls.push_back(Box::new(call));
        if queue.calls.len() > queue.idle_count && queue.threads_count < THREADS_MAX {
            queue.threads_count += 1;
            let shared = Arc::clone(&self.0);
            thread::spawn(move || shared.work());
        }
        drop(queue);
        self.0.changed.notify_one();
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No call runs with the lock held, so a panic cannot leave the queue inconsistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(call) = queue.calls.pop_front() {
                drop(queue);
                // A panic must not cost the pool a thread. Its call is answered with `EIO` when the
                // reply is dropped.
                drop(panic::catch_unwind(AssertUnwindSafe(call)));
                queue = self.lock();
            } else if queue.is_closed {
                return;
            } else {
                queue.idle_count += 1;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle_count -= 1;
            }
        }
    }
}
