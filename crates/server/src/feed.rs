//! Following the change feed of the engine, for everybody in this process who waits for changes.

use std::time::Duration;

use quipu_core::Engine;
use quipu_core::backend::Sequence;
use tokio::sync::watch;

/// A stop is noticed at the latest after this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Puts the newest sequence into `newest` whenever any process has changed something, until `stop`
/// says so. Blocks its thread.
pub(crate) fn follow(engine: &Engine, newest: &watch::Sender<Sequence>, stop: impl Fn() -> bool) {
    let mut seen = Sequence(0);
    while !stop() {
        match engine.wait(seen, PATIENCE) {
            Ok(now) if now > seen => {
                seen = now;
                newest.send_replace(now);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::error!(%error, "the change feed cannot be read");
                std::thread::sleep(PATIENCE);
            }
        }
    }
}
