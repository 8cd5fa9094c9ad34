//! The lock types of what threads of a process share by hand, named in this one place, so that
//! `tests/schedules` can build the same code with the types of a schedule checker.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::time::Instant;
