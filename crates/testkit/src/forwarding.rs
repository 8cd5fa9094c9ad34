//! Backends for tests that change one thing about another one.

/// Forwards what a backend for tests does not change to its field `inner`: everything but `read`,
/// `read_now` and `write`.
#[macro_export]
macro_rules! forward_to_inner {
    () => {
        fn wait(
            &self,
            seen: ::quipu_core::backend::Sequence,
            timeout: ::std::time::Duration,
        ) -> Result<::quipu_core::backend::Sequence, ::quipu_core::Error> {
            self.inner.wait(seen, timeout)
        }

        fn watch(
            &self,
            timeout: ::std::time::Duration,
            is_done: &mut ::quipu_core::backend::WatchWork<'_>,
        ) -> Result<(), ::quipu_core::Error> {
            self.inner.watch(timeout, is_done)
        }

        fn erase(&self) -> Result<::quipu_core::backend::Erasure, ::quipu_core::Error> {
            self.inner.erase()
        }

        fn note_erased(
            &self,
            erased: &[::quipu_core::backend::PendingErasure],
        ) -> Result<(), ::quipu_core::Error> {
            self.inner.note_erased(erased)
        }

        fn unreachable(&self) -> Result<Vec<String>, ::quipu_core::Error> {
            self.inner.unreachable()
        }

        fn condition(&self) -> Result<::quipu_core::backend::Condition, ::quipu_core::Error> {
            self.inner.condition()
        }

        fn verify(&self) -> Result<Vec<String>, ::quipu_core::Error> {
            self.inner.verify()
        }

        fn rebuild(&self) -> Result<(), ::quipu_core::Error> {
            self.inner.rebuild()
        }

        fn backup(&self, target: &::std::path::Path) -> Result<(), ::quipu_core::Error> {
            self.inner.backup(target)
        }

        fn compact(&self) -> Result<(), ::quipu_core::Error> {
            self.inner.compact()
        }

        fn close(&self) -> Result<(), ::quipu_core::Error> {
            self.inner.close()
        }
    };
}
