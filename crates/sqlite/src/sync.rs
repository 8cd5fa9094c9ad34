//! The lock types of all concurrent code, named in this one place, so that `tests/schedules` can build the
//! same code with the types of a schedule checker.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
pub(crate) use std::thread;
pub(crate) use std::time::Instant;
