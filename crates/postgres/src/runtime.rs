//! The runtime that drives connections, on threads of its own.

use quipu_core::{Error, ErrorKind};
use tokio::runtime::{Builder, Handle, Runtime};

/// How many threads drive connections. They only move bytes.
const RUNTIME_THREADS: usize = 2;

/// The runtime that drives the connections.
pub(crate) struct Background(Option<Runtime>);

impl Background {
    pub(crate) fn new() -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .thread_name("quipu-postgres")
            .enable_all()
            .build();
        let failed = "could not start the database runtime";
        let runtime = runtime.map_err(|error| {
            Error::new(ErrorKind::StorageUnavailable, failed).with_source(error)
        })?;
        Ok(Self(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("the runtime is there until this is dropped").handle()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Waiting for it to end would block, which is forbidden where this may be dropped.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
