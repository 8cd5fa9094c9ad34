//! A thread pool for calls that wait for the disk.
//!
//! One worker takes the kernel's requests, because several wake each other and make every open
//! slower. A durable write on that worker would stall all other requests, and no two writes could
//! share a group commit. So calls that may block run here.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// How many calls block at the same time; more are queued.
const THREADS_MAX: usize = 16;

type Call = Box<dyn FnOnce() + Send>;

/// Threads that are started on demand and exit when this value is dropped.
pub(crate) struct BlockingPool {
    calls: Sender<Call>,
    waiting: Arc<Mutex<Receiver<Call>>>,
    threads_count: AtomicUsize,
    /// Calls that are queued or running.
    busy_count: Arc<AtomicUsize>,
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("BlockingPool")
            .field("busy_count", &self.busy_count)
            .finish_non_exhaustive()
    }
}

impl Default for BlockingPool {
    fn default() -> Self {
        let (calls, waiting) = channel();
        Self {
            calls,
            waiting: Arc::new(Mutex::new(waiting)),
            threads_count: AtomicUsize::new(0),
            busy_count: Arc::default(),
        }
    }
}

impl BlockingPool {
    /// Runs a call on a thread of the pool.
    pub(crate) fn run(&self, call: impl FnOnce() + Send + 'static) {
        let busy_count = self.busy_count.fetch_add(1, Ordering::SeqCst) + 1;
        let threads_count = self.threads_count.load(Ordering::SeqCst);
        if busy_count > threads_count && threads_count < THREADS_MAX {
            self.threads_count.fetch_add(1, Ordering::SeqCst);
            let (waiting, busy_count) = (Arc::clone(&self.waiting), Arc::clone(&self.busy_count));
            thread::spawn(move || work(&waiting, &busy_count));
        }
        if let Err(unsent) = self.calls.send(Box::new(call)) {
            // Unreachable while the receiver is held by this value; running it here is correct anyway.
            unsent.0();
        }
    }
}

fn work(waiting: &Mutex<Receiver<Call>>, busy_count: &AtomicUsize) {
    loop {
        let call = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(call) = call else { return };
        call();
        busy_count.fetch_sub(1, Ordering::SeqCst);
    }
}
