//! A storage that fails at every step in turn.

use std::sync::Arc;

use quipu_core::model::Access;
use quipu_core::settings::Limits;
use quipu_mount::TreeError;
use quipu_testkit::{FaultyBackend, InMemoryBackend};

use crate::support::{Bench, bench_over};

/// Runs `work` with a failure at each step, until none happens any more.
fn sweep(prepare: impl Fn(&Bench), work: impl Fn(&Bench) -> Result<(), TreeError>) {
    for step in 1.. {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let backend = Arc::clone(&faulty) as Arc<dyn quipu_core::Backend>;
        let bench = bench_over(backend, Access::ReadWrite, Limits::default());
        prepare(&bench);
        let before = bench.versions();
        faulty.fail_at(step);
        let done = work(&bench);
        let failed = faulty.disarm();
        bench.follow();
        if done.is_err() {
            assert_eq!(done, Err(TreeError::Storage), "step {step}");
            assert_eq!(bench.versions().len(), before.len(), "step {step}");
            assert_eq!(bench.text("/a").as_deref(), Some("old"), "step {step}");
        } else {
            assert_eq!(bench.text("/a").as_deref(), bench.stored("/a").as_deref(), "step {step}");
        }
        if !failed {
            return;
        }
    }
}

#[test]
fn a_failed_write_changes_nothing_and_says_so() {
    sweep(|bench| bench.write("/a", b"old").unwrap(), |bench| bench.write("/a", b"new"));
}

#[test]
fn a_failed_save_by_rename_changes_nothing_and_says_so() {
    sweep(
        |bench| {
            bench.write("/a", b"old").unwrap();
            bench.write("/a.tmp", b"new").unwrap();
        },
        |bench| bench.rename("/a.tmp", "/a"),
    );
}

#[test]
fn a_failed_removal_changes_nothing_and_says_so() {
    sweep(|bench| bench.write("/a", b"old").unwrap(), |bench| bench.remove("/a"));
}
