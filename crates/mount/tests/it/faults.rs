//! Storage that fails at each step of a call in turn.

use std::sync::Arc;

use quipu_core::model::Access;
use quipu_core::settings::Limits;
use quipu_mount::TreeError;
use quipu_testkit::{FaultyBackend, InMemoryBackend};

use crate::support::{Fixture, fixture_over};

/// Runs `work` with a failure at each step, until none happens any more.
fn sweep(prepare: impl Fn(&Fixture), work: impl Fn(&Fixture) -> Result<(), TreeError>) {
    for step in 1.. {
        let faulty = Arc::new(FaultyBackend::new(Arc::new(InMemoryBackend::default())));
        let backend = Arc::clone(&faulty) as Arc<dyn quipu_core::Backend>;
        let fixture = fixture_over(backend, Access::ReadWrite, Limits::default());
        prepare(&fixture);
        let before = fixture.versions();
        faulty.fail_at(step);
        let done = work(&fixture);
        let failed = faulty.disarm();
        fixture.follow();
        if done.is_err() {
            assert_eq!(done, Err(TreeError::Storage), "step {step}");
            assert_eq!(fixture.versions().len(), before.len(), "step {step}");
            assert_eq!(fixture.text("/a").as_deref(), Some("old"), "step {step}");
        } else {
            assert_eq!(
                fixture.text("/a").as_deref(),
                fixture.stored("/a").as_deref(),
                "step {step}"
            );
        }
        if !failed {
            return;
        }
    }
}

#[test]
fn a_failed_write_changes_nothing_and_says_so() {
    sweep(|fixture| fixture.write("/a", b"old").unwrap(), |fixture| fixture.write("/a", b"new"));
}

#[test]
fn a_failed_save_by_rename_changes_nothing_and_says_so() {
    sweep(
        |fixture| {
            fixture.write("/a", b"old").unwrap();
            fixture.write("/a.tmp", b"new").unwrap();
        },
        |fixture| fixture.rename("/a.tmp", "/a"),
    );
}

#[test]
fn a_failed_removal_changes_nothing_and_says_so() {
    sweep(|fixture| fixture.write("/a", b"old").unwrap(), |fixture| fixture.remove("/a"));
}
